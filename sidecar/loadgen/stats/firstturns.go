package stats

import (
	"cmp"
	"math"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
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

// NewFirstTurn returns the first turn of a conversation on an opening. The times of turns that [Coldness] compares have
// one origin.
func NewFirstTurn(t *api.Turn, opening int64, origin time.Time) FirstTurn {
	o := workload.OutcomeOf(t, origin)
	f := FirstTurn{opening: opening, sent: o.Sent.Seconds(), token: o.FirstToken(), known: o.HasCached}
	if o.Waiting() {
		f.token = math.Inf(1)
	}
	if o.HasCached {
		f.prompt = o.PromptTokens
		f.cached = o.CachedTokens
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

// CachesOf returns what [Coldness] found, nil if that is unknown.
func CachesOf(turns []FirstTurn, tokens int) *api.Caches {
	found := Coldness(turns, tokens)
	if found == nil {
		return nil
	}
	c := &api.Caches{State: api.CachesWereCold, SweepFirstTurns: *found}
	if Warm(found) {
		c.State = api.CachesWereWarm
	}
	return c
}
