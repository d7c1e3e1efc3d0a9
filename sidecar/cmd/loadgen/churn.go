package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/churn"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/loadgen/workload"
)

const (
	actionTimeout = 5 * time.Minute // of an event's action, and of what undoes it
	pageTimeout   = 2 * time.Second
	pageInterval  = time.Second
	loseFor       = 10. // seconds, of the event lose-worker
)

// churner lets events happen under each arm, and observes them.
type churner struct {
	conf    *config.Config
	lane    *lane.Lane
	ready   func() error // why the target cannot serve; nil: it can
	say     func(text string)
	outputs report.Outputs

	report churn.Report
	waited string // why it has not begun
}

func newChurn(g *generator, conf *config.Config, outputs report.Outputs) *churner {
	c := &churner{
		conf: conf, lane: g.lane, ready: g.view.Ready, outputs: outputs,
		say: func(text string) { g.log.Info(fit(text, 0)) },
	}
	s := conf.Churn
	c.report = churn.Report{
		Windows: churn.Windows{Before: s.Before.Seconds(), Window: s.Window.Seconds()}, After: s.After.Seconds(),
		WarmUp: s.WarmUp.Seconds(), Level: conf.WorkloadSettings().Level, Seed: conf.Seed, Blocks: s.Blocks,
	}
	for _, e := range s.List {
		c.report.Events = append(c.report.Events, e.Name)
	}
	return c
}

// follow observes all events and writes the report. What was observed by the end of ctx is reported, too.
func (c *churner) follow(ctx context.Context, to io.Writer) error {
	lease, before, err := c.take(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return undecided{fmt.Sprintf("nothing was measured: no event happened (%s)", cmp.Or(c.waited, "stopped"))}
		}
		return notStarted{err}
	}
	observed, err := c.blocks(lease.Context(), lease)
	if err != nil {
		c.report.Unfinished = err.Error()
		if by, stopped := lease.StoppedBy(); stopped {
			c.report.Unfinished = "the workload was stopped by " + by
		}
	}
	if released := lease.Release(context.WithoutCancel(ctx), byCommand, before); released != nil {
		c.say(fmt.Sprintf("the mode could not be restored: %v", released))
	}
	for i, r := range churn.Measure(observed, c.report.Windows) {
		c.report.Instances[i].Result = r
	}
	c.report.Complete()
	if err := c.write(to); err != nil {
		return err
	}
	return c.verdict()
}

// take takes the lane once the target serves.
func (c *churner) take(ctx context.Context) (lease *lane.Lease, before lane.Before, err error) {
	for {
		if err = c.ready(); err == nil {
			lease, before, err = c.lane.Take(ctx, func() *api.SweepSummary { return nil })
			if err == nil || !errors.Is(err, api.ErrConflict) && !errors.Is(err, api.ErrUnavailable) {
				return lease, before, err
			}
		}
		if c.waited != err.Error() {
			c.waited = err.Error()
			c.say("the events wait: " + c.waited)
		}
		if ended := pauseFor(ctx, lookAgain, nil); ended != nil {
			return nil, before, ended
		}
	}
}

// pauseFor waits until a time is over, ctx ends or stop is closed, which are errors.
func pauseFor(ctx context.Context, d time.Duration, stop <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-stop:
		return errors.New("the workload was stopped")
	case <-timer.C:
		return nil
	}
}

// pairing is an event under an arm.
type pairing struct {
	block int
	arm   cluster.Arm
	event config.Event
}

// arms returns the arms, with their addresses.
func (c *churner) arms() (all []cluster.Arm) {
	under := c.conf.Churn.Under
	if len(under) == 0 {
		under = []api.ModeState{c.lane.State().InMode()}
	}
	for _, m := range under {
		if m.Speculation == "" && m.Arm == "" {
			m.Speculation = c.lane.State().Speculation
		}
		arm := cluster.Arm{State: m, URL: c.conf.Target.URL}
		for _, a := range c.conf.Mode.Addresses() {
			if a.State == m {
				arm = a
			}
		}
		all = append(all, arm)
	}
	return all
}

