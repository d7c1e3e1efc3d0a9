// Package members distributes the load over several processes: a coordinator, which is the
// load generator with its store, its API and its screens, and members, each of which holds a
// part of the conversations. They communicate through NATS JetStream.
//
// The coordinator writes an order for each lane, which defines the run, and a share for each
// member, which defines the number of conversations and their numbers. Members watch both. A
// member has a lease, which it renews. One that cannot renew it stops before the lease ends, by
// its own monotonic clock, so that two members never hold one conversation number. The
// conversations of a member whose lease has ended are cancelled and replaced. No conversation
// moves to another member.
//
// A member sends a report each second, and every turn that has ended. Whether a turn counts
// depends on the steps that its member was in when it began and ended, never on a clock. Turns
// are delivered at least once, and stored once.
//
// The coordinator may be killed. Members continue with the numbers that they have, JetStream
// keeps their messages, and the next coordinator takes over the run.
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

// Store keeps the data that members deliver; [kvbooth/sidecar/loadgen/store.Store] is one.
type Store interface {
	SaveNewConversation(api.Conversation)
	SaveTurn(api.Turn)
	LostTurns() int64
	Flush(context.Context) error
	SaveEvent(context.Context, api.Event) (api.Event, error)
	Steps(ctx context.Context, lane string) ([]api.StepRecord, error)
	TurnsFrom(ctx context.Context, lane string, step int64, add func(*api.Turn) error) error
}

// Options configure a coordinator.
type Options struct {
	Access  Access
	Name    string // of this load generator, shown by coordinators that are refused because of it
	Version string // of the program; members of other versions are refused
	// Owner identifies a coordinator over restarts, such as by the data directory that it has
	// locked. After a crash, the next coordinator of the same owner takes the claim at once. Empty:
	// it waits until the claim has ended.
	Owner string
	// FilesEach is the number of open files that a conversation needs, at least 1: on each lane its
	// connection to the target, and the one to the model that asks its questions.
	FilesEach int
	// Noticeable reports whether a lag is noticeable in the lanes' figures; nil: no lag is. It is
	// called with the coordinator's lock held.
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

	wg sync.WaitGroup // goroutines that write refusals and events

	resumed bool // there was an order in force at the start

	ordering sync.Mutex // held while an order is written; locked before mu

	mu      sync.Mutex
	closed  bool // spawn does nothing
	members map[string]*member
	runs    map[string]*remote // by lane
	found   map[string]order   // orders of an earlier process, by lane

	followed   <-chan struct{} // closed when the leases are no longer followed; nil: they are not yet
	knownSince time.Time       // since when they are followed and the claim is held; zero: not now

	endedRuns map[string]bool  // lanes on which members may still hold a run that has ended here
	lags      stats.LagHistory // of members that held conversations
}

// member is the coordinator's state of a member.
type member struct {
	key string // its id; unlike that of the presence, it can be read without the lock
	presence
	joined     time.Time
	lastReport time.Time // zero: its lease has ended
	refusal    string    // why it is refused; empty: it is not
	expired    time.Time // when its lease ended for the coordinator, which is final; zero: it holds
	lateness   lateness
	lags       stats.LagHistory
	clock      clock
}

// lateness decides whether a member has been late for so long that others get its share.
type lateness struct {
	noticeable bool      // the lag is noticeable
	since      time.Time // since when noticeable has that value; zero: it is not known yet
	late       bool
}

// A member is late when its lag has been noticeable for lateAfter, which is longer than lagSpan, so
// that a single delay passes. It is on time again when the lag has not been noticeable for fineAfter.
const (
	lateAfter = 15 * time.Second
	fineAfter = 30 * time.Second
)

// note takes whether the lag is noticeable now, and returns whether the member is late.
func (l *lateness) note(now time.Time, noticeable bool) bool {
	if l.since.IsZero() || l.noticeable != noticeable {
		l.noticeable = noticeable
		l.since = now
	}
	if noticeable {
		l.late = l.late || now.Sub(l.since) >= lateAfter
	} else {
		l.late = l.late && now.Sub(l.since) < fineAfter
	}
	return l.late
}

// Open connects to the server and becomes the coordinator of the fleet. The error is an
// [api.FieldError] of the access, [ErrCoordinated], or the server's.
func Open(ctx context.Context, o Options) (*Coordinator, error) {
	b, err := dial(ctx, o.Access, "kvbooth coordinator", o.Log)
	if err != nil {
		return nil, err
	}
	c := &Coordinator{
		opts:      o,
		bus:       b,
		claim:     newClaim(b, o),
		log:       o.Log,
		members:   map[string]*member{},
		runs:      map[string]*remote{},
		found:     map[string]order{},
		endedRuns: map[string]bool{},
	}
	if err := c.claim.take(ctx); err != nil {
		c.Close()
		return nil, err
	}
	if err := retry(ctx, requestTimeout, func() error { return c.readOrders(ctx) }); err != nil {
		c.Close()
		return nil, fmt.Errorf("what members hold cannot be read: %w", err)
	}
	return c, nil
}

