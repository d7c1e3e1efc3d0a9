package baseline

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
)

// maxLatency is the longest that any latency of an import may be, in seconds.
const maxLatency = 3600

// file is another program's file, whose values are read by their paths. It keeps the first error. Later values are
// meaningless.
type file struct {
	root  node
	below string   // the prefix of all paths
	notes []string // sentences on omitted values and the reasons
	err   error
}

// node is a JSON value. Its children are parsed on demand.
type node struct {
	text   json.RawMessage // as in the file
	fields map[string]*node
}

// at returns the value at a path, such as "benchmarks[0].duration"; nil: there is none.
func (n *node) at(path string) *node {
	for name := range strings.SplitSeq(strings.ReplaceAll(path, "[", ".["), ".") {
		if n.fields == nil {
			n.parse()
		}
		if n = n.fields[name]; n == nil {
			return nil
		}
	}
	return n
}

func (n *node) parse() {
	n.fields = map[string]*node{}
	var fields map[string]json.RawMessage
	var items []json.RawMessage
	if json.Unmarshal(n.text, &fields) != nil && json.Unmarshal(n.text, &items) != nil {
		return // it has no children
	}
	for name, text := range fields {
		n.fields[name] = &node{text: text}
	}
	for i, text := range items {
		n.fields[fmt.Sprintf("[%d]", i)] = &node{text: text}
	}
}

func (f *file) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// value returns the text of a value; empty: there is none, or it is null.
func (f *file) value(path string) string {
	n := f.root.at(f.below + path)
	if n == nil || string(n.text) == "null" {
		return ""
	}
	return string(n.text)
}

// text returns a string; empty: there is none.
func (f *file) text(path string) (text string) {
	value := f.value(path)
	if value != "" && json.Unmarshal([]byte(value), &text) != nil {
		f.refuse(path, value, "a value of type string")
	}
	return text
}

// only returns the first text at some paths. An item of a list counts if it is the only one.
func (f *file) only(paths []string) string {
	for _, path := range paths {
		next := strings.ReplaceAll(path, "[0]", "[1]")
		if text := f.text(path); text != "" && (next == path || f.value(next) == "") {
			return text
		}
	}
	return ""
}

// items returns the length of a list.
func (f *file) items(path string) (n int) {
	for f.root.at(fmt.Sprintf("%s[%d]", path, n)) != nil {
		n++
	}
	return n
}

func (f *file) refuse(path, value, allowed string) {
	if runes := []rune(value); len(runes) > 60 {
		value = string(runes[:60]) + "…"
	}
	if f.err == nil {
		f.err = api.Refuse(f.below+path, value, allowed)
	}
}

// number returns a number times 10^shift, which must lie within 0 and most; nil where the file has none.
func (f *file) number(path string, shift int, most float64) *float64 {
	text := f.value(path)
	if text == "" {
		return nil
	}
	v, err := parseShifted(text, shift)
	if err != nil || v > most {
		unit := ""
		if shift != 0 {
			unit = fmt.Sprintf(", times 10^%d", shift)
		}
		f.refuse(path, text, fmt.Sprintf("a number from 0 to %s%s", strconv.FormatFloat(most, 'f', -1, 64), unit))
		return nil
	}
	return &v
}

// units are the powers of ten from a unit to seconds.
var units = map[string]int{"sec": 0, "ms": -3, "us": -6, "ns": -9}

// times returns percentiles in seconds. With zeroes, a 0 stands for a missing value.
func (f *file) times(c field, zeroes bool) (p api.Percentiles) {
	if c.unit != "" && f.value(c.at)+f.value(c.p95) != "" {
		shift, ok := units[f.text(c.unit)]
		if !ok {
			f.refuse(c.unit, quote(f.text(c.unit)), oneOf([]string{"ms", "ns", "sec", "us"}))
			return p
		}
		c.shift = shift
	}
	p.P50, p.P95 = f.time(c.at, c.shift, zeroes), f.time(c.p95, c.shift, zeroes)
	if p.P50 != nil && p.P95 != nil && *p.P95 < *p.P50 {
		f.refuse(c.p95, f.value(c.p95), "at least the median, "+f.value(c.at))
	}
	return p
}

func (f *file) time(path string, shift int, zeroes bool) *float64 {
	text := f.value(path)
	if v, err := strconv.ParseFloat(text, 64); text == "" || zeroes && err == nil && v == 0 {
		return nil
	}
	v, err := parseShifted(text, shift)
	if err != nil || v <= 0 || v > maxLatency {
		f.refuse(path, text, "a time above 0, of at most an hour")
		return nil
	}
	return &v
}

// whole returns a count; 0 where the file has none and that is allowed.
func (f *file) whole(path string, low, high int) int {
	text := f.value(path)
	if text == "" && low == 0 {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64) // some write 24.0
	if err != nil || v != float64(int(v)) || v < float64(low) || v > float64(high) {
		f.refuse(path, text, wholeAllowed(low, high))
		return 0
	}
	return int(v)
}

// level returns the level whose concurrency is at a path.
func (f *file) level(path string) *level {
	l := &level{at: f.below + path}
	l.row.Level = api.AtConversations(f.whole(path, 1, maxConcurrency))
	return l
}
