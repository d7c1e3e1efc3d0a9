package report

import (
	"fmt"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
)

// caches measures the caches at the beginning of the run by its first turns.
func (b *Builder) caches(r *Run) *api.Caches {
	c := stats.CachesOf(b.firsts, r.Workload.OpeningTokens)
	if c == nil || r.Tokens.CachedUnknown >= r.Turns.OK { // zeros that the cluster's counters contradict are unknown
		return &api.Caches{State: api.CachesWereUnknown}
	}
	if r.Tokens.Cached > 0 {
		cached := 0
		for i := range b.firsts {
			cached += b.firsts[i].Cached()
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
	case api.CachesWereUnknown:
		return "not known at the beginning: the cached tokens of first turns with a whole opening are not known"
	case api.CachesWereWarm:
		text = fmt.Sprintf("warm at the beginning: the first turns on %d of %d openings found up to %d cached tokens, which "+
			"nothing in this run explains", c.Warm, c.Openings, c.Cached)
	default:
		text = fmt.Sprintf("cold at the beginning, by the first turns on %s", plural(c.Openings, "opening"))
	}
	if c.SharedRatio != nil {
		text += fmt.Sprintf("; %s of the cached tokens are in first turns", share100(*c.SharedRatio))
		if n := r.Workload.Openings; n != nil && *n > 0 && c.State == api.CachesWereCold {
			text += fmt.Sprintf(", which the %s that the conversations share explain", plural(*n, "opening"))
		}
	}
	return text
}
