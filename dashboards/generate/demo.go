package main

import "fmt"

var demo = dashboard{
	uid: "gtc-demo", title: "GTC Demo: Optimized LLM Inference", revision: 4, refresh: "10s", from: "now-30m",
	description: "What KV-cache-aware routing does to an LLM workload, over time.",
	variables:   []object{slo("ttft"), slo("tpot")},
	panels: []panel{
		figure(1, 0, "reqps", 2, line{name: "Request Rate", expr: perSecond("dynamo_frontend_requests_total")},
			"Requests per second completed by the Dynamo frontend, as a rate over one minute. From the frontend's counter of "+
				"requests."),
		figure(2, 6, "none", 0, inflight, "Requests in flight now, all workers together. From the frontend's gauge, or from "+
			"its replacement in newer versions."),
		figure(3, 12, "none", 0, line{name: "Queued", expr: firstOf("sum("+inNamespace("NAME")+")",
			"dynamo_frontend_queued_requests", "dynamo_frontend_stage_requests")},
			"Requests waiting for their first token; a value that stays high means that the cluster cannot keep up. From the "+
				"frontend's gauge, or from the stage metrics that replace it in newer versions. It is the queue before the "+
				"workers; requests that a worker has taken wait in its engine's queue, which has panels of its own below."),
		figure(4, 18, "none", 0, outputTokens, outputTokensText),
		againstObjective(5, 0, "TTFT p95 (SLO: $slo_ttft)", "ttft", "time to first token", "measured at the client"),
		againstObjective(6, 12, "TPOT p95 (SLO: $slo_tpot)", "tpot", "time per output token", "one value per turn"),
		percentiles(panel{
			id: 7, title: "TTFT (p50 and p95)", at: grid{0, 13, 12, 8},
			description: "Median and 95th percentile of the time to first token" + beside + " From the load generator, " +
				"measured at the client. A wide gap between the two is a slow tail: some requests find nothing in the cache, " +
				"or wait behind a full batch.",
		}, "ttft"),
		percentiles(panel{
			id: 8, title: "TPOT (p50 and p95)", at: grid{12, 13, 12, 8},
			description: "Median and 95th percentile of the time per output token" + beside + " From the load generator, one " +
				"value per turn. A narrow gap means even decoding; it widens where large batches or the prefill of others " +
				"share a worker.",
		}, "tpot"),
		timeseries(panel{
			id: 9, title: "Latency", at: grid{0, 21, 12, 8}, unit: "s",
			description: "Mean request duration, from arrival at the frontend to the last token, over one minute. From the " +
				"frontend's histogram of request durations. Queue, prefill and all output tokens are in it, so it follows the " +
				"length of the answers: several hundred tokens take tens of seconds under load.",
			lines: []line{{
				name: "avg", expr: perSecond("dynamo_frontend_request_duration_seconds_sum") + " / " +
					perSecond("dynamo_frontend_request_duration_seconds_count"), style: []property{color("blue")},
			}},
		}, filled),
		timeseries(referenced(panel{
			id: 10, title: "KV Cache", at: grid{12, 21, 12, 8}, unit: "percentunit",
			description: "Share of prompt tokens served from a KV cache, over one minute. The thick line is measured at the " +
				"client, from the cached tokens that each completed answer reports; if answers do not, it is the " +
				"frontend's or the engines'. " +
				"The thin line is calculated from the frontend's counters (or from vLLM's or SGLang's, if the frontend has " +
				"none), per request, since input tokens count at a request's start and cached tokens at its end; it ends while " +
				"the requests that start are so much shorter than those that end that it would exceed 100 %. " +
				"Reference lines (dotted: recorded, dashed: measured on this target) show every mode and phase at the current " +
				"concurrency.",
			lines: []line{
				{name: "KV hit rate", expr: hitRatio, style: []property{color("blue"), fill(8)}, settles: thisLane},
				{
					name: "KV hit rate, frontend", style: []property{color(gray), width(1), fill(0)},
					expr: "(" + rate("cached_tokens_sum") + " / " + rate("input_sequence_tokens_sum") + " * " +
						rate("input_sequence_tokens_count") + " / " + rate("cached_tokens_count") + " <= 1) or " +
						perSecond("vllm:prefix_cache_hits_total") + " / " + perSecond("vllm:prefix_cache_queries_total") +
						" or " + perSecond("sglang:cached_tokens_total") + " / " + perSecond("sglang:prompt_tokens_total"),
				},
			},
			defaults: object{"max": 1},
		}, "", `loadgen_baseline_kv_hit_ratio{lane="$lane"}`)),

		row(11, 29, "Per Worker Metrics"),
		eachWorker(panel{
			id: 12, title: "Inflight Requests (per worker)", at: grid{0, 30, 8, 8}, unit: "none", noValue: noEngine,
			description: "Requests in flight at each worker, stacked, so the height is the sum. From the workers' own gauges. " +
				"Bands are even under round-robin; under KV-aware routing they differ for a while, since a conversation goes to " +
				"where its cache is.",
			lines:    []line{{name: "{{pod}}", expr: inflightOfWorkers}},
			defaults: object{"decimals": 0},
		}, stacked, object{"fillOpacity": 30}),
		eachWorker(panel{
			id: 13, title: "GPU Utilization (per GPU)", at: grid{8, 30, 8, 8}, unit: "percent", noValue: noGPU,
			description: "Share of time in which each GPU's compute engines were busy. From NVIDIA's DCGM exporter, for the " +
				"GPUs of the selected namespace; with All, for every GPU that Prometheus scrapes. Decoding is bound by memory " +
				"bandwidth, so full load need not be 100 %; a low value beside a queue points elsewhere than at the GPU.",
			lines: []line{{name: gpuLegend, expr: firstOf(`NAME{exported_namespace=~"$namespace"} or `+inNamespace("NAME"),
				"DCGM_FI_DEV_GPU_UTIL", "100 * DCGM_FI_PROF_GR_ENGINE_ACTIVE")}},
			defaults: object{"max": 100, "decimals": 0},
		}),
		eachWorker(panel{
			id: 14, title: "Engine Queue Wait Time (per worker)", at: grid{16, 30, 8, 8}, unit: "s", noValue: noEngine,
			description: "Mean time that requests waited in each worker's engine queue before processing, over one minute. " +
				"From the engine's histogram of queue times (TensorRT-LLM's, vLLM's or SGLang's). This is the second queue: " +
				"the request has a worker already and waits for a place in its batch. Below 0.1 s requests start at once; a " +
				"rising line means full batches.",
			lines: []line{{name: "{{pod}}", expr: firstOf(
				"rate("+inNamespace("NAME_sum")+"[1m]) / rate("+inNamespace("NAME_count")+"[1m])",
				"trtllm_request_queue_time_seconds", "trtllm:request_queue_time_seconds", "vllm:request_queue_time_seconds",
				"sglang:queue_time_seconds")}},
		}),
		timeseries(panel{
			id: 15, title: "In-flight range over workers", at: grid{0, 38, 12, 8}, unit: "none", noValue: noEngine,
			description: "Requests in flight at the busiest and at the least busy worker, with the batch size above which a " +
				"worker queues requests. From the workers' own gauges and the frontend's description of the model.",
			lines: []line{
				{
					name: "Busiest worker", expr: "max(" + inflightOfWorkers + ")",
					style: []property{color("#2b7f7a"), custom("fillBelowTo", "Least busy worker"), fill(15)},
				},
				{name: "Least busy worker", expr: "min(" + inflightOfWorkers + ")", style: []property{color("#8fd0cb")}},
				{
					name: "Batch-size limit", expr: "max(" + inNamespace("dynamo_frontend_model_max_num_seqs") + ")",
					style: []property{color("text"), dashed, width(1)},
				},
			},
			defaults: object{"decimals": 0},
		}),
		timeseries(panel{
			id: 16, title: "In-flight spread and skew", at: grid{12, 38, 12, 8}, unit: "none", noValue: noEngine,
			description: "How unevenly requests in flight are distributed: spread is the busiest worker's count minus the " +
				"least busy worker's, skew is the busiest worker's count divided by the mean. From the workers' own gauges; a " +
				"skew of 1 is perfectly even.",
			lines: []line{
				{
					name: "Spread (max − min)", expr: "max(" + inflightOfWorkers + ") - min(" + inflightOfWorkers + ")",
					style: []property{color("blue"), fill(8), decimals(0), custom("axisLabel", "Spread")},
				},
				{
					name: "Skew (max / mean)", expr: "max(" + inflightOfWorkers + ") / avg(" + inflightOfWorkers + ")",
					style: []property{
						color("purple"), onTheRight, {"min", 1}, custom("axisSoftMax", 2), decimals(2), custom("axisLabel", "Skew"),
					},
				},
			},
		}),
		occupancy(23, grid{0, 46, 8, 8}),
		queueDepth(24, grid{8, 46, 8, 8}),
		gpuMemory(25, grid{16, 46, 8, 8}),

		row(17, 54, "Client, Errors and Speculation"),
		percentiles(panel{
			id: 18, title: "ITL (p50 and p95)", at: grid{0, 55, 12, 8},
			description: "Median and 95th percentile of the gap between two output tokens over the last 60 s; dashed lines " +
				"are medians measured on this target at the current concurrency, one per mode and phase. From the load " +
				"generator, one value per token; the recorded tables have no ITL, because what they call ITL is TPOT.",
		}, "itl"),
		percentiles(panel{
			id: 19, title: "End-to-end latency (p50 and p95)", at: grid{12, 55, 12, 8},
			description: "Median and 95th percentile of the time from sending a request to its last token" + beside + " From " +
				"the load generator, measured at the client.",
		}, "latency"),
		timeseries(panel{
			id: 20, title: "Concurrency", at: grid{0, 63, 8, 8}, unit: "none",
			description: "Conversations in progress, next to the concurrency set, and the requests they have in flight. From " +
				"the load generator.",
			lines: []line{
				{name: "Active", expr: `loadgen_active_conversations{lane="$lane"}`, style: []property{color("blue"), fill(8)}},
				{name: "Target", expr: `loadgen_target_concurrency{lane="$lane"}`, style: []property{color(gray), dashed}},
				{
					name: "In flight", expr: `loadgen_inflight_requests{lane="$lane"}`,
					style: []property{color("green"), width(1)},
				},
			},
			defaults: object{"decimals": 0}, options: withLast,
		}),
		timeseries(panel{
			id: 21, title: "Error rate by class", at: grid{8, 63, 8, 8}, unit: "percentunit",
			description: "Share of turns in the last minute that failed, stacked by class; timeouts are separate dashed " +
				"lines, not stacked. From the load generator's counters; cancelled turns count neither as errors nor as " +
				"successes.",
			lines: []line{
				{name: "{{class}}", expr: errorRate(`class!~"timeout|stall"`)},
				{name: "time-out: {{class}}", expr: errorRate(`class=~"timeout|stall"`)},
			},
			options: object{"tooltip": object{"mode": "multi", "sort": "desc", "hideZeros": true}},
			overrides: []object{
				override("~.*", whatHappened(pointTime, "&status=error")),
				override("~^time-out.*", dashed, custom("stacking", object{"mode": "none"}), fill(0)),
				override("time-out: timeout", color("red")), override("time-out: stall", color("orange")),
			},
		}, stacked, object{"fillOpacity": 25, "axisSoftMax": 0.01}),
		speculation,
		eachTurn(panel{
			id: 26, title: "TTFT p50 by turn", at: grid{0, 71, 6, 8}, unit: "s",
			description: "Median time to first token of the first turn of a conversation, the second and so on, over the last " +
				"60 s. Where requests go to the worker that has the conversation cached, it falls after the first turn. From " +
				"the histograms of the load generator.",
		}, `histogram_quantile(0.5, sum by (turn, le) (rate(loadgen_ttft_seconds_bucket{lane="$lane"}[1m])))`),
		eachTurn(panel{
			id: 27, title: "End-to-end latency by turn", at: grid{6, 71, 6, 8}, unit: "s",
			description: "Mean time from sending a request to its last token, by turn of the conversation, over the last 60 " +
				"s. From the load generator.",
		}, meanOf("latency_seconds")),
		eachTurn(panel{
			id: 28, title: "Input tokens by turn", at: grid{12, 71, 6, 8}, unit: "short",
			description: "Mean prompt tokens by turn of the conversation over the last 60 s, and the 95th percentile of all " +
				"turns: each turn sends the whole conversation again. From the load generator.",
			defaults: object{"decimals": 0},
		}, meanOf("input_tokens"), line{
			name: "p95 of all turns", style: []property{color(gray), dashed},
			expr: `histogram_quantile(0.95, sum by (le) (rate(loadgen_input_tokens_bucket{lane="$lane"}[1m])))`,
		}),
		eachTurn(panel{
			id: 29, title: "Output tokens by turn", at: grid{18, 71, 6, 8}, unit: "short",
			description: "Mean output tokens by turn of the conversation over the last 60 s. From the load generator.",
			defaults:    object{"decimals": 0},
		}, meanOf("output_tokens")),
	},
}

