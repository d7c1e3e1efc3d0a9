package api

import (
	"cmp"
	"time"
)

// Mode is a routing mode of the serving cluster.
type Mode string

// The modes that the product knows.
const (
	ModeKV          Mode = "kv"
	ModeRoundRobin  Mode = "round_robin"
	ModeLeastLoaded Mode = "least_loaded"
	ModeUnknown     Mode = "unknown" // neither a driver, nor its own metrics, nor the operator has reported how it routes
)

// Modes are all that a [Mode] may be.
var Modes = []Mode{ModeKV, ModeRoundRobin, ModeLeastLoaded, ModeUnknown}

// ModeSource is the source of the current mode.
type ModeSource string

// The sources of a mode. An operator who has reported that the mode is not known is one, too.
const (
	ModeFromOperator ModeSource = "operator" // the configuration, or the operator since
	ModeFromDriver   ModeSource = "driver"   // it asks the cluster, or routes the turns itself
	ModeFromMetrics  ModeSource = "metrics"  // the router's own metrics
)

// Speculation is the kind of speculative decoding that serves.
type Speculation string

// The kinds of speculation.
const (
	SpeculationOff         Speculation = "off"
	SpeculationDraft       Speculation = "draft"
	SpeculationEagle3      Speculation = "eagle3"
	SpeculationNotRecorded Speculation = "not_recorded" // of a baseline whose documents disagree or do not name it
)

// Speculations are all that a [Speculation] may be.
var Speculations = []Speculation{SpeculationOff, SpeculationDraft, SpeculationEagle3, SpeculationNotRecorded}

// ErrorClass says how a turn failed.
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
	ErrorMalformed   ErrorClass = "malformed"    // what came is not a stream of chat completion chunks
	ErrorOverrun     ErrorClass = "overrun"      // the answer took longer, or grew larger, than any may
	ErrorEmpty       ErrorClass = "empty"        // the answer ended without any content
)

// ErrorClasses lists every class in the order of the documentation.
var ErrorClasses = []ErrorClass{
	ErrorConnect, ErrorTimeout, ErrorStall, ErrorRateLimited, ErrorBusy,
	ErrorHTTP4xx, ErrorHTTP5xx, ErrorStream, ErrorTruncated, ErrorMalformed, ErrorOverrun, ErrorEmpty,
}

// TurnStatus is how a turn ended. A cancelled turn is neither a success nor an error.
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
	ConversationRetired   ConversationStatus = "retired" // ended early, as concurrency was lowered or the workload drained
	ConversationCancelled ConversationStatus = "cancelled"
	ConversationError     ConversationStatus = "error"
)

// ConversationStatuses are all that a [ConversationStatus] may be.
var ConversationStatuses = []ConversationStatus{
	ConversationActive, ConversationCompleted, ConversationRetired, ConversationCancelled, ConversationError,
}

// Phase is what a lane is doing as a whole.
type Phase string

// The phases of a lane.
const (
	PhaseStopped   Phase = "stopped"
	PhaseRunning   Phase = "running"
	PhaseDraining  Phase = "draining"
	PhaseSwitching Phase = "switching" // a mode change is under way; no turns are sent
)

// DefaultLane is the lane meant when a call names none.
const DefaultLane = "main"

// ThisTarget is the name of the baseline that grows from this target's own settled steps.
// A request for it to a lane returns that lane's own. In the list of baselines, that of any
// lane other than [DefaultLane] has the name of [OwnBaseline].
const ThisTarget = "this target"

// OwnBaseline is the name, in the list of baselines, of the one that grows from a lane's own
// settled steps.
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

// Concurrency is the number of conversations kept in progress: as asked for, and as it is.
type Concurrency struct {
	Target int `json:"target"`
	Actual int `json:"actual"`
	// what the next conversation waits for most of the time; absent: for none of these
	LimitedBy Limiter `json:"limited_by,omitempty"`
}

// Limiter is a setting that keeps a workload from having more conversations in progress.
type Limiter string

// The limiters.
const (
	LimitedByTargetRPS Limiter = "target_rps"
	LimitedByStartRate Limiter = "start_rate"
)

// Held is the number of conversations in progress that a limiter allows, below the
// concurrency that was asked for: their mean over half a minute in which it stayed so.
type Held struct {
	By Limiter `json:"by"`
	At int     `json:"at"` // their mean over half a minute in which it stayed so
}

// Deployment is what serves: engine, model, GPU, workers, speculation, and the versions and settings of its stack.
// What is absent is not known.
type Deployment struct {
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
	MaxNumTokens          int     `json:"max_num_tokens,omitempty"` // of one iteration of a worker
	ChunkedPrefill        *bool   `json:"chunked_prefill,omitempty"`
	OverlapScheduler      *bool   `json:"overlap_scheduler,omitempty"`
	KVCacheDtype          string  `json:"kv_cache_dtype,omitempty"`
	FreeGPUMemoryFraction float64 `json:"free_gpu_memory_fraction,omitempty"` // that the KV cache takes, 0 to 1
}

// WorkloadShape is the part of a workload's configuration that changes its
// results at a concurrency; a baseline carries it so that differences can be named.
// The seed chooses among equal conversations and is no part of it, nor is the start rate,
// since a row that it holds below its target has the concurrency that was held. What rows
// of former versions lack is not known, since the setting existed and could have any value.
type WorkloadShape struct {
	Turns     Range `json:"turns"`
	MaxTokens int   `json:"max_tokens"`
	// different texts that open conversations; 0: one for each; absent: not known
	Openings *int `json:"openings,omitempty"`
	// tokens of each of them; absent: 3,500 to 4,000, as recorded
	OpeningTokens int           `json:"opening_tokens,omitempty"`
	OutputTokens  *Distribution `json:"output_tokens,omitempty"` // absent: answers end where the model ends them
	Corpus        string        `json:"corpus,omitempty"`
	Followup      string        `json:"followup,omitempty"` // who asks the follow-up questions
	// the user's pause before a follow-up question; absent: not known
	ThinkSeconds *float64  `json:"think_seconds,omitempty"`
	TargetRPS    *float64  `json:"target_rps,omitempty"` // requests per second at most; 0: no cap; absent: not known
	Timeouts     *Timeouts `json:"timeouts,omitempty"`   // absent: not known
	Request      string    `json:"request,omitempty"`    // further fields of each request's body, as JSON; absent: none
	// how requests show their conversation to the router, as target.session says; absent: not at all
	Session string `json:"session,omitempty"`
	// requests had no X-Request-Id: set so, or the router routes by it
	NoRequestID bool `json:"no_request_id,omitempty"`
}

