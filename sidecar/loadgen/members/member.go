package members

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// MemberOptions configure a member. Everything else comes from the coordinator.
type MemberOptions struct {
	Access  Access
	Name    string // empty: the name of the host
	Version string // of the program; must equal the coordinator's
	// Target returns a client of the server under load, which the member closes.
	Target func(TargetOptions) (Target, error)
	// Questioner returns the source of the follow-up questions. closes is called at the end of the
	// part; it may be nil.
	Questioner func(FollowupOptions) (q corpus.Questioner, closes func(), err error)
	Health     func(time.Time) api.ClientHealth
	Lag        func() stats.Lag // returns the lag since the last call; nil: it is not known
	Files      int              // number of files that conversations may open; 0: no limit
	// Alone is the time for which the member continues without a coordinator; 0: ten minutes.
	Alone time.Duration
	// Registry receives the member's metrics; nil disables them.
	Registry prometheus.Registerer
	Log      *slog.Logger
}

// Target is the server under load; [chat.Client] is one.
type Target interface {
	workload.Sender
	// Probes is the number of requests sent so far that belong to no turn.
	Probes() int64
	Close()
}

// ErrRefused is the error of a member that the coordinator refuses.
var ErrRefused = errors.New("the coordinator rejects this member")

// RunMember holds parts of runs until ctx ends, which cancels requests in flight. The error is an
// [api.FieldError] of the access, one with the reason why the server rejects the connection, or
// [ErrRefused].
func RunMember(ctx context.Context, o MemberOptions) error {
	host, _ := os.Hostname() // without a name the member is called host
	o.Name = cmp.Or(o.Name, host, "host")
	b, err := dial(ctx, o.Access, "kvbooth member "+o.Name, o.Log)
	if err != nil {
		return err
	}
	defer b.close()
	started := time.Now()
	collector := &memberCollector{}
	if o.Registry != nil {
		o.Registry.MustRegister(collector)
	}
	for ctx.Err() == nil {
		s := &memberSession{
			MemberOptions: o, bus: b, id: nuid.Next(), started: started, lease: newLease(),
			outbox: make(chan outgoing, outboxMost), renews: newSignal(), lanes: map[string]*memberLane{},
		}
		collector.session.Store(s)
		if err := s.serve(ctx); err != nil {
			return err
		}
		if ctx.Err() == nil {
			o.Log.Warn("the lease was lost: requests in flight are cancelled, and the member rejoins as a new one",
				"lease", s.id)
		}
	}
	return nil
}

// memberSession is a member for the time of one lease.
type memberSession struct {
	MemberOptions
	bus     *bus
	id      string
	started time.Time
	lease   *lease
	refused atomic.Pointer[string] // the reason; nil: the member is not refused
	leaves  atomic.Bool
	lost    atomic.Int64 // turns that could not be delivered
	outbox  chan outgoing
	renews  signal // requests a renewal at once, which reports a change

	mu    sync.Mutex
	lanes map[string]*memberLane
}

// memberLane is a lane's order and share, and the part of its run that the member holds.
type memberLane struct {
	changed signal
	order   *order
	share   Share
	part    *part  // nil: the member holds no run
	lastRun string // the run that the member held last
}

const (
	outboxMost = 50_000 // limit of the turns that wait for the server
	publishers = 16     // goroutines that publish turns, each of which waits for the server's answer
)

// outgoing is a turn to be published. unsent counts its part's turns that are not delivered or
// given up yet.
type outgoing struct {
	message *nats.Msg
	unsent  *atomic.Int64
}

// serve holds parts until the lease is lost or ctx ends.
func (t *memberSession) serve(ctx context.Context) error {
	leased, cancel := context.WithCancel(ctx) // ends with the lease
	defer cancel()
	// Publishing continues after the end of ctx, as long as the lease holds.
	publishCtx, stopPublishing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopPublishing()
	var renewing, publishing sync.WaitGroup
	renewing.Go(func() { t.renew(publishCtx) })
	for range publishers {
		publishing.Go(func() { t.publishTurns(publishCtx) })
	}
	if t.admitted(leased) {
		t.hold(leased, cancel)
		t.leaves.Store(true)
	}
	close(t.outbox) // no part is left that adds turns
	publishing.Wait()
	stopPublishing()
	renewing.Wait()
	if t.lease.holds() {
		t.lease.end()
		lastCtx, stop := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer stop()
		p := t.presence(time.Now())
		p.Gone = true // deleting the key would look like a lease that has expired
		_ = put(lastCtx, t.bus.leases, t.id, p)
	}
	t.lease.end()
	if why := t.refused.Load(); why != nil {
		return fmt.Errorf("%w: %s", ErrRefused, *why)
	}
	return nil
}

