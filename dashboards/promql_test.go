package dashboards

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/promtest"
)

// The panels of the waiting requests and of the GPUs on series that hold a figure more than once: SGLang writes it
// once for each rank of tensor or pipeline parallelism and each priority, and a GPU in MIG mode has a series for each
// instance, without the utilization of the whole.
func TestPanelsCountOnce(t *testing.T) {
	const series = `
sglang:num_queue_reqs{namespace="n",pod="tp",tp_rank="0",pp_rank="0"} 3
sglang:num_queue_reqs{namespace="n",pod="tp",tp_rank="1",pp_rank="0"} 3
sglang:num_queue_reqs{namespace="n",pod="tp",tp_rank="0",pp_rank="1"} 3
sglang:num_queue_reqs{namespace="n",pod="dp",tp_rank="0",dp_rank="0"} 3
sglang:num_queue_reqs{namespace="n",pod="dp",tp_rank="1",dp_rank="1"} 4
sglang:num_queue_reqs{namespace="n",pod="priority",tp_rank="0"} 2
sglang:num_queue_reqs{namespace="n",pod="priority",priority="0",tp_rank="0"} 2
sglang:num_queue_reqs{namespace="n",pod="priority",priority="-1",tp_rank="0"} 0
DCGM_FI_DEV_GPU_UTIL{exported_namespace="n",gpu="1"} 40
DCGM_FI_PROF_GR_ENGINE_ACTIVE{exported_namespace="n",gpu="1"} 0.9
DCGM_FI_PROF_GR_ENGINE_ACTIVE{exported_namespace="n",gpu="0",GPU_I_ID="3"} 0.93
DCGM_FI_DEV_FB_USED{exported_namespace="n",gpu="0",GPU_I_ID="3"} 10000
DCGM_FI_DEV_FB_FREE{exported_namespace="n",gpu="0",GPU_I_ID="3"} 10000
DCGM_FI_DEV_FB_USED{exported_namespace="n",gpu="1"} 100
DCGM_FI_DEV_FB_FREE{exported_namespace="n",gpu="1"} 100
DCGM_FI_DEV_FB_TOTAL{exported_namespace="n",gpu="1"} 400
`
	ask := promtest.On(t, series)
	want := map[string][]string{
		"num_queue_reqs":       {"dp 7", "priority 2", "tp 3"},
		"DCGM_FI_DEV_GPU_UTIL": {"0/3 93", "1/ 40"},
		"DCGM_FI_DEV_FB_USED":  {"0/3 0.5", "1/ 0.25"},
	}
	tested := map[string]int{}
	for _, file := range files {
		for _, p := range load(t, file).Panels {
			for _, target := range p.Targets {
				for name, rows := range want {
					if strings.Contains(target.Expr, name) {
						require.Equal(t, rows, evaluate(ask, target.Expr), "%s: %s", file, p.Title)
						tested[name]++
					}
				}
			}
		}
	}
	require.Len(t, tested, len(want))
}

// A lane is listed once while the series of its mode before a change is not yet stale.
func TestLanesAreListedOnce(t *testing.T) {
	now := time.Now()
	ask := promtest.On(t, fmt.Sprintf(`
loadgen_info{lane="main",mode="kv",target="a"} 1 %d
loadgen_info{lane="main",mode="round_robin",target="a"} 1 %d
loadgen_info{lane="twin",mode="kv",target="b"} 1 %[2]d
`, now.Add(-time.Minute).UnixMilli(), now.UnixMilli()))
	var lanes []string
	for _, p := range load(t, "routers.json").Panels {
		if p.Title == "Lanes" {
			for _, s := range ask(p.Targets[0].Expr) {
				lanes = append(lanes, string(s.Metric["lane"]+" "+s.Metric["mode"]))
			}
		}
	}
	require.ElementsMatch(t, []string{"main round_robin", "twin kv"}, lanes)
}

