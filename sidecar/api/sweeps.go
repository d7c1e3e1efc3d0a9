package api

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

// SweepKind is the question that a sweep answers.
type SweepKind string

// The kinds of sweeps.
const (
	SweepTrial    SweepKind = "trial"    // is one mode better than another at one concurrency?
	SweepLevels   SweepKind = "sweep"    // what are the figures of each mode at each level?
	SweepCapacity SweepKind = "capacity" // how much does each mode sustain within the SLOs, and where do they cross?
)

// SweepKinds lists all kinds of sweeps.
var SweepKinds = []SweepKind{SweepTrial, SweepLevels, SweepCapacity}

// SweepOrder is the order in which a sweep of levels runs its spans.
type SweepOrder string

// The orders of spans.
const (
	OrderInterleaved   SweepOrder = "interleaved"     // machine drift affects all modes equally
	OrderModeAfterMode SweepOrder = "mode_after_mode" // machine drift affects the result; fewest mode changes
)

// SweepOrders lists all orders of spans.
var SweepOrders = []SweepOrder{OrderInterleaved, OrderModeAfterMode}

// CapacityBy is what a capacity search searches.
type CapacityBy string

// The levels of capacity searches.
const (
	CapacityByConversations CapacityBy = "conversations"
	CapacityByRate          CapacityBy = "rate"
)

// AllCapacityBy lists all values of [CapacityBy].
var AllCapacityBy = []CapacityBy{CapacityByConversations, CapacityByRate}

// TrialQuestion is the question of a trial of more than two modes.
type TrialQuestion string

// The questions of a trial. For two modes they are the same.
const (
	QuestionBest  TrialQuestion = "best"  // which mode is best? A mode leaves the trial once another one is better.
	QuestionOrder TrialQuestion = "order" // how does each pair compare? A mode leaves once all its pairs are decided.
)

// TrialQuestions lists all questions of a trial.
var TrialQuestions = []TrialQuestion{QuestionBest, QuestionOrder}

// SweepRequest is a request for spans of a workload at some concurrencies in some modes, each span on cold caches.
// Omitted fields get the defaults in `SweepList`. A field that does not apply to the kind is rejected.
type SweepRequest struct {
	Kind  SweepKind `json:"kind"`
	Title *string   `json:"title,omitempty" maxLength:"200"`
	// modes that the driver can switch to, an arm by its name alone. A trial has two or more: it compares the second
	// of two with the first, and each pair of more. A capacity search has one or two.
	Modes []ModeState `json:"modes,omitempty" maxItems:"9"`
	// numbers of conversations or rates: one for a trial, all for a sweep, at least two to begin with for a capacity
	// search. Levels × modes × repeats must not exceed 1,000.
	Levels  []Level `json:"levels,omitempty" minimum:"1" maximum:"100000" maxItems:"40"`
	Primary *string `json:"primary,omitempty"` // trial: the metric that decides
	// trial of more than two modes: the question whose answer ends it; default: best
	Question *TrialQuestion `json:"question,omitempty"`
	// trial: the smallest difference of interest as a fraction, relative for times and rates, absolute for shares
	Smallest *float64 `json:"smallest,omitempty" minimum:"0.001" maximum:"0.5"`
	// sweep: spans of each level and mode
	Repeats *int        `json:"repeats,omitempty" minimum:"1" maximum:"100"`
	Order   *SweepOrder `json:"order,omitempty"` // sweep: order of the spans
	// sweep: time at full concurrency before a span counts; trial: the least time that does not count after the initial
	// conversations of a span have ended, or at the beginning of a slot; default for a trial: as measured
	WarmUp *float64 `json:"warm_up,omitempty" minimum:"0" maximum:"3600" unit:"seconds"`
	// minimum counted time of a span
	Seconds *float64 `json:"span,omitempty" minimum:"1" maximum:"86400" unit:"seconds"`
	// sweep: number of 60 s windows whose percentiles are averaged, each at the end of an equal part of the span
	Snapshots *int `json:"snapshots,omitempty" minimum:"1" maximum:"100"`
	// capacity search: what it searches; default: that of `levels`, else conversations
	By *CapacityBy `json:"by,omitempty"`
	// capacity search: largest error of its answer, in conversations or in conversations per second
	Resolution *float64 `json:"resolution,omitempty" exclusiveMinimum:"0" maximum:"1000"`
	// trial and capacity search: time after which they end undecided
	MaxSeconds *float64 `json:"max_time,omitempty" minimum:"1" maximum:"604800" unit:"seconds"`
	// trial and sweep of two modes: both modes run at the same time, each on one of two lanes with the same
	// conversations; default: true for a trial if there are two lanes, else false
	Together *bool `json:"together,omitempty"`
	// trial: cold, every span begins with cold caches; warm, the arm changes within one run every `span`, with
	// the caches that both arms share; auto (default), warm where changing the arm restarts nothing and both arms have the
	// same workers
	Caches *TrialCaches `json:"caches,omitempty"`
	SLO    *SLO         `json:"slo,omitempty"` // default: the SLO of the settings
	// seed of the order of the spans and of the conversations, a whole number below 2⁶⁴; default: drawn for a trial,
	// else 1
	Seed *uint64 `json:"seed,omitempty,string"`
	// trial: a trial of the same arms on another machine, whose scatter counts
	Like *TrialLike `json:"like,omitempty"`
}

