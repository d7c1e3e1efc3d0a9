package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/report"
)

// byCommand is the actor of requests from the command line.
const byCommand = "command line"

// undecided is why a sweep that has ended, or is paused, has no answer. It includes what to do.
type undecided struct{ reason string }

func (e undecided) Error() string { return e.reason }

// sweeps holds the sweeps of a load generator. [kvbooth/sidecar/loadgen/sweep.Desk] implements it.
type sweeps interface {
	Sweeps(ctx context.Context) api.SweepList
	StartSweep(ctx context.Context, by, lane string, r api.SweepRequest) (api.Sweep, error)
	SweepOutlook(ctx context.Context, lane string, r api.SweepRequest) (api.SweepOutlook, error)
	Sweep(ctx context.Context, id string) (api.Sweep, error)
	PatchSweep(ctx context.Context, by, id string, p api.SweepPatch) (api.Sweep, error)
	WriteSweepReport(ctx context.Context, w io.Writer, id string, f api.ReportFormat) error
}

// question is a sweep that the command line requests, from its beginning to its answer.
type question struct {
	asked   *config.Sweep
	arms    []cluster.Arm // of the configuration
	target  string        // its URL
	dir     string        // of the data
	outputs report.Outputs
	desk    sweeps
	ready   func() error // why the target cannot serve; nil: it can
	state   func() api.State
	say     func(text string) // writes a line of progress

	kept    string                 // the unfinished sweep to resume; empty: none
	id      atomic.Pointer[string] // nil: not begun
	waiting atomic.Pointer[string] // why it has not begun
}

// newQuestion looks for an unfinished sweep in the data directory before anything is resumed. It returns an error if
// one of another question is unfinished.
func (g *generator) newQuestion(ctx context.Context, conf *config.Config) (*question, error) {
	q := &question{
		asked: conf.Sweep, arms: conf.Mode.Served, target: conf.Target.URL, dir: conf.DataDir, desk: g.sweeps,
		ready: g.view.Ready, state: g.lane.State,
		say: func(text string) { g.log.Info(fit(text, 0)) },
	}
	if err := g.files.check(q.asked.Flag("levels"), most(q.asked.Request.Levels)); err != nil {
		return nil, err
	}
	if path := q.asked.Like; path != "" {
		like, err := readLike(path)
		if err != nil {
			return nil, err
		}
		q.asked.Request.Like = like
	}
	return q, q.lookBack(ctx)
}

// checkUnfinished refuses a run with an end where an earlier process left a sweep unfinished, which would resume and
// change the load of the run. Other runs pause a sweep of another target; the command that began it resumes it.
func (g *generator) checkUnfinished(ctx context.Context, conf *config.Config) error {
	for _, s := range g.sweeps.Sweeps(ctx).Sweeps {
		if s.State != api.SweepRunning {
			continue
		}
		v, err := g.sweeps.Sweep(ctx, s.ID)
		if err != nil {
			return err
		}
		if conf.Ends() {
			return fmt.Errorf("data_dir: %s has an unfinished %s of %s, which would change the load of this run: finish it "+
				"with loadgen %s, cancel it on the page Benchmarks, or choose another directory with --data-dir",
				conf.DataDir, s.Request.Kind.Noun(), v.Target.URL, s.Request.Kind)
		}
		if ofTarget(v.Target.URL, conf.Target.URL, conf.Mode.Served) {
			continue
		}
		if _, err := g.sweeps.PatchSweep(ctx, byCommand, s.ID, api.SweepPatch{State: api.SweepPaused}); err != nil {
			return err
		}
		g.log.Warn("an unfinished "+s.Request.Kind.Noun()+" in the data directory stays paused: finish it with loadgen "+
			string(s.Request.Kind), "data_dir", conf.DataDir, "target", v.Target.URL)
	}
	return nil
}

// ofTarget reports whether a sweep's target is the present one, or that of an arm.
func ofTarget(was, target string, arms []cluster.Arm) bool {
	urls := []string{target}
	for _, a := range arms {
		urls = append(urls, a.URL)
	}
	return was == "" || slices.ContainsFunc(urls, func(text string) bool {
		u, err := url.Parse(text)
		return err == nil && api.TargetRoot(u).String() == was
	})
}

