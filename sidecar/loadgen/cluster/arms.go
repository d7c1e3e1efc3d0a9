package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

const (
	// redirectTimeout bounds the check whether an address serves.
	redirectTimeout = 30 * time.Second
	// readyEvery is the interval between two checks whether an arm that was switched to is ready.
	readyEvery = time.Second
)

// Arm is a way of serving that receives turns: a router, a policy or a set of engines.
type Arm struct {
	State   api.ModeState
	URL     string // address of the server, with or without /v1
	Field   string // the setting with URL, which messages name; empty: target.url
	Headers map[string]string
}

// Key returns the name of the arm's endpoint: the arm's name, or else its mode and speculation.
func (a Arm) Key() string {
	if a.State.Arm != "" {
		return a.State.Arm
	}
	return string(a.State.Mode) + "/" + string(a.State.Speculation)
}

// Redirector sends requests to one of several endpoints. [Arm.Key] names an endpoint.
type Redirector interface {
	// Redirect checks that the server at an endpoint serves the current model and answers
	// several times in a row. Later requests go there. After an error the previous endpoint
	// stays in use.
	Redirect(ctx context.Context, name string, answers int) error
	// Check makes the checks of Redirect with one answer. It does not redirect requests.
	Check(ctx context.Context, name string) error
}

// Action changes the cluster so that the arm to serves instead of from. output receives each
// line that a program prints.
type Action interface {
	Switch(ctx context.Context, from, to Arm, output func(line string)) error
}

// ArmsOptions configure the driver of the arms.
type ArmsOptions struct {
	Name string // the driver's name in the configuration
	Arms []Arm
	// Action changes the cluster. nil means that every arm serves at its own endpoint at any time.
	Action  Action
	Timeout time.Duration // bounds Action with the wait until the arm is ready, and the roll-back
	Ready   string        // URL that answers 2xx once an arm is ready; "" omits the check
	Answers int           // number of answers in a row that an arm must give before turns go to it
	InPlace bool          // Action ends no turn in flight and keeps the workers; it is true without an Action
	// Cold empties the caches of all workers. Its placeholders are {worker}, and those of the arm in force. nil keeps
	// the contents of the caches.
	Cold       []Request
	Workers    []string // addresses that replace {worker} in Cold
	Redirector Redirector
	Sender     Sender // of Ready and Cold
	Log        *slog.Logger
}

// Arms is the driver for arms with their own endpoints, such as two routers over one set of
// workers, and for arms that a program or an HTTP request switches. It is safe for concurrent
// use.
type Arms struct {
	opts ArmsOptions
	ctx  context.Context // ends with the process; no roll-back begins after that
}

// NewArms makes the driver. ctx must last as long as the process, since a roll-back runs after
// the context of Switch has ended. An invalid address, or two arms with one state, give an
// [api.FieldError].
func NewArms(ctx context.Context, opts ArmsOptions) (*Arms, error) {
	seen := map[api.ModeState]bool{}
	for _, a := range opts.Arms {
		if _, err := httpURL("mode.endpoints", a.URL); err != nil {
			return nil, err
		}
		if seen[a.State] {
			return nil, api.Refuse("mode.endpoints", "a second address for "+describe(a.State), "one for each mode")
		}
		seen[a.State] = true
	}
	return &Arms{opts: opts, ctx: ctx}, nil
}

// Name returns [ArmsOptions.Name].
func (d *Arms) Name() string { return d.opts.Name }

// Offers lists the arms.
func (d *Arms) Offers() []api.ModeState {
	offers := make([]api.ModeState, len(d.opts.Arms))
	for i, a := range d.opts.Arms {
		offers[i] = a.State
	}
	return offers
}

// Abilities returns what arms can do: they have addresses of their own, and keep the caches.
func (d *Arms) Abilities() workload.Abilities {
	a := workload.Abilities{SwitchWarm: d.SwitchWarm, InPlace: d.InPlace, SameWorkers: d.SameWorkers, Route: d.Route}
	if d.opts.Action == nil { // else one of them serves at a time
		a.Check = d.Check
	}
	return a
}

