package report

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/api"
)

// Condition compares a figure of a run with a limit. The run fails if the condition is met. An example is
// ttft_p95>600ms. [ParseCondition] makes one.
type Condition struct {
	Text  string  // the condition without blanks
	Name  string  // name of the figure
	Op    string  // >, >=, < or <= for a number; = for a word
	Limit float64 // limit of a number: seconds, a ratio, a rate or a count
	Word  string  // limit of a word
	// Relative is true for a change against an accepted result; Limit is then its size.
	Relative bool
}

// Result is the outcome of a condition at the end of a run.
type Result struct {
	Condition string   `json:"condition"`
	Known     bool     `json:"known"` // false: the figure was not measured, or Withheld is set
	Hit       bool     `json:"hit"`   // the condition is met, so the run fails
	Value     *float64 `json:"value,omitempty"`
	Word      string   `json:"word,omitempty"`
	Withheld  string   `json:"withheld,omitempty"` // why the value decides nothing; empty: it decides
	Outcome   Outcome  `json:"outcome"`
	// The following are of a relative condition.
	Against       string      `json:"against,omitempty"`
	Before        *float64    `json:"before,omitempty"`         // the accepted value
	Difference    *float64    `json:"difference,omitempty"`     // relative to Before; of shares in points
	Interval      *[2]float64 `json:"interval,omitempty"`       // 95 % interval of Difference
	SecondsNeeded *float64    `json:"seconds_needed,omitempty"` // length of runs that would decide; absent: not known
	valueText     string
	needs         string // what would decide
}

// unit is the kind of value that a condition compares.
type unit int

const (
	duration unit = iota // a Go duration, such as 600ms; reported in seconds
	ratio                // a percentage, such as 1%, or 0 to 1
	amount               // a plain number
	word                 // one of a measure's words
)

// measure is a figure that a condition can name. value and error belong to numbers, words and word to words.
type measure struct {
	name     string
	unit     unit
	words    []string
	value    func(*Run) *float64       // returns nil if the figure was not measured
	error    func(*Run) *float64       // load generator's own error in the value; nil: not known
	bothWays bool                      // the error may have either sign
	times    func(*Run) *api.Quantiles // that the value is a percentile of; nil: it is none
	word     func(*Run) string         // returns "" if the figure was not measured
}

// measures lists every measure in the order of the help.
var measures = func() []measure {
	var all []measure
	for _, f := range api.Times {
		of := func(r *Run) *api.Quantiles { return f.Quantiles(&r.Metrics) }
		if f.Key == "ttft" {
			all = append(all, measure{
				name: "ttft_mean", times: of,
				value: func(r *Run) *float64 { return of(r).Mean }, error: func(r *Run) *float64 { return of(r).MeanError },
			})
		}
		all = append(all,
			measure{
				name: f.Key + "_p50", bothWays: f.BothWays, times: of,
				value: func(r *Run) *float64 { return of(r).P50 }, error: func(r *Run) *float64 { return of(r).P50Error },
			},
			measure{
				name: f.Key + "_p95", bothWays: f.BothWays, times: of,
				value: func(r *Run) *float64 { return of(r).P95 }, error: func(r *Run) *float64 { return of(r).P95Error },
			},
			measure{name: f.Key + "_p99", times: of, value: func(r *Run) *float64 { return of(r).P99 }})
	}
	return append(all,
		measure{name: "error_rate", unit: ratio, value: func(r *Run) *float64 { return r.ErrorRatio }},
		measure{name: "goodput", unit: ratio, value: func(r *Run) *float64 { return r.GoodputRatio }},
		measure{name: "kv_hit", unit: ratio, value: func(r *Run) *float64 { return r.KVHitRatio.Value }},
		measure{name: "achieved_share", unit: ratio, value: func(r *Run) *float64 { return r.Cluster.AchievedShare }},
		measure{name: "acceptance_rate", unit: ratio, value: func(r *Run) *float64 { return r.Cluster.AcceptanceRate }},
		measure{name: "tokens_per_step", unit: amount, value: func(r *Run) *float64 { return r.Cluster.TokensPerStep }},
		measure{name: "errors", unit: amount, value: func(r *Run) *float64 {
			if !r.Measured() {
				return nil
			}
			return new(float64(r.Turns.Failed))
		}},
		measure{
			name: "output_tokens_per_second", unit: amount,
			value: func(r *Run) *float64 { return r.OutputTokensPerSecond.Value },
		},
		measure{
			name: "requests_per_second", unit: amount,
			value: func(r *Run) *float64 { return r.RequestsPerSecond.Value },
		},
		measure{name: "slo", unit: word, words: []string{"met", "missed"}, word: func(r *Run) string { return r.slo() }},
		measure{
			name: "verdict", unit: word, words: []string{"ok", "noticeable", "bottleneck", "unknown"},
			word: func(r *Run) string { return r.Client.Verdict },
		})
}()

// aliases maps other names of measures.
var aliases = map[string]string{"throughput": "output_tokens_per_second"}

// Allowed describes the syntax of a condition for an error message.
func Allowed() string {
	names := map[unit][]string{}
	for _, q := range measures {
		name := q.name
		if q.unit == word {
			name += "=" + strings.Join(q.words, "|")
		}
		names[q.unit] = append(names[q.unit], name)
	}
	list := func(u unit) string { return strings.Join(names[u], ", ") }
	return fmt.Sprintf("a name, one of > >= < <=, and a value: %s with a duration (ttft_p95>600ms); %s with a "+
		"percentage (error_rate>1%%); %s with a number; or %s; or %s", list(duration), list(ratio), list(amount),
		list(word), allowedRelative())
}