// lookBack finds the unfinished sweep to resume: the one in progress, or else the latest paused one with the same
// question. With --anew it cancels that one.
func (q *question) lookBack(ctx context.Context) error {
	for _, s := range q.desk.Sweeps(ctx).Sweeps {
		if s.State.Ended() {
			continue
		}
		field, was, is := disagreement(s.Request, q.asked.Request)
		flag := q.asked.Flag(field)
		if field == "" {
			flag, was, is = q.otherArms(ctx, s)
		}
		same := flag == ""
		switch {
		case s.State == api.SweepPaused && (!same || q.kept != ""):
		case q.asked.Anew:
			if _, err := q.desk.PatchSweep(ctx, byCommand, s.ID, api.SweepPatch{State: api.SweepCancelled}); err != nil {
				return err
			}
		case same:
			q.kept = s.ID
		default:
			return fmt.Errorf("data_dir: %s has an unfinished %s with different settings (%s is %s there, not %s): "+
				"finish it with those settings (loadgen %s), cancel it with --anew, or choose another directory with "+
				"--data-dir",
				q.dir, s.Request.Kind.Noun(), flag, q.asked.Text(field, was), q.asked.Text(field, is), s.Request.Kind)
		}
		if s.State == api.SweepRunning {
			return nil
		}
	}
	return nil
}

// most returns the largest number of conversations of some levels, at least 1.
func most(levels []api.Level) int {
	n := 1
	for _, level := range levels {
		n = max(n, level.Conversations())
	}
	return n
}

// disagreement returns the first field in which the new request differs from the earlier one, with both values; empty:
// there is none. An omitted field agrees with any value.
func disagreement(was, is api.SweepRequest) (field, before, now string) {
	was.Levels = slices.SortedFunc(slices.Values(was.Levels), api.Level.Compare)
	is.Levels = slices.SortedFunc(slices.Values(is.Levels), api.Level.Compare)
	is.Modes = slices.Clone(is.Modes)
	for i := range is.Modes {
		is.Modes[i] = is.Modes[i].Resolve(was.Modes)
		if is.Modes[i].Speculation == "" && i < len(was.Modes) {
			is.Modes[i].Speculation = was.Modes[i].Speculation
		}
	}
	a, b := reflect.ValueOf(was), reflect.ValueOf(is)
	for i := range a.NumField() {
		if b.Field(i).IsZero() || reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			continue
		}
		name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
		return name, shown(a.Field(i)), shown(b.Field(i))
	}
	return "", "", ""
}

// otherArms returns the setting in which the arms of a sweep differ from those of the configuration, with both values;
// empty: there is none.
func (q *question) otherArms(ctx context.Context, s api.SweepSummary) (setting, before, now string) {
	var names []string
	addresses := map[string]string{}
	for _, a := range q.arms {
		if a.State.Arm == "" {
			continue
		}
		names = append(names, a.State.Arm)
		if u, err := url.Parse(a.URL); err == nil {
			addresses[a.State.Arm] = api.TargetRoot(u).String()
		}
	}
	for _, m := range s.Request.Modes {
		if (m.Arm != "" || len(names) > 0) && !slices.Contains(names, m.Arm) {
			return "arms", shown(reflect.ValueOf(s.Request.Modes)), cmp.Or(strings.Join(names, ","), "none")
		}
	}
	v, err := q.desk.Sweep(ctx, s.ID)
	if err != nil {
		return "", "", "" // deleted meanwhile
	}
	if q.target != "" && !ofTarget(v.Target.URL, q.target, q.arms) {
		return "target.url", v.Target.URL, q.target
	}
	for _, span := range v.Spans {
		if is := addresses[span.Mode.Arm]; is != "" && span.Target != "" && is != span.Target {
			return "arms: url of " + span.Mode.Arm, span.Target, is
		}
	}
	return "", "", ""
}

// shown formats a value of a request for a sentence.
func shown(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "not set"
		}
		v = v.Elem()
	}
	switch v := v.Interface().(type) {
	case []api.ModeState:
		var all []string
		for _, m := range v {
			all = append(all, m.Text())
		}
		return strings.Join(all, ",")
	case api.TrialLike:
		return "the report of trial " + v.ID
	case api.SLO:
		return fmt.Sprintf("TTFT %g s and TPOT %g s", v.TTFT, v.TPOT)
	case []api.Level:
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ","), "[]")
	default:
		return fmt.Sprint(v)
	}
}

