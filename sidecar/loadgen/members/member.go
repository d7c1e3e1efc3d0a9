package members

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
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

// MemberOptions are what a member has of its own. All else the coordinator tells it.
type MemberOptions struct {
	Access  Access
	Name    string // empty: the host's
	Version string // of the program: the coordinator's must be the same
	// Target makes the way to the server under load, which the member closes.
	Target func(TargetOptions) (Target, error)
	// Questioner makes who asks the follow-up questions; close may be nil.
	Questioner func(FollowupOptions) (q corpus.Questioner, closes func(), err error)
	Health     func(time.Time) api.ClientHealth
	Lag        func() stats.Lag // since the last call; nil: it is not known
	Files      int              // that conversations may open; 0: there is no bound
	// Alone is how long it goes on without a coordinator; 0: ten minutes.
	Alone time.Duration
	// Registry takes metrics of what is held; nil: nobody wants them.
	Registry prometheus.Registerer
	Log      *slog.Logger
}

// Target is the server under load; [chat.Client] is one.
type Target interface {
	workload.Sender
	// Probes is how many requests it has sent that belong to no turn.
	Probes() int64
	Close()
}

// ErrRefused is the error of a member that the coordinator does not take.
var ErrRefused = errors.New("the coordinator rejects this member")

// RunMember holds parts of runs until ctx ends, which cancels what is in flight. The error is an
// [api.FieldError] of the access, one that says why the server refuses it, or [ErrRefused].
func RunMember(ctx context.Context, o MemberOptions) error {
	if o.Name == "" {
		o.Name = hostname()
	}
	b, err := dial(ctx, o.Access, "kvbooth member "+o.Name, o.Log)
	if err != nil {
		return err
	}
	defer b.close()
	started, shown := time.Now(), newShown()
	if o.Registry != nil {
		o.Registry.MustRegister(shown)
	}
	for ctx.Err() == nil {
		t := &tenant{
			MemberOptions: o,
			bus:           b,
			id:            nuid.Next(),
			started:       started,
			lease:         newLease(),
			lanes:         map[string]*laneOf{},
		}
		shown.tenant.Store(t)
		if err := t.serve(ctx); err != nil {
			return err
		}
		if ctx.Err() == nil {
			o.Log.Warn(
				"the lease was lost: requests in flight are cancelled, and the member rejoins as a new one",
				"lease",
				t.id,
			)
		}
	}
	return nil
}

// tenant is a member for as long as it has one lease.
type tenant struct {
	MemberOptions
	bus     *bus
	id      string
	started time.Time
	lease   *lease
	refused atomic.Pointer[string]
	leaves  atomic.Bool
	lost    atomic.Int64 // turns that were not handed over
	outbox  chan outgoing
	unsent  atomic.Int64  // turns in the outbox and in the hands that publish them
	renews  chan struct{} // asks for a renewal at once

	mu    sync.Mutex
	lanes map[string]*laneOf
}

// laneOf is a lane as a member has heard of it.
type laneOf struct {
	changed chan struct{} // holds one word
	order   *order
	share   Share
	part    *part  // nil: no run is held
	over    string // the run that was held last
}

const (
	outboxMost = 50_000 // turns that wait for the server
	hands      = 16     // that hand turns over, each of which waits for the server's answer
)

// outgoing is a turn on its way to the server, counted by its part until it is there or given up.
type outgoing struct {
	message *nats.Msg
	unsent  *atomic.Int64
}

// serve holds parts until the lease is lost or ctx ends.
func (t *tenant) serve(ctx context.Context) error {
	t.outbox, t.renews = make(chan outgoing, outboxMost), make(chan struct{}, 1)
	leased, cancel := context.WithCancel(ctx) // ends with the lease
	defer cancel()
	// What is left to tell is told while the lease lasts, also when ctx has ended.
	telling, told := context.WithCancel(context.WithoutCancel(ctx))
	defer told()
	var all, mouths sync.WaitGroup
	mouths.Go(func() { t.renew(telling) })
	for range hands {
		mouths.Go(func() { t.handOver(telling) })
	}
	if !t.admitted(leased) {
		told()
		mouths.Wait()
		if why := t.refused.Load(); why != nil {
			return fmt.Errorf("%w: %s", ErrRefused, *why)
		}
		return nil
	}
	t.listen(leased, cancel, &all)
	answers, err := t.answer()
	if err != nil {
		t.Log.Warn("cannot answer the coordinator's requests: it shows no text of turns in progress", "problem", err)
	}
	<-leased.Done()
	for _, s := range answers {
		_ = s.Unsubscribe()
	}
	all.Wait() // every conversation has ended
	t.leaves.Store(true)
	t.flush(telling, &t.unsent)
	told()
	mouths.Wait()
	if t.lease.holds() {
		t.lease.end()
		telling, stop := context.WithTimeout(context.WithoutCancel(ctx), askFor)
		defer stop()
		p := t.presence(time.Now())
		p.Gone = true // to delete the key would say the same as a lease that ran out
		_ = put(telling, t.bus.leases, t.id, p)
	}
	t.lease.end()
	if why := t.refused.Load(); why != nil {
		return fmt.Errorf("%w: %s", ErrRefused, *why)
	}
	return nil
}

