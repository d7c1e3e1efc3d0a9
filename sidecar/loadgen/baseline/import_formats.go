package baseline

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"kvbooth/sidecar/api"
)

// maxTime is the largest time, in seconds since 1970, and maxTokens the largest number of all tokens of a run.
const (
	maxTime   = 253_000_000_000
	maxTokens = 1 << 53
)

const fixed = "a row is of a fixed number of requests in progress"

// formats are detected by fields that no other format has together.
var formats = []format{
	// AIPerf writes profile_export_aiperf.json. Its inter-token latency is what is called TPOT here;
	// its inter-chunk latency is the gap between chunks, however many tokens they hold.
	{
		name: "AIPerf",
		knows: [][]string{
			{"aiperf_version", "input_config"},
			{"input_config", "was_cancelled"},
			{"input_config", "request_throughput"},
		},
		version: "aiperf_version",
		models:  []string{"input_config.models.items[0].name", "input_config.endpoint.model_names[0]"},
		notes: []string{"ITL: AIPerf's inter-token latency is one mean per answer, which is called TPOT here, and its " +
			"inter-chunk latency ignores how many tokens a chunk holds."},
		levels: levelsAIPerf, n: "request_count.avg", seconds: "benchmark_duration.avg", failed: "error_request_count.avg",
		fields: []field{
			statAIPerf("ttft", "time_to_first_token"),
			statAIPerf("latency", "request_latency"),
			{to: "requests_per_second", at: "request_throughput.avg"},
			statAIPerf("tpot", "inter_token_latency"), // one mean of each answer
			{to: "output_tokens_per_second", at: "output_token_throughput.avg"},
		},
		judge: judgeAIPerf,
	},
	// GuideLLM writes a report with a benchmark for each load. Its inter-token latency is one mean of each
	// answer, as TPOT is here, but counts as often as the answer has tokens. Its own TPOT includes the TTFT,
	// and its latency ends with the stream, not with the last text: neither is taken.
	{
		name: "GuideLLM", knows: [][]string{{"metadata", "benchmarks"}},
		version: "metadata.guidellm_version", models: []string{"config.spec.backend.model"},
		notes: []string{
			"Latency: GuideLLM measures to the end of the stream; here, latency ends with the last text.",
			"ITL: GuideLLM's inter-token latency is one mean per answer, which is called TPOT here.",
		},
		levels: levelsGuideLLM, n: "metrics.request_totals.successful", seconds: "duration",
		failed: "metrics.request_totals.errored", zeroes: true,
		fields: []field{
			statGuideLLM("ttft", "time_to_first_token_ms"),
			{to: "output_tokens_per_second", at: "metrics.output_tokens_per_second.successful.mean"},
			{to: "requests_per_second", at: "metrics.requests_per_second.successful.mean"},
			statGuideLLM("tpot", "inter_token_latency_ms"),
			{
				to: "latency", at: "metrics.request_latency.successful.percentiles.p50",
				p95: "metrics.request_latency.successful.percentiles.p95", unlike: true,
			},
		},
		judge: judgeGuideLLM,
	},
	// inference-perf writes stage_N_lifecycle_metrics.json. Its percentiles are those that its configuration asks for.
	// Its latency ends with the stream, not with the last text, and is not taken; nor is its ITL, which has gaps of 0
	// between the tokens of a chunk.
	{
		name: "inference-perf", knows: [][]string{{"load_summary", "successes", "failures"}},
		notes: []string{
			"Latency: inference-perf measures to the end of the stream; here, latency ends with the last text.",
			"ITL: inference-perf counts no time between the tokens of one chunk; here they share the gap.",
		},
		levels: levelsInferencePerf, n: "successes.count", seconds: "benchmark_time_seconds", failed: "failures.count",
		fields: []field{
			statInferencePerf("ttft", "time_to_first_token"),
			{to: "requests_per_second", at: "successes.throughput.requests_per_sec"},
			statInferencePerf("tpot", "time_per_output_token"),
			{
				to: "latency", at: "successes.latency.request_latency.median",
				p95: "successes.latency.request_latency.p95", unlike: true,
			},
		},
		judge: judgeInferencePerf,
	},
	// vLLM bench is what `vllm bench serve --save-result` writes, times in milliseconds. Its ITL is the gap between
	// chunks, whatever they hold.
	{
		name: "vLLM bench",
		knows: [][]string{
			{"endpoint_type", "max_concurrency", "request_throughput", "output_throughput"},
			{"backend", "model_id", "tokenizer_id", "request_throughput", "output_throughput"},
		},
		models: []string{"model_id"},
		notes: []string{
			"ITL: vLLM bench measures the gap between chunks and ignores how many tokens a chunk holds.",
			"Output tokens: where the server does not report them, vLLM bench counts with its own tokenizer, and does not " +
				"say so.",
		},
		levels: levelsVLLM, n: "completed", seconds: "duration", failed: "failed", zeroes: true,
		fields: []field{
			{to: "latency", at: "median_e2el_ms", p95: "p95_e2el_ms", shift: -3},
			{to: "output_tokens_per_second", at: "output_throughput"},
			{to: "requests_per_second", at: "request_throughput"},
			{to: "ttft", at: "median_ttft_ms", p95: "p95_ttft_ms", shift: -3},
			{to: "tpot", at: "median_tpot_ms", p95: "p95_tpot_ms", shift: -3},
		},
		judge: judgeVLLM,
	},
}

