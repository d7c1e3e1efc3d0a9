package lane

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

// change is a mode change under way.
type change struct {
	api.ModeChange
	cancel context.CancelFunc
	resume bool // start the workload at the end
	actor  string

	progress func(message string) // receives the progress; nil disables the callback
	warnings []string             // what the driver reported as [workload.PhaseWarning]
	stays    bool                 // the mode stays, since only joined lanes change
	keep     bool                 // the caches are kept where the driver can
	inPlace  bool                 // the workload runs on during the change
	renew    bool                 // the change ends a sweep, and the driver may restart all pods
	group    []*change            // the changes of all lanes that change together, including this one
	lane     string
	// The result of the driver, valid when done is set.
	done bool
	cold bool  // the caches were emptied
	err  error // nil: the change succeeded
	// stuck is set if the lane could not be switched back after the change of another lane failed.
	// The lane is in the new mode.
	stuck error
}

// SetMode begins a mode change and returns at once; the snapshot shows its progress. A request for
// the mode in force changes nothing. With a driver that waits for the operator, the same request
// with Confirm confirms that the switch is done. A request with InForce declares which mode is in
// force, without a change.
//
// The caches are kept where the driver can. Where it can change the mode in place, the workload runs on, and a new step
// begins with the new mode; otherwise the workload stops before the change and starts after it.
//
// Joined lanes (see [Join]) change together. A request for the mode of
// another lane swaps the two. With any other mode, the other lanes keep theirs. If one lane fails,
// all are switched back.
//
// The error is an [api.ErrConflict] during another change, an [api.FieldError] for a mode that the
// driver does not offer, and an [api.ErrUnavailable] at the end of the process or while the driver
// does not know its modes.
func (l *Lane) SetMode(_ context.Context, actor string, req api.ModeRequest) (api.State, error) {
	if req.Confirm && req.InForce {
		return l.State(), api.Refuse("in_force", true, "leave it out with confirm, which completes a pending change")
	}
	if req.Confirm {
		return l.confirm(req)
	}
	if req.InForce {
		return l.do(func() error { return l.declare(actor, l.named(req)) })
	}
	err := l.beginChange(actor, l.named(req))
	l.notify()
	return l.State(), err
}

// named returns the way of serving that a request names, with the mode of an arm that the driver offers.
func (l *Lane) named(req api.ModeRequest) api.ModeState {
	return api.ModeState{Arm: req.Arm, Mode: req.Mode, Speculation: req.Speculation}.Resolve(l.opts.Driver.Offers())
}

// beginChange determines the modes of all lanes after a change to a mode, and begins the changes.
func (l *Lane) beginChange(actor string, to api.ModeState) error {
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
	return l.beginChanges(actor, wanted)
}

// SetModes changes the modes of the joined lanes, in the order of [Join], as [Lane.SetMode] does.
func (l *Lane) SetModes(actor string, wanted ...api.ModeState) error {
	err := func() error {
		defer l.lockAll()()
		for i, each := range l.lanes {
			if wanted[i] != each.mode {
				return l.beginChanges(actor, wanted)
			}
		}
		return l.checkFree()
	}()
	l.notify()
	return err
}

// beginChanges begins the change of each lane, if every lane can change. All locks are held.
func (l *Lane) beginChanges(actor string, wanted []api.ModeState) error {
	changes := make([]*change, len(l.lanes))
	resume := l.run != nil && l.phase == api.PhaseRunning
	for i, each := range l.lanes {
		if err := l.nameLane(each, each.checkJoint(wanted[i])); err != nil {
			return err
		}
		changes[i] = newChange(each, actor, wanted[i])
		changes[i].resume, changes[i].stays, changes[i].keep = resume, wanted[i] == each.mode, true
	}
	if resume && canChangeInPlace(changes, l.lanes) {
		l.startInPlace(changes)
		return nil
	}
	l.startChange(l.ctx, l.lanes, changes)
	return nil
}

// canChangeInPlace reports whether the drivers of all lanes can make their changes while turns are sent.
func canChangeInPlace(changes []*change, lanes []*Lane) bool {
	for i, c := range changes {
		inPlace := lanes[i].opts.Driver.Abilities().InPlace
		if !c.stays && (inPlace == nil || !inPlace(c.From, c.To)) {
			return false
		}
	}
	return true
}