// listen does what the coordinator says until ctx ends, and calls cancel where the lease is lost.
func (t *tenant) listen(ctx context.Context, cancel context.CancelFunc, all *sync.WaitGroup) {
	all.Go(func() {
		t.lease.watch(ctx)
		cancel()
	})
	all.Go(func() { t.awaitCoordinator(ctx, cancel) })
	all.Go(func() { t.bus.follow(ctx, t.bus.orders, "order.*", t.hearOrder(ctx, all), unheeded) })
	all.Go(func() { t.bus.follow(ctx, t.bus.orders, "share.*."+t.id, t.hearShare(ctx, all), unheeded) })
	all.Go(func() { t.bus.follow(ctx, t.bus.orders, "refusal."+t.id, t.hearRefusal(cancel), unheeded) })
}

// alone is how long a member goes on without a coordinator: load that nobody steers must end
// some time.
const alone = 10 * time.Minute

// awaitCoordinator ends the lease of a member that holds something when no coordinator has been
// heard for too long.
func (t *tenant) awaitCoordinator(ctx context.Context, cancel context.CancelFunc) {
	var heard atomic.Int64 // since t.lease.base
	now := func() int64 { return int64(time.Since(t.lease.base)) }
	heard.Store(now())
	following := make(chan struct{})
	go func() {
		defer close(following)
		t.bus.follow(ctx, t.bus.leases, coordinatorKey, func(_ string, value []byte) {
			if value != nil {
				heard.Store(now())
			}
		}, unheeded)
	}()
	defer func() { <-following }()
	for pause(ctx, time.Second) {
		if now()-heard.Load() > int64(cmp.Or(t.Alone, alone)) && t.holdsAny() {
			t.Log.Warn("no contact with a coordinator: requests in flight are cancelled", "for", cmp.Or(t.Alone, alone))
			cancel()
			return
		}
	}
}

func (t *tenant) holdsAny() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.lanes {
		if l.part != nil {
			return true
		}
	}
	return false
}

// admitted waits for the first renewal.
func (t *tenant) admitted(ctx context.Context) bool {
	for !t.lease.holds() {
		if !pause(ctx, 20*time.Millisecond) {
			return false
		}
	}
	return true
}

// flush waits until no turn is left to hand over, ctx ends, or the lease is lost.
func (t *tenant) flush(ctx context.Context, unsent *atomic.Int64) {
	for unsent.Load() > 0 && t.lease.holds() {
		if !pause(ctx, 5*time.Millisecond) {
			return
		}
	}
}

func (t *tenant) renewNow() {
	select {
	case t.renews <- struct{}{}:
	default:
	}
}

// renew renews the lease until ctx ends.
func (t *tenant) renew(ctx context.Context) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for !t.lease.lost() { // who had none would seem to be there again
		sent := time.Now()
		again := t.bus.again()
		one, cancel := t.bus.within(ctx, leaseSpan/2) // late is better than not
		err := put(one, t.bus.leases, t.id, t.presence(sent))
		cancel()
		if err == nil {
			t.lease.renewed(sent)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-t.renews:
		case <-again:
		}
	}
}

