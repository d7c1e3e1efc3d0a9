//go:build grafana

package grafanatest

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kvbooth/internal/source"
	"kvbooth/sidecar/local"
)

// token is the load generator's: without one, no wrong one could be tried.
const token = "the-booth-of-a-test"

// booth is a cluster, a Prometheus and a load generator.
type booth struct {
	root       string // of the module
	target     target
	ports      *ports
	parts      map[string]*part
	prometheus string // URLs
	loadgen    string
}

// binVariable names the folder of built programs. Without it, the test builds them.
const binVariable = "GRAFANATEST_BIN"

// startBooth starts all of it but Grafana, with short answers. The workload waits
// for an operator.
func startBooth(t *testing.T, target func(t *testing.T, bin string, ports *ports) target) *booth {
	t.Helper()
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	bin := programs(t, root)
	b := &booth{root: root, ports: &ports{next: 23000}, parts: map[string]*part{}}
	b.target = target(t, bin, b.ports)
	maps.Copy(b.parts, b.target.parts)
	prometheus, loadgen := local.Loopback(b.ports.take(t, 1)), local.Loopback(b.ports.take(t, 1))
	b.prometheus, b.loadgen = "http://"+prometheus, "http://"+loadgen
	b.startPrometheus(t, bin, prometheus, loadgen)
	b.startLoadgen(t, bin, loadgen)
	return b
}

// programs gives the folder of booth and loadgen.
func programs(t *testing.T, root string) string {
	t.Helper()
	if bin := os.Getenv(binVariable); bin != "" {
		return bin
	}
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./sidecar/cmd/booth", "./sidecar/cmd/loadgen")
	build.Dir = root
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, said)
	}
	return bin
}

func (b *booth) startPrometheus(t *testing.T, bin, address, loadgen string) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte(b.target.scrapes(loadgen)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &part{ready: b.prometheus + "/-/ready", command: local.Command{
		Name: "Prometheus", Path: filepath.Join(bin, "booth"), Log: log(t, "prometheus"),
		Args: []string{"prometheus", "--config-file=" + config, "--data-dir=" + filepath.Join(dir, "data"), "--listen=" + address},
	}}
	p.run(t)
	b.parts["prometheus"] = p
}

// scrapes is a prometheus.yml with the labels that the pages have on a cluster.
func (c target) scrapes(loadgen string) string {
	var text strings.Builder
	text.WriteString("global: {scrape_interval: 1s, scrape_timeout: 1s, scrape_native_histograms: true, always_scrape_classic_histograms: true}\nscrape_configs:\n")
	scrape := func(job, namespace string, pods map[string]string) {
		fmt.Fprintf(&text, "- job_name: %s\n  static_configs:\n", job)
		for pod, address := range pods {
			fmt.Fprintf(&text, "  - {targets: [%q], labels: {namespace: %s, pod: %s, container: main}}\n", address, namespace, pod)
		}
	}
	scrape("dynamo-frontend", "dynamo-workload", map[string]string{"dynamo-frontend": c.frontend})
	scrape("dynamo-worker", "dynamo-workload", numbered("dynamo-worker", c.workers))
	scrape("loadgen", "kvbooth", map[string]string{"loadgen": loadgen})
	if len(c.gpus) > 0 {
		scrape("dcgm-exporter", "gpu-operator", numbered("dcgm-exporter", c.gpus))
	}
	return text.String()
}

func numbered(name string, addresses []string) map[string]string {
	pods := map[string]string{}
	for i, address := range addresses {
		pods[fmt.Sprintf("%s-%d", name, i+1)] = address
	}
	return pods
}

// startLoadgen keeps the machine quiet: few requests a second, and short answers.
func (b *booth) startLoadgen(t *testing.T, bin, address string) {
	t.Helper()
	p := &part{ready: b.loadgen + "/readyz", command: local.Command{
		Name: "the load generator", Path: filepath.Join(bin, "loadgen"), Log: log(t, "loadgen"),
		Args: append([]string{
			"--target-url=http://" + b.target.frontend, "--listen=" + address, "--data-dir=" + t.TempDir(),
			"--prometheus-url=" + b.prometheus, "--prometheus-namespace=dynamo-workload",
			"--concurrency=60", "--start-rate=40", "--target-rps=6", "--max-tokens=64", "--output-tokens-mean=24", "--output-tokens-cv=.15",
		}, b.target.loadgen...),
		Env: append(os.Environ(), "LOADGEN_TOKEN="+token),
	}}
	p.run(t)
	b.parts["loadgen"] = p
}

// ports hands out ports of loopback, each once.
type ports struct{ next int }

// take finds so many free ports in a row and gives the first.
func (p *ports) take(t *testing.T, n int) int {
	t.Helper()
	for {
		free, err := local.FreePorts(p.next, n)
		if err != nil {
			t.Fatal(err)
		}
		first, last := free[0], free[n-1]
		p.next = last + 1
		if last-first == n-1 {
			return first
		}
	}
}

// log is the file that a program writes to.
func log(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(results(t), "logs", strings.ReplaceAll(t.Name(), "/", "-"), name+".log")
}
