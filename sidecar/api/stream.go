package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// streamSilence is the time without a snapshot after which a stream counts as lost. A snapshot is due every second,
	// and no screen may show an old value as live 5 s after the sidecar is lost.
	streamSilence    = 4 * time.Second
	handshakeTimeout = 5 * time.Second
	maxSnapshot      = 8 << 20
)

// Stream opens a stream and yields its snapshots: one at once, one a second, and one on every change of state. It ends
// with an error: that of the context, that of opening the stream, or an [ErrUnavailable] after 4 s without a snapshot.
// It does not open the stream again. A slow loop body skips snapshots.
func (c *Client) Stream(ctx context.Context) iter.Seq2[Snapshot, error] {
	return func(yield func(Snapshot, error) bool) {
		for text, err := range c.StreamText(ctx) {
			var s Snapshot
			if err == nil {
				err = lost(json.Unmarshal(text, &s))
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// StreamText yields the same snapshots as [Client.Stream], encoded in JSON.
func (c *Client) StreamText(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		conn, err := c.dial(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // a read ignores the context
		for {
			text, err := next(conn, c.silence)
			if err != nil && ctx.Err() != nil {
				err = ctx.Err()
			}
			if !yield(text, err) || err != nil {
				return
			}
		}
	}
}

func next(conn *websocket.Conn, silence time.Duration) (text []byte, err error) {
	if err = conn.SetReadDeadline(time.Now().Add(silence)); err == nil {
		_, text, err = conn.ReadMessage()
	}
	return text, lost(err)
}

func lost(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: the snapshot stream was interrupted: %w", ErrUnavailable, err)
}

func (c *Client) dial(ctx context.Context) (*websocket.Conn, error) {
	u := c.at(nil, "stream")
	u.Scheme = map[string]string{"http": "ws", "https": "wss"}[u.Scheme]
	conn, res, err := c.dialer().DialContext(ctx, u.String(), c.header())
	if res != nil {
		defer res.Body.Close()
	}
	switch {
	case err == nil:
		conn.SetReadLimit(maxSnapshot)
		return conn, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, websocket.ErrBadHandshake) && res != nil:
		return nil, refusal(res)
	}
	return nil, err
}

// dialer returns c.Dialer, or a dialer with the settings of the http.Client's transport.
func (c *Client) dialer() *websocket.Dialer {
	if c.Dialer != nil {
		return c.Dialer
	}
	d := &websocket.Dialer{HandshakeTimeout: handshakeTimeout, Jar: c.http.Jar}
	transport := c.http.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	if t, ok := transport.(*http.Transport); ok {
		t = t.Clone() // the first request over a transport changes its TLS settings
		d.Proxy, d.NetDialContext, d.NetDialTLSContext = t.Proxy, t.DialContext, t.DialTLSContext
		if t.TLSClientConfig != nil {
			d.TLSClientConfig = t.TLSClientConfig
			d.TLSClientConfig.NextProtos = []string{"http/1.1"} // a WebSocket cannot begin on HTTP/2
		}
	}
	return d
}
