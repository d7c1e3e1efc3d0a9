package members

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/stats"
)

const (
	callEvery    = time.Second
	tickEvery    = 200 * time.Millisecond
	silentFor    = 3 * time.Second // after which a member is lost
	repeatAfter  = time.Second     // for a message that was not answered
	cancelWithin = 2 * time.Second
	shownFor     = 2 * time.Second  // for which a text that was read is still of interest
	lagSpan      = 10 * time.Second // over which a member's lag is judged
	fineAfter    = 30 * time.Second // for which a late member must be on time
)

// Options configure a coordinator's side.
type Options struct {
	Access  Access
	Name    string // of this load generator, which a second coordinator of the fleet gets
	Version string // of the program; members of other versions get no turns
	// FilesEach is the number of open files that a turn needs, at least 1.
	FilesEach int
	// Noticeable reports whether a lag is noticeable in the lanes' figures; nil: no lag is. It is called with a lock held.
	Noticeable func(*stats.Lag) bool
	Log        *slog.Logger
}

// Fleet is the coordinator's side: the members that send its turns. It is safe for concurrent use.
type Fleet struct {
	opts    Options
	id      string
	subject string
	began   time.Time
	conn    *nats.Conn
	end     context.CancelFunc
	wg      sync.WaitGroup

	mu      sync.Mutex
	members map[string]*member
	turns   map[string]*turn
	changed chan struct{}    // closed when a member may have become free
	lost    map[string]int64 // turns lost with members, by their names
}

// member is a process that sends turns.
type member struct {
	beat

	id        string
	seen      time.Time
	clock     clock
	roundTrip time.Duration
	lags      stats.LagHistory
	lateUntil time.Time
	turns     int // in flight
}

// turn is a turn in flight. mu guards what reports of it set; the fleet's lock, which is taken first, guards the rest.
type turn struct {
	member *member
	order  []byte
	handed time.Time // when the order was last published
	taken  bool      // the member has it

	mu     sync.Mutex
	req    chat.Request
	first  bool // its first token was observed
	tokens int  // observed so far
	ended  bool
	result chan chat.Result // buffered for one
}

// Open connects to the server and calls the members until [Fleet.Close]. The error is an [api.FieldError] of the
// access, says why the server rejects the connection, or names another coordinator of the fleet.
func Open(ctx context.Context, o Options) (*Fleet, error) {
	f := &Fleet{
		opts: o, id: nuid.Next(), subject: "kvbooth." + o.Access.Fleet, began: time.Now(),
		members: map[string]*member{}, turns: map[string]*turn{}, changed: make(chan struct{}), lost: map[string]int64{},
	}
	var err error
	if f.conn, err = dial(ctx, o.Access, "kvbooth coordinator", o.Log); err != nil {
		return nil, err
	}
	if err = f.open(); err != nil {
		f.conn.Close()
		return nil, err
	}
	running, cancel := context.WithCancel(context.Background())
	f.end = cancel
	f.wg.Go(func() { f.tick(running) })
	return f, nil
}

func (f *Fleet) open() error {
	reply, err := f.conn.Request(f.subject+".coordinator", nil, silentFor)
	switch {
	case err == nil:
		return fmt.Errorf("members.fleet: %q is the fleet of the load generator at %s: end that one, or give this one and "+
			"its members another name", f.opts.Access.Fleet, reply.Data)
	case !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("the NATS server at %s: %w", f.opts.Access.URL, err)
	}
	_, err = f.conn.Subscribe(f.subject+".coordinator", func(m *nats.Msg) { _ = m.Respond([]byte(f.opts.Name)) })
	return errors.Join(err, subscribe(f.conn, f.subject+".from", f.receive), f.conn.Flush())
}

// Close ends the connection. Turns in flight must have ended.
func (f *Fleet) Close() {
	f.end()
	f.wg.Wait()
	f.conn.Close()
}

// grace keeps members from being lost for a silence of the server.
func (f *Fleet) grace() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		m.seen = time.Now()
	}
}

// Send sends a turn to a target as [chat.Options].Send does.
func (f *Fleet) Send(ctx context.Context, to TargetOptions, req chat.Request) chat.Result {
	data, err := json.Marshal(order{
		By: f.id, ID: req.ID, Target: to, Conversation: req.Conversation, Token: req.Token, Instance: req.Instance,
		MaxTokens: req.MaxTokens, Exact: req.Exact, Salt: req.Salt, Model: req.Model, WantsPrompt: req.OnPrompt != nil,
		Messages: req.Messages, TraceParent: req.TraceParent,
	})
	if most := f.conn.MaxPayload(); err == nil && int64(len(data)) > most {
		err = fmt.Errorf("the turn has %d bytes, and the NATS server takes messages of %d: raise its max_payload", len(data),
			most)
	}
	if err != nil {
		f.opts.Log.Error("a turn was not sent", "turn", req.ID, "problem", err)
		return notSent(err.Error())
	}
	return f.send(ctx, &turn{order: data, req: req, result: make(chan chat.Result, 1)})
}

