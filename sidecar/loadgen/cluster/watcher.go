package cluster

import (
	"cmp"
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
	firstPause = 500 * time.Millisecond // pause after a failed reading; each further failure doubles it
	lastPause  = 2 * time.Second

	// manySamples is the size from which readings are made every other second, to
	// stay below 5 % of a core with 2,000 workers.
	manySamples = 10_000

	// lostAfter is the age at which a reading is stale. It bridges one reading that
	// fails slowly, and with a snapshot a second no screen shows an old number for 5 s.
	lostAfter = 4 * time.Second

	// noticesAfter is the time from the first reading of a source on before notices on what it lacks are shown. The
	// router is recognized by the first answer, routers and engines have some series from the first request on only, and
	// a page may be slow once.
	noticesAfter = 3 * time.Second
)

// Watcher keeps an [api.Cluster] up to date from a [Source].
type Watcher struct {
	source      Source
	model       func() string // the model that the turns ask for; "" while unknown
	log         *slog.Logger
	speculation atomic.Value // api.Speculation
	latest      atomic.Pointer[latest]
	counted     map[string][2]float64 // sums of all readings; see [api.KV]
	engines     api.EngineTotals
	energy      energyMeter
	reads       Source    // the source in use at the latest reading
	since       time.Time // when that source was first read
}

// latest is the last successful reading, and the failure since.
type latest struct {
	cluster api.Cluster
	read    time.Time // when the cluster was read; at first, when the watcher was made
	ever    bool      // at least one reading has succeeded
	problem string
	unread  api.Unread // set where a source answers without metrics
}

// logged is the state that the log reported last.
type logged struct {
	available bool
	problem   string
}

// NewWatcher makes a watcher that reads nothing before Run. Of the metrics that name a model, it takes those of the one
// that model returns, "" for all.
func NewWatcher(source Source, model func() string, log *slog.Logger) *Watcher {
	w := &Watcher{source: source, model: model, log: log, counted: map[string][2]float64{}}
	w.speculation.Store(api.SpeculationNotRecorded)
	w.latest.Store(&latest{read: time.Now(), problem: "not read yet"})
	return w
}

// SetSpeculation sets the configured speculation, from the next reading on. Without
// speculation counters, it determines whether a step yields one token. It is safe
// for concurrent use.
func (w *Watcher) SetSpeculation(s api.Speculation) { w.speculation.Store(s) }

// Current returns the state of the cluster as of the last reading, with its age. If
// no reading has succeeded for 4 s it is unavailable and holds only the reason. It
// is safe for concurrent use; the values behind its pointers are shared and
// read-only.
func (w *Watcher) Current() api.Cluster {
	l := w.latest.Load()
	age := time.Since(l.read)
	c := api.Cluster{Problem: l.problem, Unread: l.unread, Workers: []api.Worker{}}
	if l.ever && age < lostAfter {
		c = l.cluster
		c.Workers = slices.Clone(c.Workers)
	}
	c.Source = w.source.Name()
	c.UpdatedSecond = age.Seconds()
	return c
}

// Run reads once a second until ctx ends, and after a failure with growing
// pauses of at most 2 s. It must be called only once.
func (w *Watcher) Run(ctx context.Context) {
	var (
		h     = &history{}
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
		if !w.early(time.Now()) {
			last = w.announce(ctx, last)
		}
	}
}

// read makes one reading and returns its number of samples.
func (w *Watcher) read(ctx context.Context, h *history) int {
	inTime, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	early := w.early(time.Now())
	samples, err := w.source.Fetch(inTime)
	now := time.Now()
	if len(samples) == 0 {
		var unread api.Unread
		if e, ok := w.source.(explainer); ok && errors.Is(err, errNoneScraped) {
			unread = e.explain(inTime, nil)
		}
		if !early {
			w.fail(err, unread)
		}
		return 0
	}
	samples = ofModel(h.add(now, samples), w.model())
	c := summarize(ctx, samples, w.speculation.Load().(api.Speculation))
	if e, ok := w.source.(explainer); ok {
		turns := c.Unread.Workers
		c.Unread = e.explain(inTime, samples)
		c.Unread.Workers = cmp.Or(turns, c.Unread.Workers)
	}
	if ctx.Err() != nil {
		return 0 // c may be incomplete
	}
	c.KV.Counted = w.count(c.KV.Counted)
	c.Engines = w.total(now, *c.Engines)
	if c.Unread.Workers != "" && !strings.Contains(c.Problem, c.Unread.Workers) {
		c.Problem = strings.Replace(c.Problem, noWorkers, fmt.Sprintf("%s (%s)", noWorkers, c.Unread.Workers), 1)
	}
	if err != nil {
		c.Problem = strings.TrimSuffix(oneLine(err)+"; "+c.Problem, "; ")
	}
	if early {
		c.Problem, c.Unread = "", api.Unread{}
	}
	w.latest.Store(&latest{cluster: c, read: now, ever: true})
	return len(samples)
}

// early reports whether a reading that begins now is too early for notices on what it lacks.
func (w *Watcher) early(now time.Time) bool {
	source := w.source
	if selected, ok := source.(SelectedSource); ok {
		source = selected()
	}
	if source != w.reads {
		w.reads, w.since = source, now
	}
	return now.Sub(w.since) < noticesAfter
}

// count adds the counts of one reading to the sums since the start, and returns a copy of the sums.
func (w *Watcher) count(found map[string][2]float64) map[string][2]float64 {
	for source, n := range found {
		before := w.counted[source]
		w.counted[source] = [2]float64{before[0] + n[0], before[1] + n[1]}
	}
	all := maps.Clone(w.counted)
	if all[endsReported][0] == 0 {
		delete(all, "frontend")
	}
	delete(all, endsReported)
	return all
}

// total adds the totals of one reading to the totals since the start, and returns a copy.
func (w *Watcher) total(now time.Time, found api.EngineTotals) *api.EngineTotals {
	t := &w.engines
	t.Drafts += found.Drafts
	t.Drafted += found.Drafted
	t.Accepted += found.Accepted
	t.FirstToken = t.FirstToken.Plus(found.FirstToken, 1)
	addGauge(&t.Acceptance, found.Acceptance)
	addGauge(&t.TokensPerStep, found.TokensPerStep)
	addGauge(&t.GPUMemory, found.GPUMemory)
	t.GPUs, t.Energy = found.GPUs, w.energy.add(now, found.GPUs)
	return new(*t)
}

func addGauge(total *api.GaugeTotal, more api.GaugeTotal) {
	total.Sum += more.Sum
	total.Readings += more.Readings
}

// fail keeps the last cluster, which Current shows until it is stale.
func (w *Watcher) fail(err error, unread api.Unread) {
	l := *w.latest.Load()
	l.problem = oneLine(err)
	l.unread = unread
	w.latest.Store(&l)
}

// oneLine joins the first few lines of an error.
func oneLine(err error) string {
	const most = 8
	lines := strings.Split(err.Error(), "\n")
	if n := len(lines) - most; n > 0 {
		lines = append(lines[:most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(lines, "; ")
}

// announce logs a change of Current, and returns the state that was logged last.
// While a source is lost, further changes of the reason appear in Current only.
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