// startInPlace begins changes of the joined lanes while their workloads run on. All locks are held.
func (l *Lane) startInPlace(changes []*change) {
	ctx, cancel := context.WithCancel(l.ctx)
	for i, each := range l.lanes {
		c := changes[i]
		c.group, c.cancel, c.inPlace = changes, cancel, true
		c.Phase, c.Message = "switching", fmt.Sprintf("switching to %s", c.To.Short())
		each.change = c
	}
	lanes := l.lanes
	l.runJoint(func() {
		defer cancel()
		l.changeModes(ctx, lanes, changes)
	})
}

// changes reports whether a change of the mode is in progress. The lock is held.
func (l *Lane) changes() bool {
	return l.phase == api.PhaseSwitching || l.change != nil && !l.change.Failed
}

// checkJoint returns the reason why a lane cannot take part in a joint change. A lane that stays in
// its mode does not need a driver that can switch. The lock is held.
func (l *Lane) checkJoint(to api.ModeState) error {
	if to == l.mode {
		return l.checkFree()
	}
	return l.checkChange(to)
}

// newChange returns a change of a lane from the mode in force. The lock is held.
func newChange(l *Lane, actor string, to api.ModeState) *change {
	return &change{
		ModeChange: api.ModeChange{
			From: l.mode, To: to, Phase: "stopping", Message: "stopping the workload",
			Started: time.Now(),
		},
		actor: actor, lane: l.opts.Name,
	}
}

// startChange begins changes of lanes, after everything that runs on the joined lanes has ended.
// The channel is closed at the end of the changes. All locks are held.
func (l *Lane) startChange(ctx context.Context, lanes []*Lane, changes []*change) (ended <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	now := time.Now()
	var runs []*run
	var conversations []<-chan struct{}
	for _, each := range l.lanes {
		conversations = append(conversations, each.stopSideConversations(l.stopReason())...)
		if each.phase == api.PhaseRunning {
			each.keepSeries(now)
			each.endStep(now)
			each.phase = api.PhaseDraining
		}
		if each.run != nil {
			runs = append(runs, each.run)
		}
	}
	for i, each := range lanes {
		changes[i].group = changes
		changes[i].cancel = cancel
		each.change = changes[i]
		each.phase = api.PhaseSwitching
	}
	done := make(chan struct{})
	l.runJoint(func() {
		defer close(done)
		defer cancel()
		for _, r := range runs {
			r.cancel()
		}
		for _, r := range runs {
			<-r.ended
		}
		for _, ended := range conversations {
			<-ended
		}
		l.changeModes(ctx, lanes, changes)
	})
	return done
}

// stopReason returns the reason that is shown for side conversations that end with a change. The
// lock is held.
func (l *Lane) stopReason() error {
	if l.lease != nil {
		return fmt.Errorf("a %s has begun", l.lease.noun())
	}
	return errors.New("the mode was changed")
}

// checkChange refuses a change to a mode that the lane cannot make now. The lock is held.
func (l *Lane) checkChange(to api.ModeState) error {
	if err := l.checkFree(); err != nil {
		return err
	}
	offers := l.opts.Driver.Offers()
	if len(offers) == 0 {
		return fmt.Errorf("%w: the cluster has not reported its modes yet; is it running?", api.ErrUnavailable)
	}
	return l.checkOffered(offers, to)
}

// CheckModes asks whether the lane could be switched to modes, where its driver can say so before any
// load. The error is an [api.ErrUnavailable].
func (l *Lane) CheckModes(ctx context.Context, modes []api.ModeState) error {
	check := l.opts.Driver.Abilities().Check
	if check == nil {
		return nil
	}
	if err := check(ctx, modes); err != nil {
		return fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	}
	return nil
}

// Serve reports whether all modes serve at this moment. It is false where the driver cannot ask them.
func (l *Lane) Serve(ctx context.Context, modes []api.ModeState) bool {
	check := l.opts.Driver.Abilities().Check
	return check != nil && check(ctx, modes) == nil
}

// checkFree refuses to change the mode during a change, while the lane is taken, or at the end of
// the process. The lock is held.
func (l *Lane) checkFree() error {
	if err := l.checkOpen(); err != nil {
		return err
	}
	if err := l.checkUntaken(); err != nil {
		return err
	}
	if l.changes() {
		return fmt.Errorf("%w: a change to %s is in progress; wait until it ends, or cancel it", api.ErrConflict,
			l.change.To.Short())
	}
	return nil
}

