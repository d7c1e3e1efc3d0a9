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
	readTimeout = 2 * time.Second // timeout of one reading
	// pageTimeout is less than readTimeout, so that a worker that hangs does not end the reading.
	pageTimeout = 1500 * time.Millisecond
	dialTimeout = time.Second
	maxBody     = 16 << 20 // bytes of one answer; a metrics page is cut there
	maxLine     = 16 << 10 // bytes of a line of a metrics page
	maxSamples  = 1 << 16  // samples of one reading: enough for 5,000 workers
	maxLabel    = 512      // bytes of a label's value
)

// Sample is the present value of one time series, as the server exposes it.
type Sample struct {
	Name   string
	Labels model.LabelSet // labels without the name
	Value  float64
	growth float64   // growth of a counter over the window
	step   float64   // growth of a counter since the previous reading
	key    seriesKey // set together with worker for a cached series, else 0
	worker string    // see workerID

	scheduler seriesKey // see schedulerOf; set for an engine's cached series, else 0
	rank      string

	own      bool // the sample is from the target's own page
	relayed  bool // the page describes another process than its own; see [Sample.locate]
	several  bool // its page shows several processes in turn; see [processes]
	unlisted bool // within the window, one of these processes had no page of its own
}

// A Source reads the cluster's samples. Every sample has the label instance, the
// host and port that exposed it.
type Source interface {
	// Name returns "prometheus" or "direct".
	Name() string

	// Fetch reads every metric of this package that exists. Samples together
	// with an error are an incomplete reading; the error names the gaps. An
	// empty reading has an error. Fetch returns soon after ctx ends.
	Fetch(ctx context.Context) ([]Sample, error)
}

// httpURL parses a URL from the configuration. field names its setting in the error.
func httpURL(field, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, api.Refuse(field, strconv.Quote(raw), "an http or https URL with a host")
	}
	return u, nil
}

// targetURL returns the root URL of the target's own pages. The error is an [api.FieldError].
func targetURL(raw string) (*url.URL, error) {
	u, err := api.ParseTarget(raw)
	if err != nil {
		return nil, err
	}
	return api.TargetRoot(u), nil
}

// withMaxBody returns a copy of client, or a new one for nil, whose
// answers end with an [http.MaxBytesError] after maxBody bytes.
func withMaxBody(client *http.Client) *http.Client {
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

// limited is a transport that bounds the bodies of responses.
type limited struct{ http.RoundTripper }

func (t limited) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.RoundTripper.RoundTrip(req)
	if err == nil {
		res.Body = http.MaxBytesReader(nil, res.Body, maxBody)
	}
	return res, err
}

// CloseIdleConnections makes http.Client.CloseIdleConnections reach the wrapped transport.
func (t limited) CloseIdleConnections() {
	if c, ok := t.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// readable shortens a transport's error to its reason, see [api.Reason]. An answer beyond maxBody has
// its own message.
func readable(err error) error {
	if errors.As(err, new(*http.MaxBytesError)) {
		return fmt.Errorf("the answer is larger than %d MiB", maxBody>>20)
	}
	return api.Reason(err)
}
