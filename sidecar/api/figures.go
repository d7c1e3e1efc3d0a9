package api

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// Unit is the unit of a figure's values.
type Unit string

// The units.
const (
	UnitSeconds           Unit = "s"
	UnitRatio             Unit = "ratio" // from 0 to 1
	UnitRequestsPerSecond Unit = "requests/s"
	UnitTokensPerSecond   Unit = "tokens/s"
	UnitTokens            Unit = "tokens"
	UnitBytes             Unit = "bytes"
	UnitRequests          Unit = "requests"
	UnitConversations     Unit = "conversations"
	UnitJoules            Unit = "J"
	UnitDollars           Unit = "$"
)

// Better is the direction in which a figure improves.
type Better string

// The directions.
const (
	BetterLower  Better = "lower"
	BetterHigher Better = "higher"
	BetterNone   Better = "" // the figure is neither good nor bad
)

// Figure declares a key figure of a lane. The snapshot, the Prometheus metrics, the data frames of Grafana, the labels
// of screens and the glossary derive from it.
type Figure struct {
	Key    string // name in the API
	Name   string // name on screens
	short  string // name beside those of other latencies; "": no other than Name
	Help   string // definition in sentences, for metrics and the glossary
	Unit   Unit
	Better Better
	// Objective returns the threshold for the figure's p95, in seconds; nil: there is none.
	Objective func(SLO) float64
	// BothWays is true if the load generator's own error may have either sign.
	BothWays bool
	Metric   string // name of the metric of recorded results, without its prefix; "": there is none
	Frame    Frame  // field in a data frame; the zero value: no data frame has the figure

	// Live returns the value over the last 60 s, or nil if it is not known. It is nil for the figures in [Times].
	Live func(*LaneSnapshot) *float64
	// The following return the part of a set, of a row with its errors and intervals, or of a column that belongs to a
	// figure in [Times]. They are nil for other figures.
	Quantiles func(*Metrics) *Quantiles
	Row       func(*BaselineRow) *Percentiles
	Errors    func(*RowErrors) *Percentiles
	Intervals func(*RowIntervals) *PercentileIntervals
	Column    func(*Column) *LookedUpPair

	// Cost returns the value among the costs of a time. It is nil for figures that are no cost.
	Cost func(*Cost) *float64
}

// InSentence returns the name in lower case, unless it is an abbreviation.
func (f *Figure) InSentence() string {
	if unicode.IsUpper(rune(f.Name[1])) { // an abbreviation
		return f.Name
	}
	return strings.ToLower(f.Name[:1]) + f.Name[1:]
}

// Short returns the name in lower case for tables and sentences on several latencies.
func (f *Figure) Short() string { return cmp.Or(f.short, f.InSentence()) }

// Frame is a figure's field in a data frame.
type Frame struct {
	Name     string // name in queries
	Title    string // displayed name
	Decimals uint16
}