// checkOffered refuses a mode that is not among those offered.
func (l *Lane) checkOffered(offers []api.ModeState, to api.ModeState) error {
	if !slices.Contains(offers, to) {
		names := make([]string, len(offers))
		for i, o := range offers {
			names[i] = offerText(o)
		}
		field := "mode"
		if to.Arm != "" {
			field = "arm"
		}
		return api.Refuse(field, offerText(to),
			fmt.Sprintf("what the driver %s offers: %s", l.opts.Driver.Name(), strings.Join(names, ", ")))
	}
	return nil
}

// offerText names a mode with its speculation, or an arm.
func offerText(m api.ModeState) string {
	if m.Arm != "" {
		return m.Arm
	}
	return fmt.Sprintf("%s with speculation %s", m.Mode, m.Speculation)
}

// sourceOf returns the source of a mode that was configured or switched to. With a driver that asks
// the operator to switch, the source is the operator.
func (l *Lane) sourceOf(m api.ModeState) api.ModeSource {
	switch {
	case m.Mode == api.ModeUnknown:
		return ""
	case l.acceptsDeclaredMode():
		return api.ModeFromOperator
	}
	return api.ModeFromDriver
}

// acceptsDeclaredMode reports whether the driver cannot determine the mode, so that it is declared
// by an operator or inferred from the router's metrics.
func (l *Lane) acceptsDeclaredMode() bool { return l.opts.Driver.Abilities().Confirm != nil }

// declare sets the mode in force as the operator reports it. Earlier results stay under the mode
// that was known then. The lock is held.
func (l *Lane) declare(actor string, to api.ModeState) error {
	to.Speculation = cmp.Or(to.Speculation, l.mode.Speculation)
	if !l.acceptsDeclaredMode() {
		knows := "knows only what it switched to; the request then switches"
		if l.opts.Driver.Abilities().Current != nil {
			knows = "detects the mode"
		}
		return api.Refuse("in_force", true, fmt.Sprintf("leave it out: the driver %s %s", l.opts.Driver.Name(), knows))
	}
	if err := l.checkFree(); err != nil {
		return err
	}
	if to.Arm != "" || to.Mode != api.ModeUnknown {
		if err := l.checkOffered(l.opts.Driver.Offers(), to); err != nil {
			return err
		}
	}
	byKV := l.opts.Cluster().RoutesByKV
	if byKV != nil && to.Arm == "" && to.Mode != api.ModeUnknown && *byKV != (to.Mode == api.ModeKV) {
		allowed := "kv; the router's metrics show KV-aware routing in the last 60 s"
		if !*byKV {
			allowed = "a mode other than kv; the router's metrics show no KV-aware routing in the last 60 s"
		}
		return api.Refuse("mode", to.Mode, allowed)
	}
	text := transition(l.mode, to) + ": reported by the operator"
	if !to.Known() {
		text = "Mode unknown: reported by the operator"
	}
	switch {
	case to != l.mode:
		l.inNewStep(leadSwitched, func() { l.mode, l.change = to, nil })
		l.modeChanged(to)
	case l.modeFrom == api.ModeFromOperator:
		return nil
	}
	l.modeFrom = api.ModeFromOperator
	l.event(api.EventModeChange, actor, text)
	return nil
}

// confirm passes the operator's confirmation to the driver that waits for it. This is the lane's own
// driver, or that of a joined lane, whose instructions the lane shows.
func (l *Lane) confirm(req api.ModeRequest) (api.State, error) {
	l.mu.Lock()
	c := l.change
	to := l.named(req)
	waiting := l.phase == api.PhaseSwitching && c.To.Mode == to.Mode && c.To.Arm == to.Arm
	l.mu.Unlock()
	err := fmt.Errorf("%w: no change to %s is waiting for confirmation", api.ErrConflict, l.named(req).Short())
	if !waiting {
		return l.State(), err
	}
	for _, each := range append([]*Lane{l}, l.others()...) {
		confirm := each.opts.Driver.Abilities().Confirm
		if confirm == nil {
			continue
		}
		if err = confirm(); err == nil {
			break
		}
	}
	return l.State(), err
}

