// Package answer writes the answers of the simulated model: no model, but
// passages that were written beforehand about each of the built-in articles,
// chosen by the words that they share with the question. A first answer goes
// through the whole article; a later one begins with what fits the question and
// goes on with what has not been said yet.
//
// About any other text it answers with that text's own paragraphs. Where there is
// no text, some general sentences stand in; where the prompt asks for a question,
// it gets one.
package answer

import (
	"bytes"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"unicode/utf8"

	"kvbooth/sidecar/sim"
)

// Answer is what the model says to a prompt.
type Answer struct {
	Text string

	// Tokens are the ids of Text, as [sim.Encode] gives them, so that the next
	// turn's prompt has the same ids in the same place. Only where Reason is
	// "length" may they be cut within what Encode would join, and only before a stop
	// sequence does the last of them hold more than Text does.
	Tokens []uint32

	// Reason is "stop" after a whole sentence or before a stop sequence, "length" where
	// the answer is cut, which happens at limits of 40 tokens or fewer, where the text
	// has no sentence as short as the limit, and to reach the fewest tokens that were
	// asked for.
	Reason sim.FinishReason
}

const (
	// The natural length in tokens is that of the recorded deployment: normally
	// distributed with this mean and standard deviation, never under a quarter of the
	// mean. What was recorded was cut at 1,024 tokens; above that it goes on as a normal
	// distribution does.
	mean, deviation = 900, .3 * 900
	// wishedUpTo is the highest limit that is taken for the length that the client wants.
	wishedUpTo = mean + 4*deviation
	cutUpTo    = 40 // tokens; an answer of so few need not end with a sentence
)

// length is how long an answer should become, and whether it must become so long
// even if that takes repetition. The load generator draws the limits of its
// requests around the mean itself. Were the natural length to apply to them too,
// every answer would have the smaller of two draws, 17 % less than the mean. So a
// limit within the range of the natural length is a wish for that length, and the
// answer fills it. A higher limit, or none, is a mere precaution: then the natural
// length applies.
func length(rng *rand.Rand, limit int) (tokens int, fill bool) {
	if 0 < limit && limit <= wishedUpTo {
		return limit, true
	}
	return int(math.Round(max(mean+deviation*rng.NormFloat64(), mean/4))), false
}

// Compose answers the last message of a conversation with as much as was asked for.
// The answer is as long as a limit up to 1,980, or else as the natural length, which
// is drawn with the messages and [Asked.Seed] as the seed. It ends with the last whole
// sentence for which there is room, unless more than that is asked for. Equal messages
// and wishes give an equal answer. It is safe for concurrent use.
func Compose(messages []sim.Message, a Asked) Answer {
	h := fnv.New64a()
	for _, m := range messages {
		_, _ = io.WriteString(h, m.Role+"\x00"+m.Content+"\x00")
	}
	rng := rand.New(rand.NewPCG(h.Sum64(), 1+a.Seed))
	tokens, fill := length(rng, a.Max)
	p := read(messages)
	if p.wantsQuestion {
		if a.least() == 0 {
			return a.stopped(p.ask(rng, tokens))
		}
		p.gather() // no question is that long
	}
	d := &draft{left: max(tokens, a.least()), least: a.least(), uses: p.uses}
	if tokens <= cutUpTo {
		d.left = 5 * cutUpTo // for something to cut
	}
	d.explain(p, rng, fill)
	answer := Answer{Text: string(d.text), Tokens: d.ids, Reason: sim.FinishStop}
	if a.Max > 0 && len(d.ids) > a.Max {
		answer = cut(d.ids, a.Max, a.least())
	}
	if a.IgnoreEnd && a.Max > 0 {
		answer.Reason = sim.FinishLength
	}
	return a.stopped(answer)
}

