package lane

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

// change is a mode change under way.
type change struct {
	api.ModeChange
	cancel context.CancelFunc
	resume bool // start again at the end
	by     string

	progress func(message string) // hears of it, too; nil: nobody does
	// Once it has ended:
	cold bool  // the caches were emptied
	err  error // why it was given up
}

// SetMode begins a mode change and returns at once; the snapshot shows its
// progress. Asking for the mode in force changes nothing. With a driver that
// waits for the operator, the same request with Confirm is the operator's word; one
// with InForce says which mode is in force without any change.
// Another change meanwhile gives [api.ErrConflict], a mode that the driver does
// not offer an [api.FieldError], and [api.ErrUnavailable] comes at the end of the
// process or where the driver knows no modes yet.
func (l *Lane) SetMode(_ context.Context, by string, req api.ModeRequest) (api.State, error) {
	if req.Confirm && req.InForce {
		return l.State(), &api.FieldError{Field: "in_force", Value: "true", Allowed: "false beside confirm, which ends a change that waits"}
	}
	if req.Confirm {
		return l.confirm(req)
	}
	if req.InForce {
		return l.do(func() error { return l.declare(by, api.ModeState{Mode: req.Mode, Speculation: req.Speculation}) })
	}
	return l.do(func() error { return l.beginChange(by, api.ModeState{Mode: req.Mode, Speculation: req.Speculation}) })
}

// beginChange hands a change that can be made to switchMode. The lock is held.
func (l *Lane) beginChange(by string, to api.ModeState) error {
	to.Speculation = cmp.Or(to.Speculation, l.mode.Speculation)
	if err := l.checkChange(to); err != nil || to == l.mode {
		return err
	}
	ctx, cancel := context.WithCancel(l.ctx)
	c := &change{
		ModeChange: api.ModeChange{From: l.mode, To: to, Phase: "stopping", Message: "stopping the workload", Started: time.Now()},
		cancel:     cancel, resume: l.run != nil && l.phase == api.PhaseRunning, by: by,
	}
	l.endStep(time.Now())
	l.change, l.phase = c, api.PhaseSwitching
	current := l.run
	l.wg.Go(func() { l.switchMode(ctx, c, current) })
	return nil
}

func (l *Lane) checkChange(to api.ModeState) error {
	if err := l.free(); err != nil {
		return err
	}
	offers := l.opts.Driver.Offers()
	if len(offers) == 0 {
		return fmt.Errorf("%w: the cluster has not told its modes yet; is it running?", api.ErrUnavailable)
	}
	return l.checkOffered(offers, to)
}

// free refuses to touch the mode while it is being changed, while the lane is taken, or at
// the end of the process. The lock is held.
func (l *Lane) free() error {
	if err := l.open(); err != nil {
		return err
	}
	if err := l.untaken(); err != nil {
		return err
	}
	if l.phase == api.PhaseSwitching {
		return fmt.Errorf("%w: a change to %s is in progress; wait for its end, or cancel it", api.ErrConflict, l.change.To.Mode)
	}
	return nil
}

func (l *Lane) checkOffered(offers []api.ModeState, to api.ModeState) error {
	if !slices.Contains(offers, to) {
		names := make([]string, len(offers))
		for i, o := range offers {
			names[i] = fmt.Sprintf("%s with speculation %s", o.Mode, o.Speculation)
		}
		return &api.FieldError{
			Field: "mode", Value: fmt.Sprintf("%s with speculation %s", to.Mode, to.Speculation),
			Allowed: fmt.Sprintf("what the driver %s offers: %v", l.opts.Driver.Name(), names),
		}
	}
	return nil
}

// sourceOf says who told a mode that the configuration names, or that was switched
// to: with a driver that asks a person to switch, that is a person's word.
func (l *Lane) sourceOf(m api.ModeState) api.ModeSource {
	switch {
	case m.Mode == api.ModeUnknown:
		return ""
	case l.takesWord():
		return api.ModeFromOperator
	}
	return api.ModeFromDriver
}

// takesWord says whether the driver knows no mode by itself, so that an operator, or
// the router's metrics, may tell it.
func (l *Lane) takesWord() bool {
	_, ok := l.opts.Driver.(workload.Confirmer)
	return ok
}

