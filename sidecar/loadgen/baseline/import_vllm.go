package baseline

import (
	"cmp"
	"encoding/json"
	"strings"

	"kvbooth/sidecar/api"
)

// vllmBench is what `vllm bench serve --save-result` writes, times in milliseconds. It
// writes a 0 for what no request had, and null for the concurrency that was not given.
type vllmBench struct {
	Endpoint    string          `json:"endpoint_type"` // of later versions
	Backend     string          `json:"backend"`
	Model       string          `json:"model_id"`
	Rate        json.RawMessage `json:"request_rate"`
	Concurrency number          `json:"max_concurrency"`
	Duration    number          `json:"duration"` // seconds
	Completed   number          `json:"completed"`
	Failed      number          `json:"failed"`
	Requests    number          `json:"request_throughput"`
	Output      number          `json:"output_throughput"`
	TTFT50      number          `json:"median_ttft_ms"`
	TTFT95      number          `json:"p95_ttft_ms"`
	TPOT50      number          `json:"median_tpot_ms"`
	TPOT95      number          `json:"p95_tpot_ms"`
	Latency50   number          `json:"median_e2el_ms"`
	Latency95   number          `json:"p95_e2el_ms"`
}

// readVLLM reads a result of vLLM bench. Its TTFT ends with the first chunk, which is one
// with a role and no text where it asks for chats: such a TTFT, and the TPOT that it is
// subtracted from, are not taken. Its ITL is the gap between chunks, whatever they hold.
func readVLLM(text []byte) (r results, err error) {
	var file vllmBench
	if err := decodeResults(text, &file); err != nil {
		return r, err
	}
	var f figures
	if string(file.Rate) != `"inf"` && file.Rate != nil {
		f.refuse("request_rate", string(file.Rate),
			`"inf": a row is of a fixed number of requests in progress, and at a rate it varies`)
	}
	if file.Concurrency == "" {
		f.refuse("max_concurrency", "null", "the number of requests in progress, as --max-concurrency sets it")
	}
	row := api.BaselineRow{
		Concurrency: f.whole("max_concurrency", file.Concurrency, 1, maxConcurrency),
		N:           f.answered("completed", file.Completed),
		Latency: f.latency("median_e2el_ms", "p95_e2el_ms", unlessZero(file.Latency50),
			unlessZero(file.Latency95), -3),
		OutputTokensPerSecond: f.value("output_throughput", file.Output, 0, maxCount),
		RequestsPerSecond:     f.value("request_throughput", file.Requests, 0, maxCount),
	}
	if s := f.value("duration", file.Duration, 0, maxCount); s != nil {
		row.Seconds = *s
	}
	r.notes = []string{"ITL: vLLM bench measures the gap between chunks and ignores how many tokens a chunk holds."}
	r.notes = append(r.notes, "Output tokens: where the server does not report them, vLLM bench counts with its own "+
		"tokenizer, and does not say so.")
	var other api.BaselineRow
	times := &row
	if strings.Contains(cmp.Or(file.Endpoint, file.Backend), "chat") {
		times = &other
		r.notes = append(r.notes, "TTFT and TPOT: with a chat endpoint, vLLM bench stops the clock at the first chunk, "+
			"which holds a role and no text.")
	}
	times.TTFT = f.latency("median_ttft_ms", "p95_ttft_ms", unlessZero(file.TTFT50), unlessZero(file.TTFT95), -3)
	times.TPOT = f.latency("median_tpot_ms", "p95_tpot_ms", unlessZero(file.TPOT50), unlessZero(file.TPOT95), -3)
	if row.Latency.P95 == nil || times.TTFT.P95 == nil {
		r.notes = append(r.notes, "vLLM bench writes p95 only with --metric-percentiles 50,95, and latency only with "+
			"--percentile-metrics ttft,tpot,itl,e2el.")
	}
	r.notes = append(r.notes, f.failures("failed", file.Failed, &row)...)
	r.model = file.Model
	r.levels = []level{{"max_concurrency", row, other}}
	return r, f.err
}
