package cluster

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// enginePage returns the page of an engine without Dynamo. A start of 0 is not reported.
func enginePage(inflight int, start float64, further ...string) string {
	text := fmt.Sprintf("vllm:num_requests_running{engine=\"0\",model_name=\"m\"} %d\n", inflight)
	if start > 0 {
		text += fmt.Sprintf("process_start_time_seconds %v\n", start)
	}
	return text + strings.Join(further, "\n") + "\n"
}

// A request counts once, although engines write it once a rank. The page is read directly and through a Prometheus,
// which drops labels without a value.
func TestSchedulersCountOnce(t *testing.T) {
	sglang := func(metric, labels string, value int) string {
		return fmt.Sprintf("sglang:%s{model_name=\"m\",%s} %d\n", metric, labels, value)
	}
	series := func(labels string, running, queued int) string {
		return sglang("num_running_reqs", labels, running) + sglang("num_queue_reqs", labels, queued)
	}
	for name, tt := range map[string]struct {
		page              string
		inflight, waiting float64
	}{
		"tensor parallel": {fixture(t, "sglang_tp.prom"), 4, 3},
		"with priorities": {fixture(t, "sglang_priority.prom"), 14, 2},
		"pipeline parallel": {series(`tp_rank="0",pp_rank="0"`, 6, 1) + series(`tp_rank="0",pp_rank="1"`, 6, 1) +
			series(`tp_rank="1",pp_rank="1"`, 6, 1), 6, 1},
		"the first rank counts, by number": {series(`tp_rank="10"`, 9, 9) + series(`tp_rank="2"`, 5, 2), 5, 2},
		"expert parallel": {
			series(`moe_ep_rank="0",tp_rank="0"`, 5, 2) + series(`moe_ep_rank="1",tp_rank="1"`, 5, 2), 5, 2,
		},
		"data parallel ranks are schedulers": {
			series(`dp_rank="0",tp_rank="0"`, 4, 3) + series(`dp_rank="0",tp_rank="1"`, 4, 3) +
				series(`dp_rank="1",tp_rank="2"`, 2, 1) +
				series(`dp_rank="1",tp_rank="3"`, 2, 1), 6, 4,
		},
		"priorities without a sum": {series(`priority="0",tp_rank="0"`, 4, 2) + series(`priority="5",tp_rank="0"`, 3, 1) +
			series(`priority="5",tp_rank="1"`, 3, 1), 7, 3},
		"a sum without the label": {series(`tp_rank="0"`, 7, 3) + series(`priority="0",tp_rank="0"`, 4, 2) +
			series(`priority="5",tp_rank="0"`, 3, 1), 7, 3},
		"no ranks": {series(`engine_type="unified"`, 4, 3), 4, 3},
		"engines of vLLM are data parallel": {
			"vllm:num_requests_running{engine=\"0\"} 4\nvllm:num_requests_running{engine=\"1\"} 2\n" +
				"vllm:num_requests_waiting{engine=\"0\"} 1\nvllm:num_requests_waiting{engine=\"1\"} 3\n", 6, 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for source, c := range map[string]api.Cluster{
				"a page": watched(t, api.SpeculationOff, scene{"frontend:8000": tt.page}),
				"Prometheus": summarize(t.Context(), query(t, "", scraped{
					{labels("engines", "worker:8000"), strings.ReplaceAll(tt.page, `priority="",`, "")},
				}), api.SpeculationOff),
				"a Prometheus that scrapes it twice": summarize(t.Context(), query(t, "", scraped{
					{labels("pods", "worker:8000"), tt.page}, {labels("services", "worker:8000"), tt.page},
				}), api.SpeculationOff),
			} {
				require.Len(t, c.Workers, 1, source)
				near(t, tt.inflight, c.Workers[0].Inflight, source)
				near(t, tt.waiting, c.Workers[0].Waiting, source)
				near(t, tt.inflight, c.Inflight, source)
			}
		})
	}
}

