package main

import (
	"fmt"
	"slices"
	"strings"
)

// A recorded figure of the default baseline, as a column of a table and by concurrency.
type recorded struct {
	ref, title, text string
	metric, labels   string
	moreIsBetter     bool
	unit             string
	digits           []property // in the table
	trend            object     // by concurrency
	objective        string     // its metric
}

const (
	p50 = `, percentile="50"`
	p95 = `, percentile="95"`
)

var (
	p95s = []recorded{
		{ref: "ttft", title: "TTFT", metric: "ttft_seconds", labels: p95},
		{ref: "tpot", title: "TPOT", metric: "tpot_seconds", labels: p95},
		{ref: "derived", title: "TPOT derived,", metric: "tpot_derived_seconds", labels: p95},
	}
	ttftP50 = recorded{
		ref: "ttft50", title: "TTFT p50", text: "median time to first token", metric: "ttft_seconds", labels: p50, unit: "s",
	}
	withObjective = []recorded{
		{
			title: "TTFT p95", text: "95th percentile of the time to first token, with its objective,",
			metric: "ttft_seconds", labels: p95, unit: "s", objective: "ttft",
		},
		{
			title: "TPOT p95", text: "95th percentile of the time per output token, with its objective,",
			metric: "tpot_seconds", labels: p95, unit: "s", objective: "tpot",
		},
	}
	others = []recorded{
		{
			ref: "e2e50", title: "End-to-end latency p50", text: "median end-to-end latency",
			metric: "latency_seconds", labels: p50, unit: "s",
		},
		{
			ref: "e2e95", title: "End-to-end latency p95", text: "95th percentile of the end-to-end latency",
			metric: "latency_seconds", labels: p95, unit: "s",
		},
		{
			ref: "tokens", title: "Output tokens/s", text: "output tokens per second over all workers",
			metric: "output_tokens_per_second", moreIsBetter: true, unit: "locale", digits: []property{decimals(0)},
			trend: object{"decimals": 0},
		},
		{
			ref: "rps", title: "Requests/s", text: "requests per second",
			metric: "requests_per_second", moreIsBetter: true, unit: "reqps", digits: []property{decimals(2)},
		},
		{
			ref: "hits", title: "KV hit rate", text: "share of prompt tokens served from a KV cache",
			metric: "kv_hit_ratio", moreIsBetter: true, unit: "percentunit", digits: []property{decimals(1)},
			trend: object{"decimals": 0, "custom": with(pointDefaults, object{"axisSoftMax": 1})},
		},
	}
	pointDefaults = with(lineDefaults, object{
		"showPoints": "always", "pointSize": 6, "spanNulls": false, "axisSoftMin": 0,
	})
	recordedColumns = []object{
		override("Concurrency", custom("width", 110), unit("none")),
		override("Baseline", custom("width", 215)),
		override("Speculation", custom("width", 115), texts("not_recorded", noRecord)),
	}
	byNumber = []object{
		transform("convertFieldType", object{
			"fields": object{}, "conversions": []object{{"targetField": "Concurrency", "destinationType": "number"}},
		}),
		sortBy("Concurrency"),
	}
)

// at is the figure under a mode at the levels that have all figures, or at all levels where none has, or where the
// variable says so.
func (r recorded) at(mode, labels string, variable bool) string {
	const complete = `loadgen_baseline_level_requests_per_second{lane="$lane"}`
	figure := fmt.Sprintf(`loadgen_baseline_level_%s{lane="$lane", mode="%s"%s%s}`, r.metric, mode, r.labels, labels)
	expr := "(" + figure + " and on (mode, speculation, concurrency) " + complete + ") or (" + figure + " unless on () " +
		complete + ")"
	if variable {
		expr += " or (" + figure + " and on () (vector($levels) == 1))"
	}
	return "(" + expr + ")"
}

// recordedQueries are the columns of a table: each figure under both modes, and what KV-aware routing gains.
func recordedQueries(figures []recorded, variable bool) (all []object) {
	for _, r := range figures {
		const by = "max by (baseline, concurrency, speculation) "
		roundRobin, kv := by+r.at("round_robin", "", variable), by+r.at("kv", "", variable)
		gain := "1 - " + kv + " / " + roundRobin
		if r.moreIsBetter {
			gain = kv + " / " + roundRobin + " - 1"
		}
		all = append(all, table(r.ref+"_round_robin", roundRobin), table(r.ref+"_kv", kv), table(r.ref+"_gain", gain))
	}
	return all
}

