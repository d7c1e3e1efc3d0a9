package api

import (
	"cmp"
	"reflect"
	"time"
)

// Mode is a routing mode of the serving cluster.
type Mode string

// The modes that the product knows.
const (
	ModeKV          Mode = "kv"
	ModeRoundRobin  Mode = "round_robin"
	ModeLeastLoaded Mode = "least_loaded"
	ModeUnknown     Mode = "unknown" // neither a driver, nor the router's metrics, nor the operator has reported a mode
)

// Modes lists all modes, including [ModeUnknown].
var Modes = []Mode{ModeKV, ModeRoundRobin, ModeLeastLoaded, ModeUnknown}

// ModeSource is the source of the current mode.
type ModeSource string

// The sources of a mode. The operator is also the source of a mode that was reported as not known.
const (
	ModeFromOperator ModeSource = "operator" // the configuration or a report by the operator
	ModeFromDriver   ModeSource = "driver"   // the driver asks the cluster, or routes the turns itself
	ModeFromMetrics  ModeSource = "metrics"  // the router's own metrics
)

// Speculation is the kind of speculative decoding.
type Speculation string

// The kinds of speculation.
const (
	SpeculationOff         Speculation = "off"
	SpeculationDraft       Speculation = "draft"
	SpeculationEagle3      Speculation = "eagle3"
	SpeculationNotRecorded Speculation = "not_recorded" // the documents of a baseline disagree or do not name it
)

// Arrivals is the distribution of the time between two conversations that begin at a rate. All have the same mean.
type Arrivals string

// The distributions.
const (
	ArrivalsConstant Arrivals = "constant" // equal intervals
	ArrivalsPoisson  Arrivals = "poisson"  // exponential: each moment is as likely as any other
	ArrivalsGamma    Arrivals = "gamma"    // burstier than poisson below a burstiness of 1, more regular above
)

// ArrivalKinds lists all distributions of arrivals.
var ArrivalKinds = []Arrivals{ArrivalsConstant, ArrivalsPoisson, ArrivalsGamma}

// Speculations lists all kinds of speculation.
var Speculations = []Speculation{SpeculationOff, SpeculationDraft, SpeculationEagle3, SpeculationNotRecorded}

// ErrorClass is the way in which a turn failed.
type ErrorClass string

// The classes of a failed turn. Every failed turn has exactly one.
const (
	ErrorConnect     ErrorClass = "connect"      // no connection, refused, reset before a response, TLS, DNS
	ErrorTimeout     ErrorClass = "timeout"      // connected, but no first token in time
	ErrorStall       ErrorClass = "stall"        // the stream went silent after its first token
	ErrorRateLimited ErrorClass = "rate_limited" // HTTP 429
	ErrorBusy        ErrorClass = "busy"         // HTTP 529: the router sheds load
	ErrorHTTP4xx     ErrorClass = "http_4xx"     // any other 4xx
	ErrorHTTP5xx     ErrorClass = "http_5xx"     // any 5xx
	ErrorStream      ErrorClass = "stream_error" // HTTP 200 with an error inside the stream
	ErrorTruncated   ErrorClass = "truncated"    // the stream ended without [DONE]
	ErrorMalformed   ErrorClass = "malformed"    // the answer is not a stream of chat completion chunks
	ErrorOverrun     ErrorClass = "overrun"      // the answer exceeded the time limit or the size limit
	ErrorEmpty       ErrorClass = "empty"        // the answer ended without any content
)

// ErrorMember is the class of a cancelled turn whose load generator was lost. It says nothing of the target, and is no
// class of a failed turn.
const ErrorMember ErrorClass = "member"

// ErrorClasses lists every class in the order of the documentation.
var ErrorClasses = []ErrorClass{
	ErrorConnect, ErrorTimeout, ErrorStall, ErrorRateLimited, ErrorBusy,
	ErrorHTTP4xx, ErrorHTTP5xx, ErrorStream, ErrorTruncated, ErrorMalformed, ErrorOverrun, ErrorEmpty,
}

// TurnStatus is the way in which a turn ended. A cancelled turn is neither a success nor an error.
type TurnStatus string

// The ways a turn ends.
const (
	TurnOK        TurnStatus = "ok"
	TurnError     TurnStatus = "error"
	TurnCancelled TurnStatus = "cancelled"
)

// ConversationStatus is the state of a conversation.
type ConversationStatus string

// The states of a conversation.
const (
	ConversationActive    ConversationStatus = "active" // in progress
	ConversationCompleted ConversationStatus = "completed"
	ConversationRetired   ConversationStatus = "retired" // ended early: lower concurrency, a drain, or a full context
	ConversationCancelled ConversationStatus = "cancelled"
	ConversationError     ConversationStatus = "error"
)

// ConversationStatuses lists all states of a conversation.
var ConversationStatuses = []ConversationStatus{
	ConversationActive, ConversationCompleted, ConversationRetired, ConversationCancelled, ConversationError,
}

// Phase is the phase of a lane.
type Phase string

// The phases of a lane.
const (
	PhaseStopped   Phase = "stopped"
	PhaseRunning   Phase = "running"
	PhaseDraining  Phase = "draining"
	PhaseSwitching Phase = "switching" // a mode change is in progress; no turns are sent
)

// DefaultLane is the lane of a call that names none.
const DefaultLane = "main"

// ThisTarget is the name of the baseline of a lane's own settled steps. A request for it returns the own baseline of
// the lane that is asked. In the list of baselines it is the one of [DefaultLane]; see [OwnBaseline] for other lanes.
const ThisTarget = "this target"

// OwnBaseline returns the name of a lane's own baseline in the list of baselines.
func OwnBaseline(lane string) string {
	if lane == DefaultLane {
		return ThisTarget
	}
	return ThisTarget + " - " + lane
}

// Range is an inclusive range of whole numbers.
type Range struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// Concurrency is the requested and the actual number of conversations in progress.
type Concurrency struct {
	Target Level `json:"target"`
	Actual int   `json:"actual"`
	// arrivals and further turns that were dropped since the start, since as many turns as `max_inflight` were in flight
	Dropped int64 `json:"dropped,omitempty"`
	// at a rate: the number in progress grows without end, so that latencies say how long the run took
	Grows bool `json:"grows,omitempty"`
	// limit that turns or the next conversation wait for most of the time; absent: none
	LimitedBy Limiter `json:"limited_by,omitempty"`
}

// Limiter is a setting that limits the load.
type Limiter string

// The limiters.
const (
	LimitedByTargetRPS Limiter = "target_rps"
	LimitedByStartRate Limiter = "start_rate"
)

// Held is the steady number of conversations that a limiter allows, below the requested concurrency.
type Held struct {
	By Limiter `json:"by"`
	At int     `json:"at"` // mean number of conversations over 30 s
}

// Deployment is the serving stack: engine, model, GPU, workers, speculation, versions and settings. Absent values are
// not known.
type Deployment struct {
	Kind           TargetKind  `json:"kind,omitempty"` // absent: not known
	Engine         string      `json:"engine,omitempty"`
	Model          string      `json:"model,omitempty"`
	GPU            string      `json:"gpu,omitempty"`
	Workers        int         `json:"workers,omitempty"`
	TensorParallel int         `json:"tensor_parallel,omitempty"`
	Speculation    Speculation `json:"speculation,omitempty"`

	Dynamo                string  `json:"dynamo,omitempty"`       // version
	Kubernetes            string  `json:"kubernetes,omitempty"`   // version
	WorkerImage           string  `json:"worker_image,omitempty"` // container image of a worker
	Serving               string  `json:"serving,omitempty"`      // aggregated or disaggregated
	BlockSize             int     `json:"block_size,omitempty"`   // tokens of a block of the KV cache
	MaxBatchSize          int     `json:"max_batch_size,omitempty"`
	MaxNumTokens          int     `json:"max_num_tokens,omitempty"` // largest number of tokens in a worker's iteration
	ChunkedPrefill        *bool   `json:"chunked_prefill,omitempty"`
	OverlapScheduler      *bool   `json:"overlap_scheduler,omitempty"`
	KVCacheDtype          string  `json:"kv_cache_dtype,omitempty"`
	FreeGPUMemoryFraction float64 `json:"free_gpu_memory_fraction,omitempty"` // share for the KV cache, 0 to 1

	GPUHour float64 `json:"gpu_hour,omitempty"` // price of an hour of one GPU, in dollars
}

// WorkloadShape is the part of a workload's configuration that affects its results at a concurrency. A baseline
// contains it, so that differences can be listed. It leaves out the seed, which chooses among equivalent conversations,
// and the start rate: if that limits the concurrency, the row has the concurrency that was reached. Values that rows of
// former versions lack are not known.
type WorkloadShape struct {
	Turns     Range `json:"turns"`
	MaxTokens int   `json:"max_tokens"`
	// number of different opening texts; 0: one for each conversation; absent: not known
	Openings *int `json:"openings,omitempty"`
	// tokens of an opening text; absent: 3,500 to 4,000, as recorded
	OpeningTokens int           `json:"opening_tokens,omitempty"`
	OutputTokens  *Distribution `json:"output_tokens,omitempty"` // absent: the model ends its answers
	Corpus        string        `json:"corpus,omitempty"`
	Followup      string        `json:"followup,omitempty"` // source of the follow-up questions
	// the user's pause before a follow-up question; absent: not known
	ThinkTime *float64  `json:"think_time,omitempty"`
	TargetRPS *float64  `json:"target_rps,omitempty"` // limit of requests per second; 0: none; absent: not known
	Arrivals  string    `json:"arrivals,omitempty"`   // how conversations come at a rate; absent: as others end
	Timeouts  *Timeouts `json:"timeouts,omitempty"`   // absent: not known
	Request   string    `json:"request,omitempty"`    // further fields of each request's body, as JSON; absent: none
	// how requests name their conversation to the router, a value of target.session; absent: they do not
	Session string `json:"session,omitempty"`
	// requests had no X-Request-Id, by configuration or because the router routes by it
	NoRequestID bool `json:"no_request_id,omitempty"`
	// the planned traffic, such as a trace with its checksum, and how long its answers are; turns, openings,
	// output_tokens, corpus and followup then follow from it; absent: conversations about the texts of the corpus
	Traffic string `json:"traffic,omitempty"`
}

