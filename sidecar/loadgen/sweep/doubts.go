package sweep

import (
	"fmt"

	"kvbooth/sidecar/api"
)

const (
	// fewestDoubted is the number of turns from which all of them on one worker are no chance.
	fewestDoubted = 20
	// hitsDoubted is the share of prompt tokens found in caches from which a router that predicts none misses events.
	hitsDoubted = .05
)

// doubts lists what the turns of a span and the cluster at its end show that its arm is not what it claims. What is not
// known raises none.
func doubts(mode api.Mode, served map[string]int, c api.Cluster) (all []string) {
	workers := workersOf(c)
	turns := 0
	for _, n := range served {
		turns += n
	}
	if len(served) == 1 && turns >= fewestDoubted && workers > 1 {
		all = append(all, fmt.Sprintf("all turns went to one worker of %d", workers))
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
