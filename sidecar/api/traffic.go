package api

// TrafficPreviewRequest asks what traffic would be after a patch of the workload, before anything is sent. Omitted
// fields are those of the lane and of its cluster.
type TrafficPreviewRequest struct {
	WorkloadPatch
	// length of the traffic, which may end before that; default: 600, for the load generator's trace 3600
	Seconds *int `json:"seconds,omitempty" minimum:"1" maximum:"86400" unit:"seconds"`
	Workers *int `json:"workers,omitempty" minimum:"1" maximum:"256"`
	// blocks in the cache of one worker
	WorkerBlocks *int `json:"worker_blocks,omitempty" minimum:"1" maximum:"268435456"`
	// size of a block; default without a cluster: 16
	BlockTokens *int `json:"block_tokens,omitempty" minimum:"1" maximum:"65536" unit:"tokens"`
}

// TrafficPreview is what traffic would be. It is a plan: the times of turns depend on the assumed times of requests,
// and hit rates on prompts of the planned lengths.
type TrafficPreview struct {
	Level    Level        `json:"concurrency"`
	Arrivals string       `json:"arrivals,omitempty"` // how conversations come at a rate; absent: as others end
	Shape    TrafficShape `json:"shape"`
	Trace    string       `json:"trace,omitempty"` // the load generator's trace, which is sent in place of the shape

	Seconds float64 `json:"seconds"` // length of the traffic below
	// the traffic goes on after seconds, where its prompts have as many blocks as a preview computes
	Cut bool `json:"cut"`
	// assumed time from a request to its first token
	FirstToken float64 `json:"first_token_seconds"`
	PerToken   float64 `json:"per_token_seconds"` // assumed time of each further token

	Requests      int         `json:"requests"`
	Conversations int         `json:"conversations"`
	Bins          List[int]   `json:"requests_over_time"` // in equal parts of the time
	Turns         TokenCounts `json:"turns"`              // of conversations, as far as they are in the time
	Input         TokenCounts `json:"input_tokens"`       // of prompts
	Output        TokenCounts `json:"output_tokens"`      // of answers

	BlockTokens int `json:"block_tokens"`
	// share of the prompts' tokens that an unlimited cache has
	HitRatio       *float64 `json:"hit_ratio,omitempty"`
	DistinctBlocks int      `json:"distinct_blocks"` // blocks of all prompts and answers, each counted once
	// working set: blocks of prompts that are found again; a smaller cache cannot have the hit rate of an unlimited one
	ReusedBlocks int `json:"reused_blocks"`

	Caches *PreviewedCaches `json:"caches,omitempty"` // absent: neither the request nor the cluster has their size
}

// PreviewedCaches is what caches of a size would have of the previewed traffic.
type PreviewedCaches struct {
	Workers      int `json:"workers"`
	WorkerBlocks int `json:"worker_blocks"` // blocks in the cache of one worker
	// hit rate of one cache of all workers' size, in the order of arrival, that drops the blocks used the longest ago
	HitRatio *float64 `json:"hit_ratio,omitempty"`
	// what placements of the requests would have, by the model of `GET /shadow`
	Policies List[ShadowPolicy] `json:"policies"`
}

// TokenCounts is a distribution of whole numbers.
type TokenCounts struct {
	Mean float64        `json:"mean"`
	P50  int            `json:"p50"`
	P95  int            `json:"p95"`
	Max  int            `json:"max"`
	Bins List[TokenBin] `json:"bins"` // each twice as wide as the one before, from 1 on
}

// TokenBin is the number of values above half of its upper end, up to it.
type TokenBin struct {
	UpTo int `json:"up_to"`
	N    int `json:"n"`
}
