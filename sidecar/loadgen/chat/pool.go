package chat

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"
	"time"
)

// pool sends requests over kept connections. It writes a request and reads the response on the goroutine of the stream.
// [http.Transport] has two further goroutines for each connection. With it, the error of TTFT p95 was 0.84 ms in place
// of 0.41 at 180 streams, beyond the bound of the load generator's own error, and memory 4 MB higher (one run of the
// bench each).
type pool struct {
	dial    dialer
	address string
	tls     *tls.Config // nil: plain
	idleFor time.Duration

	mu     sync.Mutex
	idle   []*link // oldest first
	reaper *time.Timer
	closed bool
}

// link is a connection of a pool. One request at a time uses it.
type link struct {
	net.Conn
	socket net.Conn          // the connection below TLS, or Conn itself
	head   *io.LimitedReader // the source of in; limited while a head is read
	in     *bufio.Reader
	reused bool
	parked time.Time
}

func newPool(base *url.URL, dial dialer, conf *tls.Config, idle time.Duration) *pool {
	port := base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[base.Scheme]
	}
	if conf != nil {
		conf = conf.Clone()
		conf.ServerName, conf.NextProtos = base.Hostname(), []string{"http/1.1"}
	}
	return &pool{dial: dial, address: net.JoinHostPort(base.Hostname(), port), tls: conf, idleFor: idle}
}

// RoundTrip sends the request over the most recently used connection, or over a new one. It keeps the connection after
// the body of the response was read to its end.
func (p *pool) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, trace := req.Context(), httptrace.ContextClientTrace(req.Context())
	l, err := p.get(ctx)
	if err != nil {
		return nil, err
	}
	trace.GotConn(httptrace.GotConnInfo{Conn: l.Conn, Reused: l.reused})
	stop := context.AfterFunc(ctx, func() { l.socket.Close() })
	res, err := l.exchange(req)
	if err != nil {
		stop()
		l.socket.Close()
		return nil, err
	}
	b := &body{ReadCloser: res.Body}
	b.end = sync.OnceFunc(func() {
		if !stop() || !b.whole || res.Close || l.in.Buffered() > 0 || !p.put(l) {
			l.socket.Close() // closing TLS would block on a server that reads nothing
			return
		}
		trace.PutIdleConn(nil)
	})
	res.Body = b
	return res, nil
}

// body is a response's body that returns its connection to the pool.
type body struct {
	io.ReadCloser
	whole bool
	end   func()
}

func (b *body) Read(p []byte) (n int, err error) {
	if n, err = b.ReadCloser.Read(p); err == io.EOF {
		b.whole = true
		b.end()
	}
	return n, err
}

// Close closes the body without reading its rest.
func (b *body) Close() error {
	b.end()
	return nil
}

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 32<<10) }}

// exchange writes the request and reads the head of the response.
func (l *link) exchange(req *http.Request) (*http.Response, error) {
	w := writers.Get().(*bufio.Writer)
	defer func() {
		w.Reset(nil)
		writers.Put(w)
	}()
	w.Reset(l)
	if err := errors.Join(req.Write(w), w.Flush()); err != nil {
		return nil, err
	}
	l.head.N = maxHead
	defer func() { l.head.N = math.MaxInt64 }()
	for {
		res, err := http.ReadResponse(l.in, req)
		if l.head.N <= 0 {
			return nil, errors.New("its headers are longer than 64 KiB")
		}
		if err != nil || res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols {
			return res, err
		}
	}
}

// get returns a kept connection that is still open, or a new one.
func (p *pool) get(ctx context.Context) (*link, error) {
	for {
		l := p.pop()
		if l == nil {
			return p.open(ctx)
		}
		if time.Since(l.parked) < p.idleFor && silent(l.socket) {
			l.reused = true
			return l, nil
		}
		l.socket.Close()
	}
}

func (p *pool) pop() *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	last := len(p.idle) - 1
	l := p.idle[last]
	p.idle[last] = nil // so that a connection that is not kept does not stay in memory with its stream's answer
	p.idle = p.idle[:last]
	return l
}

func (p *pool) open(ctx context.Context) (*link, error) {
	socket, err := p.dial(ctx, "tcp", p.address)
	if err != nil {
		return nil, err
	}
	l := &link{Conn: socket, socket: socket}
	if p.tls != nil {
		secure := tls.Client(socket, p.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			socket.Close()
			return nil, err
		}
		l.Conn = secure
	}
	l.head = &io.LimitedReader{R: l.Conn}
	l.in = bufio.NewReaderSize(l.head, bufferSize)
	return l, nil
}

// put keeps a connection for a later request. It reports false after CloseIdleConnections.
func (p *pool) put(l *link) bool {
	l.parked = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.idle = append(p.idle, l)
	if p.reaper == nil {
		p.reaper = time.AfterFunc(p.idleFor, p.reap)
	}
	return true
}

// reap closes connections that were idle too long. It runs again while connections are idle.
func (p *pool) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.idle) && time.Since(p.idle[n].parked) >= p.idleFor {
		p.idle[n].socket.Close()
		n++
	}
	p.idle = slices.Delete(p.idle, 0, n)
	if p.reaper = nil; len(p.idle) > 0 {
		p.reaper = time.AfterFunc(p.idleFor, p.reap)
	}
}

// CloseIdleConnections closes the idle connections. Later connections are not kept.
func (p *pool) CloseIdleConnections() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, l := range p.idle {
		l.socket.Close()
	}
	p.idle = nil
	if p.reaper != nil {
		p.reaper.Stop()
	}
}