// blocks observes every event under every arm once in each block, in random order.
func (c *churner) blocks(ctx context.Context, lease *lane.Lease) (all []churn.Instance, err error) {
	arms := c.arms()
	for _, a := range arms {
		c.report.Arms = append(c.report.Arms, a.State.Text())
	}
	draw := rand.New(rand.NewPCG(c.conf.Seed, 1<<61))
	for block := range c.conf.Churn.Blocks {
		var list []pairing
		for _, arm := range arms {
			for _, event := range c.conf.Churn.List {
				list = append(list, pairing{block, arm, event})
			}
		}
		draw.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for _, p := range list {
			observed, event, err := c.instance(ctx, lease, p)
			if event != nil {
				all, c.report.Instances = append(all, observed), append(c.report.Instances, *event)
			}
			if err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// instance lets one event happen on a run of its own, which begins with cold caches. event is nil where the action did
// not begin. Whatever happens, the event is undone once its action has begun.
func (c *churner) instance(ctx context.Context, lease *lane.Lease, p pairing) (
	observed churn.Instance, event *churn.Event, err error,
) {
	s, rec := c.conf.Churn, &churnRecorder{inFlight: map[string]*workload.Outcome{}, base: time.Now()}
	level := c.report.Level
	runs, err := lease.Begin(ctx, byCommand, []lane.SpanOn{{Lane: c.lane, Observer: rec, Set: lane.SpanSettings{
		Mode: p.arm.State, Level: level, Seed: c.conf.Seed + uint64(p.block), //nolint:gosec // not negative
		RampedStart: level.Conversations(),
	}}}, func(string) {})
	if err != nil {
		return observed, nil, fmt.Errorf("the change to %s failed: %w", p.arm.State.Name(), err)
	}
	run := runs[0]
	defer run.End()
	if err := pauseFor(ctx, s.WarmUp+s.Before, run.Ended()); err != nil {
		return observed, nil, err
	}
	at := time.Now()
	event = &churn.Event{At: at.UTC(), Hits: p.event.Worker}
	during, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		switch err := c.do(during, p); {
		case err == nil || ctx.Err() != nil:
		case during.Err() != nil:
			event.Error = fmt.Sprintf("its action took longer than %v (after)", s.After)
		default:
			event.Error = err.Error()
			stop()
		}
		event.Action = time.Since(at).Seconds()
	})
	wg.Go(func() { event.Opened = c.breakers(during, p.arm) })
	err = pauseFor(during, s.After, run.Ended())
	observed = rec.observed(at, time.Now())
	stop()
	wg.Wait()
	if event.Error != "" {
		err = nil // the next event may succeed
	}
	event.Undo = c.undo(ctx, p)
	observed.Block, observed.Arm, observed.Event = p.block, p.arm.State.Text(), p.event.Name
	if event.Opened != nil && p.event.Worker != "" {
		event.Healthy = slices.DeleteFunc(slices.Clone(event.Opened), func(worker string) bool {
			return strings.Contains(worker, p.event.Worker)
		})
	}
	c.say(c.words(p, &observed, event))
	return observed, event, err
}

// words describes an event that has happened.
func (c *churner) words(p pairing, observed *churn.Instance, e *churn.Event) string {
	text := fmt.Sprintf("event %d of %d, block %d: %s under %s", len(c.report.Instances)+1,
		c.report.Blocks*len(c.report.Arms)*len(c.report.Events), p.block+1, p.event.Name, observed.Arm)
	if e.Error != "" {
		return text + " failed: " + e.Error
	}
	r := churn.Measure([]churn.Instance{*observed}, c.report.Windows)[0]
	return text + fmt.Sprintf(": %d of %d turns failed", r.Failed, r.Turns)
}

// action returns an action with what it needs to send requests.
func (c *churner) action(a cluster.Action) (cluster.Action, error) {
	call, ok := a.(cluster.Call)
	if !ok {
		return a, nil
	}
	sender, err := newSender(c.conf)
	call.Sender = sender
	return call, err
}

// do runs the action of an event.
func (c *churner) do(ctx context.Context, p pairing) error {
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	switch p.event.BuiltIn {
	case config.Nothing:
		return nil
	case config.LoseWorker:
		return c.loseWorker(ctx, p.arm)
	}
	action, err := c.action(p.event.Do)
	if err != nil {
		return err
	}
	return action.Switch(ctx, p.arm, p.arm, c.say)
}

// undo undoes an event, also after ctx has ended, and waits until the event's pause is over. It returns why that
// failed.
func (c *churner) undo(ctx context.Context, p pairing) (failure string) {
	if p.event.Undo != nil {
		undoing, cancel := context.WithTimeout(context.WithoutCancel(ctx), actionTimeout)
		defer cancel()
		action, err := c.action(p.event.Undo)
		if err == nil {
			err = action.Switch(undoing, p.arm, p.arm, c.say)
		}
		if err != nil {
			failure = "it could not be undone: " + err.Error()
			c.say(failure)
		}
	}
	_ = pauseFor(ctx, p.event.Settle, nil) // the next step detects the end of ctx
	return failure
}

// loseWorker takes the first worker from a simulated cluster.
func (c *churner) loseWorker(ctx context.Context, arm cluster.Arm) error {
	client, err := pagesClient(c.conf, arm.URL)
	if err != nil {
		return err
	}
	u, err := url.Parse(arm.URL)
	if err != nil {
		return err
	}
	root := api.TargetRoot(u).String() + "/sim/v1/"
	text, err := get(ctx, client, root+"state")
	if err != nil {
		return fmt.Errorf("%s is for simulated clusters: %w", config.LoseWorker, err)
	}
	var state struct {
		Workers []struct {
			ID string `json:"id"`
		} `json:"workers"`
	}
	if err := json.Unmarshal(text, &state); err != nil || len(state.Workers) == 0 {
		return fmt.Errorf("%s is for simulated clusters: %sstate names no workers", config.LoseWorker, root)
	}
	sender := cluster.Sender{Client: client}
	return cluster.Call{Sender: sender, Request: cluster.Request{
		URL: root + "workers/" + state.Workers[0].ID + "/lose", Body: fmt.Sprintf(`{"seconds":%g}`, loseFor),
	}}.Switch(ctx, arm, arm, c.say)
}

// get returns the body of a page.
func get(ctx context.Context, client *http.Client, page string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", page, res.Status)
	}
	const most = 8 << 20
	return io.ReadAll(io.LimitReader(res.Body, most))
}

