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
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/workload"
)

// remote is a run whose conversations members hold. What the lane asks for it notes, and
// writes in Run, since whoever asks has locks.
type remote struct {
	*Coordinator
	heard     lane.RunReceiver
	instances func() []string
	changed   chan struct{} // holds one word
	found     *order        // that it goes on with; nil: it is new

	telling sync.Mutex
	// listing keeps what is told of a conversation in order: before mu.
	listing sync.Mutex
	untold  map[string]api.Conversation // the latest state of each while there is more to read; under listing
	tally   *tally

	mu      sync.Mutex
	wanted  order
	corpus  *corpus.Corpus
	holders map[string]*heldBy
	active  int
}

// heldBy is what a member was given and has reported.
type heldBy struct {
	name     string
	standing standing
	seq      int64 // of its last report
	begun    int64 // the highest number of a conversation in its reports
	underway workload.Underway
	at       time.Time // of that report
	waited   map[api.Limiter]time.Duration
	progress map[int64]api.Conversation // its conversations in progress
	over     bool                       // nothing of it is in progress any more
	dead     bool                       // its lease ended before
}

var _ lane.Runner = (*remote)(nil)

// begin makes a run that does nothing before Run.
func (c *Coordinator) begin(e *engine, t lane.Task) *remote {
	r := &remote{
		Coordinator: c,
		heard:       t.Receiver,
		instances:   e.instances,
		changed:     make(chan struct{}, 1),
		corpus:      t.Corpus,
		holders:     map[string]*heldBy{},
		untold:      map[string]api.Conversation{},
		tally:       newTally(t.Receiver.Turn, t.Resumed),
		wanted: order{
			Lane:     t.Lane,
			Run:      t.Run,
			Seed:     t.Seed,
			Opened:   t.Opened,
			Midway:   t.Midway,
			Nonce:    t.Nonce,
			Began:    t.Step.Started,
			Taken:    t.Taken,
			Settings: t.Settings,
			Step:     t.Step,
			Target:   e.target,
			Followup: e.asker,
		},
	}
	if at := e.target.Endpoint; at != nil {
		r.wanted.Target.URL, r.wanted.Target.Endpoint = at(), nil
	}
	if t.Resumed {
		r.found = new(c.found[t.Lane])
		r.wanted.Began = r.found.Began
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs[t.Lane] = r
	return r
}

// wake never waits.
func (r *remote) wake() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// want changes what is wanted of the members.
func (r *remote) want(change func(o *order)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.wanted)
	r.wake()
}

// Set is that of [lane.Runner].
func (r *remote) Set(s workload.Settings) {
	r.want(func(o *order) { o.Settings = s })
	r.tellActive()
}

// SetCorpus is that of [lane.Runner].
func (r *remote) SetCorpus(c *corpus.Corpus) { r.want(func(*order) { r.corpus = c }) }

// Step is that of [lane.Runner].
func (r *remote) Step(s api.StepRecord) { r.want(func(o *order) { o.Step = s }) }

// Drain is that of [lane.Runner].
func (r *remote) Drain() {
	r.want(func(o *order) {
		if o.End == goesOn {
			o.End = drains
		}
	})
}

// Pace adds up what members say.
func (r *remote) Pace() workload.Pace {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := workload.Pace{Actual: r.active, Next: r.wanted.Next, Waited: map[api.Limiter]time.Duration{}}
	n := time.Duration(0)
	for _, h := range r.holders {
		p.Begun += h.standing.Begun
		if !h.over {
			n++
		}
		for by, d := range h.waited {
			p.Waited[by] += d
		}
	}
	for by := range p.Waited { // members wait beside each other
		p.Waited[by] /= max(n, 1)
	}
	return p
}

// Underway adds up what members say.
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

// Uniform says whether every member has heard of the step in force, and holds nothing that was
// drawn otherwise.
func (r *remote) Uniform() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.holders {
		if !h.over && (!h.standing.Uniform || h.standing.Step != r.wanted.Step.ID) {
			return false
		}
	}
	return true
}

// LiveTurn asks the member that holds the conversation.
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
	ctx, cancel := context.WithTimeout(ctx, liveWithin)
	defer cancel()
	reply, err := r.bus.conn.RequestWithContext(ctx, r.bus.subject+".live."+holder, []byte(conversation))
	var t api.LiveTurn
	if err != nil || len(reply.Data) == 0 || json.Unmarshal(reply.Data, &t) != nil {
		return nil
	}
	return &t
}

const liveWithin = time.Second

// lookEvery is how often shares are looked at where nothing is heard.
const lookEvery = 100 * time.Millisecond

