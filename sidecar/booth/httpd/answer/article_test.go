package answer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCutSentences(t *testing.T) {
	for _, tt := range []struct {
		intent, text string
		want         []string
	}{
		{"every kind of end", `One. Two! Three? "Four." (Five.) Six.`, []string{"One.", "Two!", "Three?", `"Four."`, "(Five.)", "Six."}},
		{"abbreviations and initials end nothing", "Caches, e.g. L2, help Mr. Smith. Robert B. Jones agrees.", []string{"Caches, e.g. L2, help Mr. Smith.", "Robert B. Jones agrees."}},
		{"numbers and addresses have points", "It took 3.35 ms. See nvidia.com for more.", []string{"It took 3.35 ms.", "See nvidia.com for more."}},
		{"what does not end is left out", "It ended. And then", []string{"It ended."}},
		{"lines are joined", "It goes\n on   here. Next\none.", []string{"It goes on here.", "Next one."}},
		{"ideographic full stops need no blank", "缓存很快。它很小。", []string{"缓存很快。", "它很小。"}},
		{"signs are no sentence", "... !!! ???", nil},
		{"an ellipsis within a sentence", "He waited ... and left.", []string{"He waited ... and left."}},
	} {
		assert.Equal(t, tt.want, cutSentences(tt.text), tt.intent)
	}
}

func TestSplit(t *testing.T) {
	a := split("[c01d]\n# Big caches\n\nOne is here. Two is there.\n\n## Inside\n\n- Three is in.\n```\ncode. Code.\n```\nOne is here. <|im_end|> is text.")
	assert.Equal(t, "big caches", a.topic)
	assert.Equal(t, []string{"", "Inside"}, a.headings)
	var got []string
	for _, s := range a.sentences {
		got = append(got, fmt.Sprint(s.section, " ", s.text))
	}
	assert.Equal(t, []string{"0 One is here.", "0 Two is there.", "1 Three is in.", "1 < |im_end|> is text."}, got,
		"no code, no nonce, no sentence twice, no special token")
}

// A text without sentences is quoted, and one without anything is spoken of in general.
func TestSplitOfWhatIsNoArticle(t *testing.T) {
	code := split("func main() {\n\tfmt.Println(\"hi\")\n}\n\nvar x = 1\ntype T int\n")
	assert.Contains(t, code.sentences[1].text, `"fmt.Println('hi')"`)
	assert.False(t, code.general)
	assert.True(t, split("hello there").general)
	assert.Equal(t, `"hello there"`, split("hello there").topic)
	assert.Equal(t, "your message", split(" \n").topic)
	long := split(strings.Repeat("x", 2000))
	for _, s := range long.sentences {
		assert.Less(t, len(s.text), longFragment+40)
	}
}

func TestStem(t *testing.T) {
	for _, same := range []string{"cache caches", "rotate rotated rotates rotation", "measure measuring measured", "slow slowly"} {
		words := strings.Fields(same)
		for _, word := range words {
			assert.Equal(t, stem(words[0]), stem(word), word)
		}
	}
	assert.Equal(t, "key", stem("key"), "short words stay")
}

func TestSubject(t *testing.T) {
	a := split("# Caches\n\nA prefix cache keeps blocks. Eviction frees them. Old blocks go first.")
	for _, tt := range []struct{ intent, question, want string }{
		{"a quotation", `You mention "prefix cache". How does that work?`, "prefix cache"},
		{"a curly one", "What is “old blocks”?", "old blocks"},
		{"words that the article has", "And how does a prefix cache behave under load?", "prefix cache"},
		{"words of questions name nothing", "What follows from that in practice?", ""},
		{"the recorded question", "elaborate further", ""},
		{"nothing known", "Do you like bananas?", ""},
	} {
		assert.Equal(t, tt.want, a.subject(tt.question), tt.intent)
	}
}

func TestWantsQuestion(t *testing.T) {
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
		assert.Equal(t, want, wantsQuestion.MatchString(text), text)
	}
}

// Many different texts do not fill the memory.
func TestCacheIsBounded(t *testing.T) {
	c := New()
	for i := range 3 * maxArticles {
		c.article(fmt.Sprintf("One %d. Two %d. Three %d.", i, i, i))
	}
	c.article(strings.Repeat("A long sentence stands here. ", keptArticle/20))
	assert.LessOrEqual(t, len(c.articles), maxArticles)
	for text := range c.articles {
		assert.LessOrEqual(t, len(text), keptArticle)
	}
}
