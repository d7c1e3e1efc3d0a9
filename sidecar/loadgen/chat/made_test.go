package chat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tiktoken-go/tokenizer"

	"kvbooth/sidecar/sim/traffic"
)

// Equal segments have equal tokens, which begin those of a longer one; others differ from the beginning, as do those
// with another salt. A text has the tokens of its segments.
func TestTextsOfSegments(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.Cl100kBase)
	require.NoError(t, err)
	tokens := func(salt uint64, segments ...traffic.Segment) []uint {
		ids, _, err := codec.Encode(Text(Message{Segments: segments}, salt))
		require.NoError(t, err)
		return ids
	}
	first := tokens(0, traffic.Segment{ID: 1, Tokens: 512})
	assert.Len(t, first, 512)
	assert.Equal(t, first[:100], tokens(0, traffic.Segment{ID: 1, Tokens: 100}))
	both := tokens(0, traffic.Segment{ID: 2, Tokens: 7}, traffic.Segment{ID: 1, Tokens: 512})
	assert.Equal(t, first, both[7:])
	assert.NotEqual(t, first, tokens(3, traffic.Segment{ID: 1, Tokens: 512}))
	begins := map[[7]uint]bool{}
	for id := range 10_000 {
		begins[[7]uint(tokens(0, traffic.Segment{ID: uint64(id), Tokens: 7}))] = true
	}
	assert.Len(t, begins, 10_000)
}

// The body of a request has the length that it announces and is the same JSON as one with the finished text, whatever
// the size of the reads, and the answer is as long as its limit only where the server takes such fields.
func TestMadeTextsAreStreamed(t *testing.T) {
	c := clientOf(t, "http://script", func(o *Options) { o.Planned, o.Fields = true, map[string]any{ExtExact: false} })
	segments := []traffic.Segment{{ID: 7, Tokens: 1000}, {ID: 8, Tokens: 3}}
	req := Request{
		Messages: []Message{{Role: "system", Text: "\"first\""}, {Role: RoleUser, Segments: segments}, {Role: RoleUser}},
		Salt:     5, MaxTokens: 20, Exact: true,
	}
	for size := 1; size < 20; size += 3 {
		p, err := c.newPayload(req, map[string]bool{ExtExact: true})
		require.NoError(t, err)
		length := p.buf.Len() + p.made
		body, err := io.ReadAll(&shortReads{p, size})
		require.NoError(t, err)
		assert.Len(t, body, length)
		var got struct {
			Messages  []struct{ Role, Content string }
			MinTokens int  `json:"min_tokens"`
			IgnoreEOS bool `json:"ignore_eos"`
		}
		require.NoError(t, json.Unmarshal(body, &got))
		assert.Equal(t, "\"first\"", got.Messages[0].Content)
		assert.Equal(t, Text(req.Messages[1], req.Salt), got.Messages[1].Content)
		assert.Equal(t, 20, got.MinTokens)
		assert.True(t, got.IgnoreEOS)
		assert.Equal(t, 1, strings.Count(string(body), ExtExact))
	}
	p, err := c.newPayload(req, nil)
	require.NoError(t, err)
	assert.Contains(t, p.buf.String(), `"ignore_eos":false`)
	assert.NotContains(t, p.buf.String(), "min_tokens")
}

type shortReads struct {
	io.Reader
	size int
}

func (s *shortReads) Read(p []byte) (int, error) { return s.Reader.Read(p[:min(len(p), s.size)]) }

// The server's tokenizer decides which words are used: those of which it makes one token each. A probe finds out
// whether the server takes the fields for exact lengths.
func TestWordsOfTheServersTokenizer(t *testing.T) {
	for name, row := range map[string]struct {
		split     string // a word of two tokens; "*": all are
		refuses   bool
		words     int
		confirmed bool
	}{
		"all are tokens":     {words: 512, confirmed: true},
		"one is two tokens":  {split: "book", words: 512 - chunkWords, confirmed: true},
		"none is a token":    {split: "*", words: 512},
		"fields are refused": {refuses: true, words: 512, confirmed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				switch {
				case r.URL.Path == "/tokenize":
					var text struct{ Prompt string }
					assert.NoError(t, json.Unmarshal(body, &text))
					words := strings.Fields(text.Prompt)
					n := len(words)
					for _, word := range words {
						if row.split == "*" || word == row.split {
							n++
						}
					}
					fmt.Fprintf(w, `{"count":%d}`, n)
				case row.refuses && bytes.Contains(body, []byte(ExtExact)):
					w.WriteHeader(http.StatusBadRequest)
					fmt.Fprint(w, `{"error":{"message":"Unrecognized request argument supplied: ignore_eos"}}`)
				default:
					fmt.Fprint(w, event("a"), doneEvent)
				}
			}))
			defer server.Close()
			c := clientOf(t, server.URL, func(o *Options) { o.Model, o.Planned = "m", true })
			require.Nil(t, c.Probe(t.Context()))
			words := c.words.Load()
			assert.Len(t, words.words, row.words*wordSize)
			assert.Equal(t, row.confirmed, words.confirmed)
			assert.NotContains(t, words.words, cmp.Or(row.split, "-"))
			assert.Equal(t, !row.refuses, c.Extensions()[ExtExact])
		})
	}
}
