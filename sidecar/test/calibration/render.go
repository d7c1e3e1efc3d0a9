package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"strings"
	"text/template"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/calibrate"
)

//go:embed calibration.md.tmpl
var page string

// set is a part of a table's rows, for which the document has a line of errors.
type set struct {
	title    string
	contains func(api.BaselineRow) bool
}

// sets holds the sets of rows of each profile. A profile without an entry has one set of all rows.
var sets = map[string][]set{
	"h200-tp1": {
		{"fitted to: 60, 80 … 160 in both modes, 180 under round_robin", func(r api.BaselineRow) bool { return fittedTo(r) }},
		{
			"held out: 40, 50, the levels between, 170 under round_robin",
			func(r api.BaselineRow) bool { return !fittedTo(r) && !collapse(r) },
		},
		{"the collapse: 170 and 180 under kv", collapse},
	},
}

func fittedTo(r api.BaselineRow) bool {
	return r.Level.Value >= 60 && r.Level.Conversations()%20 == 0 && !collapse(r)
}

// collapse reports whether a row is at a level where one worker of the recorded run had more requests than its batch
// holds: from one level to the next, p95 changes fourfold, so that a mean error means nothing.
func collapse(r api.BaselineRow) bool { return r.Mode == api.ModeKV && r.Level.Value >= 170 }

// section is the document's section about a profile.
type section struct {
	Profile   sim.Profile
	Title     string
	Errors    []string // lines of a table
	Constants []string // of a fitted profile
}

// render renders the document from the stored results and the current profiles.
func render(all results) ([]byte, error) {
	data := struct {
		Sections                   []section
		ErrorSeeds                 int
		Tolerance                  float64
		MiddlePercent, TailPercent float64
	}{
		ErrorSeeds: errorSeeds, Tolerance: 100 * calibrate.Tolerance,
		MiddlePercent: 100 * calibrate.MaxError, TailPercent: 100 * calibrate.MaxTail,
	}
	for _, kept := range all.Profiles {
		p, err := sim.LoadProfile(kept.Name)
		if err != nil {
			return nil, err
		}
		data.Sections = append(data.Sections, sectionOf(p, kept))
	}
	var out bytes.Buffer
	err := template.Must(template.New("").Parse(page)).Execute(&out, data)
	return out.Bytes(), err
}

func sectionOf(p sim.Profile, kept profileResults) section {
	s := section{
		Profile: p,
		Title:   fmt.Sprintf("%s: %s, %s a worker, %s", p.Name, p.GPU, gpus(p.TensorParallel), workers(p.Workers)),
	}
	for _, c := range p.Constants() {
		if len(kept.Constants) > 0 {
			s.Constants = append(s.Constants, fmt.Sprintf("| `%s` | %.4g | %.3g to %.3g | %s | %s |", c.Name, c.Get(&p),
				c.Low, c.High, p.Sources[c.Name].Origin, determined(kept.Constants[c.Name])))
		}
	}
	b, ok := recordedOf(p)
	if !ok {
		return s
	}
	rows := kept.join(b)
	list := sets[p.Name]
	if list == nil {
		list = []set{{"all rows; nothing was fitted to them", func(api.BaselineRow) bool { return true }}}
	}
	for _, part := range list {
		var some []calibrate.Row
		for _, r := range rows {
			if part.contains(r.Recorded) {
				some = append(some, r)
			}
		}
		e := calibrate.ErrorsOf(some)
		s.Errors = append(s.Errors, fmt.Sprintf("| %s | %d | %s | %s | %s | %s | %s |", part.title, e.Rows,
			percent(e.TTFT50), percent(e.TTFT95), percent(e.Throughput), percent(e.TPOT), points(e.Hit)))
	}
	return s
}

func determined(k knowledge) string {
	text := ""
	if k.Half > 0 {
		text = fmt.Sprintf("± %.2g", k.Half)
	}
	if k.Status == calibrate.Fitted {
		text += ", determined"
	}
	return text
}

func gpus(n int) string {
	if n == 1 {
		return "1 GPU"
	}
	return fmt.Sprintf("%d GPUs", n)
}

func workers(n int) string { return fmt.Sprintf("%d workers", n) }

func percent(v float64) string { return share(v, "%.1f %%") }

func points(v float64) string { return share(v, "%.1f points") }

func share(v float64, format string) string {
	if math.IsNaN(v) {
		return "not recorded"
	}
	return strings.TrimSpace(fmt.Sprintf(format, 100*v))
}
