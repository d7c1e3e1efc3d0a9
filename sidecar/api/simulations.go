package api

import (
	"fmt"
	"reflect"
	"time"
)

// SimulationRequest is a what-if question: a workload on a simulated cluster, at each
// level in each mode with each seed. What is left out is as recorded, on the profile
// that it names. A [SimulationResult] has it with every field set.
type SimulationRequest struct {
	Profile   *string `json:"profile,omitempty"`    // name of a [SimulationProfile]
	Levels    []int   `json:"levels,omitempty"`     // concurrencies
	Modes     []Mode  `json:"modes,omitempty"`      // of the router
	Seeds     *int    `json:"seeds,omitempty"`      // how many runs each point has
	FirstSeed *int    `json:"first_seed,omitempty"` // those after it follow one by one

	// The workload.
	Openings         *int          `json:"openings,omitempty"`       // different texts that open conversations; 0: one for each
	OpeningTokens    *int          `json:"opening_tokens,omitempty"` // of each of them; 0: 3,500 to 4,000, as recorded
	Turns            *Range        `json:"turns,omitempty"`
	OutputTokens     *Distribution `json:"output_tokens,omitempty"`   // of an answer, up to max_tokens; mean 0: always max_tokens
	MaxTokens        *int          `json:"max_tokens,omitempty"`      // cap of an answer
	QuestionTokens   *Distribution `json:"question_tokens,omitempty"` // that a follow-up adds to the prompt
	ThinkTimeSeconds *float64      `json:"think_time_seconds,omitempty"`
	StartRate        *float64      `json:"start_rate,omitempty"` // new conversations a second at most

	// The cluster.
	Workers      *int         `json:"workers,omitempty"`
	MaxBatchSize *int         `json:"max_batch_size,omitempty"` // sequences that a worker's iteration holds at most
	BlockSize    *int         `json:"block_size,omitempty"`     // tokens of a block of the KV cache
	KVTokens     *int         `json:"kv_tokens,omitempty"`      // that the KV cache of one worker holds, rounded down to whole blocks
	Speculation  *Speculation `json:"speculation,omitempty"`

	// Dynamo's router under kv, by the names of its own switches.
	OverlapWeight                   *float64 `json:"overlap_weight,omitempty"`
	Temperature                     *float64 `json:"temperature,omitempty"`
	RouterDecodeActiveRequestWeight *float64 `json:"router_decode_active_request_weight,omitempty"`
	RouterTrackOutputBlocks         *bool    `json:"router_track_output_blocks,omitempty"`
	RouterAssumeKVReuse             *bool    `json:"router_assume_kv_reuse,omitempty"`
}

// Bounds of a [SimulationRequest] as a whole.
const (
	MaxSimulationLevels = 40
	MaxSimulationModes  = 3
	// MaxSimulationWork is the most that one simulation computes: the conversations in
	// progress at all its levels, added up, times its modes, times its seeds.
	MaxSimulationWork = 150_000
)

// SimulationLimits are the ranges of the numbers of a [SimulationRequest], by their
// paths; of levels, that of each. A test holds the OpenAPI document against them.
var SimulationLimits = map[string]Limit{
	"levels":               {Min: 1, Max: 10_000},
	"seeds":                {Min: 1, Max: 12},
	"first_seed":           {Min: 0, Max: 1_000_000_000},
	"openings":             Limits["openings"],
	"opening_tokens":       {Min: 0, Max: MaxTokens},
	"turns.min":            Limits["turns.min"],
	"turns.max":            Limits["turns.max"],
	"output_tokens.mean":   Limits["output_tokens.mean"],
	"output_tokens.cv":     Limits["output_tokens.cv"],
	"max_tokens":           Limits["max_tokens"],
	"question_tokens.mean": {Min: 1, Max: MaxTokens},
	"question_tokens.cv":   {Min: 0, Max: 2},
	"think_time_seconds":   Limits["think_time"],
	"start_rate":           Limits["start_rate"],
	"workers":              {Min: 1, Max: 256},
	"max_batch_size":       {Min: 1, Max: 512, Unit: "sequences"},
	"block_size":           {Min: 1, Max: 1024, Unit: "tokens"},
	"kv_tokens":            {Min: 1024, Max: 1 << 30},
	"overlap_weight":       {Min: 0, Max: 1000},
	"temperature":          {Min: 0, Max: 1000},

	"router_decode_active_request_weight": {Min: 0, Max: 1000, Unit: "blocks"},
}

