package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/cluster/probe"
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

// router reports the router, what it shows of a turn, and what it does to a request.
func (e *exam) router(ctx context.Context, all *findings, p probed) {
	r := p.router
	for _, m := range p.remarks {
		all.warn(m.Text, m.Remedy)
	}
	name := "the router"
	if r == nil {
		all.ok("no known router is recognized in front of the workers; target.router would name it")
	} else {
		name = r.Name
		all.ok("the router is " + name + metricsOf(r.Metrics))
	}
	p.reportWorker(all)
	if p.counts {
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
		connection(ctx, all, p.client, name)
	}
	if e.Router {
		e.policy(ctx, all, p)
	}
}

// policy reports what the router does with prompts.
func (e *exam) policy(ctx context.Context, all *findings, p probed) {
	pages := strings.Split(e.setting("cluster.metrics_urls"), ",")
	report, err := probe.Run(ctx, probe.Options{
		Chat: p.options, Engines: probe.FindEngines(ctx, &http.Client{Timeout: callTimeout}, pages),
	})
	if err != nil {
		all.skip("what the router does with prompts: a request fails: "+err.Error(), "see the router's log")
		return
	}
	for _, f := range report.Findings() {
		if f.Verdict == probe.Unclear {
			all.skip(f.Text, f.Remedy)
			continue
		}
		all.ok(f.Text)
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

// reportWorker adds a finding on the header or field that names the worker of a turn.
func (p probed) reportWorker(all *findings) {
	switch by := p.client.Recognized().Worker; {
	case by == workerField:
		all.ok("the worker of a turn is known by " + by)
	case by != "":
		all.ok(fmt.Sprintf("the worker of a turn is known by the response header %s, such as %s", by, p.worker))
	case p.router != nil:
		all.skip("the worker of a turn: "+p.router.Worker, nameWorker)
	default:
		all.skip("the worker of a turn: no known header names it", nameWorker)
	}
}

// workerField is the field of Dynamo's answers that names the worker.
const workerField = "nvext.worker_id"

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
func connection(ctx context.Context, all *findings, client *chat.Client, name string) {
	var atOnce, paused time.Duration
	began := time.Now()
	for i := 0; i < connectionPairs && time.Since(began) < connectionMost; i++ {
		for _, wait := range []time.Duration{connectionPause, 0} {
			if probe.Pause(ctx, wait) != nil {
				return
			}
			r, err := short(ctx, client, "Hello.")
			if err != nil {
				all.skip("the connection: a short request fails: "+err.Error(), "see the router's log")
				return
			}
			shortest := &atOnce
			if wait > 0 {
				shortest = &paused
			}
			if d, ok := r.TTFT(); ok && (*shortest == 0 || d < *shortest) {
				*shortest = d
			}
		}
	}
	text := fmt.Sprintf("first token of a request on a reused connection: %s at once after the answer before it, "+
		"%s after a pause of %v", api.Milliseconds(atOnce.Seconds()), api.Milliseconds(paused.Seconds()), connectionPause)
	if atOnce-paused < delayFrom {
		all.ok(text)
		return
	}
	all.warn(text+fmt.Sprintf(": %s adds %s where a request follows at once", name,
		api.Milliseconds((atOnce-paused).Seconds())),
		"set think_time to 60ms or more, or expect it in every TTFT but the first of a connection; the cause is Nagle's "+
			"algorithm in the router")
}