const (
	beside = " over the last 60 s; reference lines (dotted: recorded medians, dashed: medians measured on this " +
		"target) show every mode and phase at the current concurrency."
	inflightOfWorkers = `sum by (pod, instance) (dynamo_component_inflight_requests{namespace=~"$namespace"} unless ` +
		`dynamo_component_inflight_requests{dynamo_endpoint=~"worker_kv_query.*"})`
)

var (
	inflight = line{name: "Inflight", expr: firstOf("sum("+inNamespace("NAME")+")",
		"dynamo_frontend_inflight_requests", "dynamo_frontend_active_requests")}
	onTheRight  = custom("axisPlacement", "right")
	speculation = timeseries(panel{
		id: 22, title: "Speculative decoding", at: grid{16, 63, 8, 8}, unit: "percentunit", noValue: noEngine,
		description: "Share of drafted tokens that the model accepted, and tokens per step of the model. From the engine's " +
			"counters (TensorRT-LLM's or vLLM's), over one minute, or from SGLang's gauges, for its latest batch.",
		lines: []line{
			{
				name: "Acceptance rate",
				expr: firstOf(perSecond("NAMEspec_decode_num_accepted_tokens_total")+" / "+
					perSecond("NAMEspec_decode_num_draft_tokens_total"), "trtllm_", "trtllm:", "vllm:") +
					" or avg(" + inNamespace("sglang:spec_accept_rate") + " and " + inNamespace("sglang:spec_accept_length") + " > 0)",
				style: []property{
					color("blue"), fill(8), {"max", 1}, decimals(0), custom("axisLabel", "Acceptance rate"),
				},
			},
			{
				name: "Tokens per step",
				expr: firstOf("avg("+inNamespace("NAME")+" > 0)", "trtllm_spec_decode_acceptance_length",
					"trtllm:spec_decode_acceptance_length", "trtllm_avg_decoded_tokens_per_iter",
					"trtllm:avg_decoded_tokens_per_iter", "sglang:spec_accept_length") + " or 1 + " +
					perSecond("vllm:spec_decode_num_accepted_tokens_total") + " / " +
					perSecond("vllm:spec_decode_num_drafts_total"),
				style: []property{
					color("purple"), unit("none"), decimals(2), onTheRight, custom("axisSoftMax", 3),
					custom("axisLabel", "Tokens per step"),
				},
			},
		},
	})
)

