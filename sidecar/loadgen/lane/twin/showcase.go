package twin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/lane"
)

const (
	showcaseTurns = 5 // the default
	// readFor is the pause between two turns, in which a visitor reads which lane was first.
	readFor = 3 * time.Second
	// maxShown is the number of bytes of an answer that are shown: the last ones.
	maxShown = 32 << 10
)

// show holds the showcase under way, or the last one.
type show struct {
	starting sync.Mutex // held while the showcase is replaced

	mu      sync.Mutex
	current *showcase
	begun   int
}

// showcase is one conversation on both lanes. Each lane's history has its own answers. The
// questions are the same on both lanes, and refer to the answer of A. Questions on each lane's own
// answer would give prompts that cannot be compared. With a model of fixed answers, they would not
// differ anyway.
type showcase struct {
	cancel context.CancelCauseFunc
	ended  chan struct{}
	asker  interface { // source of the questions
		Open(r *rand.Rand, topic string) string
		Follow(ctx context.Context, r *rand.Rand, topic string, asked []string, answer string) string
	}

	mu   sync.Mutex
	doc  api.Showcase
	live [2]*chat.Live // of the turn under way
}

// StartShowcase sends one conversation to both lanes, in place of the former one, and returns at
// once. A change of modes and a sweep end it. The error is an [api.FieldError], an
// [api.ErrNotFound] for an unknown text, an [api.ErrConflict] while the modes are switched or a
// sweep is in progress, and an [api.ErrUnavailable] at the end of the process.
func (d *Desk) StartShowcase(_ context.Context, actor string, req api.ShowcaseRequest) (api.Twin, error) {
	if err := api.CheckLimits(req); err != nil {
		return api.Twin{}, err
	}
	d.show.starting.Lock()
	defer d.show.starting.Unlock()
	id, turns := "", showcaseTurns
	api.Patch(&id, req.Starter)
	api.Patch(&turns, req.Turns)
	text, err := d.lanes[0].Text(id, d.show.begun)
	if err != nil {
		return api.Twin{}, err
	}
	ctx, cancel := context.WithCancelCause(d.ctx)
	var conversations [2]*lane.SideConversation
	for i, l := range d.lanes {
		if conversations[i], err = l.SideConversation(text, cancel); err != nil {
			if i > 0 {
				conversations[0].End()
			}
			cancel(nil)
			return api.Twin{}, err
		}
	}
	d.show.end()
	s := &showcase{cancel: cancel, asker: text.Asker(d.lanes[0].Questioner()), ended: make(chan struct{})}
	s.doc = api.Showcase{
		ID: strconv.FormatInt(time.Now().UnixMilli(), 36), State: api.ShowcaseRunning, Topic: text.Topic, Turns: turns,
		Results: []api.ShowcaseResult{},
	}
	d.show.put(s)
	d.log.Info("a showcase has begun", "text", text.ID, "turns", turns, "by", actor)
	go func() {
		defer close(s.ended)
		defer cancel(nil)
		state, message := d.hold(ctx, s, conversations)
		for _, c := range conversations {
			c.End()
		}
		s.end(state, message)
	}()
	return d.Twin()
}

// StopShowcase ends the showcase. Without one under way, the error is an [api.ErrConflict].
func (d *Desk) StopShowcase(context.Context, string) (api.Twin, error) {
	if !d.show.end() {
		return api.Twin{}, fmt.Errorf("%w: no showcase is in progress", api.ErrConflict)
	}
	return d.Twin()
}

// Run reads the state of the lanes until ctx ends, and returns when no showcase is under way. ctx
// must not outlive the context of [NewDesk].
func (d *Desk) Run(ctx context.Context) {
	d.watch(ctx)
	d.show.starting.Lock()
	defer d.show.starting.Unlock()
	d.show.end()
}

// put replaces the showcase.
func (s *show) put(c *showcase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = c
	s.begun++
}

// end cancels the showcase under way and waits for its end. It returns false if there is none.
func (s *show) end() bool {
	s.mu.Lock()
	c := s.current
	s.mu.Unlock()
	if c == nil {
		return false
	}
	running := c.view().State == api.ShowcaseRunning
	c.cancel(nil)
	<-c.ended
	return running
}

// view returns the showcase as it is now; nil if there was none.
func (s *show) view() *api.Showcase {
	s.mu.Lock()
	c := s.current
	s.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.view()
}

