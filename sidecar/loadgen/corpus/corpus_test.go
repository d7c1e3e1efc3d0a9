package corpus

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func builtin(t testing.TB) *Corpus {
	t.Helper()
	c, err := Builtin()
	require.NoError(t, err)
	return c
}

func TestBuiltinHasOneArticleOnEachSubject(t *testing.T) {
	var got []string
	for _, s := range builtin(t).Starters {
		got = append(got, s.ID)
	}
	assert.Equal(t, []string{
		"cloud-infrastructure", "container-orchestration", "cuda-programming-model", "disaggregated-inference",
		"distributed-systems", "gpu-architecture", "large-language-models", "model-optimisation", "observability",
		"transformer",
	}, got)
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?]["')]*\s+|\n+`)
	notWords    = regexp.MustCompile(`[^\pL\pN]+`)
)

// Articles are clean text in whole paragraphs, and no sentence occurs twice within or across articles.
func TestArticlesAreProse(t *testing.T) {
	where := map[string]string{}
	for _, s := range builtin(t).Starters {
		for i, r := range s.Text {
			if r != '\n' && (r == unicode.ReplacementChar || !unicode.IsPrint(r)) {
				t.Errorf("%s: %q at byte %d", s.ID, r, i)
			}
		}
		for p := range strings.SplitSeq(s.Text, "\n\n") {
			assert.Equal(t, strings.TrimSpace(p), p, "%s: space around a paragraph", s.ID)
			if !strings.HasPrefix(p, "#") {
				assert.GreaterOrEqual(t, len(strings.Fields(p)), 20, "%s: %q", s.ID, p)
			}
		}
		for _, sentence := range sentenceEnd.Split(s.Text, -1) {
			words := notWords.ReplaceAllString(strings.ToLower(sentence), " ")
			if len(strings.Fields(words)) < 8 {
				continue
			}
			assert.Empty(t, where[words], "%s repeats %q", s.ID, sentence)
			where[words] = s.ID
		}
	}
	assert.Greater(t, len(where), 1000, "sentences found")
}

func TestParseRequiresHeading(t *testing.T) {
	s, err := parse("x", "\n# The heading\n\nText.\n")
	require.NoError(t, err)
	assert.Equal(t, Starter{ID: "x", Topic: "The heading", Text: "# The heading\n\nText."}, s)
	_, err = parse("x", "Text without a heading.\n")
	assert.ErrorContains(t, err, `starter x: its first line is "Text without a heading."`)
}
