package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/stats"
)

// Cause is the reason why a run ended.
type Cause string

// The causes of a run's end.
const (
	ByDuration Cause = "duration" // the requested time is over
	ByRequests Cause = "requests" // the requested number of turns has finished
	ByTraffic  Cause = "traffic"  // all of the traffic was sent
	BySignal   Cause = "signal"   // Ctrl-C or SIGTERM
	ByOperator Cause = "operator" // stopped through the API
	ByFailure  Cause = "failure"  // no turn succeeded for too long
)

// Ended holds the data of an ended run that its turns do not contain.
type Ended struct {
	Program string // the load generator's version
	Cause   Cause
	Started time.Time
	Ended   time.Time
	Status  api.LaneStatus   // lane at the end of the run
	SLO     api.SLO          // in force at the end of the run
	Steps   []api.StepRecord // by start time
	Before  *api.Comparison  // with the default baseline, just before the end; nil: no step was in progress
	Limited *lane.Limited    // what held the load down; nil: nothing
	Client  Client
	Lag     stats.Lag // the load generator's own delays
	Cluster Cluster
	Events  []api.Event // events of the lane, oldest first
	Data    Data
	// TokensPerChunk is the mean over the turns that ended well; see [stats.Arrived].
	TokensPerChunk float64
	// Opening returns the number of the text that opens a conversation; nil: not known.
	Opening func(conversation string) int64
	WarmUp  time.Duration // before Started; 0: there was none
	// WarmUpTurns is the number of turns that were sent in it. No figure counts them.
	WarmUpTurns int64
	Restart     bool            // a mode change restarted the run; it began at the latest one
	Against     *proof.Accepted // that relative conditions compare with; nil without them
	// NotCertainFails is true if a condition that is not certain fails the run.
	NotCertainFails bool
}

// Run is the report of a run that has ended, and the JSON of --output. Times are seconds, ratios 0 to 1.
type Run struct {
	Format    int     `json:"format"` // version of the document: 1
	Program   string  `json:"program"`
	Cause     Cause   `json:"ended_by"`
	Restarted bool    `json:"restarted"` // a mode change restarted the run; the figures start after it
	Started   string  `json:"started"`   // RFC 3339
	Ended     string  `json:"ended"`     // RFC 3339
	Seconds   float64 `json:"seconds"`   // time of all figures except the baseline's
	// WarmUpSeconds is the time before Started in which WarmUpTurns were sent, which no figure counts.
	WarmUpSeconds float64 `json:"warmup_seconds,omitempty"`
	WarmUpTurns   int64   `json:"warmup_turns,omitempty"`

	Target      api.Target        `json:"target"`
	Level       api.Level         `json:"concurrency"`
	Arm         string            `json:"arm,omitempty"`
	Mode        api.Mode          `json:"mode"`
	Speculation api.Speculation   `json:"speculation"`
	Workload    api.WorkloadShape `json:"workload"`
	Seed        uint64            `json:"seed,string"`
	Steps       []api.StepRecord  `json:"steps"`
	Limited     *lane.Limited     `json:"limited,omitempty"` // what held the load down; absent: nothing

	Turns   Turns       `json:"turns"`
	Metrics api.Metrics `json:"metrics"` // latencies of the turns that ended well
	// FirstAnswer is the time to the first token after the reasoning; nil where no turn had any.
	FirstAnswer           *api.Quantiles    `json:"first_answer,omitempty"`
	Late                  *api.Lateness     `json:"late,omitempty"`     // nil where the load waits for the server
	Fidelity              *api.Fidelity     `json:"fidelity,omitempty"` // nil where the turns are not those of a trace
	Dropped               int64             `json:"dropped,omitempty"`  // arrivals and further turns that were dropped
	Tokens                Tokens            `json:"tokens"`
	OutputTokensPerSecond Value             `json:"output_tokens_per_second"`
	RequestsPerSecond     Value             `json:"requests_per_second"` // turns that ended well
	Cost                  api.Cost          `json:"cost,omitzero"`
	Caches                *api.Caches       `json:"caches,omitempty"` // at the beginning of the run
	KVHitRatio            Value             `json:"kv_hit_ratio"`
	ErrorRatio            *float64          `json:"error_ratio,omitempty"`   // failed / (ended well + failed)
	GoodputRatio          *float64          `json:"goodput_ratio,omitempty"` // within every SLO / (ended well + failed)
	TTFTByTurn            []api.TurnFigures `json:"ttft_by_turn"`
	Routing               *Routing          `json:"routing,omitempty"` // absent: no worker of a turn is known
	Errors                []ErrorClass      `json:"errors"`            // most frequent first
	SLO                   []Objective       `json:"slo"`               // of TTFT, of TPOT
	Client                Client            `json:"client"`
	// Baseline compares the counted turns of the last step. Its own seconds and n state how many. Absent: no step was
	// in progress at the end.
	Baseline   *api.Comparison `json:"baseline,omitempty"`
	Cluster    Cluster         `json:"cluster"`
	Events     []api.Event     `json:"events"` // what happened since the workload first started
	Conditions []Result        `json:"conditions"`
	Notes      []string        `json:"notes"` // limits of the figures, a sentence each
	Data       Data            `json:"data"`
	Series     []Point         `json:"series"` // the run in spans of equal length
	// Twin is the report of the other lane, which ran the same conversations. Pairs compares the two lanes. Both are
	// absent if there is one lane. Conditions refer to this lane.
	Twin  *Run      `json:"twin,omitempty"`
	Pairs *api.Twin `json:"pairs,omitempty"`

	rated float64   // seconds that rates are over
	ttft  []float64 // TTFT of every turn that ended well, in seconds, ascending

	against         *proof.Accepted
	changes         map[proof.Quantity]proof.Change // from what is accepted
	notCertainFails bool
	noChanges       string // why there are none
}