func (t *tenant) presence(now time.Time) presence {
	p := presence{
		ID:      t.id,
		Name:    t.Name,
		Version: t.Version,
		Started: t.started,
		Leaves:  t.leaves.Load(),
		Health:  t.Health(now),
		Files:   t.Files,
		Lost:    t.lost.Load(),
		Lanes:   map[string]standing{},
	}
	if t.Lag != nil {
		p.Lag = t.Lag()
	}
	t.mu.Lock()
	lanes := maps.Clone(t.lanes)
	t.mu.Unlock()
	for name, l := range lanes {
		t.mu.Lock()
		part, over := l.part, l.over
		t.mu.Unlock()
		s := standing{}
		if part != nil {
			s = part.standing()
		}
		s.Over = over
		p.Lanes[name] = s
	}
	return p
}

// laneNamed is the lane of a name, whose run is looked after from now on.
func (t *tenant) laneNamed(ctx context.Context, all *sync.WaitGroup, name string) *laneOf {
	l := t.lanes[name]
	if l == nil {
		l = &laneOf{changed: make(chan struct{}, 1)}
		t.lanes[name] = l
		all.Go(func() { t.look(ctx, l) })
	}
	return l
}

func (t *tenant) hearOrder(ctx context.Context, all *sync.WaitGroup) func(string, []byte) {
	return func(key string, value []byte) {
		var o order
		if value == nil || json.Unmarshal(value, &o) != nil {
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		l := t.laneNamed(ctx, all, strings.TrimPrefix(key, "order."))
		l.order = &o
		l.wake()
	}
}

func (t *tenant) hearShare(ctx context.Context, all *sync.WaitGroup) func(string, []byte) {
	return func(key string, value []byte) {
		var s Share
		if value != nil && json.Unmarshal(value, &s) != nil {
			return
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(key, "share."), ".")
		t.mu.Lock()
		defer t.mu.Unlock()
		l := t.laneNamed(ctx, all, name)
		l.share = s
		l.wake()
	}
}

func (t *tenant) hearRefusal(cancel context.CancelFunc) func(string, []byte) {
	return func(_ string, value []byte) {
		if value == nil {
			return
		}
		if why := string(value); why != lostMember {
			t.refused.Store(&why)
		}
		t.lease.end()
		cancel()
	}
}

// wake never waits.
func (l *laneOf) wake() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// look does what order and share of a lane say, until ctx ends and the part with it.
func (t *tenant) look(ctx context.Context, l *laneOf) {
	for {
		if err := t.act(ctx, l); err != nil && ctx.Err() == nil {
			t.Log.Error("an instruction failed; retrying", "problem", err)
			time.AfterFunc(time.Second, l.wake)
		}
		select {
		case <-ctx.Done():
			t.finish(l)
			return
		case <-l.changed:
		}
	}
}

// answer answers what the coordinator asks: the time, and the turn under way of a conversation.
func (t *tenant) answer() ([]*nats.Subscription, error) {
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

func (t *tenant) liveTurn(conversation string) *api.LiveTurn {
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

// finish waits for the end of the part.
func (t *tenant) finish(l *laneOf) {
	if l.part != nil {
		l.part.cancel()
		<-l.part.told
	}
}

// act brings the part to what order and share say.
func (t *tenant) act(ctx context.Context, l *laneOf) error {
	t.mu.Lock()
	o, s, p := l.order, l.share, l.part
	t.mu.Unlock()
	if p != nil && (o.Run != p.run || o.End == endsNow || isClosed(p.told)) {
		p.cancel()
		<-p.told
		t.mu.Lock()
		l.part, l.over = nil, p.run
		t.mu.Unlock()
		t.renewNow()
		p = nil
	}
	if o == nil || o.Run == "" || s.Run != o.Run {
		return nil
	}
	if p != nil {
		texts, err := t.textsOf(ctx, p, o)
		if err == nil {
			p.set(o, s, texts)
		}
		t.renewNow()
		return err
	}
	if o.End != goesOn && o.Run != l.over { // it has ended before it began here
		t.mu.Lock()
		l.over = o.Run
		t.mu.Unlock()
		t.renewNow()
	}
	if o.Run == l.over {
		return nil
	}
	return t.begin(ctx, l, o, s)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// textsOf are those of an order, nil where the part has them.
func (t *tenant) textsOf(ctx context.Context, p *part, o *order) (*corpus.Corpus, error) {
	if o.Corpus == p.texts {
		return nil, nil
	}
	return t.bus.readTexts(ctx, o.Corpus)
}

// begin begins a part.
func (t *tenant) begin(ctx context.Context, l *laneOf, o *order, s Share) error {
	texts, err := t.bus.readTexts(ctx, o.Corpus)
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
	p := newPart(o, s, texts, fencedQuestioner{asker, t.lease}, &fenced{t.lease, target}, t.store)
	p.probes = target.Probes
	held, cancel := context.WithCancel(ctx)
	p.cancel = cancel
	t.mu.Lock()
	l.part = p
	t.mu.Unlock()
	go func() { // its end is waited for by [tenant.finish] or [tenant.act]
		defer cancel()
		defer target.Close()
		if closes != nil {
			defer closes()
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			t.report(held, p)
		}()
		p.hold(held)
		<-done
		flushing, end := context.WithTimeout(
			context.WithoutCancel(ctx),
			askFor,
		) // a store that is full keeps no run from ending
		t.flush(flushing, &p.unsent)
		end()
		close(p.told)
		l.wake()
	}()
	t.renewNow()
	return nil
}

// fenced sends nothing without a lease.
type fenced struct {
	lease  *lease
	target workload.Sender
}

// Do is that of the target while the lease holds; without one the turn is cancelled.
func (f *fenced) Do(ctx context.Context, r chat.Request) chat.Result {
	if !f.lease.holds() {
		now := time.Now()
		return chat.Result{Sent: now, Ended: now, Cancelled: true}
	}
	return f.target.Do(ctx, r)
}

// fencedQuestioner asks no model without a lease.
type fencedQuestioner struct {
	corpus.Questioner
	lease *lease
}

// Follow is that of the questioner while the lease holds, and else the built-in one's, whose question
// nobody will hear.
func (f fencedQuestioner) Follow(
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

// memberHeader of a turn names its member.
const memberHeader = "Member"

// store hands a turn over as soon as it can be, without waiting.
func (t *tenant) store(h handed, unsent *atomic.Int64) {
	data, err := json.Marshal(&h)
	if row := &h.Turn; err == nil {
		m := nats.NewMsg(t.bus.subject + ".turn." + row.Lane)
		m.Data = data
		m.Header.Set(memberHeader, t.id)
		m.Header.Set(jetstream.MsgIDHeader, fmt.Sprintf("%s/%s/%d", row.Lane, row.Conversation, row.Number))
		t.unsent.Add(1)
		unsent.Add(1)
		select {
		case t.outbox <- outgoing{m, unsent}:
			return
		default:
			t.unsent.Add(-1)
			unsent.Add(-1)
		}
	}
	t.lost.Add(1)
}

// handOver publishes turns until ctx ends: each until it is acknowledged, or the lease is lost.
func (t *tenant) handOver(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-t.outbox:
			if !t.publish(ctx, m.message) {
				t.lost.Add(1)
			}
			t.unsent.Add(-1)
			m.unsent.Add(-1)
		}
	}
}

// publish says whether the server has the message.
func (t *tenant) publish(ctx context.Context, m *nats.Msg) bool {
	said := false
	for t.lease.holds() && ctx.Err() == nil {
		one, cancel := t.bus.within(ctx, 2*time.Second)
		_, err := t.bus.js.PublishMsg(one, m)
		cancel()
		switch {
		case err == nil:
			return true
		case errors.Is(err, nats.ErrMaxPayload): // it always will be
			t.Log.Error(
				"the message exceeds the NATS server's max_payload; raise it",
				"bytes",
				len(m.Data),
				"max_payload",
				t.bus.conn.MaxPayload(),
			)
			return false
		case errors.As(err, new(*jetstream.APIError)) && !said: // not that it is away
			t.Log.Warn("the NATS server does not take a turn or a report; retrying", "problem", err)
			said = true
		}
		pause(ctx, 50*time.Millisecond)
	}
	return false
}

const reportEvery = time.Second

// report tells once a second what has happened, and once more when the part is over.
func (t *tenant) report(ctx context.Context, p *part) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	seq := int64(0)
	for {
		last := false
		select {
		case <-p.over:
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

// publishReport sends a report, in pieces where it is more than the server takes at once: such as
// that of all that has happened while there was no server.
func (t *tenant) publishReport(ctx context.Context, r report, seq *int64) {
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
	m := nats.NewMsg(t.bus.subject + ".report." + r.Lane)
	m.Data = data
	m.Header.Set(jetstream.MsgIDHeader, fmt.Sprintf("%s/%s/%d", r.Run, t.id, r.Seq))
	t.publish(ctx, m)
}
