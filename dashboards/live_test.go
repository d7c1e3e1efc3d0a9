//go:build booth && linux

package dashboards

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kvbooth/internal/output"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"

	prom "github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// prometheusVariable names the environment variable with the URL of the Prometheus
// of a booth that runs already; without it the test starts a booth.
const prometheusVariable = "KVBOOTH_PROMETHEUS_URL"

const (
	patience = 4 * time.Minute
	lookBack = 10 * time.Minute
)

// without are the queries that need not find data, with the reason.
var without = map[string]string{
	"alert: kvbooth-hit-rate": "one step must have lasted for six minutes",
	"gtc-demo: ITL (p50 and p95): C": "no recorded table has it; one of this target's rows needs a settled minute in " +
		"which the client keeps up",
}

// onEvents are those that find data only where something was done with the workload.
var onEvents = []string{
	"Starts", "Stops", "Steps", "Mode changes", "Sweeps", "Sweeps: KV-aware spans",
	"Sweeps: spans in other modes",
}

// Every query finds data where its namespace is chosen. With All it does, too, and in a
// Prometheus that scrapes the same pages without a label.
func TestQueriesReturnData(t *testing.T) {
	url := os.Getenv(prometheusVariable)
	ours := url == ""
	var b *booth
	if ours {
		b = startBooth(t)
		url = b.at("Prometheus")
	}
	prometheus := apiOf(t, url)
	waiting := append(ask(prometheus, "", queries(t)), ask(prometheus, "all namespaces: ", inAllNamespaces(t))...)
	if ours {
		waiting = append(waiting, ask(prometheus, "lane main: ", ofLane(t, "main"))...)
		waiting = append(waiting, ask(prometheus, "lane twin: ", ofLane(t, "twin"))...)
		plain := b.plainPrometheus(prometheus)
		b.steer(prometheus)
		unlabeled := query{"the frontend", `dynamo_frontend_requests_total{namespace=""}`}
		require.False(t, hasData(t, prometheus, unlabeled))
		waiting = append(waiting, ask(plain, "no namespace: ", append(inAllNamespaces(t), unlabeled))...)
	}
	waiting = slices.DeleteFunc(waiting, func(q question) bool {
		event := slices.ContainsFunc(onEvents, func(name string) bool {
			return strings.HasSuffix(q.where, "annotation: "+name)
		})
		return without[q.where] != "" || event && !ours
	})
	wait.Within(t, patience, "every query has data", func() (any, bool) {
		waiting = slices.DeleteFunc(waiting, func(q question) bool { return hasData(t, q.of, q.query) })
		var missing []string
		for _, q := range waiting {
			missing = append(missing, q.label+q.where+": "+q.expr)
		}
		return strings.Join(missing, "\n"), len(missing) == 0
	})
	sharesAreAtMostOne(t, prometheus)
}

// sharesAreAtMostOne checks the panels whose unit is percent over the whole test, with its switches and stops.
func sharesAreAtMostOne(t *testing.T, prometheus v1.API) {
	const rounding = 1e-9
	checked := 0
	for _, file := range files {
		for _, p := range load(t, file).Panels {
			for _, target := range p.Targets {
				if p.FieldConfig.Defaults.Unit != "percentunit" || target.LegendFormat == "Tokens per step" {
					continue
				}
				checked++
				for _, s := range recent(t, prometheus, query{p.Title, variables.Replace(target.Expr)}) {
					for _, v := range s.Values {
						require.False(t, float64(v.Value) > 1+rounding, "%s: %v at %v", p.Title, s.Metric, v)
					}
				}
			}
		}
	}
	require.Greater(t, checked, 10)
}

// ofLane are the queries of the dashboard Routers for one lane, those among them that ask for every lane.
func ofLane(t *testing.T, lane string) (all []query) {
	one := strings.NewReplacer("$lane", lane, `lane=~".+"`, `lane="`+lane+`"`)
	d := load(t, "routers.json")
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			all = append(all, query{strings.Join([]string{d.UID, p.Title, q.RefID}, ": "), one.Replace(q.Expr)})
		}
	}
	require.NotEmpty(t, all)
	return all
}