// Check holds what the request names against [SimulationLimits]. The error is a
// [FieldError].
func (r SimulationRequest) Check() error {
	for _, list := range []struct {
		field   string
		n, most int
	}{{"levels", len(r.Levels), MaxSimulationLevels}, {"modes", len(r.Modes), MaxSimulationModes}} {
		if list.n > list.most {
			return Refuse(list.field, fmt.Sprintf("a list of %d", list.n), fmt.Sprintf("at most %d of them", list.most))
		}
	}
	for _, level := range r.Levels {
		if l := SimulationLimits["levels"]; !l.Allows(float64(level)) {
			return Refuse("levels", level, l.String())
		}
	}
	return checkFields(SimulationLimits, "", reflect.ValueOf(r))
}

// CheckWork holds a request with every field set against [MaxSimulationWork]. The
// error is a [FieldError] that says what would lower it.
func (r SimulationRequest) CheckWork() error {
	conversations := 0
	for _, level := range r.Levels {
		conversations += level
	}
	modes, seeds := len(r.Modes), *r.Seeds
	if work := conversations * modes * seeds; work > MaxSimulationWork {
		return Refuse("levels", fmt.Sprintf("%d conversations over all levels × %d modes × %d seeds = %d", conversations, modes, seeds, work),
			fmt.Sprintf("at most %d: ask for lower or fewer levels, or for fewer seeds", MaxSimulationWork))
	}
	return nil
}

// SimulationList is what can be asked, and what has been.
type SimulationList struct {
	Available   bool                       `json:"available"`         // false: the configuration has turned simulations off
	Message     string                     `json:"message,omitempty"` // why not, and what to do
	Profiles    []SimulationProfile        `json:"profiles"`          // the built-in ones first
	Limits      map[string]SimulationLimit `json:"limits"`            // of the numbers of a request, by their paths; of levels, that of each
	MaxLevels   int                        `json:"max_levels"`        // how many a request may name
	MaxWork     int                        `json:"max_work"`          // conversations of all levels, added up, times modes, times seeds
	Simulations []SimulationSummary        `json:"simulations"`       // those that are kept, newest first
}

// SimulationLimit is what a number of a request may be: from min to max, both included.
type SimulationLimit struct {
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	Above bool    `json:"above,omitempty"` // min itself is too little
}

// SimulationProfile is a deployment that can be simulated. One whose file cannot be
// read has an error and no presets.
type SimulationProfile struct {
	Name         string                  `json:"name"`
	Title        string                  `json:"title"`
	Source       string                  `json:"source"`          // built in, or the name of its file
	Error        string                  `json:"error,omitempty"` // what is wrong with the file
	Deployment   Deployment              `json:"deployment"`
	Calibrated   bool                    `json:"calibrated"` // fitted to the baseline; the kinds of speculation say so each for itself
	Basis        string                  `json:"basis"`      // where its times come from
	Baseline     string                  `json:"baseline,omitempty"`
	Errors       *SimulationErrors       `json:"errors,omitempty"` // against the baseline; absent: nobody has computed them
	Speculations []SimulationSpeculation `json:"speculations"`
	Defaults     SimulationRequest       `json:"defaults"` // as recorded, with every field
	Presets      []SimulationPreset      `json:"presets"`
}

// SimulationSpeculation is one kind of speculation that a profile offers.
type SimulationSpeculation struct {
	Speculation    Speculation `json:"speculation"`
	Calibrated     bool        `json:"calibrated"` // fitted to measurements; otherwise it stands on assumptions
	Basis          string      `json:"basis"`
	TokensPerStep  float64     `json:"tokens_per_step"` // that a sequence gets from one iteration, mean
	AcceptanceRate *float64    `json:"acceptance_rate,omitempty"`
}

// SimulationErrors are how far a profile is from the recorded table that it was fitted
// to, mean absolute errors over its levels: relative ones, of the hit ratio the
// difference. One that is absent is not known.
type SimulationErrors struct {
	TTFTP50         *float64 `json:"ttft_p50,omitempty"`
	TTFTP95         *float64 `json:"ttft_p95,omitempty"`
	TPOTP50         *float64 `json:"tpot_p50,omitempty"`
	TokensPerSecond *float64 `json:"tokens_per_second,omitempty"`
	HitRatio        *float64 `json:"hit_ratio,omitempty"`
}

