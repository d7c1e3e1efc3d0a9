package cluster

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"kvbooth/sidecar/api"
)

// gpu is a GPU, or an instance of one in MIG mode, with its type, its location and the pod that uses it.
type gpu struct {
	api.GPU
	model, pod string
	host       string // the name that the exporter reports, or else the host of the metrics page
	page       string // the host of the metrics page
	uuid       string
	joules     *float64 // counter since the driver was loaded
	simulated  bool     // the driver version is that of a simulation
}

// gpus returns the GPUs of a reading in the order of their hosts, pods and indices. In MIG mode each instance replaces
// its GPU. A scrape without honor_labels puts the pod that uses the GPU into exported_pod, and the exporter's own pod
// into pod. Where no total is reported, the total is used plus free memory, without what the driver reserves.
func gpus(r reading) []gpu {
	const mebibyte = 1 << 20
	type device struct{ host, uuid, index model.LabelValue }
	type key struct {
		device
		instance, pod model.LabelValue
	}
	found := make(map[key]*gpu)
	divided := make(map[device]bool)
	at := func(s Sample) *gpu {
		l := s.Labels
		k := key{
			device{cmp.Or(l["Hostname"], l[model.InstanceLabel]), l["UUID"], l["gpu"]},
			l["GPU_I_ID"],
			cmp.Or(l["exported_pod"], l["pod"]),
		}
		if found[k] == nil {
			page := hostOf(string(l[model.InstanceLabel]))
			found[k] = &gpu{
				GPU:   api.GPU{Index: string(k.index), Instance: migInstance(l)},
				model: string(l["modelName"]), pod: string(k.pod),
				host: cmp.Or(string(l["Hostname"]), page), page: page, uuid: string(k.uuid),
				simulated: l["DCGM_FI_DRIVER_VERSION"] == "simulated",
			}
			divided[k.device] = divided[k.device] || k.instance != ""
		}
		return found[k]
	}
	each := func(m metric, set func(*gpu, float64)) {
		for _, s := range r.samples(m) {
			set(at(s), s.Value)
		}
	}
	each(gpuUtilization, func(g *gpu, v float64) { g.Utilisation = new(v / 100) })
	each(gpuActive, func(g *gpu, v float64) { g.Utilisation = cmp.Or(g.Utilisation, &v) })
	each(gpuUsed, func(g *gpu, v float64) { g.MemoryUsed = new(v * mebibyte) })
	each(gpuTotal, func(g *gpu, v float64) { g.MemoryTotal = new(v * mebibyte) })
	each(gpuFree, func(g *gpu, v float64) {
		if g.MemoryUsed != nil && g.MemoryTotal == nil {
			g.MemoryTotal = new(*g.MemoryUsed + v*mebibyte)
		}
	})
	each(gpuPower, func(g *gpu, v float64) { g.PowerWatts = &v })
	each(gpuEnergy, func(g *gpu, v float64) { g.joules = new(v / 1000) })
	list := make([]gpu, 0, len(found))
	for k, g := range found {
		if k.instance != "" || !divided[k.device] {
			list = append(list, *g)
		}
	}
	slices.SortFunc(list, func(a, b gpu) int {
		return cmp.Or(cmp.Compare(a.page, b.page), cmp.Compare(a.host, b.host), byIndex(a.GPU, b.GPU),
			cmp.Compare(a.uuid, b.uuid), cmp.Compare(a.pod, b.pod))
	})
	return list
}

