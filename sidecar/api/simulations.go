package api

import (
	"fmt"
	"time"
)

// SimulationRequest is a what-if question: a workload on a simulated cluster, at each level in each mode with each
// seed. What is left out is as recorded, on the profile that it names.
type SimulationRequest struct {
	Profile *string `json:"profile,omitempty"` // name of a `SimulationProfile`; without it, that of the recorded H200s
	// concurrencies; the conversations of all of them, times modes, times seeds, are 150,000 at most
	Levels []int `json:"levels,omitempty" minimum:"1" maximum:"10000" maxItems:"40"`
	// kv, round_robin, least_loaded
	Modes []Mode `json:"modes,omitempty" maxItems:"3"`
	// how many runs each point has
	Seeds *int `json:"seeds,omitempty" minimum:"1" maximum:"12"`
	// those after it follow one by one
	FirstSeed *int `json:"first_seed,omitempty" minimum:"0" maximum:"1000000000"`

	Openings *int `json:"openings,omitempty"`
	// of each of the opening texts; 0: 3,500 to 4,000, as recorded
	OpeningTokens *int   `json:"opening_tokens,omitempty" minimum:"0" maximum:"131072"`
	Turns         *Range `json:"turns,omitempty"`
	// of an answer, up to max_tokens; mean 0: always max_tokens
	OutputTokens     *Distribution `json:"output_tokens,omitempty"`
	MaxTokens        *int          `json:"max_tokens,omitempty"`
	QuestionTokens   *Distribution `json:"question_tokens,omitempty"` // that a follow-up adds to the prompt
	ThinkTimeSeconds *float64      `json:"think_time_seconds,omitempty"`
	StartRate        *float64      `json:"start_rate,omitempty"`

	Workers *int `json:"workers,omitempty" minimum:"1" maximum:"256"`
	// sequences that a worker's iteration holds at most
	MaxBatchSize *int `json:"max_batch_size,omitempty" minimum:"1" maximum:"512" unit:"sequences"`
	// tokens of a block of the KV cache
	BlockSize *int `json:"block_size,omitempty" minimum:"1" maximum:"1024" unit:"tokens"`
	// that the KV cache of one worker holds, rounded down to whole blocks
	KVTokens    *int         `json:"kv_tokens,omitempty" minimum:"1024" maximum:"1073741824"`
	Speculation *Speculation `json:"speculation,omitempty"` // one that the profile offers

	// of prefill against decode in the costs of Dynamo's KV router
	OverlapWeight *float64 `json:"overlap_weight,omitempty" minimum:"0" maximum:"1000"`
	// of the KV router's choice; 0 takes the lowest cost
	Temperature *float64 `json:"temperature,omitempty" minimum:"0" maximum:"1000"`
	// Dynamo's --router-decode-active-request-weight
	RouterDecodeActiveRequestWeight *float64 `json:"router_decode_active_request_weight,omitempty" minimum:"0" maximum:"1000"`
	// Dynamo's --router-track-output-blocks
	RouterTrackOutputBlocks *bool `json:"router_track_output_blocks,omitempty"`
	// false: Dynamo's --no-router-assume-kv-reuse
	RouterAssumeKVReuse *bool `json:"router_assume_kv_reuse,omitempty"`
}

// MaxSimulationWork is the most that one simulation computes: the conversations in progress at all its levels, added
// up, times its modes, times its seeds.
const MaxSimulationWork = 150_000

// MaxSimulationLevels is how many levels a [SimulationRequest] may name.
var MaxSimulationLevels = maxItems[SimulationRequest]("Levels")

// SimulationLimits are the limits of a [SimulationRequest], by the paths of its fields; of levels, that of each.
var SimulationLimits = limitsOf[SimulationRequest]()

