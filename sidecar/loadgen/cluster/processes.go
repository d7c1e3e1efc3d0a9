package cluster

import (
	"slices"
	"time"
)

const (
	// settled is the time for which a page must show one process before the growth of its counters counts again.
	settled = 5 * time.Second
	// mostRestarts is the number of falls of a page's counters within the window that restarts of one process explain,
	// such as those of a trial that is begun, cancelled and begun again.
	mostRestarts = 4
)

// processes follows the process behind each metrics page. Behind a router that passes /metrics on, each reading may
// be of another engine. A process is known by its start. Without a start, a falling counter shows another process.
type processes map[pageID]*shownInTurn

// shownInTurn is what a page has shown so far.
type shownInTurn struct {
	newest     float64   // start of the youngest process
	start      float64   // start of the process of the latest reading; 0: not reported
	changed    time.Time // the latest change of the process
	changes    int       // changes, each within the window of the one before
	several    bool      // an earlier process came back, or the process changed too often to be one that restarts
	unlistedAt time.Time // when the page last showed a process without a page of its own
	seen       time.Time
}

// observe takes in a reading, marks the samples of pages that show several processes in turn, and returns the pages
// whose counters are not comparable with those of the reading before. fell reports whether a counter is below its value
// of the reading before.
func (all processes) observe(now time.Time, samples []Sample, fell func(Sample) bool) (unsettled map[pageID]bool) {
	starts, falls := map[pageID]float64{}, map[pageID]bool{}
	for i := range samples {
		s := &samples[i]
		id := pageOf(*s)
		switch {
		case slices.Contains(processStart, s.Name):
			starts[id] = s.Value
		case isCounter(s.Name) && isWorkerSample(*s) && fell(*s):
			falls[id] = true
		}
		if all[id] == nil {
			all[id] = &shownInTurn{start: starts[id]}
			for _, p := range all { // the page may be that of the process
				p.unlistedAt = time.Time{}
			}
		}
		all[id].seen = now
	}
	unsettled = all.show(now, starts, falls)
	for i := range samples {
		p := all[pageOf(samples[i])]
		samples[i].several = p.several
		samples[i].unlisted = !p.unlistedAt.IsZero() && now.Sub(p.unlistedAt) < window
	}
	return unsettled
}

// show takes in the process of each page that was read, and drops pages that are gone.
func (all processes) show(now time.Time, starts map[pageID]float64, falls map[pageID]bool) (unsettled map[pageID]bool) {
	unsettled = map[pageID]bool{}
	known := map[float64]bool{} // starts of the processes with a page of their own
	others := false             // a page with one process exists
	for id, p := range all {
		if now.Sub(p.seen) > window {
			delete(all, id)
			continue
		}
		if p.seen.Equal(now) {
			p.show(now, starts[id], falls[id])
		}
		if p.several {
			continue
		}
		known[p.start] = true
		others = others || p.start == 0
		unsettled[id] = !p.changed.IsZero() && now.Sub(p.changed) < settled
	}
	for _, p := range all {
		if listed := known[p.start] && p.start > 0 || p.start == 0 && others; p.several && !listed {
			p.unlistedAt = now
		}
	}
	return unsettled
}

// show takes in the process of one reading.
func (p *shownInTurn) show(now time.Time, start float64, fell bool) {
	if now.Sub(p.changed) >= window { // one process for that long is one that had restarted
		p.several, p.changes = false, 0
	}
	if start != p.start && p.start > 0 && start > 0 || fell && start == p.start {
		p.changes++
		p.several = p.several || p.changes > mostRestarts || start > 0 && start < p.newest
		p.changed = now
	}
	p.start, p.newest = start, max(p.newest, start)
}
