package sweep

import (
	"fmt"
	"math"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/report"
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

// burstsFrom is the share of answers in bursts from which a span names them, as the notices of a target do, and
// fewestBursts their number.
const (
	burstsFrom   = .05
	fewestBursts = 3
)

// burstWarning describes streams that the server or a proxy holds back; "" where there are few.
func burstWarning(turns []proof.Turn) string {
	buffered, ok := 0, 0
	for i := range turns {
		if !turns[i].Failed && turns[i].Ended > 0 {
			ok++
			if turns[i].Buffered {
				buffered++
			}
		}
	}
	if buffered < fewestBursts || float64(buffered) < burstsFrom*float64(ok) {
		return ""
	}
	return fmt.Sprintf("answers came in bursts, so the server or a proxy holds its streams back, TTFT includes the hold, "+
		"and TPOT and ITL are unknown: %d of %d", buffered, ok)
}

// hitsDoubted is the share of prompt tokens found in caches from which a router that predicts none misses events.
const hitsDoubted = .05

// addWorkers adds the workers of a span, their turns, and its doubts.
func addWorkers(s *api.SweepSpan, served map[string]int, c api.Cluster) {
	s.Doubts = doubts(s.Mode.Mode, served, c)
	s.Workers = max(workersOf(c), len(served)) // the metrics may be of one engine behind a router
	s.TurnsByWorker = turnsByWorker(served, c)
}

// doubts lists what the turns of a span and the cluster at its end show that its arm is not what it claims. What is not
// known raises none.
func doubts(mode api.Mode, served map[string]int, c api.Cluster) (all []string) {
	workers := workersOf(c)
	turns := 0
	for _, n := range served {
		turns += n
	}
	if len(served) == 1 && turns >= report.FewestDoubted && workers > 1 {
		all = append(all, report.OneWorker(workers))
	}
	if mode != api.ModeKV {
		return all
	}
	switch predicted, hits := c.KV.PredictedRatio, c.KV.HitRatio; {
	case c.RoutesByKV != nil && !*c.RoutesByKV:
		all = append(all, "by its metrics the router does not choose workers by their caches")
	case predicted != nil && *predicted == 0 && hits != nil && *hits > hitsDoubted:
		all = append(all, "the router predicted a hit rate of 0 while the caches had hits: it receives no KV events")
	}
	return all
}

// mostWorkers is the number of workers up to which a span lists them.
const mostWorkers = 64

// turnsByWorker returns the turns of each worker of a span; nil if there are none or too many. The workers that the
// cluster lists and that served no turn have 0, unless the answers name workers in another way than the cluster.
func turnsByWorker(served map[string]int, c api.Cluster) map[string]int {
	listed := map[string]bool{}
	for i := range c.Workers {
		if id := c.Workers[i].ID; id != "" {
			listed[id] = true
		}
	}
	report.AddIdle(served, listed)
	if len(served) == 0 || len(served) > mostWorkers {
		return nil
	}
	return served
}

// workersOf returns the number of workers that the cluster reports, 0 where it is not known.
func workersOf(c api.Cluster) int {
	switch {
	case !c.Available:
		return 0
	case c.AllWorkers != nil:
		return c.AllWorkers.Count
	}
	return len(c.Workers)
}
