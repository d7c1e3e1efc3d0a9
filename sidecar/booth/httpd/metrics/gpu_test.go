package metrics

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/sim"
)

// decoding is the utilization of a GPU that decodes one sequence continuously, in percent: of the 61.3 ms of an
// iteration, 22.7 read the weights, 0.5 compute and 0.1 read the cache.
const decoding = 38.

// TestUtilizationIndependentOfScrapers lets the cluster work for some seconds and then rest. Each scraper must read
// the utilization of about the last second, regardless of number and frequency of scrapes.
func TestUtilizationIndependentOfScrapers(t *testing.T) {
	for _, row := range []struct {
		intent string
		every  time.Duration
		others int // scrapers at the same moments
	}{
		{"one scraper", time.Second, 0},
		{"three scrapers at once", time.Second, 2},
		{"one scraper, often", 20 * time.Millisecond, 0},
		{"three scrapers, often", 100 * time.Millisecond, 2},
		{"between the ends of iterations", 70 * time.Millisecond, 1},
	} {
		b := start(t, "trtllm", func(o *sim.Options) { o.Profile.Workers = 1 })
		use := func() float64 {
			for range row.others {
				get(b.metrics.GPUs(0))
			}
			return scrape(t, b.metrics.GPUs(0)).value(t, "DCGM_FI_DEV_GPU_UTIL")
		}
		wait := func(d time.Duration) (last float64) {
			for range d / row.every {
				b.advance(row.every)
				last = use()
			}
			return last
		}
		assert.Zero(t, use(), row.intent)
		assert.Zero(t, wait(3*row.every), row.intent)
		b.send(3200, 200)
		wait(1200 * time.Millisecond)
		assert.InDelta(t, decoding, wait(max(time.Second, row.every)), 1, "%s: continuous decoding", row.intent)
		for b.snapshot().State.Inflight > 0 {
			wait(row.every)
		}
		if row.every < time.Second {
			assert.InDelta(t, decoding/2, wait(500*time.Millisecond), 6, "%s: half of the last second idle", row.intent)
		}
		assert.Zero(t, wait(3*time.Second), row.intent)
	}
}

func TestLostWorkerHasNoUtilization(t *testing.T) {
	b := start(t, "trtllm", func(o *sim.Options) { o.Profile.Workers = 1 })
	b.send(3200, 200)
	b.advance(1500 * time.Millisecond)
	const prefill, iteration = 41 + .118*3200, 41.6
	kernels := prefill - 41 + 15.9 + (1500-25-prefill)*16.5/iteration
	use := scrape(t, b.metrics.GPUs(0)).value(t, "DCGM_FI_DEV_GPU_UTIL")
	require.InDelta(t, kernels/15, use, 1, "since the start")
	b.do(func(c *sim.Cluster) { require.NoError(t, c.LoseWorker(c.Workers()[0].ID, 2*time.Second)) })
	b.metrics.WorkerRestarted(0)
	for range 10 {
		b.advance(500 * time.Millisecond)
		assert.Zero(t, scrape(t, b.metrics.GPUs(0)).value(t, "DCGM_FI_DEV_GPU_UTIL"))
	}
}

func TestEnergyIsThatOfThePower(t *testing.T) {
	b := start(t, "trtllm", func(o *sim.Options) { o.Profile.Workers = 1 })
	at := func(name string) float64 { return scrape(t, b.metrics.GPUs(0)).value(t, name) }
	const counter, gauge = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_POWER_USAGE"
	assert.InDelta(t, 70, at(gauge), 0)
	before := at(counter)
	b.advance(10 * time.Second)
	assert.InDelta(t, 10*70_000, at(counter)-before, 1, "idle")
	b.send(3200, 200)
	b.advance(1500 * time.Millisecond)
	at(gauge)
	before = at(counter)
	b.advance(2 * time.Second)
	draw := at(gauge)
	assert.Greater(t, draw, 200.)
	assert.InDelta(t, draw, (at(counter)-before)/2000, 10)
}

func TestGPUMemoryAndLabels(t *testing.T) {
	p, err := sim.LoadProfile("h100-tp4")
	require.NoError(t, err)
	b := start(t, "trtllm", func(o *sim.Options) { o.Profile = p })
	const name = "DCGM_FI_DEV_FB_USED"
	uuids := map[string]bool{}
	for i := range p.Workers {
		f := scrape(t, b.metrics.GPUs(i))
		assert.Equal(t, []string{
			"DCGM_FI_DEV_FB_FREE", name, "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE",
			"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
		}, f.names())
		require.Len(t, f[name].GetMetric(), 4)
		for _, m := range f[name].GetMetric() {
			uuids[labels(m)["UUID"]] = true
		}
		used, free := f.value(t, name, "gpu", "3"), f.value(t, "DCGM_FI_DEV_FB_FREE", "gpu", "3")
		assert.InDelta(t, (71*1024+41841*32*163840/(1<<20))/4, used, 1, "a quarter of weights and cache")
		assert.InDelta(t, 74.5*1024, used+free, 1)
	}
	assert.Len(t, uuids, 8, "one for each GPU")
	first := labels(scrape(t, b.metrics.GPUs(1)).find(t, name, "gpu", "0"))
	assert.Regexp(t, `^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, first["UUID"])
	delete(first, "UUID")
	assert.Equal(t, map[string]string{
		"gpu": "0", "pci_bus_id": "00000000:08:00.0", "device": "nvidia0", "modelName": "NVIDIA H100",
		"Hostname": "node-2", "DCGM_FI_DRIVER_VERSION": "simulated", "container": "main",
		"namespace": "dynamo-workload", "pod": "dynamo-worker-2",
	}, first)

	f := scrape(t, start(t, "vllm").metrics.GPUs(0))
	assert.InDelta(t, 71*1024+11119*5, f.value(t, name), 1, "5 MiB per block")
	assert.Positive(t, f.value(t, "DCGM_FI_DEV_FB_FREE"))
}
