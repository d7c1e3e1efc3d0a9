package api

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// SweepKind is what a sweep asks.
type SweepKind string

// The kinds of sweeps.
const (
	SweepTrial    SweepKind = "trial"    // is one mode better than another at one concurrency?
	SweepLevels   SweepKind = "sweep"    // what does each mode do at each level?
	SweepCapacity SweepKind = "capacity" // how much does each mode sustain within the SLOs, and where do they cross?
)

// SweepKinds are all of them.
var SweepKinds = []SweepKind{SweepTrial, SweepLevels, SweepCapacity}

// SweepOrder is the order in which a sweep of levels runs its spans.
type SweepOrder string

// The orders.
const (
	OrderInterleaved   SweepOrder = "interleaved"     // machine drift affects all modes equally
	OrderModeAfterMode SweepOrder = "mode_after_mode" // the result contains it, but each mode is switched to only once
)

// SweepOrders are all of them.
var SweepOrders = []SweepOrder{OrderInterleaved, OrderModeAfterMode}

// TrialQuestion is what a trial of more than two modes asks.
type TrialQuestion string

// The questions. The difference of two modes answers both.
const (
	QuestionBest  TrialQuestion = "best"  // which mode is better than all others: it drops a mode once another is better
	QuestionOrder TrialQuestion = "order" // how each two modes compare: it drops a mode once all of its pairs are decided
)

// TrialQuestions are all of them.
var TrialQuestions = []TrialQuestion{QuestionBest, QuestionOrder}

// SweepRequest asks for spans of a workload at some concurrencies in some modes, each on cold caches, and what they
// show. Omitted fields get the defaults in `SweepList`. A field that does not apply to the kind is rejected.
type SweepRequest struct {
	Kind  SweepKind `json:"kind"`
	Title *string   `json:"title,omitempty" maxLength:"200"`
	// that the driver can switch to, an arm by its name alone; of a trial two or more: of two, the second is compared
	// with the first, of more, each with each; of a capacity search one or two
	Modes []ModeState `json:"modes,omitempty" maxItems:"9"`
	// concurrencies: of a trial the one in question, of a sweep all, of a capacity search those that it begins with,
	// at least two; levels × modes × repeats are 1,000 at most
	Levels  []int   `json:"levels,omitempty" minimum:"1" maximum:"100000" maxItems:"40"`
	Primary *string `json:"primary,omitempty"` // of a trial: the metric that decides
	// of a trial of more than two modes: what ends it; default: best
	Question *TrialQuestion `json:"question,omitempty"`
	// of a trial: the smallest difference of interest, relative, of shares in points
	Smallest *float64 `json:"smallest,omitempty" minimum:"0.001" maximum:"0.5"`
	// of a sweep: spans of each level and mode
	Repeats *int        `json:"repeats,omitempty" minimum:"1" maximum:"100"`
	Order   *SweepOrder `json:"order,omitempty"` // of a sweep
	// of a sweep: from the full concurrency on, until a span counts
	WarmUp *float64 `json:"warm_up_seconds,omitempty" minimum:"0" maximum:"3600" unit:"seconds"`
	// that a span counts, at least
	Seconds *float64 `json:"span_seconds,omitempty" minimum:"1" maximum:"86400" unit:"seconds"`
	// of a sweep: 60 s windows at the end of as many equal parts of a span, whose percentiles are averaged
	Snapshots *int `json:"snapshots,omitempty" minimum:"1" maximum:"100"`
	// of a capacity search: how many conversations its answer may be off
	Resolution *int `json:"resolution,omitempty" minimum:"1" maximum:"1000" unit:"conversations"`
	// of a trial and a capacity search: when they end undecided
	MaxSeconds *float64 `json:"max_seconds,omitempty" minimum:"1" maximum:"604800" unit:"seconds"`
	// of a trial and a sweep of two modes: both run at the same time, each on one of two lanes that run the same
	// conversations; default: of a trial, where there are two; of a sweep, not
	Together *bool `json:"together,omitempty"`
	SLO      *SLO  `json:"slo,omitempty"` // default: the settings'
	// a whole number below 2⁶⁴: of the order of the spans, and of what the conversations are like; default: drawn for
	// a trial, else 1
	Seed *uint64 `json:"seed,omitempty,string"`
}