// question is a query that a Prometheus is asked; the label says which, and how.
type question struct {
	query
	of    v1.API
	label string
}

func ask(of v1.API, label string, queries []query) (all []question) {
	for _, q := range queries {
		all = append(all, question{q, of, label})
	}
	return all
}

func apiOf(t *testing.T, url string) v1.API {
	client, err := prom.NewClient(prom.Config{Address: url})
	require.NoError(t, err)
	return v1.NewAPI(client)
}

// hasData says whether a query has given a number at any time of late.
func hasData(t *testing.T, prometheus v1.API, q query) bool {
	return slices.ContainsFunc(recent(t, prometheus, q), func(s *model.SampleStream) bool {
		return slices.ContainsFunc(s.Values, func(p model.SamplePair) bool { return !math.IsNaN(float64(p.Value)) })
	})
}

// recent is what a query has given of late.
func recent(t *testing.T, prometheus v1.API, q query) model.Matrix {
	now := time.Now()
	value, _, _, err := prometheus.QueryRange(t.Context(), q.expr, v1.Range{
		Start: now.Add(-lookBack), End: now, Step: time.Second,
	})
	require.NoError(t, err, q.where)
	return value.(model.Matrix)
}

// booth is `booth demo` with its processes.
type booth struct {
	t   *testing.T
	bin string // the folder of the programs
	out output.Buffer
}

// startBooth builds the programs and starts them on free ports, with two lanes. Its clusters are
// fast, but not so fast that the usual cap of requests a second holds the workload below its concurrency, since it
// would settle half a minute later. They compare all the same with what was recorded, so that every
// series exists.
func startBooth(t *testing.T) *booth {
	bin := os.Getenv("BOOTHTEST_BIN")
	if bin == "" {
		bin = t.TempDir()
		said, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "kvbooth/sidecar/cmd/booth",
			"kvbooth/sidecar/cmd/loadgen").CombinedOutput()
		require.NoError(t, err, string(said))
	}
	b := &booth{t: t, bin: bin}
	b.start(filepath.Join(b.bin, "booth"), "demo", "--twin", "--speed=7", "--concurrency=60", "--grafana=off",
		"--cache-dir="+t.TempDir(),
		"--frontend-port=32000", "--worker-port=32100", "--gpu-port=32200", "--prometheus-port=32300", "--port=32800")
	b.until("the booth is up", func() bool { return strings.Contains(b.out.String(), "Ctrl-C") })
	return b
}

// start runs the program booth until the test ends.
func (b *booth) start(program string, args ...string) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "LOADGEN_DEFAULT_BASELINE=h200x3-tp1-llama70b-fp8")
	cmd.Stdout, cmd.Stderr = &b.out, &b.out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second // then it is killed
	require.NoError(b.t, cmd.Start())
	b.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		if b.t.Failed() {
			b.t.Log(b.out.String())
		}
	})
}

// plainPrometheus starts another Prometheus, which scrapes what the booth's does and
// adds no label, as in a scrape configuration that only lists addresses.
func (b *booth) plainPrometheus(prometheus v1.API) v1.API {
	found, err := prometheus.Targets(b.t.Context())
	require.NoError(b.t, err)
	require.NotEmpty(b.t, found.Active)
	config := "global: {scrape_interval: 2s, scrape_timeout: 2s, scrape_native_histograms: true, " +
		"always_scrape_classic_histograms: true}\nscrape_configs:\n"
	for i, target := range found.Active {
		address := strings.TrimSuffix(strings.TrimPrefix(target.ScrapeURL, "http://"), "/metrics")
		config += fmt.Sprintf("- {job_name: job-%d, static_configs: [{targets: [%q]}]}\n", i, address)
	}
	dir := b.t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(b.t, os.WriteFile(file, []byte(config), 0o600))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b.t, err)
	address := free.Addr().String()
	require.NoError(b.t, free.Close())
	program := cmp.Or(os.Getenv("KVBOOTH_PROMETHEUS"), filepath.Join(b.bin, "prometheus"))
	b.start(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address)
	plain := apiOf(b.t, "http://"+address)
	b.until("the plain Prometheus is up", func() bool {
		_, err := plain.Targets(b.t.Context())
		return err == nil
	})
	return plain
}

