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
	// streamSilence is how long a stream may say nothing before it counts as
	// lost: a snapshot is due every second, and within 5 s of losing the sidecar
	// no screen may show an old number as live.
	streamSilence    = 4 * time.Second
	handshakeTimeout = 5 * time.Second
	maxSnapshot      = 8 << 20
)

// Stream opens a stream and yields its snapshots: one at once, one a second, and
// one on every change of state. It ends with an error: the context's, that of
// the opening, or an [ErrUnavailable] when the stream is lost, which it is after
// 4 s without a snapshot. It does not open the stream again. The time that a
// snapshot's user takes costs snapshots in between.
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

// StreamText is [Client.Stream] with snapshots as they come, in JSON.
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

// dialer reaches the sidecar as the http.Client does.
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