// run serves until the question is answered, or ctx ends, and prints the result. cancel ends work, the context of
// everything that serves and measures; over is called before.
func (q *question) run(ctx, work context.Context, cancel context.CancelFunc, serve func() error, over func(),
	stdout io.Writer,
) error {
	return answered(ctx, work, cancel, serve, over, stdout, q.follow)
}

// answered serves until follow has written an answer, or ctx ends, and prints the answer. The other parameters are
// those of run.
func answered(ctx, work context.Context, cancel context.CancelFunc, serve func() error, over func(),
	stdout io.Writer, follow func(ctx context.Context, to io.Writer) error,
) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	context.AfterFunc(work, stop) // a failure of the API ends the run
	var wg sync.WaitGroup
	var text bytes.Buffer
	var answer error
	wg.Go(func() {
		defer cancel()
		answer = follow(ctx, &text)
		over()
	})
	served := serve()
	wg.Wait()
	if _, err := text.WriteTo(stdout); err != nil || served != nil {
		return errors.Join(served, err, answer)
	}
	return answer
}

// follow requests the sweep, waits for the answer and writes it. The error is nil only for an answer.
func (q *question) follow(ctx context.Context, to io.Writer) error {
	id, err := q.begin(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		return notStarted{q.asked.Named(err)}
	case err != nil:
		reason := "target not ready"
		if w := q.waiting.Load(); w != nil {
			reason = *w
		}
		return undecided{fmt.Sprintf("nothing was measured: the %s had not started (%s)", q.noun(), reason)}
	}
	q.id.Store(&id)
	v, err := q.watch(ctx, id)
	if err != nil {
		return undecided{fmt.Sprintf("the %s was deleted", q.noun())}
	}
	return cmp.Or(q.write(to, v), q.verdict(v)) // a failure to write has precedence
}

// lookAgain is the interval of polling a sweep, and of attempts to begin it.
const lookAgain = 200 * time.Millisecond

// begin begins the sweep once the target serves and the lane is free, or resumes the stored one. It returns a permanent
// error, or ctx's.
func (q *question) begin(ctx context.Context) (id string, err error) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		id, err = q.tryToBegin(ctx)
		if err == nil {
			return id, nil
		}
		if !errors.Is(err, api.ErrConflict) && !errors.Is(err, api.ErrUnavailable) {
			return "", err
		}
		if ctx.Err() != nil { // err may only say so; the reason for waiting is the one before
			return "", ctx.Err()
		}
		q.wait(err)
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-tick.C:
		}
	}
}

// wait prints once for each reason why the sweep has not begun.
func (q *question) wait(why error) {
	reason := why.Error()
	for _, kind := range []error{api.ErrUnavailable, api.ErrConflict} {
		reason = strings.TrimPrefix(reason, kind.Error()+": ")
	}
	if old := q.waiting.Swap(&reason); old == nil || *old != reason {
		q.say(fmt.Sprintf("the %s waits: %s", q.noun(), reason))
	}
}

func (q *question) tryToBegin(ctx context.Context) (string, error) {
	if q.kept != "" {
		v, err := q.desk.PatchSweep(ctx, byCommand, q.kept, api.SweepPatch{State: api.SweepRunning})
		if err == nil {
			q.say(fmt.Sprintf("resuming the %s from %s: %s so far", q.noun(), v.Asked.Local().Format(time.DateTime),
				spans(v.Progress.Spans)))
			q.sayLeft(v.Progress)
		}
		return q.kept, err
	}
	if err := q.ready(); err != nil {
		return "", fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	}
	r := q.asked.Request
	r.Modes = slices.Clone(r.Modes)
	for i := range r.Modes {
		if r.Modes[i].Speculation == "" && r.Modes[i].Arm == "" {
			r.Modes[i].Speculation = q.state().Speculation
		}
	}
	outlook, err := q.desk.SweepOutlook(ctx, api.DefaultLane, r)
	if err != nil {
		return "", err
	}
	v, err := q.desk.StartSweep(ctx, byCommand, api.DefaultLane, r)
	if err != nil {
		return "", err
	}
	for _, sentence := range outlook.Words {
		q.say(q.noun() + ": " + sentence)
	}
	q.sayLeft(v.Progress)
	return v.ID, nil
}

// sayLeft prints how long a question with a known number of spans takes: logs have no line of progress.
func (q *question) sayLeft(p api.SweepProgress) {
	if p.Of != nil && p.SecondsLeft != nil {
		q.say(fmt.Sprintf("%s: %d of %s, %s", q.noun(), p.Spans, spans(*p.Of), left(p)))
	}
}