// figure is one of the large figures at the top.
func figure(id, x int, unit string, digits int, l line, description string) panel {
	return panel{
		id: id, kind: "stat", title: l.name, description: description, at: grid{x, 0, 6, 4}, unit: unit, noValue: dashes,
		lines:    []line{l},
		defaults: object{"decimals": digits, "color": fixed("blue"), "thresholds": thresholds("blue")},
		options: with(statDefaults, object{
			"graphMode": "area", "textMode": "value", "text": object{"valueSize": 44}, "reduceOptions": last,
		}),
	}
}

// againstObjective is a 95th percentile, red above its objective, with the requests in flight.
func againstObjective(id, x int, title, metric, description, source string) panel {
	limit := `loadgen_slo_seconds{lane="$lane", metric="` + metric + `"}`
	p := panel{
		id: id, title: title, at: grid{x, 4, 12, 9}, unit: "s",
		description: "The 95th percentile of the " + description + " over the last 60 s, next to the requests in flight. " +
			"The red area is above the objective; reference lines (dotted: recorded, dashed: measured on this target) show " +
			"every mode and phase at the current concurrency. From the load generator, " + source + "; the objective is one " +
			"of its settings.",
		lines: []line{
			{
				name: "p95", expr: quantile(metric, "0.95"), settles: thisLane,
				style: []property{color("orange"), fill(8), custom("thresholdsStyle", object{"mode": "area"})},
			},
			{
				name: inflight.name, expr: inflight.expr,
				style: []property{
					color("light-blue"), dashed, unit("none"), onTheRight, width(1), fill(0), noSteps,
					custom("axisLabel", "Inflight"), decimals(0),
				},
			},
			{
				name: "SLO", expr: limit, ref: "D",
				style: []property{
					color("red"), outOfLegend, width(1), fill(0), noSteps,
				},
			},
		},
		targets: []object{instant("SLO", "objective", "max("+limit+")")},
		transformations: []object{
			only("SLO", times("objective", missed, "above objective")),
			steps("SLO", override("p95"), "above objective", "red"),
		},
	}
	return timeseries(referenced(p, "", `loadgen_baseline_`+metric+`_seconds{lane="$lane", percentile="95"}`))
}

