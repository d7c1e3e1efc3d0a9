package main

import "strings"

var (
	dataSource = object{
		"type": "datasource", "name": "datasource", "label": "Data source",
		"description": "The Prometheus that scrapes the cluster and the load generator.",
		"query":       "prometheus", "regex": "", "hide": 1, "refresh": 1, "multi": false, "includeAll": false,
		"skipUrlSync": false, "current": object{"text": "KV Booth Prometheus", "value": "kvbooth-prometheus"},
		"options": []object{},
	}
	namespace = with(ask(object{"refId": "namespaces", "qryType": 1},
		`label_values({__name__=~"(dynamo_|trtllm|vllm:|sglang:).+"}, namespace)`), object{
		"name": "namespace", "label": "Namespace",
		"description": "The Kubernetes namespace of the cluster, from the scrape label. All includes series without that " +
			"label; if this Prometheus scrapes more than one cluster, All sums them, so select yours.",
		"hide": 0, "refresh": 1, "includeAll": true, "allValue": ".*", "allowCustomValue": true, "skipUrlSync": false,
		"sort": 1, "regex": "", "current": object{"text": "All", "value": "$__all"},
	})
	lane   = textBox("lane", "Lane", "The load generator's lane.", "main", 2)
	levels = object{
		"type": "custom", "name": "levels", "label": "Levels",
		"description": "Which levels of the recorded benchmark are shown by concurrency.",
		"query":       "of the slider : 0, all : 1", "hide": 0, "multi": false, "includeAll": false, "skipUrlSync": false,
		"current": choice("of the slider", "0", true),
		"options": []object{choice("of the slider", "0", true), choice("all", "1", false)},
	}
)

func choice(text, value string, selected bool) object {
	return object{"text": text, "value": value, "selected": selected}
}

func textBox(name, label, description, value string, hide int) object {
	return object{
		"type": "textbox", "name": name, "label": label, "description": description, "query": value, "hide": hide,
		"skipUrlSync": false, "current": choice(value, value, true), "options": []object{choice(value, value, true)},
	}
}

// ask is a variable whose values are the result of a query.
func ask(kind object, query string) object {
	return object{
		"type": "query", "datasource": prometheus, "multi": false, "options": []object{},
		"query": with(kind, object{"query": query}), "definition": query,
	}
}

// slo is the objective of a metric, as titles show it.
func slo(metric string) object {
	upper := strings.ToUpper(metric)
	return with(ask(object{"refId": "slo", "qryType": 3},
		`query_result(label_replace(count_values("slo", round(1000 * max by (lane) (loadgen_slo_seconds{lane="$lane", `+
			`metric="`+metric+`"}), 0.1)), "slo", "${1}ms", "slo", "(.*)") or on () `+
			`label_replace(vector(0), "slo", "not known", "", ""))`), object{
		"name": "slo_" + metric, "label": "SLO " + upper,
		"description": "The " + upper + " p95 objective, shown in titles.", "hide": 2, "refresh": 2, "includeAll": false,
		"skipUrlSync": true, "sort": 0, "regex": `/slo="([^"]+)"/`, "current": object{},
	})
}

const (
	runs    = `(max by (lane) (loadgen_workload_running{lane="$lane"}) == 1)`
	ran     = `(max by (lane) (loadgen_workload_running{lane="$lane"} offset 5s) == 1)`
	state   = `group by (lane, mode, speculation) (loadgen_info{lane="$lane"}`
	ofSpans = `max by (id, span, mode, speculation, concurrency) (loadgen_sweep_span_running{lane="$lane", mode`
	results = `<a href="d/kvbooth-benchmarks?var-sweep={{id}}">What it has measured</a>`
	// happened needs the label at, the time in milliseconds.
	happened = `<a href="` + app + `conversations?from={{at}}&to={{at}}">Conversations</a> and ` +
		`<a href="` + app + `events?from={{at}}&to={{at}}">events</a> of this time`
)

var annotations = []object{
	{
		"builtIn": 1, "datasource": object{"type": "grafana", "uid": "-- Grafana --"}, "enable": true, "hide": true,
		"iconColor": "rgba(0, 211, 255, 1)", "name": "Annotations & Alerts", "type": "dashboard",
	},
	annotation("Starts", "green", "Workload started", happened, at("lane", runs+` unless `+ran)),
	annotation("Stops", "red", "Workload stopped", happened,
		at("lane", `(max by (lane) (loadgen_workload_running{lane="$lane"}) == 0) and `+ran)),
	annotation("Steps", "blue", "Step to {{conversations}} conversations", happened,
		at("lane, conversations", `count_values by (lane) ("conversations", loadgen_target_concurrency{lane="$lane"}) `+
			`and on (lane) (loadgen_step{lane="$lane"} != loadgen_step{lane="$lane"} offset 5s) and on (lane) `+runs+` and on (lane) `+ran)),
	annotation("Mode changes", "purple", "Mode {{mode}}, speculation {{speculation}}", happened,
		at("lane, mode, speculation", `(`+state+`) unless `+state+
			` offset 5s)) and on (lane) group by (lane) (loadgen_info{lane="$lane"} offset 5s)`)),
	annotation("Sweeps", "yellow", "Benchmark: {{kind}}", results,
		`label_replace(max by (id, kind) (loadgen_sweep_running{lane="$lane"}), "kind", "capacity search", "kind", `+
			`"capacity")`),
	annotation("Sweeps: KV-aware spans", "blue", "Benchmark: KV-aware at {{concurrency}} conversations", results,
		ofSpans+`="kv"})`),
	annotation("Sweeps: spans in other modes", "orange", "Benchmark: {{mode}} at {{concurrency}} conversations", results,
		`label_replace(`+ofSpans+`!="kv"}), "mode", "${1}-${2}", "mode", "(.+)_(.+)")`),
}

// at gives what happens at a moment the time as a label.
func at(labels, expr string) string {
	return `count_values by (` + labels + `) ("at", 1000 * timestamp(` + expr + `))`
}

func annotation(name, color, title, text, expr string) object {
	target := with(query("Anno", "", expr), object{"interval": "5s"})
	delete(target, "datasource")
	return object{
		"name": name, "datasource": prometheus, "enable": true, "hide": true, "iconColor": color, "expr": expr,
		"step": "5s", "titleFormat": title, "textFormat": text, "tagKeys": "",
		"target": target,
	}
}