// watch returns when the sweep has ended and the lane is restored, when only the caller can resume the
// sweep, or when ctx ends. It prints the result of each span. The error is returned if the sweep was
// deleted.
func (q *question) watch(ctx context.Context, id string) (v api.Sweep, err error) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	reported, said, state := -1, 0, api.SweepRunning
	for {
		v, err = q.desk.Sweep(context.WithoutCancel(ctx), id)
		if err != nil {
			return v, err
		}
		if reported < 0 {
			reported = len(v.Spans) // reported by the previous process
			if q.kept != "" {
				said = len(v.RouterFindings)
			}
		}
		for ; said < len(v.RouterFindings); said++ {
			q.say(v.RouterFindings[said])
		}
		for _, s := range v.Spans[reported:] {
			q.say(spanWords(s))
		}
		reported = len(v.Spans)
		if v.State == api.SweepPaused && state != v.State && byHand(v) { // the other changes are in the log
			q.say(fmt.Sprintf("the %s was paused %s: resume it on the page or through the API, or stop this program",
				q.noun(), v.Reason))
		}
		state = v.State
		if (state.Ended() || state == api.SweepPaused && !byHand(v)) && q.state().Sweep == nil {
			return v, nil
		}
		select {
		case <-ctx.Done():
			return v, nil
		case <-tick.C:
		}
	}
}

// byHand reports whether a sweep was paused through the page or the API, where it can also be resumed.
// A sweep that a failed target paused resumes after a repair, which may take hours.
func byHand(v api.Sweep) bool { return v.Cause == api.CauseOperator }

// write writes the result of the sweep and its report to a terminal, and the report into the files. A sweep without any
// span has no report.
func (q *question) write(to io.Writer, v api.Sweep) error {
	if len(v.Spans) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	for _, sentence := range v.Words {
		fmt.Fprintln(to, fit(sentence, 0))
	}
	fmt.Fprintln(to)
	if err := q.desk.WriteSweepReport(ctx, to, v.ID, api.ReportMarkdown); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return q.outputs.Write(func(w io.Writer, f api.ReportFormat) error {
		return q.desk.WriteSweepReport(ctx, w, v.ID, f)
	})
}

// verdict returns the error of a sweep, nil where it has its answer.
func (q *question) verdict(v api.Sweep) error {
	keeps := fmt.Sprintf("%s so far, kept in %s", spans(v.Progress.Spans), q.dir)
	switch {
	case v.State == api.SweepFailed:
		return fmt.Errorf("the %s failed: %s", q.noun(), v.Reason)
	case v.State == api.SweepCancelled:
		return undecided{fmt.Sprintf("the %s was cancelled %s; run the same command to start a new one", q.noun(), v.Reason)}
	case v.State == api.SweepPaused && !byHand(v):
		return undecided{fmt.Sprintf("the %s is paused: %s. It has %s; run the same command to resume", q.noun(),
			v.Reason, keeps)}
	case v.State == api.SweepPaused:
		return undecided{fmt.Sprintf("the %s was paused %s. It has %s; run the same command to resume", q.noun(),
			v.Reason, keeps)}
	case !v.State.Ended():
		return undecided{fmt.Sprintf("the %s is unfinished. It has %s; run the same command to resume", q.noun(), keeps)}
	case v.Progress.Spans == 0:
		reason := "nothing was measured: no valid span"
		if n := len(v.Spans); n > 0 {
			reason += "; the last one is invalid: " + v.Spans[n-1].Spoiled
		}
		return undecided{reason}
	}
	return unanswered(v)
}

// unanswered returns what a completed sweep has not answered.
func unanswered(v api.Sweep) error {
	switch {
	case v.Trial != nil && (v.Trial.Verdict == "time_over" || v.Trial.Verdict == "running"):
		return undecided{"undecided: the time left is too short for another block; " +
			"use a longer --max-time or a larger --smallest"}
	case v.Capacity != nil:
		for _, m := range v.Capacity.Modes {
			if m.Level == nil {
				return undecided{fmt.Sprintf("undecided: the search for the capacity of %s ran out of time; use a "+
					"longer --max-time", m.Mode.Short())}
			}
		}
	}
	return nil
}

// noun names the kind of the question, in a sentence.
func (q *question) noun() string { return q.asked.Request.Kind.Noun() }