// migInstance names an instance of a GPU in MIG mode, such as "2g.20gb #3". It returns "" for a whole GPU.
func migInstance(l model.LabelSet) string {
	if l["GPU_I_ID"] == "" {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%s #%s", l["GPU_I_PROFILE"], l["GPU_I_ID"]))
}

// byIndex puts GPU 2 before GPU 10, and the instances of a GPU in the order of their ids.
func byIndex(a, b api.GPU) int {
	return cmp.Or(byNumber(a.Index, b.Index), byNumber(idOf(a.Instance), idOf(b.Instance)))
}

func idOf(instance string) string {
	_, id, _ := strings.Cut(instance, "#")
	return id
}

// byNumber compares two texts as integers, or as texts if one of them is not an integer.
func byNumber(a, b string) int {
	i, err := strconv.Atoi(a)
	j, err2 := strconv.Atoi(b)
	if err != nil || err2 != nil {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(i, j)
}

// hostOf returns the host part of a host and port.
func hostOf(instance string) string {
	host, _, err := net.SplitHostPort(instance)
	if err != nil {
		return instance
	}
	return host
}

// assignGPUs finds the worker of each GPU, by the first of these that applies:
//   - The pod that uses the GPU, where a worker runs in it. The worker's pod is its
//     label or the host name of its page. Where workers' pods are known, a GPU of
//     another pod belongs to another application and is left out.
//   - The host, where it has one worker, or where there is only one worker at all.
//   - The order on a host with several workers: the first GPUs belong to the worker
//     with the first port. This is a guess, which gpuNotes reports. It requires
//     that each worker gets the same number.
//
// The remaining GPUs are listed under their host.
func (ro *roster) assignGPUs(all []gpu) {
	if len(all) == 0 {
		return
	}
	d := newGPUAssigner(ro.workers)
	for _, g := range all {
		if w, decided := d.workerInPod(g); w != nil {
			g.UUID = g.uuid
			w.gpus = append(w.gpus, g)
		} else if !decided {
			d.waiting = append(d.waiting, g)
		}
	}
	for len(d.waiting) > 0 {
		first := d.waiting[0]
		on := d.workersOnHost(first)
		sameHost := func(g gpu) bool { return g.page == first.page && (len(on) > 0 || g.host == first.host) }
		n := slices.IndexFunc(d.waiting, func(g gpu) bool {
			return !sameHost(g) || !slices.Equal(d.workersOnHost(g), on)
		})
		if n < 0 {
			n = len(d.waiting)
		}
		ro.assignOnHost(d.waiting[:n], on)
		d.waiting = d.waiting[n:]
	}
}

// gpuAssigner looks up workers by pod and by host.
type gpuAssigner struct {
	workers   []*worker
	named     map[string][]*worker // workers by pod, or else by the first part of the host name
	hosts     map[string][]*worker
	podsKnown bool
	waiting   []gpu // GPUs that no pod assigns
}

func newGPUAssigner(workers []*worker) *gpuAssigner {
	d := &gpuAssigner{workers: workers, named: map[string][]*worker{}, hosts: map[string][]*worker{}}
	byPort := slices.SortedFunc(slices.Values(workers), func(a, b *worker) int {
		return cmp.Or(cmp.Compare(len(a.instance), len(b.instance)), cmp.Compare(a.instance, b.instance),
			cmp.Compare(a.id, b.id))
	})
	for _, w := range byPort {
		host := hostOf(w.instance)
		name, _, _ := strings.Cut(host, ".")
		name = cmp.Or(w.pod, name)
		d.named[name] = append(d.named[name], w)
		d.hosts[host] = append(d.hosts[host], w)
		d.podsKnown = d.podsKnown || w.pod != ""
	}
	return d
}

// workerInPod returns the worker in the pod that uses a GPU; nil where there is none
// or more than one. decided is true where the pod settles the question.
func (d *gpuAssigner) workerInPod(g gpu) (w *worker, decided bool) {
	if g.pod == "" {
		return nil, false
	}
	w = only(d.named[g.pod])
	return w, w != nil || d.podsKnown
}

// workersOnHost returns the workers on a GPU's host, or the only worker of the cluster.
func (d *gpuAssigner) workersOnHost(g gpu) []*worker {
	for _, host := range []string{g.host, g.page} {
		if on := d.hosts[host]; host != "" && len(on) > 0 {
			return on
		}
	}
	if g.pod == "" && len(d.workers) == 1 {
		return d.workers
	}
	return nil
}

// assignOnHost distributes the GPUs of a host over its workers in order. Where the
// numbers do not divide evenly, the GPUs are listed under the host.
func (ro *roster) assignOnHost(list []gpu, on []*worker) {
	if len(on) > 0 && len(list)%len(on) == 0 || len(on) == 1 {
		each := len(list) / len(on)
		for i, g := range list {
			on[i/each].gpus = append(on[i/each].gpus, g)
		}
		if len(on) > 1 {
			ro.byOrder = append(ro.byOrder, list[0].page)
		}
		return
	}
	for _, g := range list {
		n := len(ro.otherGPUs)
		if n == 0 || ro.otherGPUs[n-1].Host != g.host {
			ro.otherGPUs = append(ro.otherGPUs, api.HostGPUs{Host: g.host})
			n++
		}
		ro.otherGPUs[n-1].GPUs = append(ro.otherGPUs[n-1].GPUs, g.GPU)
	}
}

// gpuNotes names the hosts whose GPUs are assigned by a guess or not at all.
func (ro *roster) gpuNotes() (notes []string) {
	if len(ro.byOrder) > 0 {
		notes = append(notes, fmt.Sprintf("GPUs of %s are assigned to the workers there by index, because no metric maps "+
			"them to workers", shortList(ro.byOrder)))
	}
	hosts := make([]string, 0, len(ro.otherGPUs))
	for _, h := range ro.otherGPUs {
		hosts = append(hosts, h.Host)
	}
	if len(hosts) > 0 {
		notes = append(notes, fmt.Sprintf("GPUs of %s are listed under their host, because no metric maps them to workers",
			shortList(hosts)))
	}
	return notes
}

// shortList names the first few of a list, and the number of the others.
func shortList(names []string) string {
	const most = 4
	if n := len(names) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return strings.Join(names, ", ")
}

// energies returns what the GPUs of the workers report of their energy, each GPU once. The power of an instance in MIG
// mode is that of the whole GPU and is left out.
func (ro *roster) energies() (all []api.GPUReading) {
	listed := map[string]bool{}
	for _, w := range ro.workers {
		for _, g := range w.gpus {
			one := api.GPUReading{ID: g.host + " " + g.Index + " " + g.uuid, Simulated: g.simulated}
			if g.Instance == "" {
				one.Watts, one.Joules = g.PowerWatts, g.joules
			} else {
				one.Divided = true
			}
			if !listed[one.ID] {
				all = append(all, one)
			}
			listed[one.ID] = true
		}
	}
	return all
}

// gpuModel returns the type of the first GPU that a worker uses, "" where none is known.
func (ro *roster) gpuModel() string {
	for _, w := range ro.workers {
		for _, g := range w.gpus {
			return g.model
		}
	}
	return ""
}
