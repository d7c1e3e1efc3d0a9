package api

import (
	"time"
	"unicode/utf8"
)

// TwinLane is the lane that runs the conversations of [DefaultLane] against a second
// target.
const TwinLane = "twin"

// Twin compares two lanes that run the same conversations: conversation k has the same
// draws on both, and turn n of it on one is paired with turn n on the other. Differences
// are those of B less A.
type Twin struct {
	A        TwinSide        `json:"a"` // lane main
	B        TwinSide        `json:"b"` // lane twin
	Arranged TwinArrangement `json:"arranged"`
	Since    *time.Time      `json:"since,omitempty"` // from when on pairs count: both lanes had settled in what is in force now
	Pairs    int             `json:"pairs"`           // turns that ended well on both, of the last hour at most
	Unpaired int             `json:"unpaired"`        // turns that ended on one, and on the other not yet or not well
	Metrics  []PairedMetric  `json:"metrics"`
	Evidence TwinEvidence    `json:"evidence"`
	// Caution stands beside every figure as long as the clusters may differ, or disturb
	// each other; empty: nothing is to be said.
	Caution       string    `json:"caution,omitempty"`
	SharedWorkers []string  `json:"shared_workers"` // ids of workers that serve both
	Showcase      *Showcase `json:"showcase,omitempty"`
}

// TwinSide is one of the two lanes.
type TwinSide struct {
	Lane        string      `json:"lane"`
	Target      string      `json:"target"` // URL
	Mode        Mode        `json:"mode"`
	Speculation Speculation `json:"speculation"`
}

// TwinArrangement is how the modes are dealt out to the two lanes.
type TwinArrangement string

// The arrangements. What two clusters differ in besides the mode shows when both have the
// same mode, and cancels out when the modes are swapped half-way.
const (
	TwinApart   TwinArrangement = "apart"   // each has its own mode, as configured
	TwinSwapped TwinArrangement = "swapped" // each has the other's
	TwinSame    TwinArrangement = "same"    // both have the mode of A
)

// TwinRequest asks for another arrangement. The modes are switched as in
// [ModeRequest], and pairs are counted anew.
type TwinRequest struct {
	Arranged TwinArrangement `json:"arranged"`
}

// Check gives a [FieldError] for a word that is none.
func (r TwinRequest) Check() error {
	return OneOf("arranged", r.Arranged, []TwinArrangement{TwinApart, TwinSwapped, TwinSame})
}

// TwinEvidence says whether a difference can be laid to the mode.
type TwinEvidence string

// The kinds of evidence.
const (
	EvidenceNone   TwinEvidence = "none"   // the clusters may differ in more than their modes
	EvidenceAlike  TwinEvidence = "alike"  // with the same mode on both, no difference beyond the smallest of interest was found
	EvidenceDiffer TwinEvidence = "differ" // with the same mode on both, a difference was found
	// EvidenceSwapped is so where the figures are those of both arrangements, half and half: A
	// has those of the mode that A has now, half of them from either lane, and so has B.
	EvidenceSwapped TwinEvidence = "swapped"
	EvidenceShared  TwinEvidence = "shared" // the same workers serve both
)

// PairedMetric is a metric of the turns that ended well on both lanes.
type PairedMetric struct {
	// Metric is ttft, tpot or latency: means in seconds; ttft_p95: the 95th percentile in
	// seconds; kv_hit_ratio: cached tokens over prompt tokens.
	Metric     string   `json:"metric"`
	N          int      `json:"n"` // pairs that have it on both sides
	A          *float64 `json:"a,omitempty"`
	B          *float64 `json:"b,omitempty"`
	Difference *float64 `json:"difference,omitempty"` // B − A
	// Interval is that of the difference, absent where there are too few batches for one. The intervals of all metrics
	// hold together with 95 %, however often they are looked at.
	Interval *[2]float64 `json:"interval,omitempty"`
	// VarianceRatio is the variance of the difference over that of two unpaired means:
	// below 1, pairing tells more than as many turns without it.
	VarianceRatio *float64 `json:"variance_ratio,omitempty"`
}

// ShowcaseState is how far a showcase is.
type ShowcaseState string

// The states of a showcase.
const (
	ShowcaseRunning   ShowcaseState = "running"
	ShowcaseEnded     ShowcaseState = "ended"
	ShowcaseCancelled ShowcaseState = "cancelled"
	ShowcaseFailed    ShowcaseState = "failed"
)

// ShowcaseRequest asks for a showcase. What is left out is chosen: the next text of the
// corpus, five turns.
type ShowcaseRequest struct {
	Starter *string `json:"starter,omitempty"` // id of an opening text
	Turns   *int    `json:"turns,omitempty"`
}

// maxShowcaseTurns keeps a showcase within the patience of who watches it.
const maxShowcaseTurns = 20

// Check gives a [FieldError] for a number out of range.
func (r ShowcaseRequest) Check() error {
	if l := (Limit{Min: 1, Max: maxShowcaseTurns}); r.Turns != nil && !l.Allows(float64(*r.Turns)) {
		return Refuse("turns", *r.Turns, l.String())
	}
	if l := (Limit{Min: 1, Max: MaxLine, Unit: characters}); r.Starter != nil && !l.Allows(float64(utf8.RuneCountInString(*r.Starter))) {
		return Refuse("starter", *r.Starter, l.String())
	}
	return nil
}

// Showcase is one conversation for the eye: each turn is sent to both lanes at once, with
// the same question, and counts in no statistics. The next turn begins when both answers
// have ended.
type Showcase struct {
	ID       string           `json:"id"`
	State    ShowcaseState    `json:"state"`
	Message  string           `json:"message,omitempty"` // why it failed, or was cancelled by something else than a request for that
	Topic    string           `json:"topic"`
	Turn     int              `json:"turn"` // under way, from 1; the last one once it has ended
	Turns    int              `json:"turns"`
	Question string           `json:"question"` // of the turn, the same for both, without the opening text; after the first turn it is about the answer of A
	A        ShowcaseSide     `json:"a"`
	B        ShowcaseSide     `json:"b"`
	Results  []ShowcaseResult `json:"results"` // of the turns that have ended on both, oldest first
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
	Worker       string   `json:"worker,omitempty"` // that answered, where the target tells
	Error        string   `json:"error,omitempty"`
}

// ShowcaseResult says who was first with a turn's first token, and by how much.
type ShowcaseResult struct {
	Turn  int      `json:"turn"`
	A     *float64 `json:"a,omitempty"` // TTFT, seconds
	B     *float64 `json:"b,omitempty"`
	First string   `json:"first,omitempty"` // lane; empty where one of them failed
	Lead  *float64 `json:"lead,omitempty"`  // seconds between the two first tokens
}
