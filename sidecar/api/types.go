package api

import "time"

// Mode is a routing mode of the serving cluster.
type Mode string

// The modes that the product knows. Unknown is the mode of a server of which neither
// a driver, nor its own metrics, nor the operator has said how it routes.
const (
	ModeKV          Mode = "kv"
	ModeRoundRobin  Mode = "round_robin"
	ModeLeastLoaded Mode = "least_loaded"
	ModeUnknown     Mode = "unknown"
)

// Modes are all that a [Mode] may be.
var Modes = []Mode{ModeKV, ModeRoundRobin, ModeLeastLoaded, ModeUnknown}

// ModeSource says who told the mode in force. It is empty where nobody has.
type ModeSource string

// The sources of a mode. An operator who has said that the mode is not known is one,
// too: then nobody needs to be asked again.
const (
	ModeFromOperator ModeSource = "operator" // the configuration, or the operator's word since
	ModeFromDriver   ModeSource = "driver"   // it asks the cluster, or routes the turns itself
	ModeFromMetrics  ModeSource = "metrics"  // the router's own metrics
)

// Speculation is the kind of speculative decoding that serves.
type Speculation string

// The kinds of speculation. NotRecorded is what a baseline says when its
// documents disagree or are silent.
const (
	SpeculationOff         Speculation = "off"
	SpeculationDraft       Speculation = "draft"
	SpeculationEagle3      Speculation = "eagle3"
	SpeculationNotRecorded Speculation = "not_recorded"
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
	ErrorConnect, ErrorTimeout, ErrorStall, ErrorRateLimited, ErrorHTTP4xx,
	ErrorHTTP5xx, ErrorStream, ErrorTruncated, ErrorMalformed, ErrorOverrun, ErrorEmpty,
}

// TurnStatus is how a turn ended. A cancelled turn is neither a success nor an error.
type TurnStatus string

// The ways a turn ends.
const (
	TurnOK        TurnStatus = "ok"
	TurnError     TurnStatus = "error"
	TurnCancelled TurnStatus = "cancelled"
)

// ConversationStatus is where a conversation stands.
type ConversationStatus string

// Active conversations are in progress. Retired ones ended early at a turn
// boundary because concurrency was lowered or the workload drained.
const (
	ConversationActive    ConversationStatus = "active"
	ConversationCompleted ConversationStatus = "completed"
	ConversationRetired   ConversationStatus = "retired"
	ConversationCancelled ConversationStatus = "cancelled"
	ConversationError     ConversationStatus = "error"
)

// ConversationStatuses are all that a [ConversationStatus] may be.
var ConversationStatuses = []ConversationStatus{ConversationActive, ConversationCompleted, ConversationRetired, ConversationCancelled, ConversationError}

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
// Whoever asks a lane for it gets that lane's own; in the list of baselines, that of another
// lane than [DefaultLane] has the name of [OwnBaseline].
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
	Target    int     `json:"target"`
	Actual    int     `json:"actual"`
	LimitedBy Limiter `json:"limited_by,omitempty"` // what the next conversation waits for most of the time; empty: for none of these
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
	At int     `json:"at"`
}

// Deployment says what serves: engine, model, GPU, workers, speculation, and the
// versions and settings of its stack. Empty strings, zero and nil mean not known.
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
	Turns         Range         `json:"turns"`
	MaxTokens     int           `json:"max_tokens"`
	Openings      *int          `json:"openings,omitempty"`       // different texts that open conversations; 0: one for each; nil: not known
	OpeningTokens int           `json:"opening_tokens,omitempty"` // of each of them; 0: 3,500 to 4,000, as recorded
	OutputTokens  *Distribution `json:"output_tokens,omitempty"`  // nil: answers end where the model ends them
	Corpus        string        `json:"corpus,omitempty"`
	Followup      string        `json:"followup,omitempty"`      // who asks the follow-up questions
	ThinkSeconds  *float64      `json:"think_seconds,omitempty"` // the user's pause before a follow-up; nil: not known
	TargetRPS     *float64      `json:"target_rps,omitempty"`    // requests a second at most; 0: no cap; nil: not known
	Timeouts      *Timeouts     `json:"timeouts,omitempty"`      // nil: not known
	Request       string        `json:"request,omitempty"`       // further fields of each body, as JSON; empty: none
}

// Timeouts are how long a turn may take, in seconds. A turn that takes longer is an error: no
// latency has it, and the target is rid of it.
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

// Snapshot is everything that a screen shows of the present moment. One schema
// serves the WebSocket, Grafana Live and the page.
type Snapshot struct {
	Time     time.Time      `json:"time"`
	Lanes    []LaneSnapshot `json:"lanes"`
	Settings Settings       `json:"settings"`
	Client   ClientHealth   `json:"client"`
	Members  []Member       `json:"members,omitempty"` // by name; none where this process holds all conversations
	Replay   *Replay        `json:"replay,omitempty"`  // nil: live
}

// Replay says that a [Snapshot] comes from a recording, whose times are moved into the present.
type Replay struct {
	RecordedAt time.Time `json:"recorded_at"` // when the recording begins
	Position   float64   `json:"position"`    // seconds since its beginning
	Length     float64   `json:"length"`      // seconds, after which it begins anew
}

// LaneSnapshot is one lane's part of a [Snapshot].
type LaneSnapshot struct {
	Name       string        `json:"name"`
	Target     Target        `json:"target"`
	State      State         `json:"state"`
	Window     Window        `json:"window"`
	Totals     Totals        `json:"totals"`
	TTFTByTurn []TurnFigures `json:"ttft_by_turn"` // of the last 60 s, turn numbers ascending, "6+" last
	KV         KV            `json:"kv"`
	Cluster    Cluster       `json:"cluster"`
	Baseline   Comparison    `json:"baseline"`
	// SharedWorkers are those that serve another lane, too: the lanes disturb each other,
	// and no figure says what either could serve alone.
	SharedWorkers []string `json:"shared_workers,omitempty"`
}

