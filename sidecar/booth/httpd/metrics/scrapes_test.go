package metrics

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// leftOut are series of real processes that the simulation does not have, with the reasons.
var leftOut = []struct{ series, why string }{
	{`^dynamo_tokio_`, "the Rust runtime"},
	{`^dynamo_frontend_event_loop_`, "the Rust runtime"},
	{`^dynamo_transport_tcp_`, "the network between the processes"},
	{`^dynamo_request_plane_(queue|send)_seconds`, "the network between the processes"},
	{`^dynamo_work_handler_`, "the network between the processes"},
	{`^dynamo_component_(request|response)_bytes_total`, "the network between the processes"},
	{`^dynamo_component_router_active_sequence_`, "exchange between several routers; there is one"},
	{`^dynamo_component_router_kv_zmq_ingress_`, "the way of the caches' events"},
	{`^dynamo_component_router_kv_event_source_mismatch_workers`, "the way of the caches' events"},
	{`^dynamo_component_ckf_mutation_total`, "the insides of Dynamo's index"},
	{`dynamo_endpoint="worker_kv_query_source_`, "recovery of lost events, which do not occur"},
	{`^dynamo_component_router_approximate_`, "for engines that publish no events"},
	{`^dynamo_router_overhead_`, "the time that Dynamo's own code takes"},
	{`^dynamo_frontend_stage_duration_seconds{stage="(preprocess|route)"}`, "the time that Dynamo's own code takes"},
	{`^dynamo_frontend_template_seconds`, "the time that Dynamo's own code takes"},
	{`^dynamo_frontend_tokenize`, "the time that Dynamo's own code takes, and its caches"},
	{`^dynamo_frontend_detokenize_`, "the time that Dynamo's own code takes"},
	{`^dynamo_frontend_(images?|image_tokens|videos|audio)_per_request`, "requests are text"},

	{`^trtllm:`, "names of Dynamo's mock engine; TensorRT-LLM's own are written"},
	{`^vllm:gpu_cache_usage_perc`, "an alias of vllm:kv_cache_usage_perc for old dashboards"},
}

// documented are metrics in Dynamo's catalog that these scrapes lack: the first two because nothing happened, the
// others because the engines were mocks.
var documented = []string{
	"dynamo_frontend_model_cancellation_total", "dynamo_frontend_model_rejection_total",
	"dynamo_component_total_blocks", "dynamo_component_gpu_cache_usage_percent",
}

func realScrape(t testing.TB, name string) families {
	t.Helper()
	text, err := os.ReadFile("../../../loadgen/cluster/testdata/" + name + ".prom")
	require.NoError(t, err)
	return parse(t, string(text))
}

var hexadecimalID = regexp.MustCompile(`^[0-9a-f]{16}$`)

// form returns the labels of a series. Values that differ between clusters are replaced by their format.
func form(name string, m *dto.Metric) string {
	all := labels(m)
	for _, l := range []string{"worker_id", "router_id", "router_worker_id"} {
		id, ok := all[l]
		if !ok {
			continue
		}
		_, err := strconv.ParseUint(id, 10, 64)
		switch {
		case hexadecimalID.MatchString(id):
			all[l] = "hexadecimal"
		case err == nil:
			all[l] = "decimal"
		}
	}
	var text []string
	for _, l := range slices.Sorted(maps.Keys(all)) {
		text = append(text, fmt.Sprintf("%s=%q", l, all[l]))
	}
	return name + "{" + strings.Join(text, ",") + "}"
}

func bounds(m *dto.Metric) []float64 {
	var all []float64
	for _, b := range m.GetHistogram().GetBucket() {
		all = append(all, b.GetUpperBound())
	}
	return all
}

// series returns the series of a scrape whose names have one of the prefixes, by their form.
func (f families) series(prefixes ...string) map[string]*dto.Metric {
	all := map[string]*dto.Metric{}
	for name, family := range f {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		for _, m := range family.GetMetric() {
			all[form(name, m)] = m
		}
	}
	return all
}

// loaded returns a cluster that has served some requests, with others in progress.
func loaded(t testing.TB, engine string, m api.Mode) *booth {
	b := start(t, engine, func(o *sim.Options) { o.Mode = m })
	for range 60 {
		b.send(3000, 200)
		b.advance(100 * time.Millisecond)
	}
	b.drain()
	for range 10 {
		b.send(3500, 200)
		b.advance(100 * time.Millisecond)
	}
	return b
}

