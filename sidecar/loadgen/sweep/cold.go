package sweep

import (
	"fmt"
	"math"

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

// firstTurn is the first turn of a conversation, in seconds of a recorder.
type firstTurn struct {
	opening        int64
	sent, token    float64 // token is +Inf without a first token
	prompt, cached int
	known          bool // prompt and cached were reported
}

func newFirstTurn(t *workload.Turn, opening int64, sent float64) firstTurn {
	f := firstTurn{opening: opening, sent: sent, token: math.Inf(1)}
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

// coldness checks whether the first turns of a span had cold caches; tokens is the length of an
// opening. It returns nil where no turn reports cached tokens. Of the turns on one opening that were
// sent before the first token of any of them, one was computed first. It is taken to be the one with
// the fewest cached tokens. The tokens that it computed must include the opening's text. A prompt
// that is shorter than that text, as in a question set, is ignored.
func coldness(turns []firstTurn, tokens int) *api.SweepFirstTurns {
	until := map[int64]float64{} // time of the first token on each opening
	for _, t := range turns {
		if at, ok := until[t.opening]; !ok || t.token < at {
			until[t.opening] = t.token
		}
	}
	first := map[int64]firstTurn{}
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
		text := tokenizerRatio * float64(tokens)
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

// warmReason describes caches that were not cold; "" where they were cold, or it is unknown. method
// is how they were made cold.
func warmReason(f *api.SweepFirstTurns, method string) string {
	if f == nil || float64(f.Warm) <= tolerableWarm*float64(f.Openings) {
		return ""
	}
	done := "emptying them"
	if method == "nonce" {
		done = "a nonce in front of the openings"
	}
	return fmt.Sprintf("its caches were not cold: the first turns on %d of %d openings found up to %d cached tokens, "+
		"which nothing in the span explains; %s has no effect on this target", f.Warm, f.Openings, f.Cached, done)
}
