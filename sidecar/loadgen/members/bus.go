package members

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// Access is the configuration of the connection to a NATS server with JetStream.
type Access struct {
	URL   string // nats:// or tls://, with a host and a port
	Token string // empty: none
	// NKeyFile is a file with the seed of an NKey. The server receives a signature, never the seed.
	NKeyFile string
	CA       []byte // PEM; empty: the system's
	// Fleet separates several load generators with their own members on one server.
	Fleet string
}

// Check checks the configuration. A server beyond loopback needs a credential, and a token needs
// TLS, since it is sent to the server. The error is an [api.FieldError].
func (a Access) Check() error {
	u, err := url.Parse(a.URL)
	if err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Hostname() == "" || u.User != nil || u.Path != "" ||
		u.RawQuery != "" {
		return api.Refuse("members.nats.url", fmt.Sprintf("%q", a.URL),
			"nats:// or tls:// with a host and a port, such as nats://127.0.0.1:4222")
	}
	if a.Token != "" && a.NKeyFile != "" {
		return api.Refuse("members.nats.nkey_file", fmt.Sprintf("%q", a.NKeyFile),
			"set members.nats.nkey_file or members.nats.token, not both")
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	switch {
	case a.Token == "" && a.NKeyFile == "":
		return api.Refuse("members.nats.url", fmt.Sprintf("%q", a.URL),
			"a loopback address, or set members.nats.nkey_file or members.nats.token")
	case a.Token != "" && u.Scheme != "tls":
		return api.Refuse("members.nats.url", fmt.Sprintf("%q", a.URL),
			"tls:// with a token; an NKey (members.nats.nkey_file) needs no TLS")
	}
	return nil
}

// bus is a connection, with the streams and buckets of the fleet.
type bus struct {
	log     *slog.Logger
	conn    *nats.Conn
	js      jetstream.JetStream
	subject string             // prefix of the fleet's subjects
	leases  jetstream.KeyValue // MEMBER, coordinator; a key expires after leaseSpan
	orders  jetstream.KeyValue // order.LANE, share.LANE.MEMBER, refusal.MEMBER, epoch
	texts   jetstream.ObjectStore
	reports jetstream.Stream
	turns   jetstream.Stream

	mu        sync.Mutex
	connected context.Context // ends at the next reconnect, by end
	end       context.CancelFunc
}

// signalReconnect ends the contexts of [bus.untilReconnect].
func (b *bus) signalReconnect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end()
	b.connected, b.end = context.WithCancel(context.Background())
}

// untilReconnect returns a context that also ends at the next reconnect. Consumers and watchers are
// created anew then, since the server may have lost them, which would be detected late. Earlier
// requests to the server are never answered.
func (b *bus) untilReconnect(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	stop := context.AfterFunc(b.connected, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// withTimeout limits a request to the server. A request that is under way when the connection is
// lost ends after the reconnect, so that it can be repeated at once.
func (b *bus) withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, end := b.untilReconnect(ctx)
	ctx, cancel := context.WithTimeout(ctx, d)
	return ctx, func() {
		cancel()
		end()
	}
}

// repeat calls once until ctx ends: again at once after a reconnect, which ends connected, and after
// a pause when it fails.
func (b *bus) repeat(ctx context.Context, failure string, once func(connected context.Context) error) {
	for ctx.Err() == nil {
		connected, end := b.untilReconnect(ctx)
		err := once(connected)
		end()
		if err != nil && ctx.Err() == nil {
			b.log.Debug(failure, "problem", err)
			pause(ctx, 50*time.Millisecond)
		}
	}
}

const (
	reportsKept     = 10 * time.Minute // time for which a coordinator that takes over finds reports
	duplicateWindow = 5 * time.Minute  // a turn that is published again within it is stored once
	turnsMaxBytes   = 1 << 30          // reserved by the server
	requestTimeout  = 5 * time.Second  // for an answer of the server
)

// credential returns the option of the token or the NKey, if there is one.
func (a Access) credential() ([]nats.Option, error) {
	if a.Token != "" {
		return []nats.Option{nats.Token(a.Token)}, nil
	}
	if a.NKeyFile == "" {
		return nil, nil
	}
	key, err := nats.NkeyOptionFromSeed(a.NKeyFile)
	if err != nil {
		return nil, api.Refuse("members.nats.nkey_file", fmt.Sprintf("%q", a.NKeyFile),
			"a file with the seed of an NKey for users (SU...), readable: "+err.Error())
	}
	return []nats.Option{key}, nil
}

// CheckKey checks the NKey's file. The error is an [api.FieldError].
func (a Access) CheckKey() error {
	_, err := a.credential()
	return err
}

// dial connects, and creates the fleet's streams and buckets. It retries until ctx ends while the
// server cannot be reached. A credential that is rejected is an error at once.
func dial(ctx context.Context, a Access, name string, log *slog.Logger) (*bus, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	b := &bus{log: log, subject: "kvbooth." + a.Fleet}
	b.connected, b.end = context.WithCancel(context.Background())
	options, err := a.credential()
	if err != nil {
		return nil, err
	}
	options = append(options, b.options(name)...)
	if strings.HasPrefix(a.URL, "tls://") {
		conf, err := chat.Access{CA: a.CA}.TLS()
		if err != nil {
			return nil, fmt.Errorf("members.nats: %w", err)
		}
		options = append(options, nats.Secure(conf))
	}
	for logged := false; ; {
		if b.conn, err = nats.Connect(a.URL, options...); err == nil {
			break
		}
		if errors.Is(err, nats.ErrAuthorization) || strings.Contains(err.Error(), "x509") || ctx.Err() != nil {
			return nil, fmt.Errorf("the NATS server at %s rejects the connection: %w; "+
				"check members.nats.token or members.nats.nkey_file", a.URL, err)
		}
		if !logged {
			log.Warn("the NATS server does not answer yet", "url", a.URL, "problem", err)
			logged = true
		}
		if !pause(ctx, 200*time.Millisecond) {
			return nil, fmt.Errorf("the NATS server at %s does not answer: %w", a.URL, err)
		}
	}
	if err := b.open(ctx, a.Fleet); err != nil {
		b.conn.Close()
		return nil, fmt.Errorf("the NATS server at %s: %w", a.URL, err)
	}
	return b, nil
}

// options returns the options of the connection. It reconnects for ever, and does not buffer
// messages meanwhile: their senders repeat them.
func (b *bus) options(name string) []nats.Option {
	var rejected atomic.Bool // since the connection was lost
	return []nats.Option{
		nats.Name(name),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		nats.Timeout(2 * time.Second),
		nats.PingInterval(2 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.IgnoreAuthErrorAbort(), // the server may accept the credential again after a change of its configuration
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			if errors.Is(err, nats.ErrAuthorization) && !rejected.Swap(true) {
				b.log.Error("the NATS server rejects the credential; retrying", "problem", err)
			}
		}),
		nats.ReconnectBufSize(-1), // senders repeat their messages
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				b.log.Warn("lost the connection to the NATS server", "problem", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			b.log.Info("the connection to the NATS server is back")
			rejected.Store(false)
			b.signalReconnect()
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { b.log.Debug("NATS", "problem", err) }),
	}
}

