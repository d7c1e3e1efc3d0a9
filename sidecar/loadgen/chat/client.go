package chat

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim/traffic"
)

// Options are the server and the timeouts of a [Client].
type Options struct {
	URL    string // as [api.ParseTarget] takes it
	Field  string // the setting with URL, which messages name; empty: target.url
	Model  string // empty: Probe uses the first model in /v1/models
	APIKey string // empty sends none
	// TokenIDs requests the token ids of each prompt for [Request].OnPrompt, about 40 kB per turn.
	TokenIDs bool
	Access
	// Fields are further fields of every request's body, by name; those of stream_options are added to the client's.
	// MinTokens is the minimum length of an answer in tokens, at most its limit; 0 sends none.
	Fields    map[string]any
	MinTokens int
	// Planned prepares for requests of a plan: answers of exact lengths, and texts that are made of segments, for which
	// probes ask the server's tokenizer.
	Planned bool
	// Priority is a whole number that Dynamo gets in nvext.agent_hints; empty sends none.
	Priority string
	// Instance returns the worker instance (decimal id) that a probe names; nil: probes name none.
	Instance func(context.Context) string
	// WorkerHeaders name the response headers that show the worker, the preferred one first.
	WorkerHeaders []string
	Session       Session
	// Recognize identifies the server after a successful probe; nil: it is not identified.
	Recognize func(Evidence) Recognized

	Settings
	// IdleTimeout is the time that an idle connection is kept. It must be shorter than the server's keep-alive, or a
	// request is sent over a connection that the server is closing. 0 means 4 s (uvicorn closes after 5 s).
	IdleTimeout time.Duration

	// Send sends a turn from another process; nil: this one sends it. It gets the address and the model of the client, and
	// keeps the promises of [Client.Do] but the budget of [Request].Texts.
	Send func(ctx context.Context, url, model string, req Request) Result

	// Dial opens a connection; nil opens TCP. Tests with a server in the same process replace it.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Evidence is what the answer to a probe shows of the server.
type Evidence struct {
	Header   http.Header
	Instance bool // the stream had Dynamo's instance id
	// Get requests a path below [Client.Root]. The status is 0 where there is no answer.
	Get func(path string) (status int, body []byte)
}

// Recognized is what the last successful probe shows of the server.
type Recognized struct {
	Router      string   // as [Options].Recognize identified it; empty: unknown
	Named       bool     // Router is that of the configuration
	NoRequestID bool     // requests carry no X-Request-Id, as Recognize decided
	Session     bool     // requests name their conversation; see [Options].Session
	Remarks     []string // sentences on settings that the server contradicts
	// Worker says by what the answer named its worker: nvext.worker_id, or the name of a response header; empty: it did
	// not.
	Worker string
	Cached bool // the answer's usage had a count of cached tokens
	// Tokenizer reports that the server's tokenizer has confirmed the words of made texts; see [Options].Planned.
	Tokenizer bool
	// ContextTokens is the length that prompt and answer may have together, as the list of models has it; 0 means unknown.
	ContextTokens int
}

// Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	opts   Options
	base   *url.URL
	kept   carrier
	fresh  *http.Transport // a connection carries one request
	ext    extensions
	fields []byte // Options.Fields as JSON without the braces and without stream_options
	// otherFields are fields without ignore_eos.
	otherFields []byte
	// streamOptions are those of Options.Fields.
	streamOptions map[string]any
	bundled       atomic.Int64 // answers with several tokens in a chunk since the last probe
	probes        atomic.Int64
	planned       atomic.Bool            // see [Options].Planned
	listed        atomic.Pointer[[]byte] // the latest list of models
	found         atomic.Pointer[Recognized]
	words         atomic.Pointer[vocabulary] // of texts that are made
}

