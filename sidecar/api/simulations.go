package api

import (
	"fmt"
	"time"
)

// SimulationRequest is a what-if question: a workload on a simulated cluster, at each level in each mode with each
// seed. Omitted fields have the defaults of the profile.
type SimulationRequest struct {
	Profile *string `json:"profile,omitempty"` // name of a `SimulationProfile`; default: that of the recorded H200s
	// numbers of conversations or rates; their sum × modes × seeds must not exceed 150,000, where a rate counts as the
	// arrivals of a minute
	Levels []Level `json:"levels,omitempty" minimum:"1" maximum:"10000" maxItems:"40"`
	// kv, round_robin, least_loaded
	Modes []Mode `json:"modes,omitempty" maxItems:"3"`
	// number of runs of each point
	Seeds *int `json:"seeds,omitempty" minimum:"1" maximum:"12"`
	// seed of the first run; each further run uses the next number
	FirstSeed *int `json:"first_seed,omitempty" minimum:"0" maximum:"1000000000"`

	// what conversations send, in place of the fields up to max_tokens; default: recorded
	Shape *TrafficShape `json:"shape,omitempty"`
	// the conversations of the load generator's trace, which begins anew at its end, in place of the shape; a rate is
	// another speed of the trace
	Trace    *bool `json:"trace,omitempty"`
	Openings *int  `json:"openings,omitempty"`
	// length of each opening text; 0: 3,500 to 4,000, as recorded
	OpeningTokens *int   `json:"opening_tokens,omitempty" minimum:"0" maximum:"131072"`
	Turns         *Range `json:"turns,omitempty"`
	// length of an answer, up to max_tokens; mean 0: always max_tokens
	OutputTokens   *Distribution `json:"output_tokens,omitempty"`
	MaxTokens      *int          `json:"max_tokens,omitempty"`
	QuestionTokens *Distribution `json:"question_tokens,omitempty"` // tokens that a follow-up adds to the prompt
	ThinkTime      *float64      `json:"think_time,omitempty"`
	StartRate      *float64      `json:"start_rate,omitempty"`
	// how conversations come at a rate; gamma: in bursts, by burstiness
	Arrivals *Arrivals `json:"arrivals,omitempty"`
	// shape of the gaps that are gamma: below 1, arrivals come in bursts
	Burstiness *float64 `json:"burstiness,omitempty"`
	// turns in flight from which arrivals at a rate, and further turns, are dropped and counted
	MaxInflight *int `json:"max_inflight,omitempty"`

	Workers *int `json:"workers,omitempty" minimum:"1" maximum:"256"`
	// largest number of sequences in a worker's iteration
	MaxBatchSize *int `json:"max_batch_size,omitempty" minimum:"1" maximum:"512" unit:"sequences"`
	// size of a block of the KV cache
	BlockSize *int `json:"block_size,omitempty" minimum:"1" maximum:"1024" unit:"tokens"`
	// capacity of one worker's KV cache, rounded down to whole blocks
	KVTokens    *int         `json:"kv_tokens,omitempty" minimum:"1024" maximum:"1073741824"`
	Speculation *Speculation `json:"speculation,omitempty"` // must be offered by the profile

	// weight of prefill relative to decode in the costs of Dynamo's KV router
	OverlapWeight *float64 `json:"overlap_weight,omitempty" minimum:"0" maximum:"1000"`
	// temperature of the KV router's choice; 0 always chooses the lowest cost
	Temperature *float64 `json:"temperature,omitempty" minimum:"0" maximum:"1000"`
	// Dynamo's --router-decode-active-request-weight
	RouterDecodeActiveRequestWeight *float64 `json:"router_decode_active_request_weight,omitempty" minimum:"0" maximum:"1000"`
	// Dynamo's --router-track-output-blocks
	RouterTrackOutputBlocks *bool `json:"router_track_output_blocks,omitempty"`
	// false: Dynamo's --no-router-assume-kv-reuse
	RouterAssumeKVReuse *bool `json:"router_assume_kv_reuse,omitempty"`
}

// MaxSimulationWork limits the size of a simulation: the sum of its levels × modes × seeds.
const MaxSimulationWork = 150_000

// MaxSimulationLevels limits the number of levels in a [SimulationRequest].
var MaxSimulationLevels = maxItems[SimulationRequest]("Levels")

