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
	stays    bool                 // the mode stays, since another lane's changes: the prefixes get cold alone
	with     []*change            // those of all lanes that change together, this one among them
	lane     string
	// Once the driver is done:
	done bool
	cold bool  // the caches were emptied
	err  error // why it was given up
	// stuck is why the mode before could not be brought back although the change was
	// given up: the lane is in the new one.
	stuck error
}

// SetMode begins a mode change and returns at once; the snapshot shows its
// progress. Asking for the mode in force changes nothing. With a driver that
// waits for the operator, the same request with Confirm is the operator's word; one
// with InForce says which mode is in force without any change.
// Lanes that are steered as one (see [Join]) change together, and begin anew together: who
// asks for the mode that another lane is in swaps the two, and with any other mode the
// other lanes keep theirs. Where one of them fails, all go back.
// Another change meanwhile gives [api.ErrConflict], a mode that the driver does
// not offer an [api.FieldError], and [api.ErrUnavailable] comes at the end of the
// process or where the driver knows no modes yet.
func (l *Lane) SetMode(_ context.Context, by string, req api.ModeRequest) (api.State, error) {
	if req.Confirm && req.InForce {
		return l.State(), &api.FieldError{
			Field: "in_force", Value: "true",
			Allowed: "leave it out with confirm, which completes a pending change",
		}
	}
	if req.Confirm {
		return l.confirm(req)
	}
	if req.InForce {
		return l.do(func() error { return l.declare(by, api.ModeState{Mode: req.Mode, Speculation: req.Speculation}) })
	}
	err := l.beginChange(by, api.ModeState{Mode: req.Mode, Speculation: req.Speculation})
	l.notify()
	return l.State(), err
}

// beginChange hands a change that every lane can make to changeModes.
func (l *Lane) beginChange(by string, to api.ModeState) error {
	defer l.lockAll()()
	to.Speculation = cmp.Or(to.Speculation, l.mode.Speculation)
	if err := l.checkChange(to); err != nil || to == l.mode {
		return err
	}
	wanted := make([]api.ModeState, len(l.lanes))
	for i, each := range l.lanes {
		switch {
		case each == l:
			wanted[i] = to
		case each.mode == to:
			wanted[i] = l.mode
		default:
			wanted[i] = each.mode
		}
	}
	return l.beginChanges(by, wanted)
}

// SetModes changes the modes of the lanes that are steered as one, in the order of [Join],
// as [Lane.SetMode] does.
func (l *Lane) SetModes(by string, wanted ...api.ModeState) error {
	err := func() error {
		defer l.lockAll()()
		for i, each := range l.lanes {
			if wanted[i] != each.mode {
				return l.beginChanges(by, wanted)
			}
		}
		return l.free()
	}()
	l.notify()
	return err
}

// beginChanges changes each lane, if every one can. All locks are held.
func (l *Lane) beginChanges(by string, wanted []api.ModeState) error {
	changes, resume := make([]*change, len(l.lanes)), l.run != nil && l.phase == api.PhaseRunning
	for i, each := range l.lanes {
		if err := l.of(each, each.checkJoint(wanted[i])); err != nil {
			return err
		}
		changes[i] = newChange(each, by, wanted[i])
		changes[i].resume, changes[i].stays = resume, wanted[i] == each.mode
	}
	l.startChange(l.ctx, l.lanes, changes)
	return nil
}

// checkJoint says why a lane cannot change with another one; to a mode that it is in, it
// need not be able to switch. The lock is held.
func (l *Lane) checkJoint(to api.ModeState) error {
	if to == l.mode {
		return l.free()
	}
	return l.checkChange(to)
}

func newChange(l *Lane, by string, to api.ModeState) *change {
	return &change{
		ModeChange: api.ModeChange{
			From: l.mode, To: to, Phase: "stopping", Message: "stopping the workload",
			Started: time.Now(),
		},
		by: by, lane: l.opts.Name,
	}
}

