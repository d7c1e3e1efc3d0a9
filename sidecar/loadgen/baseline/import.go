package baseline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
)

// format is what another load generator writes.
type format struct {
	name    string
	knows   [][]string // the fields by which its file is known, at the top: all of one of the lists
	version string     // where it has its version; empty: nowhere
	models  []string   // where it may have the model; of a list, if it is the only one
	notes   []string   // sentences that hold for each of its files
	levels  func(*file) []*level
	n       string              // of a level, where the number of answers stands
	seconds string              // how long it was measured
	failed  string              // the number of requests that failed
	fields  []field             // the values of its row
	zeroes  bool                // it writes a time of 0 for want of one
	judge   func(*file, *level) // decides by several fields which values are a row's
}

// field is a value of a row, and where a level has it.
type field struct {
	to     string // the path in a row, of a time without p50 and p95
	at     string // of a time: its p50
	p95    string
	unit   string // where the unit of a time stands; empty: shift says it
	shift  int    // decimal places from the unit to the row's: ms to s is −3
	unlike bool   // it has another definition than the row's
}

// level is a row without its mode.
type level struct {
	below  string // what the paths of its fields begin with
	at     string // the path of its concurrency
	row    api.BaselineRow
	unlike []string // the paths in the row of what has another definition than the row's
}

// formatOf knows whose results a text is; nil: unknown, or a baseline.
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

// formatNames are those of all formats.
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
	seen := make(map[int]bool)
	for _, l := range levels {
		if seen[l.row.Concurrency] {
			f.refuse(l.at, strconv.Itoa(l.row.Concurrency), "each concurrency once in a file")
		}
		seen[l.row.Concurrency] = true
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

// read reads the levels of a file.
func (f *file) read(p *format) []*level {
	all := p.levels(f)
	for _, l := range all {
		f.below = l.below
		l.row.N = f.whole(p.n, 1, maxCount) // a row of no answers is none
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

// field reads one value of a level.
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

// leaveOut takes the values of another definition from the row, and names them there.
func (l *level) leaveOut() {
	for _, q := range quantities {
		path, _, _ := strings.Cut(q.Path, ".")
		if v := q.In(&l.row); *v != nil && slices.Contains(l.unlike, path) {
			*v = nil
			l.row.Unlike = append(l.row.Unlike, q.Name)
		}
	}
}

// failures gives a row its share of failed requests, where the file has their number, and notes that its figures are
// without them.
func (f *file) failures(path string, row *api.BaselineRow) {
	failed := f.whole(path, 0, maxCount)
	if f.value(path) != "" && row.N > 0 {
		row.ErrorRatio = new(float64(failed) / float64(failed+row.N))
	}
	if failed > 0 {
		f.note("At concurrency %d, %d of %d requests failed; the times are those of the others.",
			row.Concurrency, failed, failed+row.N)
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

// notTaken names the values that no row has, apart for those that the file does not have and those that it
// has by another definition.
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