// hold follows the coordinator's orders and answers its requests until ctx ends. It calls cancel
// when the lease is lost, and returns when every conversation has ended.
func (t *memberSession) hold(ctx context.Context, cancel context.CancelFunc) {
	answers, err := t.answer()
	if err != nil {
		t.Log.Warn("cannot answer the coordinator's requests: it shows no text of turns in progress", "problem", err)
	}
	var workers sync.WaitGroup
	workers.Go(func() {
		t.lease.watch(ctx)
		cancel()
	})
	claimed := newSignal()
	workers.Go(func() {
		t.bus.follow(ctx, t.bus.leases, func(_ string, value []byte) {
			if value != nil { // else the claim has ended
				claimed.send()
			}
		}, nil, coordinatorKey)
	})
	workers.Go(func() { t.awaitCoordinator(ctx, cancel, claimed) })
	workers.Go(func() {
		t.bus.follow(ctx, t.bus.orders, t.receiver(ctx, cancel, &workers), nil,
			"order.*", "share.*."+t.id, "refusal."+t.id)
	})
	<-ctx.Done()
	for _, s := range answers {
		_ = s.Unsubscribe()
	}
	workers.Wait()
}

// defaultAlone is the time for which a member continues without a coordinator. After that it ends
// its load, which no operator could stop.
const defaultAlone = 10 * time.Minute

// awaitCoordinator ends the session of a member that holds conversations when no coordinator has
// renewed its claim for too long.
func (t *memberSession) awaitCoordinator(ctx context.Context, cancel context.CancelFunc, claimed signal) {
	alone := cmp.Or(t.Alone, defaultAlone)
	timeout := time.NewTimer(alone)
	defer timeout.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-claimed:
			timeout.Reset(alone)
		case <-timeout.C:
			if t.holdsAny() {
				t.Log.Warn("no contact with a coordinator: requests in flight are cancelled", "for", alone)
				cancel()
				return
			}
			timeout.Reset(time.Second)
		}
	}
}

// holdsAny reports whether the member holds a part of any run.
func (t *memberSession) holdsAny() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.lanes {
		if l.part != nil {
			return true
		}
	}
	return false
}

// admitted waits for the first renewal. It returns false if ctx ended first.
func (t *memberSession) admitted(ctx context.Context) bool {
	for !t.lease.holds() {
		if !pause(ctx, 20*time.Millisecond) {
			return false
		}
	}
	return true
}

// flush waits until no turn of a part is left to be delivered, ctx ends, or the lease is lost.
func (t *memberSession) flush(ctx context.Context, unsent *atomic.Int64) {
	for unsent.Load() > 0 && t.lease.holds() {
		if !pause(ctx, 5*time.Millisecond) {
			return
		}
	}
}

// renew renews the lease until ctx ends.
func (t *memberSession) renew(ctx context.Context) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for !t.lease.lost() { // after that, a renewal would make the member appear to be present
		sent := time.Now()
		connected, end := t.bus.untilReconnect(ctx)
		one, cancel := context.WithTimeout(connected, leaseSpan/2)
		err := put(one, t.bus.leases, t.id, t.presence(sent))
		cancel()
		if err == nil {
			t.lease.renewed(sent)
		}
		select {
		case <-tick.C:
		case <-t.renews:
		case <-connected.Done():
		}
		end()
		if ctx.Err() != nil {
			return
		}
	}
}

// presence returns the state that is written at a renewal.
func (t *memberSession) presence(now time.Time) presence {
	p := presence{
		Member: api.Member{
			ID: t.id, Name: t.Name, Version: t.Version, Started: t.started, State: api.MemberPresent,
			Client: t.Health(now), LostTurns: t.lost.Load(),
		},
		Files: t.Files,
		Lanes: t.standings(),
	}
	if t.leaves.Load() {
		p.State = api.MemberLeaving
	}
	for _, s := range p.Lanes {
		p.Conversations += s.Active
	}
	if t.Lag != nil {
		p.Lag = t.Lag()
	}
	return p
}

// standings returns the member's state on each lane, by name.
func (t *memberSession) standings() map[string]standing {
	t.mu.Lock()
	lanes := map[string]memberLane{}
	for name, l := range t.lanes {
		lanes[name] = *l
	}
	t.mu.Unlock()
	all := map[string]standing{}
	for name, l := range lanes { // without the lock, since a part may wait for its own
		var s standing
		if l.part != nil {
			s = l.part.standing()
		}
		s.Over = l.lastRun
		all[name] = s
	}
	return all
}