// SimulationLimits holds the limits of the fields of a [SimulationRequest] by their paths. The limit of levels applies
// to each level.
var SimulationLimits = limitsOf[SimulationRequest]()

// CheckWork checks the size of a request against [MaxSimulationWork]. All fields of the request must be set. The error
// is a [*FieldError].
func (r SimulationRequest) CheckWork() error {
	conversations := 0.
	for _, level := range r.Levels {
		if level.Kind == Rate {
			level.Value *= 60 // about as many turns as of that many conversations in progress
		}
		conversations += level.Value
	}
	modes, seeds := len(r.Modes), *r.Seeds
	if work := conversations * float64(modes*seeds); work > MaxSimulationWork {
		return Refuse("levels", fmt.Sprintf("%.0f conversations over all levels × %d modes × %d seeds = %.0f",
			conversations, modes, seeds, work),
			fmt.Sprintf("at most %d: ask for lower or fewer levels, or for fewer seeds", MaxSimulationWork))
	}
	return nil
}

// SimulationList is the set of profiles and limits for requests, with the stored simulations.
type SimulationList struct {
	Available bool                    `json:"available"`         // false: simulations are disabled in the configuration
	Message   string                  `json:"message,omitempty"` // why they are not available, and what to do
	Profiles  List[SimulationProfile] `json:"profiles"`          // the built-in ones first
	// limits of the numbers in a request, by their paths; the limit of levels applies to each level
	Limits    Map[string, SimulationLimit] `json:"limits"`
	Trace     string                       `json:"trace,omitempty"` // the load generator's trace; absent: none
	MaxLevels int                          `json:"max_levels"`      // maximum number of levels in a request
	// maximum of the sum of the levels × modes × seeds
	MaxWork     int                     `json:"max_work"`
	Simulations List[SimulationSummary] `json:"simulations"` // stored simulations, newest first
}

// SimulationLimit is the range of a number in a request. Both ends are included unless `above` is true.
type SimulationLimit struct {
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	Above bool    `json:"above,omitempty"` // the number must be greater than min
}

// SimulationProfile is a deployment that can be simulated. A profile whose file cannot be read has an error and no
// presets.
type SimulationProfile struct {
	Name       string     `json:"name"`
	Title      string     `json:"title"`
	Source     string     `json:"source"`          // built in, or the name of the file
	Error      string     `json:"error,omitempty"` // why the file cannot be read
	Deployment Deployment `json:"deployment"`
	// the profile was fitted to the baseline; each kind of speculation has its own flag
	Calibrated bool   `json:"calibrated"`
	Basis      string `json:"basis"` // source of the times
	// name of the baseline that the profile was fitted to or is compared with
	Baseline     string                      `json:"baseline,omitempty"`
	Errors       *SimulationErrors           `json:"errors,omitempty"` // deviation from the baseline; absent: not computed
	Speculations List[SimulationSpeculation] `json:"speculations"`
	Defaults     SimulationRequest           `json:"defaults"` // the recorded workload, with every field set
	Presets      List[SimulationPreset]      `json:"presets"`
}

// SimulationSpeculation is one kind of speculation that a profile offers.
type SimulationSpeculation struct {
	Speculation    Speculation `json:"speculation"`
	Calibrated     bool        `json:"calibrated"` // fitted to measurements; otherwise based on assumptions
	Basis          string      `json:"basis"`
	TokensPerStep  float64     `json:"tokens_per_step"`           // mean output tokens of a sequence per iteration
	AcceptanceRate *float64    `json:"acceptance_rate,omitempty"` // accepted / drafted tokens; absent without a draft
}

// SimulationErrors are the mean absolute errors of a profile over the levels of its baseline. They are relative, except
// that of the hit ratio, which is a difference. Absent values are not known.
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
	Request     SimulationRequest `json:"request"` // only the fields that differ from the defaults of the profile
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

// Ended reports whether the state is final.
func (s SimulationState) Ended() bool {
	return s == SimulationDone || s == SimulationCancelled || s == SimulationFailed
}

// SimulationSummary is a simulation without its points.
type SimulationSummary struct {
	ID      string            `json:"id"`
	State   SimulationState   `json:"state"`
	By      string            `json:"by"` // requester, as in `Event`
	Asked   time.Time         `json:"asked"`
	Ended   *time.Time        `json:"ended,omitempty"`
	Done    int               `json:"done"`    // finished runs
	Of      int               `json:"of"`      // all runs
	Request SimulationRequest `json:"request"` // with every field set
}

