package main

// The kinds of panels, and the panels of more than one dashboard.

const (
	noRun     = "No data yet; none while a recording is replayed"
	noEngine  = "not scraped, or not reported by this engine"
	noGPU     = "no DCGM exporter is scraped"
	noRecord  = "not recorded"
	dashes    = "—"
	workers   = "#3fa7a0"
	gray      = "#9aa0a8"
	gpuLegend = "{{Hostname}} GPU {{gpu}} {{GPU_I_PROFILE}} {{GPU_I_ID}}"

	hitRatio = `max(loadgen_kv_hit_ratio{lane="$lane"})`

	outputTokensText = "Output tokens per second of all workers together, as a rate over one minute. From the " +
		"frontend's counter of output tokens."
)

var outputTokens = line{name: "Output Tokens/s", expr: perSecond("dynamo_frontend_output_tokens_total")}

func quantile(metric, q string) string {
	return `loadgen_` + metric + `_all_seconds{quantile="` + q + `", lane="$lane"}`
}

var (
	list          = object{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}}
	seriesOptions = object{"legend": list, "tooltip": object{"mode": "multi", "sort": "none"}}
	// withLast shows the last value of each line beside its name.
	withLast     = object{"legend": with(list, object{"calcs": []string{"last"}})}
	lineDefaults = object{
		"drawStyle": "line", "lineInterpolation": "linear", "lineWidth": 2, "fillOpacity": 0, "showPoints": "never",
		"spanNulls": 10000, "axisBorderShow": false,
	}
	filled  = object{"fillOpacity": 8}
	stacked = object{"lineWidth": 1, "stacking": object{"mode": "normal", "group": "A"}}
)

// timeseries has lines from 0 on. What is drawn in another way than others is given as custom fields.
func timeseries(p panel, fields ...object) panel {
	p.kind = "timeseries"
	p.options = with(seriesOptions, p.options)
	if p.noValue == "" {
		p.noValue = noRun
	}
	if p.unit == "percentunit" {
		p.defaults = with(object{"decimals": 1}, p.defaults)
	}
	p.defaults = with(object{
		"min": 0, "color": object{"mode": "palette-classic"}, "thresholds": thresholds("transparent"),
		"custom": with(lineDefaults, fields...),
	}, p.defaults)
	return p
}

// eachWorker draws a line for each worker or GPU. They have the same order in all panels, and so the same colors.
func eachWorker(p panel, fields ...object) panel {
	p.options = withLast
	p.defaults = with(object{"links": whatHappened(pointTime, "").Value}, p.defaults)
	return timeseries(p, fields...)
}

func nested(kind string, id int, at grid, title, description string, options object) panel {
	return panel{
		id: id, kind: "kvbooth-" + kind + "-panel", title: title, description: description, at: at, live: true,
		options: with(object{"lane": "$lane"}, options),
	}
}

func row(id, y int, title string, collapsed ...panel) panel {
	return panel{id: id, kind: "row", title: title, at: grid{0, y, 24, 1}, panels: collapsed}
}

var statDefaults = object{
	"colorMode": "value", "justifyMode": "center", "orientation": "auto", "wideLayout": false,
	"showPercentChange": false, "percentChangeColorMode": "standard",
}

// last is the value that is now, not the last that there was.
var last = object{"calcs": []string{"last"}, "fields": "", "values": false}

func tableOptions(cellHeight string, sortBy ...object) object {
	return object{
		"showHeader": true, "cellHeight": cellHeight, "sortBy": append([]object{}, sortBy...),
		"footer": object{"show": false, "reducer": []string{"sum"}, "countRows": false, "fields": ""},
	}
}

func occupancy(id int, at grid) panel {
	return eachWorker(panel{
		id: id, title: "KV cache use (per worker)", at: at, unit: "percentunit", noValue: noEngine,
		description: "Share of each worker's KV cache in use over time; near 100 % the worker evicts cached blocks to " +
			"make room for new ones. From Dynamo's gauge of the worker, or from the engine's own (TensorRT-LLM's, vLLM's or " +
			"SGLang's).",
		lines: []line{{name: "{{pod}}", expr: firstOf("max by (pod, instance) ("+inNamespace("NAME")+")",
			"dynamo_component_gpu_cache_usage_percent", "trtllm_kv_cache_utilization", "trtllm:kv_cache_usage_perc",
			"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage")}},
		defaults: object{"max": 1},
	})
}

func queueDepth(id int, at grid) panel {
	return eachWorker(panel{
		id: id, title: "Engine queue depth (per worker)", at: at, unit: "none", noValue: noEngine,
		description: "Requests waiting in each worker's engine for a place in its batch; a queue at a single worker raises " +
			"TTFT p95 while the others have room. From the engine's gauge (TensorRT-LLM's, vLLM's or SGLang's).",
		lines: []line{{name: "{{pod}}", expr: firstOf("sum by (pod, instance) ("+inNamespace("NAME")+")",
			"trtllm_num_requests_waiting", "trtllm:num_requests_waiting", "vllm:num_requests_waiting") +
			` or sum by (pod, instance) (max by (pod, instance, dp_rank) ` +
			`(sglang:num_queue_reqs{namespace=~"$namespace",priority=""}))`}},
		defaults: object{"decimals": 0},
	})
}

func gpuMemory(id int, at grid) panel {
	const used, free, total = "DCGM_FI_DEV_FB_USED{NAME}", "DCGM_FI_DEV_FB_FREE{NAME}", "DCGM_FI_DEV_FB_TOTAL{NAME}"
	return eachWorker(panel{
		id: id, title: "GPU memory (per GPU)", at: at, unit: "percentunit", noValue: noGPU,
		description: "Share of each GPU's memory in use: weights, KV cache and temporary buffers. From NVIDIA's DCGM " +
			"exporter, for the GPUs of the selected namespace; with All, for every GPU that Prometheus scrapes.",
		lines: []line{{name: gpuLegend, expr: firstOf(used+" / "+total+" or "+used+" / ("+used+" + "+free+")",
			`exported_namespace=~"$namespace"`, `namespace=~"$namespace"`)}},
		defaults: object{"max": 1},
	})
}
