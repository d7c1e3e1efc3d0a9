package sim

import (
	"strings"

	"kvbooth/sidecar/sim/bpe"
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

// vocabularySize is one more than the largest id of cl100k_base. Between ordinary and special tokens are unused ids.
const vocabularySize = 100_277

var specialTokens = []struct {
	text string
	id   uint32
}{{endOfText, endOfTextID}, {messageStart, messageStartID}, {messageEnd, messageEndID}}

// Encode returns the token ids of a text: cl100k_base, a byte-level BPE, with special tokens recognized anywhere. A
// Hugging Face tokenizer that loads the file of [WriteTokenizerJSON] returns the same ids. The first call takes some
// tens of milliseconds to build the vocabulary. Encode is safe for concurrent use.
func Encode(text string) []uint32 {
	ids := make([]uint32, 0, len(text)/4)
	for text != "" {
		at, special, id := firstSpecial(text)
		ids = bpe.Encode(ids, text[:at])
		if special == "" {
			break
		}
		ids = append(ids, id)
		text = text[at+len(special):]
	}
	return ids
}

// AppendToken appends the bytes of a token to a slice: incomplete characters where the token ends within one, nothing
// for a special token or an unknown id. It is safe for concurrent use.
func AppendToken(to []byte, id uint32) []byte {
	return append(to, bpe.Token(id)...)
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
