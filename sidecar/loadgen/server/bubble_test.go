package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/inmem"
)

// bubble is a server in a synctest bubble.
type bubble struct {
	*inmem.Listener
	*Server
	end func() error // ends Serve and returns its error
}

// inBubble serves a backend in memory on a fake clock while the test runs.
func inBubble(t *testing.T, b Backend, change func(*Options), test func(*testing.T, *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, l := newServer(t, b, change), inmem.Listen()
		ctx, cancel := context.WithCancel(t.Context())
		var err error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			err = s.Serve(ctx, l)
		}()
		end := func() error {
			cancel()
			<-ended
			return err
		}
		test(t, &bubble{l, s, end})
		require.NoError(t, end())
	})
}

// send sends a request from this machine, on a connection of its own.
func (b *bubble) send(t *testing.T, q request) (*http.Response, error) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: b.Dial, DisableKeepAlives: true}}
	r, err := http.NewRequest(q.method, "http://localhost"+q.path, http.NoBody)
	require.NoError(t, err)
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	return client.Do(r)
}

// stream opens a stream from this machine, which the test's end closes.
func (b *bubble) stream(t *testing.T, header map[string]string) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	d := websocket.Dialer{NetDialContext: b.Dial}
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
	c, err := b.DialFrom(t.Context(), from)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	if text != "" {
		_, _ = io.WriteString(c, text) // fails where the server has closed the connection
	}
	return c
}
