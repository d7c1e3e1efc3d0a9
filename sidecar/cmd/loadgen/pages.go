package main

import (
	"net/http"
	"net/url"

	"kvbooth/sidecar/cmd/loadgen/internal/config"
)

// pagesClient returns a client that reads the metrics page at the target's address with the access of turns, and the
// other pages with the access of the section cluster.
func pagesClient(conf *config.Config, address string) (*http.Client, error) {
	target, err := conf.Target.Opened.Client()
	if err != nil {
		return nil, err
	}
	others, err := conf.Cluster.Opened.Client()
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: byHost{hostOf(address): target.Transport, "": others.Transport}}, nil
}

// byHost sends requests to a host through the transport of its name and port, and all others through the transport of
// the empty name.
type byHost map[string]http.RoundTripper

// RoundTrip implements [http.RoundTripper].
func (t byHost) RoundTrip(req *http.Request) (*http.Response, error) {
	if own, ok := t[req.URL.Host]; ok {
		return own.RoundTrip(req)
	}
	return t[""].RoundTrip(req)
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil { // already checked
		return ""
	}
	return u.Host
}