// Route returns a digest of an arm's address and headers.
func (d *Arms) Route(state api.ModeState) string {
	a, _ := d.arm(state)
	text, _ := json.Marshal([]any{a.URL, a.Headers}) // the keys of a map are sorted
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// Check returns an error for the first arm that cannot serve.
func (d *Arms) Check(ctx context.Context, arms []api.ModeState) error {
	for _, state := range arms {
		a, ok := d.arm(state)
		if !ok {
			continue
		}
		err := d.ask(ctx, a, func(ctx context.Context) error { return d.opts.Redirector.Check(ctx, a.Key()) })
		if err != nil {
			return err
		}
	}
	return nil
}

// Switch makes an arm serve. It performs the action, waits until the arm is ready, and checks
// its address: the list of models, and answers. Then it redirects the
// requests, and empties the caches if [ArmsOptions.Cold] is set. With from = to and Cold it only
// empties the caches. cold reports whether all caches were emptied. If the action fails, it is
// performed for the former arm. If a check fails, the previous address stays in use. An unknown
// arm gives an [api.FieldError].
func (d *Arms) Switch(
	ctx context.Context, from, to api.ModeState, report func(phase, message string),
) (cold bool, err error) {
	next, _ := d.arm(to)
	if from != to || d.opts.Cold == nil {
		if _, err := d.SwitchWarm(ctx, from, to, report); err != nil {
			return false, err
		}
	}
	return d.emptyCaches(ctx, next, report), nil
}

// InPlace reports whether every arm serves at its own endpoint, where the turns in flight end, or the action leaves
// them alone.
func (d *Arms) InPlace(_, _ api.ModeState) bool { return d.opts.Action == nil || d.opts.InPlace }

// SameWorkers reports whether two arms have one address. Routers at addresses of their own may have engines of their
// own.
func (d *Arms) SameWorkers(a, b api.ModeState) bool {
	one, _ := d.arm(a)
	other, _ := d.arm(b)
	return one.URL == other.URL
}

// SwitchWarm is Switch without emptying the caches.
func (d *Arms) SwitchWarm(
	ctx context.Context, from, to api.ModeState, report func(phase, message string),
) (cold bool, err error) {
	if err := offered(d.Offers(), to); err != nil {
		return false, err
	}
	next, _ := d.arm(to)
	return false, d.change(ctx, from, next, report)
}

// change performs the action, if there is one, and redirects the requests.
func (d *Arms) change(ctx context.Context, from api.ModeState, next Arm, report func(phase, message string)) error {
	former, known := d.arm(from)
	if d.opts.Action == nil || from == next.State {
		return d.redirect(ctx, next, report)
	}
	err := d.perform(ctx, former, next, "switching", report)
	switch {
	case err == nil, d.ctx.Err() != nil:
		return err
	case !known:
		return fmt.Errorf("%w; the previous arm is not known, so this one was left in place", err)
	}
	report("rolling_back", fmt.Sprintf("switching back to %s: %s", from.Short(), err))
	if back := d.perform(d.ctx, next, former, "rolling_back", report); back != nil {
		d.opts.Log.Warn("the cluster could not be switched back", "to", from.Short(), "error", back)
		return workload.NotSwitchedBack(err, from.Short(), back)
	}
	return fmt.Errorf("%w; it was switched back to %s", err, from.Short())
}

// perform performs the action for an arm, and redirects the requests once the arm is ready.
func (d *Arms) perform(ctx context.Context, from, to Arm, phase string, report func(phase, message string)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d.opts.Timeout,
		fmt.Errorf("it took longer than %s (switch.timeout)", d.opts.Timeout))
	defer cancel()
	report(phase, "switching to "+to.State.Short())
	err := d.opts.Action.Switch(ctx, from, to, func(line string) { report(workload.PhaseOutput, line) })
	switch {
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("the switch to %s failed: %w", to.State.Short(), err)
	case err != nil:
		return fmt.Errorf("the switch to %s was stopped: %w", to.State.Short(), context.Cause(ctx))
	}
	if err = d.await(ctx, to, phase, report); err != nil {
		return fmt.Errorf("the switch to %s was stopped: %w; until then: %w", to.State.Short(), context.Cause(ctx), err)
	}
	return nil
}