// Run is that of [lane.Runner]. Where the server cannot be reached, it tries again; members go
// on meanwhile.
func (r *remote) Run(ctx context.Context) {
	listening, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	reports := &reader{remote: r}
	defer wg.Wait()
	defer cancel()
	w := &writer{remote: r, reports: reports, allotment: newAllotment(r.wanted.Run), shares: map[string]Share{}}
	for r.found != nil && !w.resume(context.WithoutCancel(ctx)) {
		if !pause(ctx, 100*time.Millisecond) { // it tries again until the server is there
			r.want(func(o *order) { o.End = endsNow }) // and gives nothing
			break
		}
	}
	wg.Go(func() { reports.run(listening) })
	recounting, giveUp := context.WithCancel(listening)
	var recount sync.WaitGroup
	if r.found != nil {
		recount.Go(func() { reports.recount(recounting) })
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	done := ctx.Done()
	for {
		if ended := w.look(context.WithoutCancel(ctx)); ended {
			break
		}
		select {
		case <-done:
			r.want(func(o *order) { o.End = endsNow })
			done = nil
		case <-r.changed:
		case <-tick.C:
		}
	}
	if !reports.catchUp(context.WithoutCancel(ctx)) {
		giveUp()
	}
	r.awaitTurns(context.WithoutCancel(ctx))
	recount.Wait()
	giveUp()
	r.tally.recounted()
	r.tally.settle(time.Now(), func(string) bool { return false })
	r.close(context.WithoutCancel(ctx), w)
}

// awaitTurns waits until the turns that members have handed over are stored, but not for ever: who
// has ended a run reads its turns next.
func (r *remote) awaitTurns(ctx context.Context) {
	if _, known := r.alive(time.Now()); !known {
		return
	}
	ctx, cancel := r.bus.within(ctx, 2*turnsAgain)
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

// close ends the run on members that are in it still, and forgets it.
func (r *remote) close(ctx context.Context, w *writer) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	r.Coordinator.mu.Lock()
	r.left[r.wanted.Lane] = true
	if r.runs[r.wanted.Lane] == r {
		delete(r.runs, r.wanted.Lane)
	}
	r.Coordinator.mu.Unlock()
	r.endOne(ctx, r.wanted.Lane)
	for id := range w.shares {
		_ = r.bus.orders.Purge(ctx, "share."+r.wanted.Lane+"."+id)
	}
}

// tellActive tells the lane how many conversations are in progress. The lane may ask for
// something meanwhile.
func (r *remote) tellActive() {
	r.telling.Lock() // so that it hears of the numbers in order
	defer r.telling.Unlock()
	r.mu.Lock()
	actual, target := r.active, r.wanted.Settings.Concurrency
	r.mu.Unlock()
	r.heard.Active(actual, target)
}

// writer writes order and shares. Run uses it alone.
type writer struct {
	*remote
	reports   *reader
	allotment *allotment
	written   order
	texts     *corpus.Corpus // of the order
	digest    string
	shares    map[string]Share // as written
	deaf      time.Time        // since when nothing is heard; zero: something is
}

// resume takes over what a process before this one wrote; false: it cannot be read.
func (w *writer) resume(ctx context.Context) bool {
	ctx, cancel := w.bus.within(ctx, askFor)
	defer cancel()
	w.allotment.next = max(w.allotment.next, w.found.Next)
	err := w.bus.each(ctx, w.bus.orders, "share."+w.wanted.Lane+".*", func(key string, value []byte) {
		var s Share
		if json.Unmarshal(value, &s) != nil || s.Run != w.wanted.Run {
			return
		}
		id := key[strings.LastIndexByte(key, '.')+1:]
		w.allotment.resume(id, s)
		w.shares[id] = s
		w.gives(id)
	})
	return err == nil
}

// look brings order and shares to what is wanted and who is there, and says whether the run has
// ended.
func (w *writer) look(ctx context.Context) (ended bool) {
	now := time.Now()
	present, known := w.alive(now)
	if !known {
		if w.deaf.IsZero() {
			w.deaf = now
		}
		// Members that the server does not hear either have stopped by themselves by now. To others it
		// is said as soon as they can be told.
		w.mu.Lock()
		ended = w.wanted.End == endsNow && now.Sub(w.deaf) > leaseSpan+time.Second
		w.mu.Unlock()
		if ended {
			w.note(now, nil)
		}
		return ended
	}
	w.deaf = time.Time{}
	if w.misses(present) && !w.reports.catchUp(ctx) { // what they reported while their leases held counts
		return false
	}
	w.note(now, present)
	w.mu.Lock()
	o, texts := w.wanted, w.corpus
	w.mu.Unlock()
	if w.instances != nil {
		o.Instances = w.instances()
	}
	o.Shadow = w.heard.Shadow().BlockSpec()
	if o.End != goesOn && w.allOver() {
		return true
	}
	shares, changed := w.allotment.divide(w.total(&o), w.candidates(present))
	o.Next = w.allotment.next
	w.mu.Lock()
	w.wanted.Next = o.Next
	w.mu.Unlock()
	if err := w.write(ctx, &o, texts, shares, changed); err != nil {
		w.log.Warn("members cannot be instructed at the moment; they continue unchanged", "lane", o.Lane, "problem", err)
	}
	return false
}

func (w *writer) total(o *order) total {
	return total{Concurrency: o.Settings.Concurrency, StartRate: o.Settings.StartRate, TargetRPS: o.Settings.TargetRPS}
}

// candidates are the members that can hold a share.
func (w *writer) candidates(present []*member) []candidate {
	w.Coordinator.mu.Lock()
	defer w.Coordinator.mu.Unlock()
	inTime := 0
	for _, m := range present {
		if !m.late.is && !m.Leaves {
			inTime++
		}
	}
	wait := w.newcomersWait(present)
	var all []candidate
	for _, m := range present {
		c := candidate{ID: m.ID, Weight: 1, Most: m.most(w.opts.FilesEach)}
		if m.Leaves || m.late.is && 2*inTime >= len(present) || wait(m) { // where most are late, what they share is slow
			c.Weight = 0
		}
		if s := m.Lanes[w.wanted.Lane]; s.Run == w.wanted.Run {
			c.Told = told{Grant: s.Grant, Active: s.Active, Begun: s.Begun}
		}
		all = append(all, c)
	}
	return all
}

// A member that comes while others hold the run waits for comesAfter, and until nobody who
// holds something has been silent for silentAfter: it may be there in place of one that was
// killed, whose share is its own as soon as that one's lease is over. Others would end
// conversations for it until then.
const (
	comesAfter  = 2 * time.Second
	silentAfter = 3 * renewEvery
)

// newcomersWait says which members wait for a share. The coordinator's lock is held.
func (w *writer) newcomersWait(present []*member) func(*member) bool {
	now := time.Now()
	holds, silent := false, false
	for _, m := range present {
		if _, given := w.shares[m.ID]; given && !m.Leaves {
			holds = true
			silent = silent || now.Sub(m.heard) > silentAfter
		}
	}
	return func(m *member) bool {
		_, given := w.shares[m.ID]
		return holds && !given && (silent || now.Sub(m.came) < comesAfter)
	}
}

// misses says whether a member that holds something is no longer present.
func (w *writer) misses(present []*member) bool {
	here := w.ids(present)
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, h := range w.holders {
		if !h.over && !slices.Contains(here, id) {
			return true
		}
	}
	return false
}

// note takes in where members are, and ends what the dead ones held.
func (w *writer) note(now time.Time, present []*member) {
	here := map[string]bool{}
	w.Coordinator.mu.Lock()
	stands := map[string]standing{}
	for _, m := range present {
		here[m.ID] = true
		stands[m.ID] = m.Lanes[w.wanted.Lane]
	}
	w.Coordinator.mu.Unlock()
	w.tally.settle(now, func(id string) bool { return here[id] })
	w.listing.Lock()
	w.mu.Lock()
	active := 0
	var cancelled []api.Conversation
	var lost []string
	for id, h := range w.holders {
		if s := stands[id]; s.Run == w.wanted.Run {
			h.standing = s
			active += s.Active
		} else if here[id] && s.Over == w.wanted.Run {
			h.over, h.standing.Active, h.underway = true, 0, workload.Underway{}
		}
		if !here[id] && !h.over {
			h.over, h.dead, h.standing.Active, h.underway = true, true, 0, workload.Underway{}
			if len(h.progress) > 0 {
				w.log.Info(
					"a member's conversations are cancelled",
					"lane",
					w.wanted.Lane,
					"member",
					h.name,
					"conversations",
					len(h.progress),
				)
			}
			for _, c := range h.progress {
				c.Status, c.Ended = api.ConversationCancelled, new(h.lostAt(now))
				cancelled = append(cancelled, c)
			}
			h.progress = nil
			lost = append(lost, id)
		}
	}
	changed := active != w.active
	w.active = active
	w.mu.Unlock()
	for _, c := range cancelled {
		delete(w.untold, c.ID)
		w.heard.Conversation(c)
	}
	w.listing.Unlock()
	for _, id := range lost {
		w.expireHolder(id, now)
		w.heard.Shadow().Disconnect(id)
	}
	if changed {
		w.tellActive()
	}
}

// lostAt is when the lease of a member that is gone ended. For a coordinator before this one that may be long ago.
func (h *heldBy) lostAt(now time.Time) time.Time {
	if at := h.at.Add(leaseSpan); !h.at.IsZero() && at.Before(now) {
		return at
	}
	return now
}

// allOver says whether nobody holds anything of the run.
func (w *writer) allOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.holders {
		if !h.over {
			return false
		}
	}
	return true
}

