package chat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"kvbooth/sidecar/sim/traffic"
)

// vocabulary is the list of words that texts of segments are made of. With the blank before it, each is a token.
type vocabulary struct {
	words     string // each in wordSize bytes
	confirmed bool   // by the server's tokenizer
}

const (
	wordSize   = 5  // bytes of a word with its blank
	chunkWords = 16 // words that are checked in one request
	// fewestWords is the size of a vocabulary from which two segments seldom begin with the same words.
	fewestWords = 4 * chunkWords
)

// bpeWords is the vocabulary without an answer of the server's tokenizer: English words of four letters that are single
// tokens of cl100k_base, o200k_base, p50k_base and GPT-2, and so of the many tokenizers that extend one of them.
var bpeWords = vocabulary{words: " " + strings.Join(strings.Fields(`
able aims also arch area arms asks atom atop auto away baby back bail ball band
bank bars base beam bear beat been best bias bike bill bind bits blow blur body
bold bolt book boom boot born boss both bugs burn buzz cafe call came cand cant
card care cart case cash cast cell cent chip chop city coin cold comb come cone
cook cool cope copy core corn cost cups cure cuts dark dart dash data date dawn
days deal debt deck deep deny dial does done door dose dots down drag draw drew
drop dual duty each ease easy echo edge edit else ends even ever exit eyes face
fact fail fair fall fast fear feed feel fees fell file fill film find fine fire
firm fish fits five flag flat flaw flex flip flow fold food foot fork form four
frag free from full gain game gaps gave gets gist give glue goal goes gold gone
good grab gray grew grey grid grow guys half hall halt hand hang hard harm have
head heap heat held helm help here hide high hint hits hold hole home hook hope
host hour huge hull hung idea idle inch into item jars jazz jobs join jump junk
just keep kept keys kind king kiss knew know lack laid lamp land lane last late
laws lazy lead leaf leak lean leap lear left lens less lets lies life lift like
lime line link list live load lock lone long look loop lore lose loss lost lots
loud love luck made mail main make male many maps mark mask mass mast math maze
mean meet memo mere mess mile milk mind mine mini mint miss mode moon more most
moth move much must name near neat need nest news next nice nine node none note
noun obey odds okay omit once ones only onto open ours outs over owns pace pack
pads page paid pain pair pane park part pass past path pays peak pick pink pins
pint pipe plan play plot plug plus pole pool poor port post pour pull pure push
puts race rain ramp rank rare rate read real rely rest rich ring rise risk rock
role roll roof room root rows ruby rule runs rust sack safe sage said sale salt
same sane sans save says scan seal seat seed seek seem seen sees self sell send
sent sets shed ship shot show shut side sign sink site sits size skip slow snow
soap soft sold sole solo some soon sort soul spin spot stag star stat stay step
stop such suit sure swap tail take tale talk task team tear tens test text than
that them then they thin this thus ties tile time tiny tips tire tone took tool
tops tour trap tree trip true tune turn twin type ugly upon used user very view
vote wait walk wall want warm warn wave ways weak week well went were what when
wide wild will wind wins wise wish with woke word work yard year your zero zone
`), " ")}

// size returns the number of bytes of a text.
func (*vocabulary) size(segments []traffic.Segment) int { return wordSize * traffic.Tokens(segments) }

// made is the part of a text that is not written yet.
type made struct {
	*vocabulary
	salt     uint64
	segments []traffic.Segment
	written  int // bytes of the first segment
}

// fill writes the next part of the text. The texts need no escapes in JSON. The first seven words of a segment are
// the digits of its number: in a full vocabulary, two segments begin with the same word once in 512 times, and no two
// of at least seven tokens are the same.
func (m *made) fill(to []byte) (n int) {
	words := uint64(len(m.words) / wordSize)
	for n < len(to) && len(m.segments) > 0 {
		s := m.segments[0]
		const digits = 7
		base := traffic.Scatter(s.ID ^ m.salt)
		var group uint64
		end := wordSize * s.Tokens
		for from := -1; n < len(to) && m.written < end; {
			word := m.written / wordSize
			if at := word / digits; at != from {
				from, group = at, base
				if at > 0 {
					group = traffic.Scatter(base + uint64(at))
				}
			}
			digit := group >> (9 * uint(word%digits)) % 512 % words
			at := m.written % wordSize
			copied := copy(to[n:], m.words[digit*wordSize+uint64(at):(digit+1)*wordSize])
			n += copied
			m.written += copied
		}
		if m.written == end {
			m.segments, m.written = m.segments[1:], 0
		}
	}
	return n
}

// Text returns the text of a message, as it is made for a server without a tokenizer of its own.
func Text(m Message, salt uint64) string {
	if len(m.Segments) == 0 {
		return m.Text
	}
	text := make([]byte, bpeWords.size(m.Segments))
	(&made{vocabulary: &bpeWords, salt: salt, segments: m.Segments}).fill(text)
	return string(text)
}

// checkWords asks the server's tokenizer which words are single tokens. Without an answer, or with too few words, the
// vocabulary is that for common tokenizers.
func (c *Client) checkWords(ctx context.Context) *vocabulary {
	if n := c.tokens(ctx, bpeWords.words); n == len(bpeWords.words)/wordSize {
		return &vocabulary{bpeWords.words, true}
	} else if n == 0 {
		return &bpeWords
	}
	var words strings.Builder
	for left := bpeWords.words; left != ""; left = left[chunkWords*wordSize:] {
		if chunk := left[:chunkWords*wordSize]; c.tokens(ctx, chunk) == chunkWords {
			words.WriteString(chunk)
		}
	}
	if words.Len() < fewestWords*wordSize {
		return &bpeWords
	}
	return &vocabulary{words.String(), true}
}

// tokens returns the number of tokens of a text by the server's /tokenize, in the form of vLLM and SGLang or that of
// llama.cpp; 0 without one.
func (c *Client) tokens(ctx context.Context, text string) int {
	ctx, cancel := context.WithTimeout(ctx, c.opts.ConnectTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]any{
		"model": c.Model(), "prompt": text, "content": text, "add_special_tokens": false,
	})
	if err != nil {
		return 0
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Root()+"/tokenize", bytes.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	c.authorize(req)
	res, err := c.fresh.RoundTrip(req)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	var answer struct {
		Count  int               `json:"count"`
		Tokens []json.RawMessage `json:"tokens"`
	}
	err = json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&answer)
	if err != nil || res.StatusCode != http.StatusOK {
		return 0
	}
	return cmp.Or(answer.Count, len(answer.Tokens))
}
