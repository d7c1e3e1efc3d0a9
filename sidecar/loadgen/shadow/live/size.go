package live

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster/router"
	"kvbooth/sidecar/sim"
)

// size holds the sizes that an account needs.
type size struct {
	workers []sim.WorkerID
	blocks  int // blocks of a worker's cache
	tokens  int // tokens of a block
}

// sizeOf reads the sizes of a cluster behind a router, or returns the reason why they are unknown. front is nil for an
// unknown router.
func sizeOf(c api.Cluster, front *router.Router) (s size, problem string) {
	switch {
	case !c.Available:
		return s, "no cluster data: " + c.Problem
	case c.AllWorkers != nil:
		return s, fmt.Sprintf("the cluster has %d workers; the shadow follows 256 at most", c.AllWorkers.Count)
	case c.CacheBlocks == nil || *c.CacheBlocks < 1 || c.BlockTokens == nil || *c.BlockTokens < 1:
		const missing = "no metrics report the size of the workers' caches"
		if other(front) {
			return s, missing + ": " + front.Name + " does not, and vLLM does in vllm:cache_config_info; name the page of " +
				"each engine in cluster.metrics_urls, or let Prometheus scrape it"
		}
		return s, missing + " (dynamo_frontend_model_total_kv_blocks and dynamo_frontend_model_kv_cache_block_size, or " +
			"vllm:cache_config_info)"
	}
	for _, w := range c.Workers {
		id := workerNumber(w.ID)
		if id == 0 {
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

// other reports whether a router is known and not Dynamo's.
func other(r *router.Router) bool { return r != nil && r.ID != router.Dynamo }

// unattributed returns the reason why the worker of a turn is unknown, with the remedy. front is nil for an unknown
// router.
func unattributed(front *router.Router) string {
	const missing = "the target does not report which worker serves a turn"
	if other(front) {
		return fmt.Sprintf("%s (%s: %s); set target.worker_header to a response header that names it", missing, front.Name,
			front.Worker)
	}
	return missing + ": NVIDIA Dynamo does, in nvext.worker_id, and some routers in a response header " +
		"(target.worker_header)"
}

// workerNumber returns the number of a worker in an account: Dynamo's instance id, or a hash of another name. It is 0
// for an empty name.
func workerNumber(name string) uint64 {
	if name == "" {
		return 0
	}
	if id, err := strconv.ParseUint(name, 10, 64); err == nil {
		return id
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}