// tellWithin is what order and shares may take to be written: nothing else is looked at meanwhile.
const tellWithin = time.Second

// write writes what has changed: the order first, whose Next keeps a coordinator that takes
// over from giving a number again.
func (w *writer) write(
	ctx context.Context,
	o *order,
	texts *corpus.Corpus,
	shares map[string]Share,
	changed []string,
) error {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	if texts != w.texts {
		digest, err := w.bus.writeTexts(ctx, texts)
		if err != nil {
			return fmt.Errorf("the texts: %w", err)
		}
		w.texts, w.digest = texts, digest
	}
	ctx, end := w.bus.within(ctx, tellWithin)
	defer end()
	o.Corpus = w.digest
	if err := w.writeOrder(ctx, o); err != nil {
		return err
	}
	for id, s := range shares {
		before, written := w.shares[id]
		if written && !slices.Contains(changed, id) && before.Grant == s.Grant {
			continue
		}
		if !written && s.Concurrency == 0 && !w.mayHold(id) {
			continue
		}
		if !w.claim.holds() {
			return errNoClaim
		}
		w.gives(id)
		if err := put(ctx, w.bus.orders, "share."+o.Lane+"."+id, s); err != nil {
			return err
		}
		w.shares[id] = s
	}
	for id := range w.shares { // of those that are gone
		if _, ok := shares[id]; ok {
			continue
		}
		if err := w.bus.orders.Purge(ctx, "share."+o.Lane+"."+id); err != nil {
			return err
		}
		delete(w.shares, id)
	}
	return nil
}