// BasisSimulated is the basis of figures that were computed, not measured.
const BasisSimulated = "simulated"

// SimulationResult is a simulation with its results so far. None of its figures was measured.
type SimulationResult struct {
	ID      string            `json:"id"`
	Request SimulationRequest `json:"request"` // with every field set
	Runs    int               `json:"runs"`    // levels × modes × seeds
	By      string            `json:"by"`      // requester, as in `Event`
	Asked   time.Time         `json:"asked"`
	Ended   *time.Time        `json:"ended,omitempty"`

	Basis      string       `json:"basis" enum:"simulated"`
	Calibrated bool         `json:"calibrated"` // the profile was fitted to measurements under this speculation
	Notes      List[string] `json:"notes"`      // limits of the figures, in sentences

	Progress SimulationProgress `json:"progress"`
	// points with at least one finished run, by level, then by mode
	Points      List[SimulationPoint] `json:"points"`
	Error       string                `json:"error,omitempty"` // why the simulation was cancelled or failed
	Explanation List[string]          `json:"explanation"`     // why the modes differ, in sentences; empty before the end
}

// SimulationPoint is the result of one level in one mode, over the seeds computed so far.
type SimulationPoint struct {
	Level   Level             `json:"concurrency"`
	Mode    Mode              `json:"mode"`
	Seeds   int               `json:"seeds"` // computed so far
	Basis   string            `json:"basis" enum:"simulated"`
	Figures SimulationFigures `json:"figures"`
	// the queue grows without end at this rate; latencies would say how long the simulation took, and are absent
	Overloaded bool `json:"overloaded,omitempty"`
}

// SimulationFigures are figures that are computed like the recorded results: the mean of three windows of 60 s. Absent
// values are not available.
type SimulationFigures struct {
	TTFTP50           *SimulationFigure `json:"ttft_p50,omitempty"`
	TTFTP95           *SimulationFigure `json:"ttft_p95,omitempty"`
	TPOTP50           *SimulationFigure `json:"tpot_p50,omitempty"`
	TokensPerSecond   *SimulationFigure `json:"tokens_per_second,omitempty"`
	RequestsPerSecond *SimulationFigure `json:"requests_per_second,omitempty"`
	// share of prompt tokens that the cache of their worker holds
	HitRatio *SimulationFigure `json:"hit_ratio,omitempty"`
	Queue    *SimulationFigure `json:"queue,omitempty"` // requests that wait at their workers
	// longest wait of a turn at its worker
	LargestQueueSeconds *SimulationFigure `json:"largest_queue_seconds,omitempty"`
	// requests in flight on the busiest worker less those on the least busy one
	InflightSpread *SimulationFigure `json:"inflight_spread,omitempty"`
	// requests in flight on the busiest worker over the mean of all
	InflightSkew *SimulationFigure `json:"inflight_skew,omitempty"`
	// share of first turns that went to a worker with over 10 % more requests in flight than the mean of the workers
	HerdingShare *SimulationFigure `json:"herding_share,omitempty"`
	// share of prompt tokens that a worker computed although another worker held them
	PrefilledTwiceShare *SimulationFigure `json:"prefilled_twice_share,omitempty"`
	// mean time of a turn until its prefill begins
	QueuedSeconds *SimulationFigure `json:"queued_seconds,omitempty"`
	// mean time of a turn from the beginning of its prefill to its first token
	PrefillSeconds *SimulationFigure `json:"prefill_seconds,omitempty"`
	// mean time of a turn from its first token to its last
	DecodeSeconds *SimulationFigure `json:"decode_seconds,omitempty"`
	// arrivals and further turns that were dropped per second, since as many turns as max_inflight were in flight
	DroppedPerSecond *SimulationFigure `json:"dropped_per_second,omitempty"`
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
	Ahead       int             `json:"ahead"`                  // simulations in the queue before this one
	Done        int             `json:"done"`                   // finished runs
	Of          int             `json:"of"`                     // all runs
	SecondsLeft *float64        `json:"seconds_left,omitempty"` // estimated from the runs so far; absent: not known
}

// SimulationEnd is the final event of a simulation.
type SimulationEnd struct {
	State       SimulationState `json:"state"`           // done, cancelled or failed
	Error       string          `json:"error,omitempty"` // why the simulation was cancelled or failed
	Explanation List[string]    `json:"explanation"`     // why the modes differ, in sentences
}