// RecordedFollowup is the follow-up in [WorkloadShape] of the recorded runs.
const RecordedFollowup = "the same short sentence"

// Timeouts says how long a turn may take, in seconds. A turn that takes longer is an error.
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

// Snapshot is the current state as shown on screen. The WebSocket, Grafana Live and the page share this schema.
type Snapshot struct {
	Time     time.Time          `json:"time"`
	Lanes    List[LaneSnapshot] `json:"lanes"`
	Settings Settings           `json:"settings"`
	Client   ClientHealth       `json:"client"`
	// load generators that hold the conversations for this one, by name; absent where this one holds them itself
	Members []Member `json:"members,omitempty"`
	Replay  *Replay  `json:"replay,omitempty"` // absent: live
}

// Replay marks a snapshot that comes from a recording, whose times are moved into the present. A live one has none.
type Replay struct {
	RecordedAt time.Time `json:"recorded_at"` // when the recording begins
	Position   float64   `json:"position"`    // seconds since its beginning
	Length     float64   `json:"length"`      // seconds, after which it begins anew
}

// LaneSnapshot is one lane's part of a Snapshot.
type LaneSnapshot struct {
	Name       string            `json:"name"`
	Target     Target            `json:"target"`
	State      State             `json:"state"`
	Window     Window            `json:"window"`
	Totals     Totals            `json:"totals"`
	TTFTByTurn List[TurnFigures] `json:"ttft_by_turn"` // of the last 60 s, turn numbers ascending, "6+" last
	KV         KV                `json:"kv"`
	Cluster    Cluster           `json:"cluster"`
	Baseline   Comparison        `json:"baseline"`
	// workers that also serve another lane: the lanes affect each other, so no figure shows what either could serve
	// alone; absent: no shared workers known
	SharedWorkers []string `json:"shared_workers,omitempty"`
}

// History is what a lane's snapshots said in the last ten minutes, oldest first,
// one a second; fewer where the load generator has not run for as long.
type History struct {
	Points List[HistoryPoint] `json:"points" maxItems:"600"`
}

// HistoryPoint is what a lane's snapshot said of one second.
type HistoryPoint struct {
	Time        time.Time   `json:"time"`
	Running     bool        `json:"running"`
	Concurrency int         `json:"concurrency"`   // actual
	Arm         string      `json:"arm,omitempty"` // in force; absent: none of the configuration
	Mode        Mode        `json:"mode"`
	Speculation Speculation `json:"speculation"`
	// seconds, of the turns of the 60 s before; absent before the first one has ended, and while nothing runs
	TTFTP50 *float64 `json:"ttft_p50,omitempty"`
	TTFTP95 *float64 `json:"ttft_p95,omitempty"` // likewise
	// over the 60 s before; absent while nothing runs
	OutputTokensPerSecond *float64 `json:"output_tokens_per_second,omitempty"`
	// cached prompt tokens over prompt tokens in the 60 s before; absent before the first turn has ended, and where
	// nothing reports it
	KVHitRatio *float64 `json:"kv_hit_ratio,omitempty"`
}

// TargetKind says what serves behind the target.
type TargetKind string

// The kinds of a target.
const (
	TargetReal      TargetKind = "real"      // engines on GPUs
	TargetSimulated TargetKind = "simulated" // the simulated cluster
	TargetMocked    TargetKind = "mocked"    // a real router in front of mock workers
	TargetUnknown   TargetKind = "unknown"
)

// TargetID distinguishes targets: two are the same where their ids are equal.
type TargetID struct {
	URL   string `json:"url"`
	Model string `json:"model,omitempty"`
}

// Target is the server under load.
type Target struct {
	Kind       TargetKind `json:"kind"`
	URL        string     `json:"url"`
	Endpoint   string     `json:"endpoint,omitempty"` // where turns go now, where each mode has an address of its own
	Model      string     `json:"model,omitempty"`    // absent until the target reports it
	Deployment Deployment `json:"deployment"`
	// what the cluster's own description shows; what is absent is not known
	Features  []Feature `json:"features,omitempty"`
	Reachable bool      `json:"reachable"`
	Problem   string    `json:"problem,omitempty"` // why turns are failing, and what to do
	// the HTTP status that the target answers with instead; absent: none, as without a connection
	ProblemStatus int      `json:"problem_status,omitempty"`
	Notices       []string `json:"notices,omitempty"` // what is odd about its answers, though it serves
	// what stands in front of the workers, a value of target.router: recognized by its answers or metrics, or configured;
	// absent: not known
	Router string `json:"router,omitempty"`
	// by what the worker of a turn is known: nvext.worker_id, or the name of a response header; absent: it is not
	WorkerSource string `json:"worker_source,omitempty"`
	// where the cached tokens of turns come from: usage, or else the counters of the frontend or the engines; absent: not
	// known
	CachedSource string `json:"cached_source,omitempty" enum:"usage,frontend,engine"`
	// requests that belong to no turn: what it supports, whether it serves
	Probes int64 `json:"probes"`
}

