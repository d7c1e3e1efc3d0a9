package sim

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/sim/bpe"
)

func TestEncodeKnownTexts(t *testing.T) {
	for _, test := range []struct {
		intent string
		text   string
		want   []uint32
	}{
		{"nothing", "", []uint32{}},
		{"two words that are tokens", "hello world", []uint32{15339, 1917}},
		{"a word that is merged", "tokenizer", []uint32{86693}},
		{"bytes that no merge joins", "\U0001F600", []uint32{76460, 222}},
		{"U+007F is a character too", "a\x7f", []uint32{64, 221}},
		{"a line of blanks is one piece with its neighbors", "a\n  \nb", []uint32{64, 14211, 65}},
		{"digits go by three", "1234", []uint32{4513, 19}},
		{"special tokens anywhere", "a<|im_end|>b<|im_start|>", []uint32{64, messageEndID, 65, messageStartID}},
		{"half a special token is text", "<|im", []uint32{27, 91, 318}},
	} {
		assert.Equal(t, test.want, Encode(test.text), test.intent)
		assert.Equal(t, len(test.want), Count(test.text), test.intent)
	}
}

func TestEncodeKeepsAllBytes(t *testing.T) {
	for _, text := range []string{
		"", " ", "\n\n \n", "a\r\nb\t", "it's I'LL", "e\u0301 \U0001F468\u200d\U0001F469 \U0001F600", "<|im <| |>",
		"func main() {\n\tfmt.Println(\"héllo, 世界\")\n\n\t\n}\n",
		strings.Repeat("letters", 1000), strings.Repeat("é", 3072), "\x00\x1c\x7f\u0085\u2028",
	} {
		assert.Equal(t, text, decode(Encode(text)))
	}
}

func decode(ids []uint32) string {
	var text []byte
	for _, id := range ids {
		text = AppendToken(text, id)
	}
	return string(text)
}

func TestAppendTokenAppendsBytes(t *testing.T) {
	assert.Equal(t, "a hello", string(AppendToken([]byte("a "), 15339)))
	assert.Equal(t, []byte("\xf0\x9f\x98"), AppendToken(nil, 76460), "three of the four bytes of a character")
	for _, id := range []uint32{messageEndID, endOfTextID, bpe.Tokens, vocabularySize, math.MaxUint32} {
		assert.Empty(t, AppendToken(nil, id), "%d is a special or an unknown token", id)
	}
	seen := map[string]bool{}
	for id := uint32(0); id < bpe.Tokens; id += 97 {
		text := string(AppendToken(nil, id))
		assert.NotEmpty(t, text)
		assert.False(t, seen[text], "%q has two ids", text)
		seen[text] = true
		if utf8.ValidString(text) {
			assert.Equal(t, text, decode(Encode(text)), "%d", id)
		}
	}
}

func TestRenderChatEndsWithAssistantRole(t *testing.T) {
	got := RenderChat([]Message{{"user", "Why?"}, {"assistant", "Because."}, {"user", "I see."}})
	assert.Equal(t, "<|im_start|>user\nWhy?<|im_end|>\n"+"<|im_start|>assistant\nBecause.<|im_end|>\n"+
		"<|im_start|>user\nI see.<|im_end|>\n"+
		"<|im_start|>assistant\n", got)
}

func TestWriteModelFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "model")
	require.NoError(t, WriteModel(dir))
	require.NoError(t, WriteModel(dir), "over an old one")

	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	assert.Equal(t, []string{"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}, names)

	var config struct {
		VocabSize int `json:"vocab_size"`
		Layers    int `json:"num_hidden_layers"`
		KVHeads   int `json:"num_key_value_heads"`
		HeadDim   int `json:"head_dim"`
	}
	readJSON(t, filepath.Join(dir, "config.json"), &config)
	assert.Equal(t, H200().KV.BytesPerToken, 2*config.Layers*config.KVHeads*config.HeadDim, "one byte each, FP8")

	var tokenizer struct {
		Added []struct {
			ID      int
			Content string
			Special bool
		} `json:"added_tokens"`
		Model struct {
			Type         string
			IgnoreMerges bool `json:"ignore_merges"`
			Vocab        map[string]int
			Merges       []string
		}
	}
	readJSON(t, filepath.Join(dir, "tokenizer.json"), &tokenizer)
	model := tokenizer.Model
	assert.Equal(t, "BPE", model.Type)
	assert.True(t, model.IgnoreMerges)
	assert.Len(t, model.Vocab, bpe.Tokens+3)
	assert.Len(t, model.Merges, bpe.Tokens-256, "one merge for every token of more than one byte")
	assert.Equal(t, []string{"Ġ Ġ", "ĠĠ ĠĠ", "i n", "Ġ t"}, model.Merges[:4])
	ids := map[string]int{
		"!": 0, "~": 93, "¡": 94, "Ā": 188, "ġ": 221, "ĠĠ": 256, "in": 258,
		"hello": 15339, "Ġworld": 1917, "<|im_end|>": 100265,
	}
	for token, id := range ids {
		assert.Equal(t, id, model.Vocab[token], token)
	}
	for _, added := range tokenizer.Added {
		assert.True(t, added.Special)
		assert.Equal(t, added.ID, model.Vocab[added.Content])
		assert.Less(t, added.ID, config.VocabSize)
	}
}

func TestWriteModelErrorNamesPath(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	assert.ErrorContains(t, WriteModel(filepath.Join(blocked, "model")), blocked)
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, into))
}
