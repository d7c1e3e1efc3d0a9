// Package answer composes the answers of the simulated model. There is no model: answers consist of passages that
// were written beforehand about each of the built-in articles, selected by the words that they share with the
// question. A first answer covers the whole article. A later one begins with the passages that match the question and
// continues with those that have not been used yet.
//
// For any other text, the answer consists of that text's own paragraphs. Without a text, it consists of general
// sentences. If the prompt asks for a question, the answer is a question.
package answer

import (
	"bytes"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	"kvbooth/sidecar/sim"
)

// Answer is the simulated model's answer to a prompt.
type Answer struct {
	Text string

	// Tokens are the ids of Text, as [sim.Encode] returns them, so that the next turn's prompt has the same ids in
	// the same place. There are two exceptions: if Reason is "length", the last tokens may differ from those that
	// Encode would merge, and before a stop sequence the last token may contain more than Text does.
	Tokens []uint32

	// Reason is "stop" after a whole sentence or before a stop sequence, and "length" if the answer is cut. An answer
	// is cut at limits of 40 tokens or fewer, if no sentence of the text is as short as the limit, and to reach the
	// requested minimum.
	Reason sim.FinishReason
}

const (
	// Mean and standard deviation of the natural length of an answer in tokens, fitted to the recorded deployment. The
	// length is normally distributed and at least a quarter of the mean. The recorded answers were cut at 1,024 tokens;
	// above that, the normal distribution is continued.
	mean, deviation = 900, .3 * 900
	// maxRequestedLength is the highest limit that is taken as the requested length.
	maxRequestedLength = mean + 4*deviation
	maxCutLength       = 40 // tokens; an answer up to this length need not end with a sentence
)

// length returns the length of an answer, and whether the answer must reach it even by repetition. The load generator
// draws the limits of its requests around the mean itself. If the natural length also applied to them, every answer
// would have the smaller of two draws, 17 % less than the mean. Therefore a limit within the range of the natural
// length is taken as the requested length. A higher limit, or none, is taken as a precaution; then the natural length
// applies.
func length(rng *rand.Rand, limit int) (tokens int, fill bool) {
	if 0 < limit && limit <= maxRequestedLength {
		return limit, true
	}
	return int(math.Round(max(mean+deviation*rng.NormFloat64(), mean/4))), false
}

// Compose answers the last message of a conversation. The length of the answer is the limit up to 1,980, otherwise the
// natural length, drawn with the messages and [Asked.Seed] as the seed. The answer ends with the last whole sentence
// that fits, unless a minimum is requested. Equal arguments give equal answers. It is safe for concurrent use.
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
		p.gather() // a question is shorter than the minimum
	}
	d := &draft{left: max(tokens, a.least()), least: a.least(), uses: p.uses}
	if tokens <= maxCutLength {
		d.left = 5 * maxCutLength // enough text to cut
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

// An answer about a built-in article opens with a prelude, and opens and closes with sentences that name its subject.
// The beginning makes different answers to the same prompt differ from their first token on, as sampled answers of a
// model do, so that the cache blocks of one do not match another. The sentences contain no two adjacent words of four
// or more letters without a short word between: the built-in follow-up questions quote such pairs, and they should be
// about the subject and not about the framing.
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
	// closings differ in length, so that one of them fits the remaining room.
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

// draft is an answer under construction.
type draft struct {
	text  []byte
	ids   []uint32       // token ids of text
	left  int            // remaining tokens; negative if least required more
	least int            // required tokens, regardless of whole sentences
	uses  map[string]int // number of uses of a sentence in the conversation
}

// explain writes the answer: an opening, then sentences of the ranked passages in rounds, then an unused ending, the
// longest that still fits. Round 0 takes the unused sentences, round 1 also those used once, and so on. The rounds end
// with the first sentence that does not fit, or after a round, once there is a new sentence and the answer has d.least
// tokens; fill requires the former. If nothing fits, explain adds the first sentence whole, and the caller cuts it.
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
	if len(d.ids) == 0 { // no sentence is as short as the limit, so one is cut
		d.least = 1
		d.add("", p.ranked[0].sentences[0])
	}
}

// add appends a sentence if it fits or the minimum is not reached. It returns false otherwise.
func (d *draft) add(separator, sentence string) bool {
	if len(d.text) == 0 {
		separator = ""
	}
	last := string(d.text[max(0, bytes.LastIndexByte(d.text, ' ')):]) // tokens do not merge across a blank
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

// cut ends an answer at the limit, or up to three tokens before it, so that it does not end within a character, but
// not below least.
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

// Asked holds the requirements of a request on its answer.
type Asked struct {
	Max int // maximum number of tokens; 0 or less means no limit
	Min int // minimum number of tokens, up to Max

	Seed uint64 // seed of the random choices, combined with the messages

	// IgnoreEnd requires exactly Max tokens and ignores stop sequences, as Dynamo does. Without Max it has no effect.
	IgnoreEnd bool

	// Stop are stop sequences, none of them empty. The answer ends before the one that begins first, of those that
	// end behind the Min-th token.
	Stop     []string
	KeepStop bool // the answer includes the stop sequence
}

// least returns the number of tokens that the answer must have.
func (a Asked) least() int {
	switch {
	case a.Max <= 0:
		return max(0, a.Min)
	case a.IgnoreEnd:
		return a.Max
	}
	return max(0, min(a.Min, a.Max))
}

// stopped ends the answer at the first stop sequence. The token that completes the sequence is the answer's last.
func (a Asked) stopped(answer Answer) Answer {
	if a.IgnoreEnd || len(a.Stop) == 0 {
		return answer
	}
	var text []byte
	ends := make([]int, len(answer.Tokens)) // end of each token in the text
	for i, id := range answer.Tokens {
		text = sim.AppendToken(text, id)
		ends[i] = len(text)
	}
	from, to := a.find(string(text), ends)
	if to == 0 {
		return answer
	}
	last := 0
	for ends[last] < to {
		last++
	}
	answer.Tokens, answer.Reason = answer.Tokens[:last+1], sim.FinishStop
	if a.KeepStop {
		from = to
	}
	answer.Text = string(text[:from])
	return answer
}

// find returns the beginning and the end of the first stop sequence, or 0 and 0.
func (a Asked) find(text string, ends []int) (from, to int) {
	passed := 0 // bytes of the tokens that must precede a stop
	if least := a.least(); 0 < least && least <= len(ends) {
		passed = ends[least-1]
	}
	for _, stop := range a.Stop {
		start := max(0, passed-len(stop)+1) // earliest beginning of a stop sequence that ends behind these tokens
		i := strings.Index(text[start:], stop)
		if i < 0 {
			continue
		}
		if i += start; to == 0 || i < from {
			from, to = i, i+len(stop)
		}
	}
	return from, to
}
