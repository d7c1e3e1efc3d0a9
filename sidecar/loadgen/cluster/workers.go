package cluster

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"kvbooth/sidecar/api"
)

// worker is one engine with its samples.
type worker struct {
	id       string // decimal, "" for an engine that is no Dynamo instance
	instance string // the host and port of its metrics page
	pod      string
	reading
	gpus []gpu
}

// roster finds the worker that a sample belongs to.
type roster struct {
	workers    []*worker
	byIdentity map[identity]*worker
	byInstance map[string][]*worker
	byPod      map[string][]*worker
	otherGPUs  []api.HostGPUs // GPUs without a known worker
	byOrder    []string       // hosts whose GPUs were assigned by index
}

// identity distinguishes workers: by their id, or by their place where they have none.
type identity struct {
	id string
	place
}

// newRoster finds the workers of a reading: Dynamo instances by the series of
// their generate endpoint, then engines without Dynamo, one at each scrape target.
// The frontend's list of workers, or another router's, is used only where no worker's own
// metrics exist.
func newRoster(ctx context.Context, r reading) *roster {
	ro := &roster{byIdentity: map[identity]*worker{}, byInstance: map[string][]*worker{}, byPod: map[string][]*worker{}}
	for _, s := range slices.Concat(r.samples(workerInflight), r.samples(workerRequests)) {
		ro.enlist(workerID(s), s)
	}
	for _, m := range []metric{running, waiting, cacheUse} {
		for _, s := range r.samples(m) {
			if engineOf(s.Name) != "" && len(ro.at(s)) == 0 {
				ro.enlist("", s)
			}
		}
	}
	if len(ro.workers) == 0 {
		for _, s := range r.samples(frontendWorkers) {
			ro.enlist(workerID(s), Sample{})
		}
	}
	if len(ro.workers) == 0 {
		for _, s := range r.samples(otherRouters.requests) {
			if host := routedTo(s); host != "" {
				ro.enlist("", Sample{Labels: model.LabelSet{model.InstanceLabel: model.LabelValue(host)}})
			}
		}
	}
	ro.assign(ctx, r)
	return ro
}

func (ro *roster) enlist(id string, s Sample) {
	w := &worker{id: id, instance: string(s.Labels[model.InstanceLabel]), pod: string(s.Labels["pod"]), reading: reading{}}
	key := identity{id: id}
	if id == "" {
		key.place = placeOf(s)
	}
	if ro.byIdentity[key] != nil {
		return
	}
	ro.workers = append(ro.workers, w)
	ro.byIdentity[key] = w
	ro.byInstance[w.instance] = append(ro.byInstance[w.instance], w)
	ro.byPod[w.pod] = append(ro.byPod[w.pod], w)
}

// assign distributes the samples among the workers, until ctx ends.
func (ro *roster) assign(ctx context.Context, r reading) {
	for _, samples := range r {
		for _, s := range samples {
			if ctx.Err() != nil {
				return
			}
			if w := ro.owner(s); w != nil {
				w.put(s)
			}
		}
	}
	ro.assignGPUs(gpus(r))
}

// owner returns the worker that wrote a sample; nil where there is none or where it
// cannot be determined. The frontend writes dynamo_component series under an id of
// its own, which is no worker's.
func (ro *roster) owner(s Sample) *worker {
	if host := routedTo(s); host != "" {
		return only(ro.byInstance[host])
	}
	id := ""
	if strings.HasPrefix(s.Name, "dynamo_component_") {
		id = workerID(s)
	} else if engineOf(s.Name) == "" {
		return nil
	}
	if id == "" {
		return only(ro.at(s))
	}
	return ro.byIdentity[identity{id: id}]
}

// at returns the workers behind the target that a sample was scraped from. An
// engine's metrics name no worker, but come from the worker's own port or, in
// Kubernetes, from its pod.
func (ro *roster) at(s Sample) []*worker {
	pod := string(s.Labels["pod"])
	var found []*worker
	for _, w := range ro.byInstance[string(s.Labels[model.InstanceLabel])] {
		if pod == "" || w.pod == "" || pod == w.pod {
			found = append(found, w)
		}
	}
	if len(found) == 0 && pod != "" {
		found = ro.byPod[pod]
	}
	return found
}