// CheckWork holds a request with every field set against [MaxSimulationWork]. The
// error is a [FieldError] that says what would lower it.
func (r SimulationRequest) CheckWork() error {
	conversations := 0
	for _, level := range r.Levels {
		conversations += level
	}
	modes, seeds := len(r.Modes), *r.Seeds
	if work := conversations * modes * seeds; work > MaxSimulationWork {
		return Refuse("levels", fmt.Sprintf("%d conversations over all levels × %d modes × %d seeds = %d",
			conversations, modes, seeds, work),
			fmt.Sprintf("at most %d: ask for lower or fewer levels, or for fewer seeds", MaxSimulationWork))
	}
	return nil
}

// SimulationList is what can be requested, and earlier requests.
type SimulationList struct {
	Available bool                    `json:"available"`         // false: simulations are disabled in the configuration
	Message   string                  `json:"message,omitempty"` // why not, and what to do
	Profiles  List[SimulationProfile] `json:"profiles"`          // the built-in ones first
	// of the numbers of a request, by their paths; of levels, that of each
	Limits    Map[string, SimulationLimit] `json:"limits"`
	MaxLevels int                          `json:"max_levels"` // how many a request may name
	// conversations of all levels, added up, times modes, times seeds
	MaxWork     int                     `json:"max_work"`
	Simulations List[SimulationSummary] `json:"simulations"` // those that are kept, newest first
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
	Name       string     `json:"name"`
	Title      string     `json:"title"`
	Source     string     `json:"source"`          // built in, or the name of its file
	Error      string     `json:"error,omitempty"` // what is wrong with the file
	Deployment Deployment `json:"deployment"`
	// fitted to the baseline; each kind of speculation has its own flag
	Calibrated bool   `json:"calibrated"`
	Basis      string `json:"basis"` // where its times come from
	// name of the baseline that it was fitted to or is compared with
	Baseline     string                      `json:"baseline,omitempty"`
	Errors       *SimulationErrors           `json:"errors,omitempty"` // against the baseline; absent: not computed
	Speculations List[SimulationSpeculation] `json:"speculations"`
	Defaults     SimulationRequest           `json:"defaults"` // as recorded, with every field set
	Presets      List[SimulationPreset]      `json:"presets"`
}

// SimulationSpeculation is one kind of speculation that a profile offers.
type SimulationSpeculation struct {
	Speculation    Speculation `json:"speculation"`
	Calibrated     bool        `json:"calibrated"` // fitted to measurements; otherwise based on assumptions
	Basis          string      `json:"basis"`
	TokensPerStep  float64     `json:"tokens_per_step"`           // that a sequence gets from one iteration, mean
	AcceptanceRate *float64    `json:"acceptance_rate,omitempty"` // of the drafted tokens; absent without a draft
}

// SimulationErrors says how far a profile is from the recorded table that it was fitted to: mean absolute errors over
// its levels, relative ones, of the hit ratio the difference. One that is absent is not known.
type SimulationErrors struct {
	TTFTP50         *float64 `json:"ttft_p50,omitempty"`
	TTFTP95         *float64 `json:"ttft_p95,omitempty"`
	TPOTP50         *float64 `json:"tpot_p50,omitempty"`
	TokensPerSecond *float64 `json:"tokens_per_second,omitempty"`
	HitRatio        *float64 `json:"hit_ratio,omitempty"`
}

