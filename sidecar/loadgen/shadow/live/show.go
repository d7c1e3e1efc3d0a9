package live

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/shadow"
	"kvbooth/sidecar/sim"
)

// Disabled is the message of a lane without a shadow.
const Disabled = "shadow is disabled: shadow.enabled is false"

// Shadow returns what other routers would have found on the turns of the last 60 s.
func (l *Live) Shadow(now time.Time) api.Shadow {
	if l == nil {
		return api.Shadow{Source: api.ShadowNone, Message: Disabled}
	}
	state, cluster := l.opts.State(), l.opts.Cluster()
	mode := state.Mode
	l.mu.Lock()
	defer l.mu.Unlock()
	s := api.Shadow{
		Lane: l.opts.Lane, Arm: state.Arm, Source: api.ShadowNone, Message: l.problem,
		Policies: []api.ShadowPolicy{}, Diagnoses: []api.Diagnosis{},
	}
	a := l.account
	if a == nil {
		return s
	}
	f := a.figures(now)
	s.Source, s.Message = api.ShadowTokenIDs, ""
	if !a.ids {
		s.Source = api.ShadowText
		s.Message = fmt.Sprintf("the target does not report prompts' token ids, so blocks of %.0f bytes of text stand for "+
			"blocks of %d tokens (%.2f bytes a token on average): hit rates may be off by some two points more, and a full "+
			"cache may drop other blocks than the model", a.ratio*float64(a.size.tokens), a.size.tokens, a.ratio)
	}
	s.Since = &a.since
	s.Seconds = min(shadow.Window, now.Sub(a.since)).Seconds()
	s.Lost = int(l.lost())
	s.Workers, s.BlockTokens, s.WorkerBlocks = f.Workers, a.size.tokens, f.Capacity
	s.CapacityFrom = "the cluster's metrics"
	if f.AnswersSure {
		s.AnswersReused = &f.AnswersFound
	}
	actual := f.Policies[0].Window
	s.Requests, s.PromptTokens = int(actual.Requests), int(actual.PromptTokens)
	if r := f.Recent; r.Requests > 0 {
		s.Measured.HitRatio = new(r.MeasuredRatio())
		s.Measured.PrefillTokens = new(int(r.PromptTokens - r.MeasuredTokens))
		s.Measured.InflightSpread = actual.ShownSpread()
		s.CacheError = new(signed(r))
	}
	s.Work = a.rules.work(now, cluster.Workers, *l.ids.Load())
	s.Causes = causes(&f, l.routing(cluster, actual.ShownSpread(), s.Work))
	s.Withheld = withheld(f.Recent)
	s.AchievedShare, _ = achievedShare(&f)
	for _, p := range f.Policies[1:] {
		s.Policies = append(s.Policies, api.ShadowPolicy{
			Policy: p.Policy.Name, Title: p.Policy.Title(), InForce: isInForce(p.Policy, mode),
			Figures: p.Window.Shown(p.Policy),
		})
	}
	s.Choices = choices(mode, f.Choices)
	if now.Sub(a.since) >= coldFor {
		s.Diagnoses = append(s.Diagnoses, a.diagnose(state.Mode, cluster, state.Concurrency.Target.Conversations(), &f)...)
	}
	return s
}

// achievedShare returns the measured hit rate ÷ that of the best placement over the last 60 s, or nil and why it is not
// known.
func achievedShare(f *shadow.Figures) (share *float64, why string) {
	achievable := bestPlacement(f).Window.HitRatio()
	if why = withheld(f.Recent); why != "" {
		return nil, why
	}
	if achievable == 0 {
		return nil, "no prompt begins like an earlier one"
	}
	return new(f.Recent.MeasuredRatio() / achievable), ""
}

// bestPlacement returns the figures of the policy that the achievable hit rate is from.
func bestPlacement(f *shadow.Figures) *shadow.PolicyFigures {
	i := slices.IndexFunc(f.Policies, func(p shadow.PolicyFigures) bool { return p.Policy.Kind == shadow.BestPlacement })
	return &f.Policies[i]
}