// SimulationPreset is a question that many ask.
type SimulationPreset struct {
	Name        string            `json:"name"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Request     SimulationRequest `json:"request"` // only what differs from the profile's defaults
}

// SimulationState says where a simulation stands.
type SimulationState string

// The states of a simulation. The last three are ends.
const (
	SimulationQueued    SimulationState = "queued"
	SimulationRunning   SimulationState = "running"
	SimulationDone      SimulationState = "done"
	SimulationCancelled SimulationState = "cancelled"
	SimulationFailed    SimulationState = "failed"
)

// Ended says whether nothing more will come.
func (s SimulationState) Ended() bool {
	return s == SimulationDone || s == SimulationCancelled || s == SimulationFailed
}

// SimulationSummary is a simulation without its points.
type SimulationSummary struct {
	ID      string            `json:"id"`
	State   SimulationState   `json:"state"`
	By      string            `json:"by"` // who asked
	Asked   time.Time         `json:"asked"`
	Ended   *time.Time        `json:"ended,omitempty"`
	Done    int               `json:"done"` // runs
	Of      int               `json:"of"`
	Request SimulationRequest `json:"request"` // with all defaults filled in
}

// BasisSimulated says of figures that none of them was measured.
const BasisSimulated = "simulated"

// SimulationResult is a simulation with what it has computed so far.
type SimulationResult struct {
	ID      string            `json:"id"`
	Request SimulationRequest `json:"request"` // with all defaults filled in
	Runs    int               `json:"runs"`    // levels × modes × seeds
	By      string            `json:"by"`      // who asked
	Asked   time.Time         `json:"asked"`
	Ended   *time.Time        `json:"ended,omitempty"`

	Basis      string   `json:"basis"`      // always [BasisSimulated]
	Calibrated bool     `json:"calibrated"` // the profile was fitted to measurements under this speculation
	Notes      []string `json:"notes"`      // what a reader of the figures must know, in sentences

	Progress    SimulationProgress `json:"progress"`
	Points      []SimulationPoint  `json:"points"`          // those of which there is a run, in the order of levels, then modes
	Error       string             `json:"error,omitempty"` // why it was cancelled or failed
	Explanation []string           `json:"explanation"`     // why the modes differ, in sentences; when it is done
}

// SimulationPoint is what came of one level in one mode, of the seeds computed so far.
type SimulationPoint struct {
	Concurrency int               `json:"concurrency"`
	Mode        Mode              `json:"mode"`
	Seeds       int               `json:"seeds"` // computed so far
	Basis       string            `json:"basis"` // always [BasisSimulated]
	Figures     SimulationFigures `json:"figures"`
}

// SimulationFigures are read of a run as the recorded results were: the mean of three
// windows of 60 s. One that is absent cannot be told.
type SimulationFigures struct {
	TTFTP50             *SimulationFigure `json:"ttft_p50,omitempty"`
	TTFTP95             *SimulationFigure `json:"ttft_p95,omitempty"`
	TPOTP50             *SimulationFigure `json:"tpot_p50,omitempty"`
	TokensPerSecond     *SimulationFigure `json:"tokens_per_second,omitempty"`
	RequestsPerSecond   *SimulationFigure `json:"requests_per_second,omitempty"`
	HitRatio            *SimulationFigure `json:"hit_ratio,omitempty"`
	Queue               *SimulationFigure `json:"queue,omitempty"`                 // requests that wait at their workers
	LargestQueueSeconds *SimulationFigure `json:"largest_queue_seconds,omitempty"` // longest wait of a turn at its worker
	InflightSpread      *SimulationFigure `json:"inflight_spread,omitempty"`       // requests in flight of the busiest worker less those of the idlest
	InflightSkew        *SimulationFigure `json:"inflight_skew,omitempty"`         // requests in flight of the busiest worker over the mean of all
	HerdingShare        *SimulationFigure `json:"herding_share,omitempty"`         // of first turns: went to a worker with over 10 % more requests than the workers' mean
	PrefilledTwiceShare *SimulationFigure `json:"prefilled_twice_share,omitempty"` // of prompt tokens: computed although another worker held them
	QueuedSeconds       *SimulationFigure `json:"queued_seconds,omitempty"`        // mean time of a turn until its worker begins to compute its prompt
	PrefillSeconds      *SimulationFigure `json:"prefill_seconds,omitempty"`       // mean time of a turn from there to its first token
	DecodeSeconds       *SimulationFigure `json:"decode_seconds,omitempty"`        // mean time of a turn from its first token to its last
}

// SimulationFigure is the mean over the seeds, with the least and the largest value.
type SimulationFigure struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// SimulationProgress is how far a simulation is.
type SimulationProgress struct {
	State       SimulationState `json:"state"`
	Ahead       int             `json:"ahead"` // simulations that come before this one
	Done        int             `json:"done"`  // runs
	Of          int             `json:"of"`
	SecondsLeft *float64        `json:"seconds_left,omitempty"` // estimated from the runs so far; absent: not known
}

// SimulationEnd is the last that is heard of a simulation.
type SimulationEnd struct {
	State       SimulationState `json:"state"`           // done, cancelled or failed
	Error       string          `json:"error,omitempty"` // why it was cancelled or failed
	Explanation []string        `json:"explanation"`     // why the modes differ, in sentences
}
