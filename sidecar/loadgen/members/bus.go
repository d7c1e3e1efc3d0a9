package members

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"kvbooth/sidecar/api"
)

// Access is the way to a NATS server with JetStream.
type Access struct {
	URL   string // nats:// or tls://, with a host and a port
	Token string // empty: none
	// NKeyFile holds the seed of an NKey: the server is shown a signature, never the seed.
	NKeyFile string
	CA       []byte // PEM; empty: the system's
	// Fleet tells apart several load generators with members of their own on one server.
	Fleet string
}

// Check says whether the access is one. Beyond loopback it must have a credential, and a token
// goes through TLS only, since whoever reads it has it. The error is an [api.FieldError].
func (a Access) Check() error {
	u, err := url.Parse(a.URL)
	if err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Hostname() == "" || u.User != nil || u.Path != "" ||
		u.RawQuery != "" {
		return &api.FieldError{
			Field:   "members.nats.url",
			Value:   fmt.Sprintf("%q", a.URL),
			Allowed: "nats:// or tls:// with a host and a port, such as nats://127.0.0.1:4222",
		}
	}
	if a.Token != "" && a.NKeyFile != "" {
		return &api.FieldError{
			Field:   "members.nats.nkey_file",
			Value:   fmt.Sprintf("%q", a.NKeyFile),
			Allowed: "set members.nats.nkey_file or members.nats.token, not both",
		}
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	switch {
	case a.Token == "" && a.NKeyFile == "":
		return &api.FieldError{
			Field:   "members.nats.url",
			Value:   fmt.Sprintf("%q", a.URL),
			Allowed: "a loopback address, or set members.nats.nkey_file or members.nats.token",
		}
	case a.Token != "" && u.Scheme != "tls":
		return &api.FieldError{
			Field:   "members.nats.url",
			Value:   fmt.Sprintf("%q", a.URL),
			Allowed: "tls:// with a token; an NKey (members.nats.nkey_file) needs no TLS",
		}
	}
	return nil
}

// bus is a connection with what the fleet has on the server.
type bus struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	subject string             // begins the fleet's subjects
	leases  jetstream.KeyValue // member → presence
	orders  jetstream.KeyValue // order.LANE, share.LANE.MEMBER, coordinator
	texts   jetstream.ObjectStore
	reports jetstream.Stream
	turns   jetstream.Stream

	mu   sync.Mutex
	back chan struct{} // closed when the connection was lost and is there again
}

// again is closed when the connection was lost and is there again: whoever follows something
// begins anew then, since the server may have forgotten him, and he would notice late.
func (b *bus) again() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.back
}

func (b *bus) isBack() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.back)
	b.back = make(chan struct{})
}

// connected gives a context that ends when the connection was lost and is there again, too: what was
// asked of the server before that is never answered.
func (b *bus) connected(ctx context.Context) (context.Context, context.CancelFunc) {
	again := b.again()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-again:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// within limits what the server is asked. What is under way when the server goes ends when the
// connection is back, so that it is asked again at once.
func (b *bus) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, end := b.connected(ctx)
	ctx, cancel := context.WithTimeout(ctx, d)
	return ctx, func() {
		cancel()
		end()
	}
}

const (
	reportsKept = 10 * time.Minute // so much of a run is there for a coordinator that takes over
	turnsTwice  = 5 * time.Minute  // a turn that is handed over again in this time is not kept again
	turnsMost   = 1 << 30          // bytes, which the server sets aside
	askFor      = 5 * time.Second  // an answer of the server
)

// key reads the NKey; nil without one.
func (a Access) key() (nats.Option, error) {
	if a.NKeyFile == "" {
		return nil, nil
	}
	key, err := nats.NkeyOptionFromSeed(a.NKeyFile)
	if err != nil {
		return nil, &api.FieldError{
			Field:   "members.nats.nkey_file",
			Value:   fmt.Sprintf("%q", a.NKeyFile),
			Allowed: "a file with the seed of an NKey for users (SU...), readable: " + err.Error(),
		}
	}
	return key, nil
}

// CheckKey reads the NKey's file. The error is an [api.FieldError].
func (a Access) CheckKey() error {
	_, err := a.key()
	return err
}

