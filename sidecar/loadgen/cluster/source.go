package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"kvbooth/sidecar/api"
)

const (
	readTimeout = 2 * time.Second         // of one reading
	pageTimeout = 1500 * time.Millisecond // of one metrics page, so that a dead worker does not end the reading
	dialTimeout = time.Second
	maxBody     = 16 << 20 // bytes of one answer; a metrics page is cut there
	maxLine     = 16 << 10 // bytes of a line of a metrics page
	maxSamples  = 1 << 16  // of one reading: 5,000 workers
	maxLabel    = 512      // bytes of a label's value
)

// Sample is the present value of one time series, as the server exposes it.
type Sample struct {
	Name   string
	Labels model.LabelSet // without the name
	Value  float64
	growth float64   // of a counter, over the window
	step   float64   // of a counter, since the reading before
	key    seriesKey // with its worker, of a series that came before; else 0
	worker string    // see workerID

	scheduler seriesKey // see schedulerOf; of an engine's series that came before, else 0
	rank      string

	own     bool // it is of the target's own page
	several bool // its page has shown several processes in turn
	strays  bool // within the window, one of those had no page of its own
}

// A Source reads the cluster's samples. Every sample carries the label instance,
// the host and port that exposed it.
type Source interface {
	// Name is prometheus or direct.
	Name() string

	// Fetch reads every metric of this package that exists. Samples together
	// with an error are a reading with gaps, which the error names. No samples
	// always come with an error. It returns soon after ctx ends.
	Fetch(ctx context.Context) ([]Sample, error)
}

// httpURL checks a URL that the configuration gives.
func httpURL(field, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, &api.FieldError{Field: field, Value: strconv.Quote(raw), Allowed: "an http or https URL with a host"}
	}
	return u, nil
}

// targetURL gives the address below which the target's own pages are. The error is an [api.FieldError].
func targetURL(raw string) (*url.URL, error) {
	u, err := api.ParseTarget(raw)
	if err != nil {
		return nil, err
	}
	return api.TargetRoot(u), nil
}

// bounded returns a client like the given one, or a new one for nil, whose
// answers end with an [http.MaxBytesError] after maxBody bytes.
func bounded(client *http.Client) *http.Client {
	c := http.Client{}
	if client != nil {
		c = *client
	}
	if c.Transport == nil {
		c.Transport = &http.Transport{
			Proxy:           http.ProxyFromEnvironment,
			DialContext:     (&net.Dialer{Timeout: dialTimeout}).DialContext,
			IdleConnTimeout: 30 * time.Second,
		}
	}
	c.Transport = limited{c.Transport}
	return &c
}

// limited is a transport that bounds what it lets a caller read.
type limited struct{ http.RoundTripper }

func (t limited) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.RoundTripper.RoundTrip(req)
	if err == nil {
		res.Body = http.MaxBytesReader(nil, res.Body, maxBody)
	}
	return res, err
}

// CloseIdleConnections lets http.Client.CloseIdleConnections through.
func (t limited) CloseIdleConnections() {
	if c, ok := t.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// plain is [api.Reason] that knows of an answer which was too large.
func plain(err error) error {
	if errors.As(err, new(*http.MaxBytesError)) {
		return fmt.Errorf("the answer is larger than %d MiB", maxBody>>20)
	}
	return api.Reason(err)
}
