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

// What the two sides may differ by, as shares.
const (
	hitBound  = .03
	stayBound = .05
)

// alike is the relative difference from which on one is to be explained.
const alike = .05

// setting is what a pair of runs has in common.
type setting struct {
	level int // conversations in progress
	mode  api.Mode
}

func (s setting) String() string { return fmt.Sprintf("%d conversations, %s", s.level, s.mode) }

// pair is one setting, measured on both sides.
type pair struct {
	setting
	profile         sim.Profile
	simulated, real result
}

// bounded is a share that must agree.
type bounded struct {
	name   string
	bound  float64
	of     func(*result) estimate
	reason func(p *pair, above bool) string // of a difference beyond the bound
}

const hitRate = "hit rate"

var shares = []bounded{
	{hitRate, hitBound, func(r *result) estimate { return r.hit }, whyHit},
	{"same worker again", stayBound, func(r *result) estimate { return r.stay }, whyStay},
}

// difference is simulated less real, with the margin that chance leaves.
func (b bounded) difference(p *pair) estimate {
	s, r := b.of(&p.simulated), b.of(&p.real)
	return estimate{value: s.value - r.value, margin: math.Hypot(s.margin, r.margin), n: s.n + r.n}
}

// judge holds the difference against the bound. One that lies beyond it by less
// than chance may make up shows nothing, and stays open; what was not measured is
// not met.
func (b bounded) judge(p *pair) judgement {
	d := b.difference(p)
	switch apart := math.Abs(d.value); {
	case apart <= b.bound:
		return met
	case apart-d.margin <= b.bound:
		return open
	}
	return notMet
}

// judgement is what comes of a bound.
type judgement string

const (
	met    judgement = "met"
	open   judgement = "open"
	notMet judgement = "NOT MET"
)

// judge says what keeps a pair from passing, and what stays open, which a longer span
// would decide.
func (p *pair) judge() (unmet, undecided []string) {
	for _, r := range []*result{&p.simulated, &p.real} {
		if len(r.failed) > 0 {
			unmet = append(unmet, fmt.Sprintf("turns failed (%s): %s", r.side, classes(r.failed)))
		}
	}
	for _, b := range shares {
		d := b.difference(p)
		text := fmt.Sprintf("%s: %s apart, of which chance makes up to %s; allowed are %s",
			b.name, points(math.Abs(d.value)), points(d.margin), points(b.bound))
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

// quantity is something that is shown side by side and not bounded. Times are in
// seconds.
type quantity struct {
	name     string
	of       func(*result) float64 // NaN where nothing was measured
	recorded func(*api.Column) api.LookedUp
	text     func(float64) string
	// reason says why the simulated side is above the real one, or below it.
	reason func(p *pair, above bool) string
}

var quantities = []quantity{
	{"in-flight spread", func(r *result) float64 { return r.spread }, notRecorded, plain, whySpread},
	{"TTFT p50", func(r *result) float64 { return known(r.ttft.P50) }, func(c *api.Column) api.LookedUp { return c.TTFT.P50 }, milliseconds, whyTTFT},
	{"TTFT p95", func(r *result) float64 { return known(r.ttft.P95) }, func(c *api.Column) api.LookedUp { return c.TTFT.P95 }, milliseconds, whyTTFT},
	{"ITL p50, last 60 s", func(r *result) float64 { return known(r.itl.P50) }, func(c *api.Column) api.LookedUp { return c.ITL.P50 }, milliseconds, whyITL},
	{"TPOT p50", func(r *result) float64 { return known(r.tpot.P50) }, func(c *api.Column) api.LookedUp { return c.TPOT.P50 }, milliseconds, whyTPOT},
	{"output tokens/s", func(r *result) float64 { return r.rate }, func(c *api.Column) api.LookedUp { return c.OutputTokensPerSecond }, plain, whyRate},
}

func known(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

func notRecorded(*api.Column) api.LookedUp { return api.LookedUp{Lookup: api.LookupNotRecorded} }

// relative is how far the simulated side is above the real one, as a share of
// the real one.
func (q quantity) relative(p *pair) float64 { return q.of(&p.simulated)/q.of(&p.real) - 1 }

// why explains a difference, "" where there is none to speak of.
func (q quantity) why(p *pair) string {
	d := q.relative(p)
	if math.IsNaN(d) || math.Abs(d) < alike {
		return ""
	}
	return q.reason(p, d > 0)
}

// why explains a difference beyond the bound. One that may be chance needs no
// explanation, but gets a known one.
func (b bounded) why(p *pair) string {
	judged := b.judge(p)
	if judged == met {
		return ""
	}
	why := b.reason(p, b.difference(p).value > 0)
	if judged == open && why == unexplained {
		return ""
	}
	return why
}

// recorded is the profile's baseline in a setting.
func recorded(profile sim.Profile, s setting) api.Column {
	for _, b := range baseline.Builtin() {
		if b.Name == profile.Baseline {
			c, _ := baseline.At(b, s.mode, api.SpeculationNotRecorded, s.level)
			return c
		}
	}
	return api.Column{}
}