// errNoClaim says that somebody else may have the members by now.
var errNoClaim = errors.New("the coordinator's lease could not be renewed")

// writeOrder writes the order, where it has changed.
func (w *writer) writeOrder(ctx context.Context, o *order) error {
	if reflect.DeepEqual(*o, w.written) {
		return nil
	}
	w.ordering.Lock()
	defer w.ordering.Unlock()
	if !w.claim.holds() {
		return errNoClaim
	}
	if err := put(ctx, w.bus.orders, "order."+o.Lane, o); err != nil {
		return err
	}
	w.written = *o
	return nil
}

// mayHold says whether a member was given something, or may have been.
func (w *writer) mayHold(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holders[id] != nil
}

// gives notes that a member may hold something from now on.
func (w *writer) gives(id string) {
	w.Coordinator.mu.Lock()
	name := id
	if m := w.members[id]; m != nil {
		name = m.Name
	}
	w.Coordinator.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holders[id] == nil {
		w.holders[id] = &heldBy{name: name, progress: map[int64]api.Conversation{}}
	}
}

// stored counts a turn that a member has handed over. It says whether the member holds the conversation
// of the turn, and notes it where no report has: a member begins conversations in the order of their numbers.
func (r *remote) stored(id string, t *handed) (held bool) {
	r.mu.Lock()
	ours, h := t.Run == r.wanted.Run, r.holders[id]
	held = ours && h != nil && !h.dead
	if held {
		c := t.Conversation
		if known, ok := h.progress[c.Number]; c.Number > h.begun || ok && known.TurnsDone < c.TurnsDone {
			h.progress[c.Number] = c
		}
	}
	r.mu.Unlock()
	if ours { // without the lock: the lane may hold its own, and ask for this one
		r.tally.stored(id, t)
	}
	return held
}

// reader reads the reports of a run.
type reader struct {
	*remote

	mu   sync.Mutex
	last uint64 // place in the stream of the last that was read
}

// run reads until ctx ends. After the server was lost it goes on behind the last report.
func (r *reader) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.some(ctx); err != nil && ctx.Err() == nil {
			r.log.Debug("reports are not read at the moment", "problem", err)
			pause(ctx, 50*time.Millisecond)
		}
	}
}

// listAtOnce is how many conversations the store is given before it is waited for.
const listAtOnce = 5_000

