package corpus

import (
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

// Tokenizer is what texts are measured with: a widespread vocabulary of about the
// size of today's models'. The target's own counts some per cent more or less.
const Tokenizer = "cl100k_base"

// loaded takes some 10 MB, from the first text that is measured on.
var loaded = sync.OnceValue(codec.NewCl100kBase)

// Encoder is the [Tokenizer]. It is safe for concurrent use.
func Encoder() *codec.Codec { return loaded() }

// Tokens is the length of a text.
func Tokens(text string) int {
	n, err := Encoder().Count(text)
	if err != nil { // of the tokenizer's regular expression, which has no time limit
		return 0
	}
	return n
}
