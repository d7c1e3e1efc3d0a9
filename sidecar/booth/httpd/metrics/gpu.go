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
	usePeriod = time.Second           // minimum period of a GPU's utilization
	useStep   = 50 * time.Millisecond // minimum distance of readings
)

// meter keeps readings of the time in which a worker's GPUs run kernels over the last period, so that any number of
// scrapers get the same utilization. It simulates DCGM_FI_DEV_GPU_UTIL, the share of time with a kernel on the GPU,
// from the model's own times: see [sim.StepCost.Kernels]. The kernel times of a real engine were not recorded, only a
// utilization of 40 to 80 % under load.
type meter struct{ readings []reading }

type reading struct{ at, busy time.Duration }

// sample adds a reading for each worker.
func (m *Metrics) sample(s Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range s.Workers {
		m.meter(w).add(s.Now, w)
	}
}

// meter returns the meter of a worker, which begins at the start of the worker's process.
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
		return // a concurrent scrape has added a reading
	}
	m.readings = append(m.readings, reading{now, w.Kernels + w.Launched})
	for len(m.readings) > 1 && m.readings[1].at <= now-usePeriod {
		m.readings = m.readings[1:]
	}
}

// utilization returns the share of time with kernels on the worker's GPUs, since the latest reading that is at least
// one period old.
func (m *meter) utilization(now time.Duration, w sim.WorkerStats) float64 {
	from := m.readings[0]
	if !w.Ready || now <= from.at {
		return 0
	}
	return min(1, max(0, float64(w.Kernels+w.Launched-from.busy)/float64(now-from.at)))
}

// idlePower and boardPower are the power draw in watts of a GPU without kernels, and of one that always runs some: the
// limit that NVIDIA states for H100 and H200 as SXM modules, and a tenth of it. No power was recorded, so that the
// model between them is an assumption: a straight line in the share of time with kernels. It shows where power appears,
// and says nothing about the power of a real GPU.
const (
	idlePower  = 70.
	boardPower = 700.
)

// power returns the power draw of a GPU at a utilization, in watts.
func power(use float64) float64 { return idlePower + (boardPower-idlePower)*use }

// energy returns what power draws since the start of the simulation, in mJ.
func energy(now time.Duration, w sim.WorkerStats) int64 {
	return int64(1000 * (idlePower*now.Seconds() + (boardPower-idlePower)*(w.Kernels+w.Launched).Seconds()))
}

// collectGPUs writes the page of a DCGM exporter. A worker's process fills its GPUs with the weights and the KV cache
// at its start.
func collectGPUs(out sink, p sim.Profile, w sim.WorkerStats, pods Pods, now time.Duration, use float64) {
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
		free := math.Round(p.Memory.GPU*perGiB) - used
		out.gauge(labels, "DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", free)
		out.gauge(labels, "DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", power(use))
		out.counter(labels, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Total energy consumption since boot (in mJ).",
			energy(now, w))
	}
}

// gpuLabels returns the labels for a GPU, its node and its pod. The driver version, which the simulation lacks, is
// "simulated".
func gpuLabels(p sim.Profile, w sim.WorkerStats, pods Pods, index int) prometheus.Labels {
	serial := rand.New(rand.NewPCG(uint64(w.ID), uint64(index)))
	high, low := serial.Uint64(), serial.Uint64()
	uuid := fmt.Sprintf("GPU-%08x-%04x-%04x-%04x-%012x",
		high>>32, high>>16&0xffff, high&0xffff, low>>48, low&0xffffffffffff)
	return prometheus.Labels{
		"gpu":                    fmt.Sprint(index),
		"UUID":                   uuid,
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
