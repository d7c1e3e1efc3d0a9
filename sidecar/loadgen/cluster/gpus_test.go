package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// dcgm returns the page of a DCGM exporter with a GPU for each pod, "" for a GPU that no pod uses.
func dcgm(hostname string, pods ...string) string {
	var page strings.Builder
	for i, pod := range pods {
		fmt.Fprintf(&page,
			"DCGM_FI_DEV_GPU_UTIL{gpu=\"%d\",UUID=\"%s-%d\",Hostname=%q,modelName=\"NVIDIA H200\",pod=%q} %d\n", i, hostname, i,
			hostname, pod, 10+i)
	}
	return page.String()
}

// With metrics pages alone, no label names a worker's pod, so the GPUs' pods and hosts are compared with the addresses
// of the workers' pages. The file in testdata has the utilization of each worker's GPUs in percent, and the number of
// GPUs listed under a host.
func TestGPUsAssignedWithoutPodLabels(t *testing.T) {
	a, b := workerPage("a", 1), workerPage("b", 1)
	var all strings.Builder
	for _, row := range []struct {
		name  string
		pages scene
	}{
		{"the pod is the name of the worker's host", scene{
			"worker-0:9090": a, "worker-1.ns.svc:9090": b, "dcgm:9400": dcgm("n1", "worker-1", "worker-0"),
		}},
		{"one worker a host, by the exporter's Hostname", scene{
			"n1:8081": a, "n2:8081": b, "dcgm-x:9400": dcgm("n1", "", ""), "dcgm-y:9400": dcgm("n2", "", ""),
		}},
		{"one worker a host, by the host of the exporter's page", scene{
			"10.0.0.1:8081": a, "10.0.0.2:8081": b, "10.0.0.1:9400": dcgm("n1", ""), "10.0.0.2:9400": dcgm("n2", "", ""),
		}},
		{"a single worker has what there is", scene{"w:1": a, "n1:9400": dcgm("n1", "", "")}},
		{"several workers on a host, by the order of ports and indices", scene{
			"n1:10001": b, "n1:8081": a, "n1:9400": dcgm("n1", "", "", "", ""),
		}},
		{"everything on one machine, an exporter for each worker", scene{
			"127.0.0.1:8081": a, "127.0.0.1:8082": b,
			"127.0.0.1:9400": dcgm("node-1", "p-1"), "127.0.0.1:9401": dcgm("node-2", "p-2"),
		}},
		{"it does not come out even", scene{"n1:8081": a, "n1:8082": b, "n1:9400": dcgm("n1", "", "", "")}},
		{"hosts without a worker", scene{"w:1": a, "v:1": b, "n1:9400": dcgm("n1", "", ""), "n2:9400": dcgm("n2", "")}},
	} {
		c := watched(t, api.SpeculationOff, row.pages)
		require.Equal(t, "NVIDIA H200", c.GPU)
		fmt.Fprintln(&all, row.name)
		for _, w := range c.Workers {
			fmt.Fprintf(&all, "  worker %s:", w.Name)
			for _, g := range w.GPUs {
				fmt.Fprintf(&all, " %.0f", 100**g.Utilisation)
			}
			fmt.Fprintln(&all)
		}
		for _, h := range c.OtherGPUs {
			fmt.Fprintf(&all, "  host %s: %d\n", h.Host, len(h.GPUs))
		}
		fmt.Fprintf(&all, "  problem: %s\n", c.Problem)
	}
	golden(t, "gpus.golden", all.String())
}

func TestShortList(t *testing.T) {
	require.Equal(t, "a, b, c, d", shortList([]string{"a", "b", "c", "d"}))
	require.Equal(t, "a, b, c, d and 2 more", shortList([]string{"a", "b", "c", "d", "e", "f"}))
}
