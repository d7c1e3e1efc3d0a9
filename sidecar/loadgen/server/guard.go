package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kvbooth/sidecar/api"
)

// access is what a route requires of its caller.
type access int

const (
	probe  access = iota // nothing; Host may also be an IP address
	scrape               // the metrics' token, where they have one; Host may also be an IP address
	public               // no token
	read                 // the token, unless reads are public
	write                // the token
)

// guarded admits the callers that have the route's access.
func (s *Server) guarded(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		by, session, err := s.admit(r, rt.access)
		if err == nil {
			if r.Method == http.MethodGet || r.Method == http.MethodDelete {
				unread(w, r)
			}
			ctx, cancel := within(context.WithValue(r.Context(), callerKey{}, by), session)
			defer cancel()
			err = rt.handle(w, r.WithContext(ctx))
		}
		if err != nil {
			s.fail(w, r, err)
		}
	})
}

// within returns a context that also ends, with [errSessionOver], when the session of its caller ends, so that no
// stream, events or download outlives it. A nil session never ends.
func within(ctx, session context.Context) (context.Context, context.CancelFunc) {
	if session == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(session, func() { cancel(errSessionOver) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

type callerKey struct{}

// caller returns the name of an admitted request's caller, for the events.
func caller(r *http.Request) string {
	by, _ := r.Context().Value(callerKey{}).(string)
	return by
}

// admit returns the caller of a write, for the events, and the session that a read ends with, nil where it has none. A
// write that has begun is completed, whatever happens to the session.
func (s *Server) admit(r *http.Request, a access) (by string, session context.Context, err error) {
	if err := s.checkSite(r, a == probe || a == scrape); err != nil {
		return "", nil, err
	}
	switch a {
	case probe, public:
		return "", nil, nil
	case scrape:
		return "", nil, s.admitScrape(r)
	}
	session, err = s.authenticate(r, a)
	if err != nil || a == read {
		return "", session, err
	}
	by, err = s.name(r, session != nil)
	return by, nil, err
}

// checkSite refuses an unknown host name, which may be another site's name that was rebound to this address,
// and a request from a page of another site. Kubelets and Prometheus call by IP address, which cannot be rebound.
func (s *Server) checkSite(r *http.Request, anyAddress bool) error {
	host := api.Hostname(r.Host)
	_, notIP := netip.ParseAddr(host)
	if !api.KnownHost(r.Host, s.opts.Hosts) && !(anyAddress && notIP == nil) {
		return &refused{
			status: http.StatusMisdirectedRequest,
			detail: fmt.Sprintf("Host %q is not allowed; add it to \"hosts\", or use a loopback address", host),
		}
	}
	if !api.OwnOrigin(r) {
		return &refused{status: http.StatusForbidden, detail: fmt.Sprintf("requests from origin %q are not allowed",
			r.Header.Get("Origin"))}
	}
	return nil
}

// admitScrape accepts every request where the metrics have no token of their own. Otherwise it requires that token
// or the server's token. A public page does not open the metrics. The metrics token does not protect a connection
// from being closed, so that scrapers cannot use up the connections of operators.
func (s *Server) admitScrape(r *http.Request) error {
	token, ok := tokenOf(r)
	switch {
	case s.opts.MetricsToken == "", ok && match(token, s.metricsToken):
		return nil
	case s.opts.Token != "":
		_, err := s.authenticate(r, write)
		return err
	case ok:
		return s.wrongToken()
	}
	return errTokenNeeded
}

// authenticate returns the caller's session, nil for a caller without one. A given token must be right, even where none
// is required.
func (s *Server) authenticate(r *http.Request, a access) (session context.Context, err error) {
	if s.opts.Token == "" {
		return nil, nil
	}
	if token, ok := tokenOf(r); ok {
		return nil, s.checkAttempt(r, token)
	}
	if session := s.sessions.of(r); session != nil {
		trust(r)
		return session, nil
	}
	if a == read && s.opts.PublicPage {
		return nil, nil
	}
	return nil, errTokenNeeded
}

// tokenOf returns the token of a call, right or wrong.
func tokenOf(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// Rate limit of the answers to wrong tokens: ten at once, then one every six seconds.
const (
	failureBurst = 10
	failurePause = 6 * time.Second
)

// checkAttempt compares a token with the server's in constant time. The right token is always accepted, so that
// wrong guesses do not lock out a caller with the token. Only the answers to wrong tokens are limited, for all
// senders together.
func (s *Server) checkAttempt(r *http.Request, token string) error {
	if match(token, s.token) {
		trust(r)
		return nil
	}
	return s.wrongToken()
}

// wrongToken returns the answer to a wrong token.
func (s *Server) wrongToken() error {
	if now := s.now(); !s.failures.AllowN(now, 1) {
		wait := time.Duration((1 - s.failures.TokensAt(now)) * float64(failurePause))
		seconds := strconv.Itoa(int(wait/time.Second) + 1)
		return &refused{
			status: http.StatusTooManyRequests,
			detail: "the token is wrong, and there were too many failed attempts; try again in " + seconds + " s",
			header: http.Header{"Retry-After": {seconds}},
		}
	}
	return unauthorized("the token is wrong")
}

// match compares hashes, which have the same length whatever the token's is.
func match(token string, hash [sha256.Size]byte) bool {
	got := sha256.Sum256([]byte(token))
	return len(token) <= api.MaxToken && subtle.ConstantTimeCompare(got[:], hash[:]) == 1
}

var errTokenNeeded = unauthorized("a token is required: Authorization: Bearer …")

func unauthorized(detail string) error {
	return &refused{status: http.StatusUnauthorized, detail: detail, header: http.Header{"WWW-Authenticate": {"Bearer"}}}
}

// name returns the name in events: the login for which a caller with the token (or on this machine, where none is
// configured) acts, or how it calls.
func (s *Server) name(r *http.Request, session bool) (string, error) {
	trusted := !session && (s.opts.Token != "" || api.IsLoopback(remoteHost(r.RemoteAddr)))
	login := r.Header.Get(api.UserHeader)
	switch {
	case trusted && login != "":
		return login, checkLogin(login)
	case session || r.Header.Get("Origin") != "":
		return "page", nil
	}
	return "api", nil
}

func checkLogin(login string) error {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if len(login) > api.MaxLogin || !utf8.ValidString(login) || strings.ContainsFunc(login, odd) {
		return api.Refuse(api.UserHeader, fmt.Sprintf("%.40q", login),
			fmt.Sprintf("at most %d printable bytes of UTF-8", api.MaxLogin))
	}
	return nil
}

func remoteHost(remoteAddr string) string {
	host, _, _ := net.SplitHostPort(remoteAddr)
	return host
}

// network returns an address, or its /64 in IPv6, which one subscriber has as a whole.
func network(remoteAddr string) netip.Prefix {
	ip, _ := netip.ParseAddr(remoteHost(remoteAddr))
	ip = ip.Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.Prefix(bits) // the zero Prefix without an IP address
	return p
}
