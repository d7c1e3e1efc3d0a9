package api

// DecisionList is the newest decisions of a target's router, newest first.
type DecisionList struct {
	Decisions List[RoutingDecision] `json:"decisions"`
	// simulated; inferred, where the target does not report its decisions and our model of the router inferred them;
	// or empty
	Source  string `json:"source"`
	Message string `json:"message,omitempty"` // why there are none, or what they are inferred from
	// how often our model chose the router's worker; only for inferred decisions under kv
	Choices *ShadowChoices `json:"choices,omitempty"`
}

// DecisionsInferred is the source of decisions that the target does not report. Their costs come from the load
// generator's own model of the target's caches and requests.
const DecisionsInferred = "inferred"

// RoutingDecision is the choice of a worker for one request, with the costs of all candidates.
type RoutingDecision struct {
	Seconds      float64 `json:"seconds"` // time since the cluster's start, by its own clock
	RequestID    string  `json:"request_id"`
	Mode         Mode    `json:"mode"`
	Pinned       bool    `json:"pinned"` // the request named its worker; the costs decided nothing
	PromptTokens int     `json:"prompt_tokens"`
	BlockTokens  int     `json:"block_tokens"`
	Chosen       int     `json:"chosen"` // index in `candidates`
	// index of the candidate that our model of the router chooses; only for inferred decisions
	Ours *int `json:"ours,omitempty"`
	// requests in flight cannot have changed the decision; only for inferred decisions
	Clear      bool                   `json:"clear,omitempty"`
	Candidates List[RoutingCandidate] `json:"candidates"`
}

// RoutingCandidate is the state of one worker for a decision, including the load of the request. `cost` is overlap
// weight × `prefill_tokens` / `block_tokens` + `decode_blocks`. Under kv the lowest cost wins. Other modes report the
// cost for comparison.
type RoutingCandidate struct {
	Worker        string  `json:"worker"` // decimal instance id
	Name          string  `json:"name"`
	OverlapBlocks int     `json:"overlap_blocks"` // blocks of the prompt that the worker holds, from the first on
	PrefillTokens int     `json:"prefill_tokens"` // prompt tokens that the worker would have to compute
	DecodeBlocks  int     `json:"decode_blocks"`  // distinct prompt blocks of the requests in progress on the worker
	Requests      int     `json:"requests"`       // requests in progress on the worker, without this one
	Cost          float64 `json:"cost"`
}
