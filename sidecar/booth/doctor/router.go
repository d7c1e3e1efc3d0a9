package doctor

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster/router"
)

// The probe of the connection sends pairs of requests over one connection: one at once after the answer before it, and
// one after a pause. Nagle's algorithm against a delayed acknowledgment costs the first one about 40 ms.
const (
	connectionPairs = 3
	connectionPause = 100 * time.Millisecond
	delayFrom       = 20 * time.Millisecond
	connectionMost  = 4 * time.Second // the probe begins no pair after that
)

// recognize returns the router in front of a lane's workers, or nil, and remarks on the settings.
func (e *exam) recognize(ctx context.Context, l lane, p probed) (*router.Router, []router.Remark) {
	key, _ := e.key(l)
	settings := router.Settings{
		Router: e.setting("target.router"), WorkerHeader: e.setting("target.worker_header"),
		Session: e.setting("target.session"), RequestID: e.setting("target.request_id"),
	}
	if l.name == api.TwinLane { // the setting names the router of the main lane
		settings.Router = ""
	}
	return settings.Identify(router.Evidence{
		Header: p.header, Instance: p.instance,
		Get: func(path string) (int, []byte) {
			a, err := e.get(ctx, l.url+path, key)
			if err != nil {
				return 0, nil
			}
			return a.code, a.body
		},
	})
}

// router reports the router, what it shows of a turn, and what it does to a request.
func (e *exam) router(ctx context.Context, all *findings, l lane, p probed) {
	r, remarks := e.recognize(ctx, l, p)
	for _, m := range remarks {
		all.warn(m.Text, m.Remedy)
	}
	name := "the router"
	if r == nil {
		all.ok("no known router is recognized in front of the workers; target.router would name it")
	} else {
		name = r.Name
		all.ok("the router is " + name + metricsOf(r.Metrics))
	}
	e.worker(all, r, p)
	if p.countsCached {
		all.ok(fmt.Sprintf("cached tokens come from usage: %d of a repeated prompt", p.cached))
	} else {
		all.skip("cached tokens: usage does not report them", "let the engines report them (vLLM: "+
			"--enable-prompt-tokens-details; SGLang: --enable-cache-report); otherwise the workers' counters are used, "+
			"if cluster.metrics_urls or Prometheus has them")
	}
	if r != nil {
		e.requests(all, r)
	}
	if r == nil || r.ID != router.Dynamo {
		e.connection(ctx, all, l, name)
	}
}

// metricsOf returns the names and the place of a router's metrics, for a finding.
func metricsOf(m router.Metrics) string {
	var names []string
	for _, name := range []string{m.Requests, m.Running, m.Waiting, m.Queued, m.Errors} {
		if name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := "; its metrics: " + strings.Join(names, ", ")
	if m.Page != "" {
		text += ", at " + m.Page
	}
	if m.UntilHeaders {
		text += "; " + m.Latency + " ends at the response's headers, before the first token"
	}
	return text
}

// worker adds a finding on the header or field that names the worker of a turn.
func (e *exam) worker(all *findings, r *router.Router, p probed) {
	names := router.WorkerHeaders(e.setting("target.worker_header"))
	i := slices.IndexFunc(names, func(name string) bool { return p.header.Get(name) != "" })
	switch {
	case i >= 0:
		all.ok(fmt.Sprintf("the worker of a turn is known by the response header %s, such as %s", names[i],
			p.header.Get(names[i])))
	case p.instance:
		all.ok("the worker of a turn is known by nvext.worker_id")
	case r != nil:
		all.skip("the worker of a turn: "+r.Worker, nameWorker)
	default:
		all.skip("the worker of a turn: no known header names it", nameWorker)
	}
}

const nameWorker = "let the engines or the router send a header that names the worker, and set " +
	"target.worker_header to it; without it, spread and same worker as the turn before stay unknown"

// requests adds a finding on what the router drops from requests.
func (e *exam) requests(all *findings, r *router.Router) {
	if len(r.Drops) > 0 {
		field, isField := strings.CutPrefix(e.setting("target.session"), "body:")
		text := r.Name + " drops these fields of a request: " + strings.Join(r.Drops, ", ")
		if isField && slices.Contains(r.Drops, field) {
			all.problem(text, "target.session cannot be body:"+field+"; it can be "+cmp.Or(strings.Join(r.Sessions, ", "),
				"no field of the body"))
		} else {
			all.ok(text)
		}
	}
}

// connection measures whether a request at once on a reused connection gets its first token later than one after a
// pause.
func (e *exam) connection(ctx context.Context, all *findings, l lane, name string) {
	var atOnce, paused time.Duration
	began := time.Now()
	for i := 0; i < connectionPairs && time.Since(began) < connectionMost; i++ {
		for _, pause := range []time.Duration{connectionPause, 0} {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			d, err := e.firstToken(ctx, l)
			if err != nil {
				all.skip("the connection: a short request fails: "+err.Error(), "see the router's log")
				return
			}
			shortest := &atOnce
			if pause > 0 {
				shortest = &paused
			}
			if *shortest == 0 || d < *shortest {
				*shortest = d
			}
		}
	}
	text := fmt.Sprintf("first token of a request on a reused connection: %.1f ms at once after the answer before it, "+
		"%.1f ms after a pause of %v", milliseconds(atOnce), milliseconds(paused), connectionPause)
	if atOnce-paused < delayFrom {
		all.ok(text)
		return
	}
	all.warn(text+fmt.Sprintf(": %s adds %.0f ms where a request follows at once", name, milliseconds(atOnce-paused)),
		"set think_time to 60ms or more, or expect it in every TTFT but the first of a connection; the cause is Nagle's "+
			"algorithm in the router")
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// firstToken sends a short request and returns the time until the first text of its answer.
func (e *exam) firstToken(ctx context.Context, l lane) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := e.chatRequest(ctx, l, "Hello.", false)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	res, err := e.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("it returned %d", res.StatusCode)
	}
	var first time.Duration
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() { // to the end, so that the connection is reused
		if first == 0 && strings.HasPrefix(lines.Text(), "data:") {
			if r, err := readStream(lines.Bytes()); err == nil && r.text > 0 {
				first = time.Since(began)
			}
		}
	}
	if first == 0 {
		first = time.Since(began)
	}
	return first, lines.Err()
}
