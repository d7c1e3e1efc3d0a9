package main

import (
	"net/http"
	"net/url"

	"kvbooth/sidecar/cmd/loadgen/internal/config"
)

// pagesClient reads the page of the target at an address as turns reach the target, and the others
// as the section cluster says.
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

// byHost sends requests to a host by the transport under its name and port, all others by that
// under the empty name.
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
	if err != nil { // it has the form already
		return ""
	}
	return u.Host
}