// Rates of cached tokens around changes of the mode and of the load, each in a namespace of its own. A router counts
// the tokens of its requests in all modes, but predicts and knows the best worker in kv mode only. A frontend counts
// input tokens as requests start and cached tokens as they end.
func TestHitRatesEndWhereUndefined(t *testing.T) {
	var page strings.Builder
	now := time.Now()
	write := func(namespace string, kv func(ago int) bool, started, tokens float64) {
		of, _, _ := strings.Cut(namespace, "/")
		counters := map[string]float64{}
		for ago := 100; ago >= 0; ago -= 2 {
			add := func(name string, step float64) {
				counters[name] += step
				fmt.Fprintf(&page, "%s{namespace=%q,router_id=%q} %g %d\n", name, of, namespace, counters[name],
					now.Add(-time.Duration(ago)*time.Second).UnixMilli())
			}
			predicted := 0.
			if kv(ago) {
				predicted = 10
				add("dynamo_component_router_kv_best_eligible_cached_prefix_tokens_total", 9000)
			}
			add("dynamo_component_router_kv_hit_rate_sum", 0.8*predicted)
			add("dynamo_component_router_kv_hit_rate_count", predicted)
			add("dynamo_component_router_input_sequence_tokens_sum", 10000)
			add("dynamo_component_router_input_sequence_tokens_count", 10)
			add("dynamo_frontend_input_sequence_tokens_sum", started*tokens)
			add("dynamo_frontend_input_sequence_tokens_count", started)
			add("dynamo_frontend_cached_tokens_sum", 9000)
			add("dynamo_frontend_cached_tokens_count", 10)
		}
	}
	always := func(int) bool { return true }
	write("steady", always, 10, 1000)
	write("to-round-robin", func(ago int) bool { return ago > 20 }, 10, 1000)
	write("to-kv", func(ago int) bool { return ago <= 20 }, 10, 1000)
	write("load-falls", always, 5, 1000)
	write("shorter-requests", always, 10, 500)
	write("two/kv", always, 10, 1000)
	write("two/round-robin", func(int) bool { return false }, 10, 1000)

	want := map[string]map[string][]string{
		"Predicted hit rate": {
			"steady": {" 0.8"}, "load-falls": {" 0.8"}, "shorter-requests": {" 0.8"}, "two": {" 0.8"},
		},
		"Achievable hit rate": {
			"steady": {" 0.9"}, "load-falls": {" 0.9"}, "shorter-requests": {" 0.9"}, "two": {" 0.9"},
		},
		"KV hit rate, frontend": {
			"steady": {" 0.9"}, "load-falls": {" 0.9"}, "to-kv": {" 0.9"}, "to-round-robin": {" 0.9"}, "two": {" 0.9", " 0.9"},
		},
	}
	namespaces := []string{"steady", "to-round-robin", "to-kv", "load-falls", "shorter-requests", "two"}
	ask := promtest.On(t, page.String())
	tested := 0
	for _, file := range files {
		for _, p := range load(t, file).Panels {
			for _, target := range p.Targets {
				rows, ok := want[target.LegendFormat]
				if !ok {
					continue
				}
				tested++
				for _, namespace := range namespaces {
					expr := strings.ReplaceAll(target.Expr, "$namespace", namespace)
					require.Equal(t, rows[namespace], evaluate(ask, expr), "%s: %s", target.LegendFormat, namespace)
				}
			}
		}
	}
	require.Equal(t, len(want), tested)
}

// An alert fires where its condition has held by its margin for the whole time, in which the load was settled.
func TestAlertsFireAfterTheirTime(t *testing.T) {
	var page strings.Builder
	now := time.Now()
	write := func(lane string, ttft, settling func(ago int) float64) {
		for ago := 100; ago >= 0; ago -= 2 {
			at := now.Add(-time.Duration(ago) * time.Second).UnixMilli()
			fmt.Fprintf(&page, "loadgen_ttft_all_seconds{lane=%q,quantile=\"0.95\"} %g %d\n", lane, ttft(ago), at)
			fmt.Fprintf(&page, "loadgen_slo_seconds{lane=%q,metric=\"ttft\"} 1 %d\n", lane, at)
			fmt.Fprintf(&page, "loadgen_workload_running{lane=%q} 1 %d\n", lane, at)
			fmt.Fprintf(&page, "loadgen_settling{lane=%q} %g %d\n", lane, settling(ago), at)
		}
	}
	always := func(value float64) func(int) float64 { return func(int) float64 { return value } }
	since := func(seconds int, before, after float64) func(int) float64 {
		return func(ago int) float64 {
			if ago > seconds {
				return before
			}
			return after
		}
	}
	write("above", always(1.1), always(0))
	write("above for 80 s", since(80, 0.5, 1.1), always(0))
	write("above for 40 s", since(40, 0.5, 1.1), always(0))
	write("settled for 40 s", always(1.1), since(40, 1, 0))
	write("within the margin", always(1.03), always(0))

	ask := promtest.On(t, page.String())
	_, alerts := promRules(t)
	var fire []string
	for _, s := range ask(alerts[0].Expr) {
		fire = append(fire, string(s.Metric["lane"]))
	}
	require.ElementsMatch(t, []string{"above", "above for 80 s"}, fire, alerts[0].Alert)
}

// evaluate returns the values of a query, each behind its pod or GPU.
func evaluate(ask func(query string) model.Vector, expr string) (rows []string) {
	for _, s := range ask(strings.ReplaceAll(expr, "$namespace", "n")) {
		source := string(s.Metric["pod"])
		if gpu := s.Metric["gpu"]; gpu != "" {
			source = string(gpu + "/" + s.Metric["GPU_I_ID"])
		}
		rows = append(rows, fmt.Sprintf("%s %.4g", source, float64(s.Value)))
	}
	slices.Sort(rows)
	return rows
}
