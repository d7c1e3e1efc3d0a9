package sweep

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/stats"
)

// When a span of a sweep of levels or a capacity search is spoiled.
const (
	tolerableErrors = .05 // share of the turns that ended
	tolerableClient = .5  // of a TTFT p50 that may be the load generator's own error
	tolerableMiss   = .10 // of the concurrency
)

// When a span is given up before its end: nothing good will come of it. In a trial it counts all the same, as far as
// that is the target's fault.
const (
	hopelessFailures = 20 // turns, with more of them failed than well
	hopelessSilence  = 5 * time.Minute
)

const flushWithin = 30 * time.Second

// errSwitch says that a span could not begin, since the cluster could not be brought to its mode.
type errSwitch struct{ error }

// attempt is a span as it is run.
type attempt struct {
	sweep    *sweep
	lane     *lane.Lane
	place    int // among those that run at the same time
	began    time.Time
	span     proof.Span
	record   *recorder
	run      *lane.SpanRun
	warm     float64 // its warm-up ended; 0: not yet
	from     float64 // it counts since; 0: not yet
	full     float64 // it has been at its concurrency since; 0: not yet
	seconds  []second
	engines  stats.EngineRecord
	actual   float64   // conversations in progress, added up over the seconds that count
	progress time.Time // of the turns
	ended    int       // turns, at that time
	silent   bool      // it was given up, since the target answered nothing

	spoiled string // once it has been watched
	until   float64
}

// outcome is what became of a span.
type outcome struct {
	result  proof.Result
	span    api.SweepSpan
	seconds []byte // as the store keeps them
	failing bool   // it was spoiled by the target's failures
}

