// Package server is the sidecar's HTTP interface: the REST calls, the stream of snapshots, health, metrics, and the
// page. It holds no state of the product. The [Backend] implements the calls.
//
// Access: a request's Host must be a name that the server knows, so that a rebound DNS name is refused. Its Origin,
// where there is one, must be the server's own, so that a page of another site is refused, on WebSockets too. Where a
// token is configured, every call requires it, in a header or exchanged for a cookie, except for health, metrics and,
// if configured, the reads of a public page. Metrics may have a token of their own.
//
// A route has the types of its query, body and answer. Handlers receive them parsed and checked against the limits in
// their tags, and a test generates the OpenAPI document from them. Bodies and queries are not read by huma (tried with
// v2.37): it accepts unknown, repeated and unreadable parameters, names one end of a range ("expected number >= 1")
// where ours name the range, does not list the allowed fields, and adds 1 MB to the program.
package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/time/rate"

	"kvbooth/sidecar/api"
)

// Timeouts of the HTTP server. Uploads and most answers are small. Long ones (turns.csv, streams) extend their own
// deadlines.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = time.Minute
	idleTimeout       = 2 * time.Minute
	shutdownTimeout   = 5 * time.Second
	refusedTimeout    = time.Second // for the rest of a refused body
	maxHeader         = 16 << 10
)

// DefaultConnections is how many connections a server keeps open.
const DefaultConnections = 512

// Options configure a [Server]. Backend or Playback, Metrics, ParseCSV and ParseJSON are required.
type Options struct {
	Backend Backend
	// Playback replays a recording in place of the backend. Calls that change something are refused.
	Playback Playback
	Metrics  http.Handler // answers /metrics
	// ParseCSV and ParseJSON read a baseline and return an [api.FieldError] if it is invalid. They read at most 1 MiB.
	// ParseJSON also reads the results of other programs, for which run is the mode.
	ParseCSV  func(r io.Reader, name string) (api.Baseline, error)
	ParseJSON func(r io.Reader, name string, run api.ModeState) (api.Baseline, error)

	MaxConnections int // kept open at a time; 0: DefaultConnections

	TLS *tls.Config // HTTPS with these certificates, only HTTP/1.1, which WebSockets require; nil: HTTP

	Token        string       // empty: every request is allowed, except as MetricsToken says
	MetricsToken string       // empty: /metrics is open; else it requires this token or Token
	Hosts        []string     // names and addresses of the server besides the loopback ones
	PublicPage   bool         // whether reads require no token
	Page         http.Handler // the page; nil: a text that describes the API
	Log          *slog.Logger // nil disables logging
}

// Server answers the calls of the sidecar's API. It is safe for concurrent use.
type Server struct {
	opts         Options
	mux          *http.ServeMux
	page         http.Handler
	sessions     sessions
	token        [sha256.Size]byte
	metricsToken [sha256.Size]byte
	failures     *rate.Limiter // of wrong tokens
	streams      streams
	upgrader     websocket.Upgrader
	now          func() time.Time
}

// New makes a server. It returns an [api.FieldError] for an invalid token or host name.
func New(opts Options) (*Server, error) {
	if opts.Playback != nil {
		opts.Backend = playback{View: opts.Playback}
	}
	if opts.Backend == nil || opts.Metrics == nil || opts.ParseCSV == nil || opts.ParseJSON == nil {
		return nil, errors.New("server: the options lack Backend, Metrics, ParseCSV or ParseJSON")
	}
	if err := errors.Join(checkToken("token", opts.Token), checkToken("metrics_token", opts.MetricsToken)); err != nil {
		return nil, err
	}
	if err := checkHosts(opts.Hosts); err != nil {
		return nil, err
	}
	opts.MaxConnections = cmp.Or(opts.MaxConnections, DefaultConnections)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		opts: opts, mux: http.NewServeMux(), now: time.Now, page: http.HandlerFunc(signpost),
		token: sha256.Sum256([]byte(opts.Token)), metricsToken: sha256.Sum256([]byte(opts.MetricsToken)),
		failures: rate.NewLimiter(rate.Every(failurePause), failureBurst),
	}
	if opts.Page != nil {
		s.page = opts.Page
	}
	s.streams.limit = min(maxStreams, opts.MaxConnections/2)
	s.upgrader = websocket.Upgrader{
		HandshakeTimeout: frameTimeout, ReadBufferSize: 512, WriteBufferPool: &sync.Pool{},
		CheckOrigin: api.OwnOrigin, Error: s.refuseUpgrade,
	}
	for _, rt := range s.routes() {
		s.mux.Handle(rt.pattern, s.guarded(rt))
	}
	return s, nil
}