// SweepMetrics lists the metrics that may be primary in a trial, in the order of tables. A trial compares all of them,
// but ttft_p95_turn2+, the TTFT p95 of second and later turns, only if it is primary.
var SweepMetrics = []string{
	"ttft_mean", "ttft_p95", "ttft_p50", "ttft_p95_turn2+", "tpot_p95", "output_tokens_per_second", "kv_hit_ratio",
	"goodput",
}

// MaxSweepSpans limits levels × modes × repeats of a [SweepRequest].
const MaxSweepSpans = 1000

// MaxSweepLevels and MaxSweepModes limit the number of levels and modes in a [SweepRequest].
var (
	MaxSweepLevels = maxItems[SweepRequest]("Levels")
	MaxSweepModes  = maxItems[SweepRequest]("Modes")
)

// SweepLimits holds the limits of the fields of a [SweepRequest] by their paths. The limit of levels applies to each
// level.
var SweepLimits = limitsOf[SweepRequest]()

// fieldKinds holds the kinds that have a field. Fields of all kinds are not listed.
var fieldKinds = map[string][]SweepKind{
	"primary": {SweepTrial}, "question": {SweepTrial}, "smallest": {SweepTrial}, "repeats": {SweepLevels},
	"order":   {SweepLevels},
	"warm_up": {SweepLevels, SweepTrial}, "snapshots": {SweepLevels}, "by": {SweepCapacity},
	"resolution": {SweepCapacity},
	"max_time":   {SweepTrial, SweepCapacity}, "together": {SweepTrial, SweepLevels}, "like": {SweepTrial},
	"caches": {SweepTrial},
}

// Check checks the fields of the request against [SweepLimits], and its fields and lists against its kind. The error is
// a [*FieldError].
func (r SweepRequest) Check() error {
	if err := OneOf("kind", r.Kind, SweepKinds); err != nil {
		return err
	}
	return cmp.Or(r.checkFields(), r.checkLists(), r.checkWords(), CheckLimits(r),
		OfOneKind("levels", r.Levels...), r.checkBy(), r.CheckSpans())
}

func (r SweepRequest) checkWords() error {
	if r.Title != nil {
		if err := checkLine("title", *r.Title); err != nil {
			return err
		}
	}
	if r.Primary != nil {
		if err := OneOf("primary", *r.Primary, SweepMetrics); err != nil {
			return err
		}
	}
	if r.Question != nil {
		if err := OneOf("question", *r.Question, TrialQuestions); err != nil {
			return err
		}
	}
	if r.Caches != nil {
		if err := OneOf("caches", *r.Caches, AllTrialCaches); err != nil {
			return err
		}
	}
	if r.Order == nil {
		return nil
	}
	if r.together() && *r.Order == OrderModeAfterMode {
		return Refuse("order", *r.Order, string(OrderInterleaved)+" when the modes run together")
	}
	return OneOf("order", *r.Order, SweepOrders)
}

// TrialCaches says what the caches hold when the spans of a trial begin.
type TrialCaches string

// The caches of a trial.
const (
	TrialCachesAuto TrialCaches = "auto"
	TrialCachesCold TrialCaches = "cold"
	TrialCachesWarm TrialCaches = "warm"
)

// AllTrialCaches lists the values of [TrialCaches].
var AllTrialCaches = []TrialCaches{TrialCachesAuto, TrialCachesCold, TrialCachesWarm}

// Warm reports whether the arms of a trial change within one run.
func (r SweepRequest) Warm() bool { return r.Caches != nil && *r.Caches == TrialCachesWarm }

// together reports whether the request sets Together to true.
func (r SweepRequest) together() bool { return r.Together != nil && *r.Together }

// Noun returns the kind for a sentence: trial, sweep or capacity search.
func (k SweepKind) Noun() string {
	if k == SweepCapacity {
		return "capacity search"
	}
	return string(k)
}

// MostModes returns the largest number of modes in a request of the kind.
func (k SweepKind) MostModes() int {
	if k == SweepCapacity {
		return 2
	}
	return MaxSweepModes
}

// checkFields returns a [*FieldError] for a field that the kind does not have.
func (r SweepRequest) checkFields() error {
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		kinds, restricted := fieldKinds[name]
		if restricted && !v.Field(i).IsNil() && !slices.Contains(kinds, r.Kind) {
			nouns := make([]string, len(kinds))
			for i, k := range kinds {
				nouns[i] = "a " + k.Noun()
			}
			return Refuse(name, quoted(v.Field(i).Elem()), "only "+strings.Join(nouns, " or ")+" has this field")
		}
	}
	return nil
}

// quoted formats a value for an error.
func quoted(v reflect.Value) string {
	if v.Kind() == reflect.String {
		return fmt.Sprintf("%.40q", v.String())
	}
	return fmt.Sprint(v)
}

func (r SweepRequest) checkLists() error {
	least, most := 1, MaxSweepLevels
	modesLeast, modesMost := 1, r.Kind.MostModes()
	switch r.Kind {
	case SweepTrial:
		most, modesLeast = 1, 2
	case SweepCapacity:
		least = 2
	}
	if n := len(r.Levels); n > 0 && (n < least || n > most) {
		return Refuse("levels", fmt.Sprintf("a list of %d", n), count(least, most)+" for a "+r.Kind.Noun())
	}
	if n := len(r.Modes); n > 0 && n != 2 && r.together() {
		return Refuse("modes", fmt.Sprintf("a list of %d", n), "2 when they run together, one on each lane")
	}
	if n := len(r.Modes); n > 0 && (n < modesLeast || n > modesMost) {
		return Refuse("modes", fmt.Sprintf("a list of %d", n), count(modesLeast, modesMost)+" for a "+r.Kind.Noun())
	}
	for i, level := range r.Levels {
		if slices.Contains(r.Levels[:i], level) {
			return Refuse("levels", level, "each level once")
		}
	}
	return r.checkModes()
}