// receiver returns a callback that passes orders and shares to their lanes, and ends the lease at a
// refusal. It starts runLane for each new lane.
func (t *memberSession) receiver(
	ctx context.Context, cancel context.CancelFunc, workers *sync.WaitGroup,
) func(key string, value []byte) {
	return func(key string, value []byte) {
		kind, name, _ := strings.Cut(key, ".")
		name, _, _ = strings.Cut(name, ".") // without the member's id
		var o order
		var s Share
		switch {
		case kind == "refusal" && value != nil:
			t.refuse(string(value))
			cancel()
			return
		case kind == "refusal", kind == "order" && json.Unmarshal(value, &o) != nil:
			return
		case kind == "share" && value != nil && json.Unmarshal(value, &s) != nil:
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		l := t.lanes[name]
		if l == nil {
			l = &memberLane{changed: newSignal()}
			t.lanes[name] = l
			workers.Go(func() { t.runLane(ctx, l) })
		}
		if kind == "order" {
			l.order = &o
		} else {
			l.share = s
		}
		l.changed.send()
	}
}

// refuse ends the lease for a reason.
func (t *memberSession) refuse(why string) {
	if why != leaseLost {
		t.refused.Store(&why)
	}
	t.lease.end()
}

// runLane applies a lane's orders and shares until ctx ends and its part has ended.
func (t *memberSession) runLane(ctx context.Context, l *memberLane) {
	for {
		if err := t.applyOrder(ctx, l); err != nil && ctx.Err() == nil {
			t.Log.Error("an instruction failed; retrying", "problem", err)
			time.AfterFunc(time.Second, l.changed.send)
		}
		select {
		case <-ctx.Done():
			if l.part != nil {
				l.part.cancel()
				<-l.part.reported
			}
			return
		case <-l.changed:
		}
	}
}

// answer subscribes to the coordinator's requests: for the time, and for the turn under way of a
// conversation.
func (t *memberSession) answer() ([]*nats.Subscription, error) {
	clock, err := t.bus.conn.Subscribe(t.bus.subject+".clock."+t.id, func(m *nats.Msg) {
		_ = m.Respond(binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano())))
	})
	if err != nil {
		return nil, err
	}
	live, err := t.bus.conn.Subscribe(t.bus.subject+".live."+t.id, func(m *nats.Msg) {
		var data []byte
		if turn := t.liveTurn(string(m.Data)); turn != nil {
			data, _ = json.Marshal(turn)
		}
		_ = m.Respond(data)
	})
	return []*nats.Subscription{clock, live}, err
}

// liveTurn returns the turn under way of a conversation; nil if there is none.
func (t *memberSession) liveTurn(conversation string) *api.LiveTurn {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.lanes {
		if l.part == nil {
			continue
		}
		if turn := l.part.work.LiveTurn(conversation); turn != nil {
			return turn
		}
	}
	return nil
}

// applyOrder begins, changes or ends the part as order and share require.
func (t *memberSession) applyOrder(ctx context.Context, l *memberLane) error {
	t.mu.Lock()
	o, s, p := l.order, l.share, l.part
	t.mu.Unlock()
	if p != nil && (o.Run != p.run || o.End == endCancel || isClosed(p.reported)) {
		p.cancel()
		<-p.reported
		t.mu.Lock()
		l.part, l.lastRun = nil, p.run
		t.mu.Unlock()
		t.renews.send()
		p = nil
	}
	if o == nil || o.Run == "" || s.Run != o.Run {
		return nil
	}
	if p != nil {
		var texts *corpus.Corpus // nil: the part has them
		if o.Digest != p.texts {
			var err error
			if texts, err = t.bus.readTexts(ctx, o.Digest); err != nil {
				return err
			}
		}
		p.set(o, s, texts)
		t.renews.send()
		return nil
	}
	if o.End != endNone && o.Run != l.lastRun { // the run ended before it began here
		t.mu.Lock()
		l.lastRun = o.Run
		t.mu.Unlock()
		t.renews.send()
	}
	if o.Run == l.lastRun {
		return nil
	}
	return t.begin(ctx, l, o, s)
}

// isClosed reports whether a channel that is never sent on is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// begin begins a part.
func (t *memberSession) begin(ctx context.Context, l *memberLane, o *order, s Share) error {
	texts, err := t.bus.readTexts(ctx, o.Digest)
	if err != nil {
		return err
	}
	target, err := t.Target(o.Target)
	if err != nil {
		return err
	}
	asker, closes, err := t.Questioner(o.Followup)
	if err != nil {
		target.Close()
		return err
	}
	p := newPart(o, s, texts, leasedQuestioner{asker, t.lease}, &leasedSender{t.lease, target}, t.store)
	p.probes = target.Probes
	held, cancel := context.WithCancel(ctx)
	p.cancel = cancel
	t.mu.Lock()
	l.part = p
	t.mu.Unlock()
	go func() { // [memberSession.runLane] or [memberSession.applyOrder] waits for its end
		defer cancel()
		defer target.Close()
		if closes != nil {
			defer closes()
		}
		var reporting sync.WaitGroup
		reporting.Go(func() { t.report(held, p) })
		p.hold(held)
		reporting.Wait()
		// The limit lets a run end although the store is full.
		flushing, end := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		t.flush(flushing, &p.unsent)
		end()
		close(p.reported)
		l.changed.send()
	}()
	t.renews.send()
	return nil
}

