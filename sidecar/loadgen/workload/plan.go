package workload

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/sim/arrival"
	"kvbooth/sidecar/sim/traffic"
)

// Plan is traffic that a workload runs in place of conversations about the texts of its corpus.
type Plan struct {
	traffic.Source
	Name string // describes the traffic in the shape
	// Times are those at which conversations begin at a level that is a rate, and Rate is their mean rate per second. nil:
	// the load decides.
	Times    arrival.Times
	Rate     float64
	HitRatio *float64 // of one unlimited cache on all of the traffic, in its order; nil: not known
	Speed    float64  // multiple of the recorded speed of pauses, and of Times unless the level is another rate; above 0
}

// Level returns the level that the traffic has at its speed; ok is false without times.
func (p *Plan) Level() (l api.Level, ok bool) {
	if p.Times == nil {
		return l, false
	}
	rate := p.Rate * p.Speed
	digits := math.Pow(10, 2-math.Floor(math.Log10(rate)))
	return api.AtRate(math.Round(rate*digits) / digits), true
}

// speed returns the multiple of the recorded speed at a level.
func (p *Plan) speed(l api.Level) float64 {
	if own, ok := p.Level(); ok && l.Kind == api.Rate && l != own {
		return l.Value / p.Rate
	}
	return p.Speed
}

// Shape returns what of the settings and the traffic affects results. exact reports whether the target makes answers of
// exactly a given length.
func (p *Plan) Shape(s Settings, exact bool) api.WorkloadShape {
	shape := api.WorkloadShape{
		MaxTokens: s.MaxTokens, ThinkTime: new(s.ThinkTime.Seconds()), TargetRPS: new(s.TargetRPS),
		Arrivals: s.arrivalsText(), Traffic: p.Name,
	}
	if p.Times != nil && s.Level.Kind == api.Rate {
		shape.Arrivals = "recorded"
	} else if p.Speed != 1 {
		shape.Traffic += fmt.Sprintf(", pauses at %v times their speed", p.Speed)
	}
	if exact {
		shape.Traffic += "; answers of exact lengths"
	} else {
		shape.Traffic += "; answers limited"
	}
	return shape
}

// Opening returns a number that conversations share if their prompts begin with the same segment.
func (p *Plan) Opening(k int64) int64 {
	c, ok := p.Conversation(k)
	if !ok || len(c.Turns[0].Messages) == 0 || len(c.Turns[0].Messages[0].Segments) == 0 {
		return k
	}
	return int64(c.Turns[0].Messages[0].Segments[0].ID)
}

// salt returns the number that makes the texts of segments differ between nonces.
func salt(nonce string) uint64 {
	if nonce == "" {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(nonce)) // never fails
	return h.Sum64()
}

// prepare plans the next conversation. It reports false after the last one. Only the goroutine of Run calls it.
func (w *Workload) prepare() bool {
	if w.opts.Plan == nil {
		return true
	}
	w.mu.Lock()
	k := w.begun
	w.mu.Unlock()
	if w.planned != nil && w.plannedFor == k {
		return true
	}
	c, ok := w.opts.Plan.Conversation(k)
	w.planned, w.plannedFor = &c, k
	return ok
}

// nextPlanned makes the prompt of the next turn of a plan.
func (c *Conversation) nextPlanned(o Options, t *LiveTurn) {
	turn := &c.plan.Turns[t.Number-1]
	messages := turn.Prompt(c.messages, c.answer)
	if o.Nonce != "" && (t.Number == 1 || turn.Whole) && messages[0].Text != "" {
		messages = slices.Clone(messages)
		messages[0].Text = FirstMessage(o.Nonce, "", messages[0].Text)
	}
	c.messages, c.answer = messages, chat.Message{}
	t.UserMessage = Notation(turn)
	t.prompt, t.Salt = messages, c.salt
	t.PlannedInput = inputOf(messages)
	if turn.Exact {
		t.PlannedOutput = new(turn.MaxTokens)
	}
}

// inputOf returns the tokens of a prompt that is made of segments, nil if it has texts.
func inputOf(messages []chat.Message) *int {
	n := 0
	for _, m := range messages {
		if len(m.Segments) == 0 {
			return nil
		}
		n += traffic.Tokens(m.Segments)
	}
	return &n
}

// Notation returns what is stored of a turn's messages: texts as they are, and for a text that is made its segments,
// each as its id in hexadecimal and its tokens. In front is the number of segments that it keeps of the prompt before.
func Notation(t *traffic.Turn) string {
	var all []string
	if t.Whole {
		all = append(all, fmt.Sprintf("(%d as before)", t.Keep))
	}
	for _, m := range t.Messages {
		if len(m.Segments) == 0 {
			all = append(all, m.Text)
		}
		for _, s := range m.Segments {
			all = append(all, strconv.FormatUint(s.ID, 16)+":"+strconv.Itoa(s.Tokens))
		}
	}
	return strings.Join(all, " ")
}

// keep stores the answer to turn n of a plan for the next turn, or returns its memory where no further turn sends it.
func (c *Conversation) keep(n int, answer chat.Message, texts *chat.TextBudget) {
	memory := chat.TextMemory(len(answer.Text))
	if n == len(c.plan.Turns) || c.plan.Turns[n].Whole {
		texts.Release(memory)
		return
	}
	c.answer = answer
	c.answers += memory
}

// pauseBefore returns the pause before turn n of a conversation, whose turn before has ended. The lock is held.
func (w *Workload) pauseBefore(c *Conversation, n int, ended time.Time) time.Duration {
	if c.plan == nil || n == 1 {
		return w.settings.ThinkTime
	}
	c.scheduled = time.Time{}
	turn, speed := &c.plan.Turns[n-1], w.opts.Plan.speed(w.settings.Level)
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) / speed) }
	switch {
	case turn.At > 0:
		c.scheduled = c.origin.Add(scaled(turn.At))
		return max(0, c.scheduled.Sub(ended))
	case turn.Think < 0:
		return w.settings.ThinkTime
	}
	return scaled(turn.Think)
}