// checkModes checks the modes. A trial of two may compare a mode with itself, which measures the scatter of the
// machines.
func (r SweepRequest) checkModes() error {
	known := slices.DeleteFunc(slices.Clone(Modes), func(m Mode) bool { return m == ModeUnknown })
	repeats := r.MayRepeatMode()
	for i, m := range r.Modes {
		if m.Arm != "" {
			if !IsArmName(m.Arm) {
				return Refuse("modes.arm", m.Arm, AllowedArm)
			}
			if !repeats && slices.ContainsFunc(r.Modes[:i], func(o ModeState) bool { return o.Arm == m.Arm }) {
				return Refuse("modes", m.Arm, EachModeOnce)
			}
			continue
		}
		if err := OneOf("modes.mode", m.Mode, known); err != nil {
			return err
		}
		if m.Speculation == "" { // the speculation in force
			continue
		}
		if err := OneOf("modes.speculation", m.Speculation, Speculations); err != nil {
			return err
		}
		if !repeats && slices.Contains(r.Modes[:i], m) {
			return Refuse("modes", fmt.Sprintf("%s with speculation %s", m.Mode, m.Speculation), EachModeOnce)
		}
	}
	return nil
}

// EachModeOnce describes the allowed modes in the error for a request that names a mode twice.
const EachModeOnce = "each one once; only a trial of two may compare a mode with itself, which tests the method"

// MayRepeatMode reports whether the request may name a mode twice.
func (r SweepRequest) MayRepeatMode() bool { return r.Kind == SweepTrial && len(r.Modes) == 2 }

// ByRate reports whether a capacity search searches rates.
func (r SweepRequest) ByRate() bool {
	if r.By != nil {
		return *r.By == CapacityByRate
	}
	return len(r.Levels) > 0 && r.Levels[0].Kind == Rate
}

var levelsBy = map[CapacityBy]string{
	CapacityByConversations: "numbers of conversations, such as 20, as by is conversations",
	CapacityByRate:          "rates, such as 2/s, as by is rate",
}

// checkBy checks that levels and resolution are of what a capacity search searches.
func (r SweepRequest) checkBy() error {
	if r.By != nil {
		if err := OneOf("by", *r.By, AllCapacityBy); err != nil {
			return err
		}
		for _, level := range r.Levels {
			if (level.Kind == Rate) != r.ByRate() {
				return Refuse("levels", level, levelsBy[*r.By])
			}
		}
	}
	if n := r.Resolution; n != nil && !r.ByRate() && *n != math.Trunc(*n) {
		return Refuse("resolution", *n, "a whole number of conversations")
	}
	return nil
}

// CheckSpans checks the number of spans against [MaxSweepSpans]. An omitted field counts as 1. The error is a
// [*FieldError].
func (r SweepRequest) CheckSpans() error {
	levels, modes, repeats := max(len(r.Levels), 1), max(len(r.Modes), 1), 1
	if r.Repeats != nil {
		repeats = *r.Repeats
	}
	if n := levels * modes * repeats; n > MaxSweepSpans {
		return Refuse("repeats", fmt.Sprintf("%d levels × %d modes × %d repeats = %d spans", levels, modes, repeats, n),
			fmt.Sprintf("at most %d spans", MaxSweepSpans))
	}
	return nil
}

