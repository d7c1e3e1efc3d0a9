package members

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/workload"
)

// remote is a run whose conversations members hold. Its methods other than Run only record what the
// lane requests, since they are called with locks held. Run writes it.
type remote struct {
	*Coordinator
	receiver  lane.RunReceiver
	instances func() []string
	changed   signal
	found     *order // of the run that is resumed; nil: the run is new

	reporting sync.Mutex // keeps the reports of reportActive in order
	// listing guards unlisted, and keeps the states of a conversation in order; locked before mu.
	listing  sync.Mutex
	unlisted map[string]api.Conversation // latest states that are not passed to the lane yet, by id
	tally    *tally
	// lastReport is the sequence number in the stream of the last report that was read.
	lastReport atomic.Uint64

	// The order and the shares as they are written. Only Run uses them.
	allotment    *allotment
	written      order
	texts        *corpus.Corpus // of the order
	digest       string
	shares       map[string]Share // by member
	unknownSince time.Time        // since when it is not known which members are present; zero: it is known

	mu      sync.Mutex
	wanted  order
	corpus  *corpus.Corpus
	holders map[string]*holding
	active  int
}

// holding is a member's part of the run, as reported.
type holding struct {
	standing standing
	seq      int64 // of its last report
	begun    int64 // the highest number of a conversation in its reports
	underway workload.Underway
	at       time.Time // of its last report
	waited   map[api.Limiter]time.Duration
	progress map[int64]api.Conversation // its conversations in progress, by number
	ended    bool                       // none of its conversations is in progress any more
	expired  bool                       // its lease ended before its conversations
}

var _ lane.Runner = (*remote)(nil)

// changeOrder changes the order that Run writes.
func (r *remote) changeOrder(change func(o *order)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.wanted)
	r.changed.send()
}

// Set implements [lane.Runner].
func (r *remote) Set(s workload.Settings) {
	r.changeOrder(func(o *order) { o.Settings = s })
	r.reportActive()
}

// SetCorpus implements [lane.Runner].
func (r *remote) SetCorpus(c *corpus.Corpus) { r.changeOrder(func(*order) { r.corpus = c }) }

// Step implements [lane.Runner].
func (r *remote) Step(s api.StepRecord) { r.changeOrder(func(o *order) { o.Step = s }) }

// Drain implements [lane.Runner].
func (r *remote) Drain() {
	r.changeOrder(func(o *order) {
		if o.End == endNone {
			o.End = endDrain
		}
	})
}

// Pace adds up the members' reports.
func (r *remote) Pace() workload.Pace {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := workload.Pace{Actual: r.active, Next: r.wanted.Next, Waited: map[api.Limiter]time.Duration{}}
	n := time.Duration(0)
	for _, h := range r.holders {
		p.Begun += h.standing.Begun
		if !h.ended {
			n++
		}
		for limiter, d := range h.waited {
			p.Waited[limiter] += d
		}
	}
	for limiter := range p.Waited { // members wait concurrently
		p.Waited[limiter] /= max(n, 1)
	}
	return p
}

// Underway adds up the members' reports.
func (r *remote) Underway(now time.Time) (u workload.Underway) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.holders {
		u.Turns += h.underway.Turns
		u.Awaiting.N += h.underway.Awaiting.N
		if h.underway.Awaiting.N > 0 {
			u.Awaiting.OldestSeconds = max(u.Awaiting.OldestSeconds, h.underway.Awaiting.OldestSeconds+now.Sub(h.at).Seconds())
		}
	}
	return u
}

// Uniform reports whether every member has the step in force, and holds only conversations that
// were drawn from its settings.
func (r *remote) Uniform() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.holders {
		if !h.ended && (!h.standing.Uniform || h.standing.Step != r.wanted.Step.ID) {
			return false
		}
	}
	return true
}