func TestHitRatePrefersCountersToGauge(t *testing.T) {
	sglang := func(cached, prompt, gauge int) scene {
		return scene{"frontend:8000": fmt.Sprintf("sglang:num_running_reqs 1\nsglang:cached_tokens_total{cache_source="+
			"\"device\"} %d\nsglang:prompt_tokens_total %d\nsglang:cache_hit_rate %d\n", cached, prompt, gauge)}
	}
	vllm := func(names ...string) scene {
		return scene{"frontend:8000": "vllm:num_requests_running 1\n" + strings.Join(names, "\n") + "\n"}
	}
	prefix := func(hits, queries int) (lines []string) {
		for _, name := range []string{"vllm:prefix_cache", "vllm:gpu_prefix_cache"} {
			lines = append(lines, fmt.Sprintf("%s_hits_total %d\n%[1]s_queries_total %[3]d", name, hits, queries))
		}
		return lines
	}
	old := scene{"frontend:8000": fixture(t, "vllm_v1_085.prom")}
	later := scene{"frontend:8000": fixture(t, "vllm_v1_085_later.prom")}
	gauge := vllm("trtllm_kv_cache_hit_rate 0.5")
	v0, off := vllm("vllm:gpu_prefix_cache_hit_rate 0.4"), vllm("vllm:gpu_prefix_cache_hit_rate -1")
	for name, tt := range map[string]struct {
		before, after scene
		want          *float64
		reported      bool
	}{
		"a gauge of 0 beside counters":     {sglang(100, 1000, 0), sglang(700, 2000, 0), new(0.6), true},
		"a gauge of 1 beside counters":     {sglang(100, 1000, 1), sglang(700, 2000, 1), new(0.6), true},
		"counters at rest":                 {sglang(100, 1000, 0), sglang(100, 1000, 0), nil, true},
		"a gauge alone":                    {gauge, gauge, new(0.5), true},
		"vLLM 0.8 to 0.9":                  {old, later, new(0.75), true},
		"vLLM with old and new names":      {vllm(prefix(10, 20)...), vllm(prefix(60, 120)...), new(0.5), true},
		"vLLM's V0":                        {v0, v0, new(0.4), true},
		"vLLM's V0 without a prefix cache": {off, off, nil, false},
	} {
		c := watched(t, api.SpeculationOff, tt.before, tt.after)
		require.Len(t, c.Workers, 1, name)
		w := c.Workers[0]
		if tt.want == nil {
			require.Nil(t, w.HitRatio, "%s: unknown is not 0", name)
		} else {
			near(t, *tt.want, w.HitRatio, name)
		}
		require.Equal(t, !tt.reported, strings.Contains(strings.Join(w.NotReported, " "), "hit_ratio"), name)
		require.NotContains(t, c.Problem, "impossible", name)
	}
	c := watched(t, api.SpeculationOff, old, later)
	near(t, 0.75, c.KV.HitRatio, "of the cluster")
	near(t, 0.31, c.Workers[0].CacheUse, "KV cache in use")
	near(t, 3, c.Workers[0].Inflight, "in flight")
	near(t, 2, c.Workers[0].Waiting, "waiting")
}

