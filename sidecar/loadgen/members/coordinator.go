package members

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/stats"
)

// Store takes what members hand over; [kvbooth/sidecar/loadgen/store.Store] is one.
type Store interface {
	SaveConversation(api.Conversation)
	SaveNewConversation(api.Conversation)
	SaveTurn(api.Turn)
	LostTurns() int64
	Flush(context.Context) error
	SaveEvent(context.Context, api.Event) (api.Event, error)
	Steps(ctx context.Context, lane string) ([]api.StepRecord, error)
	TurnsFrom(ctx context.Context, lane string, step int64, add func(*api.Turn) error) error
}

// Options are what a coordinator is made of.
type Options struct {
	Access  Access
	Name    string // of this load generator, for those that are refused beside it
	Version string // of the program: a member of another one is refused
	// Owner names who alone can be this coordinator, such as the data directory that it has
	// locked: after a crash the next one of that owner waits for no lease to end.
	Owner string
	// FilesEach is how many open files a conversation needs, at least 1: on each lane its
	// connection to the target, and the one to the model that asks its questions.
	FilesEach int
	// Noticeable says whether a lag is so in what the lanes measure; nil: it never is.
	// It is called with the coordinator's lock held.
	Noticeable func(*stats.Lag) bool
	Store      Store
	Log        *slog.Logger
}

// Coordinator divides the runs of lanes among members. It is safe for concurrent use.
type Coordinator struct {
	opts  Options
	bus   *bus
	claim *claim
	log   *slog.Logger

	wg sync.WaitGroup // of what is told to members, and of events

	takesOver bool // there was an order in force

	ordering sync.Mutex // held while an order is written: before mu

	mu      sync.Mutex
	closed  bool // nothing more is told
	members map[string]*member
	runs    map[string]*remote // by lane
	found   map[string]order   // orders of a process before this one, by lane
	hears   time.Time          // since when it hears of members; zero: it has not yet
	until   <-chan struct{}    // closed when it no longer does
	knows   time.Time          // since when it hears of them and holds its claim; zero: it does not at the moment
	left    map[string]bool    // lanes of which members may hold a run that has ended here
	lags    stats.LagHistory   // of members that held conversations
}

// member is one as the coordinator knows it.
type member struct {
	presence
	came    time.Time
	heard   time.Time // of it last; zero: its lease has ended
	refused string    // why it is not taken
	expired time.Time // when its lease ended for the coordinator, which is final; zero: it holds
	late    lateness
	lags    stats.LagHistory
	clock   clock
}

// lateness says whether a member has been late for so long that others take its share.
type lateness struct {
	since, fine time.Time // zero: it is not
	is          bool
}

// A member is late when its lag has been noticeable for lateAfter, which is longer than what its
// lag is of: a stutter passes. It is in time again when it has not been so for fineAfter.
const (
	lateAfter = 15 * time.Second
	fineAfter = 30 * time.Second
)

// note takes in whether the lag is noticeable, and says whether the member is late.
func (l *lateness) note(now time.Time, noticeable bool) bool {
	if noticeable {
		l.fine = time.Time{}
		if l.since.IsZero() {
			l.since = now
		}
		l.is = l.is || now.Sub(l.since) >= lateAfter
		return l.is
	}
	l.since = time.Time{}
	if l.fine.IsZero() {
		l.fine = now
	}
	l.is = l.is && now.Sub(l.fine) < fineAfter
	return l.is
}

// Open connects to the server and becomes the one coordinator of the fleet. The error is an
// [api.FieldError] of the access, [ErrCoordinated], or the server's.
func Open(ctx context.Context, o Options) (*Coordinator, error) {
	b, err := dial(ctx, o.Access, "kvbooth coordinator", o.Log)
	if err != nil {
		return nil, err
	}
	c := &Coordinator{
		opts:    o,
		bus:     b,
		claim:   newClaim(b, o),
		log:     o.Log,
		members: map[string]*member{},
		runs:    map[string]*remote{},
		found:   map[string]order{},
		left:    map[string]bool{},
	}
	if err := c.claim.take(ctx); err != nil {
		c.Close()
		return nil, err
	}
	for deadline := time.Now().Add(askFor); ; {
		err := c.find(ctx)
		if err == nil {
			return c, nil
		}
		if time.Now().After(deadline) || !pause(ctx, 100*time.Millisecond) {
			c.Close()
			return nil, fmt.Errorf("what members hold cannot be read: %w", err)
		}
	}
}