// Feature is a feature of Dynamo that the deployment uses, or does not use.
type Feature struct {
	Name     string `json:"name" enum:"disaggregated,grove,kai,kvbm,nixl,planner"`
	InUse    bool   `json:"in_use"`
	Evidence string `json:"evidence"` // a sentence that says what was read, and where
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

// ModeState is one way of serving: an arm of the configuration, or a routing mode with its speculation. Two are the
// same where all three fields are equal.
type ModeState struct {
	// name of the arm; absent: a mode that no arm of the configuration names
	Arm         string      `json:"arm,omitempty" pattern:"^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,59}$"`
	Mode        Mode        `json:"mode"` // of an arm, the one that recorded results are chosen by; unknown: none
	Speculation Speculation `json:"speculation"`
}

// ModeChange is a mode change in progress, or the last one if it failed.
type ModeChange struct {
	From    ModeState `json:"from"`
	To      ModeState `json:"to"`
	Phase   string    `json:"phase"`   // stopping, switching, waiting_for_operator, starting, rolling_back, failed
	Message string    `json:"message"` // what happens now, or what the operator is to do
	Started time.Time `json:"started"`
	Failed  bool      `json:"failed"`
}

// Simulation is what a simulated cluster reports about itself.
type Simulation struct {
	Profile string `json:"profile"` // the GPU profile's name
	// false: its timing in the mode in force is assumed, and fitted to no recorded result
	Calibrated bool    `json:"calibrated"`
	Speed      float64 `json:"speed"` // simulation speed as a multiple of real time
}

// Step is a span with unchanged concurrency, mode and workload settings.
type Step struct {
	ID      int64     `json:"id"`
	Started time.Time `json:"started"`
	// when actual concurrency first equalled the target, or stayed where it is held
	Settled *time.Time `json:"settled,omitempty"`
	// the step settled below its target, and its figures are those of this concurrency; absent: it did not
	Held    *Held `json:"held,omitempty"`
	Counted int   `json:"counted"` // turns that count for comparisons so far
}

// QuestionerKind says who asks the follow-up questions.
type QuestionerKind string

// The kinds of a questioner.
const (
	QuestionerBuiltIn QuestionerKind = "built_in" // templates about phrases of the last answer
	QuestionerFixed   QuestionerKind = "fixed"    // one sentence, the same at every turn
	QuestionerModel   QuestionerKind = "model"    // an end-user model, the built-in one in its place when it fails
)

// State is a lane's run state.
type State struct {
	Running     bool            `json:"running"`
	Phase       Phase           `json:"phase"`
	Concurrency Concurrency     `json:"concurrency"`
	Step        Step            `json:"step"`
	Settling    bool            `json:"settling"`      // true until 60 s of counted turns exist
	Arm         string          `json:"arm,omitempty"` // in force; absent: none of the configuration
	Mode        Mode            `json:"mode"`
	ModeFrom    ModeSource      `json:"mode_from,omitempty"` // absent: the mode is not known yet
	Speculation Speculation     `json:"speculation"`
	Driver      string          `json:"driver"`
	Modes       List[ModeState] `json:"modes"` // what the driver offers
	ModeChange  *ModeChange     `json:"mode_change,omitempty"`
	// absent: the driver's cluster is not a simulated one, or has not reported itself yet
	Simulation *Simulation    `json:"simulation,omitempty"`
	Started    *time.Time     `json:"started,omitempty"` // of the last start
	Shape      WorkloadShape  `json:"shape"`
	Questioner QuestionerKind `json:"questioner"`
	StartRate  float64        `json:"start_rate"`
	TargetRPS  float64        `json:"target_rps"`
	// that owns the lane: nothing else starts, changes or switches it
	Sweep *SweepSummary `json:"sweep,omitempty"`
	// a showcase is in progress: an extra conversation that is not included in any figure
	Showcase bool `json:"showcase,omitempty"`
}

// Quantiles are the p50 and p95 of one metric in seconds, over n values. The intervals are 95 % confidence intervals
// from order statistics, with as many of them as are independent; they are absent where these are too few to give
// one.
type Quantiles struct {
	P50         *float64    `json:"p50,omitempty"`
	P95         *float64    `json:"p95,omitempty"`
	P99         *float64    `json:"p99,omitempty"`
	N           int         `json:"n"`
	P50Interval *[2]float64 `json:"p50_interval,omitempty"`
	P95Interval *[2]float64 `json:"p95_interval,omitempty"`
	// ITL is estimated, because chunks did not report their token counts
	Estimated bool `json:"estimated,omitempty"`
	Unknown   int  `json:"unknown,omitempty"` // turns that ended well without a known value
	// the most that the load generator itself may be wrong by, which the interval contains; absent: not known
	P50Error *float64 `json:"p50_error,omitempty"`
	P95Error *float64 `json:"p95_error,omitempty"`
	Shape    *Shape   `json:"-"` // nil: it is not known
}

// Shape is how the values behind [Quantiles] are spread. Range is from the 5th to the 95th percentile.
type Shape struct{ Least, Mean, Range float64 }

// Metrics are the four latencies of a set of turns.
type Metrics struct {
	TTFT    Quantiles `json:"ttft"`
	TPOT    Quantiles `json:"tpot"`
	ITL     Quantiles `json:"itl"`
	Latency Quantiles `json:"latency"`
}

// Window is what the last 60 seconds were like.
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
	// the time to the first token after the reasoning, of the turns that had both
	FirstAnswer *Quantiles `json:"first_answer,omitempty"`
	InputP95    *float64   `json:"input_p95,omitempty"` // prompt tokens of a turn, of those with a count
}

// Awaiting are the turns that still wait for their first token.
type Awaiting struct {
	N             int     `json:"n"`
	OldestSeconds float64 `json:"oldest_seconds"`
}

// Totals are counted since the lane's last start, live: a turn counts when it ends, up to 200 ms before it is stored.
// `stored_turns` of the status counts those that are.
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
	Conversations int64 `json:"conversations"` // ended, in whatever way
	LostTurns     int64 `json:"lost_turns"`    // finished turns that could not be stored
}

// TurnFigures are the figures of the turns that have one number in their conversation and ended well.
type TurnFigures struct {
	Turn       string   `json:"turn"`          // 1 to 5, or 6+
	P50        *float64 `json:"p50,omitempty"` // of TTFT
	P95        *float64 `json:"p95,omitempty"` // of TTFT
	N          int      `json:"n"`             // turns with a TTFT
	LatencyP50 *float64 `json:"latency_p50,omitempty"`
	LatencyP95 *float64 `json:"latency_p95,omitempty"`
	InputMean  *float64 `json:"input_mean,omitempty"` // prompt tokens, of the turns with a count
	InputP95   *float64 `json:"input_p95,omitempty"`
	OutputMean *float64 `json:"output_mean,omitempty"` // tokens
	// the share of prompt tokens from a cache, of the turns with a count of both
	CachedRatio *float64 `json:"cached_ratio,omitempty"`
}

// KV is the share of prompt tokens that came from a KV cache over the last 60 s.
type KV struct {
	HitRatio *float64 `json:"hit_ratio,omitempty"` // cached / prompt tokens as the clients saw them
	// usage; frontend or engine where usage reports no cached tokens
	Source          string   `json:"source,omitempty"`
	NotReported     string   `json:"not_reported,omitempty"` // why there is no hit ratio although turns have ended
	PredictedRatio  *float64 `json:"predicted,omitempty"`    // as the router predicted it
	AchievableRatio *float64 `json:"achievable,omitempty"`   // had each turn gone to the worker with the longest prefix

	// Counted are the counters behind the ratios, by what reports them (frontend, engine, prediction): hits and all,
	// since the load generator first read the cluster.
	Counted map[string][2]float64 `json:"-"`
}

