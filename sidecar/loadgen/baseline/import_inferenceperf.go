package baseline

import (
	"kvbooth/sidecar/api"
)

// spread is how inference-perf tells a distribution: its percentiles are those that its
// configuration asks for, the 50th as median.
type spread struct {
	Mean   number `json:"mean"`
	Median number `json:"median"`
	P95    number `json:"p95"`
}

// inferencePerf is a file stage_N_lifecycle_metrics.json, times in seconds.
type inferencePerf struct {
	Seconds number `json:"benchmark_time_seconds"`
	Load    struct {
		Concurrency number `json:"concurrency"`
	} `json:"load_summary"`
	Successes struct {
		Count   number `json:"count"`
		Latency struct {
			TTFT spread `json:"time_to_first_token"`
			TPOT spread `json:"time_per_output_token"`
			// Request is to the end of the stream.
			Request spread `json:"request_latency"`
		} `json:"latency"`
		Throughput struct {
			Requests number `json:"requests_per_sec"`
		} `json:"throughput"`
		Prompt struct {
			Total  number `json:"total"`
			Cached number `json:"cached"`
		} `json:"prompt_tokens"`
		Output struct {
			Mean number `json:"mean"` // as the server counts
		} `json:"output_tokens"`
		OutputLength spread `json:"output_len"` // as its own tokenizer counts
		Fallbacks    struct {
			Prompt number `json:"prompt"`
			Output number `json:"output"`
		} `json:"client_fallback_requests"`
	} `json:"successes"`
	Failures struct {
		Count number `json:"count"`
	} `json:"failures"`
}

// readInferencePerf reads a stage of inference-perf.
//
// It counts output tokens with a tokenizer of its own unless it is configured otherwise,
// which the file does not say: rates are made of the server's counts, which it has as
// well, and TPOT is taken where both counts are the same. Its latency ends with the
// stream, not with the last text, and is not taken; nor is its ITL, which has gaps of 0
// between the tokens of a chunk.
func readInferencePerf(text []byte) (r results, err error) {
	var file inferencePerf
	if err := decodeResults(text, &file); err != nil {
		return r, err
	}
	var f figures
	if file.Load.Concurrency == "" {
		f.refuse("load_summary", "no concurrency", "that of a stage with load.type concurrent (stage_N_lifecycle_metrics.json): a row is of a fixed number of requests in progress")
	}
	s := file.Successes
	row := api.BaselineRow{
		Concurrency:       f.whole("load_summary.concurrency", file.Load.Concurrency, 1, maxConcurrency),
		N:                 f.answered("successes.count", s.Count),
		TTFT:              f.latency("successes.latency.time_to_first_token.median", "successes.latency.time_to_first_token.p95", s.Latency.TTFT.Median, s.Latency.TTFT.P95, 0),
		RequestsPerSecond: f.value("successes.throughput.requests_per_sec", s.Throughput.Requests, 0, maxCount),
	}
	if seconds := f.value("benchmark_time_seconds", file.Seconds, 0, maxCount); seconds != nil {
		row.Seconds = *seconds
	}
	r.notes = []string{
		"Latency: inference-perf measures to the end of the stream; here, latency ends with the last text.",
		"ITL: inference-perf counts no time between the tokens of one chunk; here they share the gap.",
	}
	mean, perSecond := f.value("successes.output_tokens.mean", s.Output.Mean, 0, maxCount), row.RequestsPerSecond
	if mean != nil && perSecond != nil && f.whole("successes.client_fallback_requests.output", s.Fallbacks.Output, 0, maxCount) == 0 {
		row.OutputTokensPerSecond = new(*mean * *perSecond)
		r.notes = append(r.notes, "Output tokens/s is requests/s times the mean output tokens of an answer, as the server counted them.")
	} else {
		r.notes = append(r.notes, "Output tokens/s: the server did not report the output tokens of every answer.")
	}
	other := api.BaselineRow{Latency: f.latency("successes.latency.request_latency.median", "successes.latency.request_latency.p95", s.Latency.Request.Median, s.Latency.Request.P95, 0)}
	own := f.value("successes.output_len.mean", s.OutputLength.Mean, 0, maxCount)
	tpot := f.latency("successes.latency.time_per_output_token.median", "successes.latency.time_per_output_token.p95", s.Latency.TPOT.Median, s.Latency.TPOT.P95, 0)
	if row.OutputTokensPerSecond != nil && own != nil && *own == *mean {
		row.TPOT = tpot
	} else {
		other.TPOT = tpot
		r.notes = append(r.notes, "TPOT: inference-perf's own tokenizer counted a different number of output tokens than the server, or the server did not count.")
	}
	cached, total := f.value("successes.prompt_tokens.cached", s.Prompt.Cached, 0, 1<<53), f.value("successes.prompt_tokens.total", s.Prompt.Total, 0, 1<<53)
	if cached != nil && total != nil && *cached > 0 && f.whole("successes.client_fallback_requests.prompt", s.Fallbacks.Prompt, 0, maxCount) == 0 {
		if *cached > *total {
			f.refuse("successes.prompt_tokens.cached", string(s.Prompt.Cached), "at most the total, "+string(s.Prompt.Total))
		} else {
			row.KVHitRatio = new(*cached / *total)
		}
	} else {
		r.notes = append(r.notes, "KV hit rate: inference-perf writes 0 cached tokens both for none and for a server that does not report them.")
	}
	r.notes = append(r.notes, f.failures("failures.count", file.Failures.Count, &row)...)
	r.levels = []level{{"load_summary.concurrency", row, other}}
	return r, f.err
}
