package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	"kvbooth/sidecar/loadgen/sweep"
)

const (
	actionTimeout = 5 * time.Minute // of an event's action, and of its undoing
	pageTimeout   = 2 * time.Second
	pageInterval  = time.Second
)

// churner lets events happen under each arm, and observes them.
type churner struct {
	*generator
	conf    *config.Config
	outputs report.Outputs
	report  churn.Report
	sender  cluster.Sender
}

func newChurn(g *generator, conf *config.Config, outputs report.Outputs) (*churner, error) {
	s := conf.Churn
	c := &churner{generator: g, conf: conf, outputs: outputs, report: churn.Report{
		Program: api.Program(),
		Windows: churn.Windows{Before: s.Before.Seconds(), Window: s.Window.Seconds()}, After: s.After.Seconds(),
		WarmUp: s.WarmUp.Seconds(), Level: conf.WorkloadSettings().Level, Seed: conf.Seed, Blocks: s.Blocks,
	}}
	for _, e := range s.List {
		c.report.Events = append(c.report.Events, e.Name)
	}
	var err error
	c.sender, err = newSender(conf)
	return c, err
}

// follow observes all events and writes the report, also of those before the end of ctx.
func (c *churner) follow(ctx context.Context, to io.Writer) error {
	for c.view.Ready() != nil {
		if err := pauseFor(ctx, lookAgain, nil); err != nil {
			return undecided{fmt.Sprintf("nothing was measured: %v", c.view.Ready())}
		}
	}
	lease, before, err := c.lane.Take(ctx, func() *api.SweepSummary { return nil })
	if err != nil {
		return notStarted{err}
	}
	observed, err := c.blocks(lease.Context(), lease)
	if err != nil {
		c.report.Unfinished = err.Error()
		if errors.Is(err, context.Canceled) {
			c.report.Unfinished = "it was stopped"
		}
	}
	if err := lease.Release(context.WithoutCancel(ctx), byCommand, before); err != nil {
		c.log.Warn("the mode could not be restored", "error", err)
	}
	for i, r := range churn.Measure(observed, c.report.Windows) {
		c.report.Instances[i].Result = r
	}
	c.report.Complete()
	if err := c.write(to); err != nil {
		return err
	}
	if c.report.Unfinished != "" {
		return undecided{fmt.Sprintf("unfinished after %d events: %s", len(c.report.Instances), c.report.Unfinished)}
	}
	for _, n := range c.report.Instances {
		if n.Error+n.Undo != "" {
			return undecided{fmt.Sprintf("%s under %s: %s%s", n.Event, n.Arm, n.Error, n.Undo)}
		}
	}
	return nil
}

// pauseFor waits until a time is over; the end of ctx and a closed stop are errors.
func pauseFor(ctx context.Context, d time.Duration, stop <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-stop:
		return errors.New("the workload was stopped")
	case <-time.After(d):
		return nil
	}
}

// pairing is an event under an arm.
type pairing struct {
	block int
	arm   cluster.Arm
	event config.Event
}

// blocks observes every event under every arm once in each block, in random order.
func (c *churner) blocks(ctx context.Context, lease *lane.Lease) (all []churn.Instance, err error) {
	under := c.conf.Churn.Under
	if len(under) == 0 {
		under = []api.ModeState{c.lane.State().InMode()}
	}
	var pairs []pairing
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
		c.report.Arms = append(c.report.Arms, m.Text())
		for _, event := range c.conf.Churn.List {
			pairs = append(pairs, pairing{0, arm, event})
		}
	}
	draw := rand.New(rand.NewPCG(c.conf.Seed, 1<<61))
	for block := range c.conf.Churn.Blocks {
		for _, i := range draw.Perm(len(pairs)) {
			pairs[i].block = block
			observed, event, err := c.instance(ctx, lease, pairs[i])
			if event != nil {
				all, c.report.Instances = append(all, observed), append(c.report.Instances, *event)
				c.logEvent(pairs[i], observed, event)
			}
			if err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// instance lets one event happen on a run of its own, which begins with cold caches and with the conversations of its
// block. event is nil where the action did not begin. Once it has begun, the event is undone in any case.
func (c *churner) instance(ctx context.Context, lease *lane.Lease, p pairing) (
	observed churn.Instance, event *churn.Event, err error,
) {
	s, level, record := c.conf.Churn, c.report.Level, sweep.NewTurns(c.lane)
	runs, err := lease.Begin(ctx, byCommand, []lane.SpanOn{{Lane: c.lane, Observer: record, Set: lane.SpanSettings{
		Mode: p.arm.State, Level: level, Seed: c.conf.Seed + uint64(p.block), //nolint:gosec // not negative
		RampedStart: level.Conversations(),
	}}}, func(string) {})
	if err != nil {
		return observed, nil, fmt.Errorf("the change to %s failed: %w", p.arm.State.Name(), err)
	}
	defer runs[0].End()
	if err := pauseFor(ctx, s.WarmUp+s.Before, runs[0].Ended()); err != nil {
		return observed, nil, err
	}
	at := time.Now()
	event = &churn.Event{At: at.UTC()}
	during, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		err := c.act(during, p.event.Do, p.arm)
		event.Action = time.Since(at).Seconds()
		if err != nil && ctx.Err() == nil {
			if during.Err() != nil {
				err = fmt.Errorf("it took longer than %v (after)", s.After)
			}
			event.Error = err.Error()
			stop()
		}
	})
	wg.Go(func() { event.Opened = c.breakers(during, p) })
	err = pauseFor(during, s.After, runs[0].Ended())
	observed.Seconds, observed.Turns = time.Since(at).Seconds(), record.Since(at)
	stop()
	wg.Wait()
	switch {
	case event.Error != "":
		err = nil // the next event may succeed
	case err != nil:
		event.Error = fmt.Sprintf("it was observed for %.0f s only", observed.Seconds)
	}
	if err := c.act(context.WithoutCancel(ctx), p.event.Undo, p.arm); err != nil {
		event.Undo = "it could not be undone: " + err.Error()
	}
	observed.Block, observed.Arm, observed.Event = p.block, p.arm.State.Text(), p.event.Name
	return observed, event, cmp.Or(err, pauseFor(ctx, p.event.Settle, nil))
}

