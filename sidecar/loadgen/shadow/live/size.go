package live

import (
	"fmt"
	"slices"
	"strconv"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// size holds the sizes that an account needs.
type size struct {
	workers []sim.WorkerID
	blocks  int // of a worker's cache
	tokens  int // of a block
}

// sizeOf reads the sizes of a cluster, or returns the reason why they are unknown.
func sizeOf(c api.Cluster) (s size, problem string) {
	switch {
	case !c.Available:
		return s, "no cluster data: " + c.Problem
	case c.AllWorkers != nil:
		return s, fmt.Sprintf("the cluster has %d workers; the shadow follows 256 at most", c.AllWorkers.Count)
	case c.CacheBlocks == nil || *c.CacheBlocks < 1 || c.BlockTokens == nil || *c.BlockTokens < 1:
		return s, "no metrics report the size of the workers' caches (dynamo_frontend_model_total_kv_blocks and " +
			"dynamo_frontend_model_kv_cache_block_size)"
	}
	for _, w := range c.Workers {
		id, err := strconv.ParseUint(w.ID, 10, 64)
		if err != nil || id == 0 {
			return s, fmt.Sprintf("worker %s has no id by which turns can be attributed to it", w.Name)
		}
		s.workers = append(s.workers, sim.WorkerID(id))
	}
	if len(s.workers) == 0 {
		return s, "no workers are known; configure their metrics pages (cluster.metrics_urls) or Prometheus"
	}
	slices.Sort(s.workers)
	s.blocks, s.tokens = int(*c.CacheBlocks), int(*c.BlockTokens)
	return s, ""
}
