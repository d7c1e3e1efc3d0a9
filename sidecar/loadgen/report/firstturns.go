package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"kvbooth/sidecar/api"
)

const (
	// leastOpening is the assumed number of tokens of an opening without a set length; see
	// [api.WorkloadShape].
	leastOpening = 3500
	// tokenizerRatio is the smallest ratio of an opening's tokens by the target's tokenizer to those
	// by the load generator's.
	tokenizerRatio = .8
	// prefixTokens is the number of tokens that may precede an opening: a chat template, a short system
	// prompt or a nonce, up to whole blocks of a cache. The prompt's length does not show them.
	prefixTokens = 128
	// tolerableWarm is the share of openings that may be warm.
	tolerableWarm = .05
)

// FirstTurn is the first turn of a conversation, in seconds since any one moment.
type FirstTurn struct {
	opening        int64
	sent, token    float64 // token is +Inf without a first token
	prompt, cached int
	known          bool // prompt and cached were reported
}

// NewFirstTurn returns the first turn of a conversation on an opening, sent at a time.
func NewFirstTurn(t *api.Turn, opening int64, sent float64) FirstTurn {
	f := FirstTurn{opening: opening, sent: sent, token: math.Inf(1)}
	if t.TTFT != nil {
		f.token = sent + *t.TTFT
	}
	if t.PromptTokens != nil && t.CachedTokens != nil {
		f.prompt = *t.PromptTokens
		f.cached = *t.CachedTokens
		f.known = true
	}
	return f
}

// Coldness checks whether the first turns of a span or a run had cold caches; tokens is the length of an opening, 0
// where it has no set length. It returns nil where no turn reports cached tokens. Of the turns on one opening that
// were sent before the first token of any of them, one was computed first. It is taken to be the one with the fewest
// cached tokens. The tokens that it computed must include the opening's text. A prompt that is shorter than that
// text, as in a question set, is ignored.
func Coldness(turns []FirstTurn, tokens int) *api.SweepFirstTurns {
	until := map[int64]float64{} // time of the first token on each opening
	for _, t := range turns {
		if at, ok := until[t.opening]; !ok || t.token < at {
			until[t.opening] = t.token
		}
	}
	first := map[int64]FirstTurn{}
	unreported := map[int64]bool{}
	for _, t := range turns {
		if t.sent >= until[t.opening] {
			continue
		}
		unreported[t.opening] = unreported[t.opening] || !t.known
		if f, ok := first[t.opening]; !ok || t.cached < f.cached {
			first[t.opening] = t
		}
	}
	var found api.SweepFirstTurns
	for opening, t := range first {
		text := tokenizerRatio * float64(cmp.Or(tokens, leastOpening))
		if unreported[opening] || float64(t.prompt) < text {
			continue
		}
		found.Openings++
		if float64(t.cached) > float64(t.prompt)-text+prefixTokens {
			found.Warm++
			found.Cached = max(found.Cached, t.cached)
		}
	}
	if found.Openings == 0 {
		return nil
	}
	return &found
}

// Warm reports whether first turns found warm caches. It is false where that is unknown.
func Warm(f *api.SweepFirstTurns) bool {
	return f != nil && float64(f.Warm) > tolerableWarm*float64(f.Openings)
}

// Caches is what the first turns of a run show of the caches at its beginning.
type Caches struct {
	State string `json:"state" enum:"cold,warm,unknown"`
	api.SweepFirstTurns
	// SharedRatio is the share of all cached tokens that first turns found, which the openings that conversations share
	// explain where the caches were cold; nil without cached tokens.
	SharedRatio *float64 `json:"shared_ratio,omitempty"`
}

// caches measures the caches at the beginning of the run by its first turns.
func (b *Builder) caches(r *Run) *Caches {
	found := Coldness(b.firsts, r.Workload.OpeningTokens)
	if found == nil || r.Tokens.CachedUnknown >= r.Turns.OK { // zeros that the cluster's counters contradict are unknown
		return &Caches{State: "unknown"}
	}
	c := &Caches{State: "cold", SweepFirstTurns: *found}
	if Warm(found) {
		c.State = "warm"
	}
	if r.Tokens.Cached > 0 {
		cached := 0
		for _, t := range b.firsts {
			cached += t.cached
		}
		c.SharedRatio = new(min(1, float64(cached)/float64(r.Tokens.Cached)))
	}
	return c
}

// BeginningNote says, for a comparison, what the caches held at the beginning of the run, and how many turns were cut
// at its end.
func (r *Run) BeginningNote() string {
	text := "A run as a whole"
	if r.Caches != nil {
		text += ", with caches that were " + r.cacheLine()
	}
	if r.Turns.Cancelled > 0 {
		text += "; " + strings.Join(r.cutLine(), "")
	}
	return text + "."
}

// cacheLine says what the caches held at the beginning of the run, and which hits shared openings explain.
func (r *Run) cacheLine() string {
	c := r.Caches
	var text string
	switch c.State {
	case "unknown":
		return "not known at the beginning: the cached tokens of first turns with a whole opening are not known"
	case "warm":
		text = fmt.Sprintf("warm at the beginning: the first turns on %d of %d openings found up to %d cached tokens, which "+
			"nothing in this run explains", c.Warm, c.Openings, c.Cached)
	default:
		text = fmt.Sprintf("cold at the beginning, by the first turns on %s", plural(c.Openings, "opening"))
	}
	if c.SharedRatio != nil {
		text += fmt.Sprintf("; %s of the cached tokens are in first turns", share100(*c.SharedRatio))
		if n := r.Workload.Openings; n != nil && *n > 0 && c.State == "cold" {
			text += fmt.Sprintf(", which the %s that the conversations share explain", plural(*n, "opening"))
		}
	}
	return text
}