// LiveTurn requests the turn from the member that holds the conversation.
func (r *remote) LiveTurn(ctx context.Context, conversation string) *api.LiveTurn {
	holder := ""
	r.mu.Lock()
	for id, h := range r.holders {
		for _, c := range h.progress {
			if c.ID == conversation {
				holder = id
			}
		}
	}
	r.mu.Unlock()
	if holder == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	reply, err := r.bus.conn.RequestWithContext(ctx, r.bus.subject+".live."+holder, []byte(conversation))
	var t api.LiveTurn
	if err != nil || len(reply.Data) == 0 || json.Unmarshal(reply.Data, &t) != nil {
		return nil
	}
	return &t
}

const liveTimeout = time.Second

// updateInterval is the interval at which shares are updated without an event.
const updateInterval = 100 * time.Millisecond

// Run implements [lane.Runner]. It retries while the server cannot be reached; members continue
// meanwhile.
func (r *remote) Run(ctx context.Context) {
	kept := context.WithoutCancel(ctx) // for requests to the server, which also follow the end of ctx
	listening, cancel := context.WithCancel(kept)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	r.allotment, r.shares = newAllotment(r.wanted.Run), map[string]Share{}
	if r.found != nil && retry(ctx, 0, func() error { return r.resume(kept) }) != nil {
		r.changeOrder(func(o *order) { o.End = endCancel })
	}
	wg.Go(func() {
		r.bus.repeat(listening, "reports are not read at the moment", func(connected context.Context) error {
			return r.readReports(listening, connected)
		})
	})
	recounting, giveUp := context.WithCancel(listening)
	var recount sync.WaitGroup
	if r.found != nil {
		recount.Go(func() { r.recount(recounting) })
	}
	tick := time.NewTicker(updateInterval)
	defer tick.Stop()
	done := ctx.Done()
	for !r.update(kept) {
		select {
		case <-done:
			r.changeOrder(func(o *order) { o.End = endCancel })
			done = nil
		case <-r.changed:
		case <-tick.C:
		}
	}
	if !r.catchUp(kept) {
		giveUp()
	}
	r.awaitTurns(kept)
	recount.Wait()
	giveUp()
	r.tally.recounted()
	r.tally.settle(time.Now(), func(string) bool { return false })
	r.close(kept)
}

// awaitTurns waits until the turns that members have delivered are stored, since they are read
// after the end of a run. The time is limited.
func (r *remote) awaitTurns(ctx context.Context) {
	if _, known := r.present(time.Now()); !known {
		return
	}
	ctx, cancel := r.bus.withTimeout(ctx, 2*redeliverAfter)
	defer cancel()
	stream, err := r.bus.turns.Info(ctx)
	for err == nil {
		var c jetstream.Consumer
		c, err = r.bus.turns.Consumer(ctx, turnsConsumer)
		if err == nil && c.CachedInfo().AckFloor.Stream >= stream.State.LastSeq || !pause(ctx, 20*time.Millisecond) {
			return
		}
	}
}

// close ends the run on members that still hold it, and removes it.
func (r *remote) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r.Coordinator.mu.Lock()
	r.endedRuns[r.wanted.Lane] = true
	if r.runs[r.wanted.Lane] == r {
		delete(r.runs, r.wanted.Lane)
	}
	r.Coordinator.mu.Unlock()
	r.endOne(ctx, r.wanted.Lane)
	for id := range r.shares {
		_ = r.bus.orders.Purge(ctx, "share."+r.wanted.Lane+"."+id)
	}
}

// reportActive reports the number of conversations in progress to the lane. It holds no lock that a
// call by the lane takes.
func (r *remote) reportActive() {
	r.reporting.Lock()
	defer r.reporting.Unlock()
	r.mu.Lock()
	actual, target := r.active, r.wanted.Settings.Concurrency
	r.mu.Unlock()
	r.receiver.Active(actual, target)
}