// statAIPerf returns the field of a time in AIPerf's form, with its unit.
func statAIPerf(to, name string) field {
	return field{to: to, at: name + ".p50", p95: name + ".p95", unit: name + ".unit"}
}

// levelsAIPerf returns the one phase that is measured.
func levelsAIPerf(f *file) []*level {
	if f.value("was_cancelled") == "true" {
		f.refuse("was_cancelled", "true", "false: results of a cancelled run are incomplete")
	}
	if f.value("is_complete") == "false" {
		f.refuse("is_complete", "false",
			"true: AIPerf says that the run did not finish ("+quote(f.text("incomplete_reason"))+")")
	}
	const field, load = "input_config.phases", "input_config.loadgen" // of versions before phases
	n := f.items(field)
	if n == 0 && f.value(load) != "" {
		if rate := f.value(load + ".request_rate"); rate != "" {
			f.refuse(load+".request_rate", rate, "none: "+fixed)
		}
		return []*level{f.levelOr1(load, load+".concurrency")}
	}
	var measured []string
	for i := range n {
		if at := fmt.Sprintf("%s[%d]", field, i); f.text(at+".kind") != "warmup" {
			measured = append(measured, at)
		}
	}
	if len(measured) != 1 {
		f.refuse(field, fmt.Sprintf("%d phases that are measured", len(measured)),
			"one: the figures of several are not separated")
		return nil
	}
	if kind := f.text(measured[0] + ".type"); kind != "concurrency" {
		f.refuse(measured[0]+".type", quote(kind), "concurrency: "+fixed)
		return nil
	}
	return []*level{f.levelOr1(measured[0], measured[0]+".concurrency")}
}

// levelOr1 returns a level of AIPerf, which omits settings without a value: 1 is then in force.
func (f *file) levelOr1(at, path string) *level {
	if f.value(path) == "" {
		return &level{at: at, row: api.BaselineRow{Level: api.AtConversations(1)}}
	}
	return f.level(path)
}

// judgeAIPerf computes rates from the server's counts of output tokens, and takes TPOT where AIPerf's counts are the
// same. AIPerf counts with its own tokenizer unless it is configured otherwise.
func judgeAIPerf(f *file, l *level) {
	own, server := f.number("total_osl.avg", 0, maxTokens), f.number("total_usage_completion_tokens.avg", 0, maxTokens)
	answer := f.number("usage_completion_tokens.avg", 0, maxCount)
	all := f.whole("usage_completion_tokens.count", 0, maxCount) == l.row.N
	counted := f.countOutput(l, answer, all)
	switch {
	// Without a count of the server, nothing contradicts AIPerf's.
	case f.value("total_usage_completion_tokens")+f.value("usage_completion_tokens") == "":
		f.note("Output tokens: the file has no counts of the server; AIPerf counted them with its own tokenizer.")
	case server == nil || !counted:
		f.note("TPOT and output tokens/s: the server did not report the output tokens of every answer.")
		l.unlike = append(l.unlike, "tpot")
		if !counted {
			l.unlike = append(l.unlike, "output_tokens_per_second")
		}
	case own == nil || *own != *server:
		f.note("TPOT: AIPerf's own tokenizer counted a different number of output tokens than the server; " +
			"--use-server-token-count makes it use the server's.")
		l.unlike = append(l.unlike, "tpot")
	}
	hits := f.number("overall_usage_prompt_cache_read_pct.avg", -2, 1)
	if hits != nil && f.whole("usage_prompt_cache_read_tokens.count", 0, maxCount) == l.row.N {
		l.row.KVHitRatio = hits
	} else {
		f.note("KV hit rate: the server did not report cached tokens for every answer.")
	}
}

// countOutput computes the rate of output tokens from the server's counts, where it counted those of all answers.
func (f *file) countOutput(l *level, mean *float64, all bool) bool {
	if mean == nil || !all || l.row.RequestsPerSecond == nil {
		return false
	}
	l.row.OutputTokensPerSecond = new(*mean * *l.row.RequestsPerSecond)
	f.note("Output tokens/s is requests/s times the mean output tokens of an answer, as the server counted them.")
	return true
}

// statGuideLLM returns the field of a time in milliseconds in GuideLLM's form, of the requests that succeeded.
func statGuideLLM(to, name string) field {
	at := "metrics." + name + ".successful.percentiles."
	return field{to: to, at: at + "p50", p95: at + "p95", shift: -3}
}