// leasedSender sends turns only while the lease holds.
type leasedSender struct {
	lease  *lease
	target workload.Sender
}

// Do sends the turn while the lease holds. Without a lease, the turn is cancelled.
func (f *leasedSender) Do(ctx context.Context, r chat.Request) chat.Result {
	if !f.lease.holds() {
		now := time.Now()
		return chat.Result{Sent: now, Ended: now, Cancelled: true}
	}
	return f.target.Do(ctx, r)
}

// leasedQuestioner asks a model only while the lease holds.
type leasedQuestioner struct {
	corpus.Questioner
	lease *lease
}

// Follow calls the questioner while the lease holds. Without a lease, it returns a built-in
// question, which is not sent.
func (f leasedQuestioner) Follow(
	ctx context.Context,
	r *rand.Rand,
	topic string,
	asked []string,
	answer string,
) string {
	if !f.lease.holds() {
		return corpus.BuiltinQuestioner{}.Follow(ctx, r, topic, asked, answer)
	}
	return f.Questioner.Follow(ctx, r, topic, asked, answer)
}

// memberHeader is the header of a message with the id of its member.
const memberHeader = "Member"

// message returns a message. The server stores one of those with the same id.
func (t *memberSession) message(subject, id string, data []byte) *nats.Msg {
	return &nats.Msg{
		Subject: t.bus.subject + subject,
		Header:  nats.Header{memberHeader: {t.id}, jetstream.MsgIDHeader: {id}},
		Data:    data,
	}
}

// store queues a turn to be published. It does not block; a full queue drops the turn.
func (t *memberSession) store(h handedTurn, unsent *atomic.Int64) {
	data, err := json.Marshal(&h)
	if row := &h.Turn; err == nil {
		m := t.message(".turn."+row.Lane, fmt.Sprintf("%s/%s/%d", row.Lane, row.Conversation, row.Number), data)
		unsent.Add(1)
		select {
		case t.outbox <- outgoing{m, unsent}:
			return
		default:
			unsent.Add(-1)
		}
	}
	t.lost.Add(1)
}

// publishTurns publishes the turns of the outbox until it is closed: each until it is acknowledged, or
// the lease is lost.
func (t *memberSession) publishTurns(ctx context.Context) {
	for m := range t.outbox {
		if !t.publish(ctx, m.message) {
			t.lost.Add(1)
		}
		m.unsent.Add(-1)
	}
}

// publish sends a message until the server has acknowledged it. It returns false if the lease is
// lost or ctx ends first, or if the message is too large.
func (t *memberSession) publish(ctx context.Context, m *nats.Msg) bool {
	logged := false
	for t.lease.holds() && ctx.Err() == nil {
		one, cancel := t.bus.withTimeout(ctx, 2*time.Second)
		_, err := t.bus.js.PublishMsg(one, m)
		cancel()
		switch {
		case err == nil:
			return true
		case errors.Is(err, nats.ErrMaxPayload): // a repeat would fail as well
			t.Log.Error("the message exceeds the NATS server's max_payload; raise it",
				"bytes", len(m.Data), "max_payload", t.bus.conn.MaxPayload())
			return false
		case errors.As(err, new(*jetstream.APIError)) && !logged: // a lost connection is logged elsewhere
			t.Log.Warn("the NATS server does not take a turn or a report; retrying", "problem", err)
			logged = true
		}
		pause(ctx, 50*time.Millisecond)
	}
	return false
}

const reportEvery = time.Second

// report publishes a report once a second, and a last one when the part has ended.
func (t *memberSession) report(ctx context.Context, p *part) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	seq := int64(0)
	for {
		last := false
		select {
		case <-p.ended:
			last = true
		case <-tick.C:
		}
		r := p.collect()
		r.Last = last
		t.publishReport(context.WithoutCancel(ctx), r, &seq)
		if last {
			return
		}
	}
}

// publishReport publishes a report. One that exceeds the server's limit, such as after a time
// without a server, is divided.
func (t *memberSession) publishReport(ctx context.Context, r report, seq *int64) {
	r.Member, r.Seq, r.Sent = t.id, *seq+1, time.Now()
	data, err := json.Marshal(&r)
	if err != nil {
		return
	}
	if int64(len(data)) > t.bus.conn.MaxPayload()/2 && r.divides() {
		first, second := r.halves()
		t.publishReport(ctx, first, seq)
		t.publishReport(ctx, second, seq)
		return
	}
	*seq++
	t.publish(ctx, t.message(".report."+r.Lane, fmt.Sprintf("%s/%s/%d", r.Run, t.id, r.Seq), data))
}