// startChange ends the steps of lanes and has them changed, and gives what is closed at the
// end. Whatever else runs of the lanes that are steered as one ends first. All locks are held.
func (l *Lane) startChange(ctx context.Context, lanes []*Lane, changes []*change) (ended <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	now := time.Now()
	var runs []*run
	var asides []<-chan struct{}
	for _, each := range l.lanes {
		asides = append(asides, each.stopAsides(l.intrusion())...)
		if each.phase == api.PhaseRunning {
			each.endStep(now)
			each.phase = api.PhaseDraining
		}
		if each.run != nil {
			runs = append(runs, each.run)
		}
	}
	for i, each := range lanes {
		changes[i].with, changes[i].cancel = changes, cancel
		each.change, each.phase = changes[i], api.PhaseSwitching
	}
	done := make(chan struct{})
	l.goAll(func() {
		defer close(done)
		defer cancel()
		for _, r := range runs {
			r.cancel()
		}
		for _, r := range runs {
			<-r.ended
		}
		for _, aside := range asides {
			<-aside
		}
		l.changeModes(ctx, lanes, changes)
	})
	return done
}

// intrusion is why conversations beside the workload cannot go on while the lane changes. The
// lock is held.
func (l *Lane) intrusion() error {
	if l.lease != nil {
		return fmt.Errorf("a %s has begun", l.lease.noun())
	}
	return errors.New("the mode was changed")
}

