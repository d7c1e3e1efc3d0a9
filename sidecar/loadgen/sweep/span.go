package sweep

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/stats"
)

// Limits beyond which a span of a sweep of levels or a capacity search does not count.
const (
	tolerableErrors = .05 // share of the turns that ended
	tolerableMiss   = .10 // of the concurrency
)

// Limits beyond which a span is abandoned before its end. In a trial an abandoned span counts as far as the target is
// the cause.
const (
	abandonFailures = 20 // failed turns, if they outnumber the successful ones
	abandonSilence  = 5 * time.Minute
)

const flushWithin = 30 * time.Second

// errSwitch reports that a span could not begin, since the cluster did not reach its mode.
type errSwitch struct{ error }

// attempt is one run of a span.
type attempt struct {
	sweep    *sweep
	lane     *lane.Lane
	place    int // index among the spans that run at the same time
	began    time.Time
	span     proof.Span
	record   *recorder
	run      *lane.SpanRun
	begun    float64 // second in which the conversations that began it had ended; 0: not yet
	look     float64 // second of the next look at the hit rate
	settled  float64 // second in which its hit rate no longer rose; 0: not yet
	warm     float64 // second in which its warm-up ended; 0: not yet
	from     float64 // second from which it counts; 0: not yet
	full     float64 // second from which it is at its level; 0: not yet
	queue    queue   // at a rate
	seconds  []second
	engines  stats.EngineRecord
	actual   float64        // conversations in progress, summed over the counted seconds
	limits   map[string]int // counted seconds by the limit that held the load down
	progress time.Time      // when the number of ended turns last changed
	ended    int            // ended turns at that time
	rises    bool           // its hit rate still rose when it began to count
	silent   bool           // it was abandoned, since the target answered no turn
	unserved bool           // it does not count in a trial, since its target did not serve
	shared   []string       // workers that also serve the lane beside it
	slot     bool           // it is a slot of a switchback, whose counted part is from from to until
	elapsed  float64        // seconds of a slot with the change before it
	step     int64          // that the span began
	start    time.Time      // of the span's conversations, or of the slot

	spoiled    string // set by watch
	overloaded string // why its target does not keep up with its rate; "": it does
	until      float64
}

// outcome is the result of a span.
type outcome struct {
	result  proof.Result
	span    api.SweepSpan
	seconds []byte // in the form of the store
	failing bool   // it does not count because of the target's failures
}

// measure runs spans to their ends. Several run at the same time, each on its own lane. An error is
// the cause of ctx's end, or an errSwitch; then there are no results.
func (s *sweep) measure(ctx context.Context, lease *lane.Lease, spans []proof.Span) ([]*outcome, error) {
	if len(spans) > 1 && s.desk.opts.Twin == nil {
		return nil, errOneLane
	}
	now := time.Now()
	all, begin := s.attempts(now, spans)
	switching := func(message string) {
		for _, a := range all {
			n := a.state(api.SpanSwitching, now, nil)
			n.Message = message
			a.publish(n)
		}
	}
	switching("")
	lost := s.desk.opts.Store.LostTurns()
	runs, err := lease.Begin(ctx, s.by(), begin, switching)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var arms []string
		for _, span := range spans {
			arms = append(arms, span.Mode.Name())
		}
		return nil, errSwitch{fmt.Errorf("the change to %s failed: %w", strings.Join(arms, " and "), err)}
	}
	var wg sync.WaitGroup
	for i, a := range all {
		a.run, a.step, a.start = runs[i], runs[i].Step, runs[i].Began
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
		a.publish(a.state(api.SpanStoring, time.Now(), nil))
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
		failing := r.Spoiled != "" && (a.unserved || !s.trial() && out.Failed > 0 &&
			float64(out.Failed) > tolerableErrors*float64(out.Turns+out.Failed))
		outcomes[i] = &outcome{r, out, a.encodeSeconds(), failing}
	}
	return outcomes, nil
}

// attempts makes an attempt at each span, with the settings for its lane.
func (s *sweep) attempts(now time.Time, spans []proof.Span) (all []*attempt, begin []lane.SpanOn) {
	for i, span := range spans {
		l := s.laneOf(i, span)
		record := newRecorder(now, span.WarmUp, l.Opening)
		all = append(all, &attempt{sweep: s, lane: l, place: i, began: now, span: span, record: record})
		begin = append(begin, lane.SpanOn{
			Lane: l, Observer: record,
			Set: lane.SpanSettings{Mode: span.Mode, Level: span.Level, Seed: span.Seed, RampedStart: span.Midway},
		})
	}
	return all, begin
}

