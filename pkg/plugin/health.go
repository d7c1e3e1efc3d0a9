package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/httpclient"

	"kvbooth/sidecar/api"
)

const healthTimeout = 8 * time.Second // of the whole test, which "Test connection" blocks on

// The reasons that only a connection test has.
const (
	reasonNone    reason = "ok"
	reasonTarget  reason = "target"  // the target does not serve
	reasonMetrics reason = "metrics" // a warning: the cluster's metrics are unavailable
)

// healthDetails are the details of a health check, for the configuration page.
type healthDetails struct {
	Reason   reason       `json:"reason"`
	URL      string       `json:"url"`
	Version  string       `json:"version,omitempty"`
	Lanes    []laneHealth `json:"lanes"`
	Warnings []string     `json:"warnings"`
}

type laneHealth struct {
	Name        string          `json:"name"`
	Target      string          `json:"target"`
	Reachable   bool            `json:"reachable"`
	Phase       api.Phase       `json:"phase"`
	Mode        api.Mode        `json:"mode"`
	Speculation api.Speculation `json:"speculation"`
	Concurrency api.Concurrency `json:"concurrency"`
}

// CheckHealth tests the connection to the load generator, its target and the cluster's metrics, and reports what is
// wrong. Users who may not operate receive only whether it works. It never returns an error.
func (a *App) CheckHealth(ctx context.Context, req *backend.CheckHealthRequest) (*backend.CheckHealthResult, error) {
	d := healthDetails{Reason: reasonNone, Lanes: []laneHealth{}, Warnings: []string{}}
	status, text := a.examine(ctx, &d)
	if !a.may(req.PluginContext.User, operate) {
		d = healthDetails{Reason: d.Reason, Lanes: []laneHealth{}, Warnings: []string{}}
		switch {
		case status == backend.HealthStatusOk:
			text = "The load generator is healthy."
		case d.Reason == reasonNoURL:
			text = sentence(noURL)
		default:
			text = sentence(cmp.Or(outlines[d.Reason], "the load generator is unhealthy") + askAdmin)
		}
	}
	details, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	return &backend.CheckHealthResult{Status: status, Message: text, JSONDetails: details}, nil
}

func (a *App) examine(ctx context.Context, d *healthDetails) (backend.HealthStatus, string) {
	if a.problem != nil {
		return a.unwell(d, a.problem)
	}
	d.URL = a.settings.SidecarURL // not earlier: an invalid URL may contain a password
	ctx, cancel := context.WithTimeout(httpclient.WithResponseLimit(ctx, a.limits.answer), healthTimeout)
	defer cancel()
	status, err := a.client.Status(ctx)
	if err != nil {
		return a.unwell(d, err)
	}
	if d.Version = status.Version; d.Version == "" || len(status.Lanes) == 0 {
		return a.unwell(d, errors.New("the response has no version or no lanes; check the URL"))
	}
	snapshot, err := a.client.Snapshot(ctx)
	if err != nil {
		return a.unwell(d, err)
	}
	return a.diagnose(d, snapshot.Lanes)
}

// unwell returns the status and the message of an error. A load generator accepts every status call, so a server that
// refuses one is not a load generator.
func (a *App) unwell(d *healthDetails, err error) (backend.HealthStatus, string) {
	f := a.explain(err)
	d.Reason = f.reason
	switch f.reason {
	case reasonNoURL:
		return backend.HealthStatusError,
			"The Load generator URL is not set. Enter it, such as http://127.0.0.1:8088, and save."
	case reasonCall:
		d.Reason = reasonForeign
		return backend.HealthStatusError, fmt.Sprintf("The server at %s is not a KV Booth load generator: %s.",
			a.settings.SidecarURL, f.Detail)
	}
	return backend.HealthStatusError, sentence(f.Detail)
}

// diagnose returns the status and the message for the lanes that the load generator reports.
func (a *App) diagnose(d *healthDetails, lanes []api.LaneSnapshot) (backend.HealthStatus, string) {
	var down, doing []string
	for _, l := range lanes {
		s := l.State
		d.Lanes = append(d.Lanes, laneHealth{
			Name: l.Name, Target: l.Target.URL, Reachable: l.Target.Reachable,
			Phase: s.Phase, Mode: s.Mode, Speculation: s.Speculation, Concurrency: s.Concurrency,
		})
		if !l.Target.Reachable {
			is := "is down"
			if status := l.Target.ProblemStatus; status != 0 {
				is = fmt.Sprintf("answers %d", status)
			}
			down = append(down, fmt.Sprintf("the target %s of lane %s %s: %s", l.Target.URL, l.Name, is, l.Target.Problem))
		}
		if !l.Cluster.Available {
			d.Warnings = append(d.Warnings, fmt.Sprintf("cluster metrics for lane %s are unavailable: %s", l.Name,
				l.Cluster.Problem))
		}
		doing = append(doing, activity(l))
	}
	found := fmt.Sprintf("Load generator %s answers at %s", d.Version, a.settings.SidecarURL)
	switch {
	case len(down) > 0:
		d.Reason = reasonTarget
		return backend.HealthStatusError, sentence(found + ", but " + strings.Join(down, "; "))
	case len(d.Warnings) > 0:
		d.Reason = reasonMetrics
		return backend.HealthStatusOk, sentence(found + ": " + strings.Join(doing,
			"; ") + ". Warning: " + strings.Join(d.Warnings, "; "))
	}
	return backend.HealthStatusOk, sentence(found + ": " + strings.Join(doing, "; "))
}

func activity(l api.LaneSnapshot) string {
	s := l.State
	text := fmt.Sprintf("lane %s is %s, %s", l.Name, s.Phase, s.Mode.Name())
	if s.Running {
		text += fmt.Sprintf(" with %d conversations", s.Concurrency.Actual)
	}
	return text
}

// sentence turns a text into a sentence, with a capital and a full stop.
func sentence(text string) string {
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}
