package traffic

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim/draw"
)

// Shape draws conversations of a shape. It is a [Source] without an end.
type Shape struct {
	seed  uint64
	limit int // tokens of prompt and answer together
	parts []part
	sum   float64 // of the weights
}

var _ Source = (*Shape)(nil)

// part is a preset with the numbers of the settings.
type part struct {
	preset
	api.ShapePart
	number     uint64
	share      float64          // of all conversations
	popularity func() []float64 // of the groups, cumulative; computed at the first draw, since checks need none
}

// Draws of a seed, besides those of package draw for a conversation, which are 0 and 1.
const (
	drawConversation = 2 + iota
	drawGroup        // length of a group's prefix
	drawFamily       // length of what the agents of a family share
	idGroup
	idFamily
	idOwn
)

// NewShape returns the source of a shape other than the recorded one, for a model whose prompt and answer may have
// modelTokens together; 0 means unknown. The error is an *[api.FieldError].
func NewShape(s api.TrafficShape, seed uint64, modelTokens int) (*Shape, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if modelTokens > 0 && s.ContextTokens > modelTokens {
		return nil, api.Refuse("shape.context_tokens", s.ContextTokens,
			fmt.Sprintf("at most %d, the context of the model", modelTokens))
	}
	parts, err := s.Parts()
	if err != nil {
		return nil, err
	}
	source := &Shape{seed: seed, limit: cmp.Or(s.ContextTokens, modelTokens, defaultContext)}
	for i, p := range parts {
		one := part{preset: presets[p.Preset].with(s), ShapePart: p, number: uint64(i)}
		if err := one.checkContext(s, source.limit); err != nil {
			return nil, err
		}
		one.popularity = sync.OnceValue(func() []float64 { return zipf(one.groups, one.zipf) })
		source.parts = append(source.parts, one)
		source.sum += p.Weight
	}
	if len(source.parts) == 0 {
		return nil, api.Refuse("shape.preset", cmp.Or(s.Preset, api.ShapeRecorded), "one with a plan, such as chat")
	}
	for i := range source.parts {
		source.parts[i].share = source.parts[i].Weight / source.sum
	}
	return source, nil
}

// with returns the preset with the numbers that are set.
func (p preset) with(s api.TrafficShape) preset {
	if s.Groups > 0 && p.groups > 0 {
		p.groups = s.Groups
	}
	if s.PrefixTokens > 0 && p.groups > 0 {
		p.prefix = exactly(s.PrefixTokens)
	}
	if s.SuffixTokens > 0 {
		p.suffix = p.suffix.scaled(s.SuffixTokens)
	}
	if s.AnswerTokens > 0 {
		p.answer = p.answer.scaled(s.AnswerTokens)
	}
	if s.Zipf > 0 {
		p.zipf = s.Zipf
	}
	if s.Turns > 0 {
		p.turns, p.sideTurns = turnCount{min: s.Turns, max: s.Turns}, turnCount{min: s.Turns, max: s.Turns}
	}
	return p
}

// checkContext refuses a shape whose shared part leaves no room for a question and an answer.
func (p *part) checkContext(s api.TrafficShape, limit int) error {
	least := p.prefix.max + p.family.max + 2
	if p.suffix.cv == 0 && p.answer.cv == 0 {
		least = p.prefix.max + p.family.max + p.suffix.max + p.answer.max
	}
	if least <= limit {
		return nil
	}
	field, value := "shape.preset", fmt.Sprintf("%s, with prompts and answers of %d tokens,", p.Preset, least)
	if s.PrefixTokens > 0 && p.groups > 0 {
		field, value = "shape.prefix_tokens", fmt.Sprintf("%d, with prompts and answers of %d tokens,",
			s.PrefixTokens, least)
	}
	return api.Refuse(field, value, fmt.Sprintf("at most %d tokens together, the context of the model or "+
		"shape.context_tokens", limit))
}

// zipf returns the cumulative popularity of n groups: that of the k-th, from 1, is proportional to 1/k^exponent.
func zipf(n int, exponent float64) []float64 {
	all := make([]float64, n)
	sum := 0.
	for i := range all {
		sum += math.Pow(float64(i+1), -exponent)
		all[i] = sum
	}
	return all
}

// Conversation implements [Source].
func (s *Shape) Conversation(k int64) (Conversation, bool) {
	r := draw.Random(s.seed, uint64(k), drawConversation)
	d := drawing{shape: s, part: s.choose(r), number: uint64(k), random: r}
	return d.conversation(), true
}

// choose draws the part of a conversation. The draw is made with one part, too, so that weights change no other draw.
func (s *Shape) choose(r *rand.Rand) *part {
	at := r.Float64() * s.sum
	for i := range s.parts {
		if at -= s.parts[i].Weight; at < 0 {
			return &s.parts[i]
		}
	}
	return &s.parts[len(s.parts)-1]
}

// drawing is a conversation while it is drawn.
type drawing struct {
	shape  *Shape
	part   *part
	number uint64
	random *rand.Rand
	texts  uint64 // segments of its own so far
	tokens int    // of prompt and answers so far
}

