package baseline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
)

// format is the file format of another load generator.
type format struct {
	name    string
	knows   [][]string // the top-level fields that identify its file: all of one of the lists
	version string     // the path of its version; empty: it has none
	models  []string   // the possible paths of the model; of a list, if it is the only one
	notes   []string   // sentences that hold for each of its files
	levels  func(*file) []*level
	n       string              // of a level, the path of the number of answers
	seconds string              // the path of its duration
	failed  string              // the number of requests that failed
	fields  []field             // the values of its row
	zeroes  bool                // whether it writes a missing time as 0
	judge   func(*file, *level) // chooses the values of a row by several fields
}

// field is a value of a row, and its place in a level.
type field struct {
	to     string // the path in a row, of a time without p50 and p95
	at     string // of a time: its p50
	p95    string
	unit   string // the path of a time's unit; empty: shift is used
	shift  int    // decimal places from the unit to the row's: ms to s is −3
	unlike bool   // whether its definition differs from the row's
}

// level is a row without its mode.
type level struct {
	below  string // the prefix of its fields' paths
	at     string // the path of its concurrency
	row    api.BaselineRow
	unlike []string // the paths in the row of values with another definition
}

// formatOf detects the format of a text; nil: unknown, or a baseline.
func formatOf(text []byte) *format {
	var fields map[string]json.RawMessage
	if json.NewDecoder(bytes.NewReader(text)).Decode(&fields) != nil || fields["rows"] != nil {
		return nil
	}
	at := slices.IndexFunc(formats, func(p format) bool {
		return slices.ContainsFunc(p.knows, func(names []string) bool {
			return !slices.ContainsFunc(names, func(name string) bool { return fields[name] == nil })
		})
	})
	if at < 0 {
		return nil
	}
	return &formats[at]
}

// others are programs whose results are not read, and the fields that identify their files.
var others = []struct {
	name   string
	fields []string
}{
	{"GenAI-Perf", []string{"input_config.perf_analyzer", "request_throughput"}},
	{"SGLang's bench_serving", []string{"dataset_name", "total_output_tokens_retokenized"}},
}

// notNumber matches a value that Python writes for a number, and that is no JSON.
var notNumber = regexp.MustCompile(`: *-?(?:Infinity|NaN)\b`)

// refuseOthers returns an [api.FieldError] that names the program of a result that is not read, and nil for any other
// text. It looks at the first value of a text.
func refuseOthers(text []byte) error {
	var root node
	d := json.NewDecoder(bytes.NewReader(notNumber.ReplaceAll(text, []byte(": null"))))
	if d.Decode(&root.text) != nil {
		return nil //nolint:nilerr // the reader of the text reports the error
	}
	for _, o := range others {
		if !slices.ContainsFunc(o.fields, func(path string) bool { return root.at(path) == nil }) {
			return api.Refuse("file", "a result of "+o.name+" (version not recorded)", "a result of "+formatNames())
		}
	}
	return nil
}

func formatNames() string {
	names := make([]string, len(formats))
	for i, p := range formats {
		names[i] = p.name
	}
	return strings.Join(names, ", ")
}

// readResults makes a baseline of another program's results.
func readResults(p *format, text []byte, name string, run api.ModeState) (api.Baseline, error) {
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
	f := &file{notes: slices.Clone(p.notes)}
	if err := decode(json.NewDecoder(bytes.NewReader(text)), text, &f.root.text); err != nil {
		return none, err
	}
	levels := f.read(p)
	b := api.Baseline{Name: name, Title: name, Kind: KindImported, Deployment: api.Deployment{Model: f.only(p.models)}}
	seen := make(map[api.Level]bool)
	for _, l := range levels {
		if seen[l.row.Level] {
			f.refuse(l.at, l.row.Level.String(), "each concurrency once in a file")
		}
		seen[l.row.Level] = true
		l.row.Mode, l.row.Speculation = run.Mode, run.Speculation
		b.Rows = append(b.Rows, l.row)
	}
	program := p.name + " " + f.text(p.version)
	if f.text(p.version) == "" {
		program = p.name + " (version not recorded)"
	}
	b.Notes = addNotes("", slices.Concat([]string{
		"Imported from " + program + ", which does not record routing mode or speculation: they were specified at import.",
		"Nothing in " + p.name + "'s file describes the engine, the GPUs, the workers or the shape of the conversations.",
	}, notTaken(program, b.Rows), f.notes))
	if f.err != nil {
		return none, atLine(text, f.err)
	}
	if err := Validate(b); err != nil {
		return none, err
	}
	slices.SortFunc(b.Rows, compareRows)
	return b, nil
}

func (f *file) read(p *format) []*level {
	all := p.levels(f)
	for _, l := range all {
		f.below = l.below
		l.row.N = f.whole(p.n, 1, maxCount) // a row without answers is omitted
		for _, c := range p.fields {
			f.field(p, c, l)
		}
		if s := f.number(p.seconds, 0, maxCount); s != nil {
			l.row.Seconds = *s
		}
		p.judge(f, l)
		f.failures(p.failed, &l.row)
		l.leaveOut()
		f.below = ""
	}
	return all
}

func (f *file) field(p *format, c field, l *level) {
	if c.unlike {
		l.unlike = append(l.unlike, c.to)
	}
	var times api.Percentiles
	if c.p95 != "" {
		times = f.times(c, p.zeroes)
	}
	for _, q := range quantities {
		switch q.Path {
		case c.to:
			*q.In(&l.row) = f.number(c.at, c.shift, q.max)
		case c.to + ".p50":
			*q.In(&l.row) = times.P50
		case c.to + ".p95":
			*q.In(&l.row) = times.P95
		}
	}
}

// leaveOut removes the values of another definition from the row, and notes them.
func (l *level) leaveOut() {
	for _, q := range quantities {
		path, _, _ := strings.Cut(q.Path, ".")
		if v := q.In(&l.row); *v != nil && slices.Contains(l.unlike, path) {
			*v = nil
			l.row.Unlike = append(l.row.Unlike, q.Name)
		}
	}
}

// failures sets a row's ratio of failed requests, where the file has their number, and notes that its figures exclude
// them.
func (f *file) failures(path string, row *api.BaselineRow) {
	failed := f.whole(path, 0, maxCount)
	if f.value(path) != "" && row.N > 0 {
		row.ErrorRatio = new(float64(failed) / float64(failed+row.N))
	}
	if failed > 0 {
		f.note("At concurrency %v, %d of %d requests failed; the times are those of the others.",
			row.Level, failed, failed+row.N)
	}
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

// notTaken lists the values that no row has, separately for those that the file lacks and those that it has by another
// definition.
func notTaken(program string, rows []api.BaselineRow) (notes []string) {
	var missing, unlike []string
	for _, q := range quantities {
		switch {
		case q.label == "" || slices.ContainsFunc(rows, func(r api.BaselineRow) bool { return *q.In(&r) != nil }):
		case slices.ContainsFunc(rows, func(r api.BaselineRow) bool { return slices.Contains(r.Unlike, q.Name) }):
			unlike = append(unlike, q.label)
		default:
			missing = append(missing, q.label)
		}
	}
	if len(missing) > 0 {
		notes = append(notes, "Not recorded in this file of "+program+": "+strings.Join(missing, ", ")+".")
	}
	return append(notes, "Not imported from "+program+", which defines it differently: "+strings.Join(append(unlike,
		"ITL"), ", ")+".")
}