// New checks the options and returns a client. It sends nothing. The error is an [api.FieldError].
func New(opts Options) (*Client, error) {
	base, err := api.ParseTarget(opts.URL)
	if err != nil {
		return nil, err
	}
	opts.Field = cmp.Or(opts.Field, targetField)
	setDefault(&opts.ConnectTimeout, 5*time.Second)
	setDefault(&opts.FirstTokenTimeout, 120*time.Second)
	setDefault(&opts.StallTimeout, 30*time.Second)
	setDefault(&opts.TurnTimeout, 10*time.Minute)
	setDefault(&opts.IdleTimeout, 4*time.Second)
	c := &Client{opts: opts, base: base}
	c.planned.Store(opts.Planned)
	c.found.Store(new(Recognized))
	c.words.Store(&bpeWords)
	c.ext.setModel(opts.Model)
	if own := maps.Clone(opts.Fields); len(own) > 0 {
		c.streamOptions, _ = own[ExtStreamOptions].(map[string]any)
		delete(own, ExtStreamOptions)
		if c.fields, err = jsonFields(own); err == nil {
			delete(own, ExtExact)
			c.otherFields, err = jsonFields(own)
		}
		if err != nil {
			return nil, fmt.Errorf("request.body: %w", err)
		}
	}
	if c.kept, c.fresh, err = carriers(opts, base); err != nil {
		return nil, err
	}
	return c, nil
}