// RecordedFollowup is [WorkloadShape.Followup] of the recorded runs.
const RecordedFollowup = "the same short sentence"

// Timeouts are the limits of a turn's times in seconds. A turn that exceeds one is an error.
type Timeouts struct {
	FirstToken float64 `json:"first_token"`
	Stall      float64 `json:"stall"` // between two tokens
	Turn       float64 `json:"turn"`
}

// Distribution is a mean and a coefficient of variation (standard deviation over mean).
type Distribution struct {
	Mean float64 `json:"mean"`
	CV   float64 `json:"cv"`
}

// Snapshot is the current state for screens. The WebSocket, Grafana Live and the page share this schema.
type Snapshot struct {
	Time     time.Time          `json:"time"`
	Lanes    List[LaneSnapshot] `json:"lanes"`
	Settings Settings           `json:"settings"`
	Client   ClientHealth       `json:"client"`
	// processes that send the turns for this one, by name; absent: this one sends them itself
	Members []Member `json:"members,omitempty"`
	// why turns are not stored, which stored data is damaged, or what the store did about either
	StoreProblem string  `json:"store_problem,omitempty"`
	Replay       *Replay `json:"replay,omitempty"` // absent: live
}

// Replay is the position in a recording. The times of a recorded snapshot are moved into the present.
type Replay struct {
	RecordedAt time.Time `json:"recorded_at"` // start of the recording
	Position   float64   `json:"position"`    // seconds since the start of the recording
	Length     float64   `json:"length"`      // seconds after which the recording starts again
}

// LaneSnapshot is one lane's part of a Snapshot.
type LaneSnapshot struct {
	Name       string            `json:"name"`
	Target     Target            `json:"target"`
	State      State             `json:"state"`
	Window     Window            `json:"window"`
	Totals     Totals            `json:"totals"`
	TTFTByTurn List[TurnFigures] `json:"ttft_by_turn"` // figures of the last 60 s by turn number, "6+" last
	KV         KV                `json:"kv"`
	Cluster    Cluster           `json:"cluster"`
	Baseline   Comparison        `json:"baseline"`
	// workers, or else UUIDs of GPUs, that also serve another lane, so that the lanes affect each other's figures; absent:
	// none known
	SharedWorkers []string `json:"shared_workers,omitempty"`
	Cost          Cost     `json:"cost,omitzero"` // over the last 60 s
}

// History is the course of a lane's figures over the last ten minutes, oldest first, one point a second. It is shorter
// after the start of the load generator.
type History struct {
	Points List[HistoryPoint] `json:"points" maxItems:"600"`
}

// HistoryPoint is a lane's figures at one second. Figures are absent while nothing runs.
type HistoryPoint struct {
	Time        time.Time   `json:"time"`
	Running     bool        `json:"running"`
	Settling    bool        `json:"settling,omitempty"` // nothing is compared yet: the step has just begun
	Concurrency int         `json:"concurrency"`        // actual number of conversations
	Arm         string      `json:"arm,omitempty"`      // arm in force; absent: none of the configuration
	Mode        Mode        `json:"mode"`
	Speculation Speculation `json:"speculation"`
	// seconds, over the turns of the last 60 s; absent before the first turn has ended
	TTFTP50 *float64 `json:"ttft_p50,omitempty"`
	// seconds, over the turns of the last 60 s; absent before the first turn has ended
	TTFTP95 *float64 `json:"ttft_p95,omitempty"`
	// over the last 60 s
	OutputTokensPerSecond *float64 `json:"output_tokens_per_second,omitempty"`
	// cached / prompt tokens over the last 60 s; absent before the first turn has ended, and if nothing reports it
	KVHitRatio *float64 `json:"kv_hit_ratio,omitempty"`
}

// TargetKind is the kind of servers behind the target.
type TargetKind string

// The kinds of a target.
const (
	TargetReal      TargetKind = "real"      // engines on GPUs
	TargetSimulated TargetKind = "simulated" // the simulated cluster
	TargetMocked    TargetKind = "mocked"    // a real router in front of mock workers
	TargetUnknown   TargetKind = "unknown"
)

// TargetID is the identity of a target. Two targets are the same if their ids are equal.
type TargetID struct {
	URL   string `json:"url"`
	Model string `json:"model,omitempty"`
}

// Target is the server under load.
type Target struct {
	Kind       TargetKind `json:"kind"`
	URL        string     `json:"url"`
	Endpoint   string     `json:"endpoint,omitempty"` // address of the turns, if each mode has an address of its own
	Model      string     `json:"model,omitempty"`    // absent until the target reports it
	Deployment Deployment `json:"deployment"`
	// features in the cluster's own description; absent features are not known
	Features  []Feature `json:"features,omitempty"`
	Reachable bool      `json:"reachable"`
	Problem   string    `json:"problem,omitempty"` // why turns are failing, and what to do
	// HTTP status of the failure; absent: there is none, as without a connection
	ProblemStatus int      `json:"problem_status,omitempty"`
	Notices       []string `json:"notices,omitempty"` // defects of a target that serves, and settings that it contradicts
	// router in front of the workers, a value of target.router: configured, or recognized by its answers or metrics;
	// absent: not known
	Router string `json:"router,omitempty"`
	// source of a turn's worker: nvext.worker_id, or the name of a response header; absent: the worker is not known
	WorkerSource string `json:"worker_source,omitempty"`
	// source of the cached tokens of turns: usage, or the counters of the frontend or the engines; absent: not known
	CachedSource string `json:"cached_source,omitempty" enum:"usage,frontend,engine"`
	// number of requests that belong to no turn: checks of the target and of its extensions
	Probes int64 `json:"probes"`
}

// Feature is a feature of Dynamo that the deployment uses or does not use.
type Feature struct {
	Name     string `json:"name" enum:"disaggregated,grove,kai,kvbm,nixl,planner"`
	InUse    bool   `json:"in_use"`
	Evidence string `json:"evidence"` // sentence on what was read, and where
}

// The names of features.
const (
	FeatureDisaggregated = "disaggregated"
	FeatureGrove         = "grove"
	FeatureKAI           = "kai"
	FeatureKVBM          = "kvbm"
	FeatureNIXL          = "nixl"
	FeaturePlanner       = "planner"
)

// ModeState is a way of serving: an arm of the configuration, or a routing mode with its speculation. Two are the same
// if all three fields are equal.
type ModeState struct {
	// name of the arm; absent: a mode that no arm of the configuration names
	Arm         string      `json:"arm,omitempty" pattern:"^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,59}$"`
	Mode        Mode        `json:"mode"` // for an arm, the mode of recorded results to compare with; unknown: none
	Speculation Speculation `json:"speculation"`
}

// ModeChange is a mode change in progress, or the last one if it failed.
type ModeChange struct {
	From    ModeState `json:"from"`
	To      ModeState `json:"to"`
	Phase   string    `json:"phase"`   // stopping, switching, waiting_for_operator, starting, rolling_back, failed
	Message string    `json:"message"` // progress, or what the operator must do
	Started time.Time `json:"started"`
	Failed  bool      `json:"failed"`
}

// Simulation is the report of a simulated cluster about itself.
type Simulation struct {
	Profile string `json:"profile"` // name of the GPU profile
	// false: the timing in the mode in force is assumed, not fitted to recorded results
	Calibrated bool    `json:"calibrated"`
	Speed      float64 `json:"speed"` // simulation speed as a multiple of real time
}

// Step is a time with unchanged concurrency, mode and workload settings.
type Step struct {
	ID      int64     `json:"id"`
	Started time.Time `json:"started"`
	// when the actual concurrency first equalled the target, or became steady below it
	Settled *time.Time `json:"settled,omitempty"`
	// lower concurrency at which the step settled, and to which its figures belong; absent: it did not settle lower
	Held    *Held `json:"held,omitempty"`
	Counted int   `json:"counted"` // turns that count for comparisons so far
	// what the step began with: caches that kept their contents, or cold ones; absent: it began with no change of mode
	Caches StepCaches `json:"caches,omitempty"`
}

// StepCaches is what a change of mode did to the caches.
type StepCaches string

// The states of the caches after a change of mode.
const (
	CachesKept StepCaches = "kept" // the workers kept their contents
	CachesCold StepCaches = "cold" // they were emptied, or another nonce opens every conversation
)

// QuestionerKind is the kind of source of follow-up questions.
type QuestionerKind string

// The kinds of a questioner.
const (
	QuestionerBuiltIn QuestionerKind = "built_in" // templates about phrases of the last answer
	QuestionerFixed   QuestionerKind = "fixed"    // one sentence, the same at every turn
	QuestionerModel   QuestionerKind = "model"    // an end-user model, and the built-in templates when it fails
)

// State is a lane's run state.
type State struct {
	Running     bool            `json:"running"`
	Phase       Phase           `json:"phase"`
	Concurrency Concurrency     `json:"concurrency"`
	Step        Step            `json:"step"`
	Settling    bool            `json:"settling"`      // true until 60 s of counted turns exist
	Arm         string          `json:"arm,omitempty"` // arm in force; absent: none of the configuration
	Mode        Mode            `json:"mode"`
	ModeFrom    ModeSource      `json:"mode_from,omitempty"` // absent: the mode is not known yet
	Speculation Speculation     `json:"speculation"`
	Driver      string          `json:"driver"`
	Modes       List[ModeState] `json:"modes"` // modes and arms that the driver offers
	ModeChange  *ModeChange     `json:"mode_change,omitempty"`
	// absent: the cluster is not simulated, or has not reported yet
	Simulation *Simulation `json:"simulation,omitempty"`
	Started    *time.Time  `json:"started,omitempty"` // time of the last start
	// at the last start, by the first turns of at most 1,000 conversations; absent: not known
	Caches     *Caches        `json:"caches,omitempty"`
	Shape      WorkloadShape  `json:"shape"`
	Questioner QuestionerKind `json:"questioner"`
	StartRate  float64        `json:"start_rate"`
	TargetRPS  float64        `json:"target_rps"`

	Arrivals     Arrivals     `json:"arrivals"`
	Burstiness   float64      `json:"burstiness"`
	MaxInflight  int          `json:"max_inflight"`
	TrafficShape TrafficShape `json:"traffic_shape"`

	// sweep that owns the lane; nothing else can start, change or switch the lane
	Sweep *SweepSummary `json:"sweep,omitempty"`
	// a showcase is in progress: an extra conversation that is not included in any figure
	Showcase bool `json:"showcase,omitempty"`
}