// find reads the orders that are in force. What cannot be read is an error: whoever does not know
// of a run ends it.
func (c *Coordinator) find(ctx context.Context) error {
	ctx, cancel := c.bus.within(ctx, askFor)
	defer cancel()
	return c.bus.each(ctx, c.bus.orders, "order.*", func(_ string, value []byte) {
		var o order
		if json.Unmarshal(value, &o) == nil && o.Run != "" {
			c.found[o.Lane], c.takesOver = o, true
		}
	})
}

// Close gives up the claim and ends the connection. [Coordinator.Run] ends with it; a second call
// does nothing.
func (c *Coordinator) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wg.Wait()
	c.claim.release()
	c.bus.close()
}

// Run listens to members until ctx ends, and closes the coordinator. It is called once, before any
// run is begun. The error is [ErrCoordinated]: another one has the members by now.
func (c *Coordinator) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := c.claim.keep(ctx); err != nil {
			cancel(err)
		}
	})
	wg.Go(func() { c.bus.follow(ctx, c.bus.leases, "*", c.hear, c.listens) })
	wg.Go(func() { c.takeTurns(ctx) })
	wg.Go(func() { c.readClocks(ctx) })
	wg.Go(func() { c.endLeft(ctx) })
	wg.Wait()
	c.Close()
	if err := context.Cause(ctx); errors.Is(err, ErrCoordinated) {
		return err
	}
	return nil
}

// listens notes that every member whose lease holds has been heard.
func (c *Coordinator) listens(until <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hears, c.until = time.Now(), until
	c.wake()
}

// lostMember is what a member is told whose share others have already: that it has no lease.
const lostMember = "lost"

// writeRefusal writes to a member that it is not taken, and why.
func (c *Coordinator) writeRefusal(id, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), askFor)
	defer cancel()
	if _, err := c.bus.orders.Put(ctx, "refusal."+id, []byte(why)); err != nil {
		c.log.Debug("a member could not be instructed", "lease", id, "problem", err)
	}
}