func only(workers []*worker) *worker {
	if len(workers) != 1 {
		return nil
	}
	return workers[0]
}

// workerID returns the id in a sample's worker_id label as a decimal string, ""
// where it has none. The metric decides on the base: dynamo_component series are
// written by a process about itself, in hexadecimal without a prefix;
// dynamo_frontend series are written by the frontend about its workers, in
// decimal. The digits cannot decide, since a hexadecimal id may lack letters. A
// value that is no 64-bit hexadecimal number (decimal ids have up to 20 digits) is
// returned unchanged.
func workerID(s Sample) string {
	if s.key != 0 {
		return s.worker
	}
	raw := string(s.Labels["worker_id"])
	if !strings.HasPrefix(s.Name, "dynamo_component_") {
		return raw
	}
	id, err := strconv.ParseUint(raw, 16, 64)
	if err != nil {
		return raw
	}
	return strconv.FormatUint(id, 10)
}

// list returns the workers as in the API, sorted by name.
func (ro *roster) list() []api.Worker {
	list := make([]api.Worker, 0, len(ro.workers))
	for _, w := range ro.workers {
		shown := w.describe()
		if w.id == "" && w.pod != "" && len(ro.byInstance[w.instance]) > 1 { // a page with the series of several pods
			shown.ID = w.pod
		}
		list = append(list, shown)
	}
	slices.SortFunc(list, byName)
	return list
}

func byName(a, b api.Worker) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
}

func (w *worker) describe() api.Worker {
	gpus := make([]api.GPU, 0, len(w.gpus))
	for _, g := range w.gpus {
		gpus = append(gpus, g.GPU)
	}
	slices.SortStableFunc(gpus, byIndex)
	return api.Worker{
		ID:           cmp.Or(w.id, w.instance),
		Name:         w.name(),
		Inflight:     w.inflight(),
		Waiting:      cmp.Or(w.sum(waiting), w.sum(otherRouters.waiting)),
		QueueSeconds: w.ratio(queueSum, queueCount),
		Routed:       cmp.Or(w.sum(workerRequests), w.sum(otherRouters.requests)),
		CacheUse:     w.mean(cacheUse),
		HitRatio:     w.hitRatio(),
		NotReported:  w.notReported(),
		GPUs:         gpus,
	}
}

// notReported lists the API fields of the figures that the worker's pages have no metric for.
func (w *worker) notReported() (fields []string) {
	for _, figure := range []struct {
		field string
		known bool
	}{
		{"inflight", w.inflight() != nil},
		{"waiting", w.has(waiting) || w.has(otherRouters.waiting)},
		{"queue_seconds", w.has(queueSum)},
		{"routed", w.has(workerRequests) || w.has(otherRouters.requests)},
		{"cache_use", w.has(cacheUse)},
		{"hit_ratio", w.has(engineHitRate) || w.countsHits()},
	} {
		if !figure.known {
			fields = append(fields, figure.field)
		}
	}
	return fields
}

// name returns the pod or the address. A worker whose own metrics are missing is named by the end of its id.
func (w *worker) name() string {
	const tail = 6
	if name := cmp.Or(w.pod, w.instance); name != "" {
		return name
	}
	return "worker " + w.id[max(0, len(w.id)-tail):]
}

// inflight returns Dynamo's count, or else the requests that the engine computes, or else the router's count.
func (w *worker) inflight() *float64 {
	return cmp.Or(w.sum(workerInflight), w.sum(running), w.sum(otherRouters.running))
}

// hitRatio returns the hit rate over the window by the engine's counters, or else the engine's gauge, whose period
// differs.
func (w *worker) hitRatio() *float64 {
	if w.countsHits() {
		return asRatio(w.ratio(prefixHits, prefixQueries))
	}
	return w.mean(engineHitRate)
}

func (w *worker) countsHits() bool { return w.has(prefixHits) && w.has(prefixQueries) }
