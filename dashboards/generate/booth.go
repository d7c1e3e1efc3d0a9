package main

import (
	"slices"
	"strings"
)

var booth = dashboard{
	uid: "kvbooth-booth", title: "KV Booth", revision: 4, refresh: "5s", from: "now-15m",
	description: "Everything in one dashboard: control the workload and see live what KV-cache-aware routing does to " +
		"it, next to recorded results.",
	variables: []object{levels},
	panels: []panel{
		keyFigures(panel{
			id: 1, at: grid{0, 0, 10, 3},
			description: "Completed requests per second and output tokens per second over the last 60 s, and all requests " +
				"since the start. From the load generator's live stream; a dash means no data because the workload is not running.",
			targets: channel("kpi", 0, "rps", "requests", "output_tokens_per_second"),
			overrides: []object{
				override("RPS", named("Requests/s, 60 s"), decimals(2), unit("none")),
				override("Output tokens/s", named("Output tokens/s, 60 s"), decimals(0)),
			},
		}, "Requests/s, 60 s|Requests|Output tokens/s, 60 s"),
		keyFigures(panel{
			id: 13, at: grid{10, 0, 9, 3},
			description: "Share of prompt tokens served from a KV cache over the last 60 s, requests now waiting for their " +
				"first token, and requests failed since the start. From the load generator's live stream; a dash means no data " +
				"because the workload is not running or nothing reports it.",
			targets: channel("kpi", 0, "kv_hit_ratio", "queued", "errors"),
			overrides: []object{
				override("KV cache hit", named("KV hit rate, 60 s"), decimals(1)),
				override("Errors", property{"color", object{"mode": "thresholds"}},
					property{"thresholds", thresholds("text", object{"color": "red", "value": 1})}),
				override("Queued", unit("none")),
			},
		}, "KV hit rate, 60 s|Queued|Errors"),
		nested("controls", 2, grid{0, 3, 6, 20}, "Workload controls",
			"Starts and stops the workload, sets its concurrency and the routing mode. Shows the load generator's live stream; "+
				"only users with the operator role can change anything.", nil),
		nested("comparison", 3, grid{6, 3, 18, 20}, "Live against baseline",
			"What this step measured (at most the last hour), next to recorded results at the same concurrency, colored by "+
				"objective. Live figures come from the load generator's live stream, recorded ones from its baseline.",
			object{"baseline": "", "hideRoundRobin": false, "hideKV": false, "size": "large"}),
		byTurn(panel{
			id: 4, title: "TTFT p50 by turn, 60 s", at: grid{0, 23, 6, 7},
			description: "Median time to first token of each turn of a conversation over the last 60 s: with a warm cache, " +
				"later turns start sooner than the first. From the load generator's live stream.",
			defaults: object{"color": fixed("blue"), "thresholds": thresholds("blue")},
		}, "p50"),
		byTurn(panel{
			id: 5, title: "TTFT p95 by turn, 60 s", at: grid{6, 23, 6, 7},
			description: "95th percentile of the time to first token of each turn over the last 60 s: red above the " +
				"objective, yellow from 90 % of it, green below. From the load generator's live stream, as is the objective.",
			defaults:        object{"color": object{"mode": "thresholds"}, "thresholds": thresholds("green")},
			transformations: colored("ttft-by-turn", "SLO, p95", override("~Turn .*p95")),
		}, "p95"),
		nowAtWorkers,
		{
			id: 7, kind: "stat", title: "Client", at: grid{19, 0, 5, 3}, live: true, noValue: dashes,
			description: "Whether the load generator responds, and how large its own error in the latencies is: negligible, " +
				"noticeable (the intervals include it), or too large to judge. From the load generator's live stream; it " +
				"measures how late its own timestamps are.",
			targets: channel("state", 2500, "sidecar", "client"),
			defaults: object{"color": fixed("text"), "thresholds": thresholds("text"), "mappings": []object{{
				"type": "value", "options": object{
					"connected":         object{"text": "connected", "color": "text", "index": 0},
					"lost":              object{"text": "lost", "color": "red", "index": 1},
					"ok":                object{"text": "negligible error", "color": "text", "index": 2},
					"noticeable":        object{"text": "noticeable error", "color": "text", "index": 3},
					"client_bottleneck": object{"text": "error too large", "color": "orange", "index": 4},
					"unknown":           object{"text": "checking", "color": "text", "index": 5},
				},
			}}},
			overrides: []object{override("~.*", property{"noValue", dashes})},
			options: statOptions("Load generator|Client", object{
				"justifyMode": "auto", "orientation": "horizontal", "wideLayout": true,
				"text": object{"titleSize": 12, "valueSize": 16},
			}),
		},
		timeseries(panel{
			id: 8, title: "KV hit rate, 60 s", at: grid{12, 23, 12, 7}, unit: "percentunit", noValue: noEngine,
			description: "Share of prompt tokens served from a KV cache: as reported to clients, as predicted by the router " +
				"for the chosen worker, and as it would have been on the worker with the longest cached prefix. The first is " +
				"from the load generator, the others from the router's counters; they are drawn where it chose the workers " +
				"of the whole minute by their caches.",
			lines: []line{
				{name: "KV hit rate", expr: hitRatio, style: []property{color("text"), fill(8)}, settles: thisLane},
				{
					name: "Predicted hit rate", expr: routedByKV("kv_hit_rate_sum", "kv_hit_rate_count"),
					style: []property{color("blue")},
				},
				{
					name:  "Achievable hit rate",
					expr:  routedByKV("kv_best_eligible_cached_prefix_tokens_total", "input_sequence_tokens_sum"),
					style: []property{color("purple"), dashed},
				},
			},
			defaults: object{"max": 1, "decimals": 0}, options: withLast,
		}),
		{
			id: 9, kind: "table", title: "Recorded benchmark, p95", at: grid{0, 37, 24, 10}, noValue: noRecord,
			description: "Recorded 95th percentiles at the levels of the default baseline, under round-robin and under " +
				"KV-aware routing, colored by objective, and by how much KV-aware routing is better (negative: worse). From " +
				"the load generator's baseline; if only some levels have all figures, only those are shown; derived TPOT was " +
				"computed from other percentiles when recorded and is not comparable with live figures.",
			targets: append(recordedQueries(p95s, false),
				instant("slo_ttft", "ttft objective", `max(loadgen_slo_seconds{lane="$lane", metric="ttft"})`),
				instant("slo_tpot", "tpot objective", `max(loadgen_slo_seconds{lane="$lane", metric="tpot"})`)),
			defaults: object{
				"custom": with(cells, object{"minWidth": 110}), "color": object{"mode": "thresholds"},
				"thresholds": thresholds("green"),
			},
			overrides: append([]object{
				override("~T[TP][FO]T.*", unit("s"),
					custom("cellOptions", object{"type": "color-background", "mode": "basic"}),
					property{"mappings", notRecorded(object{"color": "transparent"})}),
				override("~Improvement.*", unit("percentunit"), decimals(1), color("text")),
			}, recordedColumns...),
			options: tableOptions("sm"),
			transformations: slices.Concat([]object{
				only("/^(ttft|tpot|derived)_/", transform("merge", object{})), recordedNames(p95s),
			}, colored("slo_ttft", "ttft objective", override("~TTFT.*")),
				colored("slo_tpot", "tpot objective", override("~TPOT.*")), byNumber),
		},
		occupancy(10, grid{0, 47, 8, 8}),
		queueDepth(11, grid{8, 47, 8, 8}),
		gpuMemory(12, grid{16, 47, 8, 8}),
		row(40, 55, "Benchmark by concurrency", byConcurrency()...),
	},
}

