package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
)

// targets examines each lane's server.
func (e *exam) targets(ctx context.Context, all *findings) {
	lanes := e.lanes()
	if len(lanes) == 0 {
		all.skip("the target: the load generator does not report its URL",
			"fix the load generator, or set --target-url")
	}
	for _, l := range lanes {
		found := findings{}
		e.target(ctx, &found, l)
		for _, f := range found {
			all.add(f.Severity, l.prefix(e)+f.Found, f.Do)
		}
	}
}

// key returns the API key for a lane's server, and the environment variable that sets it.
func (e *exam) key(l lane) (key, variable string) {
	if l.name == api.TwinLane {
		return e.TwinKey, "LOADGEN_TWIN_TARGET_API_KEY"
	}
	return e.TargetKey, "LOADGEN_TARGET_API_KEY"
}

func (e *exam) target(ctx context.Context, all *findings, l lane) {
	key, variable := e.key(l)
	a, err := e.get(ctx, l.at("models"), key)
	switch {
	case err != nil && l.seen && !isLoopback(l.url): // on loopback, the load generator has no better access
		all.skip(fmt.Sprintf("%s is unreachable from here (%v), although the load generator reaches it", l.url, err),
			"run this where the load generator runs, or forward the frontend's port and set --target-url")
		return
	case err != nil:
		all.problem(fmt.Sprintf("%s is unreachable: %v", l.url, err),
			"start the server, or correct target.url; on Kubernetes check the frontend's pod: kubectl get pods")
		return
	case a.code == http.StatusUnauthorized || a.code == http.StatusForbidden:
		all.skip(fmt.Sprintf("%s requires an API key", l.url), "set "+variable+" to the load generator's key")
		return
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := a.read(&list); err != nil {
		all.problem(fmt.Sprintf("%s does not list its models: %v", l.url, err),
			"see the frontend's log; target.url must be an OpenAI-compatible server, with or without /v1")
		return
	}
	models := []string{}
	for _, m := range list.Data {
		models = append(models, m.ID)
	}
	dynamo := e.instances(ctx, all, l)
	switch {
	case len(models) == 0:
		all.problem("no worker has registered: "+l.url+" lists no model",
			"see the workers' logs: they register when the weights are loaded and the frontend finds them "+
				"(the same discovery, the same Dynamo namespace)")
		return
	case l.model != "" && !slices.Contains(models, l.model):
		served := strings.Join(models, ", ")
		all.problem(fmt.Sprintf("%s does not serve %s; it serves %s", l.url, l.model, served),
			"set target.model to one of these, or check why the workers of that model have not registered")
		return
	}
	if l.model == "" {
		l.model = models[0]
	}
	all.ok(fmt.Sprintf("%s serves %s", l.url, l.model))
	e.events(ctx, all, l, dynamo)
}

// instances compares the workers of a Dynamo frontend with the expected number. It returns whether the server is a
// Dynamo frontend.
func (e *exam) instances(ctx context.Context, all *findings, l lane) (dynamo bool) {
	key, _ := e.key(l)
	a, err := e.get(ctx, l.url+"/health", key)
	var health struct {
		Instances []struct {
			Endpoint string `json:"endpoint"`
			ID       uint64 `json:"instance_id"`
		} `json:"instances"`
	}
	if err != nil || a.read(&health) != nil || health.Instances == nil {
		all.skip("the number of workers: "+l.url+"/health is not that of a Dynamo frontend", "")
		return false
	}
	n := 0
	for _, i := range health.Instances {
		if i.Endpoint == "generate" {
			n++
		}
	}
	const do = "see its log and start it again; on Kubernetes: kubectl get pods, kubectl logs --previous"
	switch {
	case l.workers == 0:
		all.ok(fmt.Sprintf("%d workers have registered; "+
			"deployment.workers is not set, so the expected number is unknown", n))
	case n < l.workers:
		text := fmt.Sprintf("%d of %d workers have registered", n, l.workers)
		if down := e.unreachableWorkers(ctx, l); len(down) > 0 {
			text += "; not responding: " + strings.Join(down, ", ")
		}
		all.problem(text, do)
	case n > l.workers:
		all.warn(fmt.Sprintf("%d workers have registered, deployment.workers is %d", n, l.workers),
			"correct deployment.workers, or find the extra worker")
	default:
		all.ok(fmt.Sprintf("%d of %d workers have registered", n, l.workers))
	}
	return true
}

// unreachableWorkers returns the names of a lane's workers that Prometheus cannot scrape. The frontend no longer lists
// workers that have disappeared.
func (e *exam) unreachableWorkers(ctx context.Context, l lane) (names []string) {
	pages, err := e.pages(ctx)
	if err != nil {
		return nil
	}
	for _, p := range pages {
		if p.Health == "down" && p.inNamespace(l.namespace) && !strings.Contains(p.Labels["job"], "frontend") {
			names = append(names, p.name())
		}
	}
	return names
}

// events checks whether the router receives the events of the caches.
func (e *exam) events(ctx context.Context, all *findings, l lane, dynamo bool) {
	if l.live != nil && l.live.State.Phase != api.PhaseStopped {
		for _, n := range l.live.Target.Notices {
			all.warn(strings.TrimSuffix(n, "."), "see the notices of the target in docs/troubleshoot.md")
		}
		liveEvents(all, l)
		return
	}
	p, err := e.probe(ctx, l, dynamo)
	if err != nil {
		all.problem("a short request fails: "+err.Error(), "see the logs of frontend and workers")
		return
	}
	defer p.client.Close()
	all.ok(fmt.Sprintf("%d short requests got streamed answers", p.requests))
	p.report(all, l, dynamo)
	e.router(ctx, all, p)
}

// Remedies for missing events.
const (
	publishEvents = "let the workers publish KV events (TensorRT-LLM: --publish-kv-events, before Dynamo 1.3 " +
		"--publish-events-and-metrics; vLLM: --kv-events-config; SGLang: --kv-events-config) " +
		"on the event plane that the frontend listens on, with the same block size"
	enableEvents = "start the frontend with KV events (not --no-router-kv-events, " +
		"DYN_ROUTER_USE_KV_EVENTS=false), and " + publishEvents
)

// liveEvents evaluates the running workload, because further requests would change its figures.
func liveEvents(all *findings, l lane) {
	kv := l.live.Cluster.KV
	const running = "a workload is running, so no request was sent"
	switch {
	case l.mode != api.ModeKV:
		all.skip(notObserved(l.mode)+"; "+running, "switch to kv and try again")
	case kv.PredictedRatio == nil:
		all.skip("whether the router receives KV events: it has reported no predicted hit rate in the last 60 s; "+
			running, "try again in a minute, or stop the workload")
	case *kv.PredictedRatio > 0:
		all.ok(fmt.Sprintf("the router knows the caches: predicted hit rate %s over the last 60 s; %s",
			api.Percent(*kv.PredictedRatio), running))
	case kv.HitRatio != nil && *kv.HitRatio == 0:
		all.skip("whether the router receives KV events: no turn of the last 60 s repeated an earlier prefix; "+
			running, "try again in a minute, or stop the workload")
	default:
		all.problem("the router receives no KV events: predicted hit rate 0 over the last 60 s; "+running, publishEvents)
	}
}

// notObserved returns the reason why events cannot be observed in a mode.
func notObserved(m api.Mode) string {
	if m == api.ModeKV || m == "" {
		return "whether the router receives KV events: it reports no predicted hit rate"
	}
	name := strings.ReplaceAll(string(m), "_", "-")
	return fmt.Sprintf("whether the router receives KV events: mode %s does not use them", name)
}