// flush waits for the store to have all turns. It describes the turns that could not be stored,
// beyond those lost before; empty: none.
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

// errOneLane pauses a sweep that requires two lanes where there is one.
var errOneLane = errors.New("both arms run at the same time, each on a lane, but there is only one lane now: set " +
	"twin.target.url again and resume, or cancel it")

// laneOf returns the lane of the span with an index among those that run at the same time. The first
// is on the main lane, so that the modes change lanes with the order of pairs. Where a change of mode
// is costly, each lane keeps its mode.
func (s *sweep) laneOf(place int, span proof.Span) *lane.Lane {
	twin := s.desk.opts.Twin
	switch {
	case !s.together():
		return s.lane
	case s.desk.lanesFixed() && s.request().Modes[0] != s.request().Modes[1]:
		if s.lane.State().InMode() != span.Mode {
			return twin
		}
		return s.lane
	case place == 1:
		return twin
	}
	return s.lane
}

// trial reports whether the sweep is a trial.
func (s *sweep) trial() bool { return s.request().Kind == api.SweepTrial }

func (s *sweep) together() bool {
	t := s.request().Together
	return t != nil && *t
}

// watch follows the span second by second until it has counted for long enough, does not count any
// more, or ctx ends. until is the second in which it stops.
func (a *attempt) watch(ctx context.Context) (spoiled string, until float64) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	a.progress = time.Now() // excludes the time of the switch
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
			second = late // the machine was suspended or overloaded
		}
		if spoiled = a.abandonReason(); spoiled != "" || a.silent || a.overloads(second, false) {
			return spoiled, second
		}
		if a.until == 0 && a.tick(second) {
			a.until = second
			a.overloads(second, true)
		}
		if a.until > 0 && !a.awaits(second) {
			return "", a.until
		}
	}
}

// tick performs the work of a second, and reports whether it is the last one.
func (a *attempt) tick(second float64) bool {
	now := a.record.at(second)
	reached := a.run.Pace().Actual >= a.span.Level.Conversations() &&
		(a.span.Level.Kind != api.Rate || a.record.warmingUp() == 0)
	if a.full == 0 && reached {
		a.full = second
	}
	if a.from == 0 && !a.warmedUp(second) {
		var duration *float64
		if a.span.WarmUpSeconds > 0 {
			duration = &a.span.WarmUpSeconds
		}
		a.publish(a.state(api.SpanWarmingUp, cmp.Or(a.run.Began, now), duration))
		return false
	}
	if a.from == 0 {
		a.from = second
	}
	ok, required := a.requiredSeconds(a.from, second)
	if second-a.from >= required {
		return true
	}
	a.count(now, ok, required)
	return false
}

// count records a counted second.
func (a *attempt) count(now time.Time, ok int, required float64) {
	if shared := a.lane.SharedWorkers(); a.sweep.together() && len(shared) > len(a.shared) {
		a.shared = shared
	}
	a.actual += float64(a.run.Pace().Actual)
	if limit := a.run.Limit(); limit != "" {
		if a.limits == nil {
			a.limits = map[string]int{}
		}
		a.limits[limit]++
	}
	cluster := a.lane.Cluster()
	a.seconds = append(a.seconds, readCluster(now, cluster))
	a.engines.Add(cluster.Engines)
	duration := a.span.Seconds
	if !math.IsNaN(required) {
		duration = required
	}
	n := a.state(api.SpanCounting, a.record.at(a.from), &duration)
	n.Turns = ok
	a.publish(n)
}

// warmedUp reports whether the span begins to count.
func (a *attempt) warmedUp(second float64) bool {
	reached := a.full > 0 && second-a.full >= a.span.WarmUpSeconds
	if a.record.warmingUp() > 0 || a.span.WarmUpSeconds > 0 && !reached {
		return false
	}
	if a.warm == 0 {
		if a.begun == 0 {
			a.begun = second
		}
		if a.settles(second) {
			return false
		}
		if a.settled == 0 {
			a.settled = second
			a.span.Settled(second - a.begun)
		}
		if second-a.record.seconds(a.start) < a.span.From {
			return false
		}
		a.warm = second
	}
	if a.span.RunIn == 0 {
		return true
	}
	_, required := a.requiredSeconds(a.warm, second)
	return second-a.warm >= a.span.RunIn*required
}

