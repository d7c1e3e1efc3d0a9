package chat

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// maxHead bounds the status line and headers of a response.
const maxHead = 64 << 10

// transport makes the connections to the server. No stream shares one, and as
// many are kept as there were streams: each is back in use within moments. Against
// reading the sockets without net/http, CPU a chunk is 1.07 times as much at 180
// streams (median of nine pairs, from 0.89 to 1.35) and 0.98 at 1,000 (0.80 to 1.19).
// In the one pair of whole load generators measured on a quiet machine, at 180, it
// read 10 % fewer chunks per CPU-second and took 45.2 MB instead of 39.8.
func transport(o Options, base *url.URL) (*http.Transport, error) {
	conf, err := tlsConfig(base, o.CA)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{KeepAlive: 15 * time.Second}
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment, // never for a loopback address
		OnProxyConnectResponse: proxyAnswered,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &conn{Conn: nc}, nil
		},
		TLSClientConfig: conf, IdleConnTimeout: o.IdleTimeout,
		DisableCompression: true, MaxIdleConnsPerHost: math.MaxInt, MaxResponseHeaderBytes: maxHead,
		ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10, // a chunk has some 400 bytes, and a thousand connections add up
		Protocols: new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	return t, nil
}

func proxyAnswered(_ context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
	if res.StatusCode == http.StatusOK {
		return nil
	}
	return &net.OpError{Op: "proxyconnect", Net: "tcp", Err: errors.New(res.Status)}
}

// conn is a connection that tells the stream it carries when bytes came: below
// TLS, and before anything of them is parsed.
type conn struct {
	net.Conn
	stream atomic.Pointer[stream]
}

func (c *conn) Read(p []byte) (int, error) {
	if s := c.stream.Load(); s != nil {
		s.flush()
	}
	n, err := c.Conn.Read(p)
	if s := c.stream.Load(); s != nil {
		s.arrived(n, err)
	}
	return n, err
}

// Write fails only where this side has closed the connection: a server may answer
// and close before it has read the whole request, and what it says, or that it
// says nothing, is for the reader to find.
func (c *conn) Write(p []byte) (int, error) {
	if n, err := c.Conn.Write(p); errors.Is(err, net.ErrClosed) {
		return n, err
	}
	return len(p), nil
}

// stamping finds the connection below TLS; nil where it is none of ours.
func stamping(nc net.Conn) *conn {
	for {
		switch c := nc.(type) {
		case *conn:
			return c
		case interface{ NetConn() net.Conn }: // *tls.Conn
			nc = c.NetConn()
		default:
			return nil
		}
	}
}