// logEvent logs an event that has happened.
func (c *churner) logEvent(p pairing, observed churn.Instance, e *churn.Event) {
	r := churn.Measure([]churn.Instance{observed}, c.report.Windows)[0]
	c.log.Info(fmt.Sprintf("event %d of %d: %s under %s", len(c.report.Instances),
		c.report.Blocks*len(c.report.Arms)*len(c.report.Events), r.Event, r.Arm), "block", p.block+1, "turns", r.Turns,
		"failed", r.Failed, "error", e.Error+e.Undo)
}

// act runs an action, if there is one.
func (c *churner) act(ctx context.Context, a cluster.Action, arm cluster.Arm) error {
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	if call, ok := a.(cluster.Call); ok {
		call.Sender = c.sender
		a = call
	}
	if a == nil {
		return nil
	}
	return a.Switch(ctx, arm, arm, func(line string) { c.log.Info(fit(line, 0)) })
}

// breakerState is the state of a worker's circuit breaker on a router's metrics page: 0 closed, 1 open, 2 half open.
var breakerState = regexp.MustCompile(`(?m)^\w+_cb_state\{.*worker="([^"]*)".*\} +(\d)`)

// breakers reads the routers' metrics until ctx ends. It returns the workers whose circuit breaker was open, without
// the one that the event hits; nil where no page has such states.
func (c *churner) breakers(ctx context.Context, p pairing) (opened []string) {
	at, _ := c.conf.At(p.arm)
	client, err := pagesClient(at, p.arm.URL)
	if err != nil {
		return nil
	}
	pages := slices.Clone(at.Cluster.MetricsURLs)
	if u, err := url.Parse(p.arm.URL); err == nil && !slices.Contains(pages, "no-target") {
		pages = append(pages, api.TargetRoot(u).String()+"/metrics")
	}
	for ended := error(nil); ended == nil; ended = pauseFor(ctx, pageInterval, nil) {
		for _, page := range pages {
			for _, state := range breakerState.FindAllStringSubmatch(getPage(ctx, client, page), -1) {
				if opened == nil {
					opened = []string{}
				}
				hit := p.event.Worker != "" && strings.Contains(state[1], p.event.Worker)
				if state[2] == "1" && !hit && !slices.Contains(opened, state[1]) {
					opened = append(opened, state[1])
				}
			}
		}
	}
	return opened
}

// getPage returns a page; empty where it cannot be read, as that of a worker that is gone.
func getPage(ctx context.Context, client *http.Client, page string) string {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return ""
	}
	res, err := client.Do(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	const most = 8 << 20
	text, _ := io.ReadAll(io.LimitReader(res.Body, most))
	return string(text)
}

// write writes the report to a terminal and into the files.
func (c *churner) write(to io.Writer) error {
	if len(c.report.Instances) == 0 {
		return nil
	}
	if _, err := io.WriteString(to, churnText(&c.report)); err != nil {
		return err
	}
	return c.outputs.Write(func(w io.Writer, f api.ReportFormat) error {
		if f == api.ReportMarkdown {
			_, err := io.WriteString(w, churnText(&c.report))
			return err
		}
		return writeJSON(w, &c.report)
	})
}