// Turns counts the turns of a run by how they ended.
type Turns struct {
	OK        int `json:"ok"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`           // cut at the end of the run: neither a success nor an error
	SLOMet    int `json:"slo_met"`             // met every SLO
	InBursts  int `json:"in_bursts,omitempty"` // ended well, with tokens that the server or a proxy held back
}

// Tokens sums the tokens of the turns that ended well. Input and Cached sum the turns whose count the server reported.
// InputUnknown and CachedUnknown count the other turns.
type Tokens struct {
	Input         int64    `json:"input"`
	InputP95      *float64 `json:"input_p95,omitempty"` // input tokens of one turn
	InputUnknown  int      `json:"input_unknown,omitempty"`
	Cached        int64    `json:"cached"`
	CachedUnknown int      `json:"cached_unknown,omitempty"`
	Output        int64    `json:"output"`
	Estimated     int      `json:"output_estimated,omitempty"` // turns whose output is the number of chunks
}

// Value is a figure with its 95 % interval. A nil field is not known.
type Value struct {
	Value    *float64    `json:"value,omitempty"`
	Interval *[2]float64 `json:"interval,omitempty"`
}

// ErrorClass counts the turns that failed with a class, and holds the message of the first one.
type ErrorClass struct {
	Class   api.ErrorClass `json:"class"`
	N       int            `json:"n"`
	Message string         `json:"first_message"`
}

// Objective is an SLO and its outcome. Times are in seconds.
type Objective struct {
	Metric    string      `json:"metric"` // ttft or tpot
	Threshold float64     `json:"threshold"`
	P95       *float64    `json:"p95,omitempty"`
	Interval  *[2]float64 `json:"interval,omitempty"`
	Met       *bool       `json:"met,omitempty"`      // absent: not measured, or withheld
	Failed    *float64    `json:"failed,omitempty"`   // share of failed turns, where they alone miss it
	Withheld  string      `json:"withheld,omitempty"` // why it is neither met nor missed
}

// Client is the load generator's own error over a run.
type Client struct {
	// verdict on the whole run: ok, noticeable, bottleneck (too large) or unknown
	Verdict           string            `json:"verdict"`
	Seconds           int               `json:"seconds"` // seconds with a verdict
	BottleneckSeconds int               `json:"bottleneck_seconds"`
	WorstLagSeconds   float64           `json:"worst_lag_seconds"` // largest p95 of 10 s
	Reason            string            `json:"reason,omitempty"`
	Metrics           []api.ClientError `json:"metrics,omitempty"`
}

