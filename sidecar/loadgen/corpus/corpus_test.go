package corpus

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tiktoken-go/tokenizer"
)

func builtin(t testing.TB) *Corpus {
	t.Helper()
	c, err := Builtin()
	require.NoError(t, err)
	return c
}

// One article on each of the ten subjects.
func TestBuiltinTopics(t *testing.T) {
	want := map[string]string{
		"gpu-architecture":        "GPU architecture",
		"large-language-models":   "Large language models",
		"container-orchestration": "Container orchestration",
		"disaggregated-inference": "Disaggregated inference",
		"cloud-infrastructure":    "Cloud infrastructure",
		"transformer":             "The transformer",
		"distributed-systems":     "Distributed systems",
		"cuda-programming-model":  "The CUDA programming model",
		"model-optimisation":      "Model optimisation for inference",
		"observability":           "Observability",
	}
	got := map[string]string{}
	for _, s := range builtin(t).Starters {
		got[s.ID] = s.Topic
		assert.Regexp(t, `^[a-z0-9]+(-[a-z0-9]+)*$`, s.ID, "fit for a URL")
	}
	assert.Equal(t, want, got)
}

func TestStarterLength(t *testing.T) {
	encoder, err := tokenizer.Get(tokenizer.Cl100kBase)
	require.NoError(t, err)
	for _, s := range builtin(t).Starters {
		n, err := encoder.Count(s.Text)
		require.NoError(t, err)
		assert.True(t, n >= 3500 && n <= 4000, "%s has %d tokens", s.ID, n)
	}
}

func TestStartersAreCleanText(t *testing.T) {
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
	}
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?]["')]*\s+|\n+`)
	notWords    = regexp.MustCompile(`[^\pL\pN]+`)
)

// A sentence that stands twice is filler, within an article or across them.
func TestNoSentenceTwice(t *testing.T) {
	where := map[string]string{}
	for _, s := range builtin(t).Starters {
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

func TestParseWantsHeading(t *testing.T) {
	s, err := parse("x", "\n# The heading\n\nText.\n")
	require.NoError(t, err)
	assert.Equal(t, Starter{ID: "x", Topic: "The heading", Text: "# The heading\n\nText."}, s)
	_, err = parse("x", "Text without a heading.\n")
	assert.ErrorContains(t, err, `starter x: its first line is "Text without a heading."`)
}
