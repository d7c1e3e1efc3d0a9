package members

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

const (
	aloneFor    = 5 * time.Second // without a call, after which a member cancels its turns
	keptFor     = time.Minute     // for which a result waits for its coordinator
	leaveWithin = 5 * time.Second
)

// MemberOptions configure a member. Everything else comes from the coordinator.
type MemberOptions struct {
	Access  Access
	Name    string // empty: the name of the host
	Version string // of the program; must equal the coordinator's
	// Target returns a client of the server under load, which the member closes.
	Target func(TargetOptions) (Target, error)
	Health func(time.Time) api.ClientHealth
	Lag    func() stats.Lag // returns the lag since the last call; nil: it is not known
	Files  int              // number of files that turns may open; 0: no limit
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

// ErrRefused is the error of a member whose version differs from the coordinator's.
var ErrRefused = errors.New("the coordinator rejects this member")

// RunMember sends turns until ctx ends, which cancels those in flight. The error is an [api.FieldError] of the access,
// one with the reason why the server rejects the connection, or [ErrRefused].
func RunMember(ctx context.Context, o MemberOptions) error {
	host, _ := os.Hostname() // without a name the member is called host
	o.Name = cmp.Or(o.Name, host, "host")
	s := &session{
		MemberOptions: o, id: nuid.Next(), began: time.Now(), turns: map[string]*sent{}, targets: map[string]*target{},
		refused: make(chan string, 1), delivered: make(chan struct{}, 1),
	}
	var err error
	if s.conn, err = dial(ctx, o.Access, "kvbooth member "+o.Name, o.Log); err != nil {
		return err
	}
	defer s.conn.Close()
	if o.Registry != nil {
		o.Registry.MustRegister(
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "loadgen_member_active_turns", Help: "Turns that this member sends, or whose results wait.",
			}, func() float64 { s.mu.Lock(); defer s.mu.Unlock(); return float64(len(s.turns)) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name: "loadgen_member_dropped_turns_total", Help: "Results that no coordinator took.",
			}, func() float64 { return float64(s.lost.Load()) }))
	}
	return s.run(ctx)
}

// session is a member from its start to its end.
type session struct {
	MemberOptions
	id        string
	began     time.Time
	conn      *nats.Conn
	ctx       context.Context // of the turns
	wg        sync.WaitGroup
	refused   chan string   // receives the version of a coordinator
	delivered chan struct{} // receives a value when results may have been taken; buffered for one
	lastCall  atomic.Int64  // time of the last call, by now
	leaving   atomic.Bool
	lost      atomic.Int64

	mu      sync.Mutex
	by      string // the coordinator
	turns   map[string]*sent
	targets map[string]*target // by their options
}

// target is a client with the number of its probes that was reported.
type target struct {
	Target
	reported atomic.Int64
}

// sent is a turn that the member has.
type sent struct {
	by       string
	cancel   context.CancelFunc
	live     chat.Live
	tokens   atomic.Int64
	reported int64 // tokens that were reported; only the ticking goroutine uses it

	mu     sync.Mutex
	prompt []uint32
	result *result   // nil while the turn is in flight
	said   time.Time // when the result was last reported
}

// now is the member's clock.
func (s *session) now() time.Duration { return time.Since(s.began) }

func (s *session) run(ctx context.Context) error {
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer s.close()
	defer cancel()
	subject := "kvbooth." + s.Access.Fleet
	err := errors.Join(
		subscribe(s.conn, subject+".turn."+s.id, s.take), subscribe(s.conn, subject+".to."+s.id, s.called),
		subscribe(s.conn, subject+".all", s.called))
	if err != nil {
		return fmt.Errorf("the NATS server at %s: %w", s.Access.URL, err)
	}
	ticker := time.NewTicker(repeatAfter)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			s.leaving.Store(true)
			s.report(report{Beat: s.beat(0)})
			cancel()
			s.deliver(leaveWithin)
			return nil
		case version := <-s.refused:
			return fmt.Errorf("%w: its version is %s, and this one's %s: install the same", ErrRefused, version, s.Version)
		case <-ticker.C:
			s.tick()
		}
	}
}

// deliver waits until the coordinator has the results, at most for d.
func (s *session) deliver(d time.Duration) {
	for deadline := time.Now().Add(d); time.Now().Before(deadline); {
		s.mu.Lock()
		left := len(s.turns)
		s.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-s.delivered:
		case <-time.After(tickEvery):
			s.tick()
		}
	}
}

// close ends what is left.
func (s *session) close() {
	s.wg.Wait()
	for _, t := range s.targets {
		t.Close()
	}
}

// report publishes a report. One that is lost is repeated, since the next one has all that it had.
func (s *session) report(r report) {
	r.Member, r.At = s.id, s.now()
	data, err := json.Marshal(r)
	if err == nil {
		err = s.conn.Publish("kvbooth."+s.Access.Fleet+".from", data)
	}
	if err != nil && s.conn.IsConnected() {
		s.Log.Error("a report was not sent", "problem", err)
	}
}

func (s *session) beat(call time.Duration) *beat {
	b := &beat{
		Name: s.Name, Version: s.Version, Started: s.began, Leaving: s.leaving.Load(), Call: call, Files: s.Files,
		Cores: runtime.GOMAXPROCS(0), Client: s.Health(time.Now()), Lost: s.lost.Load(),
	}
	if s.Lag != nil {
		b.Lag = s.Lag()
	}
	return b
}