// Add adds the verdict of one second. An unknown verdict is ignored.
func (c *Client) Add(h api.ClientHealth) {
	if h.Verdict == api.VerdictUnknown {
		return
	}
	c.Seconds++
	if h.Verdict == api.VerdictBottleneck {
		c.BottleneckSeconds++
	}
	c.WorstLagSeconds = max(c.WorstLagSeconds, h.LagSeconds)
}

// judged returns c with the verdict on the whole run.
func (c Client) judged(run *Ended, m *api.Metrics) Client {
	h := api.ClientHealth{Verdict: api.VerdictUnknown}
	if run.Lag.Known() {
		h.Verdict = api.VerdictFine
	}
	h = lane.Verdict(h, lane.Judge(run.Data.Lane, m, run.Before, run.SLO))
	c.Verdict, c.Reason, c.Metrics = string(h.Verdict), h.Reason, h.Metrics
	if h.Verdict == api.VerdictBottleneck {
		c.Verdict = "bottleneck"
	}
	return c
}

// Data names the places of a run's raw data.
type Data struct {
	Database  string   `json:"database"`
	Lane      string   `json:"lane"`
	FirstStep int64    `json:"first_step"`
	LastStep  int64    `json:"last_step"`
	Files     []string `json:"files"`         // written by --output
	Run       string   `json:"run,omitempty"` // id in the history; absent: the run is left out
}

// Point summarizes a span of a run. Times are seconds. A nil field is not known.
type Point struct {
	From                  float64  `json:"from"` // seconds since the start
	Seconds               float64  `json:"seconds"`
	OK                    int      `json:"ok"`
	Failed                int      `json:"failed"`
	TTFTP50               *float64 `json:"ttft_p50,omitempty"` // percentiles of the turns that ended well in the span
	TTFTP95               *float64 `json:"ttft_p95,omitempty"`
	TPOTP50               *float64 `json:"tpot_p50,omitempty"`
	TPOTP95               *float64 `json:"tpot_p95,omitempty"`
	OutputTokensPerSecond float64  `json:"output_tokens_per_second"`
	ttft, tpot            []float64
}

// maxPoints limits the spans in [Run.Series].
const maxPoints = 60

// Builder makes the report of a run from its turns. It is not safe for concurrent use.
type Builder struct {
	report  *Run
	run     Ended
	errors  map[api.ErrorClass]*ErrorClass
	routing Routing
	firsts  []stats.FirstTurn // of the conversations
	// firstCached sums the cached tokens of those that ended well.
	firstCached int64
}

// NewBuilder returns a Builder without turns.
func NewBuilder(run Ended) *Builder {
	state := run.Status.State
	r := &Run{
		Format: 1, Program: run.Program, Cause: run.Cause, Restarted: run.Restart,
		Started: run.Started.Format(time.RFC3339), Ended: run.Ended.Format(time.RFC3339),
		Seconds:       max(0, run.Ended.Sub(run.Started).Seconds()),
		WarmUpSeconds: run.WarmUp.Seconds(), WarmUpTurns: run.WarmUpTurns,
		Target: run.Status.Target, Level: state.Concurrency.Target,
		Arm: state.Arm, Mode: state.Mode, Speculation: state.Speculation,
		Workload: state.Shape, Seed: run.Status.Seed, Steps: run.Steps, Limited: run.Limited,
		Dropped:  state.Concurrency.Dropped,
		Baseline: run.Before, Data: run.Data,
		Cluster: run.Cluster, Events: append([]api.Event{}, run.Events...),
		Errors: []ErrorClass{}, Conditions: []Result{}, Notes: []string{},
	}
	n := int(min(maxPoints, math.Ceil(r.Seconds))) // no span is shorter than a second
	for i := range n {
		length := r.Seconds / float64(n)
		r.Series = append(r.Series, Point{From: float64(i) * length, Seconds: length})
	}
	return &Builder{
		report: r, run: run, errors: map[api.ErrorClass]*ErrorClass{},
		routing: Routing{count: map[string]int{}, last: map[string]string{}},
	}
}