// at is the URL of a row of the booth's summary.
func (b *booth) at(name string) string {
	found := regexp.MustCompile(`(?m)^  ` + name + ` +(http://[0-9.:]+)`).FindStringSubmatch(b.out.String())
	require.NotNil(b.t, found, name)
	return found[1]
}

// steer has the workload go through a step, a stop, a mode and back, and a sweep.
func (b *booth) steer(prometheus v1.API) {
	ctx := b.t.Context()
	loadgen, err := api.NewClient(http.DefaultClient, b.at("load generator"), "")
	require.NoError(b.t, err)
	sees := func(what, expr string) {
		b.until("Prometheus sees that "+what, func() bool {
			value, _, _, err := prometheus.Query(ctx, expr, time.Now())
			return err == nil && len(value.(model.Vector)) > 0
		})
	}
	reaches := func(mode api.Mode, concurrency int) {
		b.until(fmt.Sprintf("turns have ended under %s at %d", mode, concurrency), func() bool {
			s, err := loadgen.Snapshot(ctx)
			if err != nil || len(s.Lanes) != 2 {
				return false
			}
			now, n := s.Lanes[0].State, s.Lanes[0].Window.Metrics.TTFT.N
			return now.Running && now.Mode == mode && now.Concurrency.Target.Conversations() == concurrency && n > 0
		})
		// Annotations compare with what was 5 s ago.
		sees("it has run for a while",
			"min_over_time(loadgen_workload_running[7s]) == 1 and count_over_time(loadgen_workload_running[7s]) > 5")
	}
	reaches(api.ModeKV, 60)
	_, err = loadgen.Patch(ctx, api.DefaultLane, api.WorkloadPatch{Level: new(api.AtConversations(70))})
	require.NoError(b.t, err)
	reaches(api.ModeKV, 70)

	_, err = loadgen.Stop(ctx, api.DefaultLane, api.StopRequest{})
	require.NoError(b.t, err)
	sees("it has stopped", "loadgen_workload_running == 0")
	_, err = loadgen.Start(ctx, api.DefaultLane, api.StartRequest{Level: new(api.AtConversations(70))})
	require.NoError(b.t, err)

	for _, mode := range []api.Mode{api.ModeRoundRobin, api.ModeKV} {
		_, err := loadgen.SetMode(ctx, api.DefaultLane, api.ModeRequest{Mode: mode, Speculation: api.SpeculationNotRecorded})
		require.NoError(b.t, err)
		reaches(mode, 70)
	}
	b.sweep(loadgen)
}

// sweep has a span under each mode, of few conversations, which end soon.
func (b *booth) sweep(loadgen *api.Client) {
	ctx := b.t.Context()
	asked, err := loadgen.StartSweep(ctx, api.DefaultLane, api.SweepRequest{
		Kind:      api.SweepLevels,
		Levels:    api.LevelsOf(4),
		Modes:     []api.ModeState{{Mode: api.ModeRoundRobin}, {Mode: api.ModeKV}},
		Repeats:   new(1),
		WarmUp:    new(0.),
		Seconds:   new(1.),
		Snapshots: new(1),
	})
	require.NoError(b.t, err)
	b.until("the sweep has ended", func() bool {
		s, err := loadgen.Sweep(ctx, asked.ID)
		return err == nil && s.State.Ended()
	})
}

func (b *booth) until(what string, holds func() bool) {
	b.t.Helper()
	wait.Within(b.t, patience, what, func() (any, bool) { return b.out.String(), holds() })
}
