package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"kvbooth/sidecar/api"
)

const (
	period     = time.Second
	firstPause = 500 * time.Millisecond // after a failed reading, doubled by each further one
	lastPause  = 2 * time.Second

	// A reading of many samples is made every other second, so that its work stays
	// below a twentieth of a core with 2,000 workers.
	manySamples = 10_000

	// lostAfter is the age at which a reading is no longer the present. One
	// reading that fails slowly is bridged, and with a snapshot a second no
	// screen shows an old number for 5 s.
	lostAfter = 4 * time.Second
)

// Watcher keeps an [api.Cluster] up to date from a [Source].
type Watcher struct {
	source      Source
	log         *slog.Logger
	speculation atomic.Value // api.Speculation
	latest      atomic.Pointer[latest]
	counted     map[string][2]float64 // of all readings; see [api.KV]
	engines     api.EngineTotals
}

// latest is the last successful reading, and what went wrong since.
type latest struct {
	cluster api.Cluster
	read    time.Time // of the cluster; at first, when the watcher was made
	ever    bool      // there is a cluster
	problem string
	unread  api.Unread // where a source answers that it has nothing
}

// logged is what the log last said.
type logged struct {
	available bool
	problem   string
}

// NewWatcher makes a watcher that reads nothing before Run.
func NewWatcher(source Source, log *slog.Logger) *Watcher {
	w := &Watcher{source: source, log: log, counted: map[string][2]float64{}}
	w.speculation.Store(api.SpeculationNotRecorded)
	w.latest.Store(&latest{read: time.Now(), problem: "not read yet"})
	return w
}

// SetSpeculation tells which speculation is configured, from the next reading
// on. Only with it can the watcher know that a model without speculation
// counters yields one token a step. It is safe for concurrent use.
func (w *Watcher) SetSpeculation(s api.Speculation) { w.speculation.Store(s) }

// Current is the state of the cluster as of the last reading, with its age. When
// no reading has succeeded for 4 s it is unavailable and holds no numbers, only
// the reason. It is safe for concurrent use; what its pointers point to is shared
// and must not be written.
func (w *Watcher) Current() api.Cluster {
	l := w.latest.Load()
	age := time.Since(l.read)
	c := api.Cluster{Problem: l.problem, Unread: l.unread, Workers: []api.Worker{}}
	if l.ever && age < lostAfter {
		c = l.cluster
		c.Workers = slices.Clone(c.Workers)
	}
	c.Source, c.UpdatedSecond = w.source.Name(), age.Seconds()
	return c
}

// Run reads once a second until ctx ends, and after a failure with growing
// pauses of at most 2 s. It is called once.
func (w *Watcher) Run(ctx context.Context) {
	var (
		h     = history{}
		last  logged
		pause = firstPause
		timer = time.NewTimer(0)
	)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		begun := time.Now()
		if n := w.read(ctx, h); n > 0 {
			pause = firstPause
			next := period
			if n > manySamples {
				next *= 2
			}
			timer.Reset(next - time.Since(begun))
		} else {
			timer.Reset(pause)
			pause = min(2*pause, lastPause)
		}
		last = w.announce(ctx, last)
	}
}

// read makes one reading and tells how many samples it gave.
func (w *Watcher) read(ctx context.Context, h history) int {
	inTime, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	samples, err := w.source.Fetch(inTime)
	now := time.Now()
	if len(samples) == 0 {
		var unread api.Unread
		if e, ok := w.source.(explainer); ok && errors.Is(err, errNoneScraped) {
			unread = e.explain(inTime, nil)
		}
		w.fail(err, unread)
		return 0
	}
	c := summarise(ctx, h.add(now, samples), w.speculation.Load().(api.Speculation))
	if e, ok := w.source.(explainer); ok {
		c.Unread = e.explain(inTime, samples)
	}
	if ctx.Err() != nil {
		return 0 // and c is not the whole
	}
	c.KV.Counted = w.count(c.KV.Counted)
	c.Engines = w.total(*c.Engines)
	if c.Unread.Workers != "" {
		c.Problem = strings.Replace(c.Problem, noWorkers, fmt.Sprintf("%s (%s)", noWorkers, c.Unread.Workers), 1)
	}
	if err != nil {
		c.Problem = strings.TrimSuffix(oneLine(err)+"; "+c.Problem, "; ")
	}
	w.latest.Store(&latest{cluster: c, read: now, ever: true})
	return len(samples)
}

// count adds what one reading found to the counters of all, and gives a copy of these.
func (w *Watcher) count(found map[string][2]float64) map[string][2]float64 {
	for by, n := range found {
		before := w.counted[by]
		w.counted[by] = [2]float64{before[0] + n[0], before[1] + n[1]}
	}
	all := maps.Clone(w.counted)
	if all[endsReported][0] == 0 {
		delete(all, "frontend")
	}
	delete(all, endsReported)
	return all
}

// total adds what one reading found to the totals of all, and gives a copy of these.
func (w *Watcher) total(found api.EngineTotals) *api.EngineTotals {
	t := &w.engines
	t.Drafts, t.Drafted, t.Accepted = t.Drafts+found.Drafts, t.Drafted+found.Drafted, t.Accepted+found.Accepted
	for _, g := range []struct{ to, more *api.GaugeTotal }{
		{&t.Acceptance, &found.Acceptance}, {&t.TokensPerStep, &found.TokensPerStep}, {&t.GPUMemory, &found.GPUMemory},
	} {
		g.to.Sum += g.more.Sum
		g.to.Readings += g.more.Readings
	}
	return new(*t)
}

// fail keeps the last cluster, for Current to show while it is young.
func (w *Watcher) fail(err error, unread api.Unread) {
	l := *w.latest.Load()
	l.problem, l.unread = oneLine(err), unread
	w.latest.Store(&l)
}

// oneLine names the first of many problems.
func oneLine(err error) string {
	const most = 8
	lines := strings.Split(err.Error(), "\n")
	if n := len(lines) - most; n > 0 {
		lines = append(lines[:most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(lines, "; ")
}

// announce logs a change of what Current says, and nothing where it says the
// same. Why a lost source goes on failing is in Current, not in the log.
func (w *Watcher) announce(ctx context.Context, before logged) logged {
	if ctx.Err() != nil {
		return before
	}
	c := w.Current()
	now := logged{c.Available, c.Problem}
	switch {
	case now == before || !now.available && !before.available && before.problem != "":
		return before
	case !now.available:
		w.log.Warn("cluster metrics are unavailable", "source", c.Source, "problem", c.Problem)
	case !before.available:
		w.log.Info("cluster metrics are available", "source", c.Source, "workers", c.WorkerCount(), "problem", c.Problem)
	default:
		w.log.Info("cluster metrics have changed", "source", c.Source, "workers", c.WorkerCount(), "problem", c.Problem)
	}
	return now
}