// Add adds a turn. It keeps no reference to t or its strings.
func (b *Builder) Add(t *api.Turn) {
	if t.Status == api.TurnError {
		e := b.errors[t.ErrorClass]
		if e == nil {
			e = &ErrorClass{Class: api.ErrorClass(strings.Clone(string(t.ErrorClass))), Message: strings.Clone(t.ErrorMessage)}
			b.errors[e.Class] = e
		}
		e.N++
	}
	b.routing.add(t)
	if t.Number == 1 && b.run.Opening != nil {
		b.firsts = append(b.firsts, stats.NewFirstTurn(t, b.run.Opening(t.Conversation), b.run.Started))
	}
	if t.Number == 1 && t.Status == api.TurnOK && t.CachedTokens != nil {
		b.firstCached += int64(*t.CachedTokens)
	}
	r := b.report
	if t.Status == api.TurnOK && t.TokenSource == "chunks" {
		r.Tokens.Estimated++
	}
	if t.Status == api.TurnOK && t.InBursts {
		r.Turns.InBursts++
	}
	if t.Status == api.TurnOK && t.TTFT != nil {
		r.ttft = append(r.ttft, *t.TTFT)
	}
	if len(r.Series) == 0 || t.Ended.After(b.run.Ended) { // in the grace period
		return
	}
	p := &r.Series[min(max(int(t.Ended.Sub(b.run.Started).Seconds()/r.Series[0].Seconds), 0), len(r.Series)-1)]
	switch t.Status {
	case api.TurnError:
		p.Failed++
	case api.TurnOK:
		p.OK++
		p.ttft, p.tpot = appendKnown(p.ttft, t.TTFT), appendKnown(p.tpot, t.TPOT)
	}
	for i, tokens := range stats.Arrived(t, b.run.TokensPerChunk, b.run.Started, b.run.Ended.Sub(b.run.Started),
		len(r.Series)) {
		r.Series[i].OutputTokensPerSecond += tokens / r.Series[i].Seconds
	}
}

func appendKnown(to []float64, v *float64) []float64 {
	if v == nil {
		return to
	}
	return append(to, *v)
}

// Run completes the report with the statistics of the same turns and the results of the conditions. notes are sentences
// on the limits of the figures. Run must be called once, after all turns.
func (b *Builder) Run(whole stats.Report, conditions []Condition, notes ...string) *Run {
	r := b.report
	if b.run.Lag.Known() {
		whole.Allow(&b.run.Lag)
	}
	r.Client = b.run.Client.judged(&b.run, &whole.Window.Metrics)
	r.Turns = Turns{
		OK: whole.OK, Failed: whole.Errors, Cancelled: whole.Cancelled, SLOMet: whole.SLOMet, InBursts: r.Turns.InBursts,
	}
	r.Metrics, r.FirstAnswer, r.TTFTByTurn = whole.Window.Metrics, whole.Window.FirstAnswer, whole.TTFTByTurn
	r.Late, r.Fidelity = whole.Window.Late, whole.Window.Fidelity
	r.Tokens = Tokens{
		Input: whole.PromptTokens, InputP95: whole.Window.InputP95, InputUnknown: whole.PromptUnknown,
		Cached: whole.CachedTokens, CachedUnknown: whole.CachedUnknown,
		Output: whole.OutputTokens, Estimated: r.Tokens.Estimated,
	}
	r.Caches = b.caches(r)
	r.ErrorRatio, r.GoodputRatio = whole.Window.ErrorRatio, whole.Window.GoodputRatio
	r.KVHitRatio = Value{whole.HitRatio, whole.HitInterval}
	if whole.OK > 0 {
		r.OutputTokensPerSecond = Value{&whole.Window.OutputTokensPerSecond, whole.OutputInterval}
		r.RequestsPerSecond = Value{&whole.Window.RequestsPerSecond, whole.RequestsInterval}
		r.rated = whole.Window.Seconds
	}
	r.Cost = r.Cluster.cost(r.Target.Deployment, r.OutputTokensPerSecond.Value, r.Metrics.TPOT.P50)
	r.Routing = b.routing.finish(r.Cluster.listed)
	for _, e := range b.errors {
		r.Errors = append(r.Errors, *e)
	}
	slices.SortFunc(r.Errors, func(a, b ErrorClass) int {
		if a.N != b.N {
			return b.N - a.N
		}
		return strings.Compare(string(a.Class), string(b.Class))
	})
	for _, f := range api.Times {
		if f.Objective != nil {
			r.SLO = append(r.SLO, objective(f, f.Quantiles(&r.Metrics), f.Objective(b.run.SLO), r.ErrorRatio))
		}
	}
	r.Notes = append(r.Notes, notes...)
	slices.Sort(r.ttft)
	for i := range r.Series {
		p := &r.Series[i]
		p.TTFTP50, p.TTFTP95 = percentiles(p.ttft)
		if !whole.HeldBack {
			p.TPOTP50, p.TPOTP95 = percentiles(p.tpot)
		}
	}
	r.notCertainFails = b.run.NotCertainFails
	r.compare(b.run.Against)
	for _, c := range conditions {
		r.Conditions = append(r.Conditions, c.judge(r))
	}
	return r
}

