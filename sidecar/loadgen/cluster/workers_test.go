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
	for _, row := range []struct{ name, metric, raw, want string }{
		{"a worker of itself, as in the fixture", own, "e5aade5faf97e9f2", trtllmWorker},
		{"hexadecimal without a letter is hexadecimal still", own, "1234567890123456", "1311768467284833366"},
		{"leading zeros may be missing", own, "10", "16"},
		{"too long for 64 bits in hexadecimal: it was decimal", own, trtllmWorker, trtllmWorker},
		{"the frontend of a worker", ofWorkers, trtllmWorker, trtllmWorker},
		{"the frontend of a worker whose id has 16 digits", ofWorkers, "1234567890123456", "1234567890123456"},
		{"no label", own, "", ""},
	} {
		labels := model.LabelSet{}
		if row.raw != "" {
			labels["worker_id"] = model.LabelValue(row.raw)
		}
		require.Equal(t, row.want, workerID(Sample{Name: row.metric, Labels: labels}), row.name)
	}
}

// clusterOfPods returns a cluster in Kubernetes: the engine's metrics come from another port of the worker's pod, the
// GPUs from the exporter of its node, which names their pods in a label.
func clusterOfPods(t *testing.T, label string, exporter model.LabelSet) api.Cluster {
	t.Helper()
	worker := func(pod, port string) model.LabelSet {
		instance := model.LabelValue(pod + ":" + port)
		return model.LabelSet{"pod": model.LabelValue(pod), "instance": instance, "namespace": "dynamo-workload"}
	}
	const dcgm = `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="G0",Hostname="n1",modelName="NVIDIA H200",%[1]s="worker-0"} 73
DCGM_FI_DEV_FB_USED{gpu="0",UUID="G0",Hostname="n1",modelName="NVIDIA H200",%[1]s="worker-0"} 1024
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="G0",Hostname="n1",modelName="NVIDIA H200",%[1]s="worker-0"} 3072
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="G1",Hostname="n1",modelName="NVIDIA H200",%[1]s="someone-else"} 99
`
	return summarize(t.Context(), query(t, "", scraped{
		{worker("worker-0", "9090"), workerPage("a", 4)},
		{worker("worker-0", "8081"), "vllm:num_requests_waiting 2\n"},
		{worker("worker-1", "9090"), workerPage("b", 5)},
		{exporter, fmt.Sprintf(dcgm, label)},
	}), api.SpeculationOff)
}