// Pages of one process count as one worker. Pages of different processes do not, although their labels are alike.
func TestPagesOfOneProcess(t *testing.T) {
	const created = "vllm:prompt_tokens_created "
	busy := func(tokens int) string { return fmt.Sprintf("vllm:prefix_cache_queries_total %d", tokens) }
	ranks := func(first, second int) string {
		const rank = "sglang:num_running_reqs{model_name=\"m\",tp_rank=\"%d\"} 4\n"
		return fmt.Sprintf(rank+rank, first, second)
	}
	running := func(engine string, n int) string {
		return fmt.Sprintf("sglang:num_running_reqs{engine_type=%q,model_name=\"m\"} %d", engine, n)
	}
	at100, unknown := enginePage(2, 100.5), enginePage(2, 0)
	for name, tt := range map[string]struct {
		pages   scene
		workers string
		total   float64
	}{
		"a router that shows one of its two workers": {
			scene{"frontend:8000": at100, "one:1": at100, "two:1": enginePage(2, 107)}, "one:1 two:1", 4,
		},
		"the router's copy is a moment older": {scene{
			"frontend:8000": enginePage(2, 100.5, busy(9900), created+"101"),
			"one:1":         enginePage(2, 100.5, busy(10000), created+"101"), "two:1": enginePage(2, 107, busy(5)),
		}, "one:1 two:1", 4},
		"no process start: the target's page is a worker's that it looks like": {
			scene{"frontend:8000": unknown, "one:1": unknown, "two:1": unknown}, "one:1 two:1", 4,
		},
		"the same process at two addresses": {scene{"one:1": at100, "other:1": at100}, "one:1", 2},
		"another process start": {
			scene{"frontend:8000": enginePage(2, 99), "one:1": at100}, "frontend:8000 one:1", 4,
		},
		"begun in the same moment": {
			scene{"one:1": enginePage(2, 100.5, busy(1000)), "two:1": enginePage(2, 100.5, busy(5000))}, "one:1 two:1", 4,
		},
		"begun in the same moment, other counters": {scene{
			"one:1": enginePage(2, 100.5, created+"101.25"), "two:1": enginePage(2, 100.5, created+"101.75"),
		}, "one:1 two:1", 4},
		"begun in the same moment, and idle": {
			scene{"one:1": enginePage(2, 100.5, busy(0)), "two:1": enginePage(2, 100.5, busy(0))}, "one:1 two:1", 4,
		},
		"begun in the same moment, under equal load": {
			scene{"one:1": enginePage(2, 100.5, busy(10000)), "two:1": enginePage(2, 100.5, busy(9990))}, "one:1 two:1", 4,
		},
		"a target's page between two steps of its worker": {
			scene{"frontend:8000": enginePage(2, 100.5, busy(9900)), "one:1": enginePage(2, 100.5, busy(10000))}, "one:1", 2,
		},
		"other engine labels": {
			scene{"frontend:8000": running("decode", 1), "one:1": running("prefill", 2)}, "frontend:8000 one:1", 3,
		},
		"no process start, two pages": {scene{"one:1": unknown, "two:1": unknown}, "one:1 two:1", 4},
		"a router before Dynamo's worker": {
			scene{"frontend:8000": workerPage("a", 4), "one:1": workerPage("a", 4), "two:1": workerPage("b", 5)},
			"one:1 two:1", 9,
		},
		"the second node of a tensor parallel": {scene{"one:1": ranks(0, 1), "two:1": ranks(2, 3)}, "one:1", 4},
	} {
		t.Run(name, func(t *testing.T) {
			c := watched(t, api.SpeculationOff, tt.pages)
			var names []string
			for _, w := range c.Workers {
				names = append(names, w.Name)
			}
			require.Equal(t, tt.workers, strings.Join(names, " "))
			near(t, tt.total, c.Inflight, "pages")
			if own := tt.pages["frontend:8000"]; own != "" &&
				(!strings.Contains(tt.pages["one:1"], "process_start") || strings.Contains(name, "between two steps")) {
				return // a Prometheus does not know which page is the target's
			}
			var all scraped
			for host, page := range tt.pages {
				all = append(all, scraped{{labels("j", host), page}}...)
			}
			c = summarize(t.Context(), query(t, "", all), api.SpeculationOff)
			require.Len(t, c.Workers, len(names), "Prometheus")
			near(t, tt.total, c.Inflight, "Prometheus")
		})
	}
}