// readOrders reads the orders in force. An order that cannot be read is an error, because its run
// would be ended as unknown.
func (c *Coordinator) readOrders(ctx context.Context) error {
	ctx, cancel := c.bus.withTimeout(ctx, requestTimeout)
	defer cancel()
	return c.bus.forEach(ctx, c.bus.orders, "order.*", func(_ string, value []byte) {
		var o order
		if json.Unmarshal(value, &o) == nil && o.Run != "" {
			c.found[o.Lane], c.resumed = o, true
		}
	})
}

// errNoClaim means that another coordinator may have the members by now.
var errNoClaim = errors.New("the coordinator's lease could not be renewed")

// put writes an order or a share while the claim holds.
func (c *Coordinator) put(ctx context.Context, key string, v any) error {
	if !c.claim.holds() {
		return errNoClaim
	}
	return put(ctx, c.bus.orders, key, v)
}

// Close gives up the claim and closes the connection, which ends [Coordinator.Run]. A second call
// does nothing.
func (c *Coordinator) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wg.Wait()
	c.claim.release()
	c.bus.close()
}

// Run communicates with members until ctx ends, and closes the coordinator. It is called once,
// before any run is begun. The error is [ErrCoordinated] if another coordinator has taken the
// members.
func (c *Coordinator) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := c.claim.keep(ctx); err != nil {
			cancel(err)
		}
	})
	wg.Go(func() { c.bus.follow(ctx, c.bus.leases, c.receivePresence, c.leasesRead, "*") })
	wg.Go(func() {
		c.bus.repeat(ctx, "turns are not accepted at the moment", func(connected context.Context) error {
			return c.storeTurns(ctx, connected)
		})
	})
	wg.Go(func() { c.readClocks(ctx) })
	wg.Go(func() { c.endRemaining(ctx) })
	wg.Wait()
	c.Close()
	if err := context.Cause(ctx); errors.Is(err, ErrCoordinated) {
		return err
	}
	return nil
}

// leasesRead records that the presence of every member whose lease holds has been received.
func (c *Coordinator) leasesRead(until <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.followed, c.knownSince = until, time.Time{}
	c.wake()
}

// leaseLost is the refusal of a member whose share others already have. The member rejoins.
const leaseLost = "lost"

// writeRefusal writes the reason why a member is refused, which the member reads.
func (c *Coordinator) writeRefusal(id, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	if _, err := c.bus.orders.Put(ctx, "refusal."+id, []byte(why)); err != nil {
		c.log.Debug("a member could not be instructed", "lease", id, "problem", err)
	}
}