// resume takes over the shares that an earlier process wrote.
func (r *remote) resume(ctx context.Context) error {
	ctx, cancel := r.bus.withTimeout(ctx, requestTimeout)
	defer cancel()
	r.allotment.next = max(r.allotment.next, r.found.Next)
	return r.bus.forEach(ctx, r.bus.orders, "share."+r.wanted.Lane+".*", func(key string, value []byte) {
		var s Share
		if json.Unmarshal(value, &s) != nil || s.Run != r.wanted.Run {
			return
		}
		id := key[strings.LastIndexByte(key, '.')+1:]
		r.allotment.resume(id, s)
		r.shares[id] = s
		r.addHolder(id)
	})
}

// update writes order and shares according to the wanted order and the members that are present. It
// reports whether the run has ended.
func (r *remote) update(ctx context.Context) (ended bool) {
	now := time.Now()
	present, known := r.present(now)
	if !known {
		if r.unknownSince.IsZero() {
			r.unknownSince = now
		}
		// Members that are disconnected as well have stopped without a lease by then. The order to the
		// others is written after the reconnect.
		r.mu.Lock()
		ended = r.wanted.End == endCancel && now.Sub(r.unknownSince) > leaseSpan+time.Second
		r.mu.Unlock()
		if ended {
			r.noteMembers(now, nil)
		}
		return ended
	}
	r.unknownSince = time.Time{}
	if r.missesHolder(present) && !r.catchUp(ctx) { // reports from the time of the lease count
		return false
	}
	r.noteMembers(now, present)
	r.mu.Lock()
	o, texts := r.wanted, r.corpus
	r.mu.Unlock()
	if r.instances != nil {
		o.Instances = r.instances()
	}
	o.Shadow = r.receiver.Shadow().BlockSpec()
	if o.End != endNone && !r.missesHolder(nil) { // no conversation is in progress
		return true
	}
	shares := r.allotment.divide(o.Settings, r.candidates(present))
	o.Next = r.allotment.next
	r.mu.Lock()
	r.wanted.Next = o.Next
	r.mu.Unlock()
	if err := r.write(ctx, &o, texts, shares); err != nil {
		r.log.Warn("members cannot be instructed at the moment; they continue unchanged", "lane", o.Lane, "problem", err)
	}
	return false
}

// candidates returns the members that can hold a share.
func (r *remote) candidates(present []*member) []candidate {
	r.Coordinator.mu.Lock()
	defer r.Coordinator.mu.Unlock()
	onTime := 0
	for _, m := range present {
		if !m.lateness.late && m.State != api.MemberLeaving {
			onTime++
		}
	}
	// If most members are late, the cause is likely shared, and moving conversations does not help.
	moveFromLate := 2*onTime >= len(present)
	wait := r.newcomersWait(present)
	var all []candidate
	for _, m := range present {
		c := candidate{
			ID: m.key, Most: m.most(r.opts.FilesEach),
			Excluded: m.State == api.MemberLeaving || m.lateness.late && moveFromLate || wait(m),
		}
		if s := m.Lanes[r.wanted.Lane]; s.Run == r.wanted.Run {
			c.Reported = s
		}
		all = append(all, c)
	}
	return all
}

// A member that joins while others hold the run gets its share after newcomerDelay, and not while a
// holder has been silent for silenceLimit. The new member may replace one that was killed, whose
// share it gets when that one's lease has ended. Before that, others would end conversations for it.
const (
	newcomerDelay = 2 * time.Second
	silenceLimit  = 3 * renewEvery
)

// newcomersWait returns a function that reports whether a member must wait for its share. The
// coordinator's lock is held.
func (r *remote) newcomersWait(present []*member) func(*member) bool {
	now := time.Now()
	holds, silent := false, false
	for _, m := range present {
		if _, given := r.shares[m.key]; given && m.State != api.MemberLeaving {
			holds = true
			silent = silent || now.Sub(m.lastReport) > silenceLimit
		}
	}
	return func(m *member) bool {
		_, given := r.shares[m.key]
		return holds && !given && (silent || now.Sub(m.joined) < newcomerDelay)
	}
}