// recordedNames names and orders the columns.
func recordedNames(figures []recorded) object {
	index := object{"concurrency": 0}
	names := object{"concurrency": "Concurrency", "baseline": "Baseline", "speculation": "Speculation"}
	for _, r := range figures {
		for _, column := range [][2]string{
			{"round_robin", r.title + " round-robin"},
			{"kv", r.title + " KV"},
			{"gain", "Improvement of " + strings.NewReplacer("End-", "end-", ",", "").Replace(r.title)},
		} {
			field := "Value #" + r.ref + "_" + column[0]
			index[field] = len(index)
			names[field] = column[1]
		}
	}
	index["speculation"] = len(index)
	index["baseline"] = len(index)
	return organize([]string{"Time"}, index, names)
}

// byConcurrency are a table of the figures and a diagram of each.
func byConcurrency() []panel {
	columns := append([]recorded{ttftP50}, others...)
	var units []object
	for _, r := range columns {
		units = append(units, override("~^"+strings.ReplaceAll(r.title, "/", `\/`)+".*",
			append([]property{unit(r.unit)}, r.digits...)...))
	}
	panels := []panel{{
		id: 41, kind: "table", title: "Recorded benchmark, TTFT p50, end-to-end latency and rates", at: grid{0, 56, 24, 11},
		noValue: noRecord,
		description: "What the default baseline recorded at each level under round-robin and under KV-aware routing, and " +
			"by how much KV-aware routing is better (negative: worse). From the load generator's baseline: the levels that " +
			"have all figures (in the built-in baseline, those of the slider), or all levels, set by the variable Levels.",
		targets: recordedQueries(columns, true),
		defaults: object{
			"custom": with(cells, object{"minWidth": 80}), "mappings": notRecorded(nil), "color": fixed("text"),
			"thresholds": thresholds("transparent"),
		},
		overrides: slices.Concat(units, []object{override("~Improvement.*", unit("percentunit"), decimals(1))},
			recordedColumns),
		options:         tableOptions("sm"),
		transformations: append([]object{transform("merge", object{}), recordedNames(columns)}, byNumber...),
	}}
	for i, r := range slices.Concat([]recorded{ttftP50}, withObjective, others) {
		panels = append(panels, r.byConcurrency(42+i, grid{i % 4 * 6, 67 + i/4*8, 6, 8}))
	}
	return panels
}

func (r recorded) byConcurrency(id int, at grid) panel {
	const by, runs = "max by (concurrency) ", `, speculation=~"off|not_recorded"`
	roundRobin, kv := by+r.at("round_robin", runs, true), by+r.at("kv", runs, true)
	names := object{"concurrency": "Concurrency", "Value #round_robin": "Round-robin", "Value #kv": "KV-aware"}
	p := panel{
		id: id, kind: "trend", title: r.title + " by concurrency", at: at, unit: r.unit, noValue: noRecord,
		description: "Recorded " + r.text + " at each level of the default baseline under round-robin and under KV-aware " +
			"routing, for runs without speculation or with speculation not recorded. From the load generator's baseline: the " +
			"levels of the slider, or all levels, set by the variable Levels.",
		targets: []object{table("round_robin", roundRobin), table("kv", kv)},
		defaults: with(object{
			"custom": pointDefaults, "color": object{"mode": "palette-classic"}, "thresholds": thresholds("transparent"),
		}, r.trend),
		overrides: []object{
			override("Round-robin", color("orange")), override("KV-aware", color("blue")),
			override("Concurrency", unit("none"), decimals(0)),
		},
		options: with(seriesOptions, object{"xField": "Concurrency"}),
	}
	if r.objective != "" {
		names["Value #slo"] = "SLO"
		p.targets = append(p.targets, table("slo", "0 * max by (concurrency) ("+roundRobin+" or "+kv+
			`) + on () group_left () max(loadgen_slo_seconds{lane="$lane", metric="`+r.objective+`"})`))
		p.overrides = append(p.overrides, override("SLO", color("red"), custom("showPoints", "never"), dashed, width(1)))
	}
	p.transformations = append([]object{transform("merge", object{}), organize([]string{"Time"}, object{}, names)},
		byNumber...)
	return p
}
