package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// pipes is a listener in memory. Its connections come from the addresses that a test gives them, and in a synctest
// bubble their deadlines follow the fake clock.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func newPipes() *pipes { return &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return address("127.0.0.1:80") }

// dial opens a connection from an IP address.
func (p *pipes) dial(from string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.accepted <- &pipe{theirs, address(from + ":1")}:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

type pipe struct {
	net.Conn
	from address
}

func (p *pipe) RemoteAddr() net.Addr { return p.from }

type address string

func (address) Network() string { return "tcp" }

func (a address) String() string { return string(a) }

// bubble is a server in a synctest bubble.
type bubble struct {
	*pipes
	*Server
	end func() error // ends Serve and returns its error
}

// inBubble serves a backend on pipes and a fake clock while the test runs.
func inBubble(t *testing.T, b Backend, change func(*Options), test func(*testing.T, *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, p := newServer(t, b, change), newPipes()
		ctx, cancel := context.WithCancel(t.Context())
		var err error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			err = s.Serve(ctx, p)
		}()
		end := func() error {
			cancel()
			<-ended
			return err
		}
		test(t, &bubble{p, s, end})
		require.NoError(t, end())
	})
}

// send sends a request from this machine, on a connection of its own.
func (b *bubble) send(t *testing.T, q request) (*http.Response, error) {
	t.Helper()
	dial := func(context.Context, string, string) (net.Conn, error) { return b.dial("127.0.0.1") }
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	r, err := http.NewRequest(q.method, "http://localhost"+q.path, http.NoBody)
	require.NoError(t, err)
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	return client.Do(r)
}

// stream opens a stream from an IP address, which the test's end closes.
func (b *bubble) stream(t *testing.T, from string, header map[string]string) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	d := websocket.Dialer{NetDialContext: func(context.Context, string, string) (net.Conn, error) { return b.dial(from) }}
	h := http.Header{}
	for name, value := range header {
		h.Set(name, value)
	}
	conn, res, err := d.Dial("ws://localhost"+v1+"/stream", h)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, res, err
}

// connect opens a connection from an IP address and sends the text.
func (b *bubble) connect(t *testing.T, from, text string) net.Conn {
	t.Helper()
	c, err := b.dial(from)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	if text != "" {
		_, _ = io.WriteString(c, text) // fails where the server has closed the connection
	}
	return c
}
