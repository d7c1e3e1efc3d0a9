package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"

	"kvbooth/sidecar/api"
)

// routeCmd is `booth route`, the plain round-robin that an arena compares routers with.
type routeCmd struct {
	Port    int      `default:"8000" help:"Port on loopback; 0: a free one."`
	Workers []string `required:"" placeholder:"URL" help:"Engines that get the requests in turn."`
}

func (c *routeCmd) run(ctx, _ context.Context, stdout, stderr io.Writer) error {
	workers := make([]*url.URL, len(c.Workers))
	for i, text := range c.Workers {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			return api.Refuse("workers", text, "URLs of engines, such as http://gpu-1:8000")
		}
		workers[i] = u
	}
	up := func(taken []string) {
		newScreen(stdout, stderr).table("Requests go to the engines in turn.",
			[][2]string{{"address", "http://" + taken[0]}}, "Press Ctrl-C to stop.")
	}
	return serveAll(ctx, "127.0.0.1", []endpoint{{flag: "port", port: c.Port, handler: inTurn(workers)}}, up, func() {})
}

// inTurn passes requests on to the workers in turn, and each chunk of an answer at once.
func inTurn(workers []*url.URL) http.Handler {
	var next atomic.Uint64
	return &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(workers[(next.Add(1)-1)%uint64(len(workers))])
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			http.Error(w, fmt.Sprintf("%s does not answer: %v", r.URL.Host, err), http.StatusBadGateway)
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true},
	}
}
