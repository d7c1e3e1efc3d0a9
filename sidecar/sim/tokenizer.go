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

// splitPattern is cl100k_base's: it cuts a text into the pieces within which
// tokens are merged.
const splitPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// bpe is the byte-level BPE of cl100k_base. Of the tokenizer library it takes the
// vocabulary only: the library's matcher of this pattern, which is generated code,
// loses U+007F and cuts lines of nothing but blanks too often.
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
		// The group keeps the library's generated matcher, which is looked up by the
		// text of the pattern, from being taken here too.
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

// Encode gives the token ids of a text: cl100k_base, a byte-level BPE, with
// special tokens recognised wherever they stand. A Hugging Face tokenizer that
// loads the file of [WriteTokenizerJSON] gives the same ids. The first call takes
// some tens of milliseconds to build the vocabulary. It is safe for concurrent use.
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

// longestPiece bounds the time that one piece takes, which grows with its square.
// Only a run of more than 1,024 letters, blanks or signs is cut there, and its ids
// may then differ from those of another implementation.
const longestPiece = 1024

func (b *bpe) encodePiece(ids []uint32, piece string) []uint32 {
	offsets := b.merge(piece, noToken)
	for i := range len(offsets) - 1 {
		ids = append(ids, b.ids[piece[offsets[i]:offsets[i+1]]])
	}
	return ids
}

// noToken is above every id.
const noToken = math.MaxUint32

// merge takes a piece apart into bytes and merges neighbours, always the leftmost
// of those that make the token with the lowest id, as long as there is one below
// the limit. It gives the offsets of the parts, with the end of the last.
func (b *bpe) merge(piece string, limit uint32) []int {
	offsets := make([]int, len(piece)+1)
	merged := make([]uint32, len(piece)+1) // what part i makes with the next one
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

// AppendToken appends the bytes of a token: parts of characters where the token
// ends within one, nothing for a special token or an id that no token has. It is
// safe for concurrent use.
func AppendToken(to []byte, id uint32) []byte {
	if id >= ordinaryTokens {
		return to
	}
	return append(to, cl100k().tokens[id]...)
}

// Count is the number of tokens of a text.
func Count(text string) int { return len(Encode(text)) }

// firstSpecial finds the first special token of a text; without one it gives
// the text's length and "".
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

// chatTemplate is [RenderChat] for Hugging Face and Dynamo.
const chatTemplate = `{% for message in messages %}` +
	`{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}` +
	`{% endfor %}` +
	`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

// RenderChat gives the text that the model reads for a conversation, up to the
// point where its answer begins. The model folder's chat template gives the same.
func RenderChat(messages []Message) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(messageStart + m.Role + "\n" + m.Content + messageEnd + "\n")
	}
	b.WriteString(messageStart + "assistant\n")
	return b.String()
}
