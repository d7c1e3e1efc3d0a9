package answer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/booth/httpd/answer"
	"kvbooth/sidecar/sim"
)

// several are prompts of each kind: about a built-in article, about another text, without a text, and for a question.
func several(t *testing.T) map[string][]sim.Message {
	return map[string][]sim.Message{
		"an article": user(starters(t)[0].Text + "\n\nExplain it."),
		"a text": user("A buoy floats. It is moored to the ground with a chain of steel.\n\n" +
			"It warns of a shoal, and it is painted red.\n\nExplain it."),
		"no text":    user("hello world"),
		"a question": user("The buoy is red.\n\nAsk me one question about it."),
	}
}

// TestIgnoreEndFillsLimit checks that the answer has exactly as many tokens as the limit, so that measurements know
// the number. The longest answer fits into a worker's cache.
func TestIgnoreEndFillsLimit(t *testing.T) {
	for name, messages := range several(t) {
		limits := []int{1, 2, 39, 40, 41, 300, 830, 1328, 1329, 5000}
		if name == "an article" {
			limits = append(limits, 355_000)
		}
		for _, most := range limits {
			a := answer.Compose(messages, answer.Asked{Max: most, IgnoreEnd: true, Stop: []string{" "}})
			require.Len(t, a.Tokens, most, "%s, %d", name, most)
			require.Equal(t, sim.FinishLength, a.Reason)
		}
	}
	a := answer.Compose(user("x"), answer.Asked{IgnoreEnd: true})
	assert.Equal(t, answer.Compose(user("x"), answer.Asked{}), a, "without a limit, IgnoreEnd has no effect")
}

func TestMinIsReached(t *testing.T) {
	for name, messages := range several(t) {
		natural := answer.Compose(messages, answer.Asked{})
		for _, row := range []struct{ least, most, fewest int }{
			{100, 0, 100},
			{2000, 0, 2000},
			{2000, 2010, 2000},
			{60, 50, 50},
			{50, 50, 50},
			{12, 14, 12},
			{1400, 1500, 1400},
		} {
			what := fmt.Sprintf("%s: %+v", name, row)
			a := answer.Compose(messages, answer.Asked{Max: row.most, Min: row.least})
			require.GreaterOrEqual(t, len(a.Tokens), row.fewest, what)
			if row.most > 0 {
				require.LessOrEqual(t, len(a.Tokens), row.most, what)
			}
			if a.Reason == sim.FinishStop && name != "a question" {
				require.Equal(t, sim.Encode(a.Text), a.Tokens, "whole sentences: %s", what)
			}
		}
		assert.Equal(t, natural, answer.Compose(messages, answer.Asked{Min: -1}), name)
	}
}

func TestStopEndsAnswer(t *testing.T) {
	messages := several(t)["an article"]
	whole := answer.Compose(messages, answer.Asked{Max: 400})
	text := whole.Text
	stop := func(a answer.Asked) answer.Answer {
		t.Helper()
		a.Max = 400
		got := answer.Compose(messages, a)
		require.LessOrEqual(t, len(got.Tokens), len(whole.Tokens))
		require.Equal(t, whole.Tokens[:len(got.Tokens)], got.Tokens, "a stopped answer is a prefix of the whole one")
		require.Equal(t, sim.FinishStop, got.Reason)
		return got
	}
	// tokens returns the number of tokens of the first bytes of the text.
	tokens := func(bytes int) int {
		var prefix []byte
		for i, id := range whole.Tokens {
			if prefix = sim.AppendToken(prefix, id); len(prefix) >= bytes {
				return i + 1
			}
		}
		return -1
	}
	for _, word := range []string{". ", "e", text[:1], text[100:140], text[len(text)-5:], text} {
		at := strings.Index(text, word)
		got := stop(answer.Asked{Stop: []string{word}})
		assert.Equal(t, text[:at], got.Text, "%q", word)
		assert.Len(t, got.Tokens, tokens(at+len(word)), "%q: up to the token that completes it", word)
		kept := stop(answer.Asked{Stop: []string{word}, KeepStop: true})
		assert.Equal(t, text[:at+len(word)], kept.Text, "%q", word)
	}
	first := min(strings.Index(text, "a"), strings.Index(text, "o"))
	got := stop(answer.Asked{Stop: []string{"not in the answer", "o", "a"}})
	assert.Equal(t, text[:first], got.Text, "the first match in the text, regardless of the list's order")
	assert.Equal(t, whole, stop(answer.Asked{Stop: []string{"not in the answer"}}))

	late := stop(answer.Asked{Stop: []string{"e"}, Min: 50})
	assert.Greater(t, len(late.Tokens), 50)
	var before []byte
	for _, id := range whole.Tokens[:50] {
		before = sim.AppendToken(before, id)
	}
	after := strings.Index(text[len(before):], "e")
	assert.Equal(t, text[:len(before)+after], late.Text, "the first match after Min tokens")
}