func percentiles(values []float64) (p50, p95 *float64) {
	if len(values) == 0 {
		return nil, nil
	}
	slices.Sort(values)
	return new(stats.Percentile(values, .5)), new(stats.Percentile(values, .95))
}

func objective(f *api.Figure, q *api.Quantiles, threshold float64, failed *float64) Objective {
	o := Objective{Metric: f.Key, Threshold: threshold, P95: q.P95, Interval: q.P95Interval}
	switch {
	case baseline.FailuresMiss(failed):
		o.Met, o.Failed = new(false), failed
	case q.P95 == nil:
	case slices.Contains(q.AtLeast, "p95") && *q.P95 <= threshold:
		o.Withheld = cutShort(q.Cut)
	case q.P95Error != nil && !api.Decidable(*q.P95, *q.P95Error, threshold, f.BothWays):
		o.Withheld = withheld(*q.P95Error)
	default:
		o.Met = new(baseline.Judge(*q.P95, threshold) != baseline.SLOMissed)
	}
	return o
}

// cutShort returns the reason for an outcome that turns could change which were cut, as a clause.
func cutShort(n int) string { return plural(n, "turn") + " cut at the end may have been slower" }

// withheld returns the reason for a withheld outcome as a clause. e is the own error in seconds.
func withheld(e float64) string {
	return "up to " + api.Milliseconds(e) + " may be the load generator's own error"
}

// slo returns the outcome of all objectives: met, missed or "". It is "" if TTFT was not measured, TPOT is not known,
// or the load generator's own error could change the outcome. Turns of one token have no TPOT and are judged by TTFT
// alone.
func (r *Run) slo() string {
	known := r.SLO[0].P95 != nil
	for _, o := range r.SLO {
		if o.Met != nil && !*o.Met {
			return "missed"
		}
		known = known && o.Withheld == ""
	}
	if !known {
		return ""
	}
	if r.SLO[1].Met == nil && r.Metrics.TPOT.Unknown > 0 {
		return ""
	}
	return "met"
}

// MostFailed describes a run in which most turns failed: their number, the most frequent class and its first message.
// It returns "" if at least as many succeeded.
func (r *Run) MostFailed() string {
	failed, all := r.Turns.Failed, r.Turns.OK+r.Turns.Failed
	if failed <= r.Turns.OK || len(r.Errors) == 0 {
		return ""
	}
	text := fmt.Sprintf("most turns failed: %d of %d", failed, all)
	if failed == all {
		text = fmt.Sprintf("no turn succeeded: %s failed", plural(failed, "turn"))
	}
	most := r.Errors[0]
	return fmt.Sprintf("%s, %d as %s: %s", text, most.N, most.Class, most.Message)
}

// Measured reports whether any turn succeeded or failed.
func (r *Run) Measured() bool { return r.Turns.OK+r.Turns.Failed > 0 }

// Failed reports whether a condition was met, so that the run fails.
func (r *Run) Failed() bool {
	return slices.ContainsFunc(r.Conditions, func(c Result) bool { return c.Hit })
}

// Undecided reports whether a condition names a figure that is not known.
func (r *Run) Undecided() bool {
	return slices.ContainsFunc(r.Conditions, func(c Result) bool { return !c.Known })
}
