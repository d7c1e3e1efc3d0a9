package api

import "time"

// TwinLane is the name of the lane that runs the conversations of [DefaultLane] against a second target.
const TwinLane = "twin"

// Twin is the comparison of two lanes that run the same conversations. Conversation k has the same draws on both lanes,
// and its turn n on one lane is paired with turn n on the other. A difference is b − a.
type Twin struct {
	A        TwinSide        `json:"a"` // lane main
	B        TwinSide        `json:"b"` // lane twin
	Arranged TwinArrangement `json:"arranged"`
	// time from which pairs count: both lanes have settled with the present modes and settings
	Since         *time.Time         `json:"since,omitempty"`
	Pairs         int                `json:"pairs"`    // turns that ended well on both lanes, of the last hour at most
	Unpaired      int                `json:"unpaired"` // turns that ended on one lane only, or failed on the other
	Metrics       List[PairedMetric] `json:"metrics"`
	Evidence      TwinEvidence       `json:"evidence"`
	Caution       string             `json:"caution,omitempty"` // shown next to every value; absent: none
	SharedWorkers List[string]       `json:"shared_workers"`    // ids of workers of both lanes, or else UUIDs of GPUs
	Showcase      *Showcase          `json:"showcase,omitempty"`
	Headline      Headline           `json:"headline"` // the result of the pairs in one sentence
}

// TwinSide is one of the two lanes.
type TwinSide struct {
	Lane        string      `json:"lane"`
	Target      string      `json:"target"`        // URL
	Arm         string      `json:"arm,omitempty"` // arm in force; absent: none of the configuration
	Mode        Mode        `json:"mode"`
	Speculation Speculation `json:"speculation"`
}

// TwinArrangement is the assignment of the modes to the two lanes.
type TwinArrangement string

// The arrangements. With the same mode on both lanes, other differences of the clusters become visible. When the modes
// are swapped half-way, these differences cancel out.
const (
	TwinApart   TwinArrangement = "apart"   // each lane has its own mode, as configured
	TwinSwapped TwinArrangement = "swapped" // each lane has the mode of the other
	TwinSame    TwinArrangement = "same"    // both lanes have the mode of a
)

// TwinRequest is a request for another arrangement.
type TwinRequest struct {
	Arranged TwinArrangement `json:"arranged" enum:"apart,swapped,same"`
}

// TwinEvidence is the evidence that a difference comes from the mode.
type TwinEvidence string

// The kinds of evidence.
const (
	EvidenceNone    TwinEvidence = "none"    // the clusters may have other differences
	EvidenceAlike   TwinEvidence = "alike"   // with the same mode on both, no difference of interest was found
	EvidenceDiffer  TwinEvidence = "differ"  // with the same mode on both, a difference was found
	EvidenceSwapped TwinEvidence = "swapped" // the figures cover both arrangements for equal times
	EvidenceShared  TwinEvidence = "shared"  // the same workers serve both lanes
)

// PairedMetric is a metric of the turns that ended well on both lanes.
type PairedMetric struct {
	// ttft, tpot, latency: means in seconds; ttft_p95: the 95th percentile in seconds; kv_hit_ratio: cached tokens
	// over prompt tokens
	Metric     string   `json:"metric"`
	N          int      `json:"n"` // pairs with the metric on both lanes
	A          *float64 `json:"a,omitempty"`
	B          *float64 `json:"b,omitempty"`
	Difference *float64 `json:"difference,omitempty"` // b − a
	// 95 % interval of the difference, for all metrics together and valid at any time; absent: too few batches
	Interval *[2]float64 `json:"interval,omitempty"`
	// variance of the difference over that of two unpaired means; below 1, pairing gives a narrower interval
	VarianceRatio *float64 `json:"variance_ratio,omitempty"`
}

// ShowcaseState is the progress of a showcase.
type ShowcaseState string

// The states of a showcase.
const (
	ShowcaseRunning   ShowcaseState = "running"
	ShowcaseEnded     ShowcaseState = "ended"
	ShowcaseCancelled ShowcaseState = "cancelled"
	ShowcaseFailed    ShowcaseState = "failed"
)

// ShowcaseRequest is a request for a showcase. Defaults: the next text of the corpus, five turns.
type ShowcaseRequest struct {
	// id of an opening text
	Starter *string `json:"starter,omitempty" minLength:"1" maxLength:"200"`
	Turns   *int    `json:"turns,omitempty" minimum:"1" maximum:"20"`
}

// Showcase is a conversation for an audience. Each turn is sent to both lanes at once with the same question. It counts
// in no statistics. The next turn begins when both answers have ended.
type Showcase struct {
	ID      string        `json:"id"`
	State   ShowcaseState `json:"state"`
	Message string        `json:"message,omitempty"` // why the showcase failed, or was cancelled other than by request
	Topic   string        `json:"topic"`
	Turn    int           `json:"turn"` // number of the turn in progress, from 1; after the end, of the last turn
	Turns   int           `json:"turns"`
	// question of the turn for both lanes, without the opening text; after the first turn it is about the answer of a
	Question string               `json:"question"`
	A        ShowcaseSide         `json:"a"`
	B        ShowcaseSide         `json:"b"`
	Results  List[ShowcaseResult] `json:"results"` // results of the turns that have ended on both lanes, oldest first
}

// ShowcaseSide is the answer of one lane to the turn in progress.
type ShowcaseSide struct {
	Text         string   `json:"text"`
	Done         bool     `json:"done"`
	Sent         bool     `json:"sent"`
	TTFT         *float64 `json:"ttft,omitempty"`    // seconds; absent until the first token
	Latency      *float64 `json:"latency,omitempty"` // seconds; absent until the last token
	PromptTokens *int     `json:"prompt_tokens,omitempty"`
	CachedTokens *int     `json:"cached_tokens,omitempty"`
	Worker       string   `json:"worker,omitempty"` // worker that answered, if the target reports it
	Error        string   `json:"error,omitempty"`
}

// ShowcaseResult is the comparison of the first tokens of one turn.
type ShowcaseResult struct {
	Turn  int      `json:"turn"`
	A     *float64 `json:"a,omitempty"`     // TTFT, seconds
	B     *float64 `json:"b,omitempty"`     // TTFT, seconds
	First string   `json:"first,omitempty"` // lane with the earlier first token; absent if a lane failed
	Lead  *float64 `json:"lead,omitempty"`  // seconds between the two first tokens
}
