package baseline

import (
	"fmt"
	"time"

	"kvbooth/sidecar/api"
)

// maxTime is the end of what a time may be, in seconds since 1970.
const maxTime = 253_000_000_000

// distribution is how GuideLLM tells a metric of the requests that succeeded.
type distribution struct {
	Successful struct {
		Mean        number `json:"mean"`
		Min         number `json:"min"`
		Max         number `json:"max"`
		Percentiles struct {
			P50 number `json:"p50"`
			P95 number `json:"p95"`
		} `json:"percentiles"`
	} `json:"successful"`
}

// guidellm is a report in JSON, with a benchmark for each load.
type guidellm struct {
	Metadata struct {
		Version string `json:"guidellm_version"`
	} `json:"metadata"`
	Config struct {
		Spec struct {
			Backend struct {
				Model string `json:"model"`
			} `json:"backend"`
		} `json:"spec"`
	} `json:"config"`
	Benchmarks []guidellmBenchmark `json:"benchmarks"`
}

type guidellmBenchmark struct {
	Config struct {
		Strategy struct {
			Type    string `json:"type_"`
			Streams number `json:"streams"`
		} `json:"strategy"`
	} `json:"config"`
	Duration number `json:"duration"` // seconds
	End      number `json:"end_time"` // seconds since 1970
	Metrics  struct {
		Totals struct {
			Successful number `json:"successful"`
			Errored    number `json:"errored"`
		} `json:"request_totals"`
		Requests distribution `json:"requests_per_second"`
		Output   distribution `json:"output_tokens_per_second"`
		Length   distribution `json:"output_token_count"`
		TTFT     distribution `json:"time_to_first_token_ms"`
		TPOT     distribution `json:"inter_token_latency_ms"` // one mean of each answer
		Latency  distribution `json:"request_latency"`        // seconds, to the end of the stream
	} `json:"metrics"`
}

// readGuideLLM reads a report of GuideLLM. Its inter-token latency is one mean of each
// answer, as TPOT is here, but counts as often as the answer has tokens: its percentiles
// are those of TPOT where all answers are of one length. Its own TPOT includes the TTFT,
// and its latency ends with the stream, not with the last text: neither is taken.
func readGuideLLM(text []byte) (r results, err error) {
	var file guidellm
	if err := decodeResults(text, &file); err != nil {
		return r, err
	}
	var f figures
	r.version, r.model = file.Metadata.Version, file.Config.Spec.Backend.Model
	r.notes = []string{
		"Latency: GuideLLM measures to the end of the stream; here, latency ends with the last text.",
		"ITL: GuideLLM's inter-token latency is one mean per answer, which is called TPOT here.",
	}
	for i, b := range file.Benchmarks {
		at := fmt.Sprintf("benchmarks[%d]", i)
		streams, path := b.Config.Strategy.Streams, at+".config.strategy.streams"
		switch b.Config.Strategy.Type {
		case "synchronous":
			streams, path = "1", at+".config.strategy"
		case "concurrent":
		default:
			r.notes = append(r.notes, fmt.Sprintf("Benchmarks of strategy %s are left out: a row needs a fixed number of "+
				"requests in progress.", quote(b.Config.Strategy.Type)))
			continue
		}
		l := level{at: path}
		l.row, l.other = f.guidellmRow(at, b)
		l.row.Concurrency = f.whole(path, streams, 1, maxConcurrency)
		if l.row.TPOT.P50 == nil {
			r.notes = append(r.notes, fmt.Sprintf("TPOT at concurrency %d: GuideLLM weights each answer by its length, and "+
				"the answers had different lengths.", l.row.Concurrency))
		}
		r.notes = append(r.notes, f.failures(at+".metrics.request_totals.errored", b.Metrics.Totals.Errored, &l.row)...)
		r.levels = append(r.levels, l)
	}
	if len(r.levels) == 0 {
		f.refuse("benchmarks", "none at a fixed number of requests in progress",
			"at least one of strategy concurrent or synchronous")
	}
	return r, f.err
}

func (f *figures) guidellmRow(at string, b guidellmBenchmark) (row, other api.BaselineRow) {
	m := b.Metrics
	own := at + "."
	at += ".metrics."
	row = api.BaselineRow{
		N:                     f.answered(at+"request_totals.successful", m.Totals.Successful),
		TTFT:                  f.distribution(at+"time_to_first_token_ms", m.TTFT),
		OutputTokensPerSecond: f.value(at+"output_tokens_per_second.successful.mean", m.Output.Successful.Mean, 0, maxCount),
		RequestsPerSecond:     f.value(at+"requests_per_second.successful.mean", m.Requests.Successful.Mean, 0, maxCount),
	}
	tpot := f.distribution(at+"inter_token_latency_ms", m.TPOT)
	if l := m.Length.Successful; l.Min != "" && l.Min == l.Max {
		row.TPOT = tpot
	} else {
		other.TPOT = tpot
	}
	other.Latency = f.latency(at+"request_latency.successful.percentiles.p50",
		at+"request_latency.successful.percentiles.p95",
		unlessZero(m.Latency.Successful.Percentiles.P50), unlessZero(m.Latency.Successful.Percentiles.P95), 0)
	if s := f.value(own+"duration", b.Duration, 0, maxCount); s != nil {
		row.Seconds = *s
	}
	if v := f.value(own+"end_time", b.End, 0, maxTime); v != nil {
		if end := time.UnixMilli(int64(*v * 1000)).UTC(); plausible(end) {
			row.Measured = &end
		}
	}
	return row, other
}

// distribution gives the percentiles of a metric in milliseconds; GuideLLM writes 0 for
// what it has none of.
func (f *figures) distribution(path string, d distribution) api.Percentiles {
	path += ".successful.percentiles."
	p := d.Successful.Percentiles
	return f.latency(path+"p50", path+"p95", unlessZero(p.P50), unlessZero(p.P95), -3)
}