// called takes a call of the coordinator.
func (s *session) called(data []byte) {
	var c call
	if err := json.Unmarshal(data, &c); err != nil {
		s.Log.Error("a call is not understood", "problem", err)
		return
	}
	if c.Version != s.Version {
		select {
		case s.refused <- c.Version:
		default:
		}
		return
	}
	s.mu.Lock()
	if s.by != c.By {
		s.by = c.By
		s.Log.Info("a coordinator has called", "coordinator", c.By)
	}
	s.lastCall.Store(int64(s.now()))
	for _, id := range c.Have {
		delete(s.turns, id)
	}
	select {
	case s.delivered <- struct{}{}:
	default:
	}
	for _, id := range c.Cancel {
		if t := s.turns[id]; t != nil {
			t.cancel()
		}
	}
	var shown []progress
	for _, id := range c.Show {
		if t := s.turns[id]; t != nil {
			shown = append(shown, t.progress(s, id, true))
		}
	}
	s.mu.Unlock()
	switch {
	case shown != nil:
		s.report(report{Turns: shown})
	case c.Have == nil && c.Cancel == nil:
		s.report(report{Beat: s.beat(c.At)})
	}
}

// take begins a turn, unless the member has it.
func (s *session) take(data []byte) {
	o := &order{}
	if err := json.Unmarshal(data, o); err != nil {
		s.Log.Error("a turn is not understood", "problem", err)
		return
	}
	s.mu.Lock()
	t := s.turns[o.ID]
	if t == nil && !s.leaving.Load() {
		t = &sent{by: o.By}
		var ctx context.Context
		ctx, t.cancel = context.WithCancel(s.ctx)
		s.turns[o.ID] = t
		s.wg.Go(func() { s.send(ctx, o, t) })
	}
	s.mu.Unlock()
	if t != nil {
		s.report(report{Turns: []progress{t.progress(s, o.ID, false)}})
	}
}

// send sends a turn and reports its first token and its result.
func (s *session) send(ctx context.Context, o *order, t *sent) {
	defer t.cancel()
	var r chat.Result
	to, err := s.target(o.Target)
	if err != nil {
		r = notSent(err.Error())
	} else {
		r = to.Do(ctx, s.request(o, t))
		probes := to.Probes()
		r.Probes = probes - to.reported.Swap(probes)
	}
	if most := s.conn.MaxPayload() * 9 / 10; int64(len(r.Content)) > most {
		r = notSent(fmt.Sprintf("the answer has %d bytes, and the NATS server takes messages of %d: raise its max_payload",
			len(r.Content), s.conn.MaxPayload()))
	}
	t.mu.Lock()
	t.result = &result{Sent: r.Sent.Sub(s.began), Ended: r.Ended.Sub(s.began), Result: r}
	t.said, t.prompt = time.Now(), nil
	t.mu.Unlock()
	s.report(report{Turns: []progress{t.progress(s, o.ID, false)}})
}

// request returns the request of an order.
func (s *session) request(o *order, t *sent) chat.Request {
	req := chat.Request{
		ID: o.ID, Conversation: o.Conversation, Token: o.Token, Messages: o.Messages, MaxTokens: o.MaxTokens,
		Exact: o.Exact, Salt: o.Salt, Model: o.Model, Instance: o.Instance, Live: &t.live,
		TraceParent: o.TraceParent,
		OnChunk: func(n int) {
			if t.tokens.Add(int64(n)) == int64(n) {
				s.report(report{Turns: []progress{t.progress(s, o.ID, false)}})
			}
		},
	}
	if o.WantsPrompt {
		req.OnPrompt = func(ids []uint32) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.prompt = ids
		}
	}
	return req
}

// progress returns what is known of the turn.
func (t *sent) progress(s *session, id string, text bool) progress {
	at, ttft, waiting := t.live.First()
	p := progress{ID: id, Worker: t.live.Worker(), Tokens: int(t.tokens.Load())}
	if !at.IsZero() {
		p.Sent = at.Sub(s.began)
	}
	if !waiting {
		p.TTFT = ttft
	}
	if text {
		p.Text = t.live.Text()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p.Prompt, p.Result = t.prompt, t.result
	return p
}

// tick reports the tokens that have arrived, repeats results that the coordinator does not have, and gives up what
// no coordinator asks for.
func (s *session) tick() {
	if !s.conn.IsConnected() { // no coordinator can call
		s.lastCall.Store(int64(s.now()))
	}
	alone := s.now()-time.Duration(s.lastCall.Load()) > aloneFor
	var all []progress
	s.mu.Lock()
	for id, t := range s.turns {
		t.mu.Lock()
		ended, due := t.result != nil, time.Since(t.said) >= repeatAfter
		kept := !ended || s.now()-t.result.Ended < keptFor
		if due && ended {
			t.said = time.Now()
		}
		t.mu.Unlock()
		switch {
		case ended && (alone || !kept || t.by != s.by):
			delete(s.turns, id)
			s.lost.Add(1)
		case alone || t.by != s.by:
			t.cancel()
		case ended && due:
			s.wg.Go(func() { s.report(report{Turns: []progress{t.progress(s, id, false)}}) })
		case !ended && t.tokens.Load() > t.reported:
			t.reported = t.tokens.Load()
			all = append(all, progress{ID: id, Tokens: int(t.reported)})
		}
	}
	s.mu.Unlock()
	for part := range slices.Chunk(all, 1000) {
		s.report(report{Turns: part})
	}
}

// target returns the client of a server, and makes it at the first turn.
func (s *session) target(o TargetOptions) (*target, error) {
	key, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.targets[string(key)]; t != nil {
		return t, nil
	}
	c, err := s.Target(o)
	if err != nil {
		return nil, err
	}
	t := &target{Target: c}
	s.targets[string(key)] = t
	return t, nil
}
