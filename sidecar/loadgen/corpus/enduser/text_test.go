package enduser

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// The rows are outputs of models that were asked for one question.
func TestClean(t *testing.T) {
	long := strings.Repeat("word ", 70)
	for _, tt := range []struct{ name, said, want string }{
		{"a question", "How does the router know what is cached?", "How does the router know what is cached?"},
		{"in quotation marks", `"How does it know?"`, "How does it know?"},
		{"in other ones", "“How does it know?”", "How does it know?"},
		{"a quotation within", `What do you mean by "prefix caching"?`, `What do you mean by "prefix caching"?`},
		{"one at the beginning", `"Prefix caching": what is that?`, `"Prefix caching": what is that?`},
		{"one within quotation marks", `"What is 'paged attention'?"`, "What is 'paged attention'?"},
		{"with a label", "Follow-up question: How does it know?", "How does it know?"},
		{"with another", "**Question 1:** How does it know?", "How does it know?"},
		{"with a speaker", "Visitor: How does it know?", "How does it know?"},
		{"the first of a list", "1. How does it know?\n2. What does it cost?\n", "How does it know?"},
		{"a bullet", "- How does it know?", "How does it know?"},
		{"behind a preface", "Sure, here is a follow-up question:\n\nHow does it know?", "How does it know?"},
		{"before a remark", "How does it know? (This follows up on the second point.)", "How does it know?"},
		{"behind a thought", "<think>What would they ask?\nMaybe costs?</think>\nHow does it know?", "How does it know?"},
		{"with a sentence in front", "That is surprising! How does it know?", "That is surprising! How does it know?"},
		{"with spaces of all kinds", "How\tdoes  it\u00a0know?\x00", "How does it know?"},
		{"in Chinese", "路由器怎么知道缓存了什么？", "路由器怎么知道缓存了什么？"},
		{"in Arabic", "كيف يعرف الموجه؟", "كيف يعرف الموجه؟"},
		{"too long, but for its last sentence", long + "stop. How does it know?", "How does it know?"},
		{"too long", "How " + long + "?", ""},
		{"cut by a limit", "How does the router know what", ""},
		{"a refusal", "I cannot help with that.", ""},
		{"no words", "???", ""},
		{"not UTF-8", "How does\xff it know?", "How does it know?"},
		{"nothing", "", ""},
	} {
		got, ok := clean(tt.said)
		assert.Equal(t, tt.want, got, tt.name)
		assert.Equal(t, tt.want != "", ok, tt.name)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\"Question: «Why?» ")
	f.Fuzz(func(t *testing.T, said string) {
		got, ok := clean(said)
		assert.Equal(t, ok, got != "")
		assert.LessOrEqual(t, utf8.RuneCountInString(got), maxQuestion)
		assert.True(t, utf8.ValidString(got))
		assert.NotContains(t, got, "\n")
		if ok {
			assert.True(t, strings.HasSuffix(got, "?") || strings.HasSuffix(got, "？") || strings.HasSuffix(got, "؟"), got)
		}
	})
}

// The prompt has the topic, the last questions and the end of the answer, and its size is
// bounded.
func TestPrompt(t *testing.T) {
	answer := strings.Repeat("An early sentence stands here. ", 1000) + "The last one is about eviction."
	asked := []string{"Zero?", "One?", "Two?", "Three?", "Four?", "Five?", "Six? " + strings.Repeat("long ", 200)}
	messages := prompt("Observability", asked, answer)
	system, user := messages[0].Content, messages[1].Content
	assert.Contains(t, system, "Observability")
	assert.NotContains(t, system, "Zero?")
	assert.Contains(t, system, "\n- One?\n- Two?")
	assert.Less(t, len(system), 2000)
	assert.True(t, strings.HasPrefix(user, "An early sentence"), user[:40])
	assert.True(t, strings.HasSuffix(user, "about eviction.\n\n"+request))
	assert.Less(t, len(user), maxAnswer+200)

	assert.NotContains(t, prompt("X", nil, "Short.")[0].Content, alreadyAsked)
	assert.Equal(t, "Short.\n\n"+request, prompt("X", nil, " Short. ")[1].Content)
	assert.True(t, utf8.ValidString(end(strings.Repeat("é", maxAnswer))), "cut within a character")
}
