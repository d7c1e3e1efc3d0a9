package sweep

import (
	"fmt"
	"math"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
)

const (
	// leastOpening is how many tokens an opening has where its length is not set; see
	// [api.WorkloadShape].
	leastOpening = 3500
	// coarser is how many tokens of an opening the target's tokenizer counts at least, as a share of
	// those that the load generator counts.
	coarser = .8
	// inFront are tokens that a prompt may have in front of an opening, of a chat template, a short
	// system prompt or a nonce, up to whole blocks of a cache, where the prompt's length does not
	// show them.
	inFront = 128
	// tolerableWarm is the share of openings that may be warm.
	tolerableWarm = .05
)

// firstTurn is the first turn of a conversation, in seconds of a recorder.
type firstTurn struct {
	opening        int64
	sent, token    float64 // token is +Inf where none came
	prompt, cached int
	known          bool // prompt and cached were reported
}

func newFirstTurn(t *lane.EndedTurn, opening int64, sent float64) firstTurn {
	f := firstTurn{opening: opening, sent: sent, token: math.Inf(1)}
	if t.TTFT != nil {
		f.token = sent + *t.TTFT
	}
	if t.PromptTokens != nil && t.CachedTokens != nil {
		f.prompt, f.cached, f.known = *t.PromptTokens, *t.CachedTokens, true
	}
	return f
}

// coldness judges the first turns of a span whose openings have so many tokens; nil where none tells
// its cached tokens. Of the turns on one opening that were sent before any of them had its first
// token, one was computed first: the one with the fewest cached tokens stands for the opening. The
// tokens that it computed must hold the opening's text. A prompt that is shorter than that text, as in
// a set of questions, tells nothing.
func coldness(turns []firstTurn, tokens int) *api.SweepFirstTurns {
	until := map[int64]float64{} // the first token on each opening
	for _, t := range turns {
		if at, ok := until[t.opening]; !ok || t.token < at {
			until[t.opening] = t.token
		}
	}
	first, silent := map[int64]firstTurn{}, map[int64]bool{}
	for _, t := range turns {
		if t.sent >= until[t.opening] {
			continue
		}
		silent[t.opening] = silent[t.opening] || !t.known
		if f, ok := first[t.opening]; !ok || t.cached < f.cached {
			first[t.opening] = t
		}
	}
	var found api.SweepFirstTurns
	for opening, t := range first {
		text := coarser * float64(tokens)
		if silent[opening] || float64(t.prompt) < text {
			continue
		}
		found.Openings++
		if float64(t.cached) > float64(t.prompt)-text+inFront {
			found.Warm++
			found.Cached = max(found.Cached, t.cached)
		}
	}
	if found.Openings == 0 {
		return nil
	}
	return &found
}

// warm says why caches were not cold; empty: they were, or it is not known.
func warm(f *api.SweepFirstTurns, way string) string {
	if f == nil || float64(f.Warm) <= tolerableWarm*float64(f.Openings) {
		return ""
	}
	done := "emptying them"
	if way == "nonce" {
		done = "a nonce in front of the openings"
	}
	return fmt.Sprintf("its caches were not cold: the first turns on %d of %d openings found up to %d cached tokens, which nothing in the span explains; %s has no effect on this target",
		f.Warm, f.Openings, f.Cached, done)
}
