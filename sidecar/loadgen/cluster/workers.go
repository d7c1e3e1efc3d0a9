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

// worker is one engine, and the samples that speak of it.
type worker struct {
	id       string // decimal, "" for an engine that is no Dynamo instance
	instance string // the host and port of its metrics
	pod      string
	reading
	gpus []gpu
}

// roster finds the worker that a sample speaks of, by what a sample may name.
type roster struct {
	workers    []*worker
	byIdentity map[identity]*worker
	byInstance map[string][]*worker
	byPod      map[string][]*worker
}

// identity tells workers apart: by their id, or by their instance where they have none.
type identity struct{ id, instance string }

// newRoster finds the workers of a reading: Dynamo instances by the series of
// their generate endpoint, then engines without Dynamo, one at each scrape target.
// Only where no worker's own metrics were read, the frontend's list of them is taken.
func newRoster(ctx context.Context, r reading) *roster {
	ro := &roster{byIdentity: map[identity]*worker{}, byInstance: map[string][]*worker{}, byPod: map[string][]*worker{}}
	for _, s := range slices.Concat(r.of(workerInflight), r.of(workerRequests)) {
		ro.enlist(workerID(s), s)
	}
	for _, m := range []metric{running, waiting, cacheUse} {
		for _, s := range r.of(m) {
			if engineOf(s.Name) != "" && len(ro.at(s)) == 0 {
				ro.enlist("", s)
			}
		}
	}
	if len(ro.workers) == 0 {
		for _, s := range r.of(frontendWorkers) {
			ro.enlist(workerID(s), Sample{})
		}
	}
	ro.assign(ctx, r)
	return ro
}

func (ro *roster) enlist(id string, s Sample) {
	w := &worker{id: id, instance: string(s.Labels[model.InstanceLabel]), pod: string(s.Labels["pod"]), reading: reading{}}
	key := identity{id: id}
	if id == "" {
		key.instance = w.instance
	}
	if ro.byIdentity[key] != nil {
		return
	}
	ro.workers = append(ro.workers, w)
	ro.byIdentity[key] = w
	ro.byInstance[w.instance] = append(ro.byInstance[w.instance], w)
	ro.byPod[w.pod] = append(ro.byPod[w.pod], w)
}

// assign gives each worker its samples, until ctx ends.
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
	for _, gpu := range gpus(r) {
		if w := ro.user(gpu); w != nil {
			w.gpus = append(w.gpus, gpu)
		}
	}
}

// owner is the worker whose own metric a sample is, nil where it is nobody's or
// not decidable. The frontend writes dynamo_component series under an id of its
// own, which is no worker's.
func (ro *roster) owner(s Sample) *worker {
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

// at gives the workers behind the target that a sample was scraped from. An
// engine's metrics name no worker, but come from the worker's own port, or, in
// Kubernetes, at least from its pod.
func (ro *roster) at(s Sample) []*worker {
	found, pod := ro.byInstance[string(s.Labels[model.InstanceLabel])], string(s.Labels["pod"])
	if len(found) == 0 && pod != "" {
		found = ro.byPod[pod]
	}
	return found
}

// user is the worker that uses a GPU: the one in the pod to which the GPU is
// given, or, on a host without pods, the only one there is.
func (ro *roster) user(gpu gpu) *worker {
	if gpu.pod == "" {
		return only(ro.workers)
	}
	return only(ro.byPod[gpu.pod])
}

func only(workers []*worker) *worker {
	if len(workers) != 1 {
		return nil
	}
	return workers[0]
}

// workerID gives the id in a sample's worker_id label as a decimal string, ""
// where it has none. The metric decides on the base: dynamo_component series are
// written by a process about itself, in hexadecimal without a prefix;
// dynamo_frontend series are written by the frontend about its workers, in
// decimal. The digits cannot decide, since a hexadecimal id may lack letters. A
// value that is no 64-bit hexadecimal number (decimal ids have up to 20 digits)
// is kept as it is.
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

// list gives the workers as the API shows them, by name.
func (ro *roster) list() []api.Worker {
	list := make([]api.Worker, 0, len(ro.workers))
	for _, w := range ro.workers {
		list = append(list, w.describe())
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
	slices.SortFunc(gpus, func(a, b api.GPU) int { return cmp.Compare(a.Index, b.Index) })
	return api.Worker{
		ID:           w.id,
		Name:         w.name(),
		Inflight:     w.inflight(),
		Waiting:      w.sum(waiting),
		QueueSeconds: w.ratio(queueSum, queueCount),
		Routed:       w.sum(workerRequests),
		CacheUse:     w.mean(cacheUse),
		GPUs:         gpus,
	}
}

func (w *worker) name() string {
	const tail = 6
	if name := cmp.Or(w.pod, w.instance); name != "" {
		return name
	}
	return w.id[max(0, len(w.id)-tail):]
}

// inflight is what Dynamo counts. An engine without Dynamo has the requests that
// it runs and those that it keeps waiting.
func (w *worker) inflight() *float64 {
	if n := w.sum(workerInflight); n != nil {
		return n
	}
	runs, waits := w.sum(running), w.sum(waiting)
	if runs == nil || waits == nil {
		return nil
	}
	return new(*runs + *waits)
}

// gpu is a GPU with its type and the pod that it is given to.
type gpu struct {
	api.GPU
	model, pod string
}

// gpuModel is the type of the first GPU that serves, "" where none is known.
func (ro *roster) gpuModel() string {
	for _, w := range ro.workers {
		for _, g := range w.gpus {
			return g.model
		}
	}
	return ""
}

// gpus gives the GPUs of a reading. A scrape that does not honour the exporter's
// labels puts the pod of the GPU's user into exported_pod, and the exporter's own
// into pod. Memory that the driver reserves for itself counts neither as used nor
// in the total.
func gpus(r reading) []gpu {
	const mebibyte = 1 << 20
	type key struct{ host, uuid, index, pod model.LabelValue }
	found := make(map[key]*gpu)
	at := func(s Sample) *gpu {
		l := s.Labels
		k := key{cmp.Or(l["Hostname"], l[model.InstanceLabel]), l["UUID"], l["gpu"], cmp.Or(l["exported_pod"], l["pod"])}
		if found[k] == nil {
			found[k] = &gpu{GPU: api.GPU{Index: string(k.index)}, model: string(l["modelName"]), pod: string(k.pod)}
		}
		return found[k]
	}
	for _, s := range r.of(gpuUtilisation) {
		at(s).Utilisation = new(s.Value / 100)
	}
	for _, s := range r.of(gpuUsed) {
		at(s).MemoryUsed = new(s.Value * mebibyte)
	}
	for _, s := range r.of(gpuFree) {
		if g := at(s); g.MemoryUsed != nil {
			g.MemoryTotal = new(*g.MemoryUsed + s.Value*mebibyte)
		}
	}
	list := make([]gpu, 0, len(found))
	for _, g := range found {
		list = append(list, *g)
	}
	return list
}