// Cluster are metrics of the serving cluster, from Prometheus or the target itself.
type Cluster struct {
	Available   bool           `json:"available"`
	Problem     string         `json:"problem,omitempty"`
	Source      string         `json:"source,omitempty"` // prometheus or direct
	Queued      *float64       `json:"queued,omitempty"`
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
	Workers     List[Worker]   `json:"workers"`               // all; of more than 256 the 8 busiest and the 8 idlest
	AllWorkers  *AllWorkers    `json:"all_workers,omitempty"` // where workers lists only some
	OtherGPUs   []HostGPUs     `json:"other_gpus,omitempty"`  // that no worker could be found for
	GPU         string         `json:"gpu,omitempty"`
	Model       string         `json:"model,omitempty"`
	Engine      string         `json:"engine,omitempty"` // trtllm, vllm, sglang
	Router      string         `json:"router,omitempty"` // as its metrics show, a value of target.router
	// whether the router chose by what the KV caches hold, over the last 60 s, as its own metrics show; absent: they
	// do not
	RoutesByKV    *bool   `json:"routes_by_kv,omitempty"`
	Unread        Unread  `json:"unread,omitzero"`
	UpdatedSecond float64 `json:"age_seconds"` // since the last successful reading

	// Engines add up what engines and GPUs have reported since the load generator first read the cluster; nil where
	// it is not available.
	Engines *EngineTotals `json:"-"`
}

// EngineTotals add up readings of a cluster. The figures of a span of time are in what they have grown by.
type EngineTotals struct {
	Drafts, Drafted, Accepted float64 // by the engines' counters; the last two are tokens
	// Of gauges, where there are no such counters, and of the mean memory in use of a GPU.
	Acceptance, TokensPerStep, GPUMemory GaugeTotal
}

// GaugeTotal is the sum of a gauge over the readings that have it.
type GaugeTotal struct {
	Sum      float64
	Readings int
}

// Mean is that of the readings since an earlier total; nil where none had the gauge.
func (g GaugeTotal) Mean(since GaugeTotal) *float64 {
	n := g.Readings - since.Readings
	if n <= 0 {
		return nil
	}
	return new((g.Sum - since.Sum) / float64(n))
}

// EngineUse is what engines and GPUs reported over a span of time; nil is not known.
type EngineUse struct {
	// accepted / drafted tokens; nil where nothing was drafted
	AcceptanceRate *float64 `json:"acceptance_rate,omitempty"`
	TokensPerStep  *float64 `json:"tokens_per_step,omitempty"`  // of a forward pass of the target model
	GPUMemoryBytes *float64 `json:"gpu_memory_bytes,omitempty"` // in use on a GPU of a worker, mean
}

// Since gives the figures of the time since earlier totals of the same cluster.
func (t EngineTotals) Since(before EngineTotals) EngineUse {
	use := EngineUse{
		AcceptanceRate: t.Acceptance.Mean(before.Acceptance), TokensPerStep: t.TokensPerStep.Mean(before.TokensPerStep),
		GPUMemoryBytes: t.GPUMemory.Mean(before.GPUMemory),
	}
	accepted := t.Accepted - before.Accepted
	if drafted := t.Drafted - before.Drafted; drafted > 0 {
		use.AcceptanceRate = new(min(1, accepted/drafted))
	}
	if drafts := t.Drafts - before.Drafts; drafts > 0 {
		use.TokensPerStep = new(1 + accepted/drafts)
	}
	return use
}

// Unread are parts of the cluster whose metrics are not read, with the reason. Absent: that part is read, and does
// not report any value that is missing.
type Unread struct {
	Frontend string `json:"frontend,omitempty"`
	Workers  string `json:"workers,omitempty"`
	GPUs     string `json:"gpus,omitempty"`
}

// WorkerCount is how many workers there are, listed or not.
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
	Waiting  *float64 `json:"waiting,omitempty"`   // the sum
	Routed   *float64 `json:"routed,omitempty"`    // the sum
	Inflight *Spread  `json:"inflight,omitempty"`  // requests of a worker
	CacheUse *Spread  `json:"cache_use,omitempty"` // of a worker, 0 to 1
}