// routedByKV is the quotient of two counters of the routers that chose the workers of the whole last minute by their
// caches. A router counts the tokens of all requests, but predicts hit rates and looks for the best worker in kv mode
// only: over a time that contains another mode, the quotient would be too low. The counters are not read at the same
// moment, so that it may exceed 1 by rounding.
func routedByKV(part, whole string) string {
	rate := func(counter string) string {
		return "sum by (router_id) (rate(" + inNamespace("dynamo_component_router_"+counter) + "[1m]))"
	}
	ofKV := func(counter string) string {
		return "sum(" + rate(counter) + " and " + rate("kv_hit_rate_count") + " >= 0.98 * " +
			rate("input_sequence_tokens_count") + ")"
	}
	return "clamp_max(" + ofKV(part) + " / " + ofKV(whole) + ", 1)"
}

// keyFigures shows fields of the live stream side by side.
func keyFigures(p panel, fields string) panel {
	p.kind = "stat"
	p.live = true
	p.noValue = dashes
	p.defaults = object{"color": fixed("text"), "thresholds": thresholds("text"), "min": 0}
	p.overrides = append([]object{override("~.*", property{"noValue", dashes})}, p.overrides...)
	p.options = statOptions(fields, object{"text": object{"titleSize": 13, "valueSize": 44}})
	return p
}