// checkToken refuses a token that cannot be sent in a header. It does not repeat the token.
func checkToken(field, token string) error {
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(token) > api.MaxToken || strings.ContainsFunc(token, odd) {
		return api.Refuse(field, "the given value", fmt.Sprintf("at most %d printable ASCII characters, no spaces",
			api.MaxToken))
	}
	return nil
}

func checkHosts(names []string) error {
	for _, name := range names {
		u, err := url.Parse("//" + name)
		if err != nil || u.Hostname() == "" || u.Host != name {
			return api.Refuse("hosts", fmt.Sprintf("%q", name), "host names or IP addresses, such as booth.example")
		}
	}
	return nil
}

// CheckListen refuses an address that other machines can reach where there is no token, and an invalid address. The
// error is an [api.FieldError].
func CheckListen(addr, token string) error {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return api.Refuse("listen", fmt.Sprintf("%q", addr), "host:port, such as 127.0.0.1:8088")
	}
	if token == "" && !api.IsLoopback(host) {
		return api.Refuse("listen", fmt.Sprintf("%q", addr),
			"without a token, a loopback address such as 127.0.0.1:8088; set a token to listen elsewhere")
	}
	return nil
}

// ServeHTTP answers a call, or serves the page.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	handler, pattern := s.mux.Handler(r)
	if pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	if err := s.checkSite(r, false); err != nil {
		s.fail(w, r, err)
		return
	}
	verdict := verdict{header: http.Header{}}
	handler.ServeHTTP(&verdict, r)
	switch {
	case verdict.status == http.StatusMethodNotAllowed:
		w.Header().Set("Allow", verdict.header.Get("Allow"))
		s.fail(w, r, &refused{status: verdict.status, detail: "allowed here: " + verdict.header.Get("Allow")})
	case strings.HasPrefix(r.URL.Path, "/api/"), r.Method != http.MethodGet && r.Method != http.MethodHead:
		s.fail(w, r, fmt.Errorf("%w: no such endpoint; see %s/openapi.yaml", api.ErrNotFound, api.Prefix))
	default:
		s.page.ServeHTTP(w, r)
	}
}

// verdict records the status and the header that the mux writes for a request that matches no route.
type verdict struct {
	header http.Header
	status int
}

func (v *verdict) Header() http.Header         { return v.header }
func (v *verdict) WriteHeader(status int)      { v.status = status }
func (v *verdict) Write(b []byte) (int, error) { return len(b), nil }

// secure sets the headers that restrict what a browser may do with an answer.
func secure(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
}

// signpost replaces a missing page, and describes how to get it.
func signpost(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintf(w, "KV Booth load generator\n\nAPI      %[1]s/status, described by "+
		"%[1]s/openapi.yaml\nmetrics  /metrics\nhealth   /healthz, /readyz\n\n"+
		"This program was built without its page. With Node.js 20.19 or later: go tool mage build\n", api.Prefix)
}

// Serve answers on the listener, which it closes, until ctx ends. It then ends the streams, waits up to 5 s for calls
// in progress, and returns nil. It must be called once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ConnContext: withConn,
		ErrorLog: slog.NewLogLogger(s.opts.Log.Handler(), slog.LevelDebug),
	}
	srv.RegisterOnShutdown(s.streams.refuse)
	defer s.streams.end()
	srv.ConnState = noteState
	l = &bounded{Listener: l, limit: s.opts.MaxConnections}
	if s.opts.TLS != nil {
		config := s.opts.TLS.Clone()
		config.NextProtos = []string{"http/1.1"}
		l = tls.NewListener(l, config)
	}
	return api.Serve(ctx, srv, l, shutdownTimeout)
}
