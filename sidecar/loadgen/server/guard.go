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
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/time/rate"

	"kvbooth/sidecar/api"
)

// access is what a route asks of its caller.
type access int

const (
	probe  access = iota // nothing, not even a known name: an IP address will do
	public               // no token
	read                 // the token, unless reads are public
	write                // the token
)

// guarded lets those in whom the route is for.
func (s *Server) guarded(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		by, err := s.admit(r, rt.access)
		if err == nil {
			err = rt.handle(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, by)))
		}
		if err != nil {
			s.fail(w, r, err)
		}
	})
}

type callerKey struct{}

// caller says who makes an admitted request, for the events.
func caller(r *http.Request) string {
	by, _ := r.Context().Value(callerKey{}).(string)
	return by
}

func (s *Server) admit(r *http.Request, a access) (by string, err error) {
	if err := s.checkSite(r, a == probe); err != nil {
		return "", err
	}
	if a == probe || a == public {
		return "", nil
	}
	session, err := s.authenticate(r, a)
	if err != nil || a == read {
		return "", err
	}
	return s.name(r, session)
}

// checkSite refuses a name that the server does not know, which may be another
// site's that was rebound to this address, and a page of another site. Kubelets
// and Prometheus call by IP address, which nobody can rebind.
func (s *Server) checkSite(r *http.Request, anyAddress bool) error {
	host := api.Hostname(r.Host)
	_, notIP := netip.ParseAddr(host)
	if !api.KnownHost(r.Host, s.opts.Hosts) && !(anyAddress && notIP == nil) {
		return &refused{status: http.StatusMisdirectedRequest, detail: fmt.Sprintf("this server does not know itself as %q; add the name to its hosts, or use a loopback address", host)}
	}
	if !api.OwnOrigin(r) {
		return &refused{status: http.StatusForbidden, detail: fmt.Sprintf("a page of %q may not call this server", r.Header.Get("Origin"))}
	}
	return nil
}

// authenticate says whether the caller comes by a session. A token that was
// given has to be right, even where none would have been needed.
func (s *Server) authenticate(r *http.Request, a access) (session bool, err error) {
	if s.opts.Token == "" {
		return false, nil
	}
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return false, s.checkAttempt(r, strings.TrimSpace(token))
	}
	if s.inSession(r) {
		return true, nil
	}
	if a == read && s.opts.PublicPage {
		return false, nil
	}
	return false, unauthorised("a token is needed: Authorization: Bearer …")
}

// checkAttempt compares a token with the server's in constant time, unless its
// sender has been wrong too often.
func (s *Server) checkAttempt(r *http.Request, token string) error {
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.opts.Token))
	right := subtle.ConstantTimeCompare(got[:], want[:]) == 1
	if wait := s.failures.judge(r.RemoteAddr, right, s.now()); wait > 0 {
		seconds := strconv.Itoa(int(wait/time.Second) + 1)
		return &refused{
			status: http.StatusTooManyRequests, detail: "too many wrong tokens from this address; try again in " + seconds + " s",
			header: http.Header{"Retry-After": {seconds}},
		}
	}
	if !right {
		return unauthorised("the token is wrong")
	}
	return nil
}

func unauthorised(detail string) error {
	return &refused{status: http.StatusUnauthorized, detail: detail, header: http.Header{"WWW-Authenticate": {"Bearer"}}}
}

// name is who the events name: the login that a caller with the token (or on
// this machine, where none is configured) speaks for, or how it calls.
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
		return api.Refuse(api.UserHeader, fmt.Sprintf("%.40q", login), fmt.Sprintf("at most %d printable bytes of UTF-8", api.MaxLogin))
	}
	return nil
}

func remoteHost(remoteAddr string) string {
	host, _, _ := net.SplitHostPort(remoteAddr)
	return host
}

// Wrong tokens of one address: ten at once, then one in six seconds.
const (
	failureBurst = 10
	failurePause = 6 * time.Second
	maxAddresses = 1024
)

// failures slows down who guesses tokens. It keeps a bounded number of
// addresses; when there are more, the others share one allowance. The zero value
// is ready.
type failures struct {
	mu     sync.Mutex
	of     map[netip.Prefix]*rate.Limiter
	others *rate.Limiter
}

// judge counts a wrong token, and says how long its sender has to wait before
// the next one is looked at, 0 if this one is. Who has to wait is not told
// whether the token was right.
func (f *failures) judge(remoteAddr string, right bool, now time.Time) (wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.limiter(network(remoteAddr), right, now)
	if l == nil {
		return 0
	}
	if left := l.TokensAt(now); left < 1 {
		return time.Duration((1 - left) * float64(failurePause))
	}
	if !right {
		l.AllowN(now, 1)
	}
	return 0
}

// limiter finds an address's allowance, and makes one only for who was wrong.
func (f *failures) limiter(of netip.Prefix, right bool, now time.Time) *rate.Limiter {
	if l := f.of[of]; l != nil || right && len(f.of) < maxAddresses {
		return l
	}
	if f.of == nil {
		f.of = map[netip.Prefix]*rate.Limiter{}
		f.others = rate.NewLimiter(rate.Every(failurePause), failureBurst)
	}
	if len(f.of) >= maxAddresses {
		f.forget(now)
	}
	if len(f.of) >= maxAddresses {
		return f.others
	}
	l := rate.NewLimiter(rate.Every(failurePause), failureBurst)
	f.of[of] = l
	return l
}

// forget drops the addresses whose allowance is whole again.
func (f *failures) forget(now time.Time) {
	for of, l := range f.of {
		if l.TokensAt(now) >= failureBurst {
			delete(f.of, of)
		}
	}
}

// network is an address, or the /64 that one subscriber has whole in IPv6.
func network(remoteAddr string) netip.Prefix {
	ip, _ := netip.ParseAddr(remoteHost(remoteAddr))
	ip = ip.Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.Prefix(bits) // the zero Prefix for what is no IP address
	return p
}