// settles reports whether the span waits for its run-in. Where that is measured, it ends once the hit rate, looked at
// once a round of a median latency, no longer rises. A server that reports no cached tokens ends it at once.
func (a *attempt) settles(second float64) bool {
	waited := second - a.begun
	if waited < a.span.Settle || !a.span.Settles {
		return waited < a.span.Settle
	}
	if second < a.look {
		return true
	}
	_, _, round := a.record.counted(0, second)
	a.look = second + round
	if !a.record.hitRateRises(second, round) {
		return false
	}
	a.rises = waited >= a.sweep.longestRunIn(a.begun, round)
	return !a.rises
}

// longestRunIn returns how long a span of a trial may wait for its hit rate, see [proof.Trial.LongestRunIn].
func (s *sweep) longestRunIn(before, latency float64) float64 {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	return s.machine.(*proof.Trial).LongestRunIn(before, latency)
}

// requiredSeconds returns how long the span must count, by the turns since a second, and how many of those succeeded.
// The time is NaN while it is unknown. In a trial a target that fails all turns does not extend it.
func (a *attempt) requiredSeconds(from, second float64) (ok int, required float64) {
	ok, failed, latency := a.record.counted(from, second)
	if ok == 0 && failed > 0 && a.sweep.trial() {
		latency = 0
	}
	return ok, a.span.Least(latency)
}

// abandonReason returns the reason to abandon the span; "" without one.
func (a *attempt) abandonReason() string {
	ok, failed, reason := a.record.total()
	if ok+failed > a.ended {
		a.ended = ok + failed
		a.progress = time.Now()
	}
	switch {
	case !a.run.Undisturbed():
		return "the mode or the settings changed while it ran"
	case a.sweep.trial():
		a.silent = time.Since(a.progress) > abandonSilence
	case failed >= abandonFailures && failed > ok:
		return fmt.Sprintf("%d of %d turns failed, the latest with %s", failed, ok+failed, reason)
	case time.Since(a.progress) > abandonSilence:
		return fmt.Sprintf("no turn has ended for %.0f minutes", abandonSilence.Minutes())
	}
	return ""
}

// state returns the state of the running span; since is the start of the phase, and duration its
// expected length in seconds, nil if unknown.
func (a *attempt) state(p api.SweepPhase, since time.Time, duration *float64) api.SweepNow {
	n := api.SweepNow{
		Number: a.span.Number, Attempt: a.span.Attempt, Arm: string(a.span.Arm), Mode: a.span.Mode,
		Level: a.span.Level,
		Phase: p, Seconds: max(0, time.Since(since).Seconds()), Of: duration, Lane: a.laneName(),
		Elapsed: max(0, time.Since(a.began).Seconds()),
	}
	if p == api.SpanWarmingUp {
		n.WarmingUp = a.record.warmingUp()
		if a.begun > 0 && a.settled == 0 && a.span.Settles {
			n.Message = "waiting until the KV cache hit rate no longer rises"
		}
	}
	return n
}

// laneName returns the lane's name where spans run on several lanes.
func (a *attempt) laneName() string {
	if !a.sweep.together() {
		return ""
	}
	return a.lane.Name()
}

// publish shows the state of the span. It takes only the lane's lock.
func (a *attempt) publish(n api.SweepNow) {
	a.sweep.now[a.place].Store(&n)
	a.lane.Changed()
}

// warnings returns what went wrong in the streams of the span, and what held its load down.
func (a *attempt) warnings(r *proof.Recording, lag *stats.Lag) (all []string) {
	if text := burstWarning(r, lag); text != "" {
		all = append(all, text)
	}
	if a.rises {
		all = append(all, "the KV cache hit rate still rose when it began to count; allow a longer trial (max_time)")
	}
	for limit, n := range a.limits {
		if 2*n > len(a.seconds) {
			all = append(all, limit+" held the load down")
		}
	}
	return all
}

