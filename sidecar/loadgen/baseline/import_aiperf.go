package baseline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"kvbooth/sidecar/api"
)

// stat is how AIPerf tells a metric, in the unit that it names.
type stat struct {
	Unit  string `json:"unit"`
	Avg   number `json:"avg"`
	P50   number `json:"p50"`
	P95   number `json:"p95"`
	Count number `json:"count"`
}

// aiperf is a file profile_export_aiperf.json.
type aiperf struct {
	Version    string `json:"aiperf_version"`
	Cancelled  bool   `json:"was_cancelled"`
	Complete   *bool  `json:"is_complete"`
	Incomplete string `json:"incomplete_reason"`
	Config     struct {
		Models struct {
			Items []struct {
				Name string `json:"name"`
			} `json:"items"`
		} `json:"models"`
		Phases []struct {
			Kind        string `json:"kind"`
			Type        string `json:"type"`
			Concurrency number `json:"concurrency"`
		} `json:"phases"`

		// Of versions before phases.
		Endpoint struct {
			Models []string `json:"model_names"`
		} `json:"endpoint"`
		Load *struct {
			Concurrency number `json:"concurrency"`
			Rate        number `json:"request_rate"`
		} `json:"loadgen"`
	} `json:"input_config"`
	Requests stat `json:"request_count"`
	Failed   stat `json:"error_request_count"`
	Duration stat `json:"benchmark_duration"`
	TTFT     stat `json:"time_to_first_token"`
	TPOT     stat `json:"inter_token_latency"` // one mean of each answer
	Latency  stat `json:"request_latency"`
	Rate     stat `json:"request_throughput"`
	Output   stat `json:"output_token_throughput"` // of the tokens as it counts
	// output tokens as its tokenizer counts, or as it was configured to count
	Own     stat `json:"total_osl"`
	Server  stat `json:"total_usage_completion_tokens"` // output tokens as the server counts
	Counted stat `json:"usage_completion_tokens"`       // the same of each answer
	Hits    stat `json:"overall_usage_prompt_cache_read_pct"`
	HitsOf  stat `json:"usage_prompt_cache_read_tokens"` // requests whose answer reported cached tokens
}

// aiperfTimes gives the power of ten that makes seconds of a unit.
var aiperfTimes = map[string]int{"sec": 0, "ms": -3, "us": -6, "ns": -9}

// readAIPerf reads a run of AIPerf. Its inter-token latency is what is called TPOT here;
// its inter-chunk latency is the gap between chunks, however many tokens they hold.
//
// It counts output tokens with a tokenizer of its own unless it is told otherwise: rates
// are made of the server's counts, and TPOT is taken where both counts are the same.
func readAIPerf(text []byte) (r results, err error) {
	var file aiperf
	if err := decodeResults(text, &file); err != nil {
		return r, err
	}
	var f figures
	if file.Cancelled {
		f.refuse("was_cancelled", "true", "false: results of a cancelled run are incomplete")
	}
	if file.Complete != nil && !*file.Complete {
		f.refuse("is_complete", "false", "true: AIPerf says that the run did not finish ("+quote(file.Incomplete)+")")
	}
	at, concurrency := aiperfConcurrency(&f, file)
	row := api.BaselineRow{
		Concurrency:       concurrency,
		N:                 f.answered("request_count.avg", file.Requests.Avg),
		TTFT:              f.stat("time_to_first_token", file.TTFT),
		Latency:           f.stat("request_latency", file.Latency),
		RequestsPerSecond: f.value("request_throughput.avg", file.Rate.Avg, 0, maxCount),
	}
	if seconds := f.value("benchmark_duration.avg", file.Duration.Avg, 0, maxCount); seconds != nil {
		row.Seconds = *seconds
	}
	r.notes = []string{"ITL: AIPerf's inter-token latency is one mean per answer, which is called TPOT here, and its " +
		"inter-chunk latency ignores how many tokens a chunk holds."}
	var other api.BaselineRow
	r.notes = append(r.notes, f.aiperfTokens(file, &row, &other)...)
	if hits := f.value("overall_usage_prompt_cache_read_pct.avg", file.Hits.Avg, -2, 1); hits != nil &&
		f.whole("usage_prompt_cache_read_tokens.count", file.HitsOf.Count, 0, maxCount) == row.N {
		row.KVHitRatio = hits
	} else {
		r.notes = append(r.notes, "KV hit rate: the server did not report cached tokens for every answer.")
	}
	r.notes = append(r.notes, f.failures("error_request_count.avg", file.Failed.Avg, &row)...)
	r.version = file.Version
	if models := file.Config.Models.Items; len(models) == 1 {
		r.model = models[0].Name
	} else if models := file.Config.Endpoint.Models; len(models) == 1 {
		r.model = models[0]
	}
	r.levels = []level{{at, row, other}}
	return r, f.err
}