// CancelMode cancels the mode change in progress. The former mode stays in force. It returns
// [api.ErrConflict] if no change is in progress, or if the lane is taken.
func (l *Lane) CancelMode(_ context.Context, actor string) (api.State, error) {
	l.mu.Lock()
	c, switching, taken := l.change, l.changes(), l.checkUntaken()
	l.mu.Unlock()
	if !switching {
		return l.State(), fmt.Errorf("%w: no mode change is in progress", api.ErrConflict)
	}
	if taken != nil {
		return l.State(), taken
	}
	c.cancel()
	l.event(api.EventModeChange, actor, fmt.Sprintf("cancelled the change to %s", c.To.Short()))
	return l.State(), nil
}

// changeModes changes lanes whose workloads have stopped. If one of them fails, the others are
// switched back.
func (l *Lane) changeModes(ctx context.Context, lanes []*Lane, changes []*change) {
	concurrently(len(lanes), func(i int) { lanes[i].switchMode(ctx, changes[i]) })
	if l.ctx.Err() != nil {
		for _, c := range changes {
			c.err = l.ctx.Err()
		}
		return
	}
	if i := slices.IndexFunc(changes, func(c *change) bool { return c.err != nil }); i >= 0 {
		failed := changes[i]
		cause := fmt.Errorf("lane %s: %s", failed.lane, reason(failed.err))
		concurrently(len(lanes), func(i int) { lanes[i].switchBack(changes[i], cause) })
	}
	l.finish(lanes, changes)
}

// switchMode has the driver make the change, waits for it and sets c.done, c.cold and c.err, the driver's error. If
// c.stays is set, there is nothing to switch, and the change succeeds at once. If From and To are equal, the driver
// only makes the caches cold. Afterwards c shows the progress of a change of its group that is not done yet. It locks
// the joined lanes, so the caller must hold no lane's lock.
func (l *Lane) switchMode(ctx context.Context, c *change) {
	var cold bool
	var err error
	if !c.stays {
		doing := fmt.Sprintf("switching to %s", c.To.Short())
		if c.From == c.To {
			doing = "making the caches cold"
		}
		l.report(c, "switching", doing)
		cold, err = l.drive(ctx, c, c.From, c.To)
	}
	defer l.lockAll()()
	c.done, c.cold, c.err = true, cold, err
	for _, other := range c.group {
		if !other.done {
			c.mirror(other)
		}
	}
}

// drive has the driver change the mode, with the caches kept where c keeps them.
func (l *Lane) drive(ctx context.Context, c *change, from, to api.ModeState) (cold bool, err error) {
	report := func(phase, message string) { l.report(c, phase, message) }
	if warm := l.opts.Driver.Abilities().SwitchWarm; warm != nil && c.keep {
		return warm(ctx, from, to, report)
	}
	if renew := l.opts.Driver.Abilities().Renew; renew != nil && c.renew {
		return renew(ctx, from, to, report)
	}
	return l.opts.Driver.Switch(ctx, from, to, report)
}

// switchBack reverts a change that succeeded, because that of another lane failed with cause.
func (l *Lane) switchBack(c *change, cause error) {
	if c.err != nil {
		return
	}
	if c.From == c.To {
		c.err = cause
		return
	}
	l.report(c, "rolling_back", fmt.Sprintf("switching back to %s: %v", c.From.Short(), cause))
	if _, err := l.drive(l.ctx, c, c.To, c.From); err != nil {
		c.stuck = fmt.Errorf("%w; switching back to %s also failed: %w", cause, c.From.Short(), err)
		return
	}
	c.err = cause
}

// mirror shows the progress of another lane's change, which c waits for. All locks are held.
func (c *change) mirror(other *change) {
	c.Phase, c.Message = other.Phase, fmt.Sprintf("lane %s: %s", other.lane, other.Message)
}

// report shows the progress of a change, also on lanes that wait for it.
func (l *Lane) report(c *change, phase, message string) {
	unlock := l.lockAll()
	switch phase {
	case workload.PhaseOutput:
		l.event(api.EventModeChange, l.opts.Driver.Name(), message)
		phase = c.Phase
	case workload.PhaseWarning:
		l.eventAt(slog.LevelWarn, api.EventModeChange, l.opts.Driver.Name(), message)
		c.warnings = append(c.warnings, message)
		phase = c.Phase
	case workload.PhaseWaiting:
		l.event(api.EventModeChange, l.opts.Driver.Name(), message+" "+l.confirmation(c))
	}
	c.Phase, c.Message = phase, message
	for _, other := range c.group {
		if other.done && !c.done {
			other.mirror(c)
		}
	}
	unlock()
	if c.progress != nil {
		c.progress(message)
	}
	l.notify()
}