// breakerState is the state of a worker's circuit breaker on a router's metrics page: 0 closed, 1 open, 2 half open.
var breakerState = regexp.MustCompile(`^\w+_cb_state\{.*worker="([^"]*)".*\} +(\d)`)

// breakers reads the routers' metrics until ctx ends. It returns the workers whose circuit breaker was open, nil where
// no page has such states.
func (c *churner) breakers(ctx context.Context, arm cluster.Arm) (opened []string) {
	at, _ := c.conf.At(arm)
	client, err := pagesClient(at, arm.URL)
	if err != nil {
		return nil
	}
	pages := slices.DeleteFunc(slices.Clone(at.Cluster.MetricsURLs), func(page string) bool {
		return !strings.Contains(page, "://") // no-target
	})
	if u, err := url.Parse(arm.URL); err == nil && len(pages) == len(at.Cluster.MetricsURLs) {
		pages = append(pages, api.TargetRoot(u).String()+"/metrics")
	}
	for ended := error(nil); ended == nil; ended = pauseFor(ctx, pageInterval, nil) {
		for _, page := range pages {
			reading, cancel := context.WithTimeout(ctx, pageTimeout)
			text, _ := get(reading, client, page) // a page may be that of the worker that is gone
			cancel()
			for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
				state := breakerState.FindStringSubmatch(lines.Text())
				if state != nil && opened == nil {
					opened = []string{}
				}
				if state != nil && state[2] == "1" && !slices.Contains(opened, state[1]) {
					opened = append(opened, state[1])
				}
			}
		}
	}
	return opened
}

// write writes the report to a terminal and into the files.
func (c *churner) write(to io.Writer) error {
	if len(c.report.Instances) == 0 {
		return nil
	}
	if err := c.report.WriteMarkdown(to); err != nil {
		return err
	}
	return c.outputs.Write(func(w io.Writer, f api.ReportFormat) error {
		if f == api.ReportMarkdown {
			return c.report.WriteMarkdown(w)
		}
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(&c.report)
	})
}

// verdict returns why there is no complete answer; nil: there is one.
func (c *churner) verdict() error {
	if c.report.Unfinished != "" {
		return undecided{fmt.Sprintf("unfinished after %d events: %s", len(c.report.Instances), c.report.Unfinished)}
	}
	for i := range c.report.Instances {
		if n := &c.report.Instances[i]; n.Error+n.Undo != "" {
			return undecided{fmt.Sprintf("%s under %s: %s", n.Event, n.Arm, cmp.Or(n.Error, n.Undo))}
		}
	}
	return nil
}

// churnRecorder records the turns of a run. It is safe for concurrent use.
type churnRecorder struct {
	base time.Time

	mu       sync.Mutex
	turns    []workload.Outcome
	inFlight map[string]*workload.Outcome // by their requests
}

var _ lane.SpanObserver = (*churnRecorder)(nil)

// TurnBegan records that a turn is in flight.
func (r *churnRecorder) TurnBegan(request string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight[request] = &workload.Outcome{Sent: at.Sub(r.base), TTFT: math.NaN()}
}

// FirstToken records the first token of a turn in flight.
func (r *churnRecorder) FirstToken(request string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.inFlight[request]; t != nil {
		t.TTFT = (at.Sub(r.base) - t.Sent).Seconds()
	}
}

// Tokens does nothing.
func (*churnRecorder) Tokens(time.Time, int) {}

// ConversationEnded does nothing.
func (*churnRecorder) ConversationEnded(int64) {}

// Turn records a turn that has ended.
func (r *churnRecorder) Turn(t *workload.Turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inFlight, t.RequestID)
	r.turns = append(r.turns, workload.OutcomeOf(&t.Turn, r.base))
}

// observed returns all turns until now with their times since an event.
func (r *churnRecorder) observed(event, now time.Time) churn.Instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.turns)
	for _, t := range r.inFlight {
		all = append(all, *t)
	}
	for i := range all {
		all[i].Sent -= event.Sub(r.base)
		all[i].Ended -= event.Sub(r.base)
	}
	return churn.Instance{Seconds: now.Sub(event).Seconds(), Turns: all}
}