// missesHolder reports whether a member that holds conversations is not among those present.
func (r *remote) missesHolder(present []*member) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, h := range r.holders {
		if !h.ended && !slices.ContainsFunc(present, func(m *member) bool { return m.key == id }) {
			return true
		}
	}
	return false
}

// noteMembers records the state of the members that are present, and ends the conversations of
// those that are not.
func (r *remote) noteMembers(now time.Time, present []*member) {
	r.Coordinator.mu.Lock()
	standings := map[string]standing{} // of those present
	for _, m := range present {
		standings[m.key] = m.Lanes[r.wanted.Lane]
	}
	r.Coordinator.mu.Unlock()
	r.tally.settle(now, func(id string) bool {
		_, isPresent := standings[id]
		return isPresent
	})
	r.listing.Lock()
	r.mu.Lock()
	active := 0
	var cancelled []api.Conversation
	lost := map[string]int{} // numbers of conversations, by member
	for id, h := range r.holders {
		switch s, isPresent := standings[id]; {
		case isPresent && s.Run == r.wanted.Run:
			h.standing = s
			active += s.Active
		case isPresent && s.Over == r.wanted.Run:
			h.end()
		case !isPresent && !h.ended:
			h.end()
			h.expired = true
			lost[id] = len(h.progress)
			for _, c := range h.progress {
				c.Status, c.Ended = api.ConversationCancelled, new(h.leaseEnd(now))
				cancelled = append(cancelled, c)
			}
			h.progress = nil
		}
	}
	changed := active != r.active
	r.active = active
	r.mu.Unlock()
	for _, c := range cancelled {
		delete(r.unlisted, c.ID)
		r.receiver.Conversation(c)
	}
	r.listing.Unlock()
	for id, n := range lost {
		if name := r.expireHolder(id, now); n > 0 {
			r.log.Info("a member's conversations are cancelled", "lane", r.wanted.Lane, "member", name, "conversations", n)
		}
		r.receiver.Shadow().Disconnect(id)
	}
	if changed {
		r.reportActive()
	}
}

// end records that none of the member's conversations is in progress any more.
func (h *holding) end() {
	h.ended = true
	h.standing.Active = 0
	h.underway = workload.Underway{}
}

// leaseEnd returns when the lease of an absent member ended. For a coordinator that takes over,
// that may be long before now.
func (h *holding) leaseEnd(now time.Time) time.Time {
	if at := h.at.Add(leaseSpan); !h.at.IsZero() && at.Before(now) {
		return at
	}
	return now
}

// writeTimeout limits the writing of order and shares, since the run is not updated meanwhile.
const writeTimeout = time.Second

// write writes what has changed: the order first, whose Next prevents that a coordinator that takes
// over gives a number again.
func (r *remote) write(ctx context.Context, o *order, texts *corpus.Corpus, shares map[string]Share) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if texts != r.texts {
		digest, err := r.bus.writeTexts(ctx, texts)
		if err != nil {
			return fmt.Errorf("the texts: %w", err)
		}
		r.texts, r.digest = texts, digest
	}
	ctx, end := r.bus.withTimeout(ctx, writeTimeout)
	defer end()
	o.Digest = r.digest
	if err := r.writeOrder(ctx, o); err != nil {
		return err
	}
	for id, s := range shares {
		before, written := r.shares[id]
		if written && before.Grant == s.Grant {
			continue
		}
		if !written && s.Concurrency == 0 && !r.mayHold(id) {
			continue
		}
		r.addHolder(id)
		if err := r.put(ctx, "share."+o.Lane+"."+id, s); err != nil {
			return err
		}
		r.shares[id] = s
	}
	for id := range r.shares { // remove the shares of members that are no longer present
		if _, ok := shares[id]; ok {
			continue
		}
		if err := r.bus.orders.Purge(ctx, "share."+o.Lane+"."+id); err != nil {
			return err
		}
		delete(r.shares, id)
	}
	return nil
}

