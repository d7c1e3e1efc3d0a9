package corpus

import (
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

// Tokenizer is the vocabulary for measuring texts, a common one of about the size of today's
// models'. The count of the target's own vocabulary differs by some per cent.
const Tokenizer = "cl100k_base"

// loaded loads the vocabulary once. It takes about 10 MB.
var loaded = sync.OnceValue(codec.NewCl100kBase)

// Encoder returns the [Tokenizer]. It is safe for concurrent use.
func Encoder() *codec.Codec { return loaded() }

// Tokens returns the number of tokens of a text.
func Tokens(text string) int {
	n, err := Encoder().Count(text)
	if err != nil { // the tokenizer's regular expression can only fail by a time limit, and has none
		return 0
	}
	return n
}