// levelsGuideLLM returns the benchmarks with a fixed number of requests in progress.
func levelsGuideLLM(f *file) (all []*level) {
	for i := range f.items("benchmarks") {
		below := fmt.Sprintf("benchmarks[%d].", i)
		strategy := below + "config.strategy"
		l := &level{at: strategy, row: api.BaselineRow{Level: api.AtConversations(1)}}
		switch kind := f.text(strategy + ".type_"); kind {
		case "synchronous":
		case "concurrent":
			l = f.level(strategy + ".streams")
		default:
			f.note("Benchmarks of strategy %s are left out: a row needs a fixed number of requests in progress.", quote(kind))
			continue
		}
		l.below = below
		all = append(all, l)
	}
	if len(all) == 0 {
		f.refuse("benchmarks", "none at a fixed number of requests in progress",
			"at least one of strategy concurrent or synchronous")
	}
	return all
}

// judgeGuideLLM takes TPOT where all answers have one length. Only then are its percentiles those of TPOT.
func judgeGuideLLM(f *file, l *level) {
	const lengths = "metrics.output_token_count.successful."
	if least := f.value(lengths + "min"); least == "" || least != f.value(lengths+"max") {
		l.unlike = append(l.unlike, "tpot")
	}
	if len(l.unlike) > 1 || l.row.TPOT.P50 == nil {
		f.note("TPOT at concurrency %v: GuideLLM weights each answer by its length, and the answers had different lengths.",
			l.row.Level)
	}
	if v := f.number("end_time", 0, maxTime); v != nil {
		if end := time.UnixMilli(int64(*v * 1000)).UTC(); plausible(end) {
			l.row.Measured = &end
		}
	}
}

// statInferencePerf returns the field of a time in seconds in inference-perf's form.
func statInferencePerf(to, name string) field {
	at := "successes.latency." + name
	return field{to: to, at: at + ".median", p95: at + ".p95"}
}

func levelsInferencePerf(f *file) []*level {
	if f.value("load_summary.concurrency") == "" {
		f.refuse("load_summary", "no concurrency",
			"that of a stage with load.type concurrent (stage_N_lifecycle_metrics.json): "+fixed)
	}
	return []*level{f.level("load_summary.concurrency")}
}

// judgeInferencePerf computes rates from the server's counts of output tokens, and takes TPOT where inference-perf's
// counts are the same. It counts with its own tokenizer unless it is configured otherwise, which the file does not
// contain.
func judgeInferencePerf(f *file, l *level) {
	mean, own := f.number("successes.output_tokens.mean", 0, maxCount), f.number("successes.output_len.mean", 0, maxCount)
	all := f.whole("successes.client_fallback_requests.output", 0, maxCount) == 0
	counted := f.countOutput(l, mean, all)
	if !counted {
		f.note("Output tokens/s: the server did not report the output tokens of every answer.")
	}
	if !counted || own == nil || *own != *mean {
		l.unlike = append(l.unlike, "tpot")
		f.note("TPOT: inference-perf's own tokenizer counted a different number of output tokens than the server, or the " +
			"server did not count.")
	}
	const prompt = "successes.prompt_tokens."
	cached, total := f.number(prompt+"cached", 0, maxTokens), f.number(prompt+"total", 0, maxTokens)
	all = f.whole("successes.client_fallback_requests.prompt", 0, maxCount) == 0
	switch {
	case cached == nil || total == nil || *cached == 0 || !all:
		f.note("KV hit rate: inference-perf writes 0 cached tokens both for none and for a server that does not report them.")
	case *cached > *total:
		f.refuse(prompt+"cached", f.value(prompt+"cached"), "at most the total, "+f.value(prompt+"total"))
	default:
		l.row.KVHitRatio = new(*cached / *total)
	}
}

func levelsVLLM(f *file) []*level {
	if rate := f.root.at("request_rate"); rate != nil && string(rate.text) != `"inf"` {
		f.refuse("request_rate", string(rate.text),
			`"inf": a row is of a fixed number of requests in progress, and at a rate it varies`)
	}
	if f.value("max_concurrency") == "" {
		f.refuse("max_concurrency", "null", "the number of requests in progress, as --max-concurrency sets it")
	}
	return []*level{f.level("max_concurrency")}
}

// judgeVLLM takes TTFT, and the TPOT derived from it, unless the endpoint is for chats. There, the clock stops at the
// first chunk, which contains a role and no text.
func judgeVLLM(f *file, l *level) {
	if strings.Contains(cmp.Or(f.text("endpoint_type"), f.text("backend")), "chat") {
		l.unlike = append(l.unlike, "ttft", "tpot")
		f.note("TTFT and TPOT: with a chat endpoint, vLLM bench stops the clock at the first chunk, which holds a role and " +
			"no text.")
	}
	if l.row.Latency.P95 == nil || l.row.TTFT.P95 == nil {
		f.note("vLLM bench writes p95 only with --metric-percentiles 50,95, and latency only with --percentile-metrics " +
			"ttft,tpot,itl,e2el.")
	}
}
