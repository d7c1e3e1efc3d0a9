package api

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rates are the rates of a load over time. The zero value is none. As a text, they are one rate (12/s), a ramp
// (2/s..20/s/10m), or steps (2/s,4/s,8/s/5m).
type Rates struct {
	Levels []Level       // the rate, the two ends of the ramp, or the steps
	Rises  bool          // whether they are the ends of a ramp
	Each   time.Duration // of the ramp or of each step
}

// AllowedRates describes the texts that [Rates.UnmarshalText] accepts.
var AllowedRates = fmt.Sprintf("a rate such as 12/s, a ramp such as 2/s..20/s/10m (within 10 minutes), "+
	"or steps such as 2/s,4/s,8/s/5m (5 minutes each): rates of %s, times of 1s to 24h", AllowedRate)

// UnmarshalText implements [encoding.TextUnmarshaler]. The empty text is none. The error is a [*FieldError] of the
// field rate.
func (r *Rates) UnmarshalText(text []byte) error {
	parsed, ok := parseRates(string(text))
	if !ok {
		return Refuse("rate", fmt.Sprintf("%.80q", text), AllowedRates)
	}
	*r = parsed
	return nil
}

func parseRates(text string) (r Rates, ok bool) {
	if text == "" {
		return r, true
	}
	if i := strings.LastIndex(text, "/"); i >= 0 && text[i:] != perSecond {
		d, err := time.ParseDuration(text[i+1:])
		if err != nil || d < time.Second || d > 24*time.Hour {
			return r, false
		}
		r.Each, text = d, text[:i]
	}
	parts := strings.Split(text, ",")
	if from, to, ramp := strings.Cut(text, ".."); ramp {
		r.Rises, parts = true, []string{from, to}
	}
	for _, part := range parts {
		level, ok := ParseLevel(strings.TrimSpace(part))
		if !ok || !level.IsRate() {
			return r, false
		}
		r.Levels = append(r.Levels, level)
	}
	return r, (len(r.Levels) > 1) == (r.Each > 0)
}

// Allowed returns [AllowedRates].
func (Rates) Allowed() string { return AllowedRates }

// String returns the text that [Rates.UnmarshalText] parses.
func (r Rates) String() string {
	texts := make([]string, len(r.Levels))
	for i, l := range r.Levels {
		texts[i] = l.String()
	}
	separator := ","
	if r.Rises {
		separator = ".."
	}
	text := strings.Join(texts, separator)
	if r.Each > 0 {
		text += "/" + shortDuration(r.Each)
	}
	return text
}

// shortDuration writes a duration without its units that are 0: 10m, not 10m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Level returns the level that the rates come to first: of a ramp, the one that it ends at.
func (r Rates) Level() Level {
	if r.Rises {
		return r.Levels[1]
	}
	return r.Levels[0]
}

// Ramp returns the ramp to [Rates.Level], the zero value where there is none.
func (r Rates) Ramp() Ramp {
	if !r.Rises {
		return Ramp{}
	}
	return Ramp{From: r.Levels[0], Seconds: r.Each.Seconds()}
}

// Steps returns the steps, nil where there are none.
func (r Rates) Steps() []Level {
	if r.Rises || len(r.Levels) < 2 {
		return nil
	}
	return slices.Clone(r.Levels)
}

// Ramp is how a rate is reached: evenly from another rate, within a time.
type Ramp struct {
	From    Level   `json:"from"`
	Seconds float64 `json:"seconds" minimum:"1" maximum:"86400" unit:"seconds"`
}

// Check checks a ramp to a level. The error is a [*FieldError].
func (r Ramp) Check(to Level) error {
	switch {
	case r == Ramp{}:
		return nil
	case to.Kind != Rate:
		return Refuse("ramp", r.From, fmt.Sprintf("a ramp to a rate, here to %v", to.InWords()))
	case !r.From.IsRate():
		return Refuse("ramp.from", r.From, AllowedRate)
	}
	return nil
}

// InWords describes a ramp to a level, and the level without one.
func (r Ramp) InWords(to Level) string {
	if r == (Ramp{}) {
		return to.InWords()
	}
	return fmt.Sprintf("%s, from %v within %s", to.InWords(), r.From,
		shortDuration(time.Duration(r.Seconds*float64(time.Second))))
}
