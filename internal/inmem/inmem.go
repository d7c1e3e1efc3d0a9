// Package inmem is a network in memory, for tests that run servers and clients on the fake clock of a synctest bubble.
package inmem

import (
	"context"
	"net"
	"sync"
)

// Listener is a net.Listener whose connections are pipes. Their deadlines follow the clock of a synctest bubble. It is
// safe for concurrent use.
type Listener struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

// Listen returns a listener. The test or its server must close it.
func Listen() *Listener {
	return &Listener{accepted: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept blocks until Dial opens a connection. It returns net.ErrClosed after Close.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial. It does not close connections. It never fails.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns a loopback address.
func (l *Listener) Addr() net.Addr { return address("127.0.0.1:80") }

// Dial opens a connection from 127.0.0.1, as a client's DialContext does. Network and address are ignored.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return l.DialFrom(ctx, "127.0.0.1")
}

// DialFrom opens a connection whose remote address at the server is ip. It blocks until the server accepts it, and
// returns net.ErrClosed after Close.
func (l *Listener) DialFrom(ctx context.Context, ip string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.accepted <- &conn{server, address(net.JoinHostPort(ip, "1"))}:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// conn is the server's end of a pipe.
type conn struct {
	net.Conn
	from address
}

// RemoteAddr returns the client's address.
func (c *conn) RemoteAddr() net.Addr { return c.from }

// address is a TCP host and port.
type address string

func (address) Network() string { return "tcp" }

func (a address) String() string { return string(a) }