// Names lists the figures that a condition may name.
func Names() (all []string) {
	for _, q := range measures {
		all = append(all, q.name)
	}
	return all
}

var errCondition = errors.New("not a condition")

// UnknownName is the error for a condition whose figure does not exist.
type UnknownName string

func (n UnknownName) Error() string { return "unknown name " + string(n) }

// Hint is the error for a condition with a wrong operator or value. Its text describes the allowed ones.
type Hint string

func (h Hint) Error() string { return string(h) }

// hint describes the operators and values that the measure allows.
func (q *measure) hint() Hint {
	switch q.unit {
	case duration:
		return Hint("one of > >= < <= and a duration with its unit (ms, s, m or h), such as " + q.name + ">600ms")
	case ratio:
		return Hint("one of > >= < <= and a percentage up to 100%, or a number up to 1, such as " + q.name + ">1%")
	case amount:
		return Hint("one of > >= < <= and a number from 0, such as " + q.name + ">0")
	}
	return Hint("= and one of " + strings.Join(q.words, ", ") + ", such as " + q.name + "=" + q.words[0])
}

// Allowed describes the texts of conditions, as the function [Allowed] does.
func (Condition) Allowed() string { return Allowed() }

// String returns the condition without blanks.
func (c Condition) String() string { return c.Text }

// UnmarshalText parses a condition. The error is that of [ParseCondition].
func (c *Condition) UnmarshalText(text []byte) (err error) {
	*c, err = ParseCondition(string(text))
	return err
}

// conditionPattern matches name, operator, value and unit. Blanks between them are allowed.
var conditionPattern = regexp.MustCompile(`^\s*([a-zA-Z0-9_]*)\s*(>=|<=|[<>=])\s*([^<>=\s]*)(?:\s+([a-zµ%]+))?\s*$`)

// ParseCondition parses a condition. The error is an [UnknownName], a [Hint], or, for text without the form of a
// condition, an error that [Allowed] explains.
func ParseCondition(text string) (Condition, error) {
	m := conditionPattern.FindStringSubmatch(text)
	if m == nil || m[1] == "" {
		return Condition{}, errCondition
	}
	value := m[3] + m[4]
	c := Condition{Text: m[1] + m[2] + value, Name: cmp.Or(aliases[m[1]], m[1]), Op: m[2]}
	i := slices.IndexFunc(measures, func(q measure) bool { return q.name == c.Name })
	if i < 0 {
		return Condition{}, UnknownName(c.Name)
	}
	q := &measures[i]
	if sign := value[:min(1, len(value))]; q.unit != word && (sign == "+" || sign == "-") {
		return c, q.readRelative(&c, value)
	}
	if (q.unit == word) != (c.Op == "=") {
		return Condition{}, q.hint()
	}
	if err := q.read(&c, value); err != nil || !(c.Limit >= 0) || math.IsInf(c.Limit, 1) { // the negation takes in NaN
		return Condition{}, q.hint()
	}
	if c.Op == "<" && c.Limit == 0 && !q.bothWays || q.unit == ratio && c.Op == ">" && c.Limit == 1 {
		return Condition{}, q.hint() + "; this one can never be met"
	}
	return c, nil
}

func (q *measure) read(c *Condition, value string) (err error) {
	switch q.unit {
	case duration:
		var d time.Duration
		d, err = time.ParseDuration(value)
		c.Limit = d.Seconds()
	case ratio:
		share, percent := strings.CutSuffix(value, "%")
		if c.Limit, err = strconv.ParseFloat(share, 64); percent {
			c.Limit /= 100
		}
		if c.Limit > 1 {
			err = errCondition
		}
	case amount:
		c.Limit, err = strconv.ParseFloat(value, 64)
	case word:
		if c.Word = value; !slices.Contains(q.words, value) {
			err = errCondition
		}
	}
	return err
}

// judge returns the outcome of the condition.
func (c Condition) judge(r *Run) Result {
	q := &measures[slices.IndexFunc(measures, func(q measure) bool { return q.name == c.Name })]
	if c.Relative {
		return c.judgeRelative(r, q)
	}
	out := c.judgeValue(r, q)
	switch {
	case !out.Known:
		out.Outcome = Unknown
	case out.Hit:
		out.Outcome = Failed
	default:
		out.Outcome = Passed
	}
	return out
}

func (c Condition) judgeValue(r *Run, q *measure) Result {
	out := Result{Condition: c.Text}
	if q.unit == word {
		out.Word = q.word(r)
		out.Known, out.Hit, out.valueText = out.Word != "", out.Word == c.Word, out.Word
		return out
	}
	if out.Value = q.value(r); out.Value == nil {
		return out
	}
	v := *out.Value
	if q.times != nil && v <= c.Limit {
		times := q.times(r)
		if slices.Contains(times.AtLeast, c.Name[strings.LastIndex(c.Name, "_")+1:]) {
			out.valueText, out.Withheld = api.Milliseconds(v), cutShort(times.Cut)
			return out
		}
	}
	if q.error != nil {
		if e := q.error(r); e != nil && !api.Decidable(v, *e, c.Limit, q.bothWays) {
			out.valueText, out.Withheld = api.Milliseconds(v), withheld(*e)
			return out
		}
	}
	out.Known = true
	out.Hit = map[string]bool{">": v > c.Limit, ">=": v >= c.Limit, "<": v < c.Limit, "<=": v <= c.Limit}[c.Op]
	out.valueText = q.text(v)
	return out
}