// measure runs spans to their ends, at the same time where there are several: each is on a lane of
// its own then. An error is the cause of ctx's end, or an errSwitch: nothing was measured then.
func (s *sweep) measure(ctx context.Context, lease *lane.Lease, spans []proof.Span) ([]*outcome, error) {
	if len(spans) > 1 && s.desk.opts.Twin == nil {
		return nil, errOneLane
	}
	now := time.Now()
	all, begin := make([]*attempt, len(spans)), make([]lane.SpanOn, len(spans))
	for i, span := range spans {
		l := s.laneOf(i, span)
		all[i] = &attempt{sweep: s, lane: l, place: i, began: now, span: span, record: newRecorder(now, span.WarmUp, l.Opening)}
		begin[i] = lane.SpanOn{
			Lane: all[i].lane, Observer: all[i].record,
			Set: lane.SpanSettings{Mode: span.Mode, Concurrency: span.Concurrency, Seed: span.Seed, Midway: span.Midway},
		}
	}
	switching := func(message string) {
		for _, a := range all {
			n := a.now(api.SpanSwitching, now, nil)
			n.Message = message
			a.show(n)
		}
	}
	switching("")
	lost := s.desk.opts.Store.LostTurns()
	runs, err := lease.Begin(ctx, s.by(), begin, switching)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, errSwitch{err}
	}
	var wg sync.WaitGroup
	for i, a := range all {
		a.run = runs[i]
		wg.Go(func() {
			a.spoiled, a.until = a.watch(ctx)
			a.run.End()
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, a := range all {
		a.show(a.now(api.SpanStoring, time.Now(), nil))
	}
	unstored, err := s.flush(ctx, lost)
	if err != nil {
		return nil, err
	}
	share := time.Since(now).Seconds() / float64(len(all))
	outcomes := make([]*outcome, len(all))
	for i, a := range all {
		r, out := a.result(cmp.Or(unstored, a.spoiled), a.until)
		r.Elapsed, out.Elapsed = share, share
		outcomes[i] = &outcome{r, out, a.encodeSeconds(), r.Spoiled != "" && out.Failed > 0 && float64(out.Failed) > tolerableErrors*float64(out.Turns+out.Failed)}
	}
	return outcomes, nil
}

// flush waits for the store to have what was measured. It says how many turns could not be
// stored, beyond those lost before; empty: none.
func (s *sweep) flush(ctx context.Context, lost int64) (unstored string, err error) {
	stored, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	if err := s.desk.opts.Store.Flush(stored); err != nil && ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if n := s.desk.opts.Store.LostTurns() - lost; n > 0 {
		return fmt.Sprintf("%d turns could not be stored", n), nil
	}
	return "", nil
}

// errOneLane pauses what takes two lanes where there is one.
var errOneLane = errors.New("both modes run at the same time, each on a lane, but there is only one lane now: set twin.target.url again and resume, or cancel it")

// laneOf is the lane that the span at a place of those that run at the same time is on. The first
// is on the main lane, so that the modes change lanes as the order of pairs does, unless a change of
// mode is dear: then each lane keeps its own.
func (s *sweep) laneOf(place int, span proof.Span) *lane.Lane {
	twin := s.desk.opts.Twin
	switch {
	case !s.together():
		return s.lane
	case s.desk.fixed() && s.request().Modes[0] != s.request().Modes[1]:
		if modeIn(s.lane.State()) != span.Mode {
			return twin
		}
		return s.lane
	case place == 1:
		return twin
	}
	return s.lane
}

// trial says whether it is one.
func (s *sweep) trial() bool { return s.request().Kind == api.SweepTrial }

func (s *sweep) together() bool {
	t := s.request().Together
	return t != nil && *t
}

// watch follows the span second by second until it has counted for long enough, or is
// spoiled, or ctx ends. until is the second in which that was.
func (a *attempt) watch(ctx context.Context) (spoiled string, until float64) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	a.progress = time.Now() // the switch may have taken long
	for second := math.Ceil(a.record.seconds(time.Now())); ; second++ {
		timer.Reset(time.Until(a.record.at(second)))
		select {
		case <-ctx.Done():
			return "", second
		case <-a.run.Ended():
			return "the workload was stopped", second
		case <-timer.C:
		}
		if late := math.Floor(a.record.seconds(time.Now())); late > second {
			second = late // the machine slept, or was very busy
		}
		if spoiled = a.hopeless(); spoiled != "" || a.silent || a.tick(second) {
			return spoiled, second
		}
	}
}

// tick does what a second asks for, and says whether it is the last one.
func (a *attempt) tick(second float64) bool {
	now := a.record.at(second)
	actual := a.run.Actual()
	if a.full == 0 && actual >= a.span.Concurrency {
		a.full = second
	}
	if a.from == 0 && !a.warmedUp(second) {
		var of *float64
		if a.span.WarmUpSeconds > 0 {
			of = &a.span.WarmUpSeconds
		}
		a.show(a.now(api.SpanWarmingUp, cmp.Or(a.run.Began, now), of))
		return false
	}
	if a.from == 0 {
		a.from = second
	}
	ok, least := a.least(a.from, second)
	if second-a.from >= least {
		return true
	}
	a.actual += float64(actual)
	cluster := a.lane.Cluster()
	a.seconds = append(a.seconds, look(now, cluster))
	a.engines.Add(cluster.Engines)
	of := a.span.Seconds
	if !math.IsNaN(least) {
		of = least
	}
	n := a.now(api.SpanCounting, a.record.at(a.from), &of)
	n.Turns = ok
	a.show(n)
	return false
}

// warmedUp says whether the span begins to count.
func (a *attempt) warmedUp(second float64) bool {
	if a.record.warmingUp() > 0 || a.span.WarmUpSeconds > 0 && (a.full == 0 || second-a.full < a.span.WarmUpSeconds) {
		return false
	}
	if a.warm == 0 {
		a.warm = second
	}
	if a.span.RunIn == 0 {
		return true
	}
	_, least := a.least(a.warm, second)
	return second-a.warm >= a.span.RunIn*least
}

// least is for how many seconds the span counts at least, as the turns since a second have it, and how many of those
// ended well; NaN where that is not known yet. In a trial a target that fails all turns does not make it longer.
func (a *attempt) least(from, second float64) (ok int, least float64) {
	ok, failed, latency := a.record.counted(from, second)
	if ok == 0 && failed > 0 && a.sweep.trial() {
		latency = 0
	}
	return ok, a.span.Least(latency)
}

// hopeless says why nothing will come of a span; empty: something may.
func (a *attempt) hopeless() string {
	ok, failed, words := a.record.total()
	if ok+failed > a.ended {
		a.ended, a.progress = ok+failed, time.Now()
	}
	switch {
	case !a.run.Undisturbed():
		return "the mode or the settings changed while it ran"
	case a.sweep.trial():
		a.silent = time.Since(a.progress) > hopelessSilence
	case failed >= hopelessFailures && failed > ok:
		return fmt.Sprintf("%d of %d turns failed, the latest with %s", failed, ok+failed, words)
	case time.Since(a.progress) > hopelessSilence:
		return fmt.Sprintf("no turn has ended for %.0f minutes", hopelessSilence.Minutes())
	}
	return ""
}

// now is the span as it is shown while it runs; since is when the phase began.
func (a *attempt) now(p api.SweepPhase, since time.Time, of *float64) api.SweepNow {
	n := api.SweepNow{
		Number: a.span.Number, Attempt: a.span.Attempt, Arm: string(a.span.Arm), Mode: a.span.Mode, Concurrency: a.span.Concurrency,
		Phase: p, Seconds: max(0, time.Since(since).Seconds()), Of: of, Lane: a.laneName(),
		Elapsed: max(0, time.Since(a.began).Seconds()),
	}
	if p == api.SpanWarmingUp {
		n.WarmingUp = a.record.warmingUp()
	}
	return n
}

// laneName is that of the lane, where spans run on several.
func (a *attempt) laneName() string {
	if !a.sweep.together() {
		return ""
	}
	return a.lane.Name()
}

// show shows the span, once a second. It takes no lock but the lane's.
func (a *attempt) show(n api.SweepNow) {
	a.sweep.now[a.place].Store(&n)
	a.lane.Changed()
}

// result is what became of the span; why it does not count is in the first of them alone, since the machine has a say.
func (a *attempt) result(spoiled string, until float64) (proof.Result, api.SweepSpan) {
	r := proof.Result{Number: a.span.Number, Elapsed: a.record.seconds(time.Now())}
	out := api.SweepSpan{
		Number: a.span.Number, Attempt: a.span.Attempt, Arm: string(a.span.Arm), Lane: a.laneName(), Mode: a.span.Mode, Concurrency: a.span.Concurrency,
		Target: a.lane.Address(), Router: a.lane.Router(), Seed: a.span.Seed, Step: a.run.Step, Started: a.run.Began.UTC(), CountedFrom: a.record.at(a.from), Until: a.record.at(until),
		Elapsed: r.Elapsed, Cold: "nonce",
		FirstTurns: a.record.coldness(cmp.Or(a.sweep.doc.Sweep.Workload.OpeningTokens, leastOpening)),
	}
	if a.run.Emptied {
		out.Cold = "emptied"
	}
	if a.silent && a.from == 0 {
		a.from = min(until-1, math.Ceil(a.record.seconds(a.run.Began)))
		out.CountedFrom = a.record.at(a.from)
	}
	if a.from == 0 { // it never counted
		r.Spoiled = cmp.Or(spoiled, "it never counted")
		out.CountedFrom = out.Until
		_, out.Failed, _ = a.record.total()
		return r, out
	}
	r.Recording = a.record.recording(a.from, until)
	r.Short = a.sweep.trial()
	if a.silent {
		r.GiveUp()
	}
	out.Turns, out.Failed, _ = a.record.counted(a.from, until)
	if len(a.seconds) > 0 {
		out.Causes = sum(a.seconds)
		out.Causes.EngineTTFT = a.record.serverTTFT(a.from, until)
	}
	row, err := r.Row(a.snapshots(), *a.sweep.request().SLO)
	if refused := (*api.FieldError)(nil); errors.As(err, &refused) && !a.sweep.trial() {
		spoiled = cmp.Or(spoiled, fmt.Sprintf("the measured part is invalid: %s is %s; required: %s", refused.Field, refused.Value, refused.Allowed))
	}
	a.engines.Fill(&row, true)
	row.Concurrency, row.Mode, row.Speculation, row.Measured = a.span.Concurrency, a.span.Mode.Mode, a.span.Mode.Speculation, &out.Until
	if ended := out.Turns + out.Failed; ended > 0 {
		row.ErrorRatio = new(float64(out.Failed) / float64(ended))
	}
	if lag, known := a.sweep.desk.lag(out.CountedFrom, out.Until); known {
		lag.AllowRow(&row, r.TokensPerTurn())
		r.Errors = map[proof.Metric]float64{proof.MeanTTFT: lag.MeanError(row.N)}
		for m, e := range map[proof.Metric]*float64{
			proof.TTFT50: row.Errors.TTFT.P50, proof.TTFT95: row.Errors.TTFT.P95, proof.LaterTTFT95: row.Errors.TTFT.P95,
			proof.TPOT95: row.Errors.TPOT.P95,
		} {
			if e != nil {
				r.Errors[m] = *e
			}
		}
	}
	if n := float64(len(a.seconds)); n > 0 {
		out.Actual = new(a.actual / n)
	}
	r.Spoiled = cmp.Or(spoiled, a.judge(&out, &row))
	if err == nil {
		out.Row = &row
	}
	return r, out
}

func (a *attempt) snapshots() int {
	if n := a.sweep.request().Snapshots; n != nil {
		return *n
	}
	return 0
}

// judge says why what was measured does not count; empty: it does. In a trial nothing that depends on how fast or how
// well the target answered has a say.
func (a *attempt) judge(s *api.SweepSpan, row *api.BaselineRow) string {
	if reason := warm(s.FirstTurns, s.Cold); reason != "" || a.sweep.trial() {
		return reason
	}
	if all := s.Turns + s.Failed; float64(s.Failed) > tolerableErrors*float64(all) {
		_, _, words := a.record.total()
		return fmt.Sprintf("%d of %d turns failed, the latest with %s", s.Failed, all, words)
	}
	if p50 := row.TTFT.P50; row.Errors != nil && p50 != nil && *row.Errors.TTFT.P95 > tolerableClient**p50 {
		return fmt.Sprintf("TTFT cannot be judged: up to %.1f ms of its %.1f ms (p50) may be the load generator's own; run fewer conversations, give it more cores, or add members",
			1000**row.Errors.TTFT.P95, 1000**p50)
	}
	if s.Actual != nil && math.Abs(*s.Actual-float64(a.span.Concurrency)) > tolerableMiss*float64(a.span.Concurrency) {
		return fmt.Sprintf("%.0f conversations were in progress on average, not %d; raise start_rate or target_rps", *s.Actual, a.span.Concurrency)
	}
	return ""
}

// encodeSeconds is what the store keeps of the span's seconds.
func (a *attempt) encodeSeconds() []byte {
	data, err := json.Marshal(spanSeconds{Number: a.span.Number, Attempt: a.span.Attempt, Mode: a.span.Mode, Concurrency: a.span.Concurrency, Seconds: a.seconds})
	if err != nil { // of numbers and names
		return nil
	}
	return data
}