// receivePresence processes a member's presence. The server reports no end of a lease.
func (c *Coordinator) receivePresence(key string, value []byte) {
	var p presence
	if key == coordinatorKey || json.Unmarshal(value, &p) != nil {
		return
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[key]
	if m == nil {
		m = c.addMember(key, &p)
	}
	if m.isExpired() { // the report is too late: others have its share
		c.spawn(func() { c.writeRefusal(key, leaseLost) })
		return
	}
	if m.refusal != "" {
		c.spawn(func() { c.writeRefusal(key, m.refusal) })
	}
	m.presence, m.lastReport = p, now
	if p.Gone {
		m.lastReport = time.Time{}
	}
	m.lags.Add(now, &p.Lag)
	switch was := m.lateness.late; {
	case m.refusal != "":
	case m.lateness.note(now, c.noticeable(m, now)) && !was:
		c.event("%s is late: %s", p.Name, p.Client.Reason)
	case was && !m.lateness.late:
		c.event("%s is on time again", p.Name)
	}
	if p.Conversations > 0 {
		c.lags.Add(now, &p.Lag)
	}
	c.wake()
}

// addMember adds a new member. The lock is held.
func (c *Coordinator) addMember(id string, p *presence) *member {
	m := &member{key: id, joined: time.Now(), lags: stats.LagHistory{Kept: int(lagSpan/time.Second) + 2}}
	c.members[id] = m
	if p.Version == c.opts.Version {
		if !c.resumed || c.followed != nil { // else it joined an earlier coordinator
			c.event("%s has joined", p.Name)
		}
		return m
	}
	m.refusal = fmt.Sprintf("it is version %s, and the coordinator is %s: start the same version",
		p.Version, c.opts.Version)
	c.event("%s is rejected: %s", p.Name, m.refusal)
	return m
}

// spawn runs a job that may block, unless the coordinator is closed. The lock is held.
func (c *Coordinator) spawn(job func()) {
	if !c.closed {
		c.wg.Go(job)
	}
}

// event stores an event of a member. The lock is held.
func (c *Coordinator) event(format string, args ...any) {
	e := api.Event{Time: time.Now(), Kind: api.EventMember, By: "load generator", Text: fmt.Sprintf(format, args...)}
	c.log.Info(e.Text, "event", e.Kind)
	c.spawn(func() {
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		if _, err := c.opts.Store.SaveEvent(ctx, e); err != nil {
			c.log.Warn("an event was dropped", "error", err, "text", e.Text)
		}
	})
}

// wake makes every run evaluate the members' reports. The lock is held.
func (c *Coordinator) wake() {
	for _, r := range c.runs {
		r.changed.send()
	}
}

// present returns the members whose lease holds, sorted by id; false if that is not known, because
// the server is disconnected or the leases have not been read yet.
func (c *Coordinator) present(now time.Time) ([]*member, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.followed == nil || isClosed(c.followed) || !c.bus.conn.IsConnected() || !c.claim.holds() {
		c.knownSince = time.Time{}
		return nil, false
	}
	if c.knownSince.IsZero() {
		c.knownSince = now
	}
	return c.unexpired(now), true
}

// unexpired returns the members whose lease holds, sorted by id. It expires the others. The lock is
// held.
func (c *Coordinator) unexpired(now time.Time) (all []*member) {
	for id, m := range c.members {
		// The time in which the coordinator was disconnected does not count against a member.
		silent := min(now.Sub(m.lastReport), now.Sub(c.knownSince))
		if !m.isExpired() && (silent >= leaseSpan || m.lastReport.IsZero()) {
			c.expire(m, now)
		}
		switch {
		case !m.isExpired() && m.refusal == "":
			all = append(all, m)
		case m.isExpired() && now.Sub(m.expired) > time.Hour: // none of its messages can arrive any more
			delete(c.members, id)
		}
	}
	slices.SortFunc(all, func(a, b *member) int { return strings.Compare(a.key, b.key) })
	return all
}

func (m *member) isExpired() bool { return !m.expired.IsZero() }

// expire records that a member's lease has ended. The lock is held.
func (c *Coordinator) expire(m *member, now time.Time) {
	m.expired = now
	switch {
	case m.refusal != "":
	case m.State == api.MemberLeaving:
		c.event("%s has left", m.Name)
	default:
		c.event("%s is lost: its conversations are cancelled and replaced on other members", m.Name)
	}
}

// expireHolder expires the member with the id, which holds a share, if it has not expired yet, and returns its name, or
// the id if the name is not known. An id that never reported to this process gets a member that has expired: otherwise
// a late report would make it a new member, although others have its share. It writes no event.
func (c *Coordinator) expireHolder(id string, now time.Time) (name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[id]
	if m == nil {
		m = &member{key: id}
		c.members[id] = m
	}
	if !m.isExpired() {
		m.expired = now
	}
	return cmp.Or(m.Name, id)
}

const (
	turnsConsumer = "store"
	// redeliverAfter is the time after which a turn that was not acknowledged is delivered again.
	redeliverAfter = 5 * time.Second

	turnsBatch = 500
	fetchWait  = 200 * time.Millisecond
)

// storeTurns stores the turns that members deliver, batch by batch, until connected ends. A turn is
// acknowledged when it is committed. One that is delivered again is the same row.
func (c *Coordinator) storeTurns(ctx, connected context.Context) error {
	asked, cancel := context.WithTimeout(connected, requestTimeout)
	consumer, err := c.bus.turns.CreateOrUpdateConsumer(asked, jetstream.ConsumerConfig{
		Durable: turnsConsumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: redeliverAfter, MaxAckPending: 20_000,
	})
	cancel()
	if err != nil {
		return err
	}
	for connected.Err() == nil {
		batch, err := consumer.Fetch(turnsBatch, jetstream.FetchMaxWait(fetchWait))
		if err != nil {
			return err
		}
		var got []jetstream.Msg
		lost := c.opts.Store.LostTurns()
		for m := range batch.Messages() {
			var h handedTurn
			if json.Unmarshal(m.Data(), &h) != nil {
				_ = m.Term()
				continue
			}
			c.storeTurn(m.Headers().Get(memberHeader), &h)
			got = append(got, m)
		}
		if len(got) == 0 {
			continue
		}
		if err := c.opts.Store.Flush(ctx); err != nil {
			return err
		}
		if c.opts.Store.LostTurns() != lost {
			continue // they are delivered again
		}
		for _, m := range got {
			_ = m.Ack()
		}
	}
	return nil
}

// storeTurn stores a turn, and its conversation if no report contained it yet. Times are converted
// to the coordinator's clock.
func (c *Coordinator) storeTurn(id string, h *handedTurn) {
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
	c.opts.Store.SaveTurn(h.Turn.Turn)
}

// Found returns the run of a lane that members hold, if an earlier process left one for the same
// target and the same follow-ups. A run that is not resumed must be ended by [Coordinator.Discard].
func (c *Coordinator) Found(name string, target TargetOptions, asker FollowupOptions) (lane.ResumedRun, bool) {
	o, ok := c.found[name]
	if !ok || o.End != endNone || o.Taken {
		return lane.ResumedRun{}, false
	}
	if target.Endpoint != nil { // the run is sent to the URL of its mode
		target.URL = o.Target.URL
	}
	if !sameJSON(target, o.Target) || !sameJSON(asker, o.Followup) {
		return lane.ResumedRun{}, false
	}
	return o.ResumedRun, true
}

// sameJSON reports whether two values have the same JSON.
func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Discard ends the run that members hold of a lane, and waits until none of them does, since the
// next run may be in another mode.
func (c *Coordinator) Discard(ctx context.Context, name string) error {
	run := c.found[name].Run
	delete(c.found, name)
	if err := c.claim.renew(ctx); err != nil {
		return err
	}
	if err := c.put(ctx, "order."+name, noRun(name)); err != nil {
		return err
	}
	for deadline := time.Now().Add(leaseSpan + time.Second); run != "" && time.Now().Before(deadline); {
		if c.idle(ctx, name, run) || !pause(ctx, 50*time.Millisecond) {
			break
		}
	}
	return ctx.Err()
}

// idle reports whether no member whose lease holds is in a run.
func (c *Coordinator) idle(ctx context.Context, name, run string) bool {
	ctx, cancel := c.bus.withTimeout(ctx, time.Second)
	defer cancel()
	idle := true
	err := c.bus.forEach(ctx, c.bus.leases, "*", func(key string, value []byte) {
		var p presence
		idle = idle && (key == coordinatorKey || json.Unmarshal(value, &p) == nil && p.Lanes[name].Run != run)
	})
	return idle && err == nil
}

// endRemaining ends runs that ended here while members could not be reached, until ctx ends.
func (c *Coordinator) endRemaining(ctx context.Context) {
	for pause(ctx, renewEvery) {
		c.mu.Lock()
		left := slices.Collect(maps.Keys(c.endedRuns))
		c.mu.Unlock()
		for _, name := range left {
			one, cancel := c.bus.withTimeout(ctx, writeTimeout)
			c.endOne(one, name)
			cancel()
		}
	}
}

// endOne ends a lane's run on members, unless the lane has a new run, whose order ends the former
// one.
func (c *Coordinator) endOne(ctx context.Context, name string) {
	c.ordering.Lock()
	defer c.ordering.Unlock()
	c.mu.Lock()
	again := c.runs[name] != nil
	c.mu.Unlock()
	if !again && c.put(ctx, "order."+name, noRun(name)) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.endedRuns, name)
}

