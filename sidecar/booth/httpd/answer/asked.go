package answer

import (
	"strings"

	"kvbooth/sidecar/sim"
)

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
