package members

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// Access is the configuration of the connection to a NATS server.
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

// dial connects, and retries until ctx ends while the server cannot be reached. A credential that is rejected is an
// error at once.
func dial(ctx context.Context, a Access, name string, log *slog.Logger) (*nats.Conn, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	options, err := a.credential()
	if err != nil {
		return nil, err
	}
	options = append(append(options, nats.Name(name)), connectionOptions(log)...)
	if strings.HasPrefix(a.URL, "tls://") {
		conf, err := chat.Access{CA: a.CA}.TLS()
		if err != nil {
			return nil, fmt.Errorf("members.nats: %w", err)
		}
		options = append(options, nats.Secure(conf))
	}
	for logged := false; ; {
		conn, err := nats.Connect(a.URL, options...)
		switch {
		case err == nil:
			return conn, nil
		case errors.Is(err, nats.ErrAuthorization) || strings.Contains(err.Error(), "x509"):
			return nil, fmt.Errorf("the NATS server at %s rejects the connection: %w; "+
				"check members.nats.token or members.nats.nkey_file", a.URL, err)
		case !logged:
			log.Warn("the NATS server does not answer yet", "url", a.URL, "problem", err)
			logged = true
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the NATS server at %s does not answer: %w", a.URL, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// connectionOptions make a connection reconnect for ever, and buffer nothing meanwhile: senders repeat their messages.
func connectionOptions(log *slog.Logger) []nats.Option {
	var rejected atomic.Bool // since the connection was lost
	return []nats.Option{
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		nats.Timeout(2 * time.Second),
		nats.PingInterval(2 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.ReconnectBufSize(-1),
		nats.IgnoreAuthErrorAbort(), // the server may accept the credential again after a change of its configuration
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			if errors.Is(err, nats.ErrAuthorization) && !rejected.Swap(true) {
				log.Error("the NATS server rejects the credential; retrying", "problem", err)
			}
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("lost the connection to the NATS server", "problem", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			log.Info("the connection to the NATS server is back")
			rejected.Store(false)
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("NATS", "problem", err) }),
	}
}

// subscribe receives messages of a subject, however many wait.
func subscribe(c *nats.Conn, subject string, take func([]byte)) error {
	s, err := c.Subscribe(subject, func(m *nats.Msg) { take(m.Data) })
	if err != nil {
		return err
	}
	return s.SetPendingLimits(-1, -1)
}