// writeOrder writes the order if it has changed.
func (r *remote) writeOrder(ctx context.Context, o *order) error {
	if reflect.DeepEqual(*o, r.written) {
		return nil
	}
	r.ordering.Lock()
	defer r.ordering.Unlock()
	if err := r.put(ctx, "order."+o.Lane, o); err != nil {
		return err
	}
	r.written = *o
	return nil
}

// mayHold reports whether a member was given a share, or may have been.
func (r *remote) mayHold(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holders[id] != nil
}

// addHolder records that a member may hold conversations from now on.
func (r *remote) addHolder(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holderOf(id)
}

// holderOf returns the part of a member, which is added if it is new. The lock is held.
func (r *remote) holderOf(id string) *holding {
	h := r.holders[id]
	if h == nil {
		h = &holding{progress: map[int64]api.Conversation{}}
		r.holders[id] = h
	}
	return h
}

// stored counts a turn that a member has delivered. It reports whether the member holds the turn's
// conversation, and records the conversation if no report has contained it. A member begins
// conversations in the order of their numbers.
func (r *remote) stored(id string, t *handedTurn) (held bool) {
	r.mu.Lock()
	ours, h := t.Run == r.wanted.Run, r.holders[id]
	held = ours && h != nil && !h.expired
	if held {
		c := t.Conversation
		if known, ok := h.progress[c.Number]; c.Number > h.begun || ok && known.TurnsDone < c.TurnsDone {
			h.progress[c.Number] = c
		}
	}
	r.mu.Unlock()
	if ours { // without the lock, which the lane may take while it holds its own
		r.tally.stored(id, t)
	}
	return held
}

// listBatch is the number of conversations that are stored before the store is flushed.
const listBatch = 5_000

// readReports reads the reports after the last one until connected ends. It stores conversations
// until ctx ends.
func (r *remote) readReports(ctx, connected context.Context) error {
	conf := jetstream.OrderedConsumerConfig{
		FilterSubjects:    []string{r.bus.subject + ".report." + r.wanted.Lane},
		InactiveThreshold: time.Minute,
	}
	if last := r.lastReport.Load(); last > 0 {
		conf.DeliverPolicy, conf.OptStartSeq = jetstream.DeliverByStartSequencePolicy, last+1
	} else { // a minute earlier, since the server's clock may differ
		conf.DeliverPolicy, conf.OptStartTime = jetstream.DeliverByStartTimePolicy, new(r.wanted.Began.Add(-time.Minute))
	}
	consumer, err := r.bus.reports.OrderedConsumer(connected, conf)
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	context.AfterFunc(connected, messages.Stop)
	for {
		// Stop alone is not enough: while Messages replaces its consumer, it ignores Stop.
		m, err := messages.Next(jetstream.NextContext(connected))
		if err != nil {
			return err
		}
		var got report
		if json.Unmarshal(m.Data(), &got) == nil && got.Run == r.wanted.Run {
			r.takeReport(&got)
		}
		if meta, err := m.Metadata(); err == nil {
			if meta.NumPending == 0 {
				r.passConversations(ctx)
			}
			r.lastReport.Store(meta.Sequence.Stream)
		}
	}
}

// passConversations passes the latest states of conversations to the lane. A coordinator that takes
// over reads the reports of ten minutes at once. Passing only the latest state of each conversation
// reduces them, but they are still more than the store's queue holds.
func (r *remote) passConversations(ctx context.Context) {
	for left := true; left; {
		r.listing.Lock()
		n := 0
		for id, c := range r.unlisted {
			if n++; n > listBatch {
				break
			}
			delete(r.unlisted, id)
			r.receiver.Conversation(c)
		}
		left = len(r.unlisted) > 0
		r.listing.Unlock()
		if left {
			_ = r.opts.Store.Flush(ctx)
		}
	}
}