// open creates streams and buckets that do not exist yet.
func (b *bus) open(ctx context.Context, fleet string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout)
	defer cancel()
	if b.js, err = jetstream.New(b.conn, jetstream.WithDefaultTimeout(requestTimeout)); err != nil {
		return err
	}
	const storage = jetstream.FileStorage
	prefix := "kvbooth_" + fleet
	var errs [5]error
	b.leases, errs[0] = b.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: prefix + "_leases", Storage: storage, TTL: leaseSpan,
	})
	b.orders, errs[1] = b.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: prefix + "_orders", Storage: storage,
	})
	b.texts, errs[2] = b.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{
		Bucket: prefix + "_texts", Storage: storage,
	})
	b.reports, errs[3] = b.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: prefix + "_reports", Subjects: []string{b.subject + ".report.>"}, Storage: storage, MaxAge: reportsKept,
	})
	b.turns, errs[4] = b.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: prefix + "_turns", Subjects: []string{b.subject + ".turn.>"}, Storage: storage,
		Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew, MaxBytes: turnsMaxBytes,
		Duplicates: duplicateWindow,
	})
	err = cmp.Or(errs[:]...)
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, nats.ErrNoResponders) {
		return errors.New("it has no JetStream; start it with --jetstream (-js)")
	}
	return err
}

func (b *bus) close() { b.conn.Close() }

// put writes a value as JSON.
func put(ctx context.Context, kv jetstream.KeyValue, key string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = kv.Put(ctx, key, data)
	return err
}

// forEach calls take with each current value of the keys. It returns an error if one cannot be
// read, or ctx ends.
func (b *bus) forEach(
	ctx context.Context, kv jetstream.KeyValue, keys string, take func(key string, value []byte),
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := b.watch(ctx, kv, func(key string, value []byte) {
		if value != nil {
			take(key, value)
		}
	}, func(<-chan struct{}) { cancel(errAllSent) }, keys)
	if errors.Is(context.Cause(ctx), errAllSent) {
		return nil
	}
	return cmp.Or(err, context.Cause(ctx), nats.ErrDisconnected)
}

// errAllSent is the cause of a context that has ended because all current values have been sent.
var errAllSent = errors.New("all current values have been sent")

// follow calls take with each value of the keys, the current ones first, until ctx ends. A deleted
// value is nil. After a reconnect all values are sent again. Each time when all current values have
// been sent, it calls ready with a channel that is closed when they are about to be sent again, or
// ctx has ended. A nil ready is not called.
func (b *bus) follow(
	ctx context.Context,
	kv jetstream.KeyValue,
	take func(key string, value []byte),
	ready func(until <-chan struct{}),
	keys ...string,
) {
	b.repeat(ctx, "values are not received at the moment", func(connected context.Context) error {
		return b.watch(connected, kv, take, ready, keys...)
	})
}

// watch calls take with each value of the keys until ctx ends, which is no error.
func (b *bus) watch(
	ctx context.Context,
	kv jetstream.KeyValue,
	take func(key string, value []byte),
	ready func(until <-chan struct{}),
	keys ...string,
) error {
	w, err := kv.WatchFiltered(ctx, slices.Clone(keys)) // which changes them
	if err != nil {
		return err
	}
	defer func() { _ = w.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return jetstream.ErrConsumerDeleted
			case e == nil: // all current values have been sent
				if ready != nil {
					ready(ctx.Done())
				}
			case e.Operation() == jetstream.KeyValuePut:
				take(e.Key(), e.Value())
			default:
				take(e.Key(), nil)
			}
		}
	}
}

// pause waits for d. It returns false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// retry calls once every 100 ms until it returns nil. It returns the last error after d, or when ctx
// has ended; 0: there is no limit.
func retry(ctx context.Context, d time.Duration, once func() error) error {
	for began := time.Now(); ; {
		err := once()
		if err == nil || d > 0 && time.Since(began) > d || !pause(ctx, 100*time.Millisecond) {
			return err
		}
	}
}

// signal wakes the receiver of the channel, which is buffered for one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

// send does not block.
func (s signal) send() {
	select {
	case s <- struct{}{}:
	default:
	}
}