// jsonFields returns fields as JSON without the braces.
func jsonFields(fields map[string]any) ([]byte, error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return text[1 : len(text)-1], nil
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

func tlsConfig(base *url.URL, a Access) (*tls.Config, error) {
	if base.Scheme != "https" {
		return nil, nil
	}
	conf, err := a.TLS()
	if bad := new(api.FieldError); errors.As(err, &bad) {
		return nil, api.Refuse("target."+bad.Field, bad.Value, bad.Allowed)
	}
	return conf, err
}

// Root returns the server's address without the API's /v1 and without a query. /health and /metrics are below it.
func (c *Client) Root() string { return api.TargetRoot(c.base).String() }

// Probes returns the number of requests that [Client.Probe] has sent. They cost tokens and belong to no turn.
func (c *Client) Probes() int64 { return c.probes.Load() }

// Plan has later probes prepare for requests of a plan; see [Options].Planned. It reports whether that is new.
func (c *Client) Plan() bool { return !c.planned.Swap(true) }

// Model returns the model in use, or "" before a probe.
func (c *Client) Model() string { return c.ext.modelName() }

// Extensions returns the extensions of the request in use. It is empty before a probe.
func (c *Client) Extensions() map[string]bool { return c.ext.inUse() }

// Recognized returns what the last successful probe shows; the zero value before one.
func (c *Client) Recognized() Recognized {
	r := *c.found.Load()
	r.Session = c.opts.Session.Kind != SessionNone
	return r
}

// Close closes the idle connections. Requests in progress end with their context.
func (c *Client) Close() { c.kept.CloseIdleConnections() }

// Message is a message of a prompt. The text of segments is made while the request is written.
type Message = traffic.Message

// The roles of a conversation.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// Request is one turn to send.
type Request struct {
	ID string // becomes X-Request-Id, unless the server routes by it; empty sends none
	// Conversation and Token are the two values that [Options].Session may choose: the conversation's id, and the last
	// [Result].Token of it. An empty one is not sent.
	Conversation, Token string

	Messages  []Message
	Model     string // empty: [Client.Model]
	MaxTokens int
	Exact     bool        // the answer is to have MaxTokens, where the server takes [ExtExact]
	Salt      uint64      // requests with different ones have different texts of equal segments
	Instance  string      // Dynamo's instance to pin the request to, decimal; empty leaves it to the router
	Live      *Live       // filled while the answer streams; may be nil
	OnChunk   func(n int) // called with the tokens of each content chunk, 1 if unknown; may be nil
	// OnPrompt is called with the ids of the prompt's tokens before the first chunk, if the server reports them (see
	// [ExtTokenIDs]); may be nil. The callee owns the ids.
	OnPrompt    func(ids []uint32)
	TraceParent string // the header of this name; empty sends none
	// Texts is the budget of the answer's memory; nil sets no limit. The caller releases the [TextMemory] of a complete
	// answer's Content.
	Texts *TextBudget
}

// Do sends the request and reads its answer to the end. The result holds any error. After an answer whose chunks hold
// several tokens, Do may send a probe before it returns; see [ExtContinuousUsage].
func (c *Client) Do(ctx context.Context, req Request) Result {
	if c.opts.Send != nil {
		return c.sendElsewhere(ctx, req)
	}
	r := c.send(ctx, newStream(req), c.ext.inUse())
	c.countChunks(ctx, &r)
	return r
}

// sendElsewhere lets another process send the request. A complete answer takes memory here.
func (c *Client) sendElsewhere(ctx context.Context, req Request) Result {
	r := c.opts.Send(ctx, c.base.String(), c.Model(), req)
	c.probes.Add(r.Probes)
	if r.OK() && !req.Texts.take(TextMemory(len(r.Content))) {
		r.Err, r.Content = outOfMemory(), ""
	}
	c.nameField(r.Err)
	return r
}

func failed(e *Error) Result {
	now := time.Now()
	return Result{Sent: now, Ended: now, Err: e}
}

// send sends the stream's request and reads its answer.
func (c *Client) send(ctx context.Context, s *stream, used map[string]bool) Result {
	history := requestMemory(s.req.Messages)
	if !s.req.Texts.take(history) {
		e := outOfMemory()
		c.nameField(e)
		return failed(e)
	}
	release := sync.OnceFunc(func() { s.req.Texts.Release(history) })
	defer release()
	body, err := c.newPayload(s.req, used)
	if err != nil {
		return failed(&Error{Class: api.ErrorMalformed, Message: "cannot write the request: " + err.Error()})
	}
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer c.watch(s, cancel).stop()
	res, err := c.post(limited, c.kept, s, body) //nolint:bodyclose // read closes it
	if err != nil && s.stale(limited) {
		// The server closed the kept connection, and perhaps all. net/http does not repeat a POST without GetBody.
		s.res.Resent = true
		body, _ = c.newPayload(s.req, used)          // encoding succeeded before
		res, err = c.post(limited, c.fresh, s, body) //nolint:bodyclose // read closes it
	}
	release() // the request was sent
	if err != nil {
		s.fail = s.noResponse(limited, c, err)
	} else {
		s.read(limited, c.opts, res)
	}
	r := s.result(ctx, requested{c.base.JoinPath(api.ChatPath).Path, cmp.Or(s.req.Model, c.Model())})
	c.nameField(r.Err)
	return r
}

// targetField is the setting that messages name before [Client.nameField].
const targetField = "target.url"

// nameField makes a message printable, and name the setting that the client's address comes from; nil stays nil.
func (c *Client) nameField(e *Error) {
	if e != nil {
		e.Message = api.Printable(strings.ReplaceAll(e.Message, targetField, c.opts.Field))
	}
}

// post sends the request and returns with the head of the response.
func (c *Client) post(ctx context.Context, t http.RoundTripper, s *stream, body *payload) (*http.Response, error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: s.connected,
		// From here on, another stream may use the connection.
		PutIdleConn: func(error) { s.conn.stream.CompareAndSwap(s, nil) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.JoinPath(api.ChatPath).String(), body)
	if err != nil {
		return nil, err
	}
	req.ContentLength = int64(body.buf.Len() + body.made)
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"text/event-stream"},
		"User-Agent": {"kvbooth-loadgen"},
	}
	c.authorize(req)
	if !c.Recognized().NoRequestID {
		setHeader(req, RequestIDHeader, s.req.ID)
	}
	setHeader(req, "Traceparent", s.req.TraceParent)
	switch c.opts.Session.Kind {
	case SessionHeader:
		setHeader(req, c.opts.Session.Name, s.req.Conversation)
	case SessionReturned:
		setHeader(req, c.opts.Session.Name, s.req.Token)
	}
	res, err := t.RoundTrip(req)
	if err == nil && res.ProtoMajor != 1 {
		res.Body.Close()
		return nil, fmt.Errorf("it says %s", res.Proto)
	}
	return res, err
}

func (c *Client) authorize(req *http.Request) {
	if c.opts.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+headerValue(c.opts.APIKey))
	}
	c.opts.Apply(req)
}

// payload is a request's body. It returns its buffer to the pool once it is read, since most streams wait for tokens
// and need not hold their conversation's history twice.
type payload struct {
	buf   *bytes.Buffer
	words *vocabulary
	gaps  []gap // in the buffer, in order
	made  int   // bytes of all texts in gaps
	read  int   // bytes of the buffer that were read
}