// Engine returns the engine that begins the runs of a lane on members. instances returns the worker
// instances that turns are pinned to now; nil: turns are never pinned.
func (c *Coordinator) Engine(target TargetOptions, asker FollowupOptions, instances func() []string) lane.Engine {
	return &engine{Coordinator: c, target: target, asker: asker, instances: instances}
}

// engine begins the runs of a lane.
type engine struct {
	*Coordinator
	target    TargetOptions
	asker     FollowupOptions
	instances func() []string
}

var _ lane.Engine = (*engine)(nil)

// Begin implements [lane.Engine]. The run does nothing before Run.
func (e *engine) Begin(t lane.Task) lane.Runner {
	r := &remote{
		Coordinator: e.Coordinator,
		receiver:    t.Receiver,
		instances:   e.instances,
		changed:     newSignal(),
		corpus:      t.Corpus,
		holders:     map[string]*holding{},
		unlisted:    map[string]api.Conversation{},
		tally:       newTally(t.Receiver.Turn, t.Resumed),
		wanted: order{
			ResumedRun: lane.ResumedRun{Task: t, Began: t.Step.Started},
			Target:     e.target,
			Followup:   e.asker,
		},
	}
	r.wanted.Corpus, r.wanted.Receiver = nil, nil // so that orders can be compared
	if endpoint := e.target.Endpoint; endpoint != nil {
		r.wanted.Target.URL = endpoint()
		r.wanted.Target.Endpoint = nil
	}
	if t.Resumed {
		r.found = new(e.found[t.Lane])
		r.wanted.Began = r.found.Began
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.runs[t.Lane] = r
	return r
}