// hear takes in what a member says of itself.
func (c *Coordinator) hear(key string, value []byte) {
	if key == coordinatorKey {
		return
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[key]
	if value == nil { // its lease ran out
		if m != nil {
			m.heard = time.Time{}
		}
		c.wake()
		return
	}
	var p presence
	if json.Unmarshal(value, &p) != nil {
		return
	}
	if m == nil {
		m = c.meet(key, &p)
	}
	if m.isExpired() { // it reports too late: others have its share
		c.goes(func() { c.writeRefusal(key, lostMember) })
		return
	}
	if m.refused != "" {
		c.goes(func() { c.writeRefusal(key, m.refused) })
	}
	m.presence, m.heard = p, now
	if p.Gone {
		m.heard = time.Time{}
	}
	m.lags.Add(now, &p.Lag)
	switch was := m.late.is; {
	case m.refused != "":
	case m.late.note(now, c.noticeable(m, now)) && !was:
		c.event("%s is late: %s", p.Name, p.Health.Reason)
	case was && !m.late.is:
		c.event("%s is on time again", p.Name)
	}
	if p.active() > 0 {
		c.lags.Add(now, &p.Lag)
	}
	c.wake()
}

// meet notes a member that is new. The lock is held.
func (c *Coordinator) meet(id string, p *presence) *member {
	m := &member{came: time.Now(), lags: stats.LagHistory{Kept: int(lagOf/time.Second) + 2}}
	c.members[id] = m
	if p.Version == c.opts.Version {
		if !c.takesOver || !c.hears.IsZero() { // else it was there already
			c.event("%s has joined", p.Name)
		}
		return m
	}
	m.refused = fmt.Sprintf(
		"it is version %s, and the coordinator is %s: start the same version",
		p.Version,
		c.opts.Version,
	)
	c.event("%s is rejected: %s", p.Name, m.refused)
	return m
}

// goes does what has to wait for somebody. The lock is held.
func (c *Coordinator) goes(job func()) {
	if !c.closed {
		c.wg.Go(job)
	}
}

// event keeps what has happened to a member. The lock is held.
func (c *Coordinator) event(format string, args ...any) {
	e := api.Event{Time: time.Now(), Kind: api.EventMember, By: "load generator", Text: fmt.Sprintf(format, args...)}
	c.log.Info(e.Text, "event", e.Kind)
	c.goes(func() {
		ctx, cancel := context.WithTimeout(context.Background(), askFor)
		defer cancel()
		if _, err := c.opts.Store.SaveEvent(ctx, e); err != nil {
			c.log.Warn("an event was dropped", "error", err, "text", e.Text)
		}
	})
}

// wake has every run look at what members said. The lock is held.
func (c *Coordinator) wake() {
	for _, r := range c.runs {
		r.wake()
	}
}

// alive are the members whose lease holds, by their ids; false where it is not known, because
// the server was lost or nobody has been heard yet.
func (c *Coordinator) alive(now time.Time) ([]*member, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hears.IsZero() || isClosed(c.until) || !c.bus.conn.IsConnected() || !c.claim.holds() {
		c.knows = time.Time{}
		return nil, false
	}
	if c.knows.IsZero() {
		c.knows = now
	}
	return c.unexpired(now), true
}

// unexpired returns the members whose lease holds, by their ids. The lock is held.
func (c *Coordinator) unexpired(now time.Time) (all []*member) {
	for id, m := range c.members {
		// A member is not lost because the coordinator was deaf.
		if silent := min(
			now.Sub(m.heard),
			now.Sub(c.hears),
			now.Sub(c.knows),
		); !m.isExpired() &&
			(silent >= leaseSpan || m.heard.IsZero()) {
			c.expire(m, now)
		}
		switch {
		case !m.isExpired() && m.refused == "":
			all = append(all, m)
		case m.isExpired() && now.Sub(m.expired) > time.Hour: // no message of it is under way any more
			delete(c.members, id)
		}
	}
	slices.SortFunc(all, func(a, b *member) int { return strings.Compare(a.ID, b.ID) })
	return all
}

func (m *member) isExpired() bool { return !m.expired.IsZero() }

// expire notes that a member's lease has ended. The lock is held.
func (c *Coordinator) expire(m *member, now time.Time) {
	m.expired = now
	switch {
	case m.refused != "":
	case m.Leaves:
		c.event("%s has left", m.Name)
	default:
		c.event("%s is lost: its conversations are cancelled and replaced on other members", m.Name)
	}
}

// expireHolder notes the same of a holder of a share that may never have reported to this
// process: a late report must not make it a new member, since others have its share.
func (c *Coordinator) expireHolder(id string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[id]
	if m == nil {
		m = &member{presence: presence{ID: id}, came: now}
		c.members[id] = m
	}
	if !m.isExpired() {
		m.expired = now
	}
}

// takeTurns stores the turns that members hand over, until ctx ends. A turn is acknowledged
// when it is committed; one that comes again is the same row.
func (c *Coordinator) takeTurns(ctx context.Context) {
	for ctx.Err() == nil {
		if err := c.takeSome(ctx); err != nil && ctx.Err() == nil {
			c.log.Debug("turns are not accepted at the moment", "problem", err)
			pause(ctx, 100*time.Millisecond)
		}
	}
}

const (
	turnsConsumer = "store"
	turnsAgain    = 5 * time.Second // a turn comes again that was not stored by then, such as by a coordinator that was killed

	turnsAtOnce = 500
	takeWithin  = 200 * time.Millisecond
)

func (c *Coordinator) takeSome(ctx context.Context) error {
	again := c.bus.again()
	asked, cancel := c.bus.within(ctx, askFor)
	consumer, err := c.bus.turns.CreateOrUpdateConsumer(asked, jetstream.ConsumerConfig{
		Durable: turnsConsumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: turnsAgain, MaxAckPending: 20_000,
	})
	cancel()
	if err != nil {
		return err
	}
	for ctx.Err() == nil && !isClosed(again) {
		batch, err := consumer.Fetch(turnsAtOnce, jetstream.FetchMaxWait(takeWithin))
		if err != nil {
			return err
		}
		var got []jetstream.Msg
		lost := c.opts.Store.LostTurns()
		for m := range batch.Messages() {
			var h handed
			if json.Unmarshal(m.Data(), &h) != nil {
				_ = m.Term()
				continue
			}
			c.take(m.Headers().Get(memberHeader), &h)
			got = append(got, m)
		}
		if len(got) == 0 {
			continue
		}
		if err := c.opts.Store.Flush(ctx); err != nil {
			return err
		}
		if c.opts.Store.LostTurns() != lost {
			continue // they come again
		}
		for _, m := range got {
			_ = m.Ack()
		}
	}
	return nil
}

// take has a turn stored, and its conversation where no report has told of that yet. Times are
// brought to the coordinator's clock.
func (c *Coordinator) take(id string, h *handed) {
	ahead, _ := c.ahead(id)
	h.Turn.Started, h.Turn.Ended = h.Turn.Started.Add(-ahead), h.Turn.Ended.Add(-ahead)
	h.Conversation.Started = h.Conversation.Started.Add(-ahead)
	c.mu.Lock()
	r := c.runs[h.Conversation.Lane]
	c.mu.Unlock()
	if r == nil || !r.stored(id, h) {
		h.Conversation.Status, h.Conversation.Ended = api.ConversationCancelled, &h.Turn.Ended
	}
	c.opts.Store.SaveNewConversation(h.Conversation)
	c.opts.Store.SaveTurn(h.Turn)
}

// Found is the run that members hold of a lane, where a process before this one left one for the
// same target and the same follow-ups. Whoever does not take it over ends it by
// [Coordinator.Discard].
func (c *Coordinator) Found(name string, target TargetOptions, asker FollowupOptions) (lane.ResumedRun, bool) {
	o, ok := c.found[name]
	if !ok || o.End != goesOn || o.Taken {
		return lane.ResumedRun{}, false
	}
	if target.Endpoint != nil { // it goes to the URL of its mode
		target.URL = o.Target.URL
	}
	if !sameJSON(target, o.Target) || !sameJSON(asker, o.Followup) {
		return lane.ResumedRun{}, false
	}
	return lane.ResumedRun{Began: o.Began, Task: lane.Task{
		Lane:     o.Lane,
		Run:      o.Run,
		Seed:     o.Seed,
		Opened:   o.Opened,
		Midway:   o.Midway,
		Nonce:    o.Nonce,
		Settings: o.Settings,
		Step:     o.Step,
	}}, true
}

// sameJSON says whether two values are the same to whoever reads them.
func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Discard ends what members hold of a lane, and waits until none of them does: whatever comes next
// may be another mode.
func (c *Coordinator) Discard(ctx context.Context, name string) error {
	run := c.found[name].Run
	delete(c.found, name)
	if holder, err := c.claim.renew(ctx); err != nil || holder != "" {
		return cmp.Or(err, c.claim.refusal(holder))
	}
	if err := put(ctx, c.bus.orders, "order."+name, order{Lane: name}); err != nil {
		return err
	}
	for deadline := time.Now().Add(leaseSpan + time.Second); run != "" && time.Now().Before(deadline); {
		if c.idle(ctx, name, run) || !pause(ctx, 50*time.Millisecond) {
			break
		}
	}
	return ctx.Err()
}

// idle says whether no member whose lease holds is in a run.
func (c *Coordinator) idle(ctx context.Context, name, run string) bool {
	ctx, cancel := c.bus.within(ctx, time.Second)
	defer cancel()
	idle := true
	err := c.bus.each(ctx, c.bus.leases, "*", func(key string, value []byte) {
		var p presence
		idle = idle && (key == coordinatorKey || json.Unmarshal(value, &p) == nil && p.Lanes[name].Run != run)
	})
	return idle && err == nil
}

// endLeft ends what members may still hold of runs that ended here while they could not be told,
// until ctx ends.
func (c *Coordinator) endLeft(ctx context.Context) {
	for pause(ctx, renewEvery) {
		c.mu.Lock()
		left := slices.Collect(maps.Keys(c.left))
		c.mu.Unlock()
		for _, name := range left {
			one, cancel := c.bus.within(ctx, tellWithin)
			c.endOne(one, name)
			cancel()
		}
	}
}

// endOne ends a lane on members, unless it has a run again: that one's order ends the one before.
func (c *Coordinator) endOne(ctx context.Context, name string) {
	c.ordering.Lock()
	defer c.ordering.Unlock()
	c.mu.Lock()
	again := c.runs[name] != nil
	c.mu.Unlock()
	if !again && (!c.claim.holds() || put(ctx, c.bus.orders, "order."+name, order{Lane: name}) != nil) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.left, name)
}

// Engine begins the runs of a lane on members. The texts of instances say what turns are pinned
// to at the moment; nil: they never are.
func (c *Coordinator) Engine(target TargetOptions, asker FollowupOptions, instances func() []string) lane.Engine {
	return &engine{coordinator: c, target: target, asker: asker, instances: instances}
}

type engine struct {
	coordinator *Coordinator
	target      TargetOptions
	asker       FollowupOptions
	instances   func() []string
}

var _ lane.Engine = (*engine)(nil)

// Begin is that of [lane.Engine].
func (e *engine) Begin(t lane.Task) lane.Runner {
	return e.coordinator.begin(e, t)
}
