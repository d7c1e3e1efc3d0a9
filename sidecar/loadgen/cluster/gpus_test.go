package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// dcgm is the page of a DCGM exporter with a GPU for each pod, "" for none.
func dcgm(hostname string, pods ...string) string {
	var page strings.Builder
	for i, pod := range pods {
		fmt.Fprintf(&page, "DCGM_FI_DEV_GPU_UTIL{gpu=\"%d\",UUID=\"%s-%d\",Hostname=%q,modelName=\"NVIDIA H200\",pod=%q} %d\n", i, hostname, i, hostname, pod, 10+i)
	}
	return page.String()
}

// Metrics pages alone, as cluster.metrics_urls gives them: no label of a worker tells
// its pod, so the GPUs' pods and hosts are compared with where the workers' pages are.
func TestGPUsOfPagesAlone(t *testing.T) {
	none := []string{"", "", "", ""}
	rows := []struct {
		name    string
		pages   scene
		workers map[string]string // the utilisation of its GPUs, in per cent
		others  map[string]int    // GPUs under their host
		problem string
	}{
		{
			"the pod is the name of the worker's host",
			scene{"worker-0:9090": workerPage("a", 1), "worker-1.ns.svc:9090": workerPage("b", 1), "dcgm:9400": dcgm("n1", "worker-1", "worker-0")},
			map[string]string{"worker-0:9090": "11", "worker-1.ns.svc:9090": "10"},
			nil, "",
		},
		{
			"one worker a host, by the exporter's Hostname",
			scene{"n1:8081": workerPage("a", 1), "n2:8081": workerPage("b", 1), "dcgm-x:9400": dcgm("n1", none[:2]...), "dcgm-y:9400": dcgm("n2", none[:2]...)},
			map[string]string{"n1:8081": "10 11", "n2:8081": "10 11"},
			nil, "",
		},
		{
			"one worker a host, by the host of the exporter's page",
			scene{"10.0.0.1:8081": workerPage("a", 1), "10.0.0.2:8081": workerPage("b", 1), "10.0.0.1:9400": dcgm("n1", none[:1]...), "10.0.0.2:9400": dcgm("n2", none[:2]...)},
			map[string]string{"10.0.0.1:8081": "10", "10.0.0.2:8081": "10 11"},
			nil, "",
		},
		{
			"a single worker has what there is",
			scene{"w:1": workerPage("a", 1), "n1:9400": dcgm("n1", none[:2]...)},
			map[string]string{"w:1": "10 11"},
			nil, "",
		},
		{
			"several workers on a host, by the order of ports and indices",
			scene{"n1:10001": workerPage("b", 1), "n1:8081": workerPage("a", 1), "n1:9400": dcgm("n1", none...)},
			map[string]string{"n1:8081": "10 11", "n1:10001": "12 13"},
			nil, "GPUs of n1 are assigned to the workers there by index",
		},
		{
			"everything on one machine, an exporter for each worker",
			scene{"127.0.0.1:8081": workerPage("a", 1), "127.0.0.1:8082": workerPage("b", 1), "127.0.0.1:9400": dcgm("node-1", "p-1"), "127.0.0.1:9401": dcgm("node-2", "p-2")},
			map[string]string{"127.0.0.1:8081": "10", "127.0.0.1:8082": "10"},
			nil, "GPUs of 127.0.0.1 are assigned to the workers there",
		},
		{
			"it does not come out even",
			scene{"n1:8081": workerPage("a", 1), "n1:8082": workerPage("b", 1), "n1:9400": dcgm("n1", none[:3]...)},
			map[string]string{"n1:8081": "", "n1:8082": ""},
			map[string]int{"n1": 3},
			"GPUs of n1 are listed under their host",
		},
		{
			"hosts without a worker",
			scene{"w:1": workerPage("a", 1), "v:1": workerPage("b", 1), "n1:9400": dcgm("n1", none[:2]...), "n2:9400": dcgm("n2", none[:1]...)},
			map[string]string{"w:1": "", "v:1": ""},
			map[string]int{"n1": 2, "n2": 1},
			"GPUs of n1, n2 are listed under their host",
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			c := watched(t, api.SpeculationOff, row.pages)
			got := map[string]string{}
			for _, w := range c.Workers {
				var use []string
				for _, g := range w.GPUs {
					use = append(use, fmt.Sprintf("%.0f", 100**g.Utilisation))
				}
				got[w.Name] = strings.Join(use, " ")
			}
			require.Equal(t, row.workers, got)
			var others map[string]int
			for _, h := range c.OtherGPUs {
				if others == nil {
					others = map[string]int{}
				}
				others[h.Host] = len(h.GPUs)
			}
			require.Equal(t, row.others, others)
			if row.problem == "" {
				require.NotContains(t, c.Problem, "GPUs")
			} else {
				require.Contains(t, c.Problem, row.problem)
			}
			require.Equal(t, "NVIDIA H200", c.GPU)
		})
	}
}

func TestFewNames(t *testing.T) {
	require.Equal(t, "a, b, c, d", few([]string{"a", "b", "c", "d"}))
	require.Equal(t, "a, b, c, d and 2 more", few([]string{"a", "b", "c", "d", "e", "f"}))
}