// named sets the level, the arm and the end of the measurement of a span's row, and the share of its failed turns.
func (a *attempt) named(row *api.BaselineRow, out *api.SweepSpan) {
	row.Level = a.span.Level
	row.Arm, row.Mode, row.Speculation = a.span.Mode.Arm, a.span.Mode.Mode, a.span.Mode.Speculation
	row.Measured = &out.Until
	if ended := out.Turns + out.Failed; ended > 0 {
		row.ErrorRatio = new(float64(out.Failed) / float64(ended))
	}
}

// bySent reports whether turns count by when they were sent, or to be sent.
func (a *attempt) bySent() bool { return a.slot || a.open() && a.overloaded == "" }

// recording returns what the figures of the span rest on.
func (a *attempt) recording(until float64) (r proof.Recording) {
	if a.bySent() {
		r = a.record.slot(a.from, until, a.record.seconds(time.Now()))
	} else {
		r = a.record.recording(a.from, until)
	}
	r.Basis = a.engines.CostBasis(a.sweep.doc.Sweep.Deployment)
	return r
}

// counted returns the numbers of successful and failed turns of the span's figures.
func (a *attempt) counted(r *proof.Recording) (ok, failed int) {
	if !a.bySent() {
		ok, failed, _ = a.record.counted(r.CountedFrom, r.Until)
		return ok, failed
	}
	for i := range r.Turns {
		switch t := &r.Turns[i]; {
		case t.Failed():
			failed++
		case t.OK():
			ok++
		}
	}
	return ok, failed
}

// serves reports whether the arm of the span serves.
func (a *attempt) serves() bool {
	if a.bySent() {
		return a.record.serves(a.from, a.until, math.Inf(1))
	}
	return a.record.serves(a.from, math.Inf(1), a.until)
}

// served returns [recorder.servedBy] of the span, with its warm-up.
func (a *attempt) served() (turns, uncached map[string]int) {
	if a.slot {
		return a.record.servedBy(a.from, a.until)
	}
	return a.record.servedBy(math.Inf(-1), math.Inf(1))
}

// caches describes the caches at the beginning of the span.
func (a *attempt) caches() (cold string, firsts *api.SweepFirstTurns) {
	switch {
	case a.slot:
		return "warm", nil
	case a.run.Emptied:
		cold = "emptied"
	default:
		cold = "nonce"
	}
	if a.lane.CachedDoubted() {
		return cold, nil
	}
	return cold, a.record.coldness(a.sweep.doc.Sweep.Workload.OpeningTokens)
}

// timed returns how long the span and its parts took, and what it shows of a queue.
func (a *attempt) timed(until float64) proof.Result {
	r := proof.Result{
		Elapsed: a.record.seconds(time.Now()), RunIn: a.settled - a.begun, Overloaded: a.overloaded != "",
	}
	if a.open() {
		r.Before, r.Growth = a.warm-a.record.seconds(a.start), a.growth(until)
	}
	return r
}