// Caches is what the first turns of a run show of the caches at its beginning.
type Caches struct {
	State CachesState `json:"state"`
	SweepFirstTurns
	// share of all cached tokens that first turns found, which the openings that conversations share explain where the
	// caches were cold; absent without cached tokens, and while the run is in progress
	SharedRatio *float64 `json:"shared_ratio,omitempty"`
}

// CachesState is what the caches held at the beginning of a run.
type CachesState string

// The states of caches.
const (
	CachesWereCold    CachesState = "cold"
	CachesWereWarm    CachesState = "warm" // first turns found cached tokens that nothing in the run explains
	CachesWereUnknown CachesState = "unknown"
)

// Quantiles are the p50 and p95 of one metric in seconds, over n values. The intervals are 95 % confidence intervals
// from order statistics, for the number of independent values. They are absent if that number is too small.
type Quantiles struct {
	P50          *float64    `json:"p50,omitempty"`
	P95          *float64    `json:"p95,omitempty"`
	P99          *float64    `json:"p99,omitempty"`
	Mean         *float64    `json:"mean,omitempty"` // of TTFT, and in the report of a run
	Min          *float64    `json:"min,omitempty"`  // as p90 and max only in the report of a run; of ITL within 0.4 %
	P90          *float64    `json:"p90,omitempty"`
	Max          *float64    `json:"max,omitempty"`
	N            int         `json:"n"`
	P50Interval  *[2]float64 `json:"p50_interval,omitempty"`
	P95Interval  *[2]float64 `json:"p95_interval,omitempty"`
	MeanInterval *[2]float64 `json:"mean_interval,omitempty"`
	// ITL is estimated, because chunks did not report their token counts
	Estimated bool `json:"estimated,omitempty"`
	Unknown   int  `json:"unknown,omitempty"` // turns that ended well without a known value
	// turns that were cut at the end of the run, which count as at least as long as they took until then
	Cut     int      `json:"cut,omitempty"`
	AtLeast []string `json:"at_least,omitempty"` // the figures that depend on turns that were cut: min, p50, p90, p95, p99, max, mean
	// largest own error of the load generator, which the interval includes; absent: not known
	P50Error  *float64 `json:"p50_error,omitempty"`
	P95Error  *float64 `json:"p95_error,omitempty"`
	MeanError *float64 `json:"mean_error,omitempty"`
	Shape     *Shape   `json:"-"` // nil: not known
	// Late is how much of the figures is the lateness of turns that were sent after their intended moments; nil: nothing.
	Late *LateShare `json:"-"`
}

// LateShare is by how many seconds figures would be less had all turns been sent at their intended moments.
type LateShare struct{ P50, P95, Mean float64 }

// Shape describes the distribution of the values behind [Quantiles], in seconds. Range is the 95th less the 5th
// percentile.
type Shape struct{ Least, Mean, Range float64 }

// Metrics are the four latencies of a set of turns.
type Metrics struct {
	TTFT    Quantiles `json:"ttft"`
	TPOT    Quantiles `json:"tpot"`
	ITL     Quantiles `json:"itl"`
	Latency Quantiles `json:"latency"`
}

// Window is the figures of the last 60 seconds.
type Window struct {
	Seconds               float64              `json:"seconds"` // 60, or less just after a start
	Metrics               Metrics              `json:"metrics"`
	RequestsPerSecond     float64              `json:"requests_per_second"`
	OutputTokensPerSecond float64              `json:"output_tokens_per_second"`
	ErrorRatio            *float64             `json:"error_ratio,omitempty"` // errors / (ok + errors)
	Timeouts              int                  `json:"timeouts"`              // classes timeout and stall
	Errors                Map[ErrorClass, int] `json:"errors"`
	// turns that met every SLO / (ok + errors)
	GoodputRatio *float64 `json:"goodput_ratio,omitempty"`
	Awaiting     Awaiting `json:"awaiting"`
	// time to the first token after the reasoning, for turns with reasoning
	FirstAnswer *Quantiles `json:"first_answer,omitempty"`
	// absent: the load waits for the server, so that no turn has a time at which it was to be sent
	Late     *Lateness `json:"late,omitempty"`
	Fidelity *Fidelity `json:"fidelity,omitempty"`  // absent: the turns are not those of a trace
	InputP95 *float64  `json:"input_p95,omitempty"` // prompt tokens of a turn, over the turns with a count
}

// Lateness is how long after the intended moment turns were sent, over those that ended well. It is part of their TTFT
// and latency, and a fault of the load generator or of the machine that it runs on.
type Lateness struct {
	N     int     `json:"n"`
	P50   float64 `json:"p50"`   // seconds
	P99   float64 `json:"p99"`   // seconds
	Above float64 `json:"above"` // share of the turns that were late by more than 50 ms
}

// Fidelity is how the turns that ended well agree with the trace that they replay. Unknown values are absent.
type Fidelity struct {
	// how long after their moments in the trace turns were sent, also because the turn before had not ended
	Behind *Lateness `json:"behind,omitempty"`
	Input  *float64  `json:"input,omitempty"`  // prompt tokens ÷ those of the trace
	Output *float64  `json:"output,omitempty"` // output tokens ÷ those of the trace
	// hit rate that one unlimited cache for all requests of the trace would have, in their order
	TheoreticalHitRatio *float64 `json:"theoretical_hit_ratio,omitempty"`
}

// Awaiting are the turns that still wait for their first token.
type Awaiting struct {
	N             int     `json:"n"`
	OldestSeconds float64 `json:"oldest_seconds"`
}

// Totals are counts since the lane's last start. A turn counts when it ends, up to 200 ms before it is stored.
// `stored_turns` of the status counts the stored turns.
type Totals struct {
	OK            int64                  `json:"ok"`
	Errors        int64                  `json:"errors"`
	Cancelled     int64                  `json:"cancelled"`
	ErrorsByClass Map[ErrorClass, int64] `json:"errors_by_class"`
	InputTokens   int64                  `json:"input_tokens"`
	CachedTokens  int64                  `json:"cached_tokens"`
	OutputTokens  int64                  `json:"output_tokens"`
	// turns that ended well without a count of input tokens
	InputUnknown int64 `json:"input_unknown,omitempty"`
	// turns that ended well without a count of cached tokens
	CachedUnknown int64 `json:"cached_unknown,omitempty"`
	Conversations int64 `json:"conversations"` // ended conversations of any status
	LostTurns     int64 `json:"lost_turns"`    // finished turns that could not be stored
}

// TurnFigures are the figures of the turns with the same number in their conversations that ended well.
type TurnFigures struct {
	Turn       string   `json:"turn"`          // 1 to 5, or 6+
	P50        *float64 `json:"p50,omitempty"` // TTFT in seconds
	P95        *float64 `json:"p95,omitempty"` // TTFT in seconds
	N          int      `json:"n"`             // turns with a TTFT
	Cut        int      `json:"cut,omitempty"` // turns of n that were cut at the end of the run
	LatencyP50 *float64 `json:"latency_p50,omitempty"`
	LatencyP95 *float64 `json:"latency_p95,omitempty"`
	InputMean  *float64 `json:"input_mean,omitempty"` // prompt tokens, over the turns with a count
	InputP95   *float64 `json:"input_p95,omitempty"`
	OutputMean *float64 `json:"output_mean,omitempty"` // tokens
	// share of prompt tokens from a cache, over the turns with both counts
	CachedRatio *float64 `json:"cached_ratio,omitempty"`
}

// KV is the share of prompt tokens that came from a KV cache over the last 60 s.
type KV struct {
	HitRatio *float64 `json:"hit_ratio,omitempty"` // cached / prompt tokens of the turns
	// source of the ratio: usage, or frontend or engine if usage reports no cached tokens
	Source          string   `json:"source,omitempty"`
	NotReported     string   `json:"not_reported,omitempty"` // why there is no hit ratio although turns have ended
	PredictedRatio  *float64 `json:"predicted,omitempty"`    // hit ratio that the router predicted
	AchievableRatio *float64 `json:"achievable,omitempty"`   // if every turn went to the worker with the longest prefix
	// measured hit rate ÷ that of the best placement; absent: not known
	AchievedShare   *float64 `json:"achieved_share,omitempty"`
	AchievedUnknown string   `json:"achieved_share_unknown,omitempty"` // why it is not known

	// Counted holds the counters behind the ratios by their source (frontend, engine, prediction): hits and all, since
	// the load generator first read the cluster.
	Counted map[string][2]float64 `json:"-"`
}