func (r *reader) some(ctx context.Context) error {
	again := r.bus.again()
	conf := jetstream.OrderedConsumerConfig{
		FilterSubjects:    []string{r.bus.subject + ".report." + r.wanted.Lane},
		InactiveThreshold: time.Minute,
	}
	r.mu.Lock()
	if r.last > 0 {
		conf.DeliverPolicy, conf.OptStartSeq = jetstream.DeliverByStartSequencePolicy, r.last+1
	} else { // by the server's clock, which may go otherwise
		conf.DeliverPolicy, conf.OptStartTime = jetstream.DeliverByStartTimePolicy, new(r.wanted.Began.Add(-time.Minute))
	}
	r.mu.Unlock()
	consumer, err := r.bus.reports.OrderedConsumer(ctx, conf)
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	reading, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		select {
		case <-again:
			cancel()
		case <-reading.Done():
		}
		messages.Stop()
	})
	for {
		// To stop it is not enough: it may be about to go on with another consumer, and then misses that.
		m, err := messages.Next(jetstream.NextContext(reading))
		if err != nil {
			return err
		}
		var got report
		if json.Unmarshal(m.Data(), &got) == nil && got.Run == r.wanted.Run {
			r.take(&got)
		}
		if meta, err := m.Metadata(); err == nil {
			if meta.NumPending == 0 {
				r.list(ctx)
			}
			r.mu.Lock()
			r.last = max(r.last, meta.Sequence.Stream)
			r.mu.Unlock()
		}
	}
}

// list tells the lane of the conversations of which reports have told. Whoever takes over hears ten
// minutes of reports at once: the latest state of each is enough, and still more than the store's
// queue holds.
func (r *reader) list(ctx context.Context) {
	for left := true; left; {
		r.listing.Lock()
		n := 0
		for id, c := range r.untold {
			if n++; n > listAtOnce {
				break
			}
			delete(r.untold, id)
			r.heard.Conversation(c)
		}
		left = len(r.untold) > 0
		r.listing.Unlock()
		if left {
			_ = r.opts.Store.Flush(ctx)
		}
	}
}

// catchUp waits until everything that has been reported is read, but not for ever, and says whether
// it is.
func (r *reader) catchUp(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	newest, err := r.bus.reports.GetLastMsgForSubject(ctx, r.bus.subject+".report."+r.wanted.Lane)
	if err != nil {
		return errors.Is(err, jetstream.ErrMsgNotFound)
	}
	for {
		r.mu.Lock()
		last := r.last
		r.mu.Unlock()
		if last >= newest.Sequence {
			return true
		}
		if !pause(ctx, 5*time.Millisecond) {
			return false
		}
	}
}

// take takes in a report, once.
func (r *reader) take(got *report) {
	ahead, within := r.ahead(got.Member)
	if early := time.Until(got.Sent.Add(-ahead)); early > within { // nobody sends a report before it is heard
		ahead += early
	}
	fresh, holds := r.note(got, ahead)
	if !fresh {
		return
	}
	r.heard.Tokens(got.Sent.Add(-ahead), got.Tokens)
	r.heard.Probes(got.Probes)
	for i := range got.Turns {
		m := &got.Turns[i]
		m.Row.Started, m.Row.Ended = m.Row.Started.Add(-ahead), m.Row.Ended.Add(-ahead)
		r.tally.count(m.turn())
	}
	if !holds {
		return
	}
	r.heard.Shadow().Receive(got.Member, got.Shadow, ahead, within)
	if got.Last {
		r.heard.Shadow().Disconnect(got.Member)
	}
}

// note takes in what a report says of the member's conversations. A report that is not fresh has come before.
// Of a member that holds nothing since its lease ended, the turns count alone.
func (r *reader) note(got *report, ahead time.Duration) (fresh, holds bool) {
	r.listing.Lock()
	defer r.listing.Unlock()
	r.remote.mu.Lock()
	defer r.remote.mu.Unlock()
	h := r.holders[got.Member]
	if h == nil { // its share ended before this coordinator took over
		h = &heldBy{name: got.Member, progress: map[int64]api.Conversation{}}
		r.holders[got.Member] = h
	}
	if got.Seq <= h.seq {
		return false, false
	}
	h.seq = got.Seq
	if h.dead {
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
		r.untold[c.ID] = c
	}
	return true, true
}

// recount counts the turns of the run that are stored and whose reports are no longer there: the server keeps
// these for reportsKept, and a member that was killed has not sent its last.
func (r *reader) recount(ctx context.Context) {
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

func (r *reader) recountStored(ctx context.Context) error {
	r.remote.mu.Lock()
	began, prefix := r.wanted.Began.Add(-time.Second), r.wanted.Lane+"-"+r.wanted.Run+"-"
	r.remote.mu.Unlock()
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
			r.tally.count(rowOnly(t, numberOf(t.Conversation), 0))
		}
		return nil
	})
}
