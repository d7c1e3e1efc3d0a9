package shadow

import (
	"math"
	"time"

	"kvbooth/sidecar/api"
)

// Totals are one policy's sums. Requests count at their first token; a request that fails
// before it does not count.
type Totals struct {
	Requests     int64
	PromptTokens int64
	HitTokens    int64         // prompt tokens in the cache of the worker that the policy chose
	LateTokens   int64         // hits as of the first token; see [Figures].Late
	Crowded      int64         // requests without room in that cache; an engine would have made them wait
	Time         time.Duration // time over which the spread was observed

	spread float64 // integral of the spread over time in seconds
}

// HitRatio returns the share of the prompts that was in the caches, from 0 to 1; 0 without any.
func (t Totals) HitRatio() float64 { return ratio(t.HitTokens, t.PromptTokens) }

// PrefillTokens returns the prompt tokens that had to be computed.
func (t Totals) PrefillTokens() int64 { return t.PromptTokens - t.HitTokens }

// Spread returns the difference of requests in progress between the busiest and the idlest
// worker, averaged over time. It has no meaning for [Best], which has one cache.
func (t Totals) Spread() float64 {
	if t.Time <= 0 {
		return 0
	}
	return t.spread / t.Time.Seconds()
}

// Shown returns the figures of a policy for screens; without requests, they are not known.
func (t Totals) Shown(p Policy) (f api.ShadowFigures) {
	if t.Requests == 0 {
		return f
	}
	f.HitRatio, f.PrefillTokens = new(t.HitRatio()), new(int(t.PrefillTokens()))
	if p.Kind != Best { // Best has one cache and no workers
		f.InflightSpread = t.ShownSpread()
	}
	return f
}

// ShownSpread returns the spread, nil where none was observed.
func (t Totals) ShownSpread() *float64 {
	if t.Time <= 0 {
		return nil
	}
	return new(t.Spread())
}

func (t Totals) minus(o Totals) Totals {
	return Totals{
		Requests: t.Requests - o.Requests, PromptTokens: t.PromptTokens - o.PromptTokens,
		HitTokens: t.HitTokens - o.HitTokens, LateTokens: t.LateTokens - o.LateTokens,
		Crowded: t.Crowded - o.Crowded, Time: t.Time - o.Time, spread: t.spread - o.spread,
	}
}

// Account is the cache account: the hits of the actual world against the measured ones, of
// the requests whose worker and hits are both known.
type Account struct {
	Requests       int64
	PromptTokens   int64
	MeasuredTokens int64 // hits that the worker reported
	HitTokens      int64 // hits in the actual world
	LateTokens     int64 // hits as of the first token; see [Figures].Late

	// Sums of the absolute deviations of HitTokens and LateTokens from the measured hits.
	deviationSum, lateDeviationSum int64
}

func (a *Account) add(prompt, measured, hit, late int) {
	a.Requests++
	a.PromptTokens += int64(prompt)
	a.MeasuredTokens += int64(measured)
	a.HitTokens += int64(hit)
	a.LateTokens += int64(late)
	a.deviationSum += int64(max(hit-measured, measured-hit))
	a.lateDeviationSum += int64(max(late-measured, measured-late))
}

// MeasuredRatio returns the measured hit rate, from 0 to 1.
func (a Account) MeasuredRatio() float64 { return ratio(a.MeasuredTokens, a.PromptTokens) }

// Error returns the absolute difference of the modeled and the measured hit rate, from 0 to 1.
func (a Account) Error() float64 {
	return math.Abs(ratio(a.HitTokens-a.MeasuredTokens, a.PromptTokens))
}

func (a Account) minus(o Account) Account {
	return Account{
		Requests: a.Requests - o.Requests, PromptTokens: a.PromptTokens - o.PromptTokens,
		MeasuredTokens: a.MeasuredTokens - o.MeasuredTokens, HitTokens: a.HitTokens - o.HitTokens,
		LateTokens: a.LateTokens - o.LateTokens, deviationSum: a.deviationSum - o.deviationSum,
		lateDeviationSum: a.lateDeviationSum - o.lateDeviationSum,
	}
}

// atMoment returns the account with the hits as of the first token if late is true, otherwise as of the arrival at the
// router.
func (a Account) atMoment(late bool) Account {
	if late {
		a.HitTokens = a.LateTokens
	}
	return a
}

// deviation returns the mean deviation of the requests' hits, from 0 to 1. Unlike in Error,
// deviations of opposite sign do not cancel, so that it distinguishes hypotheses.
func (a Account) deviation(late bool) float64 {
	if late {
		return ratio(a.lateDeviationSum, a.PromptTokens)
	}
	return ratio(a.deviationSum, a.PromptTokens)
}

