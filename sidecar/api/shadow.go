package api

import "time"

// ShadowSource says how the prompts' blocks are identified.
type ShadowSource string

// The sources.
const (
	ShadowTokenIDs ShadowSource = "token_ids" // the target reports the ids of a prompt's tokens
	ShadowText     ShadowSource = "text"      // blocks of text, as long as a block's tokens are on average
	ShadowNone     ShadowSource = "none"      // there is no shadow; `message` says why
)

// Shadow are the cache hits of other routing policies on the same traffic: the requests of a lane as they came, on
// caches as large as the cluster's. They show hits and balance, not latency: other answers at other times would have
// changed what came next.
type Shadow struct {
	Lane    string       `json:"lane"`
	Source  ShadowSource `json:"source"`
	Message string       `json:"message,omitempty"` // why there is none, or what the source costs in accuracy
	Since   *time.Time   `json:"since,omitempty"`   // when the caches were empty
	Seconds float64      `json:"seconds"`           // that the figures are those of, up to now

	Requests     int `json:"requests"` // that ended well in this time
	PromptTokens int `json:"prompt_tokens"`
	Lost         int `json:"lost"` // requests that could not be tracked, since `since`

	Workers      int    `json:"workers"`
	BlockTokens  int    `json:"block_tokens"`
	WorkerBlocks int    `json:"worker_blocks"`           // that the cache of a worker holds
	CapacityFrom string `json:"capacity_from,omitempty"` // where that number comes from
	// whether answers are found again in the cache, by the measured hits; absent: not known yet
	AnswersReused *bool `json:"answers_reused,omitempty"`

	Measured ShadowFigures      `json:"measured"`
	Policies List[ShadowPolicy] `json:"policies"`
	// hit ratio of the router's real choices on our caches, less the measured one
	CacheError *float64 `json:"cache_error,omitempty"`
	// why the policies' figures are unreliable; absent: they are reliable
	Withheld  string          `json:"withheld,omitempty"`
	Choices   *ShadowChoices  `json:"choices,omitempty"` // under kv alone
	Diagnoses List[Diagnosis] `json:"diagnoses"`         // what the figures show in words, each from a rule
}

// ShadowFigures are metrics of one policy.
type ShadowFigures struct {
	HitRatio      *float64 `json:"hit_ratio,omitempty"`      // cached ÷ prompt tokens
	PrefillTokens *int     `json:"prefill_tokens,omitempty"` // prompt tokens that were to be computed
	// most less fewest requests in flight on a worker, mean over time
	InflightSpread *float64 `json:"inflight_spread,omitempty"`
}

// ShadowPolicy is a way to choose workers, and what it would have done.
type ShadowPolicy struct {
	Policy  string        `json:"policy"` // as in the series loadgen_shadow_…
	Title   string        `json:"title"`  // in words
	InForce bool          `json:"in_force"`
	Figures ShadowFigures `json:"figures"`
}

// ShadowChoices says how often our model of the router chose the same worker as the router, over the last turns (at
// most 1,000). A turn is clear where the lowest cost is so far below the next that requests in flight cannot change
// it.
type ShadowChoices struct {
	Turns       int `json:"turns"`
	Agreed      int `json:"agreed"`
	Ties        int `json:"ties"`  // several workers had the lowest cost
	Clear       int `json:"clear"` // of `turns`
	ClearAgreed int `json:"clear_agreed"`
}

// Diagnosis is a finding in words, with its numbers.
type Diagnosis struct {
	Rule string `json:"rule"` // its stable name
	Text string `json:"text"`
}
