package api

import "time"

// TwinLane is the lane that runs the conversations of [DefaultLane] against a second
// target.
const TwinLane = "twin"

// Twin compares two lanes that run the same conversations: conversation k has the same
// draws on both, and turn n of it on one is paired with turn n on the other. Differences
// are those of b less a.
type Twin struct {
	A        TwinSide        `json:"a"` // lane main
	B        TwinSide        `json:"b"` // lane twin
	Arranged TwinArrangement `json:"arranged"`
	// from when on pairs count: both lanes had settled in what is in force now
	Since         *time.Time         `json:"since,omitempty"`
	Pairs         int                `json:"pairs"`    // turns that ended well on both, of the last hour at most
	Unpaired      int                `json:"unpaired"` // turns that ended on one, and on the other not yet or not well
	Metrics       List[PairedMetric] `json:"metrics"`
	Evidence      TwinEvidence       `json:"evidence"`
	Caution       string             `json:"caution,omitempty"` // shown next to every value; absent: none
	SharedWorkers List[string]       `json:"shared_workers"`    // ids of workers that serve both
	Showcase      *Showcase          `json:"showcase,omitempty"`
}

// TwinSide is one of the two lanes.
type TwinSide struct {
	Lane        string      `json:"lane"`
	Target      string      `json:"target"`        // URL
	Arm         string      `json:"arm,omitempty"` // in force; absent: none of the configuration
	Mode        Mode        `json:"mode"`
	Speculation Speculation `json:"speculation"`
}

// TwinArrangement says how the modes are assigned to the two lanes.
type TwinArrangement string

// The arrangements. What two clusters differ in besides the mode shows when both have the
// same mode, and cancels out when the modes are swapped half-way.
const (
	TwinApart   TwinArrangement = "apart"   // each has its own mode, as configured
	TwinSwapped TwinArrangement = "swapped" // each has the other's
	TwinSame    TwinArrangement = "same"    // both have that of a
)

// TwinRequest requests another arrangement.
type TwinRequest struct {
	Arranged TwinArrangement `json:"arranged" enum:"apart,swapped,same"`
}

// TwinEvidence says whether a difference can be attributed to the mode.
type TwinEvidence string

// The kinds of evidence.
const (
	EvidenceNone    TwinEvidence = "none"    // the clusters may differ in more
	EvidenceAlike   TwinEvidence = "alike"   // with the same mode on both, no difference of interest was found
	EvidenceDiffer  TwinEvidence = "differ"  // with the same mode on both, a difference was found
	EvidenceSwapped TwinEvidence = "swapped" // the figures are those of both arrangements, half and half
	EvidenceShared  TwinEvidence = "shared"  // the same workers serve both
)

// PairedMetric is a metric of the turns that ended well on both lanes.
type PairedMetric struct {
	// ttft, tpot, latency: means in seconds; ttft_p95: the 95th percentile in seconds; kv_hit_ratio: cached tokens
	// over prompt tokens
	Metric     string   `json:"metric"`
	N          int      `json:"n"` // pairs that have it on both sides
	A          *float64 `json:"a,omitempty"`
	B          *float64 `json:"b,omitempty"`
	Difference *float64 `json:"difference,omitempty"` // b − a
	// of the difference: 95 % for all metrics together, however often it is looked at; absent where there are too few
	// batches for one
	Interval *[2]float64 `json:"interval,omitempty"`
	// variance of the difference over that of two unpaired means: below 1, pairing shows more than as many turns
	// without it
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

// ShowcaseRequest asks for a showcase. Omitted fields are chosen: the next text of the corpus, five turns.
type ShowcaseRequest struct {
	// id of an opening text
	Starter *string `json:"starter,omitempty" minLength:"1" maxLength:"200"`
	Turns   *int    `json:"turns,omitempty" minimum:"1" maximum:"20"`
}

// Showcase is one conversation to watch: each turn is sent to both lanes at once, with the same question, and counts in
// no statistics. The next turn begins when both answers have ended.
type Showcase struct {
	ID      string        `json:"id"`
	State   ShowcaseState `json:"state"`
	Message string        `json:"message,omitempty"` // why it failed, or was cancelled other than by request
	Topic   string        `json:"topic"`
	Turn    int           `json:"turn"` // under way, from 1; the last one once it has ended
	Turns   int           `json:"turns"`
	// of the turn, the same for both, without the opening text; after the first turn it is about the answer of a
	Question string               `json:"question"`
	A        ShowcaseSide         `json:"a"`
	B        ShowcaseSide         `json:"b"`
	Results  List[ShowcaseResult] `json:"results"` // of the turns that have ended on both, oldest first
}

// ShowcaseSide is the answer of one lane to the turn under way.
type ShowcaseSide struct {
	Text         string   `json:"text"`
	Done         bool     `json:"done"`
	Sent         bool     `json:"sent"`
	TTFT         *float64 `json:"ttft,omitempty"`    // seconds, once the first token is there
	Latency      *float64 `json:"latency,omitempty"` // seconds, once the last one is
	PromptTokens *int     `json:"prompt_tokens,omitempty"`
	CachedTokens *int     `json:"cached_tokens,omitempty"`
	Worker       string   `json:"worker,omitempty"` // that answered, if the target reports it
	Error        string   `json:"error,omitempty"`
}

// ShowcaseResult says who was first with a turn's first token, and by how much.
type ShowcaseResult struct {
	Turn  int      `json:"turn"`
	A     *float64 `json:"a,omitempty"`     // TTFT, seconds
	B     *float64 `json:"b,omitempty"`     // TTFT, seconds
	First string   `json:"first,omitempty"` // lane; absent where one of them failed
	Lead  *float64 `json:"lead,omitempty"`  // seconds between the two first tokens
}