// History is what a lane's snapshots said in the last ten minutes, oldest first,
// one a second; fewer where the load generator has not run for as long.
type History struct {
	Points []HistoryPoint `json:"points"`
}

// HistoryPoint is what a lane's snapshot said of one second. What is not measured
// then is nil: the rate while nothing runs, the others also before the first turn
// has ended.
type HistoryPoint struct {
	Time                  time.Time   `json:"time"`
	Running               bool        `json:"running"`
	Concurrency           int         `json:"concurrency"` // actual
	Mode                  Mode        `json:"mode"`
	Speculation           Speculation `json:"speculation"`
	TTFTP50               *float64    `json:"ttft_p50,omitempty"`                 // seconds, of the turns of the 60 s before
	TTFTP95               *float64    `json:"ttft_p95,omitempty"`                 // likewise
	OutputTokensPerSecond *float64    `json:"output_tokens_per_second,omitempty"` // over the 60 s before
	KVHitRatio            *float64    `json:"kv_hit_ratio,omitempty"`             // over the 60 s before
}

// TargetKind says what is behind a target's interface.
type TargetKind string

// The kinds of a target. Unknown is what nobody has said.
const (
	TargetReal      TargetKind = "real"      // engines on GPUs
	TargetSimulated TargetKind = "simulated" // the simulated cluster
	TargetMocked    TargetKind = "mocked"    // a real router before workers that imitate engines
	TargetUnknown   TargetKind = "unknown"
)

// TargetID tells targets apart: two are the same where their ids are equal.
type TargetID struct {
	URL   string `json:"url"`
	Model string `json:"model,omitempty"`
}

// Target is the server under load.
type Target struct {
	Kind       TargetKind `json:"kind"`
	URL        string     `json:"url"`
	Endpoint   string     `json:"endpoint,omitempty"` // where turns go now, where each mode has an address of its own
	Model      string     `json:"model,omitempty"`    // empty until the target told it
	Deployment Deployment `json:"deployment"`
	Features   []Feature  `json:"features,omitempty"` // those that the cluster's own description shows
	Reachable  bool       `json:"reachable"`
	Problem    string     `json:"problem,omitempty"` // why turns fail now, in words that say what to do
	// ProblemStatus is the HTTP status that the target answers with instead; 0: none, as without a connection.
	ProblemStatus int      `json:"problem_status,omitempty"`
	Notices       []string `json:"notices,omitempty"` // what is odd about its answers, though it serves
	Probes        int64    `json:"probes"`            // requests of no turn: what it supports, whether it serves
}

