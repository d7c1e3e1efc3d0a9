package chat

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// maxHead limits the status line and headers of a response, in bytes.
const maxHead = 64 << 10

// dialer opens the socket of a connection.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// dial opens a connection with o.Dial, or over TCP if that is nil. Once a stream is stored in the connection, each read
// is reported to it with its time; see [conn], also for the errors of writes.
func (o Options) dial(ctx context.Context, network, address string) (net.Conn, error) {
	open := o.Dial
	if open == nil {
		open = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	nc, err := open(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: nc, in: reader(nc)}, nil
}

// transport returns an HTTP client for requests that no [pool] sends: small requests, a request that is repeated, and
// those through a proxy. It keeps as many idle connections as there were streams, since each is reused within moments.
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

// carriers returns the carrier of streams, with kept connections, and a transport that opens a connection for each
// request.
func carriers(o Options, base *url.URL) (kept carrier, fresh *http.Transport, err error) {
	conf, err := tlsConfig(base, o.Access)
	if err != nil {
		return nil, nil, err
	}
	fresh = transport(o, conf)
	fresh.DisableKeepAlives = true
	proxy, unreadable := http.ProxyFromEnvironment(&http.Request{URL: base}) // a request reports an invalid proxy
	if proxy == nil && unreadable == nil {
		return newPool(base, o.dial, conf, o.IdleTimeout), fresh, nil
	}
	return transport(o, conf), fresh, nil
}

// carrier sends requests over connections that it keeps for later requests.
type carrier interface {
	http.RoundTripper
	CloseIdleConnections()
}

func proxyAnswered(_ context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
	if res.StatusCode == http.StatusOK {
		return nil
	}
	return &net.OpError{Op: "proxyconnect", Net: "tcp", Err: errors.New(res.Status)}
}

// conn is a connection that reports each read to its current stream, below TLS and before parsing.
type conn struct {
	net.Conn
	in     io.Reader // reads from Conn
	stream atomic.Pointer[stream]
}

func (c *conn) Read(p []byte) (int, error) {
	if s := c.stream.Load(); s != nil {
		s.flush()
	}
	n, err := c.in.Read(p)
	if s := c.stream.Load(); s != nil {
		s.arrived(n, err)
	}
	return n, err
}

// Write returns an error only if this side closed the connection. A server may answer and close before it has read the
// whole request; the reader then finds the answer, or its absence.
func (c *conn) Write(p []byte) (int, error) {
	if n, err := c.Conn.Write(p); errors.Is(err, net.ErrClosed) {
		return n, err
	}
	return len(p), nil
}

// stamping returns the conn below TLS, or nil.
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
