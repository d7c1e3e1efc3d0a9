package main

var routers = dashboard{
	uid: "kvbooth-routers", title: "Routers", revision: 4, refresh: "10s", from: "now-30m",
	description: "Two routers serving the same conversations at the same time, and the cache hits other routers would " +
		"have had on the same traffic.",
	panels: []panel{
		{
			id: 1, kind: "table", title: "Lanes", at: grid{0, 0, 24, 5}, unit: "none", noValue: noRun,
			description: "Every lane with its routing mode and its target. From the load generator; select a lane to open its " +
				"KV Booth dashboard, or to see other routers on its traffic below.",
			targets: []object{with(table("A", `topk by (lane) (1, max by (lane, mode, speculation, target, model) `+
				`(timestamp(loadgen_info{lane=~".+"})))`), object{"legendFormat": ""})},
			defaults: object{"custom": object{
				"align": "left", "cellOptions": object{"type": "auto"}, "inspect": false,
			}},
			overrides: []object{
				override("Lane", property{"links", []object{
					link("KV Booth of lane ${__value.text}", "kvbooth-booth"),
					link("Other routers on the traffic of lane ${__value.text}", "kvbooth-routers"),
				}}, custom("width", 90)),
				override("Mode", texts("kv", "KV-aware", "round_robin", "Round-robin", "least_loaded", "Least loaded",
					"unknown", "Mode unknown"), custom("width", 130)),
				override("Speculation", texts("off", "Off", "draft", "Draft model", "eagle3", "EAGLE-3",
					"not_recorded", "Not recorded"), custom("width", 130)),
			},
			options: tableOptions("sm", object{"displayName": "Lane", "desc": false}),
			transformations: []object{transform("organize", object{
				"excludeByName": object{"Time": true, "Value": true},
				"indexByName":   object{"lane": 0, "mode": 1, "speculation": 2, "target": 3, "model": 4},
				"renameByName": object{
					"lane": "Lane", "mode": "Mode", "speculation": "Speculation", "target": "Target", "model": "Model", "arm": "Arm",
				},
			})},
		},
		row(12, 5, "Two lanes, turn by turn",
			nested("routers", 2, grid{0, 6, 24, 12}, "Turn by turn",
				"Turn n of conversation k on one lane next to the same turn on the other, with the 95 % interval of the "+
					"difference and what pairing gains; it needs two lanes. From the load generator, through the app's backend.",
				object{"part": "pairs"})),
		byLane(panel{
			id: 3, title: "TTFT p95 by lane", at: grid{0, 18, 12, 8}, unit: "s",
			description: "The 95th percentile of the time to first token over the last 60 s, per lane, next to the objective. " +
				"From the load generator, measured at the client.",
			targets:   []object{query("B", "SLO", `max(loadgen_slo_seconds{lane=~".+", metric="ttft"})`)},
			overrides: []object{override("~/^SLO/", objective...)},
		}, `loadgen_ttft_all_seconds{quantile="0.95", lane=~".+"}`, eachLane),
		byLane(panel{
			id: 4, title: "Output tokens/s by lane", at: grid{12, 18, 12, 8}, unit: "locale",
			description: "Output tokens per second received by the clients of each lane, over the last 60 s. From the load " +
				"generator.",
		}, `max by (lane) (loadgen_output_tokens_per_second{lane=~".+"})`, eachLane),
		byLane(panel{
			id: 5, title: "KV hit rate by lane", at: grid{0, 26, 12, 8}, unit: "percentunit",
			description: "Share of prompt tokens served from a cache over the last minute, per lane. From the load generator; " +
				"by the frontend's or the engines' counters if answers do not report their cached tokens.",
			defaults: object{"max": 1},
		}, `max by (lane) (loadgen_kv_hit_ratio{lane=~".+"})`, eachLane),
		byLane(panel{
			id: 6, title: "In-flight spread by lane", at: grid{12, 26, 12, 8}, unit: "short",
			description: "Requests in flight at the busiest worker minus those at the least busy, mean over the last 60 s, " +
				"per lane. From the load generator's record of which worker served each turn.",
			defaults: object{"decimals": 1},
		}, `loadgen_shadow_inflight_spread{policy="measured", lane=~".+"}`, eachLane),
		row(7, 34, "Other routers on the traffic of lane $lane"),
		nested("routers", 8, grid{0, 35, 24, 20}, "Other routers",
			"What other routing policies would have found in caches as large as the cluster's, on the requests of the last "+
				"60 s, next to what was measured, with the errors of the cache model and of the choice model. From the load "+
				"generator; no request is sent for it.",
			object{"part": "shadow"}),
		byPolicy(panel{
			id: 9, title: "KV hit rate under other routers", at: grid{0, 55, 12, 9}, unit: "percentunit",
			description: "Share of prompt tokens that each policy would have found in a cache over the last 60 s, next to " +
				"what was measured. From the load generator's model; no line is drawn while its error is too large.",
			defaults: object{"max": 1},
		}, `loadgen_shadow_hit_ratio{lane="$lane"}`),
		byPolicy(panel{
			id: 10, title: "Prefill under other routers", at: grid{12, 55, 12, 9}, unit: "short",
			description: "Prompt tokens per second that each policy would have computed, over the last minute, next to what " +
				"was computed. From the counters of the load generator's model, which start with empty caches.",
		}, `rate(loadgen_shadow_prefill_tokens_total{lane="$lane"}[1m])`),
		byPolicy(panel{
			id: 11, title: "In-flight spread under other routers", at: grid{0, 64, 24, 9}, unit: "short",
			description: "Requests in flight at the busiest worker minus those at the least busy under each policy, mean over " +
				"the last 60 s. From the load generator's model; “Best possible” has a single cache, so it has no workers.",
			defaults: object{"decimals": 1},
		}, `loadgen_shadow_inflight_spread{lane="$lane"}`),
	},
}

func link(title, dashboard string) object {
	return object{"title": title, "url": "d/" + dashboard + "?var-lane=${__value.text}", "targetBlank": false}
}

func byLane(p panel, expr string, settles lanes) panel {
	p.lines = []line{{name: "{{lane}}", expr: expr, settles: settles}}
	p.options = withLast
	p.overrides = append([]object{override("main", color("blue")), override("twin", color("orange"))}, p.overrides...)
	return timeseries(p)
}

func byPolicy(p panel, expr string) panel {
	p.lines = []line{{name: "{{policy}}", expr: expr}}
	p.overrides = []object{override("measured", color("text"), width(3), named("As measured"))}
	for _, policy := range [][3]string{
		{"best", "Best possible", gray},
		{"best_placement", "Best placement", "green"},
		{"kv", "KV-aware", "blue"},
		{"kv_output_blocks", "KV-aware, answer blocks counted", "semi-dark-blue"},
		{"kv_temperature_0.5", "KV-aware, temperature 0.5", "light-blue"},
		{"kv_weight_0.5", "KV-aware, overlap weight 0.5", "super-light-blue"},
		{"kv_weight_2", "KV-aware, overlap weight 2", "dark-blue"},
		{"least_loaded", "Least loaded", "purple"},
		{"opening_hash", "Consistent hash of the opening", "#b59b6a"},
		{"random", "Random", "#c58a9b"},
		{"round_robin", "Round-robin", "orange"},
		{"sticky", "Sticky by conversation", workers},
	} {
		p.overrides = append(p.overrides, override(policy[0], named(policy[1]), color(policy[2])))
	}
	return timeseries(p)
}
