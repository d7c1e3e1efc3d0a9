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
		c = &api.Caches{State: api.CachesWereUnknown}
	}
	if r.Tokens.Cached > 0 {
		c.SharedRatio = new(min(1, float64(b.firstCached)/float64(r.Tokens.Cached)))
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

// cacheLine says what the caches held at the beginning of the run.
func (r *Run) cacheLine() string {
	c := r.Caches
	switch c.State {
	case api.CachesWereUnknown:
		return "not known at the beginning: the cached tokens of first turns with a whole opening are not known"
	case api.CachesWereWarm:
		explained := "nothing in this run explains"
		if r.WarmUpSeconds > 0 {
			explained = "the warm-up, or what was there before it, explains"
		}
		return fmt.Sprintf("warm at the beginning: the first turns on %d of %d openings found up to %d cached tokens, "+
			"which %s", c.Warm, c.Openings, c.Cached, explained)
	}
	return fmt.Sprintf("cold at the beginning, by the first turns on %s", plural(c.Openings, "opening"))
}

// cachedLines says which cached tokens the openings that conversations share explain. It returns nil where none were
// reported.
func (r *Run) cachedLines() []string {
	c := r.Caches
	if c.SharedRatio == nil {
		return nil
	}
	by := "openings that conversations share"
	if c.State == api.CachesWereWarm {
		by += ", or what was in the caches before"
	}
	return []string{fmt.Sprintf("%s in first turns, by %s; %s in later turns, by the conversation's own earlier ones",
		api.Percent(*c.SharedRatio), by, api.Percent(1-*c.SharedRatio))}
}