// Feature is one of Dynamo's that a deployment uses, or does not use.
type Feature struct {
	Name     string `json:"name"` // one of the constants below
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

// ModeState is a routing mode with the speculation that goes with it.
type ModeState struct {
	Mode        Mode        `json:"mode"`
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

// Simulation is what a simulated cluster tells of itself.
type Simulation struct {
	Profile    string  `json:"profile"`    // the GPU profile's name
	Calibrated bool    `json:"calibrated"` // false: its timing in the mode in force is assumed, and fitted to no recorded result
	Speed      float64 `json:"speed"`      // how many times as fast as the clock its time goes
}

// Step is a span with unchanged concurrency, mode and workload settings.
type Step struct {
	ID      int64      `json:"id"`
	Started time.Time  `json:"started"`
	Settled *time.Time `json:"settled,omitempty"` // when actual concurrency first equalled the target, or stayed where it is held
	Held    *Held      `json:"held,omitempty"`    // it settled below the target; its figures are those of this concurrency
	Counted int        `json:"counted"`           // turns that count for comparisons so far
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
	Running     bool           `json:"running"`
	Phase       Phase          `json:"phase"`
	Concurrency Concurrency    `json:"concurrency"`
	Step        Step           `json:"step"`
	Settling    bool           `json:"settling"` // true until 60 s of counted turns exist
	Mode        Mode           `json:"mode"`
	ModeFrom    ModeSource     `json:"mode_from,omitempty"` // who told the mode; empty: nobody has yet
	Speculation Speculation    `json:"speculation"`
	Driver      string         `json:"driver"`
	Modes       []ModeState    `json:"modes"` // what the driver offers
	ModeChange  *ModeChange    `json:"mode_change,omitempty"`
	Simulation  *Simulation    `json:"simulation,omitempty"` // nil: the driver's cluster is not a simulated one, or has not told yet
	Started     *time.Time     `json:"started,omitempty"`    // of the last start
	Shape       WorkloadShape  `json:"shape"`
	Questioner  QuestionerKind `json:"questioner"`
	StartRate   float64        `json:"start_rate"`         // new conversations a second at most
	TargetRPS   float64        `json:"target_rps"`         // 0: no cap
	Sweep       *SweepSummary  `json:"sweep,omitempty"`    // that has the lane: nothing else starts, changes or switches it
	Showcase    bool           `json:"showcase,omitempty"` // a showcase is under way: a conversation beside the workload that no figure has
}

// Quantiles are the p50 and p95 of one metric in seconds, over n values. The
// intervals are 95 % confidence intervals from order statistics, with as many of
// them as are independent; they are nil where these are too few to give one.
type Quantiles struct {
	P50         *float64    `json:"p50,omitempty"`
	P95         *float64    `json:"p95,omitempty"`
	P99         *float64    `json:"p99,omitempty"`
	N           int         `json:"n"`
	P50Interval *[2]float64 `json:"p50_interval,omitempty"`
	P95Interval *[2]float64 `json:"p95_interval,omitempty"`
	Estimated   bool        `json:"estimated,omitempty"` // ITL whose chunks did not tell their tokens
	Unknown     int         `json:"unknown,omitempty"`   // turns that ended well without a known value
	// P50Error and P95Error are the most that the load generator itself may be wrong by, in
	// seconds; the intervals contain it. nil: it is not known.
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
	Seconds               float64            `json:"seconds"` // 60, or less just after a start
	Metrics               Metrics            `json:"metrics"`
	RequestsPerSecond     float64            `json:"requests_per_second"`
	OutputTokensPerSecond float64            `json:"output_tokens_per_second"`
	ErrorRatio            *float64           `json:"error_ratio,omitempty"` // errors / (ok + errors)
	Timeouts              int                `json:"timeouts"`              // classes timeout and stall
	Errors                map[ErrorClass]int `json:"errors"`
	GoodputRatio          *float64           `json:"goodput_ratio,omitempty"` // turns that met every SLO / (ok + errors)
	Awaiting              Awaiting           `json:"awaiting"`
	// FirstAnswer is the time to the first token after the reasoning, of the turns that had both;
	// nil where none had.
	FirstAnswer *Quantiles `json:"first_answer,omitempty"`
	InputP95    *float64   `json:"input_p95,omitempty"` // prompt tokens of a turn, of those with a count
}

// Awaiting describes the turns that still wait for their first token.
type Awaiting struct {
	N             int     `json:"n"`
	OldestSeconds float64 `json:"oldest_seconds"`
}

// Totals count since the lane's last start, live: a turn counts when it ends, up to 200 ms before it is stored.
// [StoreStatus.StoredTurns] counts those that are.
type Totals struct {
	OK            int64                `json:"ok"`
	Errors        int64                `json:"errors"`
	Cancelled     int64                `json:"cancelled"`
	ErrorsByClass map[ErrorClass]int64 `json:"errors_by_class"`
	InputTokens   int64                `json:"input_tokens"`
	CachedTokens  int64                `json:"cached_tokens"`
	OutputTokens  int64                `json:"output_tokens"`
	InputUnknown  int64                `json:"input_unknown,omitempty"`  // whole turns without a count of input tokens
	CachedUnknown int64                `json:"cached_unknown,omitempty"` // and without one of cached tokens
	Conversations int64                `json:"conversations"`            // ended, in whatever way
	LostTurns     int64                `json:"lost_turns"`               // finished turns that could not be stored
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
	// CachedRatio is the share of prompt tokens from a cache, of the turns with a count of both.
	CachedRatio *float64 `json:"cached_ratio,omitempty"`
}

// KV is the share of prompt tokens that came from a KV cache over the last 60 s.
type KV struct {
	HitRatio        *float64 `json:"hit_ratio,omitempty"`    // cached / prompt tokens as the clients saw them
	Source          string   `json:"source,omitempty"`       // usage; frontend or engine where usage tells no cached tokens
	NotReported     string   `json:"not_reported,omitempty"` // why turns have ended and there is no hit ratio all the same
	PredictedRatio  *float64 `json:"predicted,omitempty"`    // as the router predicted it
	AchievableRatio *float64 `json:"achievable,omitempty"`   // had each turn gone to the worker with the longest prefix

	// Counted are the counters behind the ratios, by what reports them (frontend, engine, prediction): hits and all,
	// since the load generator first read the cluster.
	Counted map[string][2]float64 `json:"-"`
}

// Cluster is what Prometheus or the target itself tells of the serving cluster.
type Cluster struct {
	Available     bool           `json:"available"`
	Problem       string         `json:"problem,omitempty"`
	Source        string         `json:"source,omitempty"` // prometheus or direct
	Queued        *float64       `json:"queued,omitempty"`
	Inflight      *float64       `json:"inflight,omitempty"`
	InflightMin   *float64       `json:"inflight_min,omitempty"`
	InflightMax   *float64       `json:"inflight_max,omitempty"`
	Spread        *float64       `json:"spread,omitempty"` // max − min in-flight over the workers
	Skew          *float64       `json:"skew,omitempty"`   // max / mean in-flight over the workers
	BatchLimit    *float64       `json:"batch_limit,omitempty"`
	CacheBlocks   *float64       `json:"cache_blocks,omitempty"` // of a worker's KV cache
	BlockTokens   *float64       `json:"block_tokens,omitempty"` // of a block of it
	KV            KV             `json:"kv"`
	Speculation   SpeculativeUse `json:"speculation"`
	Workers       []Worker       `json:"workers"`               // all; of more than 256 the 8 busiest and the 8 idlest
	AllWorkers    *AllWorkers    `json:"all_workers,omitempty"` // where workers lists only some
	OtherGPUs     []HostGPUs     `json:"other_gpus,omitempty"`  // that no worker could be found for
	GPU           string         `json:"gpu,omitempty"`
	Model         string         `json:"model,omitempty"`
	Engine        string         `json:"engine,omitempty"`       // trtllm, vllm, sglang
	RoutesByKV    *bool          `json:"routes_by_kv,omitempty"` // whether the router chose by what the KV caches hold, over the last 60 s, as its own metrics tell; nil: they do not
	Unread        Unread         `json:"unread,omitzero"`
	UpdatedSecond float64        `json:"age_seconds"` // since the last successful reading

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
	AcceptanceRate *float64 `json:"acceptance_rate,omitempty"`  // accepted / drafted tokens; nil where nothing was drafted
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

// Unread says of which parts of a cluster no metrics are read, and why: a clause
// that can begin a sentence. Empty: that part's metrics are read, and what they do
// not hold, the part does not report.
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

// AllWorkers is what all workers of a cluster tell together.
type AllWorkers struct {
	Count    int      `json:"count"`
	GPUs     int      `json:"gpus"`
	Waiting  *float64 `json:"waiting,omitempty"`   // the sum
	Routed   *float64 `json:"routed,omitempty"`    // the sum
	Inflight *Spread  `json:"inflight,omitempty"`  // requests of a worker
	CacheUse *Spread  `json:"cache_use,omitempty"` // of a worker, 0 to 1
}

// Spread is how a figure is spread over those who tell it.
type Spread struct {
	Min float64 `json:"min"`
	P10 float64 `json:"p10"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	Max float64 `json:"max"`
}

// SpeculativeUse is how well speculative decoding does over the last 60 s.
type SpeculativeUse struct {
	AcceptanceRatio *float64 `json:"acceptance,omitempty"`      // accepted / drafted tokens; nil when off
	TokensPerStep   *float64 `json:"tokens_per_step,omitempty"` // per forward pass of the target model; 1 when off
}

// Worker is one engine of the cluster.
type Worker struct {
	ID           string   `json:"id"`                 // decimal instance id
	Name         string   `json:"name"`               // pod, host:port, or the id's tail
	Inflight     *float64 `json:"inflight,omitempty"` // of a Dynamo all requests, else those computed, without the waiting
	Waiting      *float64 `json:"waiting,omitempty"`
	QueueSeconds *float64 `json:"queue_seconds,omitempty"` // mean over 60 s
	Routed       *float64 `json:"routed,omitempty"`        // requests routed to it
	CacheUse     *float64 `json:"cache_use,omitempty"`
	HitRatio     *float64 `json:"hit_ratio,omitempty"`    // by counters over 60 s, else the engine's own gauge
	NotReported  []string `json:"not_reported,omitempty"` // fields of these that nothing tells; one that is absent and not listed has no value yet
	GPUs         []GPU    `json:"gpus"`
}

// HostGPUs are the GPUs of a host of which nothing tells the worker that uses them.
type HostGPUs struct {
	Host string `json:"host"`
	GPUs []GPU  `json:"gpus"`
}

// GPU is one GPU of a worker, or one MIG instance of a GPU.
type GPU struct {
	Index       string   `json:"index"`
	Instance    string   `json:"instance,omitempty"`     // of a GPU in MIG mode: profile and id, such as "2g.20gb #3"
	UUID        string   `json:"uuid,omitempty"`         // where its pod tells that it is this worker's
	Utilisation *float64 `json:"utilisation,omitempty"`  // 0 to 1
	MemoryUsed  *float64 `json:"memory_used,omitempty"`  // bytes
	MemoryTotal *float64 `json:"memory_total,omitempty"` // bytes
}

// ClientHealth says how much of the figures is the load generator's own error.
type ClientHealth struct {
	Verdict    Verdict       `json:"verdict"` // the worst of Metrics
	Reason     string        `json:"reason"`
	CPURatio   float64       `json:"cpu_ratio"`         // share of all cores that the process uses
	LagSeconds float64       `json:"lag_seconds"`       // how late its time stamps are, p95 of the last 10 s
	Metrics    []ClientError `json:"metrics,omitempty"` // of each lane that has figures
	Simulating bool          `json:"-"`                 // a what-if simulation has been computed beside it in that time
}

// ClientError is the load generator's own error of one metric, beside what its level stands on.
type ClientError struct {
	Lane         string     `json:"lane"`
	Metric       string     `json:"metric"` // ttft, tpot, itl or latency
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

// The bases of a level: the metric's p50, a difference from a baseline, or the distance from the
// threshold of an SLO.
const (
	OfP50        ErrorBasis = "p50"
	OfDifference ErrorBasis = "difference"
	OfThreshold  ErrorBasis = "threshold"
)

// Member is a load generator that holds conversations for this one.
type Member struct {
	ID            string       `json:"id"` // of its lease: one that lost its lease comes back with another
	Name          string       `json:"name"`
	Version       string       `json:"version"`
	Started       time.Time    `json:"started"`
	State         MemberState  `json:"state"`
	Reason        string       `json:"reason,omitempty"` // of a member that is late or refused
	Conversations int          `json:"conversations"`    // in progress, in all lanes
	Client        ClientHealth `json:"client"`
	// ClockAheadSeconds is how far its clock is ahead of this one's, give or take
	// ClockWithinSeconds; times are corrected by it. nil: it is not known yet.
	ClockAheadSeconds  *float64 `json:"clock_ahead_seconds,omitempty"`
	ClockWithinSeconds *float64 `json:"clock_within_seconds,omitempty"`
	LostTurns          int64    `json:"lost_turns,omitempty"` // that it could not hand over
}

// MemberState says what a member is given.
type MemberState string

// A late member's own error is noticeable in what it measures: where most members are in
// time, others have its share until it has been in time for a while.
const (
	MemberPresent MemberState = "present"
	MemberLate    MemberState = "late"
	MemberLeaving MemberState = "leaving" // it ends what it has
	MemberRefused MemberState = "refused"
)

// Verdict says how large the load generator's own error is.
type Verdict string

// Unknown is what is said in the first seconds. An error is Fine, which is negligible, below 2 %
// of the metric's p50 and a tenth of every difference shown; it is Noticeable where the
// intervals contain it; and with Bottleneck it is too large: an outcome is withheld for it, or
// it is more than half of the figure.
const (
	VerdictUnknown    Verdict = "unknown"
	VerdictFine       Verdict = "ok"
	VerdictNoticeable Verdict = "noticeable"
	VerdictBottleneck Verdict = "client_bottleneck"
)

// Lookup says how a baseline's value was found.
type Lookup string

// The kinds of a looked-up value. Only Exact and Interpolated carry one.
const (
	LookupExact        Lookup = "exact"
	LookupInterpolated Lookup = "interpolated"
	LookupOutside      Lookup = "outside_range"
	LookupNotRecorded  Lookup = "not_recorded"
)

// Outcome says how a live value stands to a baseline's.
type Outcome string

// The outcomes. Better and Worse are told where the 95 % interval of the
// difference leaves out 0, NoDifference where it holds 0, TooVariable where the
// measured turns give no interval: there are too few batches of them. It is Withheld where the
// load generator's own error could change it: the interval leaves out 0 without that alone.
const (
	OutcomeBetter       Outcome = "better"
	OutcomeWorse        Outcome = "worse"
	OutcomeNoDifference Outcome = "no_difference"
	OutcomeTooVariable  Outcome = "too_variable"
	OutcomeWithheld     Outcome = "withheld"
)

// Outcomes are all that an [Outcome] may be.
var Outcomes = []Outcome{OutcomeBetter, OutcomeWorse, OutcomeNoDifference, OutcomeTooVariable, OutcomeWithheld}

// Improvement compares the live value with a baseline's. Percent, of the
// baseline's value, is positive where live is better.
type Improvement struct {
	Percent  float64     `json:"percent"`
	Outcome  Outcome     `json:"outcome"`
	Interval *[2]float64 `json:"interval,omitempty"` // 95 %, of Percent; nil where too little was measured
	// SecondsLeft is about how long it takes until the outcome is better or worse, if Percent stays what it is. Nil: it is
	// one of them, or will not be, or it is not known.
	SecondsLeft *float64 `json:"seconds_left,omitempty"`
}

// LookedUp is one value of a baseline at the live concurrency.
type LookedUp struct {
	Value       *float64     `json:"value,omitempty"`
	Interval    *[2]float64  `json:"interval,omitempty"`           // 95 %, of Value; nil where it is not known
	Error       *float64     `json:"error,omitempty"`              // the load generator's own at most; in Interval
	Estimated   bool         `json:"interval_estimated,omitempty"` // Interval is what recorded tables scatter by, not measured with this value
	Lookup      Lookup       `json:"lookup"`
	Improvement *Improvement `json:"improvement,omitempty"`
}

// LookedUpPair is p50 and p95 of a metric, in seconds.
type LookedUpPair struct {
	P50 LookedUp `json:"p50"`
	P95 LookedUp `json:"p95"`
}

// Column is one mode of a baseline at the live concurrency.
type Column struct {
	Mode                  Mode         `json:"mode"`
	Speculation           Speculation  `json:"speculation"`
	Measured              *time.Time   `json:"measured,omitempty"` // when, for rows that this target measured
	N                     int          `json:"n,omitempty"`
	LagSeconds            *float64     `json:"lag_seconds,omitempty"` // how late the load generator was then; see [BaselineRow]
	TTFT                  LookedUpPair `json:"ttft"`
	TPOT                  LookedUpPair `json:"tpot"`
	ITL                   LookedUpPair `json:"itl"`
	Latency               LookedUpPair `json:"latency"`
	OutputTokensPerSecond LookedUp     `json:"output_tokens_per_second"`
	RequestsPerSecond     LookedUp     `json:"requests_per_second"`
	KVHitRatio            LookedUp     `json:"kv_hit_ratio"`

	// Absent where no row of the mode has them.
	AcceptanceRate LookedUp `json:"acceptance_rate,omitzero"`
	TokensPerStep  LookedUp `json:"tokens_per_step,omitzero"`
	GPUMemoryBytes LookedUp `json:"gpu_memory_bytes,omitzero"`
}

// Difference names one way in which the live run is unlike a baseline's.
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
	// Seconds is how much time the live figures are of: whole batches of the step since its first counted turn, at most an
	// hour.
	Seconds    float64  `json:"seconds"`
	N          int      `json:"n"`    // counted turns in Live
	Live       Metrics  `json:"live"` // of the step's counted turns
	LiveOutput *float64 `json:"live_output_tokens_per_second,omitempty"`
	LiveRPS    *float64 `json:"live_requests_per_second,omitempty"`
	LiveKV     *float64 `json:"live_kv_hit_ratio,omitempty"`

	// The 95 % intervals of the three above, which hold however often they are looked at; nil where there are too few
	// batches.
	LiveOutputInterval *[2]float64 `json:"live_output_tokens_per_second_interval,omitempty"`
	LiveRPSInterval    *[2]float64 `json:"live_requests_per_second_interval,omitempty"`
	LiveKVInterval     *[2]float64 `json:"live_kv_hit_ratio_interval,omitempty"`

	// Withheld says why no column has improvements although the step may have settled:
	// the openings are of another length than the baseline's, the live mode is not known,
	// or another lane shares workers. Empty: nothing is withheld.
	Withheld string `json:"withheld,omitempty"`
	// NotKept is the latest step of this target, since the process began, that
	// became no row, with the baseline [ThisTarget] alone; nil: there is none, or
	// its level and mode have been measured since.
	NotKept *NotKept `json:"not_kept,omitempty"`

	Differences []Difference `json:"differences"`
	Columns     []Column     `json:"columns"`
}

// NotKept says why what was measured became no row of the baseline [ThisTarget].
type NotKept struct {
	Concurrency int         `json:"concurrency"`
	Mode        Mode        `json:"mode"`
	Speculation Speculation `json:"speculation"`
	Time        time.Time   `json:"time"`
	Reason      string      `json:"reason"` // a clause that can follow a colon
}

// Percentiles are p50 and p95 in seconds, nil where not recorded.
type Percentiles struct {
	P50 *float64 `json:"p50,omitempty"`
	P95 *float64 `json:"p95,omitempty"`
}

// BaselineRow is one level of a baseline in one mode. TPOT is the mean gap of a
// request (the recorded tables call it itl); TPOTDerived was computed from other
// percentiles (the recorded tables call it tpot) and is compared with nothing, as
// are the cluster's figures.
type BaselineRow struct {
	Concurrency           int         `json:"concurrency"`
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
	ErrorRatio            *float64    `json:"error_ratio,omitempty"`      // failed / (ended well + failed)
	AcceptanceRate        *float64    `json:"acceptance_rate,omitempty"`  // accepted / drafted tokens
	TokensPerStep         *float64    `json:"tokens_per_step,omitempty"`  // of a forward pass of the target model
	GPUMemoryBytes        *float64    `json:"gpu_memory_bytes,omitempty"` // in use on a GPU, mean
	ClusterFigures
	N        int        `json:"n,omitempty"`        // turns behind the row, where known
	Measured *time.Time `json:"measured,omitempty"` // when, where known
	// Unlike names the values that are missing here because an imported file has them by another
	// definition, such as ttft_p50.
	Unlike []string `json:"unlike,omitempty"`

	// Seconds is how long it was measured, where known. LagSeconds is how late the
	// load generator was over that time (p95), where known, and Errors are what it may
	// have been wrong by itself, which Intervals contain.
	Seconds    float64       `json:"seconds,omitempty"`
	LagSeconds *float64      `json:"lag_seconds,omitempty"`
	Errors     *RowErrors    `json:"errors,omitempty"`
	Intervals  *RowIntervals `json:"intervals,omitempty"` // nil: none is known
}

// ClusterFigures are what a serving cluster reports of itself at one level in one mode: they can explain why one mode is
// slower than another. Nil is not known. Queue times are of a request before its worker begins it.
type ClusterFigures struct {
	QueueSeconds      *float64 `json:"queue_seconds,omitempty"`       // mean over workers and time
	QueueLargest      *float64 `json:"queue_largest,omitempty"`       // seconds, largest of any worker at any time
	QueueSecond       *float64 `json:"queue_second,omitempty"`        // seconds, largest of the worker with the second largest
	QueueLeast        *float64 `json:"queue_least,omitempty"`         // seconds, largest of the worker with the smallest
	QueueSkew         *float64 `json:"queue_skew,omitempty"`          // slowest worker's queue over the workers' mean, mean over time
	Waiting           *float64 `json:"waiting,omitempty"`             // requests that wait at all workers, mean over time
	EngineTTFT        *float64 `json:"engine_ttft_seconds,omitempty"` // p95 of the time to the first token as the server reports it with its turns
	EngineTTFTLargest *float64 `json:"engine_ttft_largest,omitempty"` // seconds, largest of any worker at any time
	InflightLargest   *float64 `json:"inflight_largest,omitempty"`    // requests on the busiest worker at any time
	InflightSpread    *float64 `json:"inflight_spread,omitempty"`     // busiest less idlest worker, in requests, mean over time
	InflightSpreadMin *float64 `json:"inflight_spread_min,omitempty"` // the same, as a range over moments
	InflightSpreadMax *float64 `json:"inflight_spread_max,omitempty"`
	InflightSkew      *float64 `json:"inflight_skew,omitempty"` // busiest worker over the workers' mean, mean over time
}

// RowErrors are the most that the load generator itself may be wrong by in a row's latencies.
type RowErrors struct {
	TTFT    Percentiles `json:"ttft"`
	TPOT    Percentiles `json:"tpot"`
	ITL     Percentiles `json:"itl"`
	Latency Percentiles `json:"latency"`
}

// RowIntervals are the 95 % intervals of a row's values, in their units. One that
// is nil is not known.
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

// PercentileIntervals are the 95 % intervals of a metric's p50 and p95 in seconds.
type PercentileIntervals struct {
	P50 *[2]float64 `json:"p50,omitempty"`
	P95 *[2]float64 `json:"p95,omitempty"`
}

// Baseline is a recorded result: per level and mode, with its deployment and workload.
type Baseline struct {
	Name       string         `json:"name"`
	Title      string         `json:"title"`
	Kind       string         `json:"kind"` // recorded, imported or measured
	Notes      string         `json:"notes,omitempty"`
	Target     *TargetID      `json:"target,omitempty"` // whose rows these are, where they are measured
	Deployment Deployment     `json:"deployment"`
	Workload   *WorkloadShape `json:"workload,omitempty"`
	Provenance Provenance     `json:"provenance,omitzero"`
	Rows       []BaselineRow  `json:"rows"`
	Sustained  []Sustained    `json:"sustained,omitempty"` // of each mode, under the SLOs in force when it was asked for; an import's is not read
	// Advantages are those of KV-aware routing over round-robin, as they were computed when the baseline was asked for; an
	// import's are not read.
	Advantages []Advantage `json:"advantages,omitempty"`
}

// Provenance says where a baseline's figures come from. What is empty is not known.
type Provenance struct {
	Runs         []Source `json:"runs,omitempty"` // of several, the rows are the averages
	Region       string   `json:"region,omitempty"`
	Interconnect string   `json:"interconnect,omitempty"`  // between GPUs
	Services     string   `json:"services,omitempty"`      // that the serving stack needs beside itself, such as "etcd, NATS"
	BetweenModes string   `json:"between_modes,omitempty"` // what was restarted, and what kept its state
}

// Source is a run that figures come from.
type Source struct {
	File    string     `json:"file"`
	Date    *time.Time `json:"date,omitempty"`
	Seed    *uint64    `json:"seed,omitempty,string"`
	Version string     `json:"version,omitempty"` // of the load generator that measured
}

// Advantage says by how much KV-aware routing is better than round-robin at one level of a baseline.
type Advantage struct {
	Concurrency int         `json:"concurrency"`
	Speculation Speculation `json:"speculation"`
	// Of are the improvements by the names of a row's values, such as ttft_p95.
	Of map[string]Improvement `json:"of"`
}

// Sustained is what one mode of a baseline sustains under the SLOs: the highest
// tested level such that it and every lower one meet them all. A level is tested
// where it has a TTFT p95; one whose TPOT p95 was not recorded is judged by TTFT alone.
type Sustained struct {
	Mode        Mode        `json:"mode"`
	Speculation Speculation `json:"speculation"`
	SLO         SLO         `json:"slo"`             // that it was judged by
	Level       *int        `json:"level,omitempty"` // 0: not even the lowest tested level meets them; nil: no level was tested
	Isolated    []int       `json:"isolated"`        // levels above one that misses, which meet them nevertheless; ascending
	TTFTOnly    []int       `json:"ttft_only"`       // tested levels whose TPOT p95 was not recorded; ascending
	Untested    []int       `json:"untested"`        // levels without a TTFT p95; ascending
}

// BaselineList is a page of all baselines: the built-in ones, the imported ones, and
// this target's own.
type BaselineList struct {
	Baselines  []Baseline `json:"baselines"`
	NextCursor string     `json:"next_cursor,omitempty"` // empty on the last page
}

// Vendor names the vendor file whose texts the guide and whose drawing the
// architecture page show. The files themselves come with the front end.
type Vendor string

// The vendor files. Neutral is true of anybody's cluster.
const (
	VendorNeutral      Vendor = "neutral"
	VendorDigitalOcean Vendor = "digitalocean" // the recorded deployment's
)

// Vendors are all that a [Vendor] may be.
var Vendors = []Vendor{VendorNeutral, VendorDigitalOcean}

// Settings are what an administrator changes while it runs.
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
	TTFT float64 `json:"ttft"`
	TPOT float64 `json:"tpot"`
}

// Slider is the range of the concurrency slider.
type Slider struct {
	Min       int `json:"min"`
	Max       int `json:"max"`
	Increment int `json:"increment"`
}

// Patch sets a field to what a patch has for it, and leaves it alone where that is nil.
func Patch[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// SettingsPatch changes those settings that are not nil.
type SettingsPatch struct {
	SLO             *SLO    `json:"slo,omitempty"`
	Slider          *Slider `json:"slider,omitempty"`
	MaxConcurrency  *int    `json:"max_concurrency,omitempty"`
	DefaultBaseline *string `json:"default_baseline,omitempty"`
	Title           *string `json:"title,omitempty"`
	Subtitle        *string `json:"subtitle,omitempty"`
	Vendor          *Vendor `json:"vendor,omitempty"`
}

// StartRequest starts the workload, or sets the concurrency of a running one.
// A nil concurrency keeps the last one.
type StartRequest struct {
	Concurrency *int `json:"concurrency,omitempty"`
}

// StopRequest stops the workload. With Drain, turns in flight end by themselves.
type StopRequest struct {
	Drain bool `json:"drain"`
}

// WorkloadPatch changes those parts of the workload that are not nil.
type WorkloadPatch struct {
	Concurrency *int     `json:"concurrency,omitempty"`
	Turns       *Range   `json:"turns,omitempty"`
	MaxTokens   *int     `json:"max_tokens,omitempty"`
	Openings    *int     `json:"openings,omitempty"`
	StartRate   *float64 `json:"start_rate,omitempty"`
	TargetRPS   *float64 `json:"target_rps,omitempty"`
}

// ModeRequest asks for a mode change. With the driver "manual" a change waits
// until the operator has done it; Confirm is the operator's word for that. InForce is
// the operator's word that the mode is in force already: nothing is switched. It is
// for the driver "manual" too, the only one that knows no mode by itself; with it,
// Mode may be [ModeUnknown].
type ModeRequest struct {
	Mode        Mode        `json:"mode"`
	Speculation Speculation `json:"speculation,omitempty"` // empty: unchanged
	Confirm     bool        `json:"confirm,omitempty"`
	InForce     bool        `json:"in_force,omitempty"`
}

// Turn is one request and its answer.
type Turn struct {
	Lane         string      `json:"lane"`
	Conversation string      `json:"conversation"`
	Number       int         `json:"number"` // from 1
	RequestID    string      `json:"request_id"`
	Step         int64       `json:"step"`
	Concurrency  int         `json:"concurrency"` // target of the step it began in
	Mode         Mode        `json:"mode"`
	Speculation  Speculation `json:"speculation"`
	// Counted: it ended in a settled step, after all turns that had begun before it settled.
	Counted          bool       `json:"counted"`
	Status           TurnStatus `json:"status"`
	ErrorClass       ErrorClass `json:"error_class,omitempty"`
	ErrorMessage     string     `json:"error_message,omitempty"`
	Started          time.Time  `json:"started"`
	Ended            time.Time  `json:"ended"`
	TTFT             *float64   `json:"ttft,omitempty"`
	FirstAnswer      *float64   `json:"first_answer,omitempty"` // to the first token after any reasoning
	TPOT             *float64   `json:"tpot,omitempty"`
	ITLP50           *float64   `json:"itl_p50,omitempty"`
	ITLP95           *float64   `json:"itl_p95,omitempty"`
	ITLEstimated     bool       `json:"itl_estimated,omitempty"`
	Latency          *float64   `json:"latency,omitempty"`
	PromptTokens     *int       `json:"prompt_tokens,omitempty"`
	CachedTokens     *int       `json:"cached_tokens,omitempty"`
	OutputTokens     *int       `json:"output_tokens,omitempty"`
	TokenSource      string     `json:"token_source,omitempty"` // usage or chunks
	FinishReason     string     `json:"finish_reason,omitempty"`
	Worker           string     `json:"worker,omitempty"`          // decimal instance id
	PredictedRatio   *float64   `json:"predicted_ratio,omitempty"` // the router's predicted hit rate
	QueueDepth       *int       `json:"queue_depth,omitempty"`
	ServerTTFT       *float64   `json:"server_ttft,omitempty"` // nvext.timing.ttft_ms, in seconds
	UserMessage      string     `json:"user_message,omitempty"`
	AssistantMessage string     `json:"assistant_message,omitempty"`
}

// Conversation is a row of the list with Figures, or the detail with Turns and Live.
type Conversation struct {
	ID           string             `json:"id"`
	Lane         string             `json:"lane"`
	Number       int64              `json:"number"` // k, which with the seed fixes its draws
	Topic        string             `json:"topic"`
	Starter      string             `json:"starter"`
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
	Worker       string   `json:"worker,omitempty"` // decimal instance id
	PromptTokens *int     `json:"prompt_tokens,omitempty"`
	CachedTokens *int     `json:"cached_tokens,omitempty"`
}

// Starter is a text that conversations begin with. Text stands first in the
// prompt of each of them, the same to the byte.
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
	Conversations []Conversation `json:"conversations"`
	NextCursor    string         `json:"next_cursor,omitempty"` // empty on the last page
}

// ConversationQuery selects conversations. Zero values select all; a limit of 0 means 50.
type ConversationQuery struct {
	Lane   string
	Status ConversationStatus
	Topic  string
	Cursor string
	Limit  int
}

// EventKind says what happened.
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
	Events []Event `json:"events"`
}

// StepRecord is a finished or running step as the store keeps it.
type StepRecord struct {
	Lane        string      `json:"lane"`
	ID          int64       `json:"id"`
	Concurrency int         `json:"concurrency"`
	Mode        Mode        `json:"mode"`
	Speculation Speculation `json:"speculation"`
	Started     time.Time   `json:"started"`
	Settled     *time.Time  `json:"settled,omitempty"`
	Held        *Held       `json:"held,omitempty"`
	Ended       *time.Time  `json:"ended,omitempty"`
}

// Status is the sidecar's state, configuration and health.
type Status struct {
	Version       string            `json:"version"`
	GoVersion     string            `json:"go_version"`
	Started       time.Time         `json:"started"`
	UptimeSeconds float64           `json:"uptime_seconds"`
	Lanes         []LaneStatus      `json:"lanes"`
	Settings      Settings          `json:"settings"`
	Client        ClientHealth      `json:"client"`
	Store         StoreStatus       `json:"store"`
	Config        map[string]string `json:"config"` // in force, by dotted name; secrets are left out
}

// LaneStatus is a lane's part of [Status].
type LaneStatus struct {
	Name       string          `json:"name"`
	Target     Target          `json:"target"`
	State      State           `json:"state"`
	Totals     Totals          `json:"totals"`
	Extensions map[string]bool `json:"extensions"` // which request extensions are in use
	Corpus     CorpusStatus    `json:"corpus"`
	Followup   FollowupStatus  `json:"followup"`
	Seed       uint64          `json:"seed,string"`
}

// CorpusStatus says what conversations start from.
type CorpusStatus struct {
	Name     string     `json:"name"`
	Starters int        `json:"starters"`
	Followup string     `json:"followup"`
	Source   string     `json:"source,omitempty"`  // where it is read from; empty for the built-in articles
	ReadAt   *time.Time `json:"read_at,omitempty"` // when it was last read well
	// Tokenizer is the one that the texts were measured with. The target's own
	// counts some other number, so lengths are estimates. Empty where nothing was measured.
	Tokenizer    string        `json:"tokenizer,omitempty"`
	Cut          int           `json:"cut"`    // starters that were cut at a sentence
	Joined       int           `json:"joined"` // starters that were joined from several texts
	Skipped      int           `json:"skipped"`
	SkippedItems []SkippedItem `json:"skipped_items"`     // the first of them
	Problem      string        `json:"problem,omitempty"` // of the last reading; what was read before stays in use
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
	FollowupRepeated    FollowupCause = "repeated"  // a question that the conversation has heard
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
	Name      string                  `json:"name"`
	URL       string                  `json:"url,omitempty"`   // of the model that asks; empty: none does
	Model     string                  `json:"model,omitempty"` // absent until the server told it
	ByModel   int64                   `json:"by_model"`
	Fallbacks map[FollowupCause]int64 `json:"fallbacks"`         // asked by the built-in questioner instead
	Asking    int                     `json:"asking"`            // questions that are waited for now
	Problem   string                  `json:"problem,omitempty"` // why the model does not ask now
}

// StoreStatus says whether finished turns reach the disk. Its counts are those since the process began.
type StoreStatus struct {
	Path        string `json:"path"`
	OK          bool   `json:"ok"`
	Problem     string `json:"problem,omitempty"` // why turns are not stored now
	Notice      string `json:"notice,omitempty"`  // what was removed to make room on a disk that is nearly full
	StoredTurns int64  `json:"stored_turns"`      // committed to the database
	LostTurns   int64  `json:"lost_turns"`
}

// SessionRequest exchanges the token for a cookie.
type SessionRequest struct {
	Token string `json:"token"`
}

// Session is what the caller may do, by the session that its cookie carries.
type Session struct {
	TokenRequired bool `json:"token_required"` // a token is configured
	Authenticated bool `json:"authenticated"`  // the token was exchanged for the cookie
	CanRead       bool `json:"can_read"`
	CanWrite      bool `json:"can_write"`
	Replay        bool `json:"replay,omitempty"` // of a recording, in which nothing can be changed
}

// Problem is an RFC 9457 problem document, the body of every error.
type Problem struct {
	Type    string `json:"type"`
	Title   string `json:"title"`
	Status  int    `json:"status"`
	Detail  string `json:"detail,omitempty"`
	Field   string `json:"field,omitempty"`   // the field at fault
	Value   string `json:"value,omitempty"`   // what it was
	Allowed string `json:"allowed,omitempty"` // what it may be
}
