package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The functions below are for the HTTP servers of this product.

// KnownHost says whether a Host names a loopback address, localhost or one of
// the names, whatever its port. Any other name may be another site's, which its
// owner has rebound to this address to get at the server with a browser.
func KnownHost(host string, names []string) bool {
	host = Hostname(host)
	return IsLoopback(host) || slices.ContainsFunc(names, func(name string) bool { return Hostname(name) == host })
}

// Hostname is a Host without its port, in lower case.
func Hostname(host string) string {
	u := url.URL{Host: host}
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
}

// IsLoopback says whether a host without a port is localhost or a loopback address.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// OwnOrigin says whether a request that names its page's origin names this
// server's own. Only browsers send an Origin, and they always do where it matters.
func OwnOrigin(r *http.Request) bool {
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return true
	}
	u, err := url.Parse(origins[0])
	return err == nil && len(origins) == 1 && u.Scheme == Scheme(r) && strings.EqualFold(u.Host, r.Host) &&
		u.Path == "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// Scheme is the one that the caller used. No page of another site can set the
// header that a proxy in front sets.
func Scheme(r *http.Request) string {
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https"
	}
	return "http"
}

// EventStream is the type of an answer of server-sent events.
const EventStream = "text/event-stream"

// WantsEvents says whether a caller asks for an answer of server-sent events, as an
// EventSource does.
func WantsEvents(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), EventStream)
}

// Serve answers on the listener, which it closes, until ctx ends; then it gives
// the calls in progress that long to end, cuts off the rest, and returns nil. The
// error is why it ended before.
func Serve(ctx context.Context, srv *http.Server, l net.Listener, grace time.Duration) error {
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		_ = srv.Close()
		return err
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if srv.Shutdown(patience) != nil {
		_ = srv.Close() // the calls still in progress have had their time
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
