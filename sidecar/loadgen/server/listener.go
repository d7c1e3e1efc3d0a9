package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
)

// bounded accepts connections without end and keeps a bounded number of them.
// When there is one too many, it closes the oldest of the address that has most,
// so that a flood makes way for itself and for everybody else. Connections of
// callers who know the token stay.
type bounded struct {
	net.Listener
	limit int

	mu   sync.Mutex
	open []*conn // oldest first
}

// conn is a connection that counts until it is closed.
type conn struct {
	net.Conn
	of      netip.Prefix
	in      *bounded
	trusted bool // its caller knows the token
}

// Accept never refuses; what it gives may be closed already.
func (b *bounded) Accept() (net.Conn, error) {
	accepted, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, of: network(accepted.RemoteAddr().String()), in: b}
	if excess := b.add(c); excess != nil {
		_ = excess.Close()
	}
	return c, nil
}

// add counts a connection, and gives the one that is too many.
func (b *bounded) add(c *conn) (excess *conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = append(b.open, c)
	if len(b.open) <= b.limit {
		return nil
	}
	of, most := map[netip.Prefix]int{}, 0
	for _, c := range b.open {
		if !c.trusted {
			of[c.of]++
			most = max(most, of[c.of])
		}
	}
	i := slices.IndexFunc(b.open, func(c *conn) bool { return !c.trusted && of[c.of] == most })
	return b.open[i] // c itself is not trusted yet
}

// Close gives the connection's place back. It may be called again.
func (c *conn) Close() error {
	c.in.mu.Lock()
	if i := slices.Index(c.in.open, c); i >= 0 {
		c.in.open = slices.Delete(c.in.open, i, i+1)
	}
	c.in.mu.Unlock()
	return c.Conn.Close()
}

type connKey struct{}

// withConn lets the calls of a connection find it.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// trust keeps the connection of a call whose caller knows the token.
func trust(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		c.in.mu.Lock()
		defer c.in.mu.Unlock()
		c.trusted = true
	}
}