// dial connects, and makes what the fleet needs. It waits for a server that cannot be reached
// until ctx ends; a credential that is refused ends it at once.
func dial(ctx context.Context, a Access, who string, log *slog.Logger) (*bus, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	b := &bus{subject: "kvbooth." + a.Fleet, back: make(chan struct{})}
	options := b.options(who, log)
	if a.Token != "" {
		options = append(options, nats.Token(a.Token))
	}
	key, err := a.key()
	if err != nil {
		return nil, err
	}
	if key != nil {
		options = append(options, key)
	}
	if strings.HasPrefix(a.URL, "tls://") {
		conf := &tls.Config{MinVersion: tls.VersionTLS12}
		if len(a.CA) > 0 {
			conf.RootCAs = x509.NewCertPool()
			if !conf.RootCAs.AppendCertsFromPEM(a.CA) {
				return nil, &api.FieldError{Field: "members.nats.ca_file", Value: "its content", Allowed: "PEM certificates"}
			}
		}
		options = append(options, nats.Secure(conf))
	}
	for said := false; ; {
		var err error
		if b.conn, err = nats.Connect(a.URL, options...); err == nil {
			break
		}
		if errors.Is(err, nats.ErrAuthorization) || strings.Contains(err.Error(), "x509") || ctx.Err() != nil {
			return nil, fmt.Errorf(
				"the NATS server at %s rejects the connection: %w; %s",
				a.URL,
				err,
				"check members.nats.token or members.nats.nkey_file",
			)
		}
		if !said {
			log.Warn("the NATS server does not answer yet", "url", a.URL, "problem", err)
			said = true
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

// options are how the connection is kept: for ever, and whatever was said while it was lost is not
// said by it.
func (b *bus) options(who string, log *slog.Logger) []nats.Option {
	var rejected atomic.Bool // since the connection was lost
	return []nats.Option{
		nats.Name(
			who,
		),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		nats.Timeout(2 * time.Second),
		nats.PingInterval(2 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.IgnoreAuthErrorAbort(), // a server that was configured anew may take the credential again
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			if errors.Is(err, nats.ErrAuthorization) && !rejected.Swap(true) {
				log.Error("the NATS server rejects the credential; retrying", "problem", err)
			}
		}),
		nats.ReconnectBufSize(-1), // what is said while there is no server is said again by whoever said it
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("lost the connection to the NATS server", "problem", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			log.Info("the connection to the NATS server is back")
			rejected.Store(false)
			b.isBack()
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Debug("NATS", "problem", err) }),
	}
}

// open makes streams and buckets where they are not there yet.
func (b *bus) open(ctx context.Context, fleet string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*askFor)
	defer cancel()
	var err error
	if b.js, err = jetstream.New(b.conn, jetstream.WithDefaultTimeout(askFor)); err != nil {
		return err
	}
	if b.leases, err = b.js.CreateOrUpdateKeyValue(
		ctx,
		jetstream.KeyValueConfig{Bucket: "kvbooth_" + fleet + "_leases", TTL: leaseSpan, Storage: jetstream.FileStorage},
	); err != nil {
		return b.explain(err)
	}
	if b.orders, err = b.js.CreateOrUpdateKeyValue(
		ctx,
		jetstream.KeyValueConfig{Bucket: "kvbooth_" + fleet + "_orders", Storage: jetstream.FileStorage},
	); err != nil {
		return b.explain(err)
	}
	if b.texts, err = b.js.CreateOrUpdateObjectStore(
		ctx,
		jetstream.ObjectStoreConfig{Bucket: "kvbooth_" + fleet + "_texts", Storage: jetstream.FileStorage},
	); err != nil {
		return b.explain(err)
	}
	if b.reports, err = b.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name:     "kvbooth_" + fleet + "_reports",
		Subjects: []string{b.subject + ".report.>"},
		MaxAge:   reportsKept,
		Storage:  jetstream.FileStorage,
	}); err != nil {
		return b.explain(err)
	}
	b.turns, err = b.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: "kvbooth_" + fleet + "_turns", Subjects: []string{b.subject + ".turn.>"}, Retention: jetstream.WorkQueuePolicy,
		Discard: jetstream.DiscardNew, MaxBytes: turnsMost, Duplicates: turnsTwice, Storage: jetstream.FileStorage,
	})
	return b.explain(err)
}

// explain says what to do where the server has no JetStream.
func (b *bus) explain(err error) error {
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

// each calls take with each value of the keys that is there now. Where one cannot be read, or ctx
// ends, it gives an error.
func (b *bus) each(ctx context.Context, kv jetstream.KeyValue, keys string, take func(key string, value []byte)) error {
	list, err := kv.ListKeysFiltered(ctx, keys)
	if err != nil {
		return err
	}
	for key := range list.Keys() {
		e, err := kv.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		take(key, e.Value())
	}
	return ctx.Err() // with which the list ends, too
}

// follow calls heard with each value of the keys, those that are there first, until ctx ends;
// a value that was deleted comes as nil. After the server was lost all come again. Each time
// when all that were there have come, it calls ready, with what is closed when that is no longer so.
func (b *bus) follow(
	ctx context.Context,
	kv jetstream.KeyValue,
	keys string,
	heard func(key string, value []byte),
	ready func(until <-chan struct{}),
) {
	for ctx.Err() == nil {
		if b.followOnce(ctx, kv, keys, heard, ready) != nil {
			pause(ctx, 100*time.Millisecond)
		}
	}
}

// followOnce is follow until the connection was lost and is there again.
func (b *bus) followOnce(
	ctx context.Context,
	kv jetstream.KeyValue,
	keys string,
	heard func(key string, value []byte),
	ready func(until <-chan struct{}),
) error {
	ctx, cancel := b.connected(ctx)
	defer cancel()
	w, err := kv.Watch(ctx, keys)
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
			case e == nil: // all that was there has come
				ready(ctx.Done())
			case e.Operation() == jetstream.KeyValuePut:
				heard(e.Key(), e.Value())
			default:
				heard(e.Key(), nil)
			}
		}
	}
}

// unheeded is for those to whom it does not matter that all has come.
func unheeded(<-chan struct{}) {}

// pause says whether ctx went on for so long.
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

// hostname is that of this machine, for names.
func hostname() string {
	host, err := os.Hostname()
	if err != nil {
		return "host"
	}
	return host
}
