package boothtest

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kvbooth/internal/source"
	"kvbooth/sidecar/process"
)

// Booth is a cluster, a Prometheus and a load generator.
type Booth struct {
	Root       string // of the module
	Prometheus string // URL
	Loadgen    string // URL
	Token      string // of the load generator, "" for none
	Ports      *Ports

	bin    string
	target Target
	parts  map[string]*Part
}

// binVariable names the folder of built programs. Without it, the test builds them.
const binVariable = "BOOTHTEST_BIN"

// Options make a [Booth].
type Options struct {
	FirstPort int    // where the search for free ports begins
	Token     string // of the load generator, "" for none
	// Target starts the cluster; bin is the folder of built programs.
	Target func(t *testing.T, bin string, ports *Ports) Target
}

// Start starts all of it, with short answers. The workload waits for an operator.
func Start(t *testing.T, o Options) *Booth {
	t.Helper()
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	b := &Booth{Root: root, Token: o.Token, Ports: NewPorts(o.FirstPort), bin: Programs(t), parts: map[string]*Part{}}
	b.target = o.Target(t, b.bin, b.Ports)
	maps.Copy(b.parts, b.target.Parts)
	prometheus, loadgen := process.Loopback(b.Ports.Take(t, 1)), process.Loopback(b.Ports.Take(t, 1))
	b.Prometheus, b.Loadgen = "http://"+prometheus, "http://"+loadgen
	b.startPrometheus(t, prometheus, loadgen)
	b.parts["loadgen"] = b.startLoadgen(t, "loadgen", loadgen, o.Token)
	return b
}

// Programs gives the folder of booth and loadgen: the one that the environment names,
// else one of the test's own.
func Programs(t *testing.T) string {
	t.Helper()
	if bin := os.Getenv(binVariable); bin != "" {
		return bin
	}
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "kvbooth/sidecar/cmd/booth", "kvbooth/sidecar/cmd/loadgen")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, said)
	}
	return bin
}

func (b *Booth) startPrometheus(t *testing.T, address, loadgen string) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte(b.target.scrapes(loadgen)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &Part{Ready: b.Prometheus + "/-/ready", Command: process.Command{
		Name: "Prometheus", Path: filepath.Join(b.bin, "booth"), Log: Log(t, "prometheus"),
		Args: []string{"prometheus", "--config-file=" + config, "--data-dir=" + filepath.Join(dir, "data"), "--listen=" + address},
	}}
	p.Run(t)
	b.parts["prometheus"] = p
}

// scrapes is a prometheus.yml with the labels that the pages have on a cluster.
func (c Target) scrapes(loadgen string) string {
	var text strings.Builder
	text.WriteString("global: {scrape_interval: 1s, scrape_timeout: 1s, scrape_native_histograms: true, always_scrape_classic_histograms: true}\nscrape_configs:\n")
	scrape := func(job, namespace string, pods map[string]string) {
		fmt.Fprintf(&text, "- job_name: %s\n  static_configs:\n", job)
		for pod, address := range pods {
			fmt.Fprintf(&text, "  - {targets: [%q], labels: {namespace: %s, pod: %s, container: main}}\n", address, namespace, pod)
		}
	}
	scrape("dynamo-frontend", "dynamo-workload", map[string]string{"dynamo-frontend": c.Frontend})
	scrape("dynamo-worker", "dynamo-workload", numbered("dynamo-worker", c.Workers))
	scrape("loadgen", "kvbooth", map[string]string{"loadgen": loadgen})
	if len(c.GPUs) > 0 {
		scrape("dcgm-exporter", "gpu-operator", numbered("dcgm-exporter", c.GPUs))
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

// AnotherCluster starts a simulated cluster of another engine beside the booth's, and
// load generators against it without a Prometheus, and gives their URLs: all reads
// every metrics page there is, blind the frontend's alone. Twin sends the same
// conversations to the booth's cluster and to this one.
func (b *Booth) AnotherCluster(t *testing.T, engine string) (all, blind, twin string) {
	t.Helper()
	other := *b
	other.Prometheus = ""
	other.target = simulated(t, b.bin, b.Ports, engine)
	var pages []string
	for _, address := range append(other.target.Workers, other.target.GPUs...) {
		pages = append(pages, "http://"+address)
	}
	all = other.AnotherLoadgen(t, engine, "", "--cluster-metrics-urls="+strings.Join(pages, ","))
	blind = other.AnotherLoadgen(t, engine+"-blind", "")
	return all, blind, b.AnotherLoadgen(t, "twin", "", "--twin-target-url=http://"+other.target.Frontend)
}

// Target is the cluster.
func (b *Booth) Target() Target { return b.target }

// AnotherLoadgen starts a further load generator against the same cluster, and
// gives its URL.
func (b *Booth) AnotherLoadgen(t *testing.T, name, token string, flags ...string) string {
	t.Helper()
	url, _ := b.LoadgenPart(t, name, token, flags...)
	return url
}

// LoadgenPart is AnotherLoadgen, and gives the process, too.
func (b *Booth) LoadgenPart(t *testing.T, name, token string, flags ...string) (url string, p *Part) {
	t.Helper()
	address := process.Loopback(b.Ports.Take(t, 1))
	return "http://" + address, b.startLoadgen(t, name, address, token, flags...)
}

// startLoadgen keeps the machine quiet: short answers, and users who think, so that
// there are few requests a second. A cap would hold the concurrency back instead.
func (b *Booth) startLoadgen(t *testing.T, name, address, token string, flags ...string) *Part {
	t.Helper()
	args := []string{
		"--target-url=http://" + b.target.Frontend, "--listen=" + address, "--data-dir=" + t.TempDir(),
		"--concurrency=60", "--start-rate=40", "--think-time=9s", "--max-tokens=64", "--output-tokens-mean=24", "--output-tokens-cv=.15",
	}
	if b.Prometheus != "" {
		args = append(args, "--prometheus-url="+b.Prometheus, "--prometheus-namespace=dynamo-workload")
	}
	args = append(append(args, b.target.Loadgen...), flags...)
	p := &Part{Ready: "http://" + address + "/readyz", Command: process.Command{
		Name: "the load generator", Path: filepath.Join(b.bin, "loadgen"), Log: Log(t, name), Args: args,
		Env: append(os.Environ(), "LOADGEN_TOKEN="+token),
	}}
	p.Run(t)
	return p
}

// Ports hands out ports of loopback, each once.
type Ports struct{ next int }

// NewPorts begins its search for free ones there.
func NewPorts(first int) *Ports { return &Ports{next: first} }

// Take finds so many free ports in a row and gives the first.
func (p *Ports) Take(t *testing.T, n int) int {
	t.Helper()
	for {
		free, err := process.FreePorts(p.next, n)
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

// resultsVariable names the folder for screenshots and logs. Without it, they go to
// test-results in the module.
const resultsVariable = "BOOTHTEST_RESULTS"

// Results is the folder for screenshots and logs.
func Results(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv(resultsVariable); dir != "" {
		return dir
	}
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "test-results")
}

// Log is the file that a program writes to.
func Log(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(Results(t), "logs", strings.ReplaceAll(t.Name(), "/", "-"), name+".log")
}
