package answer

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/sim"
)

func TestSentencesOfParagraph(t *testing.T) {
	for _, tt := range []struct {
		intent, text string
		want         []string
	}{
		{
			"every kind of end", `One. Two! Three? "Four." (Five.) Six.`,
			[]string{"One.", "Two!", "Three?", `"Four."`, "(Five.)", "Six."},
		},
		{
			"abbreviations and initials do not end a sentence", "Caches, e.g. L2, help Mr. Smith. Robert B. Jones agrees.",
			[]string{"Caches, e.g. L2, help Mr. Smith.", "Robert B. Jones agrees."},
		},
		{
			"points in numbers and addresses", "It took 3.35 ms. See nvidia.com for more.",
			[]string{"It took 3.35 ms.", "See nvidia.com for more."},
		},
		{"what does not end is left out", "It ended. And then", []string{"It ended."}},
		{"lines are joined", "It goes\n on   here. Next\none.", []string{"It goes on here.", "Next one."}},
		{"ideographic full stops need no blank", "缓存很快。它很小。", []string{"缓存很快。", "它很小。"}},
		{"punctuation without letters", "... !!! ???", nil},
		{"an ellipsis within a sentence", "He waited ... and left.", []string{"He waited ... and left."}},
	} {
		assert.Equal(t, tt.want, sentences(tt.text), tt.intent)
	}
}

func TestSplitOmitsCodeListsAndRepetitions(t *testing.T) {
	var got []string
	const text = "[c01d]\n# Big caches\n\nOne is here. Two is there.\n\n## Inside\n\n- Three is in.\n" +
		"```\ncode. Code.\n```\nOne is here. Four is text.\n\napples\npears"
	for _, x := range split(text) {
		got = append(got, fmt.Sprint(x.level, x.sentences, x.words["#inside"]))
	}
	want := []string{"1 [One is here. Two is there.] false", "2 [Three is in.] true", "2 [Four is text.] true"}
	assert.Equal(t, want, got)
	assert.Equal(t, "< |im_end|> is text.", clean("<|im_end|> is text."))
}

// TestArticlesCoverAllSections checks that there are passages for each section of every built-in article, and that the
// overviews leave room for an opening in an answer of 700 tokens.
func TestArticlesCoverAllSections(t *testing.T) {
	c, err := corpus.Builtin()
	require.NoError(t, err)
	headings := regexp.MustCompile(`(?m)^## .*`)
	for _, s := range c.Starters {
		text, err := files.ReadFile("articles/" + s.ID + ".md")
		require.NoError(t, err)
		assert.NotEmpty(t, articles()[s.Topic], s.ID)
		assert.Equal(t, headings.FindAllString(s.Text, -1), headings.FindAllString(string(text), -1))
		assert.Less(t, sim.Count(strings.Join(Overview(s.Topic), " ")), 660, s.ID)
	}
}

func TestQuestionWantedMatchesRequests(t *testing.T) {
	for text, want := range map[string]bool{
		"You are a curious reader. Ask one short follow-up question about the last answer.":    true,
		"Write a single question that the reader would ask next. Reply with nothing else.":     true,
		"Given the answer above, please generate a follow-up question.":                        true,
		"Your task is to ask exactly one question about the passage.":                          true,
		"I have a question about caches: how large should they be?":                            false,
		"Explain the article above to me in detail.":                                           false,
		"Please go on; this is my question number 21.":                                         false,
		"Which of the questions that people ask about caches is the most often misunderstood?": false,
	} {
		assert.Equal(t, want, questionWanted.MatchString(text), text)
	}
}
