package sweep

import (
	"fmt"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/loadgen/stats"
)

// warmReason describes caches that were not cold; "" where they were cold, or it is unknown. method
// is how they were made cold.
func warmReason(f *api.SweepFirstTurns, method string) string {
	if !stats.Warm(f) {
		return ""
	}
	done := "emptying them"
	if method == "nonce" {
		done = "a nonce in front of the openings"
	}
	return fmt.Sprintf("its caches were not cold: the first turns on %d of %d openings found up to %d cached tokens, "+
		"which nothing in the span explains; %s has no effect on this target", f.Warm, f.Openings, f.Cached, done)
}

// burstWarning describes streams that came in bursts, which the server or a proxy holds back unless the load
// generator's own lag explains them; "" where there are few. A nil lag is not known.
func burstWarning(r *proof.Recording, lag *stats.Lag) string {
	bursts, answers := r.InBursts()
	if !stats.HeldBack(bursts, answers) {
		return ""
	}
	if lag != nil && lag.ExplainsBursts(float64(bursts)/float64(answers)) {
		return fmt.Sprintf("answers came in bursts, and their TPOT and ITL are unknown; the load generator itself was late, "+
			"so whether the server or a proxy holds its streams back is not known: %d of %d", bursts, answers)
	}
	return fmt.Sprintf("answers came in bursts, so the server or a proxy holds its streams back, TTFT includes the hold, "+
		"and TPOT and ITL are unknown: %d of %d", bursts, answers)
}

// hitsDoubted is the share of prompt tokens found in caches from which a router that predicts none misses events.
const hitsDoubted = .05

// addWorkers adds the workers of a span, their turns and the tokens that they computed, and its doubts.
func addWorkers(s *api.SweepSpan, served, uncached map[string]int, c api.Cluster) {
	s.Doubts = doubts(s.Mode.Mode, served, c)
	s.Workers = max(workersOf(c), len(served)) // the metrics may be of one engine behind a router
	s.TurnsByWorker = turnsByWorker(served, c)
	if s.TurnsByWorker != nil {
		s.UncachedByWorker = uncached
	}
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