func (l *Lane) checkChange(to api.ModeState) error {
	if err := l.free(); err != nil {
		return err
	}
	offers := l.opts.Driver.Offers()
	if len(offers) == 0 {
		return fmt.Errorf("%w: the cluster has not reported its modes yet; is it running?", api.ErrUnavailable)
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
		return fmt.Errorf("%w: a change to %s is in progress; wait until it ends, or cancel it", api.ErrConflict,
			l.change.To.Mode.Name())
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
		return &api.FieldError{
			Field: "in_force", Value: "true",
			Allowed: fmt.Sprintf("leave it out: the driver %s detects the mode", l.opts.Driver.Name()),
		}
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
		allowed := "kv; the router's metrics show KV-aware routing in the last 60 s"
		if !*byKV {
			allowed = "a mode other than kv; the router's metrics show no KV-aware routing in the last 60 s"
		}
		return &api.FieldError{Field: "mode", Value: string(to.Mode), Allowed: allowed}
	}
	text := transition(l.mode, to) + ": reported by the operator"
	if to.Mode == api.ModeUnknown {
		text = "Mode unknown: reported by the operator"
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

// confirm hands the operator's word to the driver that waits for it: to the lane's own
// first, then to those of the lanes that change with it, whose instructions the lane shows
// by then.
func (l *Lane) confirm(req api.ModeRequest) (api.State, error) {
	l.mu.Lock()
	c := l.change
	waiting := l.phase == api.PhaseSwitching && c.To.Mode == req.Mode
	l.mu.Unlock()
	err := fmt.Errorf("%w: no change to %s is waiting for confirmation", api.ErrConflict, req.Mode.Name())
	if !waiting {
		return l.State(), err
	}
	for _, each := range append([]*Lane{l}, l.others()...) {
		driver, ok := each.opts.Driver.(workload.Confirmer)
		if !ok {
			continue
		}
		if err = driver.Confirm(); err == nil {
			break
		}
	}
	return l.State(), err
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
	l.event(api.EventModeChange, by, fmt.Sprintf("cancelled the change to %s", c.To.Mode.Name()))
	return l.State(), nil
}

// changeModes changes lanes whose workloads have stopped, together: where one of them fails,
// the others go back.
func (l *Lane) changeModes(ctx context.Context, lanes []*Lane, changes []*change) {
	atOnce(len(lanes), func(i int) { lanes[i].switchMode(ctx, changes[i]) })
	if l.ctx.Err() != nil {
		for _, c := range changes {
			c.err = l.ctx.Err()
		}
		return
	}
	if i := slices.IndexFunc(changes, func(c *change) bool { return c.err != nil }); i >= 0 {
		failed := changes[i]
		cause := fmt.Errorf("lane %s: %s", failed.lane, reason(failed.err))
		atOnce(len(lanes), func(i int) { lanes[i].switchBack(changes[i], cause) })
	}
	l.finish(lanes, changes)
}

// switchMode has the driver make a change.
func (l *Lane) switchMode(ctx context.Context, c *change) {
	var cold bool
	var err error
	if !c.stays {
		doing := fmt.Sprintf("switching to %s", c.To.Mode.Name())
		if c.From == c.To {
			doing = "making the caches cold"
		}
		l.report(c, "switching", doing)
		cold, err = l.opts.Driver.Switch(ctx, c.From, c.To, func(phase, message string) { l.report(c, phase, message) })
	}
	defer l.lockAll()()
	c.done, c.cold, c.err = true, cold, err
	for _, other := range c.with {
		if !other.done {
			c.shows(other)
		}
	}
}

// switchBack gives up a change that went well, because another lane's did not.
func (l *Lane) switchBack(c *change, cause error) {
	if c.err != nil {
		return
	}
	if c.From == c.To {
		c.err = cause
		return
	}
	l.report(c, "rolling_back", fmt.Sprintf("switching back to %s: %v", c.From.Mode.Name(), cause))
	_, err := l.opts.Driver.Switch(l.ctx, c.To, c.From, func(phase, message string) { l.report(c, phase, message) })
	if err != nil {
		c.stuck = fmt.Errorf("%w; switching back to %s also failed: %s", cause, c.From.Mode.Name(), reason(err))
		return
	}
	c.err = cause
}

// shows lets a lane that is done tell what it waits for. All locks are held.
func (c *change) shows(other *change) {
	c.Phase, c.Message = other.Phase, fmt.Sprintf("lane %s: %s", other.lane, other.Message)
}

func (l *Lane) report(c *change, phase, message string) {
	unlock := l.lockAll()
	c.Phase, c.Message = phase, message
	for _, other := range c.with {
		if other.done && !c.done {
			other.shows(c)
		}
	}
	unlock()
	if c.progress != nil {
		c.progress(message)
	}
	l.notify()
}

// finish ends a change of lanes, and resumes their workloads.
func (l *Lane) finish(lanes []*Lane, changes []*change) {
	unlock := l.lockAll()
	for i, each := range lanes {
		each.finishChange(changes[i])
	}
	if changes[0].resume {
		l.beginAll(changes[0].by)
	}
	unlock()
	for i, each := range lanes {
		if c := changes[i]; c.err == nil {
			each.modeChanged(c.To)
		}
	}
	l.notify()
}

// finishChange takes the new mode, or keeps the old one where the switch failed. The lock is
// held.
func (l *Lane) finishChange(c *change) {
	text := transition(c.From, c.To)
	if c.err == nil {
		l.mode, l.modeFrom, l.change = c.To, l.sourceOf(c.To), nil
		if !c.cold {
			l.nonce = newNonce()
		}
		l.shadow.Reset() // what comes finds nothing of what was before
	} else {
		text += ": abandoned"
		c.fail(c.From, c.err)
	}
	if c.stuck != nil {
		l.change = c
		c.fail(c.To, c.stuck)
	}
	l.phase = api.PhaseStopped
	if c.From != c.To {
		l.event(api.EventModeChange, c.by, text)
	}
}

// fail says which mode is in force, and why not the other one.
func (c *change) fail(in api.ModeState, err error) {
	c.Phase, c.Failed = "failed", true
	c.Message = fmt.Sprintf("still in %s: %s", in.Mode.Name(), reason(err))
}

func (l *Lane) modeChanged(to api.ModeState) {
	if l.opts.ModeChanged != nil {
		l.opts.ModeChanged(to)
	}
}

// transition names a change, with the speculations where that changes, too.
func transition(from, to api.ModeState) string {
	if from.Speculation == to.Speculation {
		return fmt.Sprintf("%s to %s", from.Mode.Name(), to.Mode.Name())
	}
	return fmt.Sprintf("%s to %s", from.Name(), to.Name())
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