// percentiles are the median and the 95th percentile of a metric.
func percentiles(p panel, metric string) panel {
	p.unit = "s"
	p.lines = []line{
		{name: "p50", expr: quantile(metric, "0.5"), style: []property{color("green")}, settles: thisLane},
		{name: "p95", expr: quantile(metric, "0.95"), style: []property{color("orange")}, settles: thisLane},
	}
	return timeseries(referenced(p, " p50", `loadgen_baseline_`+metric+`_seconds{lane="$lane", percentile="50"}`))
}

// referenced adds a line for each mode and phase: dotted what was recorded, dashed what was measured on this target.
func referenced(p panel, percentile, baseline string) panel {
	p.targets = append(p.targets, query("C", "{{source}}"+percentile+" {{mode}}, {{speculation}}",
		`label_replace(label_replace(`+baseline+`, "source", "Recorded", "", ""), "source", "Measured", "baseline", `+
			`"this target")`))
	const lines = "^(Recorded|Measured).*"
	p.overrides = append(p.overrides, override("~"+lines, dash(3, 6), width(2), fill(0), noSteps),
		override("~^Measured.*", dash(12, 5)))
	for _, mode := range []struct{ name, recorded, measured string }{ // two shades of a hue
		{"round-robin", gray, "#71777f"},
		{"KV", "light-purple", "purple"},
		{"least-loaded", "#d5a6bd", "#c27ba0"},
		{"phase 3a.*", "#7ba7ec", "#3274d9"},
		{"phase 3b.*", "#5cc8c8", "#00a7a7"},
	} {
		p.overrides = append(p.overrides, override("~^Recorded.* "+mode.name+".*", color(mode.recorded)),
			override("~^Measured.* "+mode.name+".*", color(mode.measured)))
	}

	rename := func(regex, pattern string) {
		p.transformations = append(p.transformations,
			transform("renameByRegex", object{"regex": regex, "renamePattern": pattern}))
	}
	rename("(.*), not_recorded$", "$1")
	for _, state := range [][2]string{
		{"round_robin, off$", "phase 1: round-robin"},
		{"kv, off$", "phase 2: KV"},
		{"kv, draft$", "phase 3a: KV, draft model"},
		{"kv, eagle3$", "phase 3b: KV, EAGLE-3"},
		{"(round|least)_(.*)", "$2-$3"},
		{"kv(.*)", "KV$2"},
	} {
		rename("^((?:Recorded|Measured).*) "+state[0], "$1 "+state[1])
	}
	return p
}

// rate is the rate of a frontend's counter over the last minute.
func rate(counter string) string { return "rate(" + inNamespace("dynamo_frontend_"+counter) + "[1m])" }

func errorRate(class string) string {
	return `sum by (class) (rate(loadgen_errors_total{lane="$lane", ` + class + `}[1m])) / ignoring (class) ` +
		`group_left () sum(rate(loadgen_requests_total{lane="$lane", status=~"ok|error"}[1m]))`
}

// eachTurn has a line for the first turn of a conversation, the second and so on, from warm colors to cool ones.
func eachTurn(p panel, expr string, more ...line) panel {
	p.lines = append([]line{{name: "turn {{turn}}", expr: expr}}, more...)
	for turn, hue := range []string{"orange", "semi-dark-yellow", "green", workers, "blue", "purple"} {
		p.overrides = append(p.overrides, override(fmt.Sprintf(`~^turn %d\+?$`, turn+1), color(hue)))
	}
	return timeseries(p)
}

func meanOf(histogram string) string {
	return `sum by (turn) (rate(loadgen_` + histogram + `_sum{lane="$lane"}[1m])) / ` +
		`sum by (turn) (rate(loadgen_` + histogram + `_count{lane="$lane"}[1m]))`
}
