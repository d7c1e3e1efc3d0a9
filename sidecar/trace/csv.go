package trace

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/api"
)

// columns are the positions of a CSV file's columns, -1 for one that it lacks.
type columns struct {
	form                                    Form
	count                                   int
	at, session, took, model, input, output int
	names                                   []string
}

// csvForms has the columns of the forms, in lower case.
var csvForms = []struct {
	form              Form
	at, input, output string
}{
	{Azure, "timestamp", "contexttokens", "generatedtokens"},
	{BurstGPT, "timestamp", "request tokens", "response tokens"},
}

// cells divides a line of a CSV file. No form has commas or line breaks in its cells.
func cells(line []byte) []string {
	all := strings.Split(string(line), ",")
	for i, cell := range all {
		all[i] = strings.Trim(strings.TrimSpace(cell), `"`)
	}
	return all
}

// readHeader reports whether a line is the header of a CSV file in a known form, and remembers its columns.
func (r *Reader) readHeader(line []byte) bool {
	if r.number > 1 || r.whole || bytes.HasPrefix(line, []byte("{")) {
		return false
	}
	names := cells(bytes.ToLower(line))
	at := map[string]int{}
	for i, name := range names {
		at[name] = i + 1
	}
	for _, f := range csvForms {
		if at[f.at] > 0 && at[f.input] > 0 && at[f.output] > 0 {
			r.columns = &columns{
				form: f.form, count: len(names), names: cells(line), at: at[f.at] - 1, input: at[f.input] - 1,
				output: at[f.output] - 1, session: at["session id"] - 1, took: at["elapsed time"] - 1,
				model: at["model"] - 1,
			}
			return true
		}
	}
	return false
}

// takeRow uses a line of a CSV file.
func (r *Reader) takeRow(line []byte) {
	record, bad := r.columns.record(line, r.options.Unit)
	if record == nil && bad == nil {
		r.summary.Others++ // the header
		return
	}
	r.use(record, bad)
}

// clock are the layouts of Azure's timestamps, which may have decimals.
var clock = []string{time.DateTime, "2006-01-02 15:04:05Z07:00", time.RFC3339}

// record returns the request of a line, and nil for the header. unit is that of numeric times, by default seconds.
func (c *columns) record(line []byte, unit Unit) (*Record, *api.FieldError) {
	values := cells(line)
	if len(values) != c.count {
		return nil, refuse(notJSON, fmt.Sprintf("%d columns", len(values)), fmt.Sprintf("%d, as in the header", c.count))
	}
	if values[c.at] == c.names[c.at] {
		return nil, nil
	}
	r := newRecord(c.form)
	var check checks
	if c.form == Azure {
		r.moment = check.clock(c.names[c.at], values[c.at])
	} else {
		if unit == "" {
			unit = Seconds
		}
		r.moment = check.decimal(c.names[c.at], values[c.at], inMilliseconds[unit])
	}
	r.PromptTokens = check.count(c.names[c.input], values[c.input], 1)
	r.OutputTokens = check.count(c.names[c.output], values[c.output], 0)
	if c.model >= 0 {
		r.Model = values[c.model]
	}
	if c.session >= 0 {
		r.Session = sessionOf(values[c.session])
	}
	if c.took >= 0 && values[c.took] != "" {
		r.Ended = milliseconds(check.decimal(c.names[c.took], values[c.took], inMilliseconds[Seconds]))
	}
	return r, check.bad
}

// clock returns a time of day in ms.
func (c *checks) clock(field, value string) float64 {
	for _, layout := range clock {
		if at, err := time.Parse(layout, value); err == nil {
			return float64(at.Unix())*1000 + float64(at.Nanosecond())/1e6
		}
	}
	c.refuse(field, value, "a date and a time such as 2023-11-16 18:15:46.68")
	return 0
}

// decimal returns a time in ms; unit is the number of ms in its unit.
func (c *checks) decimal(field, value string, unit float64) float64 {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		c.refuse(field, value, "a number")
		return 0
	}
	return c.number(field, v, unit)
}

// count returns a number of tokens. Some files have them with decimals.
func (c *checks) count(field, value string, least int64) int {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || v != float64(int64(v)) {
		c.refuse(field, value, "a whole number")
		return 0
	}
	n := int64(v)
	return c.tokens(field, &n, least)
}
