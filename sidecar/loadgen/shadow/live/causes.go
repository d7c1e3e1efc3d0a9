package live

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster/router"
	"kvbooth/sidecar/loadgen/shadow"
)

// routing is the evidence on the choices of a router.
type routing struct {
	decisions []api.RouterDecision
	policy    string             // of the most choices; empty: the router does not report it
	outcomes  map[string]float64 // share of each outcome of a counter
	session   string             // header of a session that the router knows and requests do not have
	spread    *float64           // of the requests in flight
	hot       *api.HotPrefix     // the most frequent beginning, if it is frequent
	predicted *float64           // hit rate that a KV router expected
	match     *float64           // share of a prompt that another router expected to find
}

// routing collects the evidence of a cluster.
func (l *Live) routing(c api.Cluster, spread *float64, work *api.ShadowWork) (r routing) {
	r = routing{decisions: c.Decisions, outcomes: map[string]float64{}, spread: spread, predicted: c.KV.PredictedRatio}
	r.match = c.RouterMatch
	sums := map[string]float64{}
	for _, d := range c.Decisions {
		sums[d.Metric] += d.Requests
		if router.CountsPolicies(d.Metric) {
			r.policy = cmp.Or(r.policy, d.Outcome)
		}
	}
	for _, d := range c.Decisions {
		r.outcomes[d.Outcome] = d.Requests / sums[d.Metric]
	}
	front := router.ByID(cmp.Or(l.opts.Router(), c.Router))
	if front != nil && !l.opts.SendsSession() && len(front.Sessions) > 0 {
		r.session = front.Sessions[0]
	}
	if work != nil && len(work.Hot) > 0 {
		r.hot = &work.Hot[0]
	}
	return r
}

// counted is a clause on the router's own counters, or "".
func (r *routing) counted() (text string) {
	for _, d := range r.decisions {
		if share := r.outcomes[d.Outcome]; d.Outcome != r.policy && share >= .01 {
			text += fmt.Sprintf(", %s %s", d.Outcome, percent(share))
		}
	}
	if text != "" {
		text = "; the router's own counters: " + text[len(", "):]
	}
	if r.policy != "" {
		text = "; the router's policy is " + r.policy + text
	}
	if r.predicted != nil {
		text += "; the router expected to find " + percent(*r.predicted) + " on the workers that it chose"
	}
	if r.match != nil {
		text += "; the router knew " + percent(*r.match) + " of a prompt on average"
	}
	return text
}

// The policies that do not look at prompts, and those that go by sessions, by the routers' own names.
var (
	blindPolicies   = []string{"round_robin", "random", "power_of_two", "least_load", "passthrough"}
	sessionPolicies = []string{"manual", "consistent_hashing", "consistent_hash", "sticky_least_loaded"}
)

const (
	emptyIndex = .05 // share of prompts found in an index from which it works
	noTokens   = .1  // share of prompts without token ids from which these explain a loss
)

// why returns why the router did not send prompts where their beginning was, as far as it is known, and what to do.
func (r *routing) why() (reason api.HitReason, remedy string) {
	_, missed := r.outcomes["miss"]
	_, without := r.outcomes["index_unavailable"]
	switch {
	case (missed || without) && r.outcomes["hit"] < emptyIndex || r.predicted != nil && *r.predicted < emptyIndex:
		return api.ReasonEmptyIndex, "the router's index does not have the blocks of the engines: see whether it receives " +
			"their KV events, and has their block size, hash seed and tokenizer; loadgen probe-router tests it"
	case r.outcomes["missing_tokens"] >= noTokens:
		return api.ReasonNoTokens, "the router had no token ids to compare prompts by: the engines must answer " +
			"/v1/chat/completions/render or /tokenize"
	case r.session != "" && slices.Contains(sessionPolicies, r.policy):
		return api.ReasonNoSession, "requests do not name their conversation: set target.session to " + r.session
	case slices.Contains(blindPolicies, r.policy):
		return api.ReasonBlind, "this policy does not look at prompts: choose one that does, or that goes by sessions"
	}
	return "", "the router does not send prompts where their beginning is: loadgen probe-router says what it goes by"
}