func count(least, most int) string {
	if least == most {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// SweepState is the state of a sweep. The last three are final.
type SweepState string

// The states of a sweep.
const (
	SweepRunning   SweepState = "running" // also while no load generator runs; the next one resumes the sweep
	SweepPaused    SweepState = "paused"
	SweepDone      SweepState = "done"
	SweepCancelled SweepState = "cancelled"
	SweepFailed    SweepState = "failed"
)

// Ended reports whether the state is final.
func (s SweepState) Ended() bool { return s == SweepDone || s == SweepCancelled || s == SweepFailed }

// SweepCause is the category of the reason why a sweep is blocked or has ended.
type SweepCause string

// The causes of the end or the pause of a sweep.
const (
	CauseOperator SweepCause = "operator" // an operator paused, cancelled or stopped the sweep
	CauseTarget   SweepCause = "target"   // the target failed twice in a span, or gave no answers in two modes
	CauseMode     SweepCause = "mode"     // the cluster could not be switched to a mode
	CauseDisk     SweepCause = "disk"     // results could not be stored; the sweep resumes by itself
	CauseInternal SweepCause = "internal" // an error of the load generator itself
)

// SweepPatch is a request to pause, resume or cancel a sweep.
type SweepPatch struct {
	State SweepState `json:"state" enum:"paused,running,cancelled"`
}

// SweepList is the list of stored sweeps, with the limits and defaults of requests.
type SweepList struct {
	Sweeps List[SweepSummary] `json:"sweeps"` // newest first
	// limits of the numbers in a request, by their paths; the limit of levels applies to each level
	Limits Map[string, SimulationLimit] `json:"limits"`
	// a request of each kind with the present default of each field
	Defaults List[SweepRequest] `json:"defaults"`
	Modes    List[ModeState]    `json:"modes"`   // modes that the driver can switch to
	Metrics  List[string]       `json:"metrics"` // metrics that may be primary
}

// SweepSummary is a sweep without its spans.
type SweepSummary struct {
	ID    string     `json:"id"`
	Lane  string     `json:"lane"`
	State SweepState `json:"state"`
	// why the sweep is paused, blocked, cancelled or failed; for cause operator, "by" and a name
	Reason   string        `json:"reason,omitempty"`
	Cause    SweepCause    `json:"cause,omitempty"` // category of the reason
	By       string        `json:"by"`              // requester, as in `Event`
	Asked    time.Time     `json:"asked"`
	Ended    *time.Time    `json:"ended,omitempty"`
	Request  SweepRequest  `json:"request"` // with all defaults filled in
	Progress SweepProgress `json:"progress"`
	Words    List[string]  `json:"words"`              // the findings so far, in sentences
	Baseline string        `json:"baseline,omitempty"` // name of the baseline that was made of the sweep
	// trial of two modes by TTFT: the result so far in one sentence, which the lane shows while the trial has it
	Headline *Headline `json:"headline,omitempty"`
}

// Sweep is a sweep with its measurements so far.
type Sweep struct {
	SweepSummary
	Program    string          `json:"program"` // version of the load generator that began the sweep
	Target     TargetID        `json:"target"`
	Deployment Deployment      `json:"deployment"`
	Workload   WorkloadShape   `json:"workload"`
	Spans      List[SweepSpan] `json:"spans"` // in the order in which they ended
	// figures of each level and mode over all spans that count, with 95 % intervals by Student's t over these spans, or
	// over parts of the span if there is only one
	Rows List[BaselineRow] `json:"rows"`
	// what the router of each arm was found to do before a trial, in words; absent: none was recognized at an address of
	// its own, or a setting forbids the look
	RouterFindings []string    `json:"router_findings,omitempty"`
	Trial          *TrialState `json:"trial,omitempty"`
	Capacity       *Capacity   `json:"capacity,omitempty"`
}

// SweepProgress is the progress of a sweep.
type SweepProgress struct {
	Spans       int     `json:"spans"`        // spans that count
	Of          *int    `json:"of,omitempty"` // number of spans at the end; absent: it depends on the results
	Spoiled     int     `json:"spoiled"`      // spans that do not count
	SecondsUsed float64 `json:"seconds_used"` // time of all spans that have ended, with their warm-up
	// median estimate of the time left; absent: not known, as before the first look of a trial
	SecondsLeft *float64 `json:"seconds_left,omitempty"`
	// shortest time left: until the next look of a trial, or by the shortest span of a sweep; absent: not known
	SecondsLeast *float64 `json:"seconds_least,omitempty"`
	// longest time left: until the time limit of a trial or capacity search, or by the longest span of a sweep; absent:
	// not known
	SecondsMost *float64  `json:"seconds_most,omitempty"`
	Beyond      bool      `json:"beyond,omitempty"` // a trial is currently expected to run out of time undecided
	Span        *SweepNow `json:"span,omitempty"`   // span in progress
	Beside      *SweepNow `json:"beside,omitempty"` // span in progress on the other lane
}

// SweepPhase is the phase of a span.
type SweepPhase string

// The phases of a span, in their order.
const (
	SpanSwitching SweepPhase = "switching"  // the mode is changed, or the caches are made cold
	SpanWarmingUp SweepPhase = "warming_up" // the span does not count yet
	SpanCounting  SweepPhase = "counting"
	SpanStoring   SweepPhase = "storing" // the turns of the span are written to the disk
)

// SweepNow is the span in progress.
type SweepNow struct {
	Number  int `json:"number"`  // from 0; a repeated span keeps its number
	Attempt int `json:"attempt"` // from 1; spoiled attempts precede later ones
	// trial: letter of the mode in the order of the request; pilot: a span of a trial on pairs that counts for no mode
	Arm       string     `json:"arm,omitempty" enum:"pilot,a,b,c,d,e,f,g,h,i"`
	Lane      string     `json:"lane,omitempty"` // lane of the span, if both modes run together
	Mode      ModeState  `json:"mode"`
	Level     Level      `json:"concurrency"`
	Phase     SweepPhase `json:"phase"`
	Message   string     `json:"message,omitempty"` // progress of a mode change, or what a warm-up waits for
	Seconds   float64    `json:"seconds"`           // time in this phase
	Elapsed   float64    `json:"elapsed_seconds"`   // time since the span began, with the switch before it
	Of        *float64   `json:"of,omitempty"`      // minimum seconds of the phase; absent: not known
	Turns     int        `json:"turns"`             // counted turns that ended well
	WarmingUp int        `json:"warming_up"`        // conversations that began the span and have not ended
}

// SweepSpan is a span that has ended.
type SweepSpan struct {
	Number  int `json:"number"`  // from 0; a repeated span keeps its number
	Attempt int `json:"attempt"` // from 1; spoiled attempts precede later ones
	// trial: letter of the mode in the order of the request; pilot: a span of a trial on pairs that counts for no mode
	Arm         string    `json:"arm,omitempty" enum:"pilot,a,b,c,d,e,f,g,h,i"`
	Lane        string    `json:"lane,omitempty"` // lane of the span, if both modes ran together
	Mode        ModeState `json:"mode"`
	Target      string    `json:"target,omitempty"` // URL that the turns were sent to; absent: not known
	Router      string    `json:"router,omitempty"` // description of the target's router; absent: not known
	Level       Level     `json:"concurrency"`
	Seed        uint64    `json:"seed,string"`
	Step        int64     `json:"step"` // step of the turns in `turns.csv`
	Started     time.Time `json:"started"`
	CountedFrom time.Time `json:"counted_from"`
	Until       time.Time `json:"until"`
	Elapsed     float64   `json:"elapsed_seconds"` // with the switch before the span; spans that ran together share it
	Turns       int       `json:"turns"`           // counted turns that ended well
	Failed      int       `json:"failed"`
	Actual      *float64  `json:"actual,omitempty"` // mean number of conversations in progress while the span counted
	// how the caches were made cold: by emptying them, or by a new nonce in front of the prompts; warm: they were not
	Cold    string `json:"cold" enum:"emptied,nonce,warm"`
	Spoiled string `json:"spoiled,omitempty"` // why the span does not count
	// at a rate: why the target did not keep up, so that the span ended early and its latencies say how long it took;
	// absent: it kept up
	Overloaded string `json:"overloaded,omitempty"`
	// whether the first turns found cold caches; absent: not known
	FirstTurns *SweepFirstTurns `json:"first_turns,omitempty"`
	Workers    int              `json:"workers,omitempty"` // number of workers at the end of the span; absent: not known
	// turns that each worker served, from the start of the span; absent: not known, or more than 64 workers
	TurnsByWorker map[string]int `json:"turns_by_worker,omitempty"`
	// prompt tokens of these turns that each worker had to compute, as usage has them; absent: no turn reported them
	UncachedByWorker map[string]int `json:"uncached_by_worker,omitempty"`
	// contradictions between the arm and the turns or the cluster's metrics, in words; absent: none
	Doubts []string `json:"doubts,omitempty"`
	// what went wrong in the switch before the span, such as a failed cold.http, or in its streams, and what held its
	// load down; absent: nothing
	Warnings []string `json:"warnings,omitempty"`
	// workers, or else UUIDs of GPUs, that also served the lane of the other mode meanwhile; absent: none is known
	SharedWorkers []string `json:"shared_workers,omitempty"`
	// figures of the counted time, with 95 % intervals from parts of the span
	Row    *BaselineRow `json:"row,omitempty"`
	Causes *SweepCauses `json:"causes,omitempty"`
}

// SweepFirstTurns is a check of the caches by the first turn on each opening of a span. Earlier turns of the span, and
// a text in front of every opening, explain some cached tokens. Cached tokens of the opening itself are not explained.
type SweepFirstTurns struct {
	Openings int `json:"openings"`           // openings whose first turn reported its cached tokens
	Warm     int `json:"warm"`               // openings whose first turn found unexplained cached tokens
	Cached   int `json:"cached_tokens_most"` // the most cached tokens that one of these turns found
}

// SweepCauses are the cluster's own metrics while a span counted, sampled once a second. They can explain why one mode
// is slower than another. Metrics that the cluster did not report are absent.
type SweepCauses struct {
	Seconds int `json:"seconds"` // number of samples
	ClusterFigures
}

// TrialDifference is the result for one metric of two modes of a trial, A and B. The difference is (B − A)/A for times
// and rates, and B − A for shares. A failed turn counts as slower than every successful one.
type TrialDifference struct {
	Metric string `json:"metric"`
	// mean, geometric for times and rates, adjusted for the block and the place of each span: the means differ by
	// `difference`
	A          float64 `json:"a"`
	B          float64 `json:"b"`
	Difference float64 `json:"difference"`
	// interval over all looks that the conclusion rests on: of 95 %, and of 90 % (two one-sided tests) where the deciding
	// metric shows no difference; absent: it has no bounds yet
	Interval *[2]float64 `json:"interval,omitempty"`
	// conclusion from the interval; running: none yet; trade_off: one would be better, but certainly fails more turns, or
	// the answers differ; unlike, of a guard: certainly different by more than 5 % or 5 points
	Outcome string `json:"outcome" enum:"running,b_better,a_better,no_difference,trade_off,unlike"`
	// modes that are certainly not worse than the other by the smallest difference of interest
	NotWorse []TrialArm `json:"not_worse,omitempty"`
	// trial on pairs: what the width of the interval is estimated from, sections of the spans or pairs of spans
	Basis string `json:"basis,omitempty" enum:"sections,pairs"`
}

// TrialArm is a mode of a trial by its place in the request.
type TrialArm string

// The arms of a trial.
const (
	TrialArmA TrialArm = "a"
	TrialArmB TrialArm = "b"
	TrialArmC TrialArm = "c"
	TrialArmD TrialArm = "d"
	TrialArmE TrialArm = "e"
	TrialArmF TrialArm = "f"
	TrialArmG TrialArm = "g"
	TrialArmH TrialArm = "h"
	TrialArmI TrialArm = "i"
)

// TrialArms lists all arms in the order of the request.
var TrialArms = []TrialArm{
	TrialArmA, TrialArmB, TrialArmC, TrialArmD, TrialArmE, TrialArmF, TrialArmG, TrialArmH, TrialArmI,
}

// TrialLook is a trial's interim result for the deciding metric after a number of blocks of spans.
type TrialLook struct {
	Blocks     int         `json:"blocks,omitempty"` // whole blocks so far
	Pairs      int         `json:"pairs,omitempty"`  // trial on pairs: pairs of spans so far
	Difference float64     `json:"difference"`
	Interval   *[2]float64 `json:"interval,omitempty"` // 95 % interval over all looks; absent: it has no bounds yet
}

// TrialMethod is the method by which a trial decides.
type TrialMethod string

// The methods of a trial.
const (
	TrialOnBlocks TrialMethod = "blocks" // a look after each block of spans, from the second on, or the first with a prior
	TrialOnPairs  TrialMethod = "pairs"  // a look after each pair of spans; earlier versions, such trials can only be read
)

// TrialState is the state of a trial.
type TrialState struct {
	Method TrialMethod `json:"method"`
	// trade_off: one is better and fails more turns than the other, or is certainly worse in throughput, TPOT or energy
	// by more than the smallest difference of interest, or their answers differ; no_difference: differences
	// as large as the smallest one of interest are ruled out in both directions; time_over: undecided. For more than two
	// modes, best: one is better than all others; order: each pair is decided. b_fails_more, a_fails_more: one certainly
	// fails more turns, and the deciding metric shows no difference or is undecided when the time is over;
	// failures_differ: so do some of more than two modes. overloaded: some mode does not keep up with the rate, so that
	// latencies are not compared
	Verdict string `json:"verdict" enum:"running,b_better,a_better,best,order,trade_off,b_fails_more,a_fails_more,failures_differ,no_difference,time_over,overloaded"`
	// trial at a rate: modes whose queue grew without end; absent: none
	Overload  []TrialOverload `json:"overload,omitempty"`
	Blocks    int             `json:"blocks"`               // whole blocks
	FirstLook int             `json:"first_look,omitempty"` // number of whole blocks at the first look; absent: 2
	Pairs     int             `json:"pairs,omitempty"`      // trial on pairs: pairs of spans
	Failures  *TrialFailures  `json:"failures,omitempty"`   // trial of two modes
	Ranking   *TrialRanking   `json:"ranking,omitempty"`    // trial of more than two modes
	// difference in the deciding metric; for more than two modes, B has the best estimate and A is the runner-up
	Primary *TrialDifference `json:"primary,omitempty"`
	// trial of two modes: estimate at the stop; the estimate of `primary` is on average too large after an early stop
	Final *TrialFinal `json:"final,omitempty"`
	// difference in the deciding metric at each look; for more than two modes, of the best and the runner-up at that look
	Looks List[TrialLook] `json:"looks"`
	// bounds of the differences that are not relevant; the lower bound of relative differences is −s/(1+s), the
	// inverse of a rise by s
	Boundaries [2]float64 `json:"boundaries"`
	// differences in the other metrics for the modes of `primary`; their intervals hold for all of them together
	Others List[TrialDifference] `json:"others"`
	// output tokens per answer and shares of finish reasons for the modes of `primary`; where one is unlike, neither mode
	// is better; intervals of 95 % at the latest look
	Guards List[TrialDifference] `json:"guards,omitempty"`
	// figures in which the better mode of `primary` is certainly worse by more than the smallest difference of interest
	Worse List[TrialDifference] `json:"worse,omitempty"`
	// costs for the modes of `primary`; intervals of 95 % at the latest look
	Costs          List[TrialDifference] `json:"costs,omitempty"`
	PowerSimulated bool                  `json:"power_simulated,omitempty"` // the power is that of simulated GPUs
	// whether the mean TTFT is that of successful turns, since turns failed and the shares of no two modes certainly
	// differ by more than 1 point; otherwise a failed turn counts as the slowest of its block
	Succeeded bool `json:"succeeded,omitempty"`
	// values of the deciding metric in the spans of whole blocks, as measured
	Spans List[TrialSpan] `json:"spans,omitempty"`
	// difference that the time left is estimated for: the present estimate
	Assumed    *float64         `json:"assumed,omitempty"`
	Detectable *TrialDetectable `json:"detectable,omitempty"` // absent: not known yet
	// variances by metric, from this trial's blocks only, for later trials
	Variances map[string]TrialVariance `json:"variances,omitempty"`
	Prior     *TrialPrior              `json:"prior,omitempty"` // absent: no earlier trials of these arms
	// time of the latest block, with switches and warm-up
	BlockSeconds float64 `json:"block_seconds,omitempty"`
	// each of two lanes kept its mode: the trial compares targets as well as modes
	KeepsLanes bool `json:"keeps_lanes,omitempty"`
	// time in seconds that does not count after the initial conversations of a span have ended, measured by the hit rate
	// in the first block; absent: none, or a trial within one run
	RunIn float64 `json:"run_in_seconds,omitempty"`
	// a trial that has ended: the difference in the first third of what counts certainly differs from that in the rest;
	// absent: it does not
	AfterEffect *TrialAfterEffect `json:"after_effect,omitempty"`
}

// TrialOverload is what a trial at a rate shows of whether a mode keeps up with it.
type TrialOverload struct {
	Arm    TrialArm `json:"arm"`
	Blocks int      `json:"blocks"` // number of blocks in which its queue grew without end; their latencies are not compared
	// does_not_keep_up: in more blocks than chance explains, or its queue was certainly longer at the ends of spans;
	// keeps_up: another mode does not, and its queue grew in no block
	State string `json:"state" enum:"keeps_up,open,does_not_keep_up"`
}

// TrialAfterEffect is a difference in the deciding metric that changes while spans count, for the modes of `primary`.
type TrialAfterEffect struct {
	First float64 `json:"first"` // difference in the first third of what counts of spans or slots
	Rest  float64 `json:"rest"`  // difference in the rest
	// 95 % interval of how far the first differs from the rest, which leaves out 0; relative for times and rates
	Interval [2]float64 `json:"interval"`
}

// TrialSoonest is the setting at which earlier trials of the same modes, with the same workload on the same target,
// show that a trial is answered soonest.
type TrialSoonest struct {
	Trial   string  `json:"trial"` // id of the trial that shows it
	Level   Level   `json:"concurrency"`
	Seconds float64 `json:"span"`
	// median time until it is answered, if the difference and the scatter are those of that trial
	After float64 `json:"after_seconds"`
}

// TrialSpan is the value of a trial's deciding metric in a span. A failed turn counts as slower than every successful
// one of its block, or in no mean where the trial says so.
type TrialSpan struct {
	Number int     `json:"number"`
	Value  float64 `json:"value"`
}

// TrialRanking is the comparison of the modes of a trial of more than two.
type TrialRanking struct {
	Question TrialQuestion    `json:"question"`
	Places   List[TrialPlace] `json:"places"` // the best first; before the first look in the order of the request
	Pairs    List[TrialPair]  `json:"pairs"`  // each pair, by the places of its modes; none before the first look
	// groups of two or more modes; each two differ certainly by less than the smallest difference of interest
	Groups List[TrialGroup] `json:"groups"`
}

// TrialPlace is the place of a mode in a trial.
type TrialPlace struct {
	Arm  TrialArm  `json:"arm"`
	Mode ModeState `json:"mode"`
	// range of the places that the mode may have, from 1; every mode that is shown to be better is ahead of it
	Place [2]int `json:"place"`
	// mean of the deciding metric over all blocks, estimated for the blocks after the mode has left the trial; absent:
	// no look yet
	Mean *float64 `json:"mean,omitempty"`
	// number of blocks after which the mode left the trial; absent: it takes part
	LeftAfter *int `json:"left_after,omitempty"`
	// why the mode left the trial, since it did not serve; it is last, and in no pair. absent: it serves
	Gone string `json:"gone,omitempty"`
	// whether the mode may be the best: no pair shows another one that is better and does not fail more turns
	MayBeBest bool        `json:"may_be_best"`
	Failures  TrialFailed `json:"failures"`
}

// TrialPair is the comparison of two modes of a trial at the last look at which both took part. B has the better
// estimate.
type TrialPair struct {
	A       TrialArm              `json:"a"`
	B       TrialArm              `json:"b"`
	Blocks  int                   `json:"blocks"`           // whole blocks at that look
	Primary TrialDifference       `json:"primary"`          // difference in the deciding metric
	Others  List[TrialDifference] `json:"others"`           // their intervals hold for the metrics of all pairs
	Guards  List[TrialDifference] `json:"guards,omitempty"` // as those of the trial
	Worse   List[TrialDifference] `json:"worse,omitempty"`  // as those of the trial, of the better mode of the pair
	More    TrialArm              `json:"more,omitempty"`   // mode that certainly fails more turns; absent: neither
}

// TrialGroup is a set of modes that are not different.
type TrialGroup struct {
	Arms List[TrialArm] `json:"arms"` // by their places
}

// TrialFailures are the failed turns of two modes.
type TrialFailures struct {
	A    TrialFailed `json:"a"`
	B    TrialFailed `json:"b"`
	More TrialArm    `json:"more,omitempty"` // mode that certainly fails more turns; absent: neither
	// B's share of failed turns minus A's
	Difference float64 `json:"difference,omitempty"`
	// 95 % interval of the difference over all looks; absent: it has no bounds yet
	Interval *[2]float64 `json:"interval,omitempty"`
}

// TrialFailed is the number of failed turns of a mode.
type TrialFailed struct {
	Failed int `json:"failed"`
	Ended  int `json:"ended"` // all turns that ended, including failed ones
}

// TrialFinal is a trial's median-unbiased estimate at the stop. The estimate of `primary` is on average too large after
// an early stop.
type TrialFinal struct {
	Difference float64    `json:"difference"`
	Interval   [2]float64 `json:"interval"` // 95 %
}

// TrialDetectable is the smallest difference that a trial can find.
type TrialDetectable struct {
	// smallest difference, in either direction, that the share `power` of trials finds
	Difference   float64 `json:"difference"`
	Power        float64 `json:"power"`
	Seconds      float64 `json:"seconds"`       // the trial's time limit
	BlockSeconds float64 `json:"block_seconds"` // time of a block
	// id of the trial whose spans the estimate uses; absent: the first block of this trial
	Trial string `json:"trial,omitempty"`
}

// TrialVariance is the variance between the spans of an arm on the scale of differences, which is logarithmic for times
// and rates.
type TrialVariance struct {
	Value            float64 `json:"value"`
	DegreesOfFreedom float64 `json:"degrees_of_freedom"`
}

// TrialPrior is what earlier trials of the same arms say of the variance of the deciding metric.
type TrialPrior struct {
	TrialVariance
	Trials int `json:"trials"` // number of earlier trials, with that of `like`
	// the trial's own blocks scatter more by an F test at 10 % at the latest look: the prior is not used
	Contradicted bool `json:"contradicted,omitempty"`
	// smallest difference that the trial would find without the prior; absent: not known
	Without *float64 `json:"without,omitempty"`
}

// TrialLike is the scatter of a trial of the same arms on another machine, from its report.
type TrialLike struct {
	ID       string          `json:"id"`
	Modes    List[ModeState] `json:"modes"`
	Levels   List[Level]     `json:"levels"`
	Seconds  float64         `json:"span" unit:"seconds"`
	Together bool            `json:"together"`
	Workload WorkloadShape   `json:"workload"`
	// variances by metric; that of the deciding metric is required
	Variances    Map[string, TrialVariance] `json:"variances"`
	BlockSeconds float64                    `json:"block_seconds" unit:"seconds"` // time of its latest block
}

// Capacity is the result of a capacity search.
type Capacity struct {
	Modes    List[ModeCapacity] `json:"modes"`
	Crossing *Crossing          `json:"crossing,omitempty"` // absent: not looked for, or not known yet
}

// ModeCapacity is the number of conversations, or the rate, that a mode sustains within the SLOs.
type ModeCapacity struct {
	Mode ModeState `json:"mode"`
	// estimate; 0: even the lowest level misses the SLOs; absent: not known yet
	Level *Level `json:"level,omitempty"`
	// 95 % interval of the estimate; it begins at 0 if no level is certain to meet the SLOs
	Interval *[2]Level `json:"interval,omitempty"`
	// no level is certain to miss the SLOs: the interval ends at the highest level or beyond it
	Above    bool            `json:"above,omitempty"`
	Isolated List[Level]     `json:"isolated"` // levels that meet the SLOs above the first level that misses them
	Tested   List[LevelTest] `json:"tested"`   // ascending
}

// LevelTest is the verdict on one level by the SLOs.
type LevelTest struct {
	Level   Level  `json:"concurrency"`
	Spans   int    `json:"spans"`
	Verdict string `json:"verdict" enum:"meets,misses,open"`
	// number of spans in which the target did not keep up with the rate
	Overloaded int `json:"overloaded,omitempty"`
	// turns per second that met every SLO, mean over the spans; absent: not known
	GoodPerSecond *float64 `json:"good_per_second,omitempty"`
	// 95 % interval of that; absent: not known
	GoodInterval *[2]float64 `json:"good_interval,omitempty"`
}

// Crossing is the level at which the second of two modes stops or begins to be better by TTFT p95.
type Crossing struct {
	Level    *Level    `json:"level,omitempty"`    // estimate; absent: the modes do not seem to cross in the range
	Interval *[2]Level `json:"interval,omitempty"` // 95 %; from 0 if the order is not certain at the lowest level
	// no level is certain to be above the crossing: the interval ends at the highest level or beyond it
	Above bool `json:"above,omitempty"`
	// mode that is better below the crossing
	Below string `json:"below" enum:"a,b"`
}

// SweepOutlook is the forecast of a sweep that has not begun.
type SweepOutlook struct {
	// with all defaults filled in, except for the seed of a trial, which is drawn at its start
	Request SweepRequest `json:"request"`
	// only for a trial; absent: no such trial of these arms was run on this target
	Detectable *TrialDetectable `json:"detectable,omitempty"`
	Prior      *TrialPrior      `json:"prior,omitempty"` // only for a trial; absent: no earlier trials of these arms
	// only for a trial; absent: no earlier trial at any concurrency shows it, or none would be answered in its time
	Soonest *TrialSoonest `json:"soonest,omitempty"`
	Words   List[string]  `json:"words"` // the forecast in sentences
}

// SweepBaselineRequest is a request to make a baseline of a sweep's rows.
type SweepBaselineRequest struct {
	Name string `json:"name" pattern:"^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,99}$"`
	// default: the title of the sweep
	Title *string `json:"title,omitempty" maxLength:"200"`
}

// ReportFormat is the file format of a report.
type ReportFormat string

// The formats of reports.
const (
	ReportJSON     ReportFormat = "json"
	ReportTSV      ReportFormat = "tsv"
	ReportMarkdown ReportFormat = "md"
	ReportHTML     ReportFormat = "html" // one file without scripts or references to other files
)

// ReportFormats lists all formats of reports.
var ReportFormats = []ReportFormat{ReportJSON, ReportTSV, ReportMarkdown, ReportHTML}

// ReportPolicy is the Content-Security-Policy of an HTML report. It forbids scripts and requests, and gives the report
// an origin of its own.
const ReportPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; sandbox"

// MediaType returns the media type of a report in this format.
func (f ReportFormat) MediaType() string {
	switch f {
	case ReportJSON:
		return "application/json"
	case ReportTSV:
		return "text/tab-separated-values; charset=utf-8"
	case ReportMarkdown:
		return "text/markdown; charset=utf-8"
	}
	return "text/html; charset=utf-8"
}

// mediaType returns the media type without its parameters.
func (f ReportFormat) mediaType() string {
	bare, _, _ := strings.Cut(f.MediaType(), ";")
	return bare
}

// reportFormat returns the format of a path that ends with a report. It returns false for any other path.
func reportFormat(path string) (ReportFormat, bool) {
	i := strings.LastIndex(path, "/report.")
	if i < 0 {
		return "", false
	}
	f := ReportFormat(path[i+len("/report."):])
	return f, slices.Contains(ReportFormats, f)
}

// ReportSide is one of the two results that a report compares: a baseline in one mode.
type ReportSide struct {
	Baseline    string
	Arm         string      // empty: Mode and Speculation name the rows
	Mode        Mode        // empty: the only mode of the baseline, or any mode of Arm
	Speculation Speculation // empty: the only speculation of the baseline in that mode
}
