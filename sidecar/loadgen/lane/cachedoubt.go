package lane

import (
	"fmt"
	"sync"

	"kvbooth/sidecar/api"
)

const (
	// doubtFrom is the number of answers with 0 cached tokens from which they are compared with the cluster's counters.
	doubtFrom = 3
	// doubtAbove is the hit ratio of the cluster's counters above which zeros of all answers contradict them.
	doubtAbove = .05
)

// cacheDoubt compares the cached tokens that the answers of a run report with the counters of the cluster. Some servers
// report 0 whatever they find. Its zero value is ready to use. It is safe for concurrent use.
type cacheDoubt struct {
	mu     sync.Mutex
	before map[string][2]float64 // counters at the start of the run, as in [api.KV]
	zeros  int                   // answers that reported 0
	hit    bool                  // an answer reported more
	reason string                // empty: no doubt
}

// reset begins a run at the counters of the cluster.
func (d *cacheDoubt) reset(counted map[string][2]float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before, d.zeros, d.hit, d.reason = counted, 0, false, ""
}

// add adds an ended turn. It reports whether a doubt began or ended with it, and removes a doubted count from it.
func (d *cacheDoubt) add(t *api.Turn, cluster func() api.Cluster) (changed bool) {
	if t.Status != api.TurnOK || t.CachedTokens == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if *t.CachedTokens > 0 {
		changed = d.reason != ""
		d.hit, d.reason = true, ""
		return changed
	}
	if d.zeros++; d.reason == "" && !d.hit && d.zeros >= doubtFrom {
		d.reason = d.contradiction(cluster().KV.Counted)
		changed = d.reason != ""
	}
	if d.reason != "" {
		t.CachedTokens = nil
	}
	return changed
}

// contradiction returns a sentence on counters that grew by hits since the start of the run; empty: none did.
func (d *cacheDoubt) contradiction(counted map[string][2]float64) string {
	for _, source := range []string{"engine", "frontend"} {
		hits, all := counted[source][0]-d.before[source][0], counted[source][1]-d.before[source][1]
		if all > 0 && hits > doubtAbove*all && hits <= all {
			return fmt.Sprintf("The answers report 0 cached tokens, but the counters of the %s show %.1f %% hits: one of the "+
				"two is wrong, or other clients cause the hits. The hit rate of the turns is unknown.", source, 100*hits/all)
		}
	}
	return ""
}

// CachedDoubted reports whether the cluster's counters contradict the cached tokens that the answers of the run report.
func (l *Lane) CachedDoubted() bool { return l.doubt.text() != "" }

// text returns the sentence on the doubt; empty: there is none.
func (d *cacheDoubt) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reason
}