// Cluster are metrics of the serving cluster, from Prometheus or the target itself.
type Cluster struct {
	Available bool   `json:"available"`
	Problem   string `json:"problem,omitempty"`
	Source    string `json:"source,omitempty"` // prometheus or direct
	// requests that wait at router and engines; a Dynamo frontend counts each until its first token, with the engines'
	Queued        *float64 `json:"queued,omitempty"`
	QueuedRouter  *float64 `json:"queued_router,omitempty"`  // as the router or the Dynamo frontend reports
	QueuedEngines *float64 `json:"queued_engines,omitempty"` // sum over the workers

	Inflight    *float64       `json:"inflight,omitempty"`
	InflightMin *float64       `json:"inflight_min,omitempty"`
	InflightMax *float64       `json:"inflight_max,omitempty"`
	Spread      *float64       `json:"spread,omitempty"` // max − min in-flight over the workers
	Skew        *float64       `json:"skew,omitempty"`   // max / mean in-flight over the workers
	BatchLimit  *float64       `json:"batch_limit,omitempty"`
	CacheBlocks *float64       `json:"cache_blocks,omitempty"` // blocks of the KV cache of one worker
	BlockTokens *float64       `json:"block_tokens,omitempty"` // tokens of a block
	KV          KV             `json:"kv"`
	Speculation SpeculativeUse `json:"speculation"`
	Workers     List[Worker]   `json:"workers"`               // all; if over 256, the 8 busiest and the 8 least busy
	AllWorkers  *AllWorkers    `json:"all_workers,omitempty"` // present if `workers` is not complete
	OtherGPUs   []HostGPUs     `json:"other_gpus,omitempty"`  // GPUs without a known worker
	GPU         string         `json:"gpu,omitempty"`
	Model       string         `json:"model,omitempty"`
	Engine      string         `json:"engine,omitempty"` // trtllm, vllm, sglang
	Router      string         `json:"router,omitempty"` // router with these metrics, a value of target.router
	// whether the router's own metrics of the last 60 s show that it chose workers by their KV caches; absent: the
	// metrics do not show how it chose
	RoutesByKV *bool `json:"routes_by_kv,omitempty"`
	// how routers chose the workers of the last 60 s, by their own counters
	Decisions List[RouterDecision] `json:"router_decisions,omitempty"`
	// mean share of a prompt that a router other than Dynamo's expected to find on a worker, in the last 60 s
	RouterMatch   *float64         `json:"router_match_ratio,omitempty"`
	FirstToken    *FirstTokenParts `json:"first_token,omitempty"` // of the last 60 s, by the engines' own times
	Unread        Unread           `json:"unread,omitzero"`
	UpdatedSecond float64          `json:"age_seconds"` // time since the last successful reading

	// InflightOfWorkers is true if Inflight is the sum over the workers.
	InflightOfWorkers bool `json:"-"`

	// QueuedHasEngines is true if QueuedRouter contains the requests that wait at the engines.
	QueuedHasEngines bool `json:"-"`

	// Engines sums the reports of engines and GPUs since the load generator first read the cluster. It is nil if the
	// cluster is not available.
	Engines *EngineTotals `json:"-"`
}

// EngineTotals sums readings of a cluster. [EngineTotals.Since] computes the figures of a time from two totals.
type EngineTotals struct {
	Drafts, Drafted, Accepted float64 // counters of the engines; Drafted and Accepted are tokens
	// Acceptance and TokensPerStep sum gauges of engines without these counters. GPUMemory sums the mean memory in use
	// of a GPU, in bytes.
	Acceptance, TokensPerStep, GPUMemory GaugeTotal

	FirstToken FirstTokenTotals

	Placement *PlacementTotals // nil if no shadow follows the turns

	GPUs   []GPUReading  // the workers' GPUs in one reading
	Energy *EnergyTotals // nil if no worker's GPU is known
	Served *ServedTotals // nil outside of a lane
}

// GaugeTotal is the sum of a gauge over the readings that contain it.
type GaugeTotal struct {
	Sum      float64
	Readings int
}

// Mean returns the mean of the readings since an earlier total, or nil if no reading contains the gauge.
func (g GaugeTotal) Mean(since GaugeTotal) *float64 {
	n := g.Readings - since.Readings
	if n <= 0 {
		return nil
	}
	return new((g.Sum - since.Sum) / float64(n))
}

// EngineUse is the figures of engines and GPUs over a time. A nil value is not known.
type EngineUse struct {
	// accepted / drafted tokens; nil if nothing was drafted
	AcceptanceRate *float64 `json:"acceptance_rate,omitempty"`
	TokensPerStep  *float64 `json:"tokens_per_step,omitempty"`  // tokens per forward pass of the target model
	GPUMemoryBytes *float64 `json:"gpu_memory_bytes,omitempty"` // mean memory in use on a GPU of a worker
	// measured hit rate ÷ that of the best placement
	AchievedShare   *float64 `json:"achieved_share,omitempty"`
	AchievedUnknown string   `json:"achieved_share_unknown,omitempty"` // why it is not known
	// shares of the prompt tokens by what became of them; absent: not known
	HitCauses  map[HitCauseKind]float64 `json:"hit_causes,omitempty"`
	FirstToken *FirstTokenParts         `json:"first_token,omitempty"`
}

// Since returns the figures of the time since earlier totals of the same cluster.
func (t EngineTotals) Since(before EngineTotals) EngineUse {
	use := EngineUse{
		AcceptanceRate: t.Acceptance.Mean(before.Acceptance), TokensPerStep: t.TokensPerStep.Mean(before.TokensPerStep),
		GPUMemoryBytes: t.GPUMemory.Mean(before.GPUMemory),
	}
	use.AchievedShare, use.AchievedUnknown = t.Placement.Since(before.Placement)
	use.HitCauses = t.Placement.CausesSince(before.Placement)
	use.FirstToken = t.FirstToken.Plus(before.FirstToken, -1).Means()
	accepted := t.Accepted - before.Accepted
	if drafted := t.Drafted - before.Drafted; drafted > 0 {
		use.AcceptanceRate = new(min(1, accepted/drafted))
	}
	if drafts := t.Drafts - before.Drafts; drafts > 0 {
		use.TokensPerStep = new(1 + accepted/drafts)
	}
	return use
}

// Unread is the reason why the metrics of a part of the cluster are not read. An absent part is read, and does not
// report missing values.
type Unread struct {
	Frontend string `json:"frontend,omitempty"`
	Workers  string `json:"workers,omitempty"`
	GPUs     string `json:"gpus,omitempty"`
}

// WorkerCount returns the number of all workers, including those that Workers does not list.
func (c Cluster) WorkerCount() int {
	if c.AllWorkers != nil {
		return c.AllWorkers.Count
	}
	return len(c.Workers)
}

// AllWorkers are metrics over all workers of the cluster.
type AllWorkers struct {
	Count    int      `json:"count"`
	GPUs     int      `json:"gpus"`
	Waiting  *float64 `json:"waiting,omitempty"`   // sum over the workers
	Routed   *float64 `json:"routed,omitempty"`    // sum over the workers
	Inflight *Spread  `json:"inflight,omitempty"`  // requests on a worker
	CacheUse *Spread  `json:"cache_use,omitempty"` // share of a worker's KV cache in use, 0 to 1
}

