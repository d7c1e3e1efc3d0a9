package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

var start = time.Unix(1_800_000_000, 0)

func TestWorkerID(t *testing.T) {
	const own, ofWorkers = "dynamo_component_inflight_requests", "dynamo_frontend_worker_last_input_sequence_tokens"
	rows := []struct{ name, metric, raw, want string }{
		{"a worker of itself, as in the fixture", own, "e5aade5faf97e9f2", trtllmWorker},
		{"hexadecimal without a letter is hexadecimal still", own, "1234567890123456", "1311768467284833366"},
		{"leading zeros may be missing", own, "10", "16"},
		{"too long for 64 bits in hexadecimal: it was decimal", own, trtllmWorker, trtllmWorker},
		{"the frontend of a worker", ofWorkers, trtllmWorker, trtllmWorker},
		{"the frontend of a worker whose id has 16 digits", ofWorkers, "1234567890123456", "1234567890123456"},
		{"no label", own, "", ""},
	}
	for _, row := range rows {
		labels := model.LabelSet{}
		if row.raw != "" {
			labels["worker_id"] = model.LabelValue(row.raw)
		}
		require.Equal(t, row.want, workerID(Sample{Name: row.metric, Labels: labels}), row.name)
	}
}

func TestEngineMetricsJoinByPage(t *testing.T) {
	c := watched(t, api.SpeculationOff, scene{
		"one:8081": workerPage("a", 4, "trtllm_num_requests_waiting 3", "trtllm_kv_cache_utilization 0.5"),
		"two:8081": workerPage("b", 5, "trtllm_num_requests_waiting 6", `dynamo_component_gpu_cache_usage_percent{worker_id="b"} 0.25`),
	})
	require.Len(t, c.Workers, 2)
	near(t, 3, c.Workers[0].Waiting, "one")
	near(t, 0.5, c.Workers[0].CacheUse, "one")
	near(t, 6, c.Workers[1].Waiting, "two")
	near(t, 0.25, c.Workers[1].CacheUse, "two")
}

// Several instances in one process: their engines' figures cannot be told apart.
func TestEngineMetricsOfASharedPageAreNobodys(t *testing.T) {
	c := watched(t, api.SpeculationOff, scene{
		"both:8081": workerPage("a", 4) + workerPage("b", 5, "vllm:num_requests_waiting 6"),
	})
	require.Len(t, c.Workers, 2)
	for _, w := range c.Workers {
		require.Nil(t, w.Waiting)
		require.NotNil(t, w.Inflight)
	}
}

// In Kubernetes: the engine's metrics come from another port of the worker's
// pod, the GPUs from the exporter of its node.
func TestPodsJoinEnginesAndGPUs(t *testing.T) {
	worker := func(pod, port string) model.LabelSet {
		return model.LabelSet{"pod": model.LabelValue(pod), "instance": model.LabelValue(pod + ":" + port), "namespace": "dynamo-workload"}
	}
	const dcgm = `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="G0",Hostname="n1",modelName="NVIDIA H200",%[1]s="worker-0"} 73
DCGM_FI_DEV_FB_USED{gpu="0",UUID="G0",Hostname="n1",modelName="NVIDIA H200",%[1]s="worker-0"} 1024
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="G0",Hostname="n1",modelName="NVIDIA H200",%[1]s="worker-0"} 3072
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="G1",Hostname="n1",modelName="NVIDIA H200",%[1]s="someone-else"} 99
`
	rows := map[string]struct {
		label    string
		exporter model.LabelSet
	}{
		"the exporter's labels renamed": {"exported_pod", model.LabelSet{"pod": "dcgm-1", "instance": "n1:9400"}},
		"the exporter's labels kept":    {"pod", model.LabelSet{"instance": "n1:9400"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			samples := query(t, "", scraped{
				{worker("worker-0", "9090"), workerPage("a", 4)},
				{worker("worker-0", "8081"), "vllm:num_requests_waiting 2\n"},
				{worker("worker-1", "9090"), workerPage("b", 5)},
				{row.exporter, fmt.Sprintf(dcgm, row.label)},
			})
			c := summarise(t.Context(), samples, api.SpeculationOff)
			require.Equal(t, "NVIDIA H200", c.GPU)
			require.Len(t, c.Workers, 2)
			require.Equal(t, "worker-0", c.Workers[0].Name)
			near(t, 2, c.Workers[0].Waiting, "joined by the pod")
			require.Nil(t, c.Workers[1].Waiting)
			require.Len(t, c.Workers[0].GPUs, 1)
			require.Empty(t, c.Workers[1].GPUs)
			gpu := c.Workers[0].GPUs[0]
			require.Equal(t, "0", gpu.Index)
			near(t, 0.73, gpu.Utilisation, "utilisation")
			near(t, 1024<<20, gpu.MemoryUsed, "bytes")
			near(t, 4096<<20, gpu.MemoryTotal, "bytes")
		})
	}
}