// aiperfTokens gives a row what depends on the number of output tokens, or the other row if that is not the
// server's, and the notes about it.
func (f *figures) aiperfTokens(file aiperf, row, other *api.BaselineRow) (notes []string) {
	tpot := f.stat("inter_token_latency", file.TPOT)
	own, server := f.value("total_osl.avg", file.Own.Avg, 0, 1<<53),
		f.value("total_usage_completion_tokens.avg", file.Server.Avg, 0, 1<<53)
	answer := f.value("usage_completion_tokens.avg", file.Counted.Avg, 0, maxCount)
	all := f.whole("usage_completion_tokens.count", file.Counted.Count, 0, maxCount) == row.N
	if all && answer != nil && row.RequestsPerSecond != nil {
		row.OutputTokensPerSecond = new(*answer * *row.RequestsPerSecond)
		notes = append(notes, "Output tokens/s is requests/s times the mean output tokens of an answer, as the server "+
			"counted them.")
	}
	other.OutputTokensPerSecond = f.value("output_token_throughput.avg", file.Output.Avg, 0, maxCount)
	other.TPOT = tpot
	switch {
	case file.Server == (stat{}) && file.Counted == (stat{}): // nothing contradicts it
		row.TPOT, row.OutputTokensPerSecond = tpot, other.OutputTokensPerSecond
		return append(notes, "Output tokens: the file has no counts of the server; AIPerf counted them with its own "+
			"tokenizer.")
	case server == nil || row.OutputTokensPerSecond == nil:
		return append(notes, "TPOT and output tokens/s: the server did not report the output tokens of every answer.")
	case own == nil || *own != *server:
		return append(notes, "TPOT: AIPerf's own tokenizer counted a different number of output tokens than the server; "+
			"--use-server-token-count makes it use the server's.")
	}
	row.TPOT = tpot
	return notes
}

// aiperfConcurrency gives the path and the value of the concurrency of the one phase that
// is measured.
func aiperfConcurrency(f *figures, file aiperf) (at string, concurrency int) {
	if load := file.Config.Load; load != nil && len(file.Config.Phases) == 0 {
		at = "input_config.loadgen."
		if load.Rate != "" {
			f.refuse(at+"request_rate", string(load.Rate), "none: a row is of a fixed number of requests in progress")
		}
		return at + "concurrency", f.whole(at+"concurrency", cmp.Or(load.Concurrency, "1"), 1, maxConcurrency)
	}
	var measured []int
	for i, p := range file.Config.Phases {
		if p.Kind != "warmup" {
			measured = append(measured, i)
		}
	}
	const field = "input_config.phases"
	if len(measured) != 1 {
		f.refuse(field, strconv.Itoa(len(measured))+" phases that are measured",
			"one: the figures of several are not told apart")
		return field, 0
	}
	at = fmt.Sprintf("%s[%d]", field, measured[0])
	p := file.Config.Phases[measured[0]]
	if p.Type != "concurrency" {
		f.refuse(at+".type", quote(p.Type), "concurrency: a row is of a fixed number of requests in progress")
		return at, 0
	}
	if p.Concurrency == "" {
		return at, 1 // AIPerf leaves out what was not set, and 1 is then in force
	}
	return at + ".concurrency", f.whole(at+".concurrency", p.Concurrency, 1, maxConcurrency)
}

// stat gives the percentiles of a metric that is a time.
func (f *figures) stat(path string, s stat) api.Percentiles {
	if s == (stat{}) {
		return api.Percentiles{}
	}
	shift, ok := aiperfTimes[s.Unit]
	if !ok {
		units := []string{"sec", "ms", "us", "ns"}
		slices.Sort(units)
		f.refuse(path+".unit", quote(s.Unit), oneOf(units))
		return api.Percentiles{}
	}
	return f.latency(path+".p50", path+".p95", s.P50, s.P95, shift)
}
