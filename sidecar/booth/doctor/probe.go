package doctor

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/cluster/probe"
	"kvbooth/sidecar/loadgen/cluster/router"
)

const (
	probeTokens   = 4  // per answer
	probeText     = 40 // sentences in front of each question: about 25 blocks of 32 tokens
	probeRepeats  = 5  // maximum, because events arrive with a delay
	probeInterval = 300 * time.Millisecond
	probeTimeout  = 6 * time.Second // timeout of a request to an idle server
)

// probeSentence is repeated in the prompt of the probe.
const probeSentence = "The booth asks this server the same long question twice before the event begins, " +
	"and counts what it remembers. "

// routedByKV is the frontend's counter of requests that it routed by the content of the caches. The counter of applied
// events is not usable: without events, it counts those that the frontend makes itself.
const routedByKV = "dynamo_component_router_kv_hit_rate_count"

// probed is the result of a few requests with the same beginning.
type probed struct {
	options   chat.Options
	client    *chat.Client
	router    *router.Router  // nil: not recognized
	remarks   []router.Remark // on settings that the answers contradict
	requests  int
	predicted *float64 // best prediction for a repeat, 0 to 1; nil without a prediction
	counts    bool     // an answer had a count of cached tokens
	cached    int      // largest number of cached tokens in a repeat's prompt
	routed    *float64 // growth of the router's counter of predictions; nil if there is no counter
	worker    string   // of the last answer; "" where it names none
}

// probe has the load generator's client find out what the server can do. Then it sends a long prompt, and repeats it
// until the router predicts a hit.
func (e *exam) probe(ctx context.Context, l lane, dynamo bool) (p probed, err error) {
	if p.options, err = e.chat(l, &p.router, &p.remarks); err != nil {
		return p, err
	}
	if p.client, err = chat.New(p.options); err != nil {
		return p, err
	}
	before, _ := e.routed(ctx, l) // a missing counter starts at 0
	if failure := p.client.Probe(ctx); failure != nil {
		return p, failure
	}
	prompt := "Probe " + rand.Text() + ". " + strings.Repeat(probeSentence, probeText)
	for p.requests <= probeRepeats {
		r, err := short(ctx, p.client, prompt)
		if err != nil {
			return p, err
		}
		p.requests++
		p.worker = r.Worker
		p.counts = p.counts || r.Usage != nil && r.Usage.HasCached
		if p.requests > 1 {
			if r.Usage != nil {
				p.cached = max(p.cached, r.Usage.Cached)
			}
			if r.Timing.HasPredicted && (p.predicted == nil || r.Timing.PredictedHitRatio > *p.predicted) {
				p.predicted = &r.Timing.PredictedHitRatio
			}
		}
		if p.predicted != nil && *p.predicted > 0 || !dynamo && p.requests > 1 {
			break
		}
		if err := probe.Pause(ctx, probeInterval); err != nil {
			return p, err
		}
	}
	if after, ok := e.routed(ctx, l); ok {
		p.routed = new(after - before)
	}
	return p, nil
}

// chat returns the options of the load generator's client of a lane's server. Its probe sets found and remarks.
func (e *exam) chat(l lane, found **router.Router, remarks *[]router.Remark) (o chat.Options, err error) {
	settings := router.Settings{
		Router: e.setting("target.router"), WorkerHeader: e.setting("target.worker_header"),
		Session: e.setting("target.session"), RequestID: e.setting("target.request_id"),
	}
	if l.name == api.TwinLane { // the setting names the router of the main lane
		settings.Router = ""
	}
	key, _ := e.key(l)
	o = chat.Options{
		URL: l.base.String(), Model: l.model, APIKey: key, WorkerHeaders: router.WorkerHeaders(settings.WorkerHeader),
		Settings: probeSettings,
		Recognize: func(shown chat.Evidence) (r chat.Recognized) {
			if *found, *remarks = settings.Identify(router.Evidence(shown)); *found != nil {
				r.Router = (*found).ID
			}
			return r
		},
	}
	if settings.Session != "" {
		err = o.Session.UnmarshalText([]byte(settings.Session))
	}
	return o, err
}

// probeSettings are those of the clients of probes.
var probeSettings = chat.Settings{
	ConnectTimeout: callTimeout, FirstTokenTimeout: probeTimeout, TurnTimeout: probeTimeout,
}

// short sends a request for a short answer.
func short(ctx context.Context, client *chat.Client, prompt string) (chat.Result, error) {
	return probe.Ask(ctx, client, chat.Request{
		Messages:  []chat.Message{{Role: chat.RoleUser, Text: prompt}},
		MaxTokens: probeTokens,
	})
}

// report adds a finding on KV events.
func (p probed) report(all *findings, l lane, dynamo bool) {
	predicts := p.predicted != nil && *p.predicted > 0
	byKV := p.routed != nil && *p.routed > 0
	switch {
	case predicts:
		all.ok(fmt.Sprintf("the router knows the caches: it predicts a hit rate of %s for a repeated prompt "+
			"(from the workers' KV events, or with --no-router-kv-events from its own routing)", api.Percent(*p.predicted)))
	case byKV || l.mode == api.ModeKV && p.predicted != nil && p.routed == nil:
		all.problem(fmt.Sprintf("the router receives no KV events: it predicted a hit rate of 0 for %d repeats "+
			"of a prompt, although the engines had %d of its tokens cached", p.requests-1, p.cached), enableEvents)
	case dynamo:
		all.skip(notObserved(l.mode), "switch to kv and try again")
	}
}

// routed returns the sum of the counter's series in the frontend's metrics; false if there are none.
func (e *exam) routed(ctx context.Context, l lane) (sum float64, ok bool) {
	a, err := e.get(ctx, l.url+"/metrics", "")
	if err != nil || a.code != http.StatusOK {
		return 0, false
	}
	for line := range strings.Lines(string(a.body)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if name, _, _ := strings.Cut(series, "{"); name != routedByKV {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			sum, ok = sum+v, true
		}
	}
	return sum, ok
}
