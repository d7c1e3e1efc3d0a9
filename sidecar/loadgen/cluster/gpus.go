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

// gpu is a GPU, or an instance of one in MIG mode, with its type, where it is, and the pod that it is given to.
type gpu struct {
	api.GPU
	model, pod string
	host       string // as the exporter names it, else the host of its page
	page       string // the host of its page
	uuid       string
}

// gpus gives the GPUs of a reading, in the order of their hosts, pods and indices. In MIG mode each instance stands in
// the place of its GPU. A scrape that does not honour the exporter's labels puts the pod of the GPU's user into
// exported_pod, and the exporter's own into pod. Where no total is reported, memory that the driver reserves for itself
// counts neither as used nor in the total.
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
			}
			divided[k.device] = divided[k.device] || k.instance != ""
		}
		return found[k]
	}
	for _, s := range r.of(gpuUtilisation) {
		at(s).Utilisation = new(s.Value / 100)
	}
	for _, s := range r.of(gpuActive) {
		if g := at(s); g.Utilisation == nil {
			g.Utilisation = new(s.Value)
		}
	}
	for _, s := range r.of(gpuUsed) {
		at(s).MemoryUsed = new(s.Value * mebibyte)
	}
	for _, s := range r.of(gpuTotal) {
		at(s).MemoryTotal = new(s.Value * mebibyte)
	}
	for _, s := range r.of(gpuFree) {
		if g := at(s); g.MemoryUsed != nil && g.MemoryTotal == nil {
			g.MemoryTotal = new(*g.MemoryUsed + s.Value*mebibyte)
		}
	}
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

// migInstance names an instance of a GPU in MIG mode, such as "2g.20gb #3"; "" for a whole GPU.
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

func byNumber(a, b string) int {
	i, err := strconv.Atoi(a)
	j, err2 := strconv.Atoi(b)
	if err != nil || err2 != nil {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(i, j)
}

// hostOf is the host of a host and port.
func hostOf(instance string) string {
	host, _, err := net.SplitHostPort(instance)
	if err != nil {
		return instance
	}
	return host
}

// assignGPUs finds the worker of each GPU. What says most decides:
//   - the pod that the GPU is given to, where it is a worker's: by the worker's label,
//     or by the name under which its page is read. Where workers' pods are known, a
//     GPU of another pod is somebody else's, and left out;
//   - the host, where it has one worker, or where there is but one worker at all;
//   - on a host with several workers, the order: the first GPUs are the worker's with
//     the first port. It is a guess, which aboutGPUs names as one, and made only where
//     each worker gets the same number.
//
// What is left is kept under its host.
func (ro *roster) assignGPUs(all []gpu) {
	if len(all) == 0 {
		return
	}
	d := newDealer(ro.workers)
	for _, g := range all {
		if w, decided := d.inPod(g); w != nil {
			g.UUID = g.uuid
			w.gpus = append(w.gpus, g)
		} else if !decided {
			d.waiting = append(d.waiting, g)
		}
	}
	for len(d.waiting) > 0 {
		first := d.waiting[0]
		on := d.onHost(first)
		alike := func(g gpu) bool { return g.page == first.page && (len(on) > 0 || g.host == first.host) }
		n := slices.IndexFunc(d.waiting, func(g gpu) bool { return !alike(g) || !slices.Equal(d.onHost(g), on) })
		if n < 0 {
			n = len(d.waiting)
		}
		ro.dealGPUs(d.waiting[:n], on)
		d.waiting = d.waiting[n:]
	}
}

// dealer knows where the workers are.
type dealer struct {
	workers   []*worker
	named     map[string][]*worker // by pod, else by the first part of the host's name
	hosts     map[string][]*worker
	podsKnown bool
	waiting   []gpu // whose worker no pod decides
}

func newDealer(workers []*worker) *dealer {
	d := &dealer{workers: workers, named: map[string][]*worker{}, hosts: map[string][]*worker{}}
	inOrder := slices.SortedFunc(slices.Values(workers), func(a, b *worker) int { // of the ports
		return cmp.Or(cmp.Compare(len(a.instance), len(b.instance)), cmp.Compare(a.instance, b.instance),
			cmp.Compare(a.id, b.id))
	})
	for _, w := range inOrder {
		host := hostOf(w.instance)
		name, _, _ := strings.Cut(host, ".")
		name = cmp.Or(w.pod, name)
		d.named[name] = append(d.named[name], w)
		d.hosts[host] = append(d.hosts[host], w)
		d.podsKnown = d.podsKnown || w.pod != ""
	}
	return d
}

// inPod is the worker in the pod that a GPU is given to, nil where there is none or
// more than one, and whether pods decide.
func (d *dealer) inPod(g gpu) (w *worker, decided bool) {
	if g.pod == "" {
		return nil, false
	}
	w = only(d.named[g.pod])
	return w, w != nil || d.podsKnown
}

// onHost are the workers on a GPU's host, or the only worker.
func (d *dealer) onHost(g gpu) []*worker {
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

// dealGPUs gives GPUs to the workers on their host in their order, or keeps them
// under the host where that does not come out even.
func (ro *roster) dealGPUs(list []gpu, on []*worker) {
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

// aboutGPUs says where the way from a GPU to its worker is a guess, or not known.
func (ro *roster) aboutGPUs() (notes []string) {
	if len(ro.byOrder) > 0 {
		notes = append(notes, fmt.Sprintf("GPUs of %s are assigned to the workers there by index, because no metric maps "+
			"them to workers", few(ro.byOrder)))
	}
	hosts := make([]string, 0, len(ro.otherGPUs))
	for _, h := range ro.otherGPUs {
		hosts = append(hosts, h.Host)
	}
	if len(hosts) > 0 {
		notes = append(notes, fmt.Sprintf("GPUs of %s are listed under their host, because no metric maps them to workers",
			few(hosts)))
	}
	return notes
}

// few names the first of many.
func few(names []string) string {
	const most = 4
	if n := len(names) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return strings.Join(names, ", ")
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