// catchUp waits until everything that has been reported is read, and reports whether it is. The
// time is limited.
func (r *remote) catchUp(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	newest, err := r.bus.reports.GetLastMsgForSubject(ctx, r.bus.subject+".report."+r.wanted.Lane)
	if err != nil {
		return errors.Is(err, jetstream.ErrMsgNotFound)
	}
	for r.lastReport.Load() < newest.Sequence {
		if !pause(ctx, 5*time.Millisecond) {
			return false
		}
	}
	return true
}

// takeReport processes a report, unless it was processed before.
func (r *remote) takeReport(got *report) {
	ahead, uncertainty := r.ahead(got.Member)
	if early := time.Until(got.Sent.Add(-ahead)); early > uncertainty { // a report cannot be sent after it is received
		ahead += early
	}
	fresh, holds := r.noteReport(got, ahead)
	if !fresh {
		return
	}
	r.receiver.Tokens(got.Sent.Add(-ahead), got.Tokens)
	r.receiver.Probes(got.Probes)
	for i := range got.Turns {
		t := &got.Turns[i]
		t.Started, t.Ended = t.Started.Add(-ahead), t.Ended.Add(-ahead)
		r.tally.count(t)
	}
	if !holds {
		return
	}
	r.receiver.Shadow().Receive(got.Member, got.Shadow, ahead, uncertainty)
	if got.Last {
		r.receiver.Shadow().Disconnect(got.Member)
	}
}

// noteReport records a report's data on the member's conversations. fresh is false for a report
// that was processed before. holds is false for a member whose lease has ended, of which only turns
// count.
func (r *remote) noteReport(got *report, ahead time.Duration) (fresh, holds bool) {
	r.listing.Lock()
	defer r.listing.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.holderOf(got.Member) // new if its share ended before this coordinator took over
	if got.Seq <= h.seq {
		return false, false
	}
	h.seq = got.Seq
	if h.expired {
		return true, false
	}
	h.underway, h.waited, h.at = got.Underway, got.Waited, got.Sent.Add(-ahead)
	for i := range got.Conversations {
		c := &got.Conversations[i]
		h.begun = max(h.begun, c.Number)
		c.Started = c.Started.Add(-ahead)
		if c.Ended == nil {
			h.progress[c.Number] = *c
			continue
		}
		c.Ended = new(c.Ended.Add(-ahead))
		delete(h.progress, c.Number)
	}
	for _, c := range got.Conversations {
		r.unlisted[c.ID] = c
	}
	return true, true
}

// recount counts the run's stored turns whose reports are gone: the server keeps reports for
// reportsKept, and a member that was killed has not sent its last one.
func (r *remote) recount(ctx context.Context) {
	defer r.tally.recounted()
	for !r.catchUp(ctx) {
		if !pause(ctx, 100*time.Millisecond) {
			return
		}
	}
	if err := r.recountStored(ctx); err != nil && ctx.Err() == nil {
		r.log.Warn("turns from before the takeover are missing in the totals", "lane", r.wanted.Lane, "problem", err)
	}
}

// recountStored counts the stored turns of the run.
func (r *remote) recountStored(ctx context.Context) error {
	r.mu.Lock()
	began, prefix := r.wanted.Began.Add(-time.Second), r.wanted.Lane+"-"+r.wanted.Run+"-"
	draw := workload.Draw{Seed: r.wanted.Seed, Opened: r.wanted.Opened}
	r.mu.Unlock()
	if err := r.opts.Store.Flush(ctx); err != nil {
		return err
	}
	steps, err := r.opts.Store.Steps(ctx, r.wanted.Lane)
	if err != nil {
		return err
	}
	first := slices.IndexFunc(steps, func(s api.StepRecord) bool { return !s.Started.Before(began) })
	if first < 0 {
		return nil
	}
	return r.opts.Store.TurnsFrom(ctx, steps[first].Lane, steps[first].ID, func(t *api.Turn) error {
		if strings.HasPrefix(t.Conversation, prefix) {
			draw.Number = numberOf(t.Conversation)
			turn := withoutTexts(workload.Turn{Turn: *t, Draw: draw})
			r.tally.count(&turn)
		}
		return nil
	})
}