// TestMetricsMatchRealProcesses checks that each series of the real processes exists with the same type, help, labels
// and buckets, or is listed as left out, and that there are no other series.
func TestMetricsMatchRealProcesses(t *testing.T) {
	used := map[string]bool{}
	isLeftOut := func(series string) bool {
		for _, l := range leftOut {
			if regexp.MustCompile(l.series).MatchString(series) {
				used[l.series] = true
				return true
			}
		}
		return false
	}
	compare := func(t *testing.T, actual, ours families) {
		want, got := actual.series("dynamo_", "trtllm", "vllm", "sglang"), ours.series("dynamo_")
		maps.Copy(got, ours.series("vllm", "sglang"))
		for series, m := range want {
			name, _, _ := strings.Cut(series, "{")
			if isLeftOut(series) {
				assert.NotContains(t, got, series)
				continue
			}
			if !assert.Contains(t, got, series, "series of a real process that is neither written nor left out") {
				continue
			}
			assert.Equal(t, bounds(m), bounds(got[series]), series)
			assert.Equal(t, actual[name].GetType(), ours[name].GetType(), name)
			assert.Equal(t, actual[name].GetHelp(), ours[name].GetHelp(), name)
		}
		for series := range got {
			name, _, _ := strings.Cut(series, "{")
			hasMoreThanMock := strings.HasPrefix(name, "vllm:") || strings.HasPrefix(name, "sglang:")
			if !hasMoreThanMock && !slices.Contains(documented, name) {
				assert.Contains(t, want, series, "series that no real process has")
			}
		}
	}
	modes := map[string]api.Mode{"frontend-kv": api.ModeKV, "frontend-round-robin": api.ModeRoundRobin}
	for page, m := range modes {
		t.Run(page, func(t *testing.T) {
			compare(t, realScrape(t, page), scrape(t, loaded(t, "trtllm", m).metrics.Frontend()))
		})
	}
	for _, engine := range []string{"trtllm", "vllm", "sglang"} {
		t.Run("worker-"+engine, func(t *testing.T) {
			ours := scrape(t, loaded(t, engine, api.ModeKV).metrics.Worker(1))
			compare(t, realScrape(t, "worker-"+engine), ours)
		})
	}
	for _, l := range leftOut {
		assert.True(t, used[l.series], "%s is in no scrape", l.series)
	}
}

func TestFailureMetricsHaveDocumentedNames(t *testing.T) {
	b := loaded(t, "trtllm", api.ModeKV)
	r := b.send(100, 10)
	b.do(func(c *sim.Cluster) { c.Cancel(r.job) })
	b.metrics.Begin(false).Ended("overload")
	known := append(realScrape(t, "frontend-kv").names(), documented...)
	known = append(known, realScrape(t, "worker-trtllm").names()...)
	for _, page := range []families{scrape(t, b.metrics.Frontend()), scrape(t, b.metrics.Worker(0))} {
		for _, name := range page.names() {
			if strings.HasPrefix(name, "dynamo_") {
				assert.Contains(t, known, name)
			}
		}
	}
	f := scrape(t, b.metrics.Frontend())
	assert.EqualValues(t, 1, f.value(t, "dynamo_frontend_model_cancellation_total",
		"endpoint", "chat_completions", "request_type", "stream"))
	assert.EqualValues(t, 1, f.value(t, "dynamo_frontend_model_rejection_total", "endpoint", "chat_completions"))
}

func TestLeastLoadedHasMetricsOfRoundRobin(t *testing.T) {
	roundRobin := scrape(t, loaded(t, "trtllm", api.ModeRoundRobin).metrics.Frontend())
	leastLoaded := scrape(t, loaded(t, "trtllm", api.ModeLeastLoaded).metrics.Frontend())
	assert.Equal(t, roundRobin.names(), leastLoaded.names())
	assert.Zero(t, leastLoaded.count(t, "dynamo_component_router_kv_hit_rate"))
}

// TestCountsAddUpUnderLoad checks the sums that hold in the real scrapes too. In those, up to 63 tokens of each
// request in progress are not yet in inter_token_latency.
func TestCountsAddUpUnderLoad(t *testing.T) {
	for _, row := range []struct {
		page string
		mode api.Mode
	}{{"frontend-kv", api.ModeKV}, {"frontend-round-robin", api.ModeRoundRobin}} {
		for origin, f := range map[string]families{
			"real": realScrape(t, row.page), "simulated": scrape(t, loaded(t, "vllm", row.mode).metrics.Frontend()),
		} {
			front := func(name string) float64 { return f.count(t, "dynamo_frontend_"+name) }
			routed := func(name string) float64 { return f.count(t, "dynamo_component_router_"+name) }
			begun := f.value(t, "dynamo_frontend_requests_started_total")
			ended := f.value(t, "dynamo_frontend_requests_total", "status", "success")
			queued := f.value(t, "dynamo_frontend_queued_requests")
			first := front("time_to_first_token_seconds")
			intent := row.page + ", " + origin
			assert.Equal(t, begun, ended+f.value(t, "dynamo_frontend_inflight_requests"), intent)
			assert.Equal(t, begun, first+queued, intent)
			assert.Equal(t, queued, f.value(t, "dynamo_frontend_stage_requests", "stage", "dispatch"), intent)
			assert.Equal(t, first, front("input_sequence_tokens"), "%s: counted at the first token", intent)
			assert.Equal(t, begun, routed("input_sequence_tokens"), "%s: counted at routing", intent)
			assert.Equal(t, first, routed("time_to_first_token_seconds"), intent)
			for _, name := range []string{"cached_tokens", "output_sequence_tokens", "request_duration_seconds"} {
				assert.Equal(t, ended, front(name), "%s: %s at the end", intent, name)
			}
			gaps, tokens := front("inter_token_latency_seconds"), f.value(t, "dynamo_frontend_output_tokens_total")
			assert.LessOrEqual(t, gaps, tokens-first, intent)
			assert.GreaterOrEqual(t, gaps, tokens-first-63*(begun-ended), intent)
			if origin == "simulated" {
				assert.Equal(t, tokens-first, gaps, intent)
			}
			hits, means, admitted := begun, 0., begun
			if row.mode != api.ModeKV {
				hits, means, admitted = 0, ended, -1
			}
			assert.Equal(t, hits, routed("kv_hit_rate"), intent)
			assert.Equal(t, means, routed("inter_token_latency_seconds"), intent)
			assert.Equal(t, admitted, f.value(t, "dynamo_frontend_router_admission_received_total"), intent)
		}
	}
}