// Figures lists all key figures in the order of the fields of data frames. It must not be modified.
var Figures = []*Figure{
	{
		Key: "ttft", Name: "TTFT", Unit: UnitSeconds, Better: BetterLower, Metric: "ttft_seconds",
		Help:      "Time to first token: from sending a request to its first content.",
		Objective: func(s SLO) float64 { return s.TTFT },
		Quantiles: func(m *Metrics) *Quantiles { return &m.TTFT },
		Row:       func(r *BaselineRow) *Percentiles { return &r.TTFT },
		Errors:    func(e *RowErrors) *Percentiles { return &e.TTFT },
		Intervals: func(i *RowIntervals) *PercentileIntervals { return &i.TTFT },
		Column:    func(c *Column) *LookedUpPair { return &c.TTFT },
	},
	{
		Key: "tpot", Name: "TPOT", Unit: UnitSeconds, Better: BetterLower, Metric: "tpot_seconds", BothWays: true,
		Help:      "Time per output token: (latency − TTFT) / (output tokens − those of the first chunk) per request.",
		Objective: func(s SLO) float64 { return s.TPOT },
		Quantiles: func(m *Metrics) *Quantiles { return &m.TPOT },
		Row:       func(r *BaselineRow) *Percentiles { return &r.TPOT },
		Errors:    func(e *RowErrors) *Percentiles { return &e.TPOT },
		Intervals: func(i *RowIntervals) *PercentileIntervals { return &i.TPOT },
		Column:    func(c *Column) *LookedUpPair { return &c.TPOT },
	},
	{
		Key: "itl", Name: "ITL", Unit: UnitSeconds, Better: BetterLower, Metric: "itl_seconds", BothWays: true,
		Help:      "Inter-token latency: the gap between two tokens as the client sees it, one value per token.",
		Quantiles: func(m *Metrics) *Quantiles { return &m.ITL },
		Row:       func(r *BaselineRow) *Percentiles { return &r.ITL },
		Errors:    func(e *RowErrors) *Percentiles { return &e.ITL },
		Intervals: func(i *RowIntervals) *PercentileIntervals { return &i.ITL },
		Column:    func(c *Column) *LookedUpPair { return &c.ITL },
	},
	{
		Key: "latency", Name: "End-to-end latency", short: "latency", Unit: UnitSeconds, Better: BetterLower,
		Metric:    "latency_seconds",
		Help:      "From sending a request to the last content of its answer.",
		Quantiles: func(m *Metrics) *Quantiles { return &m.Latency },
		Row:       func(r *BaselineRow) *Percentiles { return &r.Latency },
		Errors:    func(e *RowErrors) *Percentiles { return &e.Latency },
		Intervals: func(i *RowIntervals) *PercentileIntervals { return &i.Latency },
		Column:    func(c *Column) *LookedUpPair { return &c.Latency },
	},
	{
		Key: "requests_per_second", Name: "Requests/s", Unit: UnitRequestsPerSecond, Better: BetterHigher,
		Metric: "requests_per_second", Frame: Frame{"rps", "RPS", 2},
		Help: "Completed requests per second. One request is one turn.",
		Live: func(l *LaneSnapshot) *float64 { return &l.Window.RequestsPerSecond },
	},
	{
		Key: "requests", Name: "Requests", Unit: UnitRequests, Frame: Frame{"requests", "Requests", 0},
		Help: "Completed requests since the start.",
		Live: func(l *LaneSnapshot) *float64 { return new(float64(l.Totals.OK)) },
	},
	{
		Key: "output_tokens_per_second", Name: "Output tokens/s", Unit: UnitTokensPerSecond, Better: BetterHigher,
		Metric: "output_tokens_per_second", Frame: Frame{"output_tokens_per_second", "Output tokens/s", 0},
		Help: "Output tokens per second of all workers together.",
		Live: func(l *LaneSnapshot) *float64 { return &l.Window.OutputTokensPerSecond },
	},
	{
		Key: "kv_hit_ratio", Name: "KV hit rate", Unit: UnitRatio, Better: BetterHigher, Metric: "kv_hit_ratio",
		Frame: Frame{"kv_hit_ratio", "KV cache hit", 1},
		Help:  "Cached prompt tokens / all prompt tokens.",
		Live:  func(l *LaneSnapshot) *float64 { return l.KV.HitRatio },
	},
	{
		Key: "kv_predicted_ratio", Name: "Predicted hit rate", Unit: UnitRatio, Better: BetterHigher,
		Frame: Frame{"kv_predicted_ratio", "KV cache hit, predicted", 1},
		Help:  "The hit rate the router expected from its index, before the engine looked up its cache.",
		Live:  func(l *LaneSnapshot) *float64 { return l.KV.PredictedRatio },
	},
	{
		Key: "kv_achievable_ratio", Name: "Achievable hit rate", Unit: UnitRatio, Better: BetterHigher,
		Frame: Frame{"kv_achievable_ratio", "KV cache hit, achievable", 1},
		Help:  "The hit rate if every turn went to the worker with the longest cached prefix, whatever its load.",
		Live:  func(l *LaneSnapshot) *float64 { return l.KV.AchievableRatio },
	},
	{
		Key: "achieved_share", Name: "Share of the achievable hit rate", Unit: UnitRatio, Better: BetterHigher,
		Help: "The measured hit rate / that of the best placement, which knows all caches and keeps loads even.",
		Live: func(l *LaneSnapshot) *float64 { return l.KV.AchievedShare },
	},
	{
		Key: "queued", Name: "Queued", Unit: UnitRequests, Better: BetterLower, Frame: Frame{"queued", "Queued", 0},
		Help: "Requests that wait at the router and at the engines. A Dynamo frontend counts each until its first token.",
		Live: func(l *LaneSnapshot) *float64 { return l.Cluster.Queued },
	},
	{
		Key: "inflight", Name: "In flight", Unit: UnitRequests, Frame: Frame{"inflight", "In flight", 0},
		Help: "Requests that were sent to a worker and are not finished.",
		Live: func(l *LaneSnapshot) *float64 { return l.Cluster.Inflight },
	},
	{
		Key: "errors", Name: "Errors", Unit: UnitRequests, Better: BetterLower, Frame: Frame{"errors", "Errors", 0},
		Help: "Failed requests since the start.",
		Live: func(l *LaneSnapshot) *float64 { return new(float64(l.Totals.Errors)) },
	},
	{
		Key: "error_ratio", Name: "Error rate", Unit: UnitRatio, Better: BetterLower,
		Frame: Frame{"error_ratio", "Error rate", 1},
		Help:  "Failed requests / finished requests. Cancelled requests do not count.",
		Live:  func(l *LaneSnapshot) *float64 { return l.Window.ErrorRatio },
	},
	{
		Key: "awaiting", Name: "Awaiting first token", Unit: UnitRequests,
		Frame: Frame{"awaiting", "Awaiting first token", 0},
		Help:  "Turns that were sent and have no first token yet.",
		Live:  func(l *LaneSnapshot) *float64 { return new(float64(l.Window.Awaiting.N)) },
	},
	{
		Key: "awaiting_oldest_seconds", Name: "Longest wait for a first token", Unit: UnitSeconds, Better: BetterLower,
		Frame: Frame{"awaiting_oldest_seconds", "Longest wait for a first token", 1},
		Help:  "How long the oldest turn without a first token has waited.",
		Live: func(l *LaneSnapshot) *float64 {
			if l.Window.Awaiting.N == 0 {
				return nil
			}
			return &l.Window.Awaiting.OldestSeconds
		},
	},
	{
		Key: "concurrency", Name: "Concurrency", Unit: UnitConversations, Frame: Frame{"concurrency", "Concurrency", 0},
		Help: "Conversations in progress at the same time.",
		Live: func(l *LaneSnapshot) *float64 { return new(float64(l.State.Concurrency.Actual)) },
	},
	{
		Key: "goodput", Name: "Goodput", Unit: UnitRatio, Better: BetterHigher,
		Help: "Requests that met every SLO, per second or as a share.",
		Live: func(l *LaneSnapshot) *float64 { return l.Window.GoodputRatio },
	},
	{
		Key: "acceptance_rate", Name: "Acceptance rate", Unit: UnitRatio, Better: BetterHigher, Metric: "acceptance_ratio",
		Help: "Share of drafted tokens that the large model accepts.",
		Live: func(l *LaneSnapshot) *float64 { return l.Cluster.Speculation.AcceptanceRatio },
	},
	{
		Key: "tokens_per_step", Name: "Tokens per step", Unit: UnitTokens, Better: BetterHigher, Metric: "tokens_per_step",
		Help: "Tokens per forward pass of the large model: one without speculation, at most one more than drafted with it.",
		Live: func(l *LaneSnapshot) *float64 { return l.Cluster.Speculation.TokensPerStep },
	},
	{
		Key: "gpu_memory_bytes", Name: "GPU memory", Unit: UnitBytes, Better: BetterLower, Metric: "gpu_memory_bytes",
		Help: "GPU memory in use: the weights, the KV cache, which engines reserve at startup, and temporary buffers.",
	},
	costFigure("joules_per_million_tokens", "Energy per million tokens", UnitJoules, BetterLower,
		"Energy of the workers’ GPUs per million output tokens.",
		func(c *Cost) *float64 { return c.JoulesPerMillionTokens }),
	costFigure("joules_per_good_turn", "Energy per turn within the SLOs", UnitJoules, BetterLower,
		"Energy of the workers’ GPUs per turn that met every SLO.",
		func(c *Cost) *float64 { return c.JoulesPerGoodTurn }),
	costFigure("dollars_per_million_tokens", "Price per million tokens", UnitDollars, BetterLower,
		"Price of the workers’ GPUs per million output tokens, by deployment.gpu_hour.",
		func(c *Cost) *float64 { return c.DollarsPerMillionTokens }),
	costFigure("dollars_per_good_turn", "Price per turn within the SLOs", UnitDollars, BetterLower,
		"Price of the workers’ GPUs per turn that met every SLO, by deployment.gpu_hour.",
		func(c *Cost) *float64 { return c.DollarsPerGoodTurn }),
	costFigure("tokens_per_second_per_gpu", "Tokens/s per GPU", UnitTokensPerSecond, BetterHigher,
		"Output tokens per second / GPUs of the workers.",
		func(c *Cost) *float64 { return c.TokensPerGPU }),
	costFigure("tokens_per_second_per_user", "Tokens/s per user", UnitTokensPerSecond, BetterHigher,
		"1 / median TPOT: the speed at which a user sees an answer being written.",
		func(c *Cost) *float64 { return c.TokensPerUser }),
}

// costFigure declares a figure of [Cost], whose metrics have the name of its key.
func costFigure(key, name string, unit Unit, better Better, help string, of func(*Cost) *float64) *Figure {
	return &Figure{
		Key: key, Name: name, Unit: unit, Better: better, Metric: key, Help: help, Cost: of,
		Live: func(l *LaneSnapshot) *float64 { return of(&l.Cost) },
	}
}

// The indexes of [Times], and their number.
const (
	TimeTTFT = iota
	TimeTPOT
	TimeITL
	TimeLatency
	NumTimes
)

// Times lists the latencies of a turn, which have percentiles.
var Times = Figures[:NumTimes]

// Costs lists the figures of [Cost].
var Costs = slices.DeleteFunc(slices.Clone(Figures), func(f *Figure) bool { return f.Cost == nil })

// FigureOf returns the figure with a key, or nil if there is none.
func FigureOf(key string) *Figure {
	for _, f := range Figures {
		if f.Key == key {
			return f
		}
	}
	return nil
}
