package chat

import (
	"context"
	"crypto/tls"
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

// dialer opens the socket of a connection.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// dial opens a connection that stamps its reads.
func (o Options) dial(ctx context.Context, network, address string) (net.Conn, error) {
	open := o.Dial
	if open == nil {
		open = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	nc, err := open(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: nc}, nil
}

// transport carries requests over connections that stamp their reads. As many are kept as there were streams: each is
// back in use within moments. It writes and reads each connection on two goroutines of its own, which at 180 streams cost
// 3 MB.
func transport(o Options, conf *tls.Config) *http.Transport {
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment, // never for a loopback address
		OnProxyConnectResponse: proxyAnswered,
		DialContext:            o.dial,
		TLSClientConfig:        conf, IdleConnTimeout: o.IdleTimeout,
		DisableCompression: true, MaxIdleConnsPerHost: math.MaxInt, MaxResponseHeaderBytes: maxHead,
		ReadBufferSize: bufferSize, WriteBufferSize: bufferSize, // a thousand connections add up
		Protocols: new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	return t
}

// transports returns what keeps its connections for the next streams, and what makes a connection for each request.
func transports(o Options, base *url.URL) (kept, fresh *http.Transport, err error) {
	conf, err := tlsConfig(base, o.Access)
	if err != nil {
		return nil, nil, err
	}
	kept, fresh = transport(o, conf), transport(o, conf)
	fresh.DisableKeepAlives = true
	return kept, fresh, nil
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
