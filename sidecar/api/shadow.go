package api

import "time"

// ShadowSource is what the prompts' blocks are known from.
type ShadowSource string

// The sources.
const (
	ShadowTokenIDs ShadowSource = "token_ids" // the target tells the ids of a prompt's tokens
	ShadowText     ShadowSource = "text"      // blocks of text, as long as a block's tokens are on average
	ShadowNone     ShadowSource = "none"      // there is no shadow; Message says why
)

// Shadow is what other routers would have hit on the same traffic: the requests of a
// lane as they came, on caches as large as the cluster's, with the choices of other
// policies. It tells hits and balance, not latency: other answers at other times would have
// changed what came next.
type Shadow struct {
	Lane    string       `json:"lane"`
	Source  ShadowSource `json:"source"`
	Message string       `json:"message,omitempty"` // why there is none, or what the source costs in accuracy
	Since   *time.Time   `json:"since,omitempty"`   // when the caches were empty
	Seconds float64      `json:"seconds"`           // that the figures are those of, up to now

	Requests     int `json:"requests"` // that ended well in this time
	PromptTokens int `json:"prompt_tokens"`
	Lost         int `json:"lost"` // requests that could not be followed, since Since

	Workers       int    `json:"workers"`
	BlockTokens   int    `json:"block_tokens"`
	WorkerBlocks  int    `json:"worker_blocks"`            // that the cache of a worker holds
	CapacityFrom  string `json:"capacity_from,omitempty"`  // who told it
	AnswersReused *bool  `json:"answers_reused,omitempty"` // whether answers are found again in the cache, by the measured hits; absent: not known yet

	Measured ShadowFigures  `json:"measured"`
	Policies []ShadowPolicy `json:"policies"`
	// CacheError is the hit ratio of the router's real choices on our caches, less the
	// measured one.
	CacheError *float64 `json:"cache_error,omitempty"`
	// Withheld is why the policies' figures are not to be relied on; empty: they are.
	Withheld string         `json:"withheld,omitempty"`
	Choices  *ShadowChoices `json:"choices,omitempty"` // under kv alone
	// Diagnoses are what the figures show in words, each from a rule.
	Diagnoses []Diagnosis `json:"diagnoses"`
}

// ShadowFigures are what can be said of a policy.
type ShadowFigures struct {
	HitRatio       *float64 `json:"hit_ratio,omitempty"`       // cached ÷ prompt tokens
	PrefillTokens  *int     `json:"prefill_tokens,omitempty"`  // prompt tokens that were to be computed
	InflightSpread *float64 `json:"inflight_spread,omitempty"` // most less fewest requests in flight on a worker, mean over time
}

// ShadowPolicy is a way to choose workers, and what it would have done.
type ShadowPolicy struct {
	Policy  string        `json:"policy"` // as in the series loadgen_shadow_…
	Title   string        `json:"title"`  // in words
	InForce bool          `json:"in_force"`
	Figures ShadowFigures `json:"figures"`
}

// ShadowChoices says how often our account of the router chose the worker that the router
// chose, of the last turns, at most a thousand. A turn is clear where the lowest cost is so much below
// the next that requests in flight, which the two accounts may see in another order, cannot
// turn it round.
type ShadowChoices struct {
	Turns       int `json:"turns"`
	Agreed      int `json:"agreed"`
	Ties        int `json:"ties"`  // several workers had the lowest cost
	Clear       int `json:"clear"` // of Turns
	ClearAgreed int `json:"clear_agreed"`
}

// Diagnosis is a finding in words with its numbers.
type Diagnosis struct {
	Rule string `json:"rule"` // its name, which does not change
	Text string `json:"text"`
}