// Spread is the distribution of a metric over the workers that report it.
type Spread struct {
	Min float64 `json:"min"`
	P10 float64 `json:"p10"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	Max float64 `json:"max"`
}

// SpeculativeUse is the yield of speculative decoding over the last 60 s.
type SpeculativeUse struct {
	AcceptanceRatio *float64 `json:"acceptance,omitempty"`      // accepted / drafted tokens; absent when off
	TokensPerStep   *float64 `json:"tokens_per_step,omitempty"` // per forward pass of the target model; 1 when off
}

// Worker is one engine of the cluster.
type Worker struct {
	ID   string `json:"id"`   // instance id of a Dynamo in decimal, else host:port of its metrics
	Name string `json:"name"` // pod, host:port, or the id's tail
	// all requests on a worker of Dynamo; without Dynamo, only those that the engine computes, without waiting ones
	Inflight     *float64 `json:"inflight,omitempty"`
	Waiting      *float64 `json:"waiting,omitempty"`
	QueueSeconds *float64 `json:"queue_seconds,omitempty"` // mean over 60 s
	Routed       *float64 `json:"routed,omitempty"`        // requests routed to the worker
	CacheUse     *float64 `json:"cache_use,omitempty"`
	// hit ratio by the engine's counters over 60 s, or else by its gauge, which TensorRT-LLM computes over all requests
	HitRatio *float64 `json:"hit_ratio,omitempty"`
	// fields that no source reports; any other absent field has no value yet
	NotReported []string  `json:"not_reported,omitempty"`
	GPUs        List[GPU] `json:"gpus"`
}

// HostGPUs are GPUs of a host that could not be matched to a worker.
type HostGPUs struct {
	Host string    `json:"host"`
	GPUs List[GPU] `json:"gpus"`
}

// GPU is one GPU of a worker, or one MIG instance of a GPU.
type GPU struct {
	Index       string   `json:"index"`
	Instance    string   `json:"instance,omitempty"`     // MIG instance: profile and id, such as "2g.20gb #3"
	UUID        string   `json:"uuid,omitempty"`         // present if the GPU is assigned to the worker by its pod
	Utilisation *float64 `json:"utilisation,omitempty"`  // 0 to 1
	MemoryUsed  *float64 `json:"memory_used,omitempty"`  // bytes
	MemoryTotal *float64 `json:"memory_total,omitempty"` // bytes
	// power draw in watts; of an instance in MIG mode, that of its whole GPU
	PowerWatts *float64 `json:"power_watts,omitempty"`
}

// ClientHealth is the accuracy of the load generator itself.
type ClientHealth struct {
	Verdict    Verdict       `json:"verdict"` // the worst level of `metrics`
	Reason     string        `json:"reason"`
	CPURatio   float64       `json:"cpu_ratio"`         // share of all cores that the process uses
	LagSeconds float64       `json:"lag_seconds"`       // delay of its time stamps, p95 of the last 10 s
	Metrics    []ClientError `json:"metrics,omitempty"` // metrics of all lanes with figures
	Simulating bool          `json:"-"`                 // a what-if simulation used the machine in the last 10 s
}

// ClientError is the load generator's own error in one metric, with the basis of its level.
type ClientError struct {
	Lane         string     `json:"lane"`
	Metric       string     `json:"metric" enum:"ttft,tpot,itl,latency"`
	Level        Verdict    `json:"level"`
	P50Seconds   float64    `json:"p50_seconds"`   // p50 of the metric
	ErrorSeconds float64    `json:"error_seconds"` // upper limit of the error
	Of           ErrorBasis `json:"of"`
	OfSeconds    float64    `json:"of_seconds"` // value of the basis
}

// Decidable reports whether a value certainly lies on one side of a threshold, although it may be too large by up to e.
// With bothWays it may also be too small by up to e. A value at the threshold counts as below it.
func Decidable(value, e, threshold float64, bothWays bool) bool {
	return value <= threshold && !(bothWays && value+e > threshold) || value-e > threshold
}

// ErrorBasis is the value that an error is compared with.
type ErrorBasis string

// The bases of a level.
const (
	OfP50        ErrorBasis = "p50"        // p50 of the metric
	OfDifference ErrorBasis = "difference" // difference from a baseline
	OfThreshold  ErrorBasis = "threshold"  // distance from the threshold of an SLO
)

// Member is a process that sends turns for this load generator.
type Member struct {
	ID      string       `json:"id"` // another one after each start
	Name    string       `json:"name"`
	Version string       `json:"version"`
	Started time.Time    `json:"started"`
	State   MemberState  `json:"state"`
	Reason  string       `json:"reason,omitempty"` // why the member is late or refused
	Turns   int          `json:"turns"`            // turns in flight in all lanes
	Client  ClientHealth `json:"client"`
	// time for a message to the member and its answer; it is in no figure, and delays the next turn
	RoundTripSeconds float64 `json:"round_trip_seconds"`
	LostTurns        int64   `json:"lost_turns,omitempty"` // turns that were lost with the member
}

// MemberState is the state of a member.
type MemberState string

// The states of a member.
const (
	MemberPresent MemberState = "present"
	// its own error is noticeable. While other members are on time, they get its turns until it has been on time for 30 s.
	MemberLate    MemberState = "late"
	MemberLeaving MemberState = "leaving" // it was stopped
	MemberRefused MemberState = "refused"
)

// Verdict is the size of the load generator's own error.
type Verdict string

// The verdicts.
const (
	VerdictUnknown    Verdict = "unknown"           // in the first seconds
	VerdictFine       Verdict = "ok"                // below 2 % of the p50 and a tenth of every difference shown
	VerdictNoticeable Verdict = "noticeable"        // larger; the intervals include it
	VerdictBottleneck Verdict = "client_bottleneck" // too large: it withholds an outcome, or exceeds half of the p50
)

// Lookup is the way in which a baseline's value was found.
type Lookup string

// The ways in which a value was found. Only exact and interpolated results have a value.
const (
	LookupExact        Lookup = "exact"
	LookupInterpolated Lookup = "interpolated"
	LookupOutside      Lookup = "outside_range"
	LookupNotRecorded  Lookup = "not_recorded"
)

// Outcome is the outcome of a comparison of a live value with a baseline's.
type Outcome string

// The outcomes of a comparison.
const (
	OutcomeBetter       Outcome = "better"        // the 95 % interval of the difference does not contain 0
	OutcomeWorse        Outcome = "worse"         // the 95 % interval of the difference does not contain 0
	OutcomeNoDifference Outcome = "no_difference" // the interval contains 0
	OutcomeTooVariable  Outcome = "too_variable"  // there are too few batches of turns for an interval
	OutcomeWithheld     Outcome = "withheld"      // better or worse, but within the load generator's own error
	// better or worse, but the better one certainly fails more turns, the answers certainly differ in length, or one does
	// not keep up with the rate
	OutcomeTradeOff Outcome = "trade_off"
)

// Improvement is the comparison of a live value with a baseline's. `percent` is relative to the baseline's value, and
// positive if live is better.
type Improvement struct {
	Percent  float64     `json:"percent"`
	Outcome  Outcome     `json:"outcome"`
	Interval *[2]float64 `json:"interval,omitempty"` // 95 % interval of `percent`; absent: too few measurements
	// estimated time until the outcome is better or worse, if `percent` does not change; absent: it is so already, it
	// will not be, or the time is not known
	SecondsLeft *float64 `json:"seconds_left,omitempty"`
}

// LookedUp is one value of a baseline at the live concurrency.
type LookedUp struct {
	Value    *float64    `json:"value,omitempty"`
	Interval *[2]float64 `json:"interval,omitempty"` // 95 % interval of `value`; absent: not known
	// largest own error of the load generator, which `interval` includes
	Error *float64 `json:"error,omitempty"`
	// `interval` is estimated from the scatter of recorded tables, not measured with this value
	Estimated   bool         `json:"interval_estimated,omitempty"`
	Lookup      Lookup       `json:"lookup"`
	Improvement *Improvement `json:"improvement,omitempty"`
}

// LookedUpPair are the p50 and p95 of a metric, in seconds.
type LookedUpPair struct {
	P50 LookedUp `json:"p50"`
	P95 LookedUp `json:"p95"`
}

// Column is one mode of a baseline at the live concurrency.
type Column struct {
	Arm         string      `json:"arm,omitempty"` // measured arm; absent: the row has a mode only
	Mode        Mode        `json:"mode"`
	Speculation Speculation `json:"speculation"`
	Measured    *time.Time  `json:"measured,omitempty"` // time of the measurement, for rows of this target
	N           int         `json:"n,omitempty"`
	// delay of the load generator during the measurement (p95), if known
	LagSeconds            *float64     `json:"lag_seconds,omitempty"`
	TTFT                  LookedUpPair `json:"ttft"`
	TPOT                  LookedUpPair `json:"tpot"`
	ITL                   LookedUpPair `json:"itl"`
	Latency               LookedUpPair `json:"latency"`
	OutputTokensPerSecond LookedUp     `json:"output_tokens_per_second"`
	RequestsPerSecond     LookedUp     `json:"requests_per_second"`
	KVHitRatio            LookedUp     `json:"kv_hit_ratio"`

	AcceptanceRate LookedUp `json:"acceptance_rate,omitzero"`  // absent: no row of the mode has it
	TokensPerStep  LookedUp `json:"tokens_per_step,omitzero"`  // absent: no row of the mode has it
	GPUMemoryBytes LookedUp `json:"gpu_memory_bytes,omitzero"` // absent: no row of the mode has it
	AchievedShare  LookedUp `json:"achieved_share,omitzero"`   // absent: no row of the mode has it
	TTFTMean       LookedUp `json:"ttft_mean,omitzero"`        // absent: no row of the mode has it
}

// Difference is a setting in which the live run differs from a baseline.
type Difference struct {
	Field    string `json:"field"`
	Live     string `json:"live"`
	Baseline string `json:"baseline"`
}

// Comparison is the live step beside a baseline at the same concurrency.
type Comparison struct {
	Name        string  `json:"name"`
	Title       string  `json:"title"`
	Level       Level   `json:"concurrency"`
	Settling    bool    `json:"settling"`
	SettlingFor float64 `json:"settling_for_seconds"` // estimated time until figures are compared
	// time that the live figures cover: whole batches of the step since its first counted turn, at most an hour
	Seconds    float64  `json:"seconds"`
	N          int      `json:"n"`    // counted turns in `live`
	Live       Metrics  `json:"live"` // latencies of the step's counted turns
	LiveOutput *float64 `json:"live_output_tokens_per_second,omitempty"`
	LiveRPS    *float64 `json:"live_requests_per_second,omitempty"`
	LiveKV     *float64 `json:"live_kv_hit_ratio,omitempty"`

	// 95 % interval, valid at any time; absent: too few batches
	LiveOutputInterval *[2]float64 `json:"live_output_tokens_per_second_interval,omitempty"`
	// 95 % interval, valid at any time; absent: too few batches
	LiveRPSInterval *[2]float64 `json:"live_requests_per_second_interval,omitempty"`
	// 95 % interval, valid at any time; absent: too few batches
	LiveKVInterval *[2]float64 `json:"live_kv_hit_ratio_interval,omitempty"`

	// why no column has improvements although the step may have settled: the openings differ in length from the
	// baseline's, the live mode is not known, or another lane shares workers
	Withheld string `json:"withheld,omitempty"`
	// the latest step since the process started that was not added as a row; only with the baseline `this target`
	NotKept *NotKept `json:"not_kept,omitempty"`

	Differences List[Difference] `json:"differences"`
	Columns     List[Column]     `json:"columns"`
	// the result of the live step in one sentence; absent in a comparison with a chosen baseline
	Headline *Headline `json:"headline,omitempty"`
}

// Headline is the result of a lane's step in one sentence, the same on every page, in Grafana, in the terminal and in
// the API.
type Headline struct {
	Text string `json:"text"`
	// the part of `text` to emphasize, such as "22 % sooner"; absent: there is none
	Difference string `json:"difference,omitempty"`
	// how much the sentence says: `better` and `worse` are certain, `same` excludes a difference of 5 %
	Kind    HeadlineKind `json:"kind"`
	Certain bool         `json:"certain"`
	// the reference that the sentence is about; absent: there is none
	Against HeadlineReference `json:"against,omitempty"`
	Since   *time.Time        `json:"since,omitempty"` // time from which it was certain; absent: it was not
	// estimated time until the sentence is certain if the difference stays; it only counts down; absent: not known
	CertainIn *float64 `json:"certain_in_seconds,omitempty"`
	// what the sentence rests on: interval, figures and reasons, a clause each
	Detail List[string] `json:"detail"`
	// the comparison with each reference that there is
	Lines List[HeadlineLine] `json:"lines"`
}

// HeadlineKind is what a headline says.
type HeadlineKind string

// The kinds of headlines.
const (
	HeadlineBetter    HeadlineKind = "better"
	HeadlineWorse     HeadlineKind = "worse"
	HeadlineSame      HeadlineKind = "same"
	HeadlineUncertain HeadlineKind = "uncertain" // the difference so far is not certain
	HeadlineWaiting   HeadlineKind = "waiting"   // there is nothing to compare yet
)

// HeadlineReference is the kind of result that a step is compared with.
type HeadlineReference string

// The references of headlines.
const (
	AgainstMeasured HeadlineReference = "measured" // another mode at this level on this target, measured here
	AgainstRecorded HeadlineReference = "recorded" // another mode of the default baseline
	AgainstTwin     HeadlineReference = "twin"     // the other lane
	AgainstTrial    HeadlineReference = "trial"    // the other arm of the trial in progress
)

// HeadlineLine is the comparison of a step with one reference.
type HeadlineLine struct {
	Against HeadlineReference `json:"against"`
	Text    string            `json:"text"`
	Kind    HeadlineKind      `json:"kind"`
	Metric  string            `json:"metric" enum:"ttft_mean,ttft_p50,ttft_p95"`
	Live    *float64          `json:"live,omitempty"`      // seconds
	Other   *float64          `json:"reference,omitempty"` // seconds
	// relative difference in per cent, more than 0 where the live step is sooner; absent: not known
	Percent  *float64    `json:"percent,omitempty"`
	Interval *[2]float64 `json:"interval,omitempty"` // 95 % interval of `percent`, valid at any time
}

// NotKept is the reason why a step was not added to the baseline `this target`.
type NotKept struct {
	Level       Level       `json:"concurrency"`
	Arm         string      `json:"arm,omitempty"` // arm in force; absent: none of the configuration
	Mode        Mode        `json:"mode"`
	Speculation Speculation `json:"speculation"`
	Time        time.Time   `json:"time"`
	Reason      string      `json:"reason"` // a clause that can follow a colon
}

// Percentiles are the p50 and p95 in seconds, absent where not recorded.
type Percentiles struct {
	P50 *float64 `json:"p50,omitempty"`
	P95 *float64 `json:"p95,omitempty"`
}

// BaselineRow is one level of a baseline in one mode. `tpot` is the mean gap of a request, which the recorded tables
// call itl. `tpot_derived`, which they call tpot, was computed from other percentiles. It is not compared, nor are the
// cluster's figures, from `queue_seconds` to `inflight_skew`, which can explain a result.
type BaselineRow struct {
	Level                 Level       `json:"concurrency" minimum:"1" maximum:"100000"`
	Arm                   string      `json:"arm,omitempty"` // measured arm; absent: the row has a mode only
	Mode                  Mode        `json:"mode"`
	Speculation           Speculation `json:"speculation"`
	TTFT                  Percentiles `json:"ttft"`
	TPOT                  Percentiles `json:"tpot"`
	TPOTDerived           Percentiles `json:"tpot_derived"`
	ITL                   Percentiles `json:"itl"`
	Latency               Percentiles `json:"latency"`
	OutputTokensPerSecond *float64    `json:"output_tokens_per_second,omitempty"`
	RequestsPerSecond     *float64    `json:"requests_per_second,omitempty"`
	KVHitRatio            *float64    `json:"kv_hit_ratio,omitempty"`
	ErrorRatio            *float64    `json:"error_ratio,omitempty"` // failed / (ended well + failed)
	// accepted / drafted tokens, by the engines' metrics
	AcceptanceRate *float64 `json:"acceptance_rate,omitempty"`
	// tokens per forward pass of the target model, by the engines' metrics; 1 without speculation
	TokensPerStep *float64 `json:"tokens_per_step,omitempty"`
	// memory in use on a GPU, mean over the workers' GPUs and over time
	GPUMemoryBytes *float64 `json:"gpu_memory_bytes,omitempty"`
	// measured hit rate ÷ that of the best placement; above 1, the router found more than it
	AchievedShare *float64 `json:"achieved_share,omitempty"`
	// shares of the prompt tokens by what became of them, which files in CSV do not have; absent: not known
	HitCauses map[HitCauseKind]float64 `json:"hit_causes,omitempty"`
	// times until the first token by the engines themselves, which files in CSV do not have; absent: not known
	FirstToken *FirstTokenParts `json:"first_token,omitempty"`
	TTFTMean   *float64         `json:"ttft_mean,omitempty"` // seconds
	Cost
	ClusterFigures
	N        int        `json:"n,omitempty"`        // number of turns, if known
	Measured *time.Time `json:"measured,omitempty"` // time of the measurement, if known
	// missing values that an imported file has by another definition, such as ttft_p50
	Unlike []string `json:"unlike,omitempty" maxItems:"20" maxLength:"40"`
	// values that are at least so large, since they depend on turns that were cut at the end of the run, such as ttft_p95
	AtLeast []string `json:"at_least,omitempty" maxItems:"20" maxLength:"40"`

	// length of the measurement, if known
	Seconds float64 `json:"seconds,omitempty" minimum:"0"`
	// delay of the load generator during the measurement (p95), if known
	LagSeconds *float64 `json:"lag_seconds,omitempty" minimum:"0"`
	// largest own errors of the load generator, which `intervals` include
	Errors    *RowErrors    `json:"errors,omitempty"`
	Intervals *RowIntervals `json:"intervals,omitempty"` // absent: none is known
}

// ClusterFigures are a serving cluster's own metrics at one level in one mode. They can explain why one mode is slower
// than another. Absent values are not known. A queue time ends when the worker begins the request.
type ClusterFigures struct {
	// queue time of a request, mean over workers and time
	QueueSeconds *float64 `json:"queue_seconds,omitempty"`
	QueueLargest *float64 `json:"queue_largest,omitempty"` // seconds, largest of any worker at any time
	QueueSecond  *float64 `json:"queue_second,omitempty"`  // seconds, second largest of the workers' largest queue times
	QueueLeast   *float64 `json:"queue_least,omitempty"`   // seconds, smallest of the workers' largest queue times
	// largest queue time of a worker over the workers' mean, mean over time
	QueueSkew *float64 `json:"queue_skew,omitempty"`
	Waiting   *float64 `json:"waiting,omitempty"` // requests that wait at all workers, mean over time
	// p95 of the time to first token that the server reports with its turns
	EngineTTFT        *float64 `json:"engine_ttft_seconds,omitempty"`
	EngineTTFTLargest *float64 `json:"engine_ttft_largest,omitempty"` // seconds, largest of any worker at any time
	InflightLargest   *float64 `json:"inflight_largest,omitempty"`    // requests on the busiest worker at any time
	// requests on the busiest less those on the least busy worker, mean over time
	InflightSpread    *float64 `json:"inflight_spread,omitempty"`
	InflightSpreadMin *float64 `json:"inflight_spread_min,omitempty"` // smallest spread at any time
	InflightSpreadMax *float64 `json:"inflight_spread_max,omitempty"` // largest spread at any time
	InflightSkew      *float64 `json:"inflight_skew,omitempty"`       // busiest worker over the mean, mean over time
}

// RowErrors are the largest own errors of the load generator in a row's latencies, in seconds. The row's intervals
// include them.
type RowErrors struct {
	TTFT    Percentiles `json:"ttft"`
	TPOT    Percentiles `json:"tpot"`
	ITL     Percentiles `json:"itl"`
	Latency Percentiles `json:"latency"`
}

// RowIntervals are the 95 % intervals of a row's values, in their units, absent where not known.
type RowIntervals struct {
	TTFT                  PercentileIntervals `json:"ttft"`
	TPOT                  PercentileIntervals `json:"tpot"`
	ITL                   PercentileIntervals `json:"itl"`
	Latency               PercentileIntervals `json:"latency"`
	OutputTokensPerSecond *[2]float64         `json:"output_tokens_per_second,omitempty"`
	RequestsPerSecond     *[2]float64         `json:"requests_per_second,omitempty"`
	KVHitRatio            *[2]float64         `json:"kv_hit_ratio,omitempty"`
	AcceptanceRate        *[2]float64         `json:"acceptance_rate,omitempty"`
	TokensPerStep         *[2]float64         `json:"tokens_per_step,omitempty"`
	GPUMemoryBytes        *[2]float64         `json:"gpu_memory_bytes,omitempty"`
	AchievedShare         *[2]float64         `json:"achieved_share,omitempty"`
	TTFTMean              *[2]float64         `json:"ttft_mean,omitempty"`

	GPUPowerWatts           *[2]float64 `json:"gpu_power_watts,omitempty"`
	JoulesPerMillionTokens  *[2]float64 `json:"joules_per_million_tokens,omitempty"`
	JoulesPerGoodTurn       *[2]float64 `json:"joules_per_good_turn,omitempty"`
	DollarsPerMillionTokens *[2]float64 `json:"dollars_per_million_tokens,omitempty"`
	DollarsPerGoodTurn      *[2]float64 `json:"dollars_per_good_turn,omitempty"`
	TokensPerGPU            *[2]float64 `json:"tokens_per_second_per_gpu,omitempty"`
	TokensPerUser           *[2]float64 `json:"tokens_per_second_per_user,omitempty"`
}

// PercentileIntervals are the 95 % intervals of a metric's p50 and p95 in seconds, absent where not known.
type PercentileIntervals struct {
	P50 *[2]float64 `json:"p50,omitempty"`
	P95 *[2]float64 `json:"p95,omitempty"`
}

// Baseline is a recorded result: per level and mode, with its deployment and workload.
type Baseline struct {
	Name  string `json:"name" pattern:"^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,99}$"`
	Title string `json:"title"`
	// an import ignores the value and is always imported
	Kind  string `json:"kind" enum:"recorded,imported,measured"`
	Notes string `json:"notes,omitempty"`
	// target of measured rows; an import ignores it
	Target     *TargetID         `json:"target,omitempty"`
	Deployment Deployment        `json:"deployment"`
	Workload   *WorkloadShape    `json:"workload,omitempty"`
	Provenance Provenance        `json:"provenance,omitzero"`
	Rows       List[BaselineRow] `json:"rows" minItems:"1" maxItems:"10000"`
	// sustained concurrency of each mode under the SLOs in force at the time of the request; an import ignores it
	Sustained []Sustained `json:"sustained,omitempty"`
	// advantages of KV-aware routing over round-robin, computed at the time of the request; an import ignores them
	Advantages []Advantage `json:"advantages,omitempty"`
}

// Provenance is the origin of a baseline's figures. Absent values are not known.
type Provenance struct {
	// runs behind the rows, which are averages of several runs
	Runs   []Source `json:"runs,omitempty" maxItems:"100"`
	Region string   `json:"region,omitempty" maxLength:"200"`
	// interconnect between the GPUs
	Interconnect string `json:"interconnect,omitempty" maxLength:"200"`
	// services that the serving stack requires, such as "etcd, NATS"
	Services string `json:"services,omitempty" maxLength:"200"`
	// components that were restarted between modes, and those that kept their state
	BetweenModes string `json:"between_modes,omitempty" maxLength:"200"`
}

// Source is a run that figures come from.
type Source struct {
	File string     `json:"file" maxLength:"200"`
	Date *time.Time `json:"date,omitempty"`
	Seed *uint64    `json:"seed,omitempty,string"`
	// version of the load generator that measured
	Version string `json:"version,omitempty" maxLength:"200"`
}

// Advantage is the advantage of KV-aware routing over round-robin at one level of a baseline.
type Advantage struct {
	Level       Level                    `json:"concurrency"`
	Speculation Speculation              `json:"speculation"`
	Of          Map[string, Improvement] `json:"of"` // by the names of a row's values, such as ttft_p95
}

// Sustained is the sustained concurrency of one mode of a baseline: the highest tested level that, like every lower
// tested level, meets all SLOs. A level is tested if it has a TTFT p95. Without a TPOT p95, it is judged by TTFT alone.
type Sustained struct {
	Arm         string      `json:"arm,omitempty"` // measured arm; absent: the row has a mode only
	Mode        Mode        `json:"mode"`
	Speculation Speculation `json:"speculation"`
	SLO         SLO         `json:"slo"` // SLOs that were applied
	// 0: even the lowest tested level misses the SLOs; absent: no level was tested
	Level    *Level      `json:"level,omitempty"`
	Isolated List[Level] `json:"isolated"`  // levels that meet the SLOs above a level that misses them, ascending
	TTFTOnly List[Level] `json:"ttft_only"` // tested levels whose TPOT p95 was not recorded; ascending
	Untested List[Level] `json:"untested"`  // levels without a TTFT p95; ascending
}

// BaselineList is a page of all baselines: built-in ones, imported ones, and this target's own.
type BaselineList struct {
	Baselines  List[Baseline] `json:"baselines"`
	NextCursor string         `json:"next_cursor,omitempty"` // absent on the last page
}

// Vendor is the name of the vendor file with the texts of the guide and the drawing of the architecture page.
type Vendor string

// The vendor files, which come with the front end.
const (
	VendorNeutral      Vendor = "neutral"      // texts that apply to any cluster
	VendorDigitalOcean Vendor = "digitalocean" // texts on the recorded deployment
)

// Vendors lists all vendor files.
var Vendors = []Vendor{VendorNeutral, VendorDigitalOcean}

// Settings are the settings that an administrator can change at run time.
type Settings struct {
	SLO             SLO    `json:"slo"`
	Slider          Slider `json:"slider"`
	MaxConcurrency  int    `json:"max_concurrency"`
	DefaultBaseline string `json:"default_baseline"` // empty: chosen by the target's deployment
	Title           string `json:"title"`
	Subtitle        string `json:"subtitle"`
	Vendor          Vendor `json:"vendor"`
}

// SLO are the service level objectives: p95 thresholds in seconds.
type SLO struct {
	TTFT float64 `json:"ttft" exclusiveMinimum:"0" maximum:"3600" unit:"seconds"`
	TPOT float64 `json:"tpot" exclusiveMinimum:"0" maximum:"3600" unit:"seconds"`
}

// Slider is the range of the concurrency slider.
type Slider struct {
	Min       int `json:"min" minimum:"1" maximum:"100000"`
	Max       int `json:"max" minimum:"1" maximum:"100000"`
	Increment int `json:"increment" minimum:"1" maximum:"100000"`
}

// Patch sets a field to the value of a patch. A nil value leaves the field unchanged.
func Patch[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// Merge sets the fields of the struct at to that a patch has with the same names and types in Go, and that are not nil
// there.
func Merge(to, patch any) {
	fields, changes := reflect.ValueOf(to).Elem(), reflect.ValueOf(patch)
	for i := range changes.NumField() {
		change := changes.Field(i)
		field := fields.FieldByName(changes.Type().Field(i).Name)
		if !change.IsNil() && field.IsValid() && field.Type() == change.Type().Elem() {
			field.Set(change.Elem())
		}
	}
}

// SettingsPatch is a change of the settings. Omitted fields do not change.
type SettingsPatch struct {
	SLO             *SLO    `json:"slo,omitempty"`
	Slider          *Slider `json:"slider,omitempty"`
	MaxConcurrency  *int    `json:"max_concurrency,omitempty" minimum:"1" maximum:"100000"`
	DefaultBaseline *string `json:"default_baseline,omitempty" maxLength:"100"`
	Title           *string `json:"title,omitempty" maxLength:"200"`
	Subtitle        *string `json:"subtitle,omitempty" maxLength:"200"`
	Vendor          *Vendor `json:"vendor,omitempty"`
}

// StartRequest is a request to start the workload or to set the concurrency of a running one. Default: the last
// concurrency.
type StartRequest struct {
	Level *Level `json:"concurrency,omitempty"` // up to max_concurrency
}

// StopRequest is a request to stop the workload. With `drain`, turns in flight end first. Otherwise they are cancelled.
type StopRequest struct {
	Drain bool `json:"drain"`
}

// WorkloadPatch is a change of the workload's settings. Omitted fields do not change.
type WorkloadPatch struct {
	Level *Level `json:"concurrency,omitempty"` // up to max_concurrency
	// how the rate is reached: evenly from another one; a change of concurrency without a ramp ends it
	Ramp      *Ramp    `json:"ramp,omitempty"`
	Turns     *Range   `json:"turns,omitempty"`
	MaxTokens *int     `json:"max_tokens,omitempty"`
	Openings  *int     `json:"openings,omitempty"`
	StartRate *float64 `json:"start_rate,omitempty"`
	TargetRPS *float64 `json:"target_rps,omitempty"`
	// what conversations send; it replaces the shape in force as a whole
	TrafficShape *TrafficShape `json:"shape,omitempty"`

	Arrivals    *Arrivals `json:"arrivals,omitempty"`
	Burstiness  *float64  `json:"burstiness,omitempty"`
	MaxInflight *int      `json:"max_inflight,omitempty"`
}

// MeasureRequest is a request to begin a new step with unchanged settings. It has no fields.
type MeasureRequest struct{}

// ModeRequest is a request for a mode change. With the driver "manual", the operator makes the change, and a request
// with `confirm` completes it. A request with `in_force` declares that the cluster is already in the mode, which may be
// unknown. Only the driver "manual" accepts it.
type ModeRequest struct {
	// name of an arm of the configuration, whose mode and speculation override those of the request; absent: `mode` names
	// the way of serving
	Arm         string      `json:"arm,omitempty"`
	Mode        Mode        `json:"mode,omitempty"`        // required without an arm
	Speculation Speculation `json:"speculation,omitempty"` // absent: unchanged
	Confirm     bool        `json:"confirm,omitempty"`
	InForce     bool        `json:"in_force,omitempty"`
}

// Check checks the fields of the request. It does not check whether the driver offers the mode. The error is a
// [*FieldError].
func (r ModeRequest) Check() error {
	if r.Arm == "" {
		return cmp.Or(OneOf("mode", r.Mode, Modes), CheckLimits(r))
	}
	return CheckLimits(r)
}

// Turn is one request and its answer.
type Turn struct {
	Lane         string      `json:"lane" csv:"lane"`
	Conversation string      `json:"conversation" csv:"conversation"`
	Number       int         `json:"number" csv:"turn"` // from 1
	RequestID    string      `json:"request_id" csv:"request_id"`
	Step         int64       `json:"step" csv:"step"`
	Level        Level       `json:"concurrency" csv:"concurrency"` // target of the step in which the turn began
	Arm          string      `json:"arm,omitempty" csv:"arm,added"` // arm in force; absent: none of the configuration
	Mode         Mode        `json:"mode" csv:"mode"`
	Speculation  Speculation `json:"speculation" csv:"speculation"`
	// the turn ended in a settled step, after all turns that had begun before the step settled
	Counted      bool       `json:"counted" csv:"counted"`
	Status       TurnStatus `json:"status" csv:"status"`
	ErrorClass   ErrorClass `json:"error_class,omitempty" csv:"error_class"`
	ErrorMessage string     `json:"error_message,omitempty" csv:"error_message"`
	Started      time.Time  `json:"started" csv:"started"`
	Ended        time.Time  `json:"ended" csv:"ended"`
	TTFT         *float64   `json:"ttft,omitempty" csv:"ttft_seconds"`
	// seconds to the first token after the reasoning; absent: no reasoning
	FirstAnswer  *float64 `json:"first_answer,omitempty" csv:"first_answer_seconds"`
	TPOT         *float64 `json:"tpot,omitempty" csv:"tpot_seconds"`
	ITLP50       *float64 `json:"itl_p50,omitempty" csv:"itl_p50_seconds"`
	ITLP95       *float64 `json:"itl_p95,omitempty" csv:"itl_p95_seconds"`
	ITLEstimated bool     `json:"itl_estimated,omitempty" csv:"itl_estimated"`
	InBursts     bool     `json:"in_bursts,omitempty" csv:"in_bursts,added"` // the server or a proxy held tokens back and sent many at once
	Latency      *float64 `json:"latency,omitempty" csv:"latency_seconds"`
	// seconds from the moment at which the turn was to be sent to the one at which it was; it is part of `ttft` and
	// `latency`; absent: the load waits for the server
	Late *float64 `json:"late,omitempty" csv:"late_seconds,added"`
	// seconds from the moment at which the traffic has the turn sent to the one at which it was, also because the turn
	// before had not ended; absent: the traffic has no time for it
	Behind           *float64 `json:"behind,omitempty" csv:"behind_seconds,added"`
	PlannedInput     *int     `json:"planned_input,omitempty" csv:"planned_input,added"`   // prompt tokens of the traffic; absent: not known
	PlannedOutput    *int     `json:"planned_output,omitempty" csv:"planned_output,added"` // output tokens of the traffic; absent: not known
	PromptTokens     *int     `json:"prompt_tokens,omitempty" csv:"prompt_tokens"`
	CachedTokens     *int     `json:"cached_tokens,omitempty" csv:"cached_tokens"`
	OutputTokens     *int     `json:"output_tokens,omitempty" csv:"output_tokens"`
	TokenSource      string   `json:"token_source,omitempty" csv:"token_source"` // usage or chunks
	FinishReason     string   `json:"finish_reason,omitempty" csv:"finish_reason"`
	Worker           string   `json:"worker,omitempty" csv:"worker"`                   // name by the router; for Dynamo the decimal instance id
	PredictedRatio   *float64 `json:"predicted_ratio,omitempty" csv:"predicted_ratio"` // the router's predicted hit rate
	QueueDepth       *int     `json:"queue_depth,omitempty" csv:"queue_depth"`
	ServerTTFT       *float64 `json:"server_ttft,omitempty" csv:"server_ttft_seconds"` // nvext.timing.ttft_ms, in seconds
	UserMessage      string   `json:"user_message,omitempty"`
	AssistantMessage string   `json:"assistant_message,omitempty"`
}

// Conversation is a row of the list with `figures`, or the detail with `turns` and `live`.
type Conversation struct {
	ID           string             `json:"id"`
	Lane         string             `json:"lane"`
	Number       int64              `json:"number"` // with the seed, it determines the draws of the conversation
	Topic        string             `json:"topic"`
	Starter      string             `json:"starter"` // id of the opening text
	Status       ConversationStatus `json:"status"`
	ErrorClass   ErrorClass         `json:"error_class,omitempty"` // absent: the conversation did not fail
	TurnsPlanned int                `json:"turns_planned"`
	TurnsDone    int                `json:"turns_done"`
	Started      time.Time          `json:"started"`
	Ended        *time.Time         `json:"ended,omitempty"`
	Figures      []ConversationTurn `json:"figures,omitempty"` // figures of the ended turns, in their order
	Turns        []Turn             `json:"turns,omitempty"`
	Live         *LiveTurn          `json:"live,omitempty"`
}

// ConversationTurn is the part of a turn that a list of conversations contains. Absent values are not known.
type ConversationTurn struct {
	TTFT         *float64 `json:"ttft,omitempty"`   // seconds
	Worker       string   `json:"worker,omitempty"` // name by the router; for Dynamo the decimal instance id
	PromptTokens *int     `json:"prompt_tokens,omitempty"`
	CachedTokens *int     `json:"cached_tokens,omitempty"`
}

// Starter is the opening text of conversations. Their prompts all begin with the same bytes of `text`.
type Starter struct {
	ID    string `json:"id"`
	Topic string `json:"topic"`
	Text  string `json:"text"`
}

// LiveTurn is a turn that is still streaming.
type LiveTurn struct {
	Number           int       `json:"number"`
	Started          time.Time `json:"started"`
	TTFT             *float64  `json:"ttft,omitempty"`
	Worker           string    `json:"worker,omitempty"`
	UserMessage      string    `json:"user_message"`
	AssistantMessage string    `json:"assistant_message"`
}

// ConversationList is one page of conversations, newest first.
type ConversationList struct {
	Conversations List[Conversation] `json:"conversations"`
	NextCursor    string             `json:"next_cursor,omitempty"` // absent on the last page
}

// EventKind is the kind of event.
type EventKind string

// The kinds of events.
const (
	EventStart      EventKind = "start"
	EventStop       EventKind = "stop"
	EventStep       EventKind = "step"
	EventModeChange EventKind = "mode_change"
	EventSettings   EventKind = "settings"
	EventBaseline   EventKind = "baseline"
	EventSweep      EventKind = "sweep"  // a trial, sweep or capacity search began, paused, resumed or ended
	EventMember     EventKind = "member" // a member joined, was lost, was late or was refused
)

// Event is a change of state.
type Event struct {
	ID   int64     `json:"id,string"`
	Time time.Time `json:"time"`
	Lane string    `json:"lane,omitempty"`
	Kind EventKind `json:"kind"`
	By   string    `json:"by"` // the Grafana login, "command line", or "page"
	Text string    `json:"text"`
}

// EventList is a list of the latest events, newest first.
type EventList struct {
	Events List[Event] `json:"events"`
}

// StepRecord is a finished or running step as the store keeps it.
type StepRecord struct {
	Lane        string      `json:"lane"`
	ID          int64       `json:"id"`
	Level       Level       `json:"concurrency"`
	Arm         string      `json:"arm,omitempty"` // arm in force; absent: none of the configuration
	Mode        Mode        `json:"mode"`
	Speculation Speculation `json:"speculation"`
	Started     time.Time   `json:"started"`
	Settled     *time.Time  `json:"settled,omitempty"`
	Held        *Held       `json:"held,omitempty"`
	Ended       *time.Time  `json:"ended,omitempty"`
}

// Status is the sidecar's state, configuration and health.
type Status struct {
	Version       string              `json:"version"`
	GoVersion     string              `json:"go_version"`
	Started       time.Time           `json:"started"`
	UptimeSeconds float64             `json:"uptime_seconds"`
	Lanes         List[LaneStatus]    `json:"lanes"`
	Settings      Settings            `json:"settings"`
	Client        ClientHealth        `json:"client"`
	Store         StoreStatus         `json:"store"`
	Config        Map[string, string] `json:"config"` // configuration in force by dotted name, without secrets
}

// LaneStatus is a lane's part of Status.
type LaneStatus struct {
	Name       string            `json:"name"`
	Target     Target            `json:"target"`
	State      State             `json:"state"`
	Totals     Totals            `json:"totals"`
	Extensions Map[string, bool] `json:"extensions"` // which request extensions are enabled
	Corpus     CorpusStatus      `json:"corpus"`
	Followup   FollowupStatus    `json:"followup"`
	Seed       uint64            `json:"seed,string"`
}

// CorpusStatus is the state of the opening texts.
type CorpusStatus struct {
	Name     string     `json:"name"`
	Starters int        `json:"starters"`
	Followup string     `json:"followup"`
	Source   string     `json:"source,omitempty"`  // place of the texts; absent: the built-in articles
	ReadAt   *time.Time `json:"read_at,omitempty"` // time of the last successful reading
	// tokenizer that measured the texts; the target may count differently, so lengths are estimates
	Tokenizer    string            `json:"tokenizer,omitempty"`
	Cut          int               `json:"cut"`               // starters that were cut at a sentence
	Joined       int               `json:"joined"`            // starters that were joined from several texts
	Skipped      int               `json:"skipped"`           // texts that are not used
	SkippedItems List[SkippedItem] `json:"skipped_items"`     // the first skipped texts
	Problem      string            `json:"problem,omitempty"` // error of the last reading; earlier texts stay in use
}

// SkippedItem is a text of the corpus that is not used.
type SkippedItem struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// FollowupCause is the reason why the built-in questioner asked a question in place of a model.
type FollowupCause string

// The causes of a fallback.
const (
	FollowupTimeout     FollowupCause = "timeout"
	FollowupConnect     FollowupCause = "connect"
	FollowupRateLimited FollowupCause = "rate_limited"
	FollowupHTTP4xx     FollowupCause = "http_4xx"
	FollowupHTTP5xx     FollowupCause = "http_5xx"
	FollowupEmpty       FollowupCause = "empty"     // an answer without a text
	FollowupMalformed   FollowupCause = "malformed" // an answer that is not a question, or not a valid response
	FollowupRepeated    FollowupCause = "repeated"  // a question that the conversation contains already
	FollowupPaused      FollowupCause = "paused"    // the model is not asked for a time after a failure
)

// FollowupCauses lists all causes of a fallback.
var FollowupCauses = []FollowupCause{
	FollowupTimeout, FollowupConnect, FollowupRateLimited, FollowupHTTP4xx, FollowupHTTP5xx,
	FollowupEmpty, FollowupMalformed, FollowupRepeated, FollowupPaused,
}

// FollowupStatus is the state of the source of follow-up questions. Counts start with the process.
type FollowupStatus struct {
	Name      string                    `json:"name"`
	URL       string                    `json:"url,omitempty"`   // address of the model; absent: no model asks
	Model     string                    `json:"model,omitempty"` // absent until the server reports it
	ByModel   int64                     `json:"by_model"`
	Fallbacks Map[FollowupCause, int64] `json:"fallbacks"`         // questions of the built-in questioner, by cause
	Asking    int                       `json:"asking"`            // requests for questions in progress
	Problem   string                    `json:"problem,omitempty"` // why the model is not asked now
}

// StoreStatus is the state of the store of finished turns. Counts start with the process.
type StoreStatus struct {
	Path        string `json:"path"`
	OK          bool   `json:"ok"`
	Problem     string `json:"problem,omitempty"` // why turns are not stored now
	Notice      string `json:"notice,omitempty"`  // damaged indexes were rebuilt
	Damage      string `json:"damage,omitempty"`  // stored records that cannot be read
	StoredTurns int64  `json:"stored_turns"`      // turns in committed transactions, which survive a crash of the process
	LostTurns   int64  `json:"lost_turns"`
}

// SessionRequest is a request to exchange the token for a cookie.
type SessionRequest struct {
	Token string `json:"token" minLength:"1" maxLength:"512"`
}

// Check accepts any token. The server compares it, and no error may contain it.
func (SessionRequest) Check() error { return nil }

// Session is the set of permissions of the caller's session cookie.
type Session struct {
	TokenRequired bool `json:"token_required"` // a token is configured
	Authenticated bool `json:"authenticated"`  // the token was exchanged for the cookie
	CanRead       bool `json:"can_read"`
	CanWrite      bool `json:"can_write"`
	// the server plays a recording, which cannot be changed; absent: false
	Replay bool `json:"replay,omitempty"`
}

// Problem is an RFC 9457 problem document, the body of every error.
type Problem struct {
	Type    string `json:"type" format:"uri-reference"`
	Title   string `json:"title"`
	Status  int    `json:"status"`
	Detail  string `json:"detail,omitempty"`
	Field   string `json:"field,omitempty"`   // field with an invalid value
	Value   string `json:"value,omitempty"`   // the invalid value
	Allowed string `json:"allowed,omitempty"` // description of the allowed values
}