// declare takes the operator's word for the mode that is in force. What was measured
// before it was said stays under the mode that was known then. The lock is held.
func (l *Lane) declare(by string, to api.ModeState) error {
	to.Speculation = cmp.Or(to.Speculation, l.mode.Speculation)
	if !l.takesWord() {
		return &api.FieldError{Field: "in_force", Value: "true", Allowed: fmt.Sprintf("false: the driver %s knows the mode by itself", l.opts.Driver.Name())}
	}
	if err := l.free(); err != nil {
		return err
	}
	if to.Mode != api.ModeUnknown {
		if err := l.checkOffered(l.opts.Driver.Offers(), to); err != nil {
			return err
		}
	}
	if byKV := l.opts.Cluster().RoutesByKV; byKV != nil && to.Mode != api.ModeUnknown && *byKV != (to.Mode == api.ModeKV) {
		allowed := "kv: the router's own metrics show that it chose by what the KV caches hold in the last 60 s"
		if !*byKV {
			allowed = "another mode: the router's own metrics show that it did not choose by what the KV caches hold in the last 60 s"
		}
		return &api.FieldError{Field: "mode", Value: string(to.Mode), Allowed: allowed}
	}
	text := transition(l.mode, to) + ": the operator says that it is in force"
	if to.Mode == api.ModeUnknown {
		text = "mode unknown: the operator says that it is another one, or not known"
	}
	switch {
	case to != l.mode:
		l.inNewStep(func() { l.mode, l.change = to, nil })
		l.modeChanged(to)
	case l.modeFrom == api.ModeFromOperator:
		return nil
	}
	l.modeFrom = api.ModeFromOperator
	l.event(api.EventModeChange, by, text)
	return nil
}

// confirm hands the operator's word to the driver.
func (l *Lane) confirm(req api.ModeRequest) (api.State, error) {
	l.mu.Lock()
	c := l.change
	waiting := l.phase == api.PhaseSwitching && c.To.Mode == req.Mode
	l.mu.Unlock()
	driver, ok := l.opts.Driver.(workload.Confirmer)
	if !waiting || !ok {
		return l.State(), fmt.Errorf("%w: no change to %s waits for a confirmation", api.ErrConflict, req.Mode)
	}
	return l.State(), driver.Confirm()
}

// CancelMode gives up the mode change in progress; the old mode goes on. It
// gives [api.ErrConflict] where there is none, or where the lane is taken.
func (l *Lane) CancelMode(_ context.Context, by string) (api.State, error) {
	l.mu.Lock()
	c, switching, taken := l.change, l.phase == api.PhaseSwitching, l.untaken()
	l.mu.Unlock()
	if !switching {
		return l.State(), fmt.Errorf("%w: no mode change is in progress", api.ErrConflict)
	}
	if taken != nil {
		return l.State(), taken
	}
	c.cancel()
	l.event(api.EventModeChange, by, fmt.Sprintf("cancelled the change to %s", c.To.Mode))
	return l.State(), nil
}

// switchMode is one mode change from its first to its last moment.
func (l *Lane) switchMode(ctx context.Context, c *change, current *run) {
	defer c.cancel()
	if current != nil {
		current.cancel()
		<-current.ended
	}
	doing := fmt.Sprintf("switching to %s", c.To.Mode)
	if c.From == c.To {
		doing = "making the caches cold"
	}
	l.report(c, "switching", doing)
	cold, err := l.opts.Driver.Switch(ctx, c.From, c.To, func(phase, message string) { l.report(c, phase, message) })
	if l.ctx.Err() != nil {
		c.err = l.ctx.Err()
		return
	}
	l.finish(c, cold, err)
}

func (l *Lane) report(c *change, phase, message string) {
	l.mu.Lock()
	c.Phase, c.Message = phase, message
	l.mu.Unlock()
	if c.progress != nil {
		c.progress(message)
	}
	l.notify()
}

// finish takes the new mode, or keeps the old one where the switch failed, and
// resumes the workload.
func (l *Lane) finish(c *change, cold bool, err error) {
	l.mu.Lock()
	text := transition(c.From, c.To)
	c.cold, c.err = cold, err
	if err == nil {
		l.mode, l.modeFrom, l.change = c.To, l.sourceOf(c.To), nil
		if !cold {
			l.nonce = newNonce()
		}
		l.shadow.Reset() // what comes finds nothing of what was before
	} else {
		text += ": given up"
		c.Phase, c.Failed = "failed", true
		c.Message = fmt.Sprintf("still in %s: %s", modeWords(c.From.Mode), reason(err))
	}
	l.phase = api.PhaseStopped
	if c.From != c.To {
		l.event(api.EventModeChange, c.by, text)
	}
	if c.resume {
		l.begin(c.by)
	}
	l.mu.Unlock()
	if err == nil {
		l.modeChanged(c.To)
	}
	l.notify()
}

func (l *Lane) modeChanged(to api.ModeState) {
	if l.opts.ModeChanged != nil {
		l.opts.ModeChanged(to)
	}
}

// transition names a change, with the speculations where that changes, too.
func transition(from, to api.ModeState) string {
	if from.Speculation == to.Speculation {
		return fmt.Sprintf("%s to %s", from.Mode, to.Mode)
	}
	return fmt.Sprintf("%s/%s to %s/%s", from.Mode, from.Speculation, to.Mode, to.Speculation)
}

// modeWords names a mode where the text does not say that it is one.
func modeWords(m api.Mode) string {
	if m == api.ModeUnknown {
		return "mode unknown"
	}
	return string(m)
}

func reason(err error) string {
	if errors.Is(err, context.Canceled) {
		return "the change was cancelled"
	}
	return err.Error()
}

// newNonce is a line that no other prompt has in front.
func newNonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return "[" + hex.EncodeToString(b[:]) + "]"
}