// result computes the results of the span. The reason why it does not count is in the first one only, since the machine
// has the final decision.
func (a *attempt) result(spoiled string, until float64) (proof.Result, api.SweepSpan) {
	r := a.timed(until)
	out := api.SweepSpan{
		Number: a.span.Number, Attempt: a.span.Attempt, Arm: string(a.span.Arm), Lane: a.laneName(), Mode: a.span.Mode,
		Level: a.span.Level, Target: a.lane.Address(), Router: a.lane.Router(), Seed: a.span.Seed,
		Step: a.step, Started: a.start.UTC(), CountedFrom: a.record.at(a.from), Until: a.record.at(until),
		Elapsed: r.Elapsed, Warnings: a.run.Warnings, SharedWorkers: a.shared,
		Overloaded: a.overloaded,
	}
	out.Cold, out.FirstTurns = a.caches()
	if a.silent && a.from == 0 || a.overloaded != "" && (a.from == 0 || a.from >= until) {
		a.from = min(until-1, math.Ceil(a.record.seconds(a.start)))
		out.CountedFrom = a.record.at(a.from)
	}
	if a.from == 0 {
		r.Spoiled = cmp.Or(spoiled, "it never counted")
		out.CountedFrom = out.Until
		_, out.Failed, _ = a.record.total()
		return r, out
	}
	r.Recording = a.recording(until)
	r.Short = a.sweep.trial() || a.overloaded != ""
	if a.silent {
		r.GiveUp()
	}
	out.Turns, out.Failed = a.counted(&r.Recording)
	if len(a.seconds) > 0 {
		out.Causes = sum(a.seconds)
		out.Causes.EngineTTFT = a.record.serverTTFT(a.from, until)
	}
	turns, uncached := a.served()
	addWorkers(&out, turns, uncached, a.lane.Cluster())
	row, err := r.Row(a.snapshots(), *a.sweep.request().SLO)
	if refused := (*api.FieldError)(nil); errors.As(err, &refused) && !a.sweep.trial() {
		spoiled = cmp.Or(spoiled, fmt.Sprintf("the measured part is invalid: %s is %s; required: %s",
			refused.Field, refused.Value, refused.Allowed))
	}
	a.engines.Fill(&row, true, a.sweep.doc.Sweep.Deployment)
	if a.overloaded != "" {
		row.AtLeast = []string{"latency_p50", "latency_p95", "ttft_p50", "ttft_p95"} // they grow for as long as it runs
	}
	a.named(&row, &out)
	lag := a.sweep.desk.lag(out.CountedFrom, out.Until)
	if lag != nil {
		lag.AllowRow(&row, r.TokensPerTurn())
		r.Errors = lagErrors(lag, &row)
	}
	if n := float64(len(a.seconds)); n > 0 {
		out.Actual = new(a.actual / n)
	}
	out.Warnings = append(slices.Clone(out.Warnings), a.warnings(&r.Recording, lag)...)
	if r.Spoiled = spoiled; spoiled == "" {
		r.Spoiled = a.invalidReason(&out, &row)
	}
	if err == nil {
		out.Row = &row
	}
	return r, out
}

// lagErrors returns the error of each metric that late time stamps can cause.
func lagErrors(lag *stats.Lag, row *api.BaselineRow) map[proof.Metric]float64 {
	errs := map[proof.Metric]float64{proof.MeanTTFT: lag.MeanError(row.N)}
	if row.Errors == nil { // no turn was answered
		return errs
	}
	for m, e := range map[proof.Metric]*float64{
		proof.TTFT50: row.Errors.TTFT.P50, proof.TTFT95: row.Errors.TTFT.P95, proof.LaterTTFT95: row.Errors.TTFT.P95,
		proof.TPOT95: row.Errors.TPOT.P95,
	} {
		if e != nil {
			errs[m] = *e
		}
	}
	return errs
}

func (a *attempt) snapshots() int {
	if n := a.sweep.request().Snapshots; n != nil && a.overloaded == "" {
		return *n
	}
	return 0
}

// invalidReason returns the reason why the measurement does not count; "" where it counts. In a trial, the speed and
// the failures of a target that serves are no reasons.
func (a *attempt) invalidReason(s *api.SweepSpan, row *api.BaselineRow) string {
	if a.unserved = a.sweep.trial() && !a.serves(); a.unserved {
		_, _, reason := a.record.total()
		return fmt.Sprintf("%s does not serve: %d of %d turns failed, the latest with %s", s.Target, s.Failed,
			s.Turns+s.Failed, reason)
	}
	if reason := warmReason(s.FirstTurns, s.Cold); reason != "" || a.sweep.trial() || a.overloaded != "" {
		return reason
	}
	if all := s.Turns + s.Failed; float64(s.Failed) > tolerableErrors*float64(all) {
		_, _, reason := a.record.total()
		return fmt.Sprintf("%d of %d turns failed, the latest with %s", s.Failed, all, reason)
	}
	if reason := lane.Unjudgeable(api.FigureOf("ttft"), row); reason != "" {
		return reason
	}
	target := a.span.Level.Value
	if s.Actual != nil && !a.open() && math.Abs(*s.Actual-target) > tolerableMiss*target {
		return fmt.Sprintf("%.0f conversations were in progress on average, not %v; raise start_rate or target_rps",
			*s.Actual, a.span.Level)
	}
	return ""
}

// encodeSeconds returns the span's seconds in the form of the store.
func (a *attempt) encodeSeconds() []byte {
	data, err := json.Marshal(spanSeconds{
		Number: a.span.Number, Attempt: a.span.Attempt, Mode: a.span.Mode, Level: a.span.Level,
		Seconds: a.seconds,
	})
	if err != nil { // cannot happen: numbers and names
		return nil
	}
	return data
}
