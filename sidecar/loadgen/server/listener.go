package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
)

// bounded accepts every connection and keeps a bounded number of them. With one too many, it closes another one, chosen
// by [bounded.excess], so that no number of connections blocks a caller.
type bounded struct {
	net.Listener
	limit int

	mu   sync.Mutex
	open []*conn // the one whose state changed longest ago first
}

// conn is a connection that counts until it is closed.
type conn struct {
	net.Conn
	of      netip.Prefix
	in      *bounded
	trusted bool // its caller has sent the token
	state   http.ConnState
}

// Accept accepts every connection.
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

// add counts a connection and returns the one to close, nil if there is room.
func (b *bounded) add(c *conn) *conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = append(b.open, c)
	if len(b.open) <= b.limit {
		return nil
	}
	return b.excess()
}

// excess returns the connection to close: of the address with the most connections, the one whose state is oldest.
// Connections of authenticated callers stay open while other connections are more than an eighth of all. Beyond that,
// they are closed too, idle ones first: the rest is for health, readiness and new callers. Streams have a limit of
// their own, which leaves half of the places to the rest. The lock is held.
func (b *bounded) excess() *conn {
	untrusted := func(c *conn) bool { return !c.trusted && c.state != http.StateHijacked }
	places := 0
	for _, c := range b.open {
		if untrusted(c) {
			places++
		}
	}
	if places > max(1, b.limit/8) {
		return b.longestUnchanged(untrusted)
	}
	return cmp.Or(
		b.longestUnchanged(func(c *conn) bool { return c.trusted && c.state == http.StateIdle }),
		b.longestUnchanged(func(c *conn) bool { return c.trusted && c.state != http.StateHijacked }),
		b.longestUnchanged(untrusted))
}

// longestUnchanged returns the connection to close among the candidates: of the network with the most candidates, the
// one whose state changed longest ago. It returns nil if there is no candidate. The lock is held.
func (b *bounded) longestUnchanged(candidate func(*conn) bool) *conn {
	of, most := map[netip.Prefix]int{}, 0
	for _, c := range b.open {
		if candidate(c) {
			of[c.of]++
			most = max(most, of[c.of])
		}
	}
	for _, c := range b.open {
		if candidate(c) && of[c.of] == most {
			return c
		}
	}
	return nil
}

// Close releases the connection's place. It is idempotent.
func (c *conn) Close() error {
	c.in.mu.Lock()
	c.in.remove(c)
	c.in.mu.Unlock()
	return c.Conn.Close()
}

// remove reports whether the connection had a place. The lock is held.
func (b *bounded) remove(c *conn) bool {
	i := slices.Index(b.open, c)
	if i >= 0 {
		b.open = slices.Delete(b.open, i, i+1)
	}
	return i >= 0
}

// noteState records a connection's state. It is an [http.Server]'s ConnState.
func noteState(of net.Conn, state http.ConnState) {
	c, ok := below(of).(*conn)
	if !ok {
		return
	}
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	if c.state = state; c.in.remove(c) { // a connection that was closed stays so
		c.in.open = append(c.in.open, c)
	}
}

// below returns the accepted connection, without TLS.
func below(c net.Conn) net.Conn {
	if secured, ok := c.(*tls.Conn); ok {
		return secured.NetConn()
	}
	return c
}

type connKey struct{}

// withConn makes the connection available to its calls.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, below(c))
}

// trust marks the connection of a caller that has sent the token.
func trust(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		c.in.mu.Lock()
		defer c.in.mu.Unlock()
		c.trusted = true
	}
}
