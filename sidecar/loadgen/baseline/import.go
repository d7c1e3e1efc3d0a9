package baseline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
)

// maxLatency is the longest that any latency of an import may be, in seconds.
const maxLatency = 3600

// program is a load generator whose results can be imported.
type program struct {
	name  string
	knows [][]string // the fields by which its file is known, at the top: all of one of the lists
	read  func(text []byte) (results, error)
}

// programs are known by fields that no other's file has together.
var programs = []program{
	{"AIPerf", [][]string{
		{"aiperf_version", "input_config"},
		{"input_config", "was_cancelled"},
		{"input_config", "request_throughput"},
	}, readAIPerf},
	{"GuideLLM", [][]string{{"metadata", "benchmarks"}}, readGuideLLM},
	{"inference-perf", [][]string{{"load_summary", "successes", "failures"}}, readInferencePerf},
	{"vLLM bench", [][]string{
		{"endpoint_type", "max_concurrency", "request_throughput", "output_throughput"},
		{"backend", "model_id", "tokenizer_id", "request_throughput", "output_throughput"},
	}, readVLLM},
}

// Programs names the load generators whose JSON [ReadJSON] reads.
func Programs() []string {
	names := make([]string, len(programs))
	for i, p := range programs {
		names[i] = p.name
	}
	return names
}

// results are what a file of another program holds.
type results struct {
	version string // of the program; empty: the file does not say
	model   string // empty: the file does not say
	levels  []level
	notes   []string // sentences about what was left out, and why
}

// level is a row without its mode.
type level struct {
	at  string // the JSON path of its concurrency
	row api.BaselineRow
	// other has the values that the file has by another definition than the row's.
	other api.BaselineRow
}

// programOf knows whose results a text is; nil: nobody's, or a baseline.
func programOf(text []byte) *program {
	var fields map[string]json.RawMessage
	if json.NewDecoder(bytes.NewReader(text)).Decode(&fields) != nil || fields["rows"] != nil {
		return nil
	}
	at := slices.IndexFunc(programs, func(p program) bool {
		return slices.ContainsFunc(p.knows, func(names []string) bool {
			return !slices.ContainsFunc(names, func(name string) bool { return fields[name] == nil })
		})
	})
	if at < 0 {
		return nil
	}
	return &programs[at]
}

// readProgram makes a baseline of another program's results.
func readProgram(p *program, text []byte, name string, run api.ModeState) (api.Baseline, error) {
	none := api.Baseline{}
	if !slices.Contains(modes, run.Mode) {
		return none, api.Refuse("mode", strings.Trim(quote(string(run.Mode)), `"`),
			oneOf(modes)+": "+p.name+" does not record how requests were routed, so specify the mode with the import")
	}
	run.Speculation = cmp.Or(run.Speculation, api.SpeculationNotRecorded)
	if !slices.Contains(speculations, run.Speculation) {
		return none, api.Refuse("speculation", quote(string(run.Speculation)), oneOf(speculations))
	}
	if !nameSyntax.MatchString(name) {
		return none, api.Refuse("name", quote(name),
			"a name for the baseline, since "+p.name+"'s file has none: 1 to 100 letters, digits, spaces and ._+-, beginning "+
				"with a letter or digit")
	}
	r, err := p.read(text)
	if err != nil {
		return none, atLine(text, err)
	}
	b := api.Baseline{Name: name, Title: name, Kind: KindImported, Deployment: api.Deployment{Model: r.model}}
	seen := make(map[int]bool)
	for _, l := range r.levels {
		if seen[l.row.Concurrency] {
			return none, atLine(text, api.Refuse(l.at, strconv.Itoa(l.row.Concurrency), "each concurrency once in a file"))
		}
		seen[l.row.Concurrency] = true
		l.row.Mode, l.row.Speculation = run.Mode, run.Speculation
		for _, m := range metrics {
			if *m.of(&l.row) == nil && *m.of(&l.other) != nil {
				l.row.Unlike = append(l.row.Unlike, m.field())
			}
		}
		b.Rows = append(b.Rows, l.row)
	}
	program := p.name + " " + r.version
	if r.version == "" {
		program = p.name + " (version not recorded)"
	}
	b.Notes = addNotes("", slices.Concat([]string{
		"Imported from " + program + ", which does not record routing mode or speculation: they were specified at import.",
		"Nothing in " + p.name + "'s file describes the engine, the GPUs, the workers or the shape of the conversations.",
	}, notTaken(program, b.Rows), r.notes))
	if err := Validate(b); err != nil {
		return none, err
	}
	slices.SortFunc(b.Rows, compareRows)
	return b, nil
}

