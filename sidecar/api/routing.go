package api

// DecisionList is the newest decisions of a target's router, newest first.
type DecisionList struct {
	Decisions List[RoutingDecision] `json:"decisions"`
	// simulated; inferred, where the target does not report its decisions and our model of the router inferred them;
	// or empty
	Source  string `json:"source"`
	Message string `json:"message,omitempty"` // why there are none, or what they are inferred from
	// of inferred decisions under kv: how often our choice was the router's
	Choices *ShadowChoices `json:"choices,omitempty"`
}

// DecisionsInferred is the source of decisions that the target does not report: the costs are those of
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
	Chosen       int     `json:"chosen"` // index in `candidates`
	// of an inferred decision: the candidate that our model of the router would have chosen
	Ours *int `json:"ours,omitempty"`
	// of an inferred decision: requests in flight cannot have changed it
	Clear      bool                   `json:"clear,omitempty"`
	Candidates List[RoutingCandidate] `json:"candidates"`
}

// RoutingCandidate is one worker as the router saw it, the request's own load included. `cost` is overlap weight ×
// `prefill_tokens` / `block_tokens` + `decode_blocks`; the lowest wins under kv. It is given in every mode, so that
// one sees what kv would have done.
type RoutingCandidate struct {
	Worker        string  `json:"worker"` // decimal instance id
	Name          string  `json:"name"`
	OverlapBlocks int     `json:"overlap_blocks"` // blocks of the prompt that the worker holds, from the first on
	PrefillTokens int     `json:"prefill_tokens"` // to be computed on the worker
	DecodeBlocks  int     `json:"decode_blocks"`  // different blocks of prompts in progress there
	Requests      int     `json:"requests"`       // in progress there before this one
	Cost          float64 `json:"cost"`
}
