package main

var benchmarks = dashboard{
	uid: "kvbooth-benchmarks", title: "Benchmarks", revision: 2, refresh: "10s", from: "now-1h",
	description: "Results of trials, sweeps and capacity searches, and the metrics over time while they ran.",
	variables: []object{textBox("sweep", "Benchmark",
		"The id of the trial, sweep or capacity search to show; if empty, the newest. Set by the panel at the top.", "", 2)},
	panels: []panel{
		nested("benchmarks", 1, grid{0, 0, 24, 10}, "Result",
			"What the benchmark shows so far, its progress, and each difference with its 95 % interval. From the load "+
				"generator, through the app's backend; refreshed every five seconds while one is in progress.",
			object{"sweep": "$sweep", "part": "verdict"}),
		row(4, 10, "Metrics during the benchmark"),
		besideObjective(5, 0, "TTFT p95", "ttft", "time to first token", "measured at the client"),
		besideObjective(6, 8, "TPOT p95", "tpot", "time per output token", "one value per turn"),
		timeseries(panel{
			id: 7, title: "Output tokens/s", description: outputTokensText, at: grid{16, 11, 8, 8}, unit: "none",
			lines:    []line{{name: "Output tokens/s", expr: outputTokens.expr, style: []property{color("blue")}}},
			defaults: object{"decimals": 0},
		}, filled),
		timeseries(panel{
			id: 8, title: "KV hit rate", at: grid{0, 19, 8, 8}, unit: "percentunit",
			description: "Share of prompt tokens served from a KV cache, over one minute. Measured at the client, from the " +
				"cached tokens that each completed answer reports; absent if answers do not report them.",
			lines: []line{{name: "KV hit rate", expr: hitRatio, style: []property{color("blue")}, settles: thisLane}},
		}, filled, object{"axisSoftMax": 1}),
		timeseries(panel{
			id: 9, title: "Concurrency", at: grid{8, 19, 8, 8}, unit: "none",
			description: "Conversations in progress, next to the concurrency set. From the load generator; a span warms up " +
				"until both are equal.",
			lines: []line{
				{name: "Active", expr: `loadgen_active_conversations{lane="$lane"}`, style: []property{color("blue")}},
				{
					name: "Target", expr: `loadgen_target_concurrency{lane="$lane"}`,
					style: []property{color(gray), fill(0), width(1)},
				},
			},
			defaults: object{"decimals": 0},
		}, filled),
		queueDepth(11, grid{16, 19, 8, 8}),
		// Without a result, the panels of its parts are empty, so that they come last.
		nested("benchmarks", 2, grid{0, 27, 24, 18}, "Curves by concurrency",
			"Each metric at each level and mode, with its 95 % interval as a band, next to the recorded result and the "+
				"objectives of that run. From the load generator, over all spans that count.",
			object{"sweep": "$sweep", "part": "curves"}),
		nested("benchmarks", 3, grid{0, 45, 24, 9}, "Spans",
			"Every span that has ended, newest first; excluded spans show why. From the load generator; an invalid span is "+
				"repeated once.",
			object{"sweep": "$sweep", "part": "spans"}),
	},
}

// besideObjective draws the 95th percentile of a metric with its objective.
func besideObjective(id, x int, title, metric, description, source string) panel {
	return timeseries(panel{
		id: id, title: title, at: grid{x, 11, 8, 8}, unit: "s",
		description: "The 95th percentile of the " + description + " over the last 60 s, next to its objective; the " +
			"colored regions are the benchmark and its spans, by mode. From the load generator, " + source + ".",
		lines: []line{
			{name: "p95", expr: quantile(metric, "0.95"), style: []property{color("orange")}, settles: thisLane},
			{name: "SLO", expr: `loadgen_slo_seconds{lane="$lane", metric="` + metric + `"}`, style: objective},
		},
	}, filled)
}
