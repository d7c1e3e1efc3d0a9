package bpe

import (
	"bytes"
	"compress/gzip"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tiktoken-go/tokenizer/codec"
)

var update = flag.Bool("update", false, "rewrite cl100k.gz")

// TestVocabularyOfLibrary compares the embedded vocabulary with that of the tokenizer library. With -update, it writes
// the file.
func TestVocabularyOfLibrary(t *testing.T) {
	library := codec.NewCl100kBase()
	var lengths, text []byte
	for id := range uint(Tokens) {
		token, err := library.Decode([]uint{id})
		require.NoError(t, err)
		lengths, text = append(lengths, byte(len(token))), append(text, token...)
	}
	want := append(lengths, text...)
	if *update {
		var out bytes.Buffer
		zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		require.NoError(t, err)
		_, err = zipped.Write(want)
		require.NoError(t, err)
		require.NoError(t, zipped.Close())
		require.NoError(t, os.WriteFile("cl100k.gz", out.Bytes(), 0o644))
		packed = out.Bytes()
	}
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	got, err := io.ReadAll(zipped)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "go test ./sidecar/sim/bpe -update rewrites the vocabulary")
	for id := range uint32(Tokens) {
		found, ok := loaded().id(Token(id))
		require.True(t, ok)
		require.Equal(t, id, found)
	}
	require.Empty(t, Token(Tokens))
}

func FuzzPiecesOfPattern(f *testing.F) {
	for _, text := range []string{
		"it's I'LL I'ſ 're'", " a  b\t\tc\n  \nd \r\n\r\n e", "1234½ ٣٤",
		"func main() {\n\tfmt.Println(\"héllo, 世界\")\n\n}\n",
		"e\u0301 \U0001F468\u200d\U0001F469", "\x00\x1c\x7f\u0085\u2028\u00a0x", "\xff\xfe a\xc3",
		"   ", " \n ", " !?\n\n x", "'",
	} {
		f.Add(text)
	}
	// The group changes the text of the pattern, by which the library's generated matcher would be found. That one drops
	// U+007F and splits lines of blanks in too many places.
	pattern := regexp2.MustCompile("(?:"+Pattern+")", regexp2.None)
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "\uFFFD")
		for match, err := pattern.FindStringMatch(text); match != nil; match, err = pattern.FindNextMatch(match) {
			require.NoError(t, err)
			n := next(text)
			require.Equal(t, match.String(), text[:n])
			text = text[n:]
		}
		require.Empty(t, text)
	})
}

func TestEncodeInvalidUTF8(t *testing.T) {
	assert.Equal(t, Encode(nil, "a\uFFFD\uFFFDb"), Encode(nil, "a\xff\xfeb"))
}
