package sim

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/dlclark/regexp2/v2"
	"github.com/tiktoken-go/tokenizer"
)

// The special tokens, with the ids that they have in cl100k_base.
const (
	endOfText    = "<|endoftext|>"
	messageStart = "<|im_start|>"
	messageEnd   = "<|im_end|>"

	endOfTextID    = 100_257
	messageStartID = 100_264
	messageEndID   = 100_265
)

const (
	ordinaryTokens = 100_256 // ids 0 to 100,255; the special ones lie above
	vocabularySize = 100_277 // one more than the largest id of cl100k_base
)

var specialTokens = []struct {
	text string
	id   uint32
}{{endOfText, endOfTextID}, {messageStart, messageStartID}, {messageEnd, messageEndID}}

// splitPattern is the pattern of cl100k_base that splits a text into pieces. Tokens are merged within a piece only.
const splitPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}` +
	`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// bpe is the byte-level BPE of cl100k_base. It uses only the vocabulary of the tokenizer library. The library's
// generated matcher of this pattern drops U+007F and splits lines of blanks in too many places.
type bpe struct {
	pieces *regexp2.Regexp
	tokens []string // the bytes of each ordinary token, by id
	ids    map[string]uint32
}

var cl100k = sync.OnceValue(func() *bpe {
	library, err := tokenizer.Get(tokenizer.Cl100kBase)
	if err != nil {
		panic(err) // the vocabulary is part of the program
	}
	b := &bpe{
		// The group changes the text of the pattern, by which the library's generated matcher would be found
		// and used here too.
		pieces: regexp2.MustCompile("(?:"+splitPattern+")", regexp2.None),
		tokens: make([]string, ordinaryTokens),
		ids:    make(map[string]uint32, ordinaryTokens),
	}
	for id := range b.tokens {
		if b.tokens[id], err = library.Decode([]uint{uint(id)}); err != nil {
			panic(err)
		}
		b.ids[b.tokens[id]] = uint32(id)
	}
	return b
})

// Encode returns the token ids of a text: cl100k_base, a byte-level BPE, with special tokens recognized anywhere. A
// Hugging Face tokenizer that loads the file of [WriteTokenizerJSON] returns the same ids. The first call takes some
// tens of milliseconds to build the vocabulary. Encode is safe for concurrent use.
func Encode(text string) []uint32 {
	ids := make([]uint32, 0, len(text)/4)
	for text != "" {
		at, special, id := firstSpecial(text)
		ids = cl100k().encode(ids, text[:at])
		if special == "" {
			break
		}
		ids = append(ids, id)
		text = text[at+len(special):]
	}
	return ids
}

// encode appends the ids of a text without special tokens.
func (b *bpe) encode(ids []uint32, text string) []uint32 {
	match, err := b.pieces.FindStringMatch(text)
	for ; match != nil; match, err = b.pieces.FindNextMatch(match) {
		piece := match.String()
		if id, ok := b.ids[piece]; ok {
			ids = append(ids, id)
			continue
		}
		for part := range slices.Chunk([]byte(piece), longestPiece) {
			ids = b.encodePiece(ids, string(part))
		}
	}
	if err != nil {
		panic(err) // only a time limit can fail, and none is set
	}
	return ids
}

// longestPiece bounds the time of one piece, which grows with the square of its length. Only a run of more than 1,024
// letters, blanks or signs is cut there, and its ids may then differ from those of another implementation.
const longestPiece = 1024

func (b *bpe) encodePiece(ids []uint32, piece string) []uint32 {
	offsets := b.merge(piece, noToken)
	for i := range len(offsets) - 1 {
		ids = append(ids, b.ids[piece[offsets[i]:offsets[i+1]]])
	}
	return ids
}

// noToken is greater than every id.
const noToken = math.MaxUint32

// merge splits a piece into bytes and merges neighbors, always the leftmost pair that makes the token with the lowest
// id, as long as that id is below the limit. It returns the offsets of the parts and the end of the last part.
func (b *bpe) merge(piece string, limit uint32) []int {
	offsets := make([]int, len(piece)+1)
	merged := make([]uint32, len(piece)+1) // the token that part i and the next part make
	for i := range offsets {
		offsets[i] = i
	}
	update := func(i int) {
		merged[i] = noToken
		if i+2 >= len(offsets) {
			return
		}
		if id, ok := b.ids[piece[offsets[i]:offsets[i+2]]]; ok && id < limit {
			merged[i] = id
		}
	}
	for i := range merged {
		update(i)
	}
	for {
		least := slices.Min(merged)
		if least == noToken {
			return offsets
		}
		i := slices.Index(merged, least)
		offsets = slices.Delete(offsets, i+1, i+2)
		merged = slices.Delete(merged, i+1, i+2)
		update(i)
		if i > 0 {
			update(i - 1)
		}
	}
}

// AppendToken appends the bytes of a token to a slice: incomplete characters where the token ends within one, nothing
// for a special token or an unknown id. It is safe for concurrent use.
func AppendToken(to []byte, id uint32) []byte {
	if id >= ordinaryTokens {
		return to
	}
	return append(to, cl100k().tokens[id]...)
}

// Count returns the number of tokens of a text.
func Count(text string) int { return len(Encode(text)) }

// firstSpecial finds the first special token of a text. Without one, it returns the text's length and "".
func firstSpecial(text string) (at int, special string, id uint32) {
	at = len(text)
	for _, token := range specialTokens {
		if i := strings.Index(text[:at], token.text); i >= 0 {
			at, special, id = i, token.text, token.id
		}
	}
	return at, special, id
}

// Message is one message of a conversation.
type Message struct {
	Role    string // system, user or assistant
	Content string
}

// chatTemplate is the template of [RenderChat] for Hugging Face and Dynamo.
const chatTemplate = `{% for message in messages %}` +
	`{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}` +
	`{% endfor %}` +
	`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

// RenderChat returns the model's input for a conversation, up to the beginning of the next answer. The chat template
// in the model folder gives the same text.
func RenderChat(messages []Message) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(messageStart + m.Role + "\n" + m.Content + messageEnd + "\n")
	}
	b.WriteString(messageStart + "assistant\n")
	return b.String()
}
