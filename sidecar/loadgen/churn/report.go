package churn

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
)

// Report is what a trial under events has found. It is its JSON, too.
type Report struct {
	Windows     Windows      `json:"windows"` // s
	After       float64      `json:"after"`   // s
	WarmUp      float64      `json:"warm_up"` // s
	Level       api.Level    `json:"level"`
	Seed        uint64       `json:"seed"`
	Blocks      int          `json:"blocks"`
	Arms        []string     `json:"arms"`
	Events      []string     `json:"events"`
	Instances   []Event      `json:"instances"` // in the order in which they ran
	Summaries   []Summary    `json:"summaries"`
	Comparisons []Comparison `json:"comparisons"`
	Unfinished  string       `json:"unfinished,omitempty"` // why not all instances were observed
}

// Event is an instance with its result.
type Event struct {
	Result
	At     time.Time `json:"at"`     // at which the action began
	Action float64   `json:"action"` // seconds that it took
	Hits   string    `json:"hits,omitempty"`
	Error  string    `json:"error,omitempty"` // why the action failed; the instance then counts in no summary
	Undo   string    `json:"undo_error,omitempty"`
	// Opened are the workers whose circuit breaker was open by the router's metrics at some moment after the event; nil:
	// no router reports it.
	Opened []string `json:"breakers_opened"`
	// Healthy are those of them that the event does not hit; nil where the event names no worker.
	Healthy []string `json:"breakers_opened_healthy"`
}

// Complete computes the summaries and the comparisons of the instances whose action succeeded.
func (r *Report) Complete() {
	var results []Result
	for i := range r.Instances {
		if r.Instances[i].Error == "" {
			results = append(results, r.Instances[i].Result)
		}
	}
	r.Summaries = Summarize(results, r.Arms, r.Events)
	r.Comparisons = Compare(results, r.Arms, r.Events)
}

// WriteMarkdown writes the report for people.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Churn\n\n%d of %d events, in %d blocks, at %s, seed %d. Each: %g s to warm up, %g s before, %g s "+
		"after, windows of %g s.\n", len(r.Instances), r.Blocks*len(r.Arms)*len(r.Events), r.Blocks, r.Level, r.Seed,
		r.WarmUp, r.Windows.Before, r.After, r.Windows.Window)
	if r.Unfinished != "" {
		fmt.Fprintf(&b, "\nUnfinished: %s.\n", api.Printable(r.Unfinished))
	}
	for _, event := range r.Events {
		fmt.Fprintf(&b, "\n## %s\n\n| arm | times | failed turns each | errors | TTFT p95 as before after | hit rate as "+
			"before after | prompt tokens lost each | breakers opened |\n|---|---|---|---|---|---|---|---|\n", event)
		for i := range r.Summaries {
			if s := &r.Summaries[i]; s.Event == event {
				fmt.Fprintf(&b, "| %s | %d | %.1f | %s | %s | %s | %s | %s |\n", s.Arm, s.Instances, s.Failed,
					cmp.Or(errorWords(s.Errors), "none"), s.TTFT.words(), s.HitRate.words(), number(s.TokensLost),
					r.breakers(s.Arm, event))
			}
		}
		for i := range r.Comparisons {
			if c := &r.Comparisons[i]; c.Event == event {
				fmt.Fprintf(&b, "\n%s minus %s: failed turns %s; prompt tokens lost %s; TTFT p95 as before %s later; hit rate "+
					"%s later.\n", c.B, c.A, c.Failed.words(), c.TokensLost.words(), c.TTFT.words(), c.HitRate.words())
			}
		}
		b.WriteString(r.limits(event))
	}
	for i := range r.Instances {
		if n := &r.Instances[i]; n.Error+n.Undo != "" {
			fmt.Fprintf(&b, "\n- block %d, %s, %s: %s\n", n.Block+1, n.Arm, n.Event, api.Printable(cmp.Or(n.Error, n.Undo)))
		}
	}
	fmt.Fprintf(&b, "\nTimes are medians with the interval between two of the measured ones and its confidence; \"over\" is "+
		"not as before by the end. Means have intervals of 95 %%. Each holds for itself.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// limits says up to what windows counted as before an event.
func (r *Report) limits(event string) string {
	ttft, rate, n := 0., 0., 0.
	for i := range r.Instances {
		f := &r.Instances[i]
		if f.Event != event || f.TTFT.Limit == nil || f.HitRate.Limit == nil {
			continue
		}
		ttft += *f.TTFT.Limit / *f.TTFT.Before
		rate += *f.HitRate.Limit / *f.HitRate.Before
		n++
	}
	if n == 0 || math.IsNaN(rate) {
		return ""
	}
	return fmt.Sprintf("\nAs before is, on average, a TTFT p95 up to %.0f %% higher and a hit rate up to %.0f %% lower: 10 %%, "+
		"or what windows before the events scatter.\n", 100*(ttft/n-1), 100*(1-rate/n))
}

// breakers says what the routers' metrics say of the workers that an event did not hit.
func (r *Report) breakers(arm, event string) string {
	reported, named, opened, workers := 0, 0, 0, map[string]bool{}
	for i := range r.Instances {
		n := &r.Instances[i]
		if n.Arm != arm || n.Event != event || n.Opened == nil {
			continue
		}
		reported++
		list := n.Opened
		if n.Hits != "" {
			named++
			list = n.Healthy
		}
		if len(list) > 0 {
			opened++
		}
		for _, worker := range list {
			workers[worker] = true
		}
	}
	if reported == 0 {
		return "not reported"
	}
	kind := "of any worker"
	if named == reported {
		kind = "of healthy workers"
	}
	text := fmt.Sprintf("%s in %d of %d", kind, opened, reported)
	if opened > 0 {
		text += ": " + strings.Join(slices.Sorted(maps.Keys(workers)), ", ")
	}
	return api.Printable(text)
}

func errorWords(errors map[api.ErrorClass]int) string {
	var all []string
	for _, class := range slices.Sorted(maps.Keys(errors)) {
		all = append(all, fmt.Sprintf("%d %s", errors[class], class))
	}
	return strings.Join(all, ", ")
}

// words returns a median of seconds with its interval.
func (m *Median) words() string {
	if m == nil {
		return "not known"
	}
	value := "over"
	if m.Value != nil {
		value = seconds(*m.Value)
	}
	low, high := "any", "any"
	if m.Low != nil {
		low = seconds(*m.Low)
	}
	if m.High != nil {
		high = seconds(*m.High)
	}
	text := value
	if m.Instances > 1 {
		text += fmt.Sprintf(" (%s to %s, %.0f %%)", low, high, 100*m.Confidence)
	}
	if m.Censored > 0 {
		text += fmt.Sprintf(", %d over", m.Censored)
	}
	return text
}

func seconds(v float64) string { return fmt.Sprintf("%.3g s", v) }

// words returns a difference with its interval.
func (d *Difference) words() string {
	if d == nil {
		return "not known"
	}
	low, high := number(&d.Interval[0]), number(&d.Interval[1])
	return fmt.Sprintf("%s (%s to %s)", number(&d.Estimate), low, high)
}

// number formats a count with its thousands separated.
func number(v *float64) string {
	if v == nil {
		return "not known"
	}
	digits := 0
	if math.Abs(*v) < 100 && *v != math.Trunc(*v) {
		digits = 1
	}
	text := fmt.Sprintf("%.*f", digits, math.Abs(*v))
	whole, part, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if part != "" {
		whole += "." + part
	}
	if *v < 0 && strings.Trim(text, "0.") != "" {
		return "−" + whole
	}
	return whole
}
