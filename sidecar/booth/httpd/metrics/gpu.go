package metrics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/sim"
)

const (
	usePeriod = time.Second           // over which a GPU's utilisation is taken, at least
	useStep   = 50 * time.Millisecond // between readings that are kept
)

// meter keeps how long a worker's GPUs had run kernels at some moments of the last
// period, so that any number of scrapers see the same utilisation. It imitates
// DCGM_FI_DEV_GPU_UTIL, the share of time with a kernel on the GPU, from the model's
// own times: see [sim.StepCost.Kernels]. It is simulated, like all that the cluster
// tells; what a real engine's kernels leave of an iteration was not recorded, only
// that 40 to 80 % were seen under load.
type meter struct{ readings []reading }

type reading struct{ at, busy time.Duration }

// sample notes for all workers how long their GPUs have run kernels.
func (m *Metrics) sample(s Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range s.Workers {
		m.meter(w).add(s.Now, w)
	}
}

// meter is that of a worker, beginning with the start of its process.
func (m *Metrics) meter(w sim.WorkerStats) *meter {
	found, ok := m.meters[w.ID]
	if !ok {
		found = &meter{readings: []reading{{w.ReadyAt, m.worker(w.ID).base.Kernels}}}
		m.meters[w.ID] = found
	}
	return found
}

func (m *meter) add(now time.Duration, w sim.WorkerStats) {
	if now < m.readings[len(m.readings)-1].at+useStep {
		return // a scraper was here just now, or overtook this one
	}
	m.readings = append(m.readings, reading{now, w.Kernels + w.Launched})
	for len(m.readings) > 1 && m.readings[1].at <= now-usePeriod {
		m.readings = m.readings[1:]
	}
}

// utilisation is the share of the time since the latest reading that is a period
// old, with kernels on the worker's GPUs.
func (m *meter) utilisation(now time.Duration, w sim.WorkerStats) float64 {
	from := m.readings[0]
	if !w.Ready || now <= from.at {
		return 0
	}
	return min(1, max(0, float64(w.Kernels+w.Launched-from.busy)/float64(now-from.at)))
}

// collectGPUs writes the page of a DCGM exporter. A worker's process fills its GPUs
// with the weights and the KV cache when it starts.
func collectGPUs(out sink, p sim.Profile, w sim.WorkerStats, pods Pods, use float64) {
	const mebibyte, perGiB = 1 << 20, 1 << 10
	used := 0.
	if w.Ready {
		cache := float64(p.KV.Tokens()) * float64(p.KV.BytesPerToken) / mebibyte
		used = math.Round((p.Memory.Weights*perGiB + cache) / float64(p.TensorParallel))
	}
	for i := range p.TensorParallel {
		labels := gpuLabels(p, w, pods, i)
		out.gauge(labels, "DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", math.Round(100*use))
		out.gauge(labels, "DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", used)
		out.gauge(labels, "DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", math.Round(p.Memory.GPU*perGiB)-used)
	}
}

// gpuLabels name a GPU, its node and the pod that it is given to. What the
// simulation has no value for says so.
func gpuLabels(p sim.Profile, w sim.WorkerStats, pods Pods, index int) prometheus.Labels {
	serial := rand.New(rand.NewPCG(uint64(w.ID), uint64(index)))
	high, low := serial.Uint64(), serial.Uint64()
	return prometheus.Labels{
		"gpu":                    fmt.Sprint(index),
		"UUID":                   fmt.Sprintf("GPU-%08x-%04x-%04x-%04x-%012x", high>>32, high>>16&0xffff, high&0xffff, low>>48, low&0xffffffffffff),
		"pci_bus_id":             fmt.Sprintf("00000000:%02X:00.0", 8*(index+1)),
		"device":                 fmt.Sprintf("nvidia%d", index),
		"modelName":              "NVIDIA " + p.GPU,
		"Hostname":               fmt.Sprintf("node-%d", w.Index+1),
		"DCGM_FI_DRIVER_VERSION": "simulated",
		"container":              "main",
		"namespace":              pods.Namespace,
		"pod":                    fmt.Sprintf("%s-%d", pods.Name, w.Index+1),
	}
}