// An answer about a built-in article opens with a word or two of its own and opens and closes
// with sentences that name its subject. Its beginning is what tells the answers to one
// and the same prompt apart, as those of a model that samples differ: no cache finds one
// of them in another's place. No two words of four or more letters follow each other in them unless
// one is a little word: what the built-in questioner asks about should be what is
// explained, not how.
var (
	preludes = []string{
		"Sure.", "Of course.", "Gladly.", "Yes, gladly.", "All right.", "By all means.", "With pleasure.", "Certainly.",
		"Very well.", "Let me see.", "Let us see.", "Let me try.", "Here goes.", "I will try.", "Good.",
	}
	firstOpenings = []string{
		"Here is %s as the text has it, one idea after the other.",
		"The text is about %s, and this is its argument, step by step.",
		"Let me take you through %s in the order of the text.",
	}
	laterOpenings = []string{
		"You ask about %s, so let us look at that.",
		"On %s there is more to say.",
		"Let us stay with %s for a moment.",
		"Here is what I can add on %s.",
		"Let me go on with %s.",
	}
	// closings differ in length, so that one of them fits what is left.
	closings = []string{
		"That is the gist.",
		"So much for %s.",
		"That is %s in outline.",
		"This is the answer in short.",
		"In short, this is what there is to say on %s.",
		"That is as far as it goes; if a point is still unclear, name it.",
		"So much for %s in outline; ask about any part of it, and I will go deeper.",
		"All of this has to be kept in mind with %s, and none of it comes for free.",
	}
	reminder = "As a reminder, here is what came up before."
)

// draft is an answer in the making.
type draft struct {
	text  []byte
	ids   []uint32       // of text
	left  int            // tokens; negative where least took more
	least int            // tokens that there must be, whole sentences or not
	uses  map[string]int // of sentences, in the conversation
}

// explain answers from the passages: from what has not been said, then from what
// has been said once, and so on while there is something to fill.
func (d *draft) explain(p *prompt, rng *rand.Rand, fill bool) {
	opening, endings := p.frame(rng)
	full := opening != "" && !d.add("", opening)
	for round, before := 0, d.left; !full && (fill || len(d.ids) < d.least || d.left == before); round++ {
		if round > 0 && p.known {
			full = !d.add("\n\n", reminder)
		}
		for _, x := range p.ranked {
			separator := "\n\n"
			for _, sentence := range x.sentences {
				if !full && d.uses[sentence] <= round {
					full = !d.add(separator, sentence)
					separator = " "
				}
			}
		}
	}
	best, most := "", 0
	for _, ending := range endings {
		if n := sim.Count(" " + ending); most < n && n <= d.left && d.uses[ending] == 0 {
			best, most = ending, n
		}
	}
	if best != "" {
		d.add(" ", best)
	}
	if len(d.ids) == 0 { // no sentence is as short as the limit: one is cut
		d.least = 1
		d.add("", p.ranked[0].sentences[0])
	}
}

// add says one more sentence if there is room for it, or too little has been said.
func (d *draft) add(separator, sentence string) bool {
	if len(d.text) == 0 {
		separator = ""
	}
	last := string(d.text[max(0, bytes.LastIndexByte(d.text, ' ')):]) // nothing is joined across a blank
	joined := sim.Encode(last + separator + sentence)
	before := len(d.ids) - sim.Count(last)
	n := before + len(joined) - len(d.ids)
	if n > d.left && len(d.ids) >= d.least {
		return false
	}
	d.text = append(append(d.text, separator...), sentence...)
	d.ids = append(d.ids[:before], joined...)
	d.left -= n
	d.uses[sentence]++
	return true
}

// cut ends an answer at the limit, or up to three tokens before it, so that it
// does not end within a character; but not below least.
func cut(ids []uint32, limit, least int) Answer {
	for n := limit; ; n-- {
		var text []byte
		for _, id := range ids[:n] {
			text = sim.AppendToken(text, id)
		}
		if n <= max(1, least, limit-utf8.UTFMax) || utf8.Valid(text) {
			return Answer{Text: string(text), Tokens: ids[:n], Reason: sim.FinishLength}
		}
	}
}
