package chat

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"kvbooth/sidecar/api"
)

// Options say which server a [Client] talks to, and how long it waits.
type Options struct {
	URL    string // with or without /v1
	Model  string // empty: the first that /v1/models lists, taken by Probe
	APIKey string // empty: none is sent
	CA     []byte // PEM; empty: the system's

	ConnectTimeout    time.Duration // to open a connection, TLS included; 0 means 5 s
	FirstTokenTimeout time.Duration // from sending to the first content chunk; 0 means 120 s
	StallTimeout      time.Duration // between two events of the stream; 0 means 30 s
	// IdleTimeout is how long a connection is kept for the next request; it must
	// stay below the server's own keep-alive, or a request is sent into a
	// connection that the server is closing. 0 means 4 s (uvicorn closes at 5).
	IdleTimeout time.Duration
}

// Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	opts Options
	base *url.URL
	pool *pool
	ext  extensions
}

// New checks the options and makes a client; nothing is sent yet. The error is
// an [api.FieldError].
func New(opts Options) (*Client, error) {
	base, err := ParseURL(opts.URL)
	if err != nil {
		return nil, err
	}
	setDefault(&opts.ConnectTimeout, 5*time.Second)
	setDefault(&opts.FirstTokenTimeout, 120*time.Second)
	setDefault(&opts.StallTimeout, 30*time.Second)
	setDefault(&opts.IdleTimeout, 4*time.Second)
	conf, err := tlsConfig(base, opts.CA)
	if err != nil {
		return nil, err
	}
	c := &Client{opts: opts, base: base}
	c.ext.setModel(opts.Model)
	c.pool = newPool(base, conf, opts.ConnectTimeout, opts.IdleTimeout)
	return c, nil
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// ParseURL checks a target's URL and gives it the path of the API, which ends
// in /v1 whether or not s did. The error is an [api.FieldError].
func ParseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || !isPort(u.Port()) {
		return nil, &api.FieldError{
			Field: "target.url", Value: quote(s),
			Allowed: "http:// or https:// with a host and an optional port and path, such as http://127.0.0.1:8000",
		}
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	if !strings.HasSuffix(u.Path, "/v1") {
		u.Path += "/v1"
	}
	return u, nil
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return s == "" || err == nil && n > 0
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

func tlsConfig(base *url.URL, ca []byte) (*tls.Config, error) {
	if base.Scheme != "https" {
		return nil, nil
	}
	conf := &tls.Config{ServerName: base.Hostname(), NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(ca) {
			return nil, &api.FieldError{Field: "target.ca_file", Value: "its content", Allowed: "PEM certificates"}
		}
	}
	return conf, nil
}

// Root is the server's address without the API's /v1: where /health and
// /metrics are.
func (c *Client) Root() string {
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/v1")
	return u.String()
}

// Model is the model in use; empty until it is known.
func (c *Client) Model() string { return c.ext.modelName() }

// Extensions says which extensions of the request are in use. Before a probe it is empty.
func (c *Client) Extensions() map[string]bool { return c.ext.inUse() }

// Close closes the idle connections. Requests under way end by their context.
func (c *Client) Close() { c.pool.close() }

// Request is one turn as it is sent.
type Request struct {
	ID        string // becomes X-Request-Id; empty sends none
	Messages  []openai.ChatCompletionMessage
	MaxTokens int
	Instance  string      // Dynamo's instance to pin the request to, decimal; empty leaves it to the router
	Live      *Live       // filled while the answer streams; may be nil
	OnChunk   func(n int) // called with the tokens of each content chunk, 1 where it does not tell; may be nil
}

// Do sends the request and reads its answer to the end. It always returns; the
// result says how it ended.
func (c *Client) Do(ctx context.Context, req Request) Result {
	return c.send(ctx, req, c.ext.inUse())
}

func failed(e *Error) Result {
	now := time.Now()
	return Result{Sent: now, Ended: now, Err: e}
}

func (c *Client) send(ctx context.Context, req Request, used map[string]bool) Result {
	m, err := c.compose(req, used)
	if err != nil {
		return failed(&Error{Class: api.ErrorMalformed, Message: "cannot write the request: " + err.Error()})
	}
	s := newStream(req)
	cn, err := c.pool.get(ctx)
	if err == nil && c.exchange(ctx, s, cn, m) {
		// The server had closed a kept connection meanwhile; it may have closed all.
		if cn, err = c.pool.dial(ctx); err == nil {
			m, _ = c.compose(req, used) // it could be written before
			c.exchange(ctx, s, cn, m)
		}
	}
	if err != nil {
		s.fail = connectError(c.base.Host, err)
	}
	return s.result(ctx, c.Model())
}

// message is a request as HTTP/1.1 puts it on the connection. Its body goes back
// to a pool when it is written: a thousand streams wait for tokens most of the
// time, and need not hold a thousand histories twice.
type message struct {
	head []byte
	body *bytes.Buffer
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (c *Client) compose(req Request, used map[string]bool) (message, error) {
	m := message{body: bodies.Get().(*bytes.Buffer)}
	m.body.Reset()
	if err := encode(m.body, req, c.Model(), used); err != nil {
		return m, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s/chat/completions HTTP/1.1\r\nHost: %s\r\n", c.base.EscapedPath(), c.base.Host)
	b.WriteString("Content-Type: application/json\r\nAccept: text/event-stream\r\nUser-Agent: kvbooth-loadgen\r\n")
	if c.opts.APIKey != "" {
		b.WriteString("Authorization: Bearer " + headerValue(c.opts.APIKey) + "\r\n")
	}
	if req.ID != "" {
		b.WriteString("X-Request-Id: " + headerValue(req.ID) + "\r\n")
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", m.body.Len())
	m.head = b.Bytes()
	return m, nil
}

// write sends the message and gives its body back.
func (m message) write(cn *conn) error {
	_, err := (&net.Buffers{m.head, m.body.Bytes()}).WriteTo(cn.Conn)
	bodies.Put(m.body)
	return err
}

// headerValue drops what would end the header line.
func headerValue(s string) string {
	return strings.NewReplacer("\r", "", "\n", "").Replace(s)
}

// Models lists the models that the server serves.
func (c *Client) Models(ctx context.Context) ([]string, *Error) {
	status, header, body, failure := c.get(ctx, c.base.String()+"/models")
	if failure != nil {
		return nil, failure
	}
	if status != http.StatusOK {
		return nil, statusError(status, header, excerpt(body), c.Model())
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, &Error{Class: api.ErrorMalformed, Message: fmt.Sprintf("%s/models is not a list of models (%s); is target.url the address of an OpenAI-compatible API?", c.base, clip(err.Error()))}
	}
	ids := make([]string, len(list.Data))
	for i, m := range list.Data {
		ids[i] = m.ID
	}
	return ids, nil
}

// get asks for something small that is not measured, within the time limit of a connection.
func (c *Client) get(ctx context.Context, address string) (status int, header http.Header, body []byte, failure *Error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.ConnectTimeout)
	defer cancel()
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, address, nil)
	if err != nil {
		return 0, nil, nil, connectError(c.base.Host, err)
	}
	if c.opts.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+headerValue(c.opts.APIKey))
	}
	res, err := c.pool.plain.Do(req)
	if err == nil {
		defer res.Body.Close()
		if body, err = io.ReadAll(io.LimitReader(res.Body, 1<<20)); err == nil {
			return res.StatusCode, res.Header, body, nil
		}
	}
	if connected.Load() {
		return 0, nil, nil, answerError(err)
	}
	return 0, nil, nil, connectError(c.base.Host, err)
}

// dialer opens connections; its time limit is the pool's.
var dialer = net.Dialer{KeepAlive: 15 * time.Second}