// SweepMetrics are the metrics that may be primary of a trial, in the order of tables. A trial compares all but
// ttft_p95_turn2+, which is of the second and later turns and compared only where it is primary.
var SweepMetrics = []string{
	"ttft_mean", "ttft_p95", "ttft_p50", "ttft_p95_turn2+", "tpot_p95", "output_tokens_per_second", "kv_hit_ratio",
	"goodput",
}

// MaxSweepSpans bounds levels × modes × repeats of a [SweepRequest].
const MaxSweepSpans = 1000

// MaxSweepLevels and MaxSweepModes are how many levels and modes a [SweepRequest] may name.
var (
	MaxSweepLevels = maxItems[SweepRequest]("Levels")
	MaxSweepModes  = maxItems[SweepRequest]("Modes")
)

// SweepLimits are the limits of a [SweepRequest], by the paths of its fields; of levels, that of each.
var SweepLimits = limitsOf[SweepRequest]()

// sweepFields are the fields that not every kind has.
var sweepFields = map[string][]SweepKind{
	"primary": {SweepTrial}, "question": {SweepTrial}, "smallest": {SweepTrial}, "repeats": {SweepLevels},
	"order":           {SweepLevels},
	"warm_up_seconds": {SweepLevels}, "snapshots": {SweepLevels}, "resolution": {SweepCapacity},
	"max_seconds": {SweepTrial, SweepCapacity}, "together": {SweepTrial, SweepLevels},
}

// Check holds what the request names against [SweepLimits], and its lists and fields
// against its kind. The error is a [FieldError].
func (r SweepRequest) Check() error {
	if err := OneOf("kind", r.Kind, SweepKinds); err != nil {
		return err
	}
	return cmp.Or(r.checkFields(), r.checkLists(), r.checkWords(), CheckLimits(r), r.checkSpans())
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
	if r.Order == nil {
		return nil
	}
	if r.together() && *r.Order == OrderModeAfterMode {
		return Refuse("order", *r.Order, string(OrderInterleaved)+" when the modes run together")
	}
	return OneOf("order", *r.Order, SweepOrders)
}

// together says whether it is asked for.
func (r SweepRequest) together() bool { return r.Together != nil && *r.Together }

// Noun is the kind in a sentence: trial, sweep or capacity search.
func (k SweepKind) Noun() string {
	if k == SweepCapacity {
		return "capacity search"
	}
	return string(k)
}

// checkFields refuses what another kind has.
func (r SweepRequest) checkFields() error {
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		kinds, some := sweepFields[name]
		if some && !v.Field(i).IsNil() && !slices.Contains(kinds, r.Kind) {
			nouns := make([]string, len(kinds))
			for i, k := range kinds {
				nouns[i] = "a " + k.Noun()
			}
			return Refuse(name, quoted(v.Field(i).Elem()), "only "+strings.Join(nouns, " or ")+" has this field")
		}
	}
	return nil
}

// quoted is a value as an error names it.
func quoted(v reflect.Value) string {
	if v.Kind() == reflect.String {
		return fmt.Sprintf("%.40q", v.String())
	}
	return fmt.Sprint(v)
}

