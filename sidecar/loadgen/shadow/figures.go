package shadow

import (
	"math"
	"time"
)

// Totals are one policy's sums. Requests count at their first token; failed ones without one
// count nowhere.
type Totals struct {
	Requests     int64
	PromptTokens int64
	HitTokens    int64         // of those, in the cache of the worker that the policy chose
	LateTokens   int64         // the same as of the first token; see [Figures].Late
	Crowded      int64         // requests for which that cache had no room: an engine would have let them wait
	Time         time.Duration // that the spread has been watched

	spread float64 // times seconds
}

// HitRatio is the share of the prompts that was in the caches, from 0 to 1; 0 of nothing.
func (t Totals) HitRatio() float64 { return ratio(t.HitTokens, t.PromptTokens) }

// PrefillTokens are those of the prompts that had to be computed.
func (t Totals) PrefillTokens() int64 { return t.PromptTokens - t.HitTokens }

// Spread is how many more requests the worker with the most in progress had than the one with
// the fewest, averaged over time. Of [Best], which has one cache, it means nothing.
func (t Totals) Spread() float64 {
	if t.Time <= 0 {
		return 0
	}
	return t.spread / t.Time.Seconds()
}

func (t Totals) minus(o Totals) Totals {
	return Totals{
		Requests: t.Requests - o.Requests, PromptTokens: t.PromptTokens - o.PromptTokens, HitTokens: t.HitTokens - o.HitTokens, LateTokens: t.LateTokens - o.LateTokens,
		Crowded: t.Crowded - o.Crowded, Time: t.Time - o.Time, spread: t.spread - o.spread,
	}
}

// Account is the cache account: the hits of the actual world against those that were measured, of
// the requests whose worker and hits are both known.
type Account struct {
	Requests       int64
	PromptTokens   int64
	MeasuredTokens int64 // found in the cache, as the worker said
	HitTokens      int64 // as the actual world has them
	LateTokens     int64 // the same as of the first token; see [Figures].Late

	off, offLate int64 // the requests' deviations from what was measured, without their signs
}

func (a *Account) add(prompt, measured, hit, late int) {
	a.Requests++
	a.PromptTokens += int64(prompt)
	a.MeasuredTokens += int64(measured)
	a.HitTokens += int64(hit)
	a.LateTokens += int64(late)
	a.off += int64(max(hit-measured, measured-hit))
	a.offLate += int64(max(late-measured, measured-late))
}

// MeasuredRatio is the measured hit rate, from 0 to 1.
func (a Account) MeasuredRatio() float64 { return ratio(a.MeasuredTokens, a.PromptTokens) }

// Error is how far the modelled hit rate is from the measured one, from 0 to 1, without a sign.
func (a Account) Error() float64 {
	return math.Abs(ratio(a.HitTokens-a.MeasuredTokens, a.PromptTokens))
}

func (a Account) minus(o Account) Account {
	return Account{
		Requests: a.Requests - o.Requests, PromptTokens: a.PromptTokens - o.PromptTokens, MeasuredTokens: a.MeasuredTokens - o.MeasuredTokens,
		HitTokens: a.HitTokens - o.HitTokens, LateTokens: a.LateTokens - o.LateTokens, off: a.off - o.off, offLate: a.offLate - o.offLate,
	}
}

// read is the account with the hits of either moment.
func (a Account) read(late bool) Account {
	if late {
		a.HitTokens = a.LateTokens
	}
	return a
}

// deviation is by how much the requests' hits are off on average, from 0 to 1. Unlike in the
// error, what is too much of one does not make up for what is too little of another: so
// it tells hypotheses apart.
func (a Account) deviation(late bool) float64 {
	if late {
		return ratio(a.offLate, a.PromptTokens)
	}
	return ratio(a.off, a.PromptTokens)
}

// least is the deviation of the reading that is nearer to what was measured.
func (a Account) least() float64 { return min(a.deviation(false), a.deviation(true)) }

// read is the sums with the hits of either moment.
func (t Totals) read(late bool) Totals {
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
	Window Totals // of the last [Window]
}

// Figures are all there is to show at a moment.
type Figures struct {
	At       time.Duration
	Since    time.Duration   // that the totals count: when the reuse of answers was last thought of otherwise, or 0
	Policies []PolicyFigures // the actual one first, then in the order of the options
	Account  Account
	Counted  Account // since Since, as the totals
	Recent   Account // of the last [Window]
	Choices  Choices

	Workers       int
	Capacity      int // blocks of one worker's cache
	CapacityKnown bool
	AnswersFound  bool // blocks of answers are taken to be found again
	AnswersSure   bool // by enough requests, or as the options say

	// Late says at what moment a request counts what its worker's cache holds: when it
	// reaches the router, or at its first token, when blocks count, too, that other requests prefilled
	// meanwhile or in the same iteration. Some engines share these (vLLM, Dynamo's mock
	// workers), others do not; it is inferred from the measured hits, as the reuse of answers is.
	// The figures' HitTokens are those of the moment that holds.
	Late bool
}

// Figures are those at a moment, which is the present one afterwards.
func (s *Shadow) Figures(at time.Duration) Figures {
	s.pass(at)
	f := Figures{At: s.now, Since: s.since, Account: s.account, Choices: s.choices.figures(), Workers: len(s.workers), Late: s.late}
	f.Capacity, f.CapacityKnown = s.Capacity()
	f.AnswersFound, f.AnswersSure = s.AnswersFound()
	before := s.history.before(s.now)
	f.Counted = s.account.minus(s.from).read(s.late)
	f.Recent = f.Counted
	if before.totals != nil {
		f.Recent = s.account.minus(before.account).read(s.late)
	}
	f.Account = f.Account.read(s.late)
	f.Policies = append(f.Policies, s.actual.figures(s.now, before))
	for _, w := range s.worlds {
		if w != s.actual && w != s.other {
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
	f.Total, f.Window = f.Total.read(w.shadow.late), f.Window.read(w.shadow.late)
	return f
}

// history is what the totals were at the seconds of the last window.
type history struct {
	marks  []mark // a ring
	next   int
	second int64 // of the latest one
}

// mark is the totals at the end of a second.
type mark struct {
	at      time.Duration
	totals  []Totals // as the worlds; nil before the first second
	account Account
}

const marks = int(Window/time.Second) + 1

// pass keeps the totals where a second has ended.
func (h *history) pass(s *Shadow, now time.Duration) {
	second := int64(now / time.Second)
	if second == h.second && h.marks != nil {
		return
	}
	if h.marks == nil {
		h.marks = make([]mark, marks)
	}
	// Where many seconds have passed without anything, the latest is enough.
	h.second = second
	m := &h.marks[h.next]
	h.next = (h.next + 1) % marks
	m.at = time.Duration(second) * time.Second
	m.totals = m.totals[:0]
	for _, w := range s.worlds {
		w.balance(m.at)
		m.totals = append(m.totals, w.totals)
	}
	m.account = s.account
}

// before is the latest moment that is a window ago, or the beginning.
func (h *history) before(now time.Duration) *mark {
	found := &mark{}
	for i := range h.marks {
		if m := &h.marks[i]; m.totals != nil && m.at <= now-Window && m.at >= found.at {
			found = m
		}
	}
	return found
}
