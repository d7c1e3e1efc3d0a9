package workload

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/sim/traffic"
)

// Plan is traffic that a workload runs in place of conversations about the texts of its corpus.
type Plan struct {
	traffic.Timed
	Name     string   // describes the traffic in the shape
	HitRatio *float64 // of one unlimited cache on all of the traffic, in its order; nil: not known
}

// ShapePlan returns the traffic of the shape in the settings, for a model whose prompt and answer may have modelTokens
// together; 0 means unknown. It is nil for the recorded shape. The error is an [api.FieldError].
func (s Settings) ShapePlan(seed uint64, modelTokens int) (*Plan, error) {
	if s.TrafficShape.Recorded() {
		return nil, s.TrafficShape.Check()
	}
	source, err := traffic.NewShape(s.TrafficShape, seed, modelTokens)
	if err != nil {
		return nil, err
	}
	return &Plan{Timed: traffic.Timed{Source: source, Speed: 1}, Name: s.planName()}, nil
}

// Planned returns a function that makes the plan of the traffic with the given settings. The load and the limits of p
// are those of the settings. The error is an [api.FieldError] if there is no plan.
func (o Options) Planned(s Settings, p traffic.PlanOptions) (func() *traffic.Plan, error) {
	source := o.planOf(s)
	if source == nil {
		return nil, api.Refuse("shape.preset", api.ShapeRecorded,
			"another shape: the recorded one draws its texts as it runs")
	}
	p.Source, p.Speed, p.ThinkTime, p.MaxTokens = source, source.speed(s.Level), s.ThinkTime, s.MaxTokens
	return func() *traffic.Plan {
		p.Load = s.load(&o, arrivalDraws{seed: o.Seed}).Process(0, nil, 0)
		return traffic.NewPlan(p)
	}, nil
}

// planName describes the shape in the settings.
func (s Settings) planName() string { return "shape " + s.TrafficShape.String() }

// planOf returns the traffic with the given settings, nil without a plan.
func (o *Options) planOf(s Settings) *Plan {
	if o.Plan != nil {
		return o.Plan
	}
	plan, err := s.ShapePlan(o.Seed, o.ModelTokens)
	if err != nil { // the settings were checked before the server reported a smaller context
		plan, _ = s.ShapePlan(o.Seed, 0)
	}
	return plan
}

// speed returns the multiple of the recorded speed at a level. A nil plan has none.
func (p *Plan) speed(l api.Level) float64 {
	if p == nil {
		return 1
	}
	return p.SpeedAt(l)
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
func (w *Workload) prepare(n upcoming) bool {
	if n.plan == w.plannedOf && w.plannedFor == n.number {
		return true
	}
	w.planned, w.plannedFor, w.plannedOf = nil, n.number, n.plan
	if n.plan == nil {
		return true
	}
	c, ok := n.plan.Conversation(n.number)
	w.planned = &c
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

// ParseNotation reads a [Notation]: the segments of the message, nil for a text, and, where they are a whole prompt,
// how many segments it keeps of the prompt before.
func ParseNotation(text string) (segments []traffic.Segment, keep int, whole bool) {
	words := strings.Fields(text)
	if _, err := fmt.Sscanf(text, "(%d as before)", &keep); err == nil {
		whole, words = true, words[3:]
	}
	for _, word := range words {
		id, tokens, _ := strings.Cut(word, ":")
		number, err := strconv.ParseUint(id, 16, 64)
		n, notTokens := strconv.Atoi(tokens)
		if err != nil || notTokens != nil || n < 1 {
			return nil, keep, whole
		}
		segments = append(segments, traffic.Segment{ID: number, Tokens: n})
	}
	return segments, keep, whole
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
	turn := c.plan.Turns[n-1].AtSpeed(w.plan.speed(w.settings.Level))
	if turn.At > 0 {
		c.scheduled = c.origin.Add(turn.At)
	}
	return turn.Pause(ended.Sub(c.origin), w.settings.ThinkTime)
}
