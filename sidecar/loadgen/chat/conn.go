package chat

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"
)

// conn is one connection to the server, used by one stream at a time.
type conn struct {
	net.Conn
	socket net.Conn        // what lies below TLS, or Conn itself
	raw    syscall.RawConn // of the socket; nil where the platform has none
	reused bool
	parked time.Time
}

// direct says whether the stream's bytes can be read from the socket itself.
func (c *conn) direct() bool { return c.raw != nil && c.socket == c.Conn }

// Close closes the socket. TLS would say farewell first, and wait for seconds
// on a server that reads nothing.
func (c *conn) Close() error { return c.socket.Close() }

// pool keeps connections between requests: the youngest is used first, and one
// that was idle too long is closed rather than trusted.
type pool struct {
	addr    string
	tls     *tls.Config // nil: plain
	connect time.Duration
	idleFor time.Duration
	plain   *http.Client // for calls that are not measured

	mu     sync.Mutex
	idle   []*conn // oldest first
	reaper *time.Timer
	closed bool
}

func newPool(base *url.URL, conf *tls.Config, connect, idle time.Duration) *pool {
	port := base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[base.Scheme]
	}
	transport := &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true, DialContext: dialer.DialContext}
	return &pool{
		addr: net.JoinHostPort(base.Hostname(), port), tls: conf, connect: connect, idleFor: idle,
		plain: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
	}
}

// get gives a kept connection that is still open, or a new one.
func (p *pool) get(ctx context.Context) (*conn, error) {
	for {
		c := p.pop()
		if c == nil {
			return p.dial(ctx)
		}
		if time.Since(c.parked) < p.idleFor && c.alive() {
			c.reused = true
			return c, nil
		}
		c.Close()
	}
}

func (p *pool) pop() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	c := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return c
}

func (p *pool) dial(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.connect)
	defer cancel()
	nc, err := dialer.DialContext(ctx, "tcp", p.addr)
	if err != nil {
		return nil, err
	}
	if p.tls != nil {
		secure := tls.Client(nc, p.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			nc.Close()
			return nil, err
		}
		return &conn{Conn: secure, socket: nc, raw: rawConn(nc)}, nil
	}
	return &conn{Conn: nc, socket: nc, raw: rawConn(nc)}, nil
}

// put keeps a connection for the next request.
func (p *pool) put(c *conn) {
	if c.SetDeadline(time.Time{}) != nil {
		c.Close()
		return
	}
	c.parked = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return
	}
	p.idle = append(p.idle, c)
	if p.reaper == nil {
		p.reaper = time.AfterFunc(p.idleFor, p.reap)
	}
}

// reap closes what was idle too long and comes back as long as something is idle.
func (p *pool) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.idle) && time.Since(p.idle[n].parked) >= p.idleFor {
		p.idle[n].Close()
		n++
	}
	p.idle = slices.Delete(p.idle, 0, n)
	if len(p.idle) == 0 || p.closed {
		p.reaper = nil
		return
	}
	p.reaper.Reset(p.idleFor)
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		c.Close()
	}
	p.idle = nil
	if p.reaper != nil {
		p.reaper.Stop()
	}
}
