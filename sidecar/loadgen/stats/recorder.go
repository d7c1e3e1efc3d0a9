package stats

import (
	"maps"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/workload"
)

// Recorder holds all figures of one lane: its window, its totals since the last start, and
// the Prometheus counters since the process began. The counter of good turns applies the
// objectives of the window at a turn's end. It is safe for concurrent use.
type Recorder struct {
	*Window
	hist *histograms

	mu    sync.Mutex
	ever  counts // since the process began
	start counts // the value of ever at the last reset
	sums  sums
	gaps  gapsOfRun // since the last reset
	doubt bool      // cached tokens of 0 since the last reset are unknown
}

// counts never decrease.
type counts struct {
	turns         map[api.TurnStatus]int64
	errors        map[api.ErrorClass]int64
	conversations map[api.ConversationStatus]int64

	sloMet, input, cached, output int64

	cacheReported      int64 // turns that reported cached tokens
	cacheReportedInput int64 // prompt tokens of those turns

	inputUnknown, cachedUnknown int64 // whole turns that did not report these tokens
}

// reportsCached reports whether the count of cached tokens is meaningful. It is not where
// turns reported their prompt tokens, and none its cached tokens.
func (c *counts) reportsCached() bool { return c.cacheReported > 0 || c.input == 0 }

type sum struct {
	n     uint64
	total float64
}

// sums holds the summaries of [times] since the process began.
type sums [api.NumTimes]sum

func (s *sum) add(v float64) {
	if defined(v) {
		s.n++
		s.total += v
	}
}

// NewRecorder makes a recorder whose window and totals start now.
func NewRecorder(now time.Time, slo api.SLO) *Recorder {
	r := &Recorder{Window: NewWindow(now, slo), hist: newHistograms(), gaps: newGapsOfRun(now)}
	r.ever = counts{
		turns: map[api.TurnStatus]int64{}, errors: map[api.ErrorClass]int64{},
		conversations: map[api.ConversationStatus]int64{},
	}
	for _, status := range []api.TurnStatus{api.TurnOK, api.TurnError, api.TurnCancelled} {
		r.ever.turns[status] = 0
	}
	for _, class := range api.ErrorClasses {
		r.ever.errors[class] = 0
	}
	for _, status := range []api.ConversationStatus{
		api.ConversationCompleted, api.ConversationRetired, api.ConversationCancelled, api.ConversationError,
	} {
		r.ever.conversations[status] = 0
	}
	r.start = r.ever.clone()
	return r
}

// Add adds an ended turn with its number of content chunks and the gaps between them, and keeps neither t nor gaps.
func (r *Recorder) Add(t *api.Turn, chunks int, gaps []chat.Gap) {
	current := r.Window.Add(t, gaps)
	one, slo := workload.OutcomeOf(t, t.Ended), r.objectives()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ever.add(&one, slo)
	if !current {
		r.start.add(&one, slo) // the totals leave it out
	}
	if !one.OK() {
		return
	}
	for i := range times {
		if times[i].of != nil {
			r.sums[i].add(times[i].of(&one))
		}
	}
	if current {
		r.gaps.add(t, chunks, gaps)
	}
	n, total := r.hist.observe(&one, gaps)
	r.sums[api.TimeITL].n += n
	r.sums[api.TimeITL].total += total
}

// ConversationEnded counts a conversation by its final status.
func (r *Recorder) ConversationEnded(status api.ConversationStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ever.conversations[status]++
}

// Reset clears the window and the totals, as at a lane's start. Prometheus counters
// continue.
func (r *Recorder) Reset(now time.Time) {
	r.Window.Reset(now)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start = r.ever.clone()
	r.gaps = newGapsOfRun(now)
	r.doubt = false
}

// DoubtCached sets whether counts of 0 cached tokens since the last reset are unknown. The Prometheus counters keep
// what they have.
func (r *Recorder) DoubtCached(doubt bool) {
	r.Window.doubtCached(doubt)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubt = doubt
}

// Totals returns the counts since the last reset, without LostTurns, which the store
// counts. Error classes without a turn are left out.
func (r *Recorder) Totals() api.Totals {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, start := &r.ever, &r.start
	t := api.Totals{
		OK:            now.turns[api.TurnOK] - start.turns[api.TurnOK],
		Errors:        now.turns[api.TurnError] - start.turns[api.TurnError],
		Cancelled:     now.turns[api.TurnCancelled] - start.turns[api.TurnCancelled],
		ErrorsByClass: map[api.ErrorClass]int64{},
		InputTokens:   now.input - start.input,
		CachedTokens:  now.cached - start.cached,
		OutputTokens:  now.output - start.output,
		InputUnknown:  now.inputUnknown - start.inputUnknown,
		CachedUnknown: now.cachedUnknown - start.cachedUnknown,
	}
	if r.doubt {
		t.CachedUnknown = t.OK
	}
	for class, n := range now.errors {
		if n > start.errors[class] {
			t.ErrorsByClass[class] = n - start.errors[class]
		}
	}
	for status, n := range now.conversations {
		t.Conversations += n - start.conversations[status]
	}
	return t
}

// GoodTurns returns the turns within every SLO since the last reset.
func (r *Recorder) GoodTurns() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ever.sloMet - r.start.sloMet
}

// cumulative returns the counters of one moment.
func (r *Recorder) cumulative() (counts, sums) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ever.clone(), r.sums
}

func (c *counts) add(one *workload.Outcome, slo api.SLO) {
	c.turns[one.Status]++
	if one.Failed() {
		c.errors[one.Class]++
	}
	if one.Meets(slo) {
		c.sloMet++
	}
	if one.OK() && one.PromptTokens == 0 {
		c.inputUnknown++
	}
	if one.OK() && !one.HasCached {
		c.cachedUnknown++
	}
	c.input += int64(one.PromptTokens)
	c.output += int64(one.OutputTokens)
	if one.HasCached {
		c.cached += int64(one.CachedTokens)
		c.cacheReported++
		c.cacheReportedInput += int64(one.PromptTokens)
	}
}

func (c counts) clone() counts {
	c.turns = maps.Clone(c.turns)
	c.errors = maps.Clone(c.errors)
	c.conversations = maps.Clone(c.conversations)
	return c
}