// Spread is the distribution of a metric over the workers that report it.
type Spread struct {
	Min float64 `json:"min"`
	P10 float64 `json:"p10"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	Max float64 `json:"max"`
}

// SpeculativeUse is how well speculative decoding does over the last 60 s.
type SpeculativeUse struct {
	AcceptanceRatio *float64 `json:"acceptance,omitempty"`      // accepted / drafted tokens; absent when off
	TokensPerStep   *float64 `json:"tokens_per_step,omitempty"` // per forward pass of the target model; 1 when off
}

// Worker is one engine of the cluster.
type Worker struct {
	ID   string `json:"id"`   // instance id of a Dynamo in decimal, else host:port of its metrics
	Name string `json:"name"` // pod, host:port, or the id's tail
	// of Dynamo's workers all requests; of an engine without Dynamo those that it computes, beside those that wait
	Inflight     *float64 `json:"inflight,omitempty"`
	Waiting      *float64 `json:"waiting,omitempty"`
	QueueSeconds *float64 `json:"queue_seconds,omitempty"` // mean over 60 s
	Routed       *float64 `json:"routed,omitempty"`        // requests routed to it
	CacheUse     *float64 `json:"cache_use,omitempty"`
	// by the engine's counters over 60 s; where it has none, its own gauge: TensorRT-LLM's is of all its requests
	HitRatio *float64 `json:"hit_ratio,omitempty"`
	// fields that no source reports; one that is absent and not listed has no value yet
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
	Instance    string   `json:"instance,omitempty"`     // of a GPU in MIG mode: profile and id, such as "2g.20gb #3"
	UUID        string   `json:"uuid,omitempty"`         // where its pod shows that it is this worker's
	Utilisation *float64 `json:"utilisation,omitempty"`  // 0 to 1
	MemoryUsed  *float64 `json:"memory_used,omitempty"`  // bytes
	MemoryTotal *float64 `json:"memory_total,omitempty"` // bytes
}

// ClientHealth says how much of the figures is the load generator's own error.
type ClientHealth struct {
	Verdict    Verdict       `json:"verdict"` // the worst level of `metrics`
	Reason     string        `json:"reason"`
	CPURatio   float64       `json:"cpu_ratio"`         // share of all cores that the process uses
	LagSeconds float64       `json:"lag_seconds"`       // how late its time stamps are, p95 of the last 10 s
	Metrics    []ClientError `json:"metrics,omitempty"` // of each lane that has figures
	Simulating bool          `json:"-"`                 // a what-if simulation has been computed beside it in that time
}

// ClientError is the load generator's own error of one metric, beside what its level stands on.
type ClientError struct {
	Lane         string     `json:"lane"`
	Metric       string     `json:"metric" enum:"ttft,tpot,itl,latency"`
	Level        Verdict    `json:"level"`
	P50Seconds   float64    `json:"p50_seconds"`   // of the metric
	ErrorSeconds float64    `json:"error_seconds"` // at most
	Of           ErrorBasis `json:"of"`
	OfSeconds    float64    `json:"of_seconds"`
}

// Decidable says whether a value lies on one side of a threshold for certain, although it is too
// large by an error at most, or, both ways, too small. At the threshold it is below.
func Decidable(value, e, threshold float64, bothWays bool) bool {
	return value <= threshold && !(bothWays && value+e > threshold) || value-e > threshold
}

// ErrorBasis says what an error is held against.
type ErrorBasis string

// The bases of a level.
const (
	OfP50        ErrorBasis = "p50"        // the metric's
	OfDifference ErrorBasis = "difference" // from a baseline
	OfThreshold  ErrorBasis = "threshold"  // the distance from the threshold of an SLO
)

// Member is a load generator that holds conversations for this one.
type Member struct {
	ID            string       `json:"id"` // of its lease: a member that lost its lease comes back with another
	Name          string       `json:"name"`
	Version       string       `json:"version"`
	Started       time.Time    `json:"started"`
	State         MemberState  `json:"state"`
	Reason        string       `json:"reason,omitempty"` // why it is late or refused
	Conversations int          `json:"conversations"`    // in progress, in all lanes
	Client        ClientHealth `json:"client"`
	// how far its clock is ahead; times are corrected by it; absent: not known yet
	ClockAheadSeconds  *float64 `json:"clock_ahead_seconds,omitempty"`
	ClockWithinSeconds *float64 `json:"clock_within_seconds,omitempty"` // how wrong clock_ahead_seconds may be
	LostTurns          int64    `json:"lost_turns,omitempty"`           // turns that it could not hand over
}

// MemberState is the state of a member.
type MemberState string

// The states of a member.
const (
	MemberPresent MemberState = "present"
	// its own error is noticeable in what it measures. If most members are on time, they take over its share until it
	// has been on time for a while.
	MemberLate    MemberState = "late"
	MemberLeaving MemberState = "leaving" // it finishes its conversations
	MemberRefused MemberState = "refused"
)

// Verdict says how large the load generator's own error is.
type Verdict string

// The verdicts.
const (
	VerdictUnknown    Verdict = "unknown"           // in the first seconds
	VerdictFine       Verdict = "ok"                // below 2 % of the p50 and a tenth of every difference shown
	VerdictNoticeable Verdict = "noticeable"        // the intervals contain it
	VerdictBottleneck Verdict = "client_bottleneck" // too large: it withholds an outcome, or exceeds half of the p50
)

// Lookup says how a baseline's value was found.
type Lookup string

// The kinds of a looked-up value. Only an exact and an interpolated one have a value.
const (
	LookupExact        Lookup = "exact"
	LookupInterpolated Lookup = "interpolated"
	LookupOutside      Lookup = "outside_range"
	LookupNotRecorded  Lookup = "not_recorded"
)

// Outcome says how a live value stands to a baseline's.
type Outcome string

// The outcomes.
const (
	OutcomeBetter       Outcome = "better"        // the 95 % interval of the difference leaves out 0
	OutcomeWorse        Outcome = "worse"         // likewise
	OutcomeNoDifference Outcome = "no_difference" // the interval holds 0
	OutcomeTooVariable  Outcome = "too_variable"  // there are too few batches of turns for an interval
	OutcomeWithheld     Outcome = "withheld"      // better or worse, but within the load generator's own error
)

// Improvement compares the live value with a baseline's. `percent`, of the baseline's value, is positive where live
// is better.
type Improvement struct {
	Percent  float64     `json:"percent"`
	Outcome  Outcome     `json:"outcome"`
	Interval *[2]float64 `json:"interval,omitempty"` // 95 %, of `percent`; absent where too little was measured
	// about how long it takes until the outcome is better or worse, if `percent` stays what it is; absent where it
	// is, or will not be, or where that is not known
	SecondsLeft *float64 `json:"seconds_left,omitempty"`
}

// LookedUp is one value of a baseline at the live concurrency.
type LookedUp struct {
	Value    *float64    `json:"value,omitempty"`
	Interval *[2]float64 `json:"interval,omitempty"` // 95 %, of `value`; absent where it is not known
	// the most that the load generator itself may have been wrong by, which `interval` contains
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
	Arm         string      `json:"arm,omitempty"` // that was measured; absent: no arm, but a mode
	Mode        Mode        `json:"mode"`
	Speculation Speculation `json:"speculation"`
	Measured    *time.Time  `json:"measured,omitempty"` // when, for rows that this target measured
	N           int         `json:"n,omitempty"`
	// how late the load generator was then (p95), where known
	LagSeconds            *float64     `json:"lag_seconds,omitempty"`
	TTFT                  LookedUpPair `json:"ttft"`
	TPOT                  LookedUpPair `json:"tpot"`
	ITL                   LookedUpPair `json:"itl"`
	Latency               LookedUpPair `json:"latency"`
	OutputTokensPerSecond LookedUp     `json:"output_tokens_per_second"`
	RequestsPerSecond     LookedUp     `json:"requests_per_second"`
	KVHitRatio            LookedUp     `json:"kv_hit_ratio"`

	// absent, like the next two, where no row of the mode has it
	AcceptanceRate LookedUp `json:"acceptance_rate,omitzero"`
	TokensPerStep  LookedUp `json:"tokens_per_step,omitzero"`
	GPUMemoryBytes LookedUp `json:"gpu_memory_bytes,omitzero"`
}

// Difference is one way in which the live run is unlike a baseline's.
type Difference struct {
	Field    string `json:"field"`
	Live     string `json:"live"`
	Baseline string `json:"baseline"`
}

// Comparison is the live step beside a baseline at the same concurrency.
type Comparison struct {
	Name        string  `json:"name"`
	Title       string  `json:"title"`
	Concurrency int     `json:"concurrency"`
	Settling    bool    `json:"settling"`
	SettlingFor float64 `json:"settling_for_seconds"` // seconds of counted turns still missing
	// how much time the live figures are of: whole batches of the step since its first counted turn, at most an hour
	Seconds    float64  `json:"seconds"`
	N          int      `json:"n"`    // counted turns in `live`
	Live       Metrics  `json:"live"` // of the step's counted turns
	LiveOutput *float64 `json:"live_output_tokens_per_second,omitempty"`
	LiveRPS    *float64 `json:"live_requests_per_second,omitempty"`
	LiveKV     *float64 `json:"live_kv_hit_ratio,omitempty"`

	// 95 %, however often it is looked at; absent where there are too few batches
	LiveOutputInterval *[2]float64 `json:"live_output_tokens_per_second_interval,omitempty"`
	// 95 %, however often it is looked at; absent where there are too few batches
	LiveRPSInterval *[2]float64 `json:"live_requests_per_second_interval,omitempty"`
	// 95 %, however often it is looked at; absent where there are too few batches
	LiveKVInterval *[2]float64 `json:"live_kv_hit_ratio_interval,omitempty"`

	// why no column has improvements although the step may have settled: the openings are of another length than the
	// baseline's, the live mode is not known, or another lane shares workers
	Withheld string `json:"withheld,omitempty"`
	// the latest step since the process started that was not added as a row; only with the baseline `this target`
	NotKept *NotKept `json:"not_kept,omitempty"`

	Differences List[Difference] `json:"differences"`
	Columns     List[Column]     `json:"columns"`
}

// NotKept says why what was measured became no row of the baseline `this target`.
type NotKept struct {
	Concurrency int         `json:"concurrency"`
	Arm         string      `json:"arm,omitempty"` // in force; absent: none of the configuration
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

// BaselineRow is one level of a baseline in one mode. `tpot` is the mean gap of a request (the recorded tables call
// it itl); `tpot_derived` was computed from other percentiles (the recorded tables call it tpot) and is compared with
// nothing. The cluster's figures, from `queue_seconds` to `inflight_skew`, explain a result and are compared with
// nothing.
type BaselineRow struct {
	Concurrency           int         `json:"concurrency" minimum:"1" maximum:"100000"`
	Arm                   string      `json:"arm,omitempty"` // that was measured; absent: no arm, but a mode
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
	// of a forward pass of the target model, by the engines' metrics; 1 without speculation
	TokensPerStep *float64 `json:"tokens_per_step,omitempty"`
	// in use on a GPU, mean over the workers' GPUs and over time
	GPUMemoryBytes *float64 `json:"gpu_memory_bytes,omitempty"`
	ClusterFigures
	N        int        `json:"n,omitempty"`        // turns behind the row, where known
	Measured *time.Time `json:"measured,omitempty"` // when, where known
	// values that are missing here because an imported file has them by another definition, such as ttft_p50
	Unlike []string `json:"unlike,omitempty" maxItems:"20" maxLength:"40"`

	// how long it was measured, where known
	Seconds float64 `json:"seconds,omitempty" minimum:"0"`
	// how late the load generator was over that time (p95), if known
	LagSeconds *float64 `json:"lag_seconds,omitempty" minimum:"0"`
	// the most that the load generator may be wrong by itself, which `intervals` contain
	Errors    *RowErrors    `json:"errors,omitempty"`
	Intervals *RowIntervals `json:"intervals,omitempty"` // absent: none is known
}

// ClusterFigures are what a serving cluster reports of itself at one level in one mode: they can explain why one mode
// is slower than another. What is absent is not known. Queue times are of a request before its worker begins it.
type ClusterFigures struct {
	// of a request before its worker begins it, mean over workers and time
	QueueSeconds *float64 `json:"queue_seconds,omitempty"`
	QueueLargest *float64 `json:"queue_largest,omitempty"` // seconds, largest of any worker at any time
	QueueSecond  *float64 `json:"queue_second,omitempty"`  // seconds, largest of the worker with the second largest
	QueueLeast   *float64 `json:"queue_least,omitempty"`   // seconds, largest of the worker with the smallest
	// slowest worker's queue over the workers' mean, mean over time
	QueueSkew *float64 `json:"queue_skew,omitempty"`
	Waiting   *float64 `json:"waiting,omitempty"` // requests that wait at all workers, mean over time
	// p95 of the time to the first token as the server reports it with its turns
	EngineTTFT        *float64 `json:"engine_ttft_seconds,omitempty"`
	EngineTTFTLargest *float64 `json:"engine_ttft_largest,omitempty"` // seconds, largest of any worker at any time
	InflightLargest   *float64 `json:"inflight_largest,omitempty"`    // requests on the busiest worker at any time
	// busiest less idlest worker, in requests, mean over time
	InflightSpread    *float64 `json:"inflight_spread,omitempty"`
	InflightSpreadMin *float64 `json:"inflight_spread_min,omitempty"` // the same, as a range over moments
	InflightSpreadMax *float64 `json:"inflight_spread_max,omitempty"`
	InflightSkew      *float64 `json:"inflight_skew,omitempty"` // busiest worker over the workers' mean, mean over time
}

// RowErrors are the most that the load generator itself may be wrong by in a row's latencies, in seconds; the row's
// intervals contain it.
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
	// an import is always imported
	Kind  string `json:"kind" enum:"recorded,imported,measured"`
	Notes string `json:"notes,omitempty"`
	// whose rows these are, where they are measured; left out of an import
	Target     *TargetID         `json:"target,omitempty"`
	Deployment Deployment        `json:"deployment"`
	Workload   *WorkloadShape    `json:"workload,omitempty"`
	Provenance Provenance        `json:"provenance,omitzero"`
	Rows       List[BaselineRow] `json:"rows" minItems:"1" maxItems:"10000"`
	// of each mode, under the SLOs in force when it was asked for; an import's is not read
	Sustained []Sustained `json:"sustained,omitempty"`
	// of KV-aware routing over round-robin, as computed when it was asked for; an import's are not read
	Advantages []Advantage `json:"advantages,omitempty"`
}

// Provenance says where a baseline's figures come from. What is absent is not known.
type Provenance struct {
	// of several, the rows are the averages
	Runs   []Source `json:"runs,omitempty" maxItems:"100"`
	Region string   `json:"region,omitempty" maxLength:"200"`
	// between GPUs
	Interconnect string `json:"interconnect,omitempty" maxLength:"200"`
	// that the serving stack needs beside itself, such as "etcd, NATS"
	Services string `json:"services,omitempty" maxLength:"200"`
	// what was restarted, and what kept its state
	BetweenModes string `json:"between_modes,omitempty" maxLength:"200"`
}

// Source is a run that figures come from.
type Source struct {
	File string     `json:"file" maxLength:"200"`
	Date *time.Time `json:"date,omitempty"`
	Seed *uint64    `json:"seed,omitempty,string"`
	// of the load generator that measured
	Version string `json:"version,omitempty" maxLength:"200"`
}

// Advantage says by how much KV-aware routing is better than round-robin at one level of a baseline.
type Advantage struct {
	Concurrency int                      `json:"concurrency"`
	Speculation Speculation              `json:"speculation"`
	Of          Map[string, Improvement] `json:"of"` // by the names of a row's values, such as ttft_p95
}

// Sustained is what one mode of a baseline sustains under the SLOs: the highest
// tested level such that it and every lower one meet them all. A level is tested
// where it has a TTFT p95; one whose TPOT p95 was not recorded is judged by TTFT alone.
type Sustained struct {
	Arm         string      `json:"arm,omitempty"` // that was measured; absent: no arm, but a mode
	Mode        Mode        `json:"mode"`
	Speculation Speculation `json:"speculation"`
	SLO         SLO         `json:"slo"` // that it was judged by
	// 0: not even the lowest tested level meets them; absent: no level was tested
	Level    *int      `json:"level,omitempty"`
	Isolated List[int] `json:"isolated"`  // levels above one that misses, which meet them nevertheless; ascending
	TTFTOnly List[int] `json:"ttft_only"` // tested levels whose TPOT p95 was not recorded; ascending
	Untested List[int] `json:"untested"`  // levels without a TTFT p95; ascending
}

// BaselineList is a page of all baselines: the built-in ones, the imported ones, and
// this target's own.
type BaselineList struct {
	Baselines  List[Baseline] `json:"baselines"`
	NextCursor string         `json:"next_cursor,omitempty"` // absent on the last page
}

// Vendor names the vendor file whose texts the guide and whose drawing the architecture page show.
type Vendor string

// The vendor files, which come with the front end.
const (
	VendorNeutral      Vendor = "neutral"      // true of any cluster
	VendorDigitalOcean Vendor = "digitalocean" // the recorded deployment's
)

// Vendors are all that a [Vendor] may be.
var Vendors = []Vendor{VendorNeutral, VendorDigitalOcean}

// Settings are settings that an administrator changes at run time.
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

// Patch sets a field to what a patch has for it, and leaves it alone where that is nil.
func Patch[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// SettingsPatch changes the settings that it names.
type SettingsPatch struct {
	SLO             *SLO    `json:"slo,omitempty"`
	Slider          *Slider `json:"slider,omitempty"`
	MaxConcurrency  *int    `json:"max_concurrency,omitempty" minimum:"1" maximum:"100000"`
	DefaultBaseline *string `json:"default_baseline,omitempty" maxLength:"100"`
	Title           *string `json:"title,omitempty" maxLength:"200"`
	Subtitle        *string `json:"subtitle,omitempty" maxLength:"200"`
	Vendor          *Vendor `json:"vendor,omitempty"`
}

// StartRequest starts the workload, or sets the concurrency of a running one. Without a concurrency it keeps the last
// one.
type StartRequest struct {
	Concurrency *int `json:"concurrency,omitempty"` // up to max_concurrency
}

// StopRequest stops the workload. With `drain`, turns in flight end by themselves.
type StopRequest struct {
	Drain bool `json:"drain"`
}

// WorkloadPatch changes the parts of the workload that it names.
type WorkloadPatch struct {
	Concurrency *int     `json:"concurrency,omitempty"` // up to max_concurrency
	Turns       *Range   `json:"turns,omitempty"`
	MaxTokens   *int     `json:"max_tokens,omitempty"`
	Openings    *int     `json:"openings,omitempty"`
	StartRate   *float64 `json:"start_rate,omitempty"`
	TargetRPS   *float64 `json:"target_rps,omitempty"`
}

// ModeRequest asks for a mode change. With the driver "manual" a change waits until the operator has done it;
// `confirm` reports that it is done. `in_force` reports that the cluster is already in this mode, so nothing is
// switched; only with the driver "manual", and the mode may then be unknown.
type ModeRequest struct {
	// name of an arm of the configuration, in whose mode and speculation it serves, whatever the request says of them;
	// absent: `mode` names the way of serving
	Arm         string      `json:"arm,omitempty"`
	Mode        Mode        `json:"mode,omitempty"`        // required without an arm
	Speculation Speculation `json:"speculation,omitempty"` // absent: unchanged
	Confirm     bool        `json:"confirm,omitempty"`
	InForce     bool        `json:"in_force,omitempty"`
}

// Check holds what the request names against what it may be. The error is a [FieldError].
func (r ModeRequest) Check() error {
	if r.Arm == "" {
		return cmp.Or(OneOf("mode", r.Mode, Modes), CheckLimits(r))
	}
	return CheckLimits(r)
}

// Turn is one request and its answer.
type Turn struct {
	Lane         string      `json:"lane"`
	Conversation string      `json:"conversation"`
	Number       int         `json:"number"` // from 1
	RequestID    string      `json:"request_id"`
	Step         int64       `json:"step"`
	Concurrency  int         `json:"concurrency"`   // target of the step it began in
	Arm          string      `json:"arm,omitempty"` // in force; absent: none of the configuration
	Mode         Mode        `json:"mode"`
	Speculation  Speculation `json:"speculation"`
	// ended in a settled step, after all turns that had begun before it settled
	Counted      bool       `json:"counted"`
	Status       TurnStatus `json:"status"`
	ErrorClass   ErrorClass `json:"error_class,omitempty"`
	ErrorMessage string     `json:"error_message,omitempty"`
	Started      time.Time  `json:"started"`
	Ended        time.Time  `json:"ended"`
	TTFT         *float64   `json:"ttft,omitempty"`
	// seconds to the first token after the reasoning, where there was some
	FirstAnswer      *float64 `json:"first_answer,omitempty"`
	TPOT             *float64 `json:"tpot,omitempty"`
	ITLP50           *float64 `json:"itl_p50,omitempty"`
	ITLP95           *float64 `json:"itl_p95,omitempty"`
	ITLEstimated     bool     `json:"itl_estimated,omitempty"`
	Latency          *float64 `json:"latency,omitempty"`
	PromptTokens     *int     `json:"prompt_tokens,omitempty"`
	CachedTokens     *int     `json:"cached_tokens,omitempty"`
	OutputTokens     *int     `json:"output_tokens,omitempty"`
	TokenSource      string   `json:"token_source,omitempty"` // usage or chunks
	FinishReason     string   `json:"finish_reason,omitempty"`
	Worker           string   `json:"worker,omitempty"`          // as the router names it; of a Dynamo its instance id in decimal
	PredictedRatio   *float64 `json:"predicted_ratio,omitempty"` // the router's predicted hit rate
	QueueDepth       *int     `json:"queue_depth,omitempty"`
	ServerTTFT       *float64 `json:"server_ttft,omitempty"` // nvext.timing.ttft_ms, in seconds
	UserMessage      string   `json:"user_message,omitempty"`
	AssistantMessage string   `json:"assistant_message,omitempty"`
}

// Conversation is a row of the list with `figures`, or the detail with `turns` and `live`.
type Conversation struct {
	ID           string             `json:"id"`
	Lane         string             `json:"lane"`
	Number       int64              `json:"number"` // k, which with the seed fixes its draws
	Topic        string             `json:"topic"`
	Starter      string             `json:"starter"` // the id of the text that it begins with
	Status       ConversationStatus `json:"status"`
	ErrorClass   ErrorClass         `json:"error_class,omitempty"` // how it failed, where it did
	TurnsPlanned int                `json:"turns_planned"`
	TurnsDone    int                `json:"turns_done"`
	Started      time.Time          `json:"started"`
	Ended        *time.Time         `json:"ended,omitempty"`
	Figures      []ConversationTurn `json:"figures,omitempty"` // of the turns that have ended, in their order
	Turns        []Turn             `json:"turns,omitempty"`
	Live         *LiveTurn          `json:"live,omitempty"`
}

// ConversationTurn is what a list of conversations has of a turn. Absent values are not known.
type ConversationTurn struct {
	TTFT         *float64 `json:"ttft,omitempty"`   // seconds
	Worker       string   `json:"worker,omitempty"` // as the router names it; of a Dynamo its instance id in decimal
	PromptTokens *int     `json:"prompt_tokens,omitempty"`
	CachedTokens *int     `json:"cached_tokens,omitempty"`
}

// Starter is a text that conversations begin with. `text` stands first in the prompt of each of them, the same to the
// byte.
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
	EventSweep      EventKind = "sweep"  // a trial, sweep or capacity search began, paused, went on or ended
	EventMember     EventKind = "member" // a member came, was lost, was late or was refused
)

// Event is a change of state: what, when, by whom.
type Event struct {
	ID   int64     `json:"id,string"`
	Time time.Time `json:"time"`
	Lane string    `json:"lane,omitempty"`
	Kind EventKind `json:"kind"`
	By   string    `json:"by"` // the Grafana login, "command line", or "page"
	Text string    `json:"text"`
}

// EventList is the newest events, newest first.
type EventList struct {
	Events List[Event] `json:"events"`
}

// StepRecord is a finished or running step as the store keeps it.
type StepRecord struct {
	Lane        string      `json:"lane"`
	ID          int64       `json:"id"`
	Concurrency int         `json:"concurrency"`
	Arm         string      `json:"arm,omitempty"` // in force; absent: none of the configuration
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
	Config        Map[string, string] `json:"config"` // in force, by dotted name; secrets are left out
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

// CorpusStatus is what conversations start from.
type CorpusStatus struct {
	Name     string     `json:"name"`
	Starters int        `json:"starters"`
	Followup string     `json:"followup"`
	Source   string     `json:"source,omitempty"`  // where it is read from; absent for the built-in articles
	ReadAt   *time.Time `json:"read_at,omitempty"` // when it was last read well
	// what the texts were measured with; the target counts otherwise, so lengths are estimates
	Tokenizer    string            `json:"tokenizer,omitempty"`
	Cut          int               `json:"cut"`               // starters that were cut at a sentence
	Joined       int               `json:"joined"`            // starters that were joined from several texts
	Skipped      int               `json:"skipped"`           // texts that are not used
	SkippedItems List[SkippedItem] `json:"skipped_items"`     // the first of them
	Problem      string            `json:"problem,omitempty"` // of the last read; what was read before stays in use
}

// SkippedItem is a text of the corpus that is not used.
type SkippedItem struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// FollowupCause says why the built-in questioner asked in the place of a model.
type FollowupCause string

// The causes.
const (
	FollowupTimeout     FollowupCause = "timeout"
	FollowupConnect     FollowupCause = "connect"
	FollowupRateLimited FollowupCause = "rate_limited"
	FollowupHTTP4xx     FollowupCause = "http_4xx"
	FollowupHTTP5xx     FollowupCause = "http_5xx"
	FollowupEmpty       FollowupCause = "empty"     // an answer without a text
	FollowupMalformed   FollowupCause = "malformed" // an answer that is no question, or no answer
	FollowupRepeated    FollowupCause = "repeated"  // a question that the conversation has had
	FollowupPaused      FollowupCause = "paused"    // not asked, because it failed a moment ago
)

// FollowupCauses are all of them.
var FollowupCauses = []FollowupCause{
	FollowupTimeout, FollowupConnect, FollowupRateLimited, FollowupHTTP4xx, FollowupHTTP5xx,
	FollowupEmpty, FollowupMalformed, FollowupRepeated, FollowupPaused,
}

// FollowupStatus says who asks the follow-up questions. The counts are those
// since the process began.
type FollowupStatus struct {
	Name      string                    `json:"name"`
	URL       string                    `json:"url,omitempty"`   // of the model that asks; absent where none does
	Model     string                    `json:"model,omitempty"` // absent until the server reports it
	ByModel   int64                     `json:"by_model"`
	Fallbacks Map[FollowupCause, int64] `json:"fallbacks"`         // asked by the built-in questioner instead, by cause
	Asking    int                       `json:"asking"`            // questions that are waited for now
	Problem   string                    `json:"problem,omitempty"` // why the model does not ask now
}

// StoreStatus says whether finished turns reach the disk. The counts are those since the process began.
type StoreStatus struct {
	Path        string `json:"path"`
	OK          bool   `json:"ok"`
	Problem     string `json:"problem,omitempty"` // why turns are not stored now
	Notice      string `json:"notice,omitempty"`  // what was removed to make room on a disk that is nearly full
	StoredTurns int64  `json:"stored_turns"`      // committed to the database: a kill -9 loses none of them
	LostTurns   int64  `json:"lost_turns"`
}

// SessionRequest exchanges the token for a cookie.
type SessionRequest struct {
	Token string `json:"token" minLength:"1" maxLength:"512"`
}

// Check allows any token, since the server compares it and no error may repeat it.
func (SessionRequest) Check() error { return nil }

// Session is what the caller may do, according to its session cookie.
type Session struct {
	TokenRequired bool `json:"token_required"` // a token is configured
	Authenticated bool `json:"authenticated"`  // the token was exchanged for the cookie
	CanRead       bool `json:"can_read"`
	CanWrite      bool `json:"can_write"`
	// the server plays a recording, in which nothing can be changed; absent: it does not
	Replay bool `json:"replay,omitempty"`
}

// Problem is an RFC 9457 problem document, the body of every error.
type Problem struct {
	Type    string `json:"type" format:"uri-reference"`
	Title   string `json:"title"`
	Status  int    `json:"status"`
	Detail  string `json:"detail,omitempty"`
	Field   string `json:"field,omitempty"`   // the field at fault
	Value   string `json:"value,omitempty"`   // what it was
	Allowed string `json:"allowed,omitempty"` // what it may be
}
