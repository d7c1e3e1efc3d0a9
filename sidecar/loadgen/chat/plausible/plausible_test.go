package plausible

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"
)

func TestValuesOutsideOfTheirRangeAreCounted(t *testing.T) {
	for _, row := range []struct {
		name string
		r    Range
		v    float64
		want bool
	}{
		{"nothing", Tokens, 0, true},
		{"the most", Tokens, 1e7, true},
		{"beyond it", Tokens, 1e7 + 1, false},
		{"below zero", Tokens, -1, false},
		{"a fraction of a token", Tokens, 1.5, false},
		{"a fraction of a second", Seconds, 1.5, true},
		{"1e23 tokens", Tokens, 1e23, false},
		{"a whole", Ratio, 1, true},
		{"55 times a whole", Ratio, 55, false},
		{"a queue of -1e308", Requests, -1e308, false},
		{"no number", Ratio, math.NaN(), false},
		{"+Inf", Total, math.Inf(1), false},
		{"-Inf", Total, math.Inf(-1), false},
	} {
		before := Rejected()[Target]
		got := row.r.Has(Target, "x", row.v)
		if counted := Rejected()[Target] > before; got != row.want || counted == got {
			t.Errorf("%s: %v, counted %v; want %v", row.name, got, counted, row.want)
		}
	}
}

// A server that sends an implausible number with every token must not fill the log.
func TestLoggedOncePerSource(t *testing.T) {
	rejected = map[Source]int64{}
	var log bytes.Buffer
	LogTo(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { LogTo(slog.New(slog.DiscardHandler)) })
	for range 3 {
		Ratio.Has(Metrics, "cache_use", 55)
		Requests.Has(Prometheus, "queued", -1e308)
	}
	if got := log.String(); strings.Count(got, "\n") != 2 ||
		!strings.Contains(got, "source=metrics name=cache_use value=55") ||
		!strings.Contains(got, "source=prometheus name=queued value=-1e+308") {
		t.Errorf("logged %s", got)
	}
}