// gap is a text that is made when the body is read.
type gap struct {
	at int // offset in the buffer
	made
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxPooled is the largest buffer in bytes that is kept for other requests.
const maxPooled = 1 << 20

func (c *Client) newPayload(req Request, used map[string]bool) (*payload, error) {
	p := &payload{buf: buffers.Get().(*bytes.Buffer), words: c.words.Load()}
	p.buf.Reset()
	return p, c.encode(p, req, used)
}

func (p *payload) Read(b []byte) (n int, err error) {
	if p.buf == nil {
		return 0, io.EOF
	}
	if len(p.gaps) > 0 {
		first := &p.gaps[0]
		if first.at == p.read {
			if n = first.fill(b); len(first.segments) == 0 {
				p.gaps = p.gaps[1:]
			}
			return n, nil
		}
		b = b[:min(len(b), first.at-p.read)]
	}
	n, err = p.buf.Read(b)
	p.read += n
	if err != nil {
		if p.buf.Cap() <= maxPooled {
			buffers.Put(p.buf)
		}
		p.buf = nil
	}
	return n, err
}

// setHeader sets a header, unless the value is empty.
func setHeader(req *http.Request, name, value string) {
	if value != "" {
		req.Header.Set(name, headerValue(value))
	}
}

// headerValue removes characters that a header may not contain, such as line ends.
func headerValue(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}

// Models returns the models that the server lists.
func (c *Client) Models(ctx context.Context) (ids []string, failure *Error) {
	defer func() { c.nameField(failure) }()
	address, body, failure := c.listModels(ctx)
	if failure != nil {
		return nil, failure
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, &Error{Class: api.ErrorMalformed, Message: fmt.Sprintf("%s is not a list of models (%s); is "+
			"target.url the address of an OpenAI-compatible API?", address, clip(err.Error()))}
	}
	ids = make([]string, len(list.Data))
	for i, m := range list.Data {
		ids[i] = m.ID
	}
	return ids, nil
}

// contextTokens returns the context of the model in use by the server's list, 0 if it has none.
func (c *Client) contextTokens(ctx context.Context) int {
	if c.planned.Load() {
		_, _, _ = c.listModels(ctx)
	}
	body := c.listed.Load()
	if body == nil {
		return 0
	}
	var list struct {
		Data []struct {
			ID            string  `json:"id"`
			MaxModelLen   float64 `json:"max_model_len"`  // vLLM, SGLang
			ContextWindow float64 `json:"context_window"` // NVIDIA Dynamo
		} `json:"data"`
	}
	_ = json.Unmarshal(*body, &list) // a server without a list, or with another one, reports no context
	for _, m := range list.Data {
		if m.ID == c.Model() {
			return int(cmp.Or(m.MaxModelLen, m.ContextWindow))
		}
	}
	return 0
}

// listModels returns the server's list of models, as it is.
func (c *Client) listModels(ctx context.Context) (address *url.URL, body []byte, failure *Error) {
	address = c.base.JoinPath("models")
	status, header, body, failure := c.get(ctx, address.String())
	if failure == nil && status != http.StatusOK {
		failure = statusError(status, header, excerpt(body), requested{path: address.Path})
	}
	if failure == nil {
		c.listed.Store(&body)
	}
	return address, body, failure
}

// get sends a small request that is not measured, with the timeout of a connection.
func (c *Client) get(ctx context.Context, address string) (status int, header http.Header, body []byte,
	failure *Error,
) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.ConnectTimeout)
	defer cancel()
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, address, nil)
	if err != nil {
		return 0, nil, nil, connectError(c.base.Host, err)
	}
	c.authorize(req)
	res, err := c.fresh.RoundTrip(req)
	if err == nil {
		defer res.Body.Close()
		var plain io.Reader
		if plain, err = plainBody(res); err == nil {
			body, err = io.ReadAll(io.LimitReader(plain, 1<<20))
		}
		if err == nil {
			return res.StatusCode, res.Header, body, nil
		}
		if errors.As(err, new(codingError)) {
			return 0, nil, nil, unreadable(err.Error())
		}
	}
	if connected.Load() {
		return 0, nil, nil, answerError(err)
	}
	return 0, nil, nil, connectError(c.base.Host, err)
}
