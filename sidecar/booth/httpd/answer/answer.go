// Package answer composes the answers of the simulated model: no model, but
// sentences of the prompt's own text, chosen, grouped and joined so that a
// transcript reads as an explanation of the article that opens the conversation.
//
// A first answer goes through the whole article. Later ones begin with what
// bears on the question, go on with what has not been said yet, and come last,
// as a reminder, to what has. Where the prompt holds no text to explain, some
// general sentences stand in; where it asks for a question, it gets one.
package answer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"unicode/utf8"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// Answer is a composed answer.
type Answer struct {
	Text string

	// Tokens are the ids of Text, as [sim.Encode] gives them, so that the next
	// turn's prompt has the same ids in the same place. Only where Reason is
	// "length" may they be cut within what Encode would join.
	Tokens []uint32

	// Reason is "stop" after a whole sentence, "length" where no ending fits into
	// the limit, which happens below some 40 tokens only.
	Reason sim.FinishReason
}

// Options say how long answers are.
type Options struct {
	// Mean and CV (standard deviation over mean) are those of the natural length
	// in tokens, normally distributed, never under a quarter of the mean.
	Mean, CV float64

	// Fill makes every answer as long as its limit allows, up to 16,384 tokens,
	// whatever the natural length; what has been said is said again for that.
	Fill bool
}

// Defaults are the lengths of the recorded deployment: 830 tokens in the mean,
// with a coefficient of variation of .15.
func Defaults() Options { return Options{Mean: 830, CV: .15} }

const (
	// wishedWithin is how many standard deviations above the mean a limit may lie
	// and still be taken for the length that the client wants.
	wishedWithin = 4
	longest      = 16_384 // tokens of an answer
)

// check refuses what is no distribution; comparisons are false for NaN.
func (o Options) check() error {
	if !(o.Mean >= 1 && o.Mean <= longest) {
		return &api.FieldError{Field: "mean", Value: fmt.Sprint(o.Mean), Allowed: fmt.Sprintf("1 to %d tokens", longest)}
	}
	if !(o.CV >= 0 && o.CV <= 2) {
		return &api.FieldError{Field: "cv", Value: fmt.Sprint(o.CV), Allowed: "0 to 2"}
	}
	return nil
}

// length is how long an answer should become, and whether it must become so long
// even if that takes repetition. Both booths draw the limits of their requests
// around the mean themselves. Were the natural length to apply to them too, every
// answer would have the smaller of two draws, 8 % less than the mean. So a limit
// within the range of the natural length is a wish for that length, and the
// answer fills it. A higher limit, or none, is a mere precaution: then the
// natural length applies.
func (o Options) length(seed uint64, limit int) (tokens int, fill bool) {
	if limit > 0 && (o.Fill || float64(limit) <= o.Mean*(1+wishedWithin*o.CV)) {
		return min(limit, longest), true
	}
	z := rand.New(rand.NewPCG(seed, 1)).NormFloat64()
	tokens = int(min(math.Round(max(o.Mean*(1+o.CV*z), o.Mean/4, 1)), longest))
	if limit > 0 {
		tokens = min(tokens, limit)
	}
	return tokens, false
}

// Composer composes answers. It keeps the articles that it has taken apart, the
// last 64 at most, since the same few open most conversations. It is safe for
// concurrent use.
type Composer struct {
	options Options

	mu       sync.Mutex
	articles map[string]*article
}

// New makes a composer with the default options.
func New() *Composer {
	return &Composer{options: Defaults(), articles: map[string]*article{}}
}

// NewWith makes a composer with other options. The error is an [api.FieldError].
func NewWith(o Options) (*Composer, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := New()
	c.options = o
	return c, nil
}

// Compose answers the last message of a conversation with at most maxTokens
// tokens; none given is 0 or less. The answer is as long as a limit within the
// range of the natural length (up to four standard deviations above its mean:
// 1,328 tokens by default), or else as the natural length, which is drawn with
// the messages as the seed. It ends with the sentence that comes nearest to that
// length without passing it. Equal messages and limits give an equal answer. It
// takes some 1.3 ms of one core for an article that was seen before, some 4 ms for
// a new one of 3,500 tokens.
func (c *Composer) Compose(messages []sim.Message, maxTokens int) Answer {
	p := c.read(messages)
	tokens, fill := c.options.length(p.seed, maxTokens)
	rng := rand.New(rand.NewPCG(p.seed, 2+uint64(tokens)))
	if p.asked {
		return finish(p.ask(rng), tokens)
	}
	return newDraft(p, rng, tokens, fill).finish()
}

// finish gives the first of some texts that fits whole, else the last one, cut.
func finish(texts []string, limit int) Answer {
	var ids []uint32
	for _, text := range texts {
		if ids = sim.Encode(text); len(ids) <= limit {
			return Answer{Text: text, Tokens: ids, Reason: sim.FinishStop}
		}
	}
	return cut(ids, limit)
}

// cut ends an answer at the limit, or up to three tokens before it, so that it
// does not end within a character.
func cut(ids []uint32, limit int) Answer {
	for n := limit; n > 0 && n > limit-utf8.UTFMax; n-- {
		if text := decode(ids[:n]); utf8.ValidString(text) {
			return Answer{Text: text, Tokens: ids[:n], Reason: sim.FinishLength}
		}
	}
	return Answer{Text: decode(ids[:limit]), Tokens: ids[:limit], Reason: sim.FinishLength}
}

func decode(ids []uint32) string {
	var text []byte
	for _, id := range ids {
		text = sim.AppendToken(text, id)
	}
	return string(text)
}