func (d *drawing) conversation() Conversation {
	p := d.part
	first, name := d.shared()
	n, asks := p.turns.draw(d.random), true
	if p.members > 0 {
		first, n, asks = d.agent(first, n)
	}
	c := Conversation{Name: name, Model: p.Model, At: -1}
	for i := range n {
		added, answer, think := p.suffix.draw(d.random), p.answer.draw(d.random), time.Duration(-1)
		if p.tools {
			think = pause(d.random)
		}
		room := d.shape.limit - d.tokens
		if i == 0 { // cut to what fits, so that there is at least one turn
			think, answer = 0, min(answer, max(room/2, 1))
			added = min(added, room-answer)
		}
		if added+answer > room {
			break
		}
		turn := Turn{MaxTokens: answer, Exact: true, Think: think}
		if i == 0 {
			turn.Messages = first
		}
		if asks || i > 0 {
			turn.Messages = d.add(turn.Messages, i, added)
		}
		c.Turns = append(c.Turns, turn)
		d.tokens += answer
	}
	return c
}

// shared returns the messages that the conversation's group shares, and the name of the group.
func (d *drawing) shared() (messages []Message, name string) {
	p := d.part
	if p.groups == 0 {
		return nil, ""
	}
	popularity := p.popularity()
	group, _ := slices.BinarySearch(popularity, d.random.Float64()*popularity[len(popularity)-1])
	group = min(group, p.groups-1)
	tokens := p.prefix.draw(draw.Random(d.shape.seed, uint64(group), drawGroup, p.number))
	d.tokens += tokens
	return []Message{{Role: p.role, Segments: []Segment{{d.shape.id(idGroup, uint64(group), p.number), tokens}}}},
		fmt.Sprintf("%s %d", p.noun, group+1)
}

// agent adds the task that the agents of a family share. The first of a family goes on alone with it, for n turns. Each
// of the others is a sub-agent: it has fewer turns, and asks with instructions of its own.
func (d *drawing) agent(first []Message, n int) (messages []Message, turns int, asks bool) {
	p := d.part
	among := uint64(float64(d.number) * p.share) // about the number of agents before this one
	family := among / p.members
	tokens := p.family.draw(draw.Random(d.shape.seed, family, drawFamily, p.number))
	d.tokens += tokens
	task := Message{Role: "user", Segments: []Segment{{d.shape.id(idFamily, family, p.number), tokens}}}
	if side := p.sideTurns.draw(d.random); among%p.members > 0 {
		n, asks = side, true
	}
	return append(first, task), n, asks
}

// add appends a text that only this conversation has. That of the first turn continues the last shared message.
func (d *drawing) add(to []Message, turn, tokens int) []Message {
	own := Segment{d.shape.id(idOwn, d.number, d.texts), tokens}
	d.texts++
	d.tokens += tokens
	if last := len(to) - 1; turn == 0 && last >= 0 && to[last].Role == "user" {
		to[last].Segments = append(to[last].Segments, own)
		return to
	}
	role := "user"
	if turn > 0 && d.part.tools {
		role = "tool"
	}
	return append(to, Message{Role: role, Segments: []Segment{own}})
}

// id returns the id of a segment, which other seeds give other texts.
func (s *Shape) id(kind, number, index uint64) uint64 {
	return draw.Random(s.seed, number, kind, index).Uint64()
}

// lengths is a distribution of numbers of tokens. With cv, it is log-normal with that coefficient of variation, and
// without an upper bound; otherwise uniform in the logarithm between min and max.
type lengths struct {
	min, max int
	mean, cv float64
}

func exactly(n int) lengths              { return lengths{min: n, max: n} }
func between(low, high int) lengths      { return lengths{min: low, max: high} }
func scattered(mean, sd float64) lengths { return lengths{mean: mean, cv: sd / mean} }
func (l lengths) scaled(mean int) lengths { // with the same variation
	if l.cv == 0 {
		return exactly(mean)
	}
	return lengths{mean: float64(mean), cv: l.cv}
}

func (l lengths) draw(r *rand.Rand) int {
	z, u := r.NormFloat64(), r.Float64() // both are drawn, so that one setting changes no other draw
	if l.cv == 0 {
		return int(math.Round(float64(l.min) * math.Pow(float64(l.max)/float64(max(l.min, 1)), u)))
	}
	variance := math.Log(1 + l.cv*l.cv)
	return int(max(1, math.Round(l.mean*math.Exp(math.Sqrt(variance)*z-variance/2))))
}

// turnCount is a distribution of numbers of turns: geometric with a mean, or uniform between min and max.
type turnCount struct {
	min, max int
	mean     float64
}

func (t turnCount) draw(r *rand.Rand) int {
	u := r.Float64()
	if t.mean > 1 {
		return 1 + int(math.Log(1-u)/math.Log(1-1/t.mean))
	}
	return t.min + int(u*float64(t.max-t.min+1))
}

// pause draws the time that a tool takes.
func pause(r *rand.Rand) time.Duration {
	at, z := r.Float64(), r.NormFloat64()
	for _, t := range toolPauses {
		if at -= t.share; at < 0 {
			return time.Duration(float64(t.median) * math.Exp(t.sigma*z))
		}
	}
	return toolPauses[0].median
}