// leastDeviation returns the deviation at the moment that agrees better with the measurement.
func (a Account) leastDeviation() float64 { return min(a.deviation(false), a.deviation(true)) }

// atMoment returns the sums with the hits as of the first token if late is true, otherwise as of the arrival at the
// router.
func (t Totals) atMoment(late bool) Totals {
	if late {
		t.HitTokens = t.LateTokens
	}
	return t
}

func ratio(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// PolicyFigures are one policy's figures.
type PolicyFigures struct {
	Policy Policy
	Total  Totals
	Window Totals // sums of the last [Window]
}

// Figures are all figures of a shadow at one moment.
type Figures struct {
	At       time.Duration
	Since    time.Duration   // start of the totals: the last change of the inferred reuse of answers, or 0
	Policies []PolicyFigures // the actual one first, then in the order of the options
	Account  Account
	Counted  Account // account since Since, like the totals
	Recent   Account // account of the last [Window]
	Causes   Causes  // of the requests of Counted
	Lately   Causes  // causes of the last [Window]
	Choices  Choices

	Workers      int
	Capacity     int  // blocks of one worker's cache
	AnswersFound bool // blocks of answers are assumed to be found again
	AnswersSure  bool // AnswersFound was inferred from enough requests, or set by the options

	// Late is the moment at which HitTokens count a request's hits: false when the request reaches
	// the router, true at its first token. The hits at the first token include blocks that other
	// requests prefilled in between or in the same iteration. Some engines share these (vLLM,
	// Dynamo's mock workers), others do not. Late is inferred from the measured hits, like the
	// reuse of answers.
	Late bool
}

// Figures returns the figures at a moment, and advances the shadow to it.
func (s *Shadow) Figures(at time.Duration) Figures {
	s.advance(at)
	f := Figures{
		At: s.now, Since: s.since, Account: s.account, Choices: s.choices.figures(), Workers: len(s.workers),
		Capacity: s.capacity, Late: s.late,
	}
	f.AnswersFound, f.AnswersSure = s.AnswersFound()
	before := s.history.before(s.now)
	f.Counted = s.account.minus(s.baseAccount).atMoment(s.late)
	f.Recent = f.Counted
	f.Causes = s.causes.minus(s.baseCauses)
	f.Lately = f.Causes
	if before.totals != nil {
		f.Recent = s.account.minus(before.account).atMoment(s.late)
		f.Lately = s.causes.minus(before.causes)
	}
	f.Account = f.Account.atMoment(s.late)
	f.Policies = append(f.Policies, s.actual.figures(s.now, before))
	for _, w := range s.worlds {
		if w != s.actual && w != s.alternative {
			f.Policies = append(f.Policies, w.figures(s.now, before))
		}
	}
	return f
}

func (w *world) figures(now time.Duration, before *mark) PolicyFigures {
	w.balance(now)
	f := PolicyFigures{Policy: w.policy, Total: w.totals, Window: w.totals}
	if before.totals != nil {
		f.Window = w.totals.minus(before.totals[w.number])
	}
	f.Total, f.Window = f.Total.atMoment(w.shadow.late), f.Window.atMoment(w.shadow.late)
	return f
}

// history holds the totals at the seconds of the last window.
type history struct {
	marks  []mark // ring buffer
	next   int
	second int64 // second of the latest mark
}

// mark holds the totals at the end of a second.
type mark struct {
	at      time.Duration
	totals  []Totals // totals in the order of the worlds; nil before the first second
	account Account
	causes  Causes
}

const marks = int(Window/time.Second) + 1

// advance records the totals when a second has ended.
func (h *history) advance(s *Shadow, now time.Duration) {
	second := int64(now / time.Second)
	if second == h.second && h.marks != nil {
		return
	}
	if h.marks == nil {
		h.marks = make([]mark, marks)
	}
	// After many seconds without events, one mark is enough.
	h.second = second
	m := &h.marks[h.next]
	h.next = (h.next + 1) % marks
	m.at = time.Duration(second) * time.Second
	m.totals = m.totals[:0]
	for _, w := range s.worlds {
		w.balance(m.at)
		m.totals = append(m.totals, w.totals)
	}
	m.account, m.causes = s.account, s.causes
}

// before returns the latest mark that is at least a window old, or a zero mark.
func (h *history) before(now time.Duration) *mark {
	found := &mark{}
	for i := range h.marks {
		if m := &h.marks[i]; m.totals != nil && m.at <= now-Window && m.at >= found.at {
			found = m
		}
	}
	return found
}