// A router's page that shows another worker each time is left out, and named where its workers have no page. Nothing
// that was read of it counts as growth. One restart leaves a page in place.
func TestPageOfSeveralProcessesInTurn(t *testing.T) {
	const note = "router:8000 shows the metrics of several processes in turn, so that they are left out; " +
		"name the page of each worker in cluster.metrics_urls"
	counts := func(hits, prompts int) string {
		return fmt.Sprintf("vllm:prefix_cache_hits_total{model_name=\"m\"} %d\nvllm:prefix_cache_queries_total%s %d", hits,
			`{model_name="m"}`, prompts)
	}
	one, two := enginePage(1, 100, counts(400, 1000)), enginePage(2, 200, counts(900, 9000))
	first, second := enginePage(1, 0, counts(400, 1000)), enginePage(2, 0, counts(300, 500))
	later := enginePage(1, 0, counts(410, 1020))
	for name, tt := range map[string]struct {
		shown   []string // pages of the router in turn
		worker  string   // page of a worker; "" if none is named
		workers int
		noted   bool
		late    bool // the worker's page is missing before the last reading
	}{
		"by the start of the process": {[]string{one, two, one, two}, "", 0, true, false},
		"the older process first":     {[]string{two, one, two}, "", 0, true, false},
		"without a start, by the counters": {
			append([]string{first, second}, slices.Repeat([]string{later, second}, mostRestarts)...), "", 0, true, false,
		},
		"restarts soon after each other": {
			append([]string{first, second}, slices.Repeat([]string{later, second}, mostRestarts-1)...), "", 1, false, false,
		},
		"three processes":                        {[]string{one, two, enginePage(3, 300), two}, "", 0, true, false},
		"one of its workers has a page":          {[]string{one, two, one, two}, one, 1, true, false},
		"its only other worker is named":         {[]string{one, two, one, one}, two, 1, true, false},
		"its only other worker has a page later": {[]string{two, one, one}, one, 1, false, true},
		"a restart":                              {[]string{one, two, two, two}, "", 1, false, false},
		"a restart without the start":            {[]string{first, second, second, second}, "", 1, false, false},
		"counters that only grow":                {[]string{first, later, later, later}, "", 1, false, false},
		"a frontend that does not pass calls on": {[]string{one, one, one, one}, one, 1, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			pages := scene{}
			direct, err := NewDirect("http://router:8000", []string{"http://one:1"}, &http.Client{Transport: pages})
			require.NoError(t, err)
			pagesOnly, scrapes, now := &history{}, &history{}, start
			for i, shown := range tt.shown {
				pages["router:8000"] = shown
				all := scraped{{labels("j", "router:8000"), shown}}
				if tt.worker != "" && (!tt.late || i == len(tt.shown)-1) {
					pages["one:1"] = tt.worker
					all = append(all, scraped{{labels("j", "one:1"), tt.worker}}...)
				}
				samples, _ := direct.Fetch(t.Context()) // an unnamed worker's page is missing
				now = now.Add(time.Second)
				for source, c := range map[string]api.Cluster{
					"pages":      summarize(t.Context(), pagesOnly.add(now, samples), api.SpeculationOff),
					"Prometheus": summarize(t.Context(), scrapes.add(now, query(t, "", all)), api.SpeculationOff),
				} {
					if len(pagesOnly.processes) == 0 || now.Sub(start) < time.Duration(len(tt.shown))*time.Second {
						continue
					}
					require.Len(t, c.Workers, tt.workers, source)
					require.Equal(t, tt.noted, strings.Contains(c.Problem, note), "%s: %s", source, c.Problem)
					require.Equal(t, tt.noted && tt.workers == 0, c.Unread.Workers != "", "%s: the number is unknown", source)
					if name != "counters that only grow" {
						require.Nil(t, c.KV.HitRatio, source)
					}
				}
			}
		})
	}
}

// Each instance of a GPU in MIG mode has a row. Figures that the exporter does not report are unknown.
func TestGPUInstances(t *testing.T) {
	const mib = 1 << 20
	use := func(gpus []api.GPU) (rows []string) {
		format := func(v *float64, unit float64) string {
			if v == nil {
				return "?"
			}
			return fmt.Sprintf("%.4g", *v/unit)
		}
		for _, g := range gpus {
			rows = append(rows, fmt.Sprintf("%s %s: %s, %s of %s", g.Index, g.Instance, format(g.Utilisation, .01),
				format(g.MemoryUsed, mib), format(g.MemoryTotal, mib)))
		}
		return rows
	}
	for name, tt := range map[string]struct {
		page string
		want []string
	}{
		"two instances": {
			fixture(t, "dcgm_mig.prom"),
			[]string{"0 2g.20gb #3: 93, 1e+04 of 1.9e+04", "0 2g.20gb #5: ?, 10 of 1.901e+04"},
		},
		"beside a whole GPU, with the divided one's own rows": {
			`DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="b"} 40
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="1",UUID="b"} 0.9
DCGM_FI_DEV_FB_USED{gpu="0",UUID="a"} 300
DCGM_FI_DEV_FB_USED{gpu="0",UUID="a",GPU_I_ID="11",GPU_I_PROFILE="1g.10gb"} 200
DCGM_FI_DEV_FB_USED{gpu="0",UUID="a",GPU_I_ID="7",GPU_I_PROFILE="1g.10gb"} 100
`, []string{"0 1g.10gb #7: ?, 100 of ?", "0 1g.10gb #11: ?, 200 of ?", "1 : 40, ? of ?"},
		},
		"the total of the exporter, and no utilization of the device": {
			"DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu=\"0\"} 0.5\nDCGM_FI_DEV_FB_USED{gpu=\"0\"} 100\n" +
				"DCGM_FI_DEV_FB_FREE{gpu=\"0\"} 200\nDCGM_FI_DEV_FB_TOTAL{gpu=\"0\"} 400\n",
			[]string{"0 : 50, 100 of 400"},
		},
	} {
		c := watched(t, api.SpeculationOff, scene{"w:1": workerPage("a", 1), "w:9400": tt.page})
		require.Equal(t, tt.want, use(c.Workers[0].GPUs), name)
	}
}
