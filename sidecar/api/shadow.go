package api

import (
	"fmt"
	"math"
	"time"
)

// ShadowSource is the way in which blocks of a prompt are identified.
type ShadowSource string

// The sources of block identities.
const (
	ShadowTokenIDs ShadowSource = "token_ids" // the target reports the ids of a prompt's tokens
	ShadowText     ShadowSource = "text"      // pieces of text with the mean length of a block's tokens
	ShadowNone     ShadowSource = "none"      // there is no shadow; `message` says why
)

// Shadow is the replay of a lane's requests with other routing policies, on caches as large as the cluster's. It shows
// cache hits and balance, not latency: with another policy, later requests would have come at other times.
type Shadow struct {
	Lane    string       `json:"lane"`
	Arm     string       `json:"arm,omitempty"` // arm in force; absent: none of the configuration
	Source  ShadowSource `json:"source"`
	Message string       `json:"message,omitempty"` // why there is no shadow, or how the source limits its accuracy
	Since   *time.Time   `json:"since,omitempty"`   // time at which the caches were empty
	Seconds float64      `json:"seconds"`           // length of the time that the figures cover, up to now

	Requests     int `json:"requests"` // requests in that time that ended well
	PromptTokens int `json:"prompt_tokens"`
	Lost         int `json:"lost"` // requests since `since` that could not be tracked

	Workers      int    `json:"workers"`
	BlockTokens  int    `json:"block_tokens"`
	WorkerBlocks int    `json:"worker_blocks"`           // blocks in the cache of one worker
	CapacityFrom string `json:"capacity_from,omitempty"` // source of `worker_blocks`
	// whether the cache reuses the tokens of answers, by the measured hits; absent: not known yet
	AnswersReused *bool `json:"answers_reused,omitempty"`

	Measured ShadowFigures `json:"measured"`
	// measured hit rate ÷ that of best_placement; absent where it is not known or the policies' figures are unreliable
	AchievedShare *float64           `json:"achieved_share,omitempty"`
	Policies      List[ShadowPolicy] `json:"policies"`
	// what became of the prompt tokens whose worker and hits are known, the largest loss first: their shares add up to 1;
	// absent: no turn reported them
	Causes List[HitCause] `json:"causes,omitempty"`
	// how the work of the last 60 s is divided between the workers; absent: no turn reported its worker and its hits
	Work *ShadowWork `json:"work,omitempty"`
	// parts of the mean TTFT of the last 60 s, which add up to it; absent: no engine reports its own
	TTFT List[TTFTPart] `json:"ttft,omitempty"`
	// hit ratio of the router's real choices on our caches, less the measured one
	CacheError *float64 `json:"cache_error,omitempty"`
	// why the policies' figures are unreliable; absent: they are reliable
	Withheld  string          `json:"withheld,omitempty"`
	Choices   *ShadowChoices  `json:"choices,omitempty"` // only under kv
	Diagnoses List[Diagnosis] `json:"diagnoses"`
}

// ShadowFigures are metrics of one policy.
type ShadowFigures struct {
	HitRatio      *float64 `json:"hit_ratio,omitempty"`      // cached ÷ prompt tokens
	PrefillTokens *int     `json:"prefill_tokens,omitempty"` // prompt tokens that workers had to compute
	// most less fewest requests in flight on a worker, mean over time
	InflightSpread *float64 `json:"inflight_spread,omitempty"`
}

// Bounds from which figures of a shadow are reliable.
const (
	MaxCacheError = .03 // difference of the modeled and the measured hit rate
	MinMeasured   = 50  // turns with measured hits
)

// PlacementTotals sums what a shadow has followed. [PlacementTotals.Since] computes the share of the achievable hit
// rate of a time from two totals.
type PlacementTotals struct {
	Account    int64         // shadow that has followed the turns
	Start      time.Duration // of the sums, in that account
	Late       bool          // the moment at which hits count; sums of different moments have no difference
	Requests   int64         // with measured hits
	Prompt     int64         // their tokens
	Measured   int64         // tokens of these that were found in caches
	Modeled    int64         // tokens of these that the model of the caches found
	Followed   int64         // prompt tokens of all turns
	Achievable int64         // tokens of these that best_placement found
	Causes     CauseTotals   // of Prompt
	Problem    string        // why there are no sums; empty: there are
}

// CausesSince returns the shares of the prompt tokens since earlier totals by what became of them, or nil where they
// are not known.
func (t *PlacementTotals) CausesSince(before *PlacementTotals) map[HitCauseKind]float64 {
	if t == nil || t.Problem != "" {
		return nil
	}
	if before == nil || t.Account != before.Account || t.Start != before.Start {
		before = &PlacementTotals{Late: t.Late}
	}
	prompt := t.Prompt - before.Prompt
	if prompt <= 0 || t.Late != before.Late {
		return nil
	}
	shares := map[HitCauseKind]float64{}
	for i, kind := range CauseKinds {
		shares[kind] = float64(t.Causes[i]-before.Causes[i]) / float64(prompt)
	}
	return shares
}

