package answer

import (
	"strings"

	"kvbooth/sidecar/sim"
)

// Asked is what a request asks of its answer.
type Asked struct {
	Max int // tokens at most; 0 or less is no limit
	Min int // tokens at least, as far as Max allows

	Seed uint64 // of what is left to chance, besides the messages

	// IgnoreEnd asks for all of Max, whatever the model has to say. Stop sequences are
	// not looked for then, as Dynamo does not look for them. Without Max it is nothing.
	IgnoreEnd bool

	// Stop are texts, none of them empty, before the first of which the answer ends: the
	// one that begins first in it, of those that end behind the Min-th token.
	Stop     []string
	KeepStop bool // the answer ends behind it
}

// least is the number of tokens that the answer must have.
func (a Asked) least() int {
	switch {
	case a.Max <= 0:
		return max(0, a.Min)
	case a.IgnoreEnd:
		return a.Max
	}
	return max(0, min(a.Min, a.Max))
}

// stopped ends the answer at the first stop sequence. The token that completes it is
// the answer's last.
func (a Asked) stopped(answer Answer) Answer {
	if a.IgnoreEnd || len(a.Stop) == 0 {
		return answer
	}
	var text []byte
	ends := make([]int, len(answer.Tokens)) // of each token in the text
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

// find gives where the first stop sequence begins and ends, 0 and 0 without one.
func (a Asked) find(text string, ends []int) (from, to int) {
	passed := 0 // bytes of the tokens before which nothing stops
	if least := a.least(); 0 < least && least <= len(ends) {
		passed = ends[least-1]
	}
	for _, stop := range a.Stop {
		start := max(0, passed-len(stop)+1) // what ends behind them begins here at the earliest
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