// spills is the share of the tokens on other workers from which the load explains them: had the router taken no account
// of the load, about half of the chosen workers would have been less busy than those with the blocks.
const spills = 2. / 3

// countedSpills is the share of the tokens on other workers that a router's own count of spilled requests must reach to
// explain them.
const countedSpills = .5

// fewMisplaced is the share of the prompt tokens below which tokens on other workers are no reason to change a router.
const fewMisplaced = .1

// misplaced returns the cause of tokens that were cached, but not on the chosen worker.
func misplaced(c *shadow.Causes, r *routing) (h api.HitCause) {
	spilled, share := ratio(c.Spilled, c.Elsewhere+c.Spilled), ratio(c.Elsewhere+c.Spilled, c.PromptTokens)
	h.Kind = api.CauseElsewhere
	h.Text = fmt.Sprintf("had been computed, but on other workers; %.0f %% of these while all of them were busier than "+
		"the chosen one", 100*spilled)
	h.Reason, h.Remedy = r.why()
	if h.Reason == "" && (spilled >= spills || r.outcomes["spill"] >= countedSpills*share) {
		h.Kind, h.Remedy = api.CauseSpilled, "give the match more weight against the load, or add workers"
		if r.spread != nil {
			h.Text += fmt.Sprintf("; the busiest worker had %.1f more requests in flight than the idlest on average", *r.spread)
		}
		if r.hot != nil {
			h.Reason = api.ReasonHotPrefix
			h.Text += "; " + hot(r.hot)
		}
	}
	h.Text += r.counted()
	if h.Reason == "" && share < fewMisplaced {
		h.Remedy = ""
	}
	return h
}

// causes says what became of the prompt tokens of the last 60 s: what was found first, then the losses, the largest
// first.
func causes(f *shadow.Figures, r routing) (all []api.HitCause) {
	c := &f.Lately
	if c.Requests == 0 {
		return nil
	}
	add := func(tokens int64, h api.HitCause) {
		if tokens == 0 {
			return
		}
		h.Tokens, h.Share = int(tokens), float64(tokens)/float64(c.PromptTokens)
		h.Text = percent(math.Abs(h.Share)) + " " + h.Text
		all = append(all, h)
	}
	add(c.Found, api.HitCause{Kind: api.CauseFound, Text: "of the prompt tokens were found in the worker's cache"})
	add(c.New, api.HitCause{
		Kind: api.CauseNew, Text: "were new: no request of this load had begun like that before",
	})
	add(c.Elsewhere+c.Spilled, misplaced(c, &r))
	add(c.Evicted, api.HitCause{
		Kind: api.CauseEvicted, Text: fmt.Sprintf("had been computed by the worker and evicted since: its cache holds %d "+
			"blocks", f.Capacity), Remedy: "larger caches, fewer workers for each prefix, or fewer conversations at once",
	})
	add(c.Remainder, api.HitCause{
		Kind: api.CauseRemainder, Text: "are behind the last whole block of their prompt, and never found again",
	})
	unexplained := api.HitCause{
		Kind: api.CauseUnexplained, Text: "should have been in the cache, and the worker did not find them",
		Remedy: "see whether prefix caching is on, and whether the engine has the block size and the cache that it reports",
	}
	if c.Unexplained < 0 {
		unexplained.Text, unexplained.Remedy = "more were found than the model of the cache holds", ""
	}
	add(c.Unexplained, unexplained)
	rank := func(h api.HitCause) int {
		if h.Kind == api.CauseFound {
			return math.MaxInt
		}
		return h.Tokens
	}
	slices.SortStableFunc(all, func(a, b api.HitCause) int { return cmp.Compare(rank(b), rank(a)) })
	return all
}
