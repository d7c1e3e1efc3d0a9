package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/sim"
)

// setting is what both sides of a comparison have in common.
type setting struct {
	level   int // conversations in progress
	mode    api.Mode
	workers int
}

func (s setting) String() string {
	return fmt.Sprintf("%d conversations, %s, %d workers", s.level, s.mode, s.workers)
}

// pair is one setting with several runs of the core and one of the real Dynamo.
type pair struct {
	setting
	core []result
	real result
}

// difference returns the core's mean minus the real figure, and the margin of chance, as shares of the real figure if
// its bound is one. A run of the real Dynamo is assumed to scatter as one of the core does.
func (f *figure) difference(p *pair) (value, margin float64) {
	core, dynamo := bandOf(p.core, f.of), f.of(&p.real)
	if f.relative {
		return (core.mean - dynamo) / dynamo, core.run95 / dynamo
	}
	return core.mean - dynamo, core.run95
}

// judge compares the difference with the bound. A difference beyond the bound by less than chance is undecided. A
// figure that was not measured does not meet its bound.
func (f *figure) judge(p *pair) judgment {
	value, margin := f.difference(p)
	switch apart := math.Abs(value); {
	case apart <= f.bound:
		return met
	case apart-margin <= f.bound:
		return open
	}
	return notMet
}

// size formats a difference of a figure with a bound.
func (f *figure) size(v float64) string {
	if f.relative {
		return orMissing(v, "%.3g %%", 100*v)
	}
	return points(v)
}

// judgment is the result of comparing a figure with its bound.
type judgment string

const (
	met    judgment = "met"
	open   judgment = "open"
	notMet judgment = "NOT MET"
)

// judge returns the figures that do not meet their bounds, and those that only a longer span could decide.
func (p *pair) judge() (unmet, undecided []string) {
	if len(p.real.failed) > 0 {
		unmet = append(unmet, "turns failed: "+classes(p.real.failed))
	}
	for i := range figures {
		f := &figures[i]
		if f.bound == 0 {
			continue
		}
		value, margin := f.difference(p)
		text := fmt.Sprintf("%s: %s apart, of which chance makes up to %s; allowed are %s",
			f.name, f.size(math.Abs(value)), f.size(margin), f.size(f.bound))
		switch f.judge(p) {
		case notMet:
			unmet = append(unmet, text)
		case open:
			undecided = append(undecided, text)
		}
	}
	return unmet, undecided
}

func classes(failed map[api.ErrorClass]int) string {
	var parts []string
	for _, class := range slices.Sorted(maps.Keys(failed)) {
		parts = append(parts, fmt.Sprintf("%d %s", failed[class], class))
	}
	return strings.Join(parts, ", ")
}

func known(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// recorded returns the profile's baseline in a setting, scaled to the setting's workers.
func recorded(profile sim.Profile, s setting) api.Column {
	if s.workers != profile.Workers {
		return api.Column{}
	}
	for _, b := range baseline.Builtin() {
		if b.Name == profile.Baseline {
			c, _ := baseline.At(
				b,
				api.ModeState{Mode: s.mode, Speculation: api.SpeculationNotRecorded},
				api.AtConversations(s.level),
			)
			return c
		}
	}
	return api.Column{}
}