// hold runs the conversation. It returns how the conversation ended, and a message.
func (d *Desk) hold(ctx context.Context, s *showcase, conversations [2]*lane.SideConversation) (
	api.ShowcaseState, string,
) {
	random, questioner := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), s.asker
	limit := d.lanes[0].State().Shape
	tokens := limit.MaxTokens
	if limit.OutputTokens != nil {
		tokens = min(tokens, max(1, int(limit.OutputTokens.Mean)))
	}
	question := questioner.Open(random, s.doc.Topic)
	var asked []string
	for turn := 1; ; turn++ {
		asked = append(asked, question)
		answer, failure := s.turn(ctx, conversations, turn, question, tokens)
		switch {
		case ctx.Err() != nil:
			return api.ShowcaseCancelled, why(ctx)
		case failure != "":
			return api.ShowcaseFailed, failure
		case turn == s.doc.Turns:
			return api.ShowcaseEnded, ""
		}
		pause := time.After(readFor)
		question = questioner.Follow(ctx, random, s.doc.Topic, asked, answer)
		select {
		case <-ctx.Done():
			return api.ShowcaseCancelled, why(ctx)
		case <-pause:
		}
	}
}

// why returns the reason why a showcase was cancelled; empty if an operator stopped it.
func why(ctx context.Context) string {
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause.Error()
	}
	return ""
}

// turn sends a question to both lanes at once, and returns the answer of A when both have answered.
// failure names the lanes that did not answer, with the reasons.
func (s *showcase) turn(
	ctx context.Context, conversations [2]*lane.SideConversation, turn int, question string, tokens int,
) (answer, failure string) {
	live := [2]*chat.Live{{}, {}}
	s.mu.Lock()
	s.doc.Turn, s.doc.Question = turn, question
	s.doc.A, s.doc.B = api.ShowcaseSide{}, api.ShowcaseSide{}
	s.live = live
	id := fmt.Sprintf("showcase-%s-%d", s.doc.ID, turn)
	s.mu.Unlock()
	var wg sync.WaitGroup
	var results [2]chat.Result
	for i := range conversations {
		wg.Go(func() {
			results[i] = conversations[i].Turn(ctx, id, question, tokens, live[i])
			s.answered(i, &results[i])
		})
	}
	wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var failures []string
	for i, name := range []string{api.DefaultLane, api.TwinLane} {
		if results[i].Err != nil {
			failures = append(failures, "lane "+name+": "+results[i].Err.Message)
		}
	}
	if ctx.Err() == nil {
		s.doc.Results = append(s.doc.Results, judge(turn, &s.doc))
	}
	return results[0].Content, strings.Join(failures, "; ")
}

// judge returns which lane had the first token first, and by how many seconds.
func judge(turn int, s *api.Showcase) api.ShowcaseResult {
	r := api.ShowcaseResult{Turn: turn, A: s.A.TTFT, B: s.B.TTFT}
	if s.A.Error != "" || s.B.Error != "" || r.A == nil || r.B == nil {
		return r
	}
	r.First, r.Lead = api.DefaultLane, new(*r.B-*r.A)
	if *r.Lead < 0 {
		r.First, r.Lead = api.TwinLane, new(-*r.Lead)
	}
	return r
}

// answered records the end of a lane's answer.
func (s *showcase) answered(lane int, r *chat.Result) {
	side := api.ShowcaseSide{Text: tail(r.Content), Done: true, Sent: !r.Sent.IsZero()}
	if ttft, ok := r.TTFT(); ok {
		side.TTFT = new(ttft.Seconds())
	}
	if latency, ok := r.Latency(); ok && r.OK() {
		side.Latency = new(latency.Seconds())
	}
	if r.Usage != nil && r.Usage.Prompt > 0 {
		side.PromptTokens = new(r.Usage.Prompt)
		if r.Usage.HasCached {
			side.CachedTokens = new(r.Usage.Cached)
		}
	}
	side.Worker = r.Worker
	switch {
	case r.Err != nil:
		side.Error = r.Err.Message
	case r.Cancelled:
		side.Error = "cancelled"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.side(lane), s.live[lane] = side, nil
}

// side returns a lane's part of the document. The lock is held.
func (s *showcase) side(lane int) *api.ShowcaseSide {
	if lane == 0 {
		return &s.doc.A
	}
	return &s.doc.B
}

// end records how the showcase ended.
func (s *showcase) end(state api.ShowcaseState, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doc.State, s.doc.Message = state, message
}

// view returns the showcase with the answers as far as they have arrived.
func (s *showcase) view() *api.Showcase {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, live := range s.live {
		if live == nil {
			continue
		}
		side := s.side(i)
		sent, ttft, waiting := live.First()
		side.Sent, side.Text = !sent.IsZero(), tail(live.Text())
		if !waiting {
			side.TTFT = new(ttft.Seconds())
		}
		side.Worker = live.Worker()
	}
	v := s.doc
	v.Results = append([]api.ShowcaseResult{}, s.doc.Results...)
	return &v
}

// tail returns the last maxShown bytes of a text, from a whole character on, after an ellipsis if
// the text is longer.
func tail(text string) string {
	if len(text) <= maxShown {
		return text
	}
	text = text[len(text)-maxShown:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return "…" + text
}
