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

// The functions below serve the HTTP servers of this product.

// KnownHost reports whether a Host header names a loopback address, localhost or one of the names, with any port. Any
// other name may belong to a site that uses DNS rebinding to reach the server from a browser.
func KnownHost(host string, names []string) bool {
	host = Hostname(host)
	return IsLoopback(host) || slices.ContainsFunc(names, func(name string) bool { return Hostname(name) == host })
}

// Hostname returns a Host header without its port, in lower case.
func Hostname(host string) string {
	u := url.URL{Host: host}
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
}

// IsLoopback reports whether a host without a port is localhost or a loopback address.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// OwnOrigin reports whether a request comes from a page of this server or from a program that is not a browser. Only
// browsers send the header Origin, and they send it with every request that could change something.
func OwnOrigin(r *http.Request) bool {
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return true
	}
	u, err := url.Parse(origins[0])
	return err == nil && len(origins) == 1 && u.Scheme == Scheme(r) && strings.EqualFold(u.Host, r.Host) &&
		u.Path == "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// Scheme returns the scheme of the caller's request, http or https. A proxy reports it in X-Forwarded-Proto, a header
// that no page of another site can set.
func Scheme(r *http.Request) string {
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https"
	}
	return "http"
}

// EventStream is the media type of server-sent events.
const EventStream = "text/event-stream"

// WantsEvents reports whether a request accepts server-sent events, as that of an EventSource does.
func WantsEvents(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), EventStream)
}

// Serve serves on the listener until ctx ends, and closes it. Calls in progress then have the time of grace to end; the
// connections of the others are closed. Serve returns nil after the end of ctx, and an error if serving failed before.
func Serve(ctx context.Context, srv *http.Server, l net.Listener, grace time.Duration) error {
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		_ = srv.Close()
		return err
	case <-ctx.Done():
	}
	timeout, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if srv.Shutdown(timeout) != nil {
		_ = srv.Close() // grace is over
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