func statOptions(fields string, more object) object {
	return with(statDefaults, object{
		"graphMode": "none", "textMode": "value_and_name",
		"reduceOptions": with(last, object{"fields": "/^(" + fields + ")$/"}),
	}, more)
}

// byTurn shows a percentile of every turn of a conversation.
func byTurn(p panel, percentile string) panel {
	p.kind = "bargauge"
	p.live = true
	p.unit = "s"
	p.noValue = dashes
	var fields []string
	p.overrides = []object{override("~.*", property{"noValue", dashes}, property{"decimals", nil})}
	for _, turn := range []string{"1", "2", "3", "4", "5", "6+"} {
		name := "turn_" + strings.ReplaceAll(turn, "+", "_plus")
		fields = append(fields, name+"_p50", name+"_p95")
		p.overrides = append(p.overrides, override("Turn "+turn+", "+percentile, named("Turn "+turn)))
	}
	p.targets = channel("ttft-by-turn", 2000, append(fields, "slo")...)
	p.defaults = with(p.defaults, object{"min": 0})
	p.options = object{
		"displayMode": "basic", "orientation": "horizontal", "namePlacement": "left", "valueMode": "text",
		"showUnfilled": true, "sizing": "auto", "minVizHeight": 16, "minVizWidth": 8, "maxVizHeight": 60,
		"legend": with(list, object{"showLegend": false}), "reduceOptions": with(last, object{"fields": "/^Turn [0-9+]+$/"}),
	}
	return p
}

// colored makes fields yellow from 90 % of an objective on, and red above it.
func colored(query, objective string, fields object) []object {
	nearly := objective + " nearly missed"
	above := objective + " missed"
	return []object{
		only(query, times(objective, "0.9", nearly)), only(query, times(objective, missed, above)),
		steps(query, fields, nearly, "yellow", above, "red"),
	}
}

var nowAtWorkers = panel{
	id: 6, kind: "table", title: "Workers", at: grid{0, 30, 24, 7}, live: true, noValue: "not reported",
	description: "Each worker now: requests in flight and waiting, KV cache occupancy, GPU utilization and GPU " +
		"memory. From the load generator's live stream, which reads the workers' metrics and NVIDIA's DCGM exporter from " +
		"Prometheus.",
	targets: channel("workers", 2500, "worker", "inflight", "waiting", "cache_use", "gpu_utilisation", "gpu_memory_used",
		"gpu_memory_total"),
	defaults: object{
		"custom": with(cells, object{"align": "center", "minWidth": 80}), "color": object{"mode": "thresholds"},
		"thresholds": thresholds("text"),
	},
	overrides: []object{
		override("Worker", custom("align", "left"), custom("width", 135), whatHappened(shownTime, "")),
		override("In flight", decimals(0), custom("width", 75)),
		override("Waiting", decimals(0), custom("width", 75)),
		override("KV cache use", share...), override("GPU memory", share...), override("GPU utilization", share...),
	},
	options: tableOptions("md"),
	transformations: []object{
		transform("groupBy", object{"fields": object{
			"Worker":    object{"operation": "groupby", "aggregations": []string{}},
			"In flight": lastOf, "Waiting": lastOf, "KV cache use": lastOf, "GPU utilization": lastOf,
			"GPU memory used": lastOf, "GPU memory": lastOf,
		}}),
		calculate("GPU memory", "/", "GPU memory used (last)", fieldNamed("GPU memory (last)")),
		organize([]string{"GPU memory used (last)", "GPU memory (last)"}, object{}, object{
			"In flight (last)": "In flight", "Waiting (last)": "Waiting", "KV cache use (last)": "KV cache use",
			"GPU utilization (last)": "GPU utilization",
		}),
		sortBy("Worker"),
	},
}

var (
	lastOf = object{"operation": "aggregate", "aggregations": []string{"last"}}
	share  = []property{
		unit("percentunit"), decimals(0),
		{"min", 0},
		{"max", 1},
		custom("cellOptions", object{"type": "gauge", "mode": "basic", "valueDisplayMode": "text"}), color(workers),
	}
	cells = object{
		"align": "left", "wrapHeaderText": true, "cellOptions": object{"type": "auto"}, "filterable": false, "inspect": false,
	}
)

func notRecorded(more object) []object {
	return []object{{"type": "special", "options": object{
		"match": "null", "result": with(object{"text": noRecord, "index": 0}, more),
	}}}
}