// notSent is the result of a turn that its load generator lost, which is no fault of the target.
func notSent(reason string) chat.Result {
	now := time.Now()
	r := chat.Result{Sent: now, Ended: now, Cancelled: true}
	if reason != "" {
		r.Err = &chat.Error{Class: api.ErrorMember, Message: reason}
	}
	return r
}

// send hands a turn to a member and waits for its result.
func (f *Fleet) send(ctx context.Context, t *turn) chat.Result {
	if !f.hand(ctx, t) {
		return notSent("")
	}
	select {
	case r := <-t.result:
		return r
	case <-ctx.Done():
	}
	f.call(t.member.id, call{Cancel: []string{t.req.ID}})
	timer := time.NewTimer(cancelWithin)
	defer timer.Stop()
	select {
	case r := <-t.result:
		return r
	case <-timer.C:
	}
	f.finish(t, notSent(""))
	return <-t.result
}

// hand waits for a free member and hands it the turn. It reports false where ctx ends before.
func (f *Fleet) hand(ctx context.Context, t *turn) bool {
	for {
		f.mu.Lock()
		changed := f.changed
		if t.member = f.free(time.Now()); t.member != nil {
			t.member.turns++
			t.handed = time.Now()
			f.turns[t.req.ID] = t
			f.mu.Unlock()
			f.publish("turn."+t.member.id, t.order)
			return true
		}
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// free returns the member with the fewest turns for its cores among those that are on time, or among all where none is;
// nil: none has a file left. The lock is held.
func (f *Fleet) free(now time.Time) (best *member) {
	late := true
	for _, m := range f.members {
		if m.Leaving || m.Version != f.opts.Version || m.Files > 0 && m.turns >= m.most(f.opts.FilesEach) {
			continue
		}
		tardy := now.Before(m.lateUntil)
		if best == nil || late && !tardy || late == tardy && m.turns*best.Cores < best.turns*m.Cores {
			best, late = m, tardy
		}
	}
	return best
}

// most returns the number of turns that the member's open-file limit allows, at least one; 0: there is no limit.
func (b *beat) most(filesEach int) int {
	if b.Files == 0 {
		return 0
	}
	return max(1, b.Files/filesEach)
}

// publish sends a message. One that is lost, or sent while the server is away, is repeated where an answer is missing.
func (f *Fleet) publish(to string, data []byte) { _ = f.conn.Publish(f.subject+"."+to, data) }

// call calls a member, or with an empty id all of them.
func (f *Fleet) call(id string, c call) {
	c.By, c.Version, c.At = f.id, f.opts.Version, time.Since(f.began)
	data, _ := json.Marshal(c) // of strings and a number
	if id == "" {
		f.publish("all", data)
		return
	}
	f.publish("to."+id, data)
}

// tick calls the members, repeats orders, and finds the members that are silent, until ctx ends.
func (f *Fleet) tick(ctx context.Context) {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	var called time.Time
	away := false
	for {
		if now := time.Now(); !f.conn.IsConnected() {
			away = true
		} else {
			if away {
				away = false
				f.grace()
			}
			if now.Sub(called) >= callEvery {
				called = now
				f.call("", call{})
			}
			f.repeat(now)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// repeat repeats orders that no member has confirmed, asks for texts that are on a screen, and gives up the turns of
// silent members.
func (f *Fleet) repeat(now time.Time) {
	shown := map[string][]string{}
	var again, lost []*turn
	f.mu.Lock()
	for id, m := range f.members {
		if now.Sub(m.seen) > silentFor {
			delete(f.members, id)
			f.opts.Log.Warn("a member is lost", "member", m.Name, "turns", m.turns)
		}
	}
	for id, t := range f.turns {
		switch {
		case f.members[t.member.id] != t.member:
			lost = append(lost, t)
			f.lost[t.member.Name]++
		case !t.taken && now.Sub(t.handed) > repeatAfter:
			t.handed = now
			again = append(again, t)
		case t.req.Live != nil && now.Sub(t.req.Live.Read()) < shownFor:
			shown[t.member.id] = append(shown[t.member.id], id)
		}
	}
	f.mu.Unlock()
	for _, t := range lost {
		f.finish(t, notSent(fmt.Sprintf("the member %s, which sent the turn, was silent for %s", t.member.Name, silentFor)))
	}
	for _, t := range again {
		f.publish("turn."+t.member.id, t.order)
	}
	for id, turns := range shown {
		f.call(id, call{Show: turns})
	}
}

// finish ends a turn with a result, unless it has one.
func (f *Fleet) finish(t *turn, r chat.Result) {
	f.mu.Lock()
	if f.turns[t.req.ID] == t {
		delete(f.turns, t.req.ID)
		t.member.turns--
		f.wake()
	}
	f.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.ended = true
		t.result <- r
	}
}

// wake lets turns that wait for a member try again. The lock is held.
func (f *Fleet) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// receive takes a member's report.
func (f *Fleet) receive(data []byte) {
	now := time.Now()
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		f.opts.Log.Error("a member's report is not understood", "problem", err)
		return
	}
	f.mu.Lock()
	m := f.members[r.Member]
	if m == nil && r.Beat != nil {
		m = &member{id: r.Member}
		f.members[r.Member] = m
	}
	if m != nil {
		m.seen = now
		m.clock.add(now.Sub(f.began), r.At)
		if r.Beat != nil {
			f.beat(m, now, r.Beat)
		}
	}
	f.mu.Unlock()
	var reply call
	for i := range r.Turns {
		p := &r.Turns[i]
		f.mu.Lock()
		t := f.turns[p.ID]
		known := t != nil && m != nil && t.member == m
		if known {
			t.taken = true
		}
		f.mu.Unlock()
		if p.Result != nil {
			reply.Have = append(reply.Have, p.ID)
		}
		switch {
		case known:
			f.progress(t, p)
		case p.Result == nil:
			reply.Cancel = append(reply.Cancel, p.ID)
		}
	}
	if reply.Have != nil || reply.Cancel != nil {
		f.call(r.Member, reply)
	}
}

// beat takes a member's answer to a call. The lock is held.
func (f *Fleet) beat(m *member, now time.Time, b *beat) {
	joined := m.Name == ""
	m.beat = *b
	m.Cores = max(1, m.Cores)
	m.lags.Add(now, &b.Lag)
	if b.Call > 0 {
		m.roundTrip = now.Sub(f.began) - b.Call
	}
	if lag := m.lags.Between(now.Add(-lagSpan), now); lag.Known() && f.opts.Noticeable != nil && f.opts.Noticeable(&lag) {
		m.lateUntil = now.Add(fineAfter)
	}
	if joined {
		f.opts.Log.Info("a member has joined", "member", m.Name, "cores", m.Cores, "version", m.Version)
	}
	f.wake()
}

// progress takes what a member reports of a turn.
func (f *Fleet) progress(t *turn, p *progress) {
	f.mu.Lock()
	at := func(d time.Duration) time.Time { return f.began.Add(t.member.clock.here(d)) }
	var sent time.Time
	if p.Sent > 0 {
		sent = at(p.Sent)
	}
	var r *chat.Result
	if p.Result != nil {
		r = &p.Result.Result
		r.Sent, r.Ended = at(p.Result.Sent), at(p.Result.Ended)
	}
	f.mu.Unlock()
	t.observe(p, sent, r)
	if r != nil {
		f.finish(t, *r)
	}
}

// observe passes what has newly arrived to the turn's sender, as [chat.Client.Do] does.
func (t *turn) observe(p *progress, sent time.Time, r *chat.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	ttft, tokens, worker := p.TTFT, p.Tokens, p.Worker
	if r != nil {
		tokens, sent, worker = 0, r.Sent, r.Worker
		ttft, _ = r.TTFT()
		for _, c := range r.Chunks {
			tokens += max(1, int(c.Tokens))
		}
	}
	if t.req.Live != nil {
		t.req.Live.Mirror(sent, ttft, worker, p.Text)
	}
	if p.Prompt != nil && t.req.OnPrompt != nil && !t.first {
		t.req.OnPrompt(p.Prompt)
	}
	if more := tokens - t.tokens; more > 0 && t.req.OnChunk != nil {
		t.first, t.tokens = true, tokens
		t.req.OnChunk(more)
	}
}

// clock converts a member's time to the coordinator's, by the fastest of its messages of the last minute: the smallest
// difference of the two is the one with the shortest way.
type clock struct {
	least, before time.Duration // of the present half minute, and of the one before
	since         time.Duration
	n             int // number of half minutes so far
}

func (c *clock) add(here, there time.Duration) {
	if c.n == 0 || here-c.since > 30*time.Second {
		c.before, c.least, c.since = c.least, here-there, here
		c.n++
	}
	c.least = min(c.least, here-there)
}

func (c *clock) here(there time.Duration) time.Duration {
	if c.n > 1 {
		return there + min(c.least, c.before)
	}
	return there + c.least
}

// slowest returns the largest of the members' lags by their 95th percentiles, and whether one is known.
func (f *Fleet) slowest(of func(*stats.LagHistory) stats.Lag) (most stats.Lag, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		lag := of(&m.lags)
		if lag.Known() && (!known || lag.Quantile(.95) > most.Quantile(.95)) {
			most, known = lag, true
		}
	}
	return most, known
}

// Lag returns how late the slowest member was between two times. Data older than five minutes is gone. It returns false
// if there are too few samples.
func (f *Fleet) Lag(from, to time.Time) (lag stats.Lag, known bool) {
	return f.slowest(func(h *stats.LagHistory) stats.Lag { return h.Between(from, to) })
}

// Total returns how late the slowest member was since it joined.
func (f *Fleet) Total() stats.Lag {
	lag, _ := f.slowest((*stats.LagHistory).Total)
	return lag
}

// Health returns the worst health among the members. own is that of this process, of which only the CPU use counts.
func (f *Fleet) Health(own api.ClientHealth) api.ClientHealth {
	worst := api.ClientHealth{
		Verdict: api.VerdictUnknown, Reason: "there is no member: start one with loadgen member --join",
		CPURatio: own.CPURatio,
	}
	for i, m := range f.Members(time.Now()) {
		if m.State != api.MemberRefused && (i == 0 || m.Client.LagSeconds >= worst.LagSeconds) {
			worst = m.Client
			worst.Reason = m.Name + ": " + worst.Reason
		}
	}
	return worst
}

// Members returns the members, sorted by name.
func (f *Fleet) Members(now time.Time) []api.Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := []api.Member{}
	for _, m := range f.members {
		one := api.Member{
			ID: m.id, Name: m.Name, Version: m.Version, Started: m.Started, State: api.MemberPresent, Turns: m.turns,
			Client: m.Client, RoundTripSeconds: m.roundTrip.Seconds(), LostTurns: m.Lost + f.lost[m.Name],
		}
		switch {
		case m.Version != f.opts.Version:
			one.State, one.Reason = api.MemberRefused, "its version is not "+f.opts.Version
		case m.Leaving:
			one.State = api.MemberLeaving
		case now.Before(m.lateUntil):
			one.State, one.Reason = api.MemberLate, m.Client.Reason
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b api.Member) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return all
}

// Check refuses more conversations than the members' open files allow at a time. Without members, it allows all. The
// error is an [api.FieldError] of the field.
func (f *Fleet) Check(field string, n int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	most := 0
	for _, m := range f.members {
		if m.Files == 0 {
			return nil
		}
		most += m.most(f.opts.FilesEach)
	}
	if len(f.members) == 0 || n <= most {
		return nil
	}
	return api.Refuse(field, n, fmt.Sprintf("at most %d, which the open-file limit of the %d members allows (ulimit -n); "+
		"start more members, or raise that limit", most, len(f.members)))
}

// Metrics of a coordinator.
var (
	descMembers   = desc("loadgen_members", "Members by state: present, late, leaving, refused.", "state")
	descTurns     = desc("loadgen_member_turns", "Turns in flight that a member sends, of all lanes.", "member")
	descLate      = desc("loadgen_member_lag_seconds", "Lag of a member's time stamps, p95 of the last 10 s.", "member")
	descRoundTrip = desc("loadgen_member_round_trip_seconds", "Time for a message to a member and its answer.", "member")
	descLost      = desc("loadgen_member_lost_turns_total", "Turns that were lost with a member.", "member")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements [prometheus.Collector].
func (f *Fleet) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descMembers, descTurns, descLate, descRoundTrip, descLost} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (f *Fleet) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, label string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, api.Printable(label))
	}
	states := map[api.MemberState]int{api.MemberPresent: 0, api.MemberLate: 0, api.MemberLeaving: 0, api.MemberRefused: 0}
	seen := map[string]bool{}
	for _, m := range f.Members(time.Now()) {
		states[m.State]++
		name := m.Name
		if seen[name] { // two members of one name
			name += " " + m.ID
		}
		seen[name] = true
		gauge(descTurns, float64(m.Turns), name)
		gauge(descRoundTrip, m.RoundTripSeconds, name)
		if m.Client.Verdict != api.VerdictUnknown {
			gauge(descLate, m.Client.LagSeconds, name)
		}
	}
	for state, n := range states {
		gauge(descMembers, float64(n), string(state))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, n := range f.lost {
		ch <- prometheus.MustNewConstMetric(descLost, prometheus.CounterValue, float64(n), api.Printable(name))
	}
}
