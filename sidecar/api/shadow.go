package api

import "time"

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

	Measured ShadowFigures      `json:"measured"`
	Policies List[ShadowPolicy] `json:"policies"`
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