// SimulationPreset is a predefined simulation request.
type SimulationPreset struct {
	Name        string            `json:"name"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Request     SimulationRequest `json:"request"` // only what differs from the defaults of the profile
}

// SimulationState is the state of a simulation. The last three are final.
type SimulationState string

// The states of a simulation.
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
	Request SimulationRequest `json:"request"` // with every field set
}

// BasisSimulated says of figures that none of them was measured.
const BasisSimulated = "simulated"

// SimulationResult is a simulation with what it has computed so far. None of its figures was measured.
type SimulationResult struct {
	ID      string            `json:"id"`
	Request SimulationRequest `json:"request"` // with every field set
	Runs    int               `json:"runs"`    // levels × modes × seeds
	By      string            `json:"by"`      // who asked
	Asked   time.Time         `json:"asked"`
	Ended   *time.Time        `json:"ended,omitempty"`

	Basis      string       `json:"basis" enum:"simulated"`
	Calibrated bool         `json:"calibrated"` // the profile was fitted to measurements under this speculation
	Notes      List[string] `json:"notes"`      // what a reader of the figures must know, in sentences

	Progress SimulationProgress `json:"progress"`
	// those of which there is a run, in the order of levels, then modes
	Points      List[SimulationPoint] `json:"points"`
	Error       string                `json:"error,omitempty"` // why it was cancelled or failed
	Explanation List[string]          `json:"explanation"`     // why the modes differ, in sentences; when it is done
}

// SimulationPoint is the result of one level in one mode, over the seeds computed so far.
type SimulationPoint struct {
	Concurrency int               `json:"concurrency"`
	Mode        Mode              `json:"mode"`
	Seeds       int               `json:"seeds"` // computed so far
	Basis       string            `json:"basis" enum:"simulated"`
	Figures     SimulationFigures `json:"figures"`
}

// SimulationFigures are computed like the recorded results: the mean of three windows of 60 s. Absent: not available.
type SimulationFigures struct {
	TTFTP50           *SimulationFigure `json:"ttft_p50,omitempty"`
	TTFTP95           *SimulationFigure `json:"ttft_p95,omitempty"`
	TPOTP50           *SimulationFigure `json:"tpot_p50,omitempty"`
	TokensPerSecond   *SimulationFigure `json:"tokens_per_second,omitempty"`
	RequestsPerSecond *SimulationFigure `json:"requests_per_second,omitempty"`
	// of the prompt tokens: found in the cache of their worker
	HitRatio *SimulationFigure `json:"hit_ratio,omitempty"`
	Queue    *SimulationFigure `json:"queue,omitempty"` // requests that wait at their workers
	// longest wait of a turn at its worker
	LargestQueueSeconds *SimulationFigure `json:"largest_queue_seconds,omitempty"`
	// requests in flight of the busiest worker less those of the idlest
	InflightSpread *SimulationFigure `json:"inflight_spread,omitempty"`
	// requests in flight of the busiest worker over the mean of all
	InflightSkew *SimulationFigure `json:"inflight_skew,omitempty"`
	// of first turns: went to a worker with over 10 % more requests in flight than the mean of the workers
	HerdingShare *SimulationFigure `json:"herding_share,omitempty"`
	// of prompt tokens: computed although another worker held them
	PrefilledTwiceShare *SimulationFigure `json:"prefilled_twice_share,omitempty"`
	// mean time of a turn until its worker begins to compute its prompt
	QueuedSeconds *SimulationFigure `json:"queued_seconds,omitempty"`
	// mean time of a turn from there to its first token
	PrefillSeconds *SimulationFigure `json:"prefill_seconds,omitempty"`
	// mean time of a turn from its first token to its last
	DecodeSeconds *SimulationFigure `json:"decode_seconds,omitempty"`
}

// SimulationFigure is the mean over the seeds, with the least and the largest value.
type SimulationFigure struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// SimulationProgress is the progress of a simulation.
type SimulationProgress struct {
	State       SimulationState `json:"state"`
	Ahead       int             `json:"ahead"` // simulations that come before this one
	Done        int             `json:"done"`  // runs
	Of          int             `json:"of"`
	SecondsLeft *float64        `json:"seconds_left,omitempty"` // estimated from the runs so far; absent: not known
}

// SimulationEnd is the final event of a simulation.
type SimulationEnd struct {
	State       SimulationState `json:"state"`           // done, cancelled or failed
	Error       string          `json:"error,omitempty"` // why it was cancelled or failed
	Explanation List[string]    `json:"explanation"`     // why the modes differ, in sentences
}