// Since returns the measured hit rate ÷ that of best_placement since earlier totals, or since the sums have begun if
// that was later. It is nil, with the reason, if it is not known or not reliable.
func (t *PlacementTotals) Since(before *PlacementTotals) (share *float64, why string) {
	if t == nil || t.Problem != "" {
		if t != nil {
			why = t.Problem
		}
		return nil, why
	}
	if before == nil || t.Account != before.Account || t.Start != before.Start {
		before = &PlacementTotals{Late: t.Late}
	}
	if t.Late != before.Late {
		return nil, "the moment at which prompts count as cached has changed"
	}
	prompt, followed := float64(t.Prompt-before.Prompt), float64(t.Followed-before.Followed)
	measured, achievable := float64(t.Measured-before.Measured), float64(t.Achievable-before.Achievable)
	modeled := float64(t.Modeled - before.Modeled)
	switch n := t.Requests - before.Requests; {
	case n < MinMeasured:
		return nil, fmt.Sprintf("%d turns reported cached tokens and their worker, at least %d are needed", n, MinMeasured)
	case achievable <= 0:
		return nil, "no prompt begins like an earlier one"
	case math.Abs(modeled-measured) > MaxCacheError*prompt:
		return nil, fmt.Sprintf("the model of the caches is more than %.0f points from the measured hit rate",
			100*MaxCacheError)
	}
	return new(measured / prompt / (achievable / followed)), ""
}

// HitCauseKind names what became of prompt tokens.
type HitCauseKind string

// The kinds of [HitCause].
const (
	CauseFound       HitCauseKind = "found"       // the worker had them cached
	CauseNew         HitCauseKind = "new"         // no request had them before
	CauseElsewhere   HitCauseKind = "elsewhere"   // computed on another worker, and the load does not explain the choice
	CauseSpilled     HitCauseKind = "spilled"     // computed on other workers, which were busier than the chosen one
	CauseEvicted     HitCauseKind = "evicted"     // the worker had computed them, and evicted them since
	CauseRemainder   HitCauseKind = "remainder"   // behind the last whole block
	CauseUnexplained HitCauseKind = "unexplained" // the model of the cache holds them, and the worker did not find them
)

// CauseKinds are all kinds, in the order of [CauseTotals].
var CauseKinds = []HitCauseKind{
	CauseFound, CauseNew, CauseElsewhere, CauseSpilled, CauseEvicted, CauseRemainder, CauseUnexplained,
}

// CauseTotals are prompt tokens by what became of them, in the order of [CauseKinds]. Those on other workers are
// divided by whether all of them were busier than the chosen one.
type CauseTotals [7]int64

// HitCause is what became of a part of the prompt tokens.
type HitCause struct {
	Kind   HitCauseKind `json:"kind"`
	Tokens int          `json:"tokens"` // negative where the worker found more than the model
	Share  float64      `json:"share"`  // of the prompt tokens
	Text   string       `json:"text"`   // a sentence with the evidence
	Reason HitReason    `json:"reason,omitempty"`
	Remedy string       `json:"remedy,omitempty"`
}

// HitReason says why a router did not send prompts where their beginning was, as far as its counters and the settings
// show it.
type HitReason string

// The reasons.
const (
	ReasonBlind      HitReason = "policy_ignores_prompts" // its policy does not look at prompts
	ReasonNoSession  HitReason = "no_session_sent"        // its policy goes by sessions, and requests do not name theirs
	ReasonEmptyIndex HitReason = "index_has_no_blocks"    // its index of the engines' blocks does not have the prompts
	ReasonNoTokens   HitReason = "no_token_ids"           // it had no token ids to compare prompts by
	ReasonHotPrefix  HitReason = "hot_prefix"             // one beginning has more turns than its worker can take
)

// ShadowWork says how the work of turns, whose worker and hits are known, is divided between the workers.
type ShadowWork struct {
	Workers List[WorkerWork] `json:"workers"`          // by name
	Skew    float64          `json:"skew"`             // most uncached tokens of a worker ÷ mean of all workers
	Hot     List[HotPrefix]  `json:"hot_prefixes"`     // beginnings that several conversations share, with many turns
	Text    string           `json:"text,omitempty"`   // a sentence where a worker has much more work than the others
	Remedy  string           `json:"remedy,omitempty"` // beside Text
}

// WorkerWork is the work of one worker.
type WorkerWork struct {
	Worker         string `json:"worker"`
	Turns          int    `json:"turns"`
	UncachedTokens int    `json:"uncached_tokens"` // prompt tokens that the worker had to compute
}

// HotPrefix is a beginning of prompts that many turns have.
type HotPrefix struct {
	Name  string  `json:"name"`  // first words of the text
	Share float64 `json:"share"` // of all turns
	// the worker with most of these turns, and its share of them
	Worker      string  `json:"worker"`
	WorkerShare float64 `json:"worker_share"`
}

// ShadowPolicy is a routing policy with its figures.
type ShadowPolicy struct {
	Policy  string        `json:"policy"` // label of the series loadgen_shadow_…
	Title   string        `json:"title"`  // displayed name
	InForce bool          `json:"in_force"`
	Figures ShadowFigures `json:"figures"`
}

// ShadowChoices is the agreement of our model of the router with the router, over the last turns (at most 1,000). A
// turn is clear if its lowest cost is so far below the next one that requests in flight cannot change the choice.
type ShadowChoices struct {
	Turns       int `json:"turns"`
	Agreed      int `json:"agreed"`
	Ties        int `json:"ties"` // several workers had the lowest cost
	Clear       int `json:"clear"`
	ClearAgreed int `json:"clear_agreed"`
}

// Diagnosis is a finding that one rule derives from the figures.
type Diagnosis struct {
	Rule string `json:"rule"` // stable name of the rule
	Text string `json:"text"`
}