// addNotes adds lines to notes, each once.
func addNotes(notes string, lines []string) string {
	all := strings.Split(notes, "\n")
	for _, line := range lines {
		if !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	return strings.Trim(strings.Join(all, "\n"), "\n")
}

// notTaken names the values that no row has, apart for those that the file does not have and those that it
// has by another definition.
func notTaken(program string, rows []api.BaselineRow) (notes []string) {
	var missing, unlike []string
	for _, m := range metrics {
		name, wanted := labels[m.path]
		switch {
		case !wanted || slices.ContainsFunc(rows, func(r api.BaselineRow) bool { return *m.of(&r) != nil }):
		case slices.ContainsFunc(rows, func(r api.BaselineRow) bool { return slices.Contains(r.Unlike, m.field()) }):
			unlike = append(unlike, name)
		default:
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		notes = append(notes, "Not recorded in this file of "+program+": "+strings.Join(missing, ", ")+".")
	}
	return append(notes, "Not imported from "+program+", which defines it differently: "+strings.Join(append(unlike,
		"ITL"), ", ")+".")
}

// labels are those of the values that an import can have. No other program measures ITL as it is measured
// here.
var labels = map[string]string{
	"ttft.p50": "TTFT p50", "ttft.p95": "TTFT p95", "tpot.p50": "TPOT p50", "tpot.p95": "TPOT p95",
	"latency.p50": "latency p50", "latency.p95": "latency p95", "output_tokens_per_second": "output tokens/s",
	"requests_per_second": "requests/s", "kv_hit_ratio": "KV hit rate",
}

// decodeResults reads what is wanted of another program's file, whatever else it holds.
func decodeResults(text []byte, to any) error {
	return decode(json.NewDecoder(bytes.NewReader(text)), text, to)
}

// number is a value of another program's file as it stands there, whatever it is; empty:
// there is none. What is no number is refused where it is read, with its path.
type number string

// UnmarshalJSON keeps the text; it never fails.
func (n *number) UnmarshalJSON(text []byte) error {
	if string(text) != "null" {
		*n = number(text)
	}
	return nil
}

// figures reads the values of a file. It keeps the first error, after which nothing
// that it gives is of use.
type figures struct{ err error }

func (f *figures) refuse(path, value, allowed string) {
	if runes := []rune(value); len(runes) > 60 {
		value = string(runes[:60]) + "…"
	}
	if f.err == nil {
		f.err = api.Refuse(path, value, allowed)
	}
}

// value gives a number times 10^shift, which must lie within 0 and most; nil where the
// file has none.
func (f *figures) value(path string, text number, shift int, most float64) *float64 {
	if text == "" {
		return nil
	}
	v, err := parseShifted(string(text), shift)
	if err != nil || v > most {
		unit := ""
		if shift != 0 {
			unit = fmt.Sprintf(", times 10^%d", shift)
		}
		f.refuse(path, string(text), fmt.Sprintf("a number from 0 to %s%s", strconv.FormatFloat(most, 'f', -1, 64), unit))
		return nil
	}
	return &v
}

// latency gives percentiles in seconds; shift is −3 for milliseconds. The path is that
// of the object or the like that holds both, which p50 and p95 complete.
func (f *figures) latency(p50, p95 string, median, high number, shift int) (p api.Percentiles) {
	p.P50, p.P95 = f.time(p50, median, shift), f.time(p95, high, shift)
	if p.P50 != nil && p.P95 != nil && *p.P95 < *p.P50 {
		f.refuse(p95, string(high), fmt.Sprintf("at least the median, %s", median))
	}
	return p
}

func (f *figures) time(path string, text number, shift int) *float64 {
	if text == "" {
		return nil
	}
	v, err := parseShifted(string(text), shift)
	if err != nil || v <= 0 || v > maxLatency {
		f.refuse(path, string(text), "a time above 0, of at most an hour")
		return nil
	}
	return &v
}

// whole gives a count; 0 where the file has none.
func (f *figures) whole(path string, text number, low, high int) int {
	if text == "" && low == 0 {
		return 0
	}
	v, err := strconv.ParseFloat(string(text), 64) // some write 24.0
	if err != nil || v != float64(int(v)) || v < float64(low) || v > float64(high) {
		f.refuse(path, string(text), wholeAllowed(low, high))
		return 0
	}
	return int(v)
}

// answered gives the number of answers behind a row. A row of none is none.
func (f *figures) answered(path string, text number) int {
	return f.whole(path, text, 1, maxCount)
}

// unlessZero takes a 0 for nothing, where a program writes it for want of a value.
func unlessZero(text number) number {
	if v, err := strconv.ParseFloat(string(text), 64); err == nil && v == 0 {
		return ""
	}
	return text
}

// failures gives a row its share of failed requests, where the file has their number, and says that they are not in its
// figures; empty: all are.
func (f *figures) failures(path string, text number, row *api.BaselineRow) []string {
	failed := f.whole(path, text, 0, maxCount)
	if text != "" && row.N > 0 {
		row.ErrorRatio = new(float64(failed) / float64(failed+row.N))
	}
	if failed == 0 {
		return nil
	}
	return []string{fmt.Sprintf("At concurrency %d, %d of %d requests failed; the times are those of the others.",
		row.Concurrency, failed, failed+row.N)}
}