// confirmation names what confirms a change that waits for the operator.
func (l *Lane) confirmation(c *change) string {
	req := api.ModeRequest{Arm: c.To.Arm, Confirm: true}
	if req.Arm == "" {
		req.Mode = c.To.Mode
	}
	body, _ := json.Marshal(req) // a request has no value that JSON lacks
	return fmt.Sprintf("The page or PUT /api/v1/cluster/mode?lane=%s with %s confirms it.", l.opts.Name, body)
}

// finish ends the change of lanes, and resumes their workloads.
func (l *Lane) finish(lanes []*Lane, changes []*change) {
	unlock := l.lockAll()
	for i, each := range lanes {
		each.finishChange(changes[i])
	}
	if changes[0].resume && !changes[0].inPlace {
		l.beginAll(changes[0].actor)
	}
	unlock()
	for i, each := range lanes {
		if mode, _ := changes[i].outcome(); changes[i].err == nil || mode != changes[i].From {
			each.modeChanged(mode)
		}
	}
	l.notify()
}

// outcome returns the mode in force after the change, and why it is not the wanted one; nil: it is.
func (c *change) outcome() (in api.ModeState, failure error) {
	in, failure = c.To, c.stuck
	if c.err != nil {
		in, failure = c.From, c.err
	}
	if errors.Is(failure, workload.ErrModeUnknown) {
		in = api.ModeState{Mode: api.ModeUnknown, Speculation: c.From.Speculation}
	}
	return in, failure
}

// finishChange takes the mode in force after a change. The lock is held.
func (l *Lane) finishChange(c *change) {
	text := transition(c.From, c.To)
	mode, failure := c.outcome()
	l.change = nil
	if c.err == nil || mode != c.From {
		caches := l.takeMode(c, mode)
		if failure == nil {
			text += caches
		}
	}
	level, further := slog.LevelInfo, []any(nil)
	if c.err != nil {
		text += ": abandoned"
	}
	if failure != nil {
		level, further = slog.LevelWarn, []any{"error", failure}
		if c.stuck != nil {
			level = slog.LevelError
		}
		if c.From.Known() && !mode.Known() {
			level = slog.LevelError
			text += "; mode unknown"
		}
		l.change = c
		c.Phase, c.Failed = "failed", true
		c.Message = reason(failure)
		if mode.Known() {
			c.Message = fmt.Sprintf("still in %s: %s", mode.Short(), c.Message)
		}
	}
	if !c.inPlace {
		l.phase = api.PhaseStopped
	}
	if c.From != c.To || mode != c.From {
		l.eventAt(level, api.EventModeChange, c.actor, text, further...)
	}
}

// takeMode puts the mode of a change in force, and returns what the change did to the caches, as a clause. The lock is
// held.
func (l *Lane) takeMode(c *change, mode api.ModeState) string {
	take := func() {
		l.mode, l.modeFrom = mode, l.sourceOf(mode)
		l.caches = api.CachesKept
		if c.cold || !c.keep {
			l.caches = api.CachesCold
		}
	}
	if !c.inPlace {
		take()
	} else if mode != l.mode {
		l.inNewStep(leadSwitched, take)
	}
	if !c.cold && !c.keep {
		l.nonce = newNonce()
	}
	if c.cold || !c.keep {
		l.shadow.Reset() // the caches or the prefixes are cold from here on
		return ", cold caches"
	}
	return ", caches kept"
}

func (l *Lane) modeChanged(to api.ModeState) {
	if l.opts.ModeChanged != nil {
		l.opts.ModeChanged(to)
	}
}

// transition names a change, with the speculations if they change, too.
func transition(from, to api.ModeState) string {
	if from.Speculation == to.Speculation {
		return fmt.Sprintf("%s to %s", from.Short(), to.Short())
	}
	return fmt.Sprintf("%s to %s", from.Name(), to.Name())
}

func reason(err error) string {
	if errors.Is(err, context.Canceled) && !errors.Is(err, workload.ErrModeUnknown) {
		return "the change was cancelled"
	}
	return err.Error()
}

// newNonce returns a line that no other prompt begins with.
func newNonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return "[" + hex.EncodeToString(b[:]) + "]"
}