// AchievedShare is that of [Live.Shadow], or nil and why it is not known.
func (l *Live) AchievedShare(now time.Time) (share *float64, why string) {
	if l == nil {
		return nil, Disabled
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.account == nil {
		return nil, l.problem
	}
	f := l.account.figures(now)
	return achievedShare(&f)
}

// Placement returns the sums of the turns that the shadow has followed, or why there are none.
func (l *Live) Placement(now time.Time) *api.PlacementTotals {
	if l == nil {
		return &api.PlacementTotals{Problem: Disabled}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.account == nil {
		return &api.PlacementTotals{Problem: l.problem}
	}
	f := l.account.figures(now)
	best := bestPlacement(&f).Total
	return &api.PlacementTotals{
		Account: l.account.serial, Start: f.Since, Late: f.Late, Requests: f.Counted.Requests, Prompt: f.Counted.PromptTokens,
		Measured: f.Counted.MeasuredTokens, Modeled: f.Counted.HitTokens,
		Followed: best.PromptTokens, Achievable: best.HitTokens, Causes: f.Causes.Totals(),
	}
}

// lost returns the number of turns that could not be followed.
func (l *Live) lost() int64 {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	return l.queue.lost
}

// figures returns the figures at the moment that the account has reached: it waits for the workers
// of turns in progress.
func (a *account) figures(now time.Time) shadow.Figures {
	return a.Figures(a.sequencer.Advance(now))
}

// signed returns the cache account's error with its sign.
func signed(a shadow.Account) float64 {
	return float64(a.HitTokens-a.MeasuredTokens) / float64(a.PromptTokens)
}

// withheld returns the reason why the policies' figures are unreliable, "" where they are reliable.
func withheld(a shadow.Account) string {
	switch signedError := signed(a); {
	case a.Requests < api.MinMeasured:
		return fmt.Sprintf("only %d turns in the last 60 s reported cached tokens; at least %d are needed to check the "+
			"cache model", a.Requests, api.MinMeasured)
	case math.Abs(signedError) > api.MaxCacheError:
		return fmt.Sprintf("with the router's real choices, the cache model gives a hit rate of %s, and %s was measured: "+
			"more than %.0f points apart", percent(ratio(a.HitTokens, a.PromptTokens)), percent(a.MeasuredRatio()),
			100*api.MaxCacheError)
	}
	return ""
}

func ratio(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// isInForce reports whether a policy implements the mode in force. For kv this is Dynamo's KV router
// with its default costs.
func isInForce(p shadow.Policy, mode api.Mode) bool { return mode != "" && p.Name == string(mode) }

// choices returns the choice account, nil where no KV router chooses.
func choices(mode api.Mode, c shadow.Choices) *api.ShadowChoices {
	if mode != api.ModeKV || c.Turns == 0 {
		return nil
	}
	return &api.ShadowChoices{
		Turns: c.Turns, Agreed: c.Agreed, Ties: c.Tied, Clear: c.Clear, ClearAgreed: c.ClearOnes,
	}
}

// Decisions returns the inferred routing decisions, newest first, at most limit; a message where
// there are none.
func (l *Live) Decisions(limit int) api.DecisionList {
	none := func(message string) api.DecisionList {
		return api.DecisionList{Decisions: []api.RoutingDecision{}, Message: message}
	}
	if l == nil {
		return none("this target does not report its decisions, and " + Disabled)
	}
	mode := l.opts.State().Mode
	workers := map[sim.WorkerID]api.Worker{}
	for _, w := range l.opts.Cluster().Workers {
		workers[sim.WorkerID(workerNumber(w.ID))] = w
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account
	if a == nil {
		return none("this target does not report its decisions, and they cannot be inferred: " + l.problem)
	}
	kept := a.Decisions()
	list := api.DecisionList{Decisions: []api.RoutingDecision{}, Source: api.DecisionsInferred, Message: inferred}
	for _, d := range slices.Backward(kept) {
		if len(list.Decisions) == limit {
			break
		}
		list.Decisions = append(list.Decisions, a.decision(d, mode, workers))
	}
	f := a.figures(time.Now())
	list.Choices = choices(mode, f.Choices)
	return list
}

const inferred = "inferred: the costs are those of KV Booth's model of the caches and of the requests in progress, " +
	"by the formula of Dynamo's router with its defaults; this target does not report its own"

func (a *account) decision(d *shadow.Decision, mode api.Mode, workers map[sim.WorkerID]api.Worker) api.RoutingDecision {
	r := api.RoutingDecision{
		Seconds: max(0, d.At.Seconds()), RequestID: d.ID, Mode: mode, Pinned: mode != api.ModeKV,
		PromptTokens: d.PromptTokens, BlockTokens: a.size.tokens, Chosen: d.Actual, Ours: new(d.Chosen), Clear: d.Clear,
	}
	for i := range d.Candidates {
		c := &d.Candidates[i]
		id := cmp.Or(workers[c.Worker].ID, strconv.FormatUint(uint64(c.Worker), 10))
		r.Candidates = append(r.Candidates, api.RoutingCandidate{
			Worker: id, Name: cmp.Or(workers[c.Worker].Name, id), OverlapBlocks: c.OverlapBlocks,
			PrefillTokens: c.PrefillTokens,
			DecodeBlocks:  c.DecodeBlocks, Requests: c.Requests, Cost: c.Cost,
		})
	}
	return r
}
