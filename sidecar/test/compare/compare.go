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

// The largest allowed differences between core and real Dynamo.
const (
	hitBound    = .02 // of the prompts' tokens
	stayBound   = .03 // of the turns
	spreadBound = .20 // of the real figure
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

// bounded is a figure whose difference has a bound.
type bounded struct {
	name     string
	bound    float64
	relative bool // the bound is a share of the real figure
	of       func(*result) float64
	text     func(float64) string
}

const hitRate = "hit rate"

var bounds = []bounded{
	{hitRate, hitBound, false, func(r *result) float64 { return r.hit }, percent},
	{"same worker again", stayBound, false, func(r *result) float64 { return r.stay }, percent},
	{"in-flight spread", spreadBound, true, func(r *result) float64 { return r.spread }, plain},
}

// difference returns the core's mean minus the real figure, and the margin of chance. A run of the real Dynamo is
// assumed to scatter as one of the core does.
func (b bounded) difference(p *pair) (value, margin float64) {
	core, dynamo := bandOf(p.core, b.of), b.of(&p.real)
	if b.relative {
		return (core.mean - dynamo) / dynamo, core.run95 / dynamo
	}
	return core.mean - dynamo, core.run95
}

// judge compares the difference with the bound. A difference beyond the bound by less than chance is undecided. A
// figure that was not measured does not meet its bound.
func (b bounded) judge(p *pair) judgment {
	value, margin := b.difference(p)
	switch apart := math.Abs(value); {
	case apart <= b.bound:
		return met
	case apart-margin <= b.bound:
		return open
	}
	return notMet
}

// size formats a difference.
func (b bounded) size(v float64) string {
	if b.relative {
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
	for _, b := range bounds {
		value, margin := b.difference(p)
		text := fmt.Sprintf("%s: %s apart, of which chance makes up to %s; allowed are %s",
			b.name, b.size(math.Abs(value)), b.size(margin), b.size(b.bound))
		switch b.judge(p) {
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