// await polls [ArmsOptions.Ready], if there is one, until it answers 2xx, and redirects the requests to the arm.
// It repeats both until they succeed, since the arm may be restarting. At the end of ctx it returns the last error.
func (d *Arms) await(ctx context.Context, a Arm, phase string, report func(phase, message string)) error {
	ready := Request{Method: http.MethodGet, URL: d.opts.Ready}.fill(placeholdersOf(a))
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	var last error
	for {
		var err error
		if d.opts.Ready != "" {
			err = d.opts.Sender.send(ctx, ready)
		}
		if err == nil {
			err = d.redirect(ctx, a, func(_, message string) { report(phase, message) })
		}
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // an error caused by the end of ctx does not describe the arm
			last = err
		}
		report(phase, fmt.Sprintf("waiting until %s is ready: %v", a.State.Short(), err))
		select {
		case <-ctx.Done():
			return last
		case <-tick.C:
		}
	}
}

// redirect checks an arm and sends the requests to it.
func (d *Arms) redirect(ctx context.Context, a Arm, report func(phase, message string)) error {
	report("switching", "asking "+a.URL+" whether it serves")
	err := d.ask(ctx, a, func(ctx context.Context) error {
		return d.opts.Redirector.Redirect(ctx, a.Key(), d.opts.Answers)
	})
	if err == nil {
		report("switching", "turns go to "+a.URL)
	}
	return err
}

// ask checks whether an arm lists its models and answers, with its own headers and key. An error names the arm and its
// address.
func (d *Arms) ask(ctx context.Context, a Arm, answers func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, redirectTimeout, fmt.Errorf("timed out after %s", redirectTimeout))
	defer cancel()
	err := answers(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%s, the address of %s: %w", a.URL, a.State.Name(), context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("%s, the address of %s, cannot serve: %w", a.URL, a.State.Name(), err)
	}
	return nil
}

// emptyCaches empties the caches of all workers of an arm. It returns false if one of them fails or Cold is nil;
// the caller then makes the prefixes cold by a nonce.
func (d *Arms) emptyCaches(ctx context.Context, a Arm, report func(phase, message string)) bool {
	if d.opts.Cold == nil {
		return false
	}
	report("switching", "emptying the caches of the workers")
	for _, r := range d.opts.Cold {
		workers := []string{""}
		if r.Uses("{worker}") {
			workers = d.opts.Workers
		}
		for _, w := range workers {
			values := append(placeholdersOf(a), "{worker}", w)
			if err := d.opts.Sender.send(ctx, r.fill(values)); err != nil {
				report(workload.PhaseWarning,
					fmt.Sprintf("the caches could not be emptied, so a nonce makes the prefixes cold: %v", err))
				return false
			}
		}
	}
	return true
}

func (d *Arms) arm(state api.ModeState) (Arm, bool) {
	for _, a := range d.opts.Arms {
		if a.State == state {
			return a, true
		}
	}
	return Arm{State: state}, false
}

// SelectedSource returns the source in use. It combines several sources, one of which is in use at
// a time, into a [Source].
type SelectedSource func() Source

// Name returns the name of the selected source.
func (c SelectedSource) Name() string { return c().Name() }

// Fetch reads the selected source.
func (c SelectedSource) Fetch(ctx context.Context) ([]Sample, error) { return c().Fetch(ctx) }

func (c SelectedSource) explain(ctx context.Context, samples []Sample) api.Unread {
	if e, ok := c().(explainer); ok {
		return e.explain(ctx, samples)
	}
	return api.Unread{}
}
