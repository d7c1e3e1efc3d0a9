package api

// DecisionList is the newest decisions of a target's router, newest first. Where
// the target does not tell them, Source is empty and Message says so.
type DecisionList struct {
	Decisions []RoutingDecision `json:"decisions"`
	Source    string            `json:"source"` // simulated, inferred, or empty
	Message   string            `json:"message,omitempty"`
	Choices   *ShadowChoices    `json:"choices,omitempty"` // of inferred decisions under kv: how often our choice was the router's
}

// DecisionsInferred is the source of decisions that the target does not tell: the costs are those of
// the load generator's own account of its caches and requests.
const DecisionsInferred = "inferred"

// RoutingDecision is why a KV router sent one request where it did.
type RoutingDecision struct {
	Seconds      float64 `json:"seconds"` // since the cluster's beginning, in its own time
	RequestID    string  `json:"request_id"`
	Mode         Mode    `json:"mode"`
	Pinned       bool    `json:"pinned"` // the request named its worker; the costs decided nothing
	PromptTokens int     `json:"prompt_tokens"`
	BlockTokens  int     `json:"block_tokens"`
	Chosen       int     `json:"chosen"` // of Candidates
	// Of inferred decisions: the candidate that our account would have chosen, and whether
	// its cost was so much the lowest that requests in flight cannot have reversed the choice.
	Ours       *int               `json:"ours,omitempty"`
	Clear      bool               `json:"clear,omitempty"`
	Candidates []RoutingCandidate `json:"candidates"`
}

// RoutingCandidate is one worker as the router saw it, the request's own load
// included. Cost is overlap weight × PrefillTokens / BlockTokens + DecodeBlocks,
// the lowest wins under kv; it is told in every mode, so that one sees what kv
// would have done.
type RoutingCandidate struct {
	Worker        string  `json:"worker"` // instance id, decimal
	Name          string  `json:"name"`
	OverlapBlocks int     `json:"overlap_blocks"` // blocks of the prompt that the worker holds, from the first on
	PrefillTokens int     `json:"prefill_tokens"` // to be computed on the worker
	DecodeBlocks  int     `json:"decode_blocks"`  // different blocks of prompts in progress there
	Requests      int     `json:"requests"`       // in progress there before this one
	Cost          float64 `json:"cost"`
}