func (r SweepRequest) checkLists() error {
	least, most := 1, MaxSweepLevels
	modesLeast, modesMost := 1, MaxSweepModes
	switch r.Kind {
	case SweepTrial:
		most, modesLeast = 1, 2
	case SweepCapacity:
		least, modesMost = 2, 2
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
	return cmp.Or(r.checkLevels(), r.checkModes())
}

func (r SweepRequest) checkLevels() error {
	for i, level := range r.Levels {
		if slices.Contains(r.Levels[:i], level) {
			return Refuse("levels", level, "each level once")
		}
	}
	return nil
}

// checkModes lets a trial of two modes compare a mode with itself: that shows what the machines' own unrest amounts to.
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
		if m.Speculation == "" { // that in force
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

// EachModeOnce is what a request allows that names a mode twice.
const EachModeOnce = "each one once; only a trial of two may compare a mode with itself, which tests the method"

// MayRepeatMode reports whether the request may name a mode twice.
func (r SweepRequest) MayRepeatMode() bool { return r.Kind == SweepTrial && len(r.Modes) == 2 }

// checkSpans bounds how many spans a sweep of levels has. What is left out counts once.
func (r SweepRequest) checkSpans() error {
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
	SweepRunning   SweepState = "running" // also while no load generator runs: the next one resumes it
	SweepPaused    SweepState = "paused"
	SweepDone      SweepState = "done"
	SweepCancelled SweepState = "cancelled"
	SweepFailed    SweepState = "failed"
)

// Ended says whether nothing more will come.
func (s SweepState) Ended() bool { return s == SweepDone || s == SweepCancelled || s == SweepFailed }

// SweepCause is what blocks a sweep, or has ended it.
type SweepCause string

// The causes.
const (
	CauseOperator SweepCause = "operator" // an operator paused, cancelled or stopped it
	CauseTarget   SweepCause = "target"   // it failed in the same span twice, or answered nothing in two modes of a trial
	CauseMode     SweepCause = "mode"     // the cluster could not be switched to a mode
	CauseDisk     SweepCause = "disk"     // results could not be stored yet, and it resumes by itself
	CauseInternal SweepCause = "internal" // an error of the load generator itself
)

// SweepPatch pauses, resumes or cancels a sweep.
type SweepPatch struct {
	State SweepState `json:"state" enum:"paused,running,cancelled"`
}

// SweepList is what can be requested, and earlier requests.
type SweepList struct {
	Sweeps List[SweepSummary] `json:"sweeps"` // newest first
	// of the numbers of a request, by their paths; of levels, that of each
	Limits Map[string, SimulationLimit] `json:"limits"`
	// a request of each kind with all its fields, as it would be asked for now
	Defaults List[SweepRequest] `json:"defaults"`
	Modes    List[ModeState]    `json:"modes"`   // that the driver can switch to
	Metrics  List[string]       `json:"metrics"` // that may be primary
}

// SweepSummary is a sweep without its spans.
type SweepSummary struct {
	ID    string     `json:"id"`
	Lane  string     `json:"lane"`
	State SweepState `json:"state"`
	// why it is paused, waiting, cancelled or failed; for cause operator, by whom
	Reason   string        `json:"reason,omitempty"`
	Cause    SweepCause    `json:"cause,omitempty"` // category of the reason
	By       string        `json:"by"`              // who asked
	Asked    time.Time     `json:"asked"`
	Ended    *time.Time    `json:"ended,omitempty"`
	Request  SweepRequest  `json:"request"` // with all defaults filled in
	Progress SweepProgress `json:"progress"`
	Words    List[string]  `json:"words"`              // the findings so far, in sentences
	Baseline string        `json:"baseline,omitempty"` // name of the one that was made of it
}

// Sweep is a sweep with all that it has measured so far.
type Sweep struct {
	SweepSummary
	Program    string          `json:"program"` // version of the load generator that began it
	Target     TargetID        `json:"target"`
	Deployment Deployment      `json:"deployment"`
	Workload   WorkloadShape   `json:"workload"`
	Spans      List[SweepSpan] `json:"spans"` // in the order in which they ended
	// the figures of each level and mode over all spans that count, with their 95 % intervals: Student's t over the
	// spans of a level and mode, or parts of the span if there is only one
	Rows     List[BaselineRow] `json:"rows"`
	Trial    *TrialState       `json:"trial,omitempty"`
	Capacity *Capacity         `json:"capacity,omitempty"`
}

// SweepProgress is the progress of a sweep.
type SweepProgress struct {
	Spans       int     `json:"spans"`        // that count
	Of          *int    `json:"of,omitempty"` // absent: that depends on what they show
	Spoiled     int     `json:"spoiled"`      // spans that do not count
	SecondsUsed float64 `json:"seconds_used"` // by all spans that have ended, with their warm-up
	// median estimate; absent: unknown, as before the first look of a trial
	SecondsLeft *float64 `json:"seconds_left,omitempty"`
	// the least time left: of a trial until its next look, of a sweep by its shortest span; absent: unknown
	SecondsLeast *float64 `json:"seconds_least,omitempty"`
	// the most time left: of a trial and a capacity search until the time limit, of a sweep by its longest span;
	// absent: unknown
	SecondsMost *float64  `json:"seconds_most,omitempty"`
	Beyond      bool      `json:"beyond,omitempty"` // a trial is currently expected to run out of time undecided
	Span        *SweepNow `json:"span,omitempty"`   // the one in progress
	Beside      *SweepNow `json:"beside,omitempty"` // the one that runs at the same time, on the other lane
}

// SweepPhase is what is done of a span.
type SweepPhase string

// The phases of a span, in their order.
const (
	SpanSwitching SweepPhase = "switching"  // the mode is changed, or the caches are made cold
	SpanWarmingUp SweepPhase = "warming_up" // it does not count yet
	SpanCounting  SweepPhase = "counting"
	SpanStoring   SweepPhase = "storing" // it waits until its turns are on the disk
)

// SweepNow is the span in progress.
type SweepNow struct {
	Number  int `json:"number"`  // from 0; the same when it is repeated
	Attempt int `json:"attempt"` // 1, or more where those before were spoiled
	// of a trial: its letter, in the order of the request; pilot: of one on pairs
	Arm         string     `json:"arm,omitempty" enum:"pilot,a,b,c,d,e,f,g,h,i"`
	Lane        string     `json:"lane,omitempty"` // of a trial or a sweep that runs both modes together
	Mode        ModeState  `json:"mode"`
	Concurrency int        `json:"concurrency"`
	Phase       SweepPhase `json:"phase"`
	Message     string     `json:"message,omitempty"` // of a mode change
	Seconds     float64    `json:"seconds"`           // in this phase
	Elapsed     float64    `json:"elapsed_seconds"`   // since the span began, with the switch before it
	Of          *float64   `json:"of,omitempty"`      // seconds that the phase takes at least; absent: not known
	Turns       int        `json:"turns"`             // that ended well while it counted
	WarmingUp   int        `json:"warming_up"`        // conversations that began the span and have not ended
}

// SweepSpan is a span that has ended.
type SweepSpan struct {
	Number  int `json:"number"`  // from 0; the same when it is repeated
	Attempt int `json:"attempt"` // 1, or more where those before were spoiled
	// of a trial: its letter, in the order of the request; pilot: of one on pairs
	Arm         string    `json:"arm,omitempty" enum:"pilot,a,b,c,d,e,f,g,h,i"`
	Lane        string    `json:"lane,omitempty"` // of a trial or a sweep that runs both modes together
	Mode        ModeState `json:"mode"`
	Target      string    `json:"target,omitempty"` // URL that its turns were sent to; absent: not known
	Router      string    `json:"router,omitempty"` // what is known of the router there, in words; absent: not known
	Concurrency int       `json:"concurrency"`
	Seed        uint64    `json:"seed,string"`
	Step        int64     `json:"step"` // of its turns, as in `turns.csv`
	Started     time.Time `json:"started"`
	CountedFrom time.Time `json:"counted_from"`
	Until       time.Time `json:"until"`
	Elapsed     float64   `json:"elapsed_seconds"` // with the switch before it; of spans that ran together, its share
	Turns       int       `json:"turns"`           // that ended well while it counted
	Failed      int       `json:"failed"`
	Actual      *float64  `json:"actual,omitempty"` // conversations in progress while it counted, mean
	// how its caches were made cold: emptied, or by prompts that none of them has seen
	Cold    string `json:"cold" enum:"emptied,nonce"`
	Spoiled string `json:"spoiled,omitempty"` // why it does not count
	// whether the caches were cold, as the first turns show; absent: it is not known
	FirstTurns *SweepFirstTurns `json:"first_turns,omitempty"`
	Workers    int              `json:"workers,omitempty"` // that the cluster reported at its end; absent: not known
	// what its turns and the cluster's metrics show that its arm is not what it claims, in words; absent: nothing
	Doubts []string `json:"doubts,omitempty"`
	// what was measured while it counted, with 95 % intervals from its parts
	Row    *BaselineRow `json:"row,omitempty"`
	Causes *SweepCauses `json:"causes,omitempty"`
}

// SweepFirstTurns is what the first turns on each opening of a span found in the caches. What turns
// before them in the span left there, and what stands in front of every opening, explains cached
// tokens; the text of the opening is not explained.
type SweepFirstTurns struct {
	Openings int `json:"openings"`           // whose first turn reported its cached tokens
	Warm     int `json:"warm"`               // of which the first turn found more than is explained
	Cached   int `json:"cached_tokens_most"` // the most tokens that one of these found
}

// SweepCauses are the cluster's own metrics while a span counted, sampled once a second: they can explain why one mode
// is slower than another. Metrics it did not report are absent.
type SweepCauses struct {
	Seconds int `json:"seconds"` // that were sampled
	ClusterFigures
}

// TrialDifference is the result for one metric of two modes of a trial, A and B. The difference is (B − A)/A of times
// and rates, and B − A of shares. A failed turn counts as slower than every successful one.
type TrialDifference struct {
	Metric     string      `json:"metric"`
	A          float64     `json:"a"` // mean over the spans, the geometric one of times and rates
	B          float64     `json:"b"`
	Difference float64     `json:"difference"`
	Interval   *[2]float64 `json:"interval,omitempty"` // 95 %, over all looks together; absent: it has no bounds yet
	// what the interval shows; running: nothing yet
	Outcome string `json:"outcome" enum:"running,b_better,a_better,no_difference"`
	// those that are certainly not worse than the other by the smallest difference of interest
	NotWorse []TrialArm `json:"not_worse,omitempty"`
	// of a trial on pairs: what the interval's width rests on, sections of the spans or pairs of them
	Basis string `json:"basis,omitempty" enum:"sections,pairs"`
}

// TrialArm is one of the modes that a trial compares, by its place in the request.
type TrialArm string

// The arms.
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

// TrialArms are all of them, in the order of the request.
var TrialArms = []TrialArm{
	TrialArmA, TrialArmB, TrialArmC, TrialArmD, TrialArmE, TrialArmF, TrialArmG, TrialArmH, TrialArmI,
}

// TrialLook is a trial's interim result for the deciding metric after a number of blocks of spans.
type TrialLook struct {
	Blocks     int         `json:"blocks,omitempty"` // whole ones so far
	Pairs      int         `json:"pairs,omitempty"`  // of a trial on pairs: so far
	Difference float64     `json:"difference"`
	Interval   *[2]float64 `json:"interval,omitempty"` // 95 %, over all looks together; absent: it has no bounds yet
}

// TrialMethod is how a trial decides.
type TrialMethod string

// The methods.
const (
	TrialOnBlocks TrialMethod = "blocks" // on whole blocks of spans, from the second on
	TrialOnPairs  TrialMethod = "pairs"  // of earlier versions, after each pair of spans; such trials can only be read
)

// TrialState is the state of a trial.
type TrialState struct {
	Method TrialMethod `json:"method"`
	// trade_off: one is better and fails more turns than the other; no_difference: differences as large as the
	// smallest one of interest are ruled out in both directions; time_over: undecided; of more than two modes, best:
	// one is better than all others; order: each pair is decided
	Verdict  string         `json:"verdict" enum:"running,b_better,a_better,best,order,trade_off,no_difference,time_over"`
	Blocks   int            `json:"blocks"`             // whole ones; there is no look before the second
	Pairs    int            `json:"pairs,omitempty"`    // of a trial on pairs
	Failures *TrialFailures `json:"failures,omitempty"` // of a trial of two modes
	Ranking  *TrialRanking  `json:"ranking,omitempty"`  // of a trial of more than two modes
	// by the metric that decides; of more than two modes, B is the one with the best estimate, and A the runner-up
	Primary *TrialDifference `json:"primary,omitempty"`
	// of two modes, the estimate at the stop; that of `primary` is on average too large where a trial stops early
	Final *TrialFinal `json:"final,omitempty"`
	// at the metric that decides, of the two modes that were best and runner-up at each look
	Looks List[TrialLook] `json:"looks"`
	// bounds of the differences that are not relevant; the lower bound of relative differences is −s/(1+s), the
	// inverse of a rise by s
	Boundaries [2]float64 `json:"boundaries"`
	// of the same two modes; outcomes by Holm's procedure over all of them
	Others List[TrialDifference] `json:"others"`
	// difference that the time left is estimated for: the present estimate
	Assumed    *float64         `json:"assumed,omitempty"`
	Detectable *TrialDetectable `json:"detectable,omitempty"` // absent: not known yet
	Variance   *TrialVariance   `json:"variance,omitempty"`   // of the metric that decides, for later trials
	// what the latest block took, with switches and warm-up
	BlockSeconds float64 `json:"block_seconds,omitempty"`
	// each of two lanes kept its mode: the trial compares targets as well as modes
	KeepsLanes bool `json:"keeps_lanes,omitempty"`
}

// TrialRanking is how the modes of a trial of more than two compare.
type TrialRanking struct {
	Question TrialQuestion    `json:"question"`
	Places   List[TrialPlace] `json:"places"` // the best first; before the first look in the order of the request
	Pairs    List[TrialPair]  `json:"pairs"`  // each pair, by the places of its modes; none before the first look
	// modes of which each two differ certainly by less than the smallest difference of interest, two or more in each
	Groups List[TrialGroup] `json:"groups"`
}

// TrialPlace is what a trial shows of one of its modes.
type TrialPlace struct {
	Arm  TrialArm  `json:"arm"`
	Mode ModeState `json:"mode"`
	// the places that it may have, from 1: another one is ahead where it is shown to be better
	Place [2]int `json:"place"`
	// mean of the metric that decides, over all blocks: of a mode that left the trial, what is estimated for the others;
	// absent: no look yet
	Mean *float64 `json:"mean,omitempty"`
	// after how many blocks it left the trial; absent: it takes part
	LeftAfter *int `json:"left_after,omitempty"`
	// whether it may be the best, at 95 % over all looks and modes
	MayBeBest bool        `json:"may_be_best"`
	Failures  TrialFailed `json:"failures"` // turns
}

// TrialPair is the comparison of two modes of a trial: B, the one with the better estimate, with A. It is that of the
// last look at which both took part.
type TrialPair struct {
	A       TrialArm              `json:"a"`
	B       TrialArm              `json:"b"`
	Blocks  int                   `json:"blocks"`         // at that look
	Primary TrialDifference       `json:"primary"`        // by the metric that decides
	Others  List[TrialDifference] `json:"others"`         // outcomes by Holm's procedure over all of them, of all pairs
	More    TrialArm              `json:"more,omitempty"` // which of the two certainly fails more turns; absent: neither
}

// TrialGroup is a set of modes that are not different.
type TrialGroup struct {
	Arms List[TrialArm] `json:"arms"` // by their places
}

// TrialFailures are the turns of a trial that failed.
type TrialFailures struct {
	A    TrialFailed `json:"a"`
	B    TrialFailed `json:"b"`
	More TrialArm    `json:"more,omitempty"` // which of them certainly fails more turns; absent: neither
}

// TrialFailed is how many of an arm's turns failed.
type TrialFailed struct {
	Failed int `json:"failed"`
	Ended  int `json:"ended"` // all that ended, the failed among them
}

// TrialFinal is a trial's median-unbiased estimate at the stop. That of primary is on average too large where a trial
// stops early.
type TrialFinal struct {
	Difference float64    `json:"difference"`
	Interval   [2]float64 `json:"interval"` // 95 %
}

// TrialDetectable is what a trial can find.
type TrialDetectable struct {
	// the smallest one, in either direction, that is found in a share of trials
	Difference   float64 `json:"difference"`
	Power        float64 `json:"power"`         // that share
	Seconds      float64 `json:"seconds"`       // the trial's time limit
	BlockSeconds float64 `json:"block_seconds"` // what a block takes
	// id of the trial whose spans it is computed from; absent: the first block of this one
	Trial string `json:"trial,omitempty"`
}

// TrialVariance is by how much the spans of an arm scatter, on the scale of differences: the logarithm of times and
// rates.
type TrialVariance struct {
	Value            float64 `json:"value"`
	DegreesOfFreedom float64 `json:"degrees_of_freedom"`
}

// Capacity is what a capacity search has found.
type Capacity struct {
	Modes    List[ModeCapacity] `json:"modes"`
	Crossing *Crossing          `json:"crossing,omitempty"` // absent: not looked for, or not known yet
}

// ModeCapacity is how many conversations a mode sustains within the SLOs.
type ModeCapacity struct {
	Mode ModeState `json:"mode"`
	// the estimate; 0: not even the lowest level meets them; absent: not known yet
	Level *int `json:"level,omitempty"`
	// 95 %: between the levels at which it is certain enough; from 0 where none is certain to meet them
	Interval *[2]int `json:"interval,omitempty"`
	// no level is certain to miss the SLOs: the interval ends at the highest one or beyond it
	Above    bool            `json:"above,omitempty"`
	Isolated List[int]       `json:"isolated"` // levels above the first that misses, which meet them nevertheless
	Tested   List[LevelTest] `json:"tested"`   // ascending
}

// LevelTest is whether a level meets the SLOs.
type LevelTest struct {
	Concurrency int    `json:"concurrency"`
	Spans       int    `json:"spans"`
	Verdict     string `json:"verdict" enum:"meets,misses,open"`
}

// Crossing is where the second of two modes stops being better by TTFT p95, or begins to.
type Crossing struct {
	Level    *int    `json:"level,omitempty"`    // the estimate; absent: they do not seem to cross in the range
	Interval *[2]int `json:"interval,omitempty"` // 95 %; from 0 where the order is not certain at the lowest level
	// at no level is the order certain to have turned: the interval ends at the highest, or beyond it
	Above bool `json:"above,omitempty"`
	// which is better below
	Below string `json:"below" enum:"a,b"`
}

// SweepOutlook is what a trial can find that is not begun.
type SweepOutlook struct {
	// with all defaults filled in, but for the seed of a trial, which is drawn
	Request SweepRequest `json:"request"`
	// of a trial; absent: no such trial was run on this target
	Detectable *TrialDetectable `json:"detectable,omitempty"`
	Words      List[string]     `json:"words"` // the same, in sentences
}

// SweepBaselineRequest makes a baseline of a sweep's rows.
type SweepBaselineRequest struct {
	Name string `json:"name" pattern:"^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,99}$"`
	// without it, the sweep's
	Title *string `json:"title,omitempty" maxLength:"200"`
}

// ReportFormat is what a report can be had as.
type ReportFormat string

// The formats of reports.
const (
	ReportJSON     ReportFormat = "json"
	ReportTSV      ReportFormat = "tsv"
	ReportMarkdown ReportFormat = "md"
	ReportHTML     ReportFormat = "html" // one file that needs no other and no script
)

// ReportFormats are all of them.
var ReportFormats = []ReportFormat{ReportJSON, ReportTSV, ReportMarkdown, ReportHTML}

// ReportPolicy is the Content-Security-Policy of a report as HTML: it runs no script,
// fetches nothing, and has nothing to do with the origin that it came from.
const ReportPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; sandbox"

// MediaType is that of a report in this format.
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

// mediaType is that of a report in this format, without parameters.
func (f ReportFormat) mediaType() string {
	bare, _, _ := strings.Cut(f.MediaType(), ";")
	return bare
}

// reportFormat is the format of the report that a path ends with.
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
	Mode        Mode        // empty: the baseline's only one
	Speculation Speculation // empty: the only one that the baseline has in that mode
}
