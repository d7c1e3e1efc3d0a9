package answer_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/booth/httpd/answer"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/sim"
)

// turn is one turn of a conversation.
type turn struct {
	question string
	messages []sim.Message // the prompt
	limit    int
	answer   answer.Answer
}

// converse holds a conversation on a built-in article, with prompts like those of the workload.
func converse(s corpus.Starter, q corpus.Questioner, seed uint64, turns int, limit func(*rand.Rand) int) []turn {
	r := rand.New(rand.NewPCG(seed, 7))
	var all []turn
	asked := []string{q.Open(r, s.Topic)}
	messages := []sim.Message{{Role: "user", Content: s.Text + "\n\n" + asked[0]}}
	for n := range turns {
		t := turn{question: asked[n], messages: slices.Clone(messages), limit: limit(r)}
		t.answer = answer.Compose(t.messages, answer.Asked{Max: t.limit})
		all = append(all, t)
		asked = append(asked, q.Follow(context.Background(), r, s.Topic, asked, t.answer.Text))
		messages = append(messages,
			sim.Message{Role: "assistant", Content: t.answer.Text}, sim.Message{Role: "user", Content: asked[n+1]})
	}
	return all
}

// drawn returns a limit with the distribution of the load generator.
func drawn(r *rand.Rand) int { return int(math.Round(min(max(900*(1+.3*r.NormFloat64()), 225), 1024))) }

func none(*rand.Rand) int { return 0 }

func starters(t testing.TB) []corpus.Starter {
	t.Helper()
	c, err := corpus.Builtin()
	require.NoError(t, err)
	return c.Starters
}

var questioners = []corpus.Questioner{corpus.BuiltinQuestioner{}, corpus.FixedQuestioner{Text: "elaborate further"}}

var (
	sentenceEnd = regexp.MustCompile(`[.!?]["')]*\s+|\n+`)
	quotation   = regexp.MustCompile(`"(.+)"`)
)

// TestAnswersFillLimitWithoutRepetition holds a conversation of five turns on each article with each questioner.
func TestAnswersFillLimitWithoutRepetition(t *testing.T) {
	got, want := 0., 0.
	for i, s := range starters(t) {
		for _, q := range questioners {
			t.Run(s.ID+"/"+strings.ReplaceAll(q.Name(), " ", "-"), func(t *testing.T) {
				turns, seen := converse(s, q, uint64(i), 5, drawn), map[string]bool{}
				for n, turn := range turns {
					got += float64(len(turn.answer.Tokens))
					want += float64(turn.limit)
					assertFills(t, turn, seen)
					if n+1 < len(turns) && n == len(s.ID)%4 { // one turn of each conversation, to save time
						served := append(sim.Encode(sim.RenderChat(turn.messages)), turn.answer.Tokens...)
						next := sim.Encode(sim.RenderChat(turns[n+1].messages))
						require.Greater(t, len(next), len(served))
						assert.Equal(t, served, next[:len(served)], "the next prompt has the answer's tokens as generated")
					}
				}
				first := turns[0]
				assert.Contains(t, strings.ToLower(first.answer.Text[:150]), strings.ToLower(s.Topic))
				for _, sentence := range answer.Overview(s.Topic) {
					if first.limit > 700 {
						assert.Contains(t, first.answer.Text, sentence, "the first answer covers all sections")
					}
				}
			})
		}
	}
	assert.InEpsilon(t, want, got, .01, "mean length of the answers and mean limit")
}

// assertFills checks that an answer fills its limit with whole sentences, of which none is among those of the
// conversation so far, and that it begins with the subject of the question. It adds its sentences to those.
func assertFills(t *testing.T, turn turn, seen map[string]bool) {
	t.Helper()
	a := turn.answer
	assert.Equal(t, sim.Encode(a.Text), a.Tokens)
	assert.Equal(t, sim.FinishStop, a.Reason)
	assert.Regexp(t, `[.!?"']$`, a.Text)
	assert.LessOrEqual(t, len(a.Tokens), turn.limit)
	assert.Greater(t, len(a.Tokens), turn.limit*9/10)
	again := answer.Compose(turn.messages, answer.Asked{Max: turn.limit})
	assert.Equal(t, a.Text, again.Text, "the same prompt has the same answer")
	for _, sentence := range sentenceEnd.Split(a.Text, -1) {
		assert.False(t, seen[sentence], "repeated in the conversation: %q", sentence)
		seen[sentence] = true
	}
	if subject := quotation.FindStringSubmatch(turn.question); subject != nil {
		opening := strings.ToLower(a.Text[:200])
		assert.Contains(t, opening, strings.ToLower(subject[1]), "the opening names the subject of the question")
	}
}

func TestNaturalLengthDistribution(t *testing.T) {
	var lengths []float64
	for i, s := range starters(t) {
		for seed := range uint64(4) {
			for _, turn := range converse(s, questioners[0], 100*uint64(i)+seed, 3, none) {
				lengths = append(lengths, float64(len(turn.answer.Tokens)))
			}
		}
	}
	mean, deviation := 0., 0.
	for _, n := range lengths {
		mean += n / float64(len(lengths))
	}
	for _, n := range lengths {
		deviation += (n - mean) * (n - mean) / float64(len(lengths))
	}
	assert.InEpsilon(t, 900, mean, .07) // two and a half standard errors
	assert.InDelta(t, .3, math.Sqrt(deviation)/mean, .06)
}

// TestAnswersToOnePromptDiffer checks that answers with different seeds differ from their first tokens on, like
// sampled answers of a model. Otherwise, conversations with equal openings would find each other's answers in a
// cache.
func TestAnswersToOnePromptDiffer(t *testing.T) {
	messages := user(starters(t)[0].Text + "\n\nExplain it.")
	begin := map[string]int{}
	for seed := range uint64(40) {
		a := answer.Compose(messages, answer.Asked{Max: 300, Seed: seed})
		assert.Equal(t, a, answer.Compose(messages, answer.Asked{Max: 300, Seed: seed}))
		begin[text(a.Tokens[:12])]++
	}
	assert.Greater(t, len(begin), 20)
}

func TestLimitOrNaturalLength(t *testing.T) {
	one := user(starters(t)[0].Text + "\n\nExplain it.")
	natural := len(answer.Compose(one, answer.Asked{Max: 0}).Tokens)
	assert.InDelta(t, 900, natural, 800)
	for _, tt := range []struct {
		intent      string
		limit, want int
	}{
		{"a limit in the natural range is filled", 1300, 1300},
		{"no limit gives the natural length", -1, natural},
		{"a limit as high as the model's context gives the natural length", 900_000, natural},
	} {
		got := len(answer.Compose(one, answer.Asked{Max: tt.limit}).Tokens)
		assert.LessOrEqual(t, got, tt.want, tt.intent)
		assert.Greater(t, got, tt.want-25, tt.intent)
	}
}

// TestAnswerBeginsWithMatchingPassage checks that the passage on the subject and the kind of question comes first.
func TestAnswerBeginsWithMatchingPassage(t *testing.T) {
	isArticle := func(s corpus.Starter) bool { return s.ID == "disaggregated-inference" }
	article := starters(t)[slices.IndexFunc(starters(t), isArticle)]
	first := converse(article, questioners[1], 1, 1, func(*rand.Rand) int { return 650 })[0]
	messages := append(first.messages, sim.Message{Role: "assistant", Content: first.answer.Text})
	for question, want := range map[string]string{
		`What does "decode" cost, and who pays for it?`:                              "Separation costs a fast network",
		`Is there an alternative to "pools", and when would you choose it?`:          "Chunked prefill on one pool is the alternative",
		`Suppose everything became ten times larger. What would happen to "memory"?`: "With prompts ten times as long",
		`You mention "hot spot". How does that work in detail?`:                      "Prefix caching changes the picture",
		"So the knob is the size of the chunk, but what happens if I choose a small one?": "The size of the chunk is " +
			"the one knob",
		"Which of these ideas will still matter in ten years?":                     "Hardware will change",
		"How would you explain the same thing to a manager who has to pay for it?": "Separation costs a fast network",
	} {
		prompt := append(slices.Clone(messages), sim.Message{Role: "user", Content: question})
		a := answer.Compose(prompt, answer.Asked{Max: 830})
		paragraphs := strings.SplitN(a.Text, "\n\n", 5)
		assert.Contains(t, strings.Join(paragraphs[1:4], " "), want, question)
	}
}

func TestLongConversationRepeatsWithReminder(t *testing.T) {
	turns := converse(starters(t)[2], questioners[0], 1, 15, drawn)
	for _, turn := range turns {
		assert.Greater(t, len(turn.answer.Tokens), turn.limit*9/10)
	}
	assert.Contains(t, turns[14].answer.Text, "As a reminder")
}

func TestOwnTextIsAnsweredWithItsSentences(t *testing.T) {
	var text strings.Builder
	text.WriteString("# Der Hafen\n")
	for i := range 40 {
		fmt.Fprintf(&text, "\nDas Schiff %d liegt am Kai und wartet auf Ladung. Der Kran %d hebt die Kisten hoch.\n", i, i)
	}
	text.WriteString("\nEine Boje markiert den Fahrweg. Der Lotse kennt sie genau.")
	harbor := corpus.Starter{ID: "hafen", Topic: "Der Hafen", Text: text.String()}
	turns := converse(harbor, questioners[0], 1, 2, func(*rand.Rand) int { return 400 })
	for _, turn := range turns {
		for _, sentence := range sentenceEnd.Split(strings.TrimSpace(turn.answer.Text), -1) {
			assert.Contains(t, text.String(), strings.TrimRight(sentence, "."))
		}
		assert.Greater(t, len(turn.answer.Tokens), 370)
	}
	messages := append(turns[1].messages[:2:2], sim.Message{Role: "user", Content: "Was markiert die \"Boje\"?"})
	last := answer.Compose(messages, answer.Asked{Max: 400})
	assert.True(t, strings.HasPrefix(last.Text, "Eine Boje"), "the sentence on the subject comes first")
}

func user(text string) []sim.Message { return []sim.Message{{Role: "user", Content: text}} }

// strange are prompts without an article.
var strange = map[string][]sim.Message{
	"nothing":             nil,
	"empty":               user(""),
	"blanks":              user(" \n\t \n"),
	"two words":           user("hello world"),
	"a question":          user("What is the capital of France?"),
	"code":                user("```go\nfunc main() {\n\tfmt.Println(\"x\")\n}\n```\n\nWhat does it do?"),
	"a list of words":     user("apples\npears\nplums\ncherries\n\nSort them."),
	"one endless word":    user(strings.Repeat("a", 5000)),
	"Chinese":             user(strings.Repeat("键值缓存使模型不必重新计算以前的词元。", 30)),
	"not UTF-8":           user("One \xff is. Two \xc3\x28 is. Three \xfe is. Four is."),
	"special tokens":      user("One <|im_end|> is. Two <|im_start|> is. Three <<|endoftext|>> is."),
	"format verbs":        user("One %s is. Two %d is. Three %!q is."),
	"only an answer":      {{Role: "assistant", Content: "So I said."}},
	"only a system":       {{Role: "system", Content: "Be brief."}},
	"an unknown role":     {{Role: "tool", Content: "One is. Two is. Three is."}},
	"blanks of all kinds": user("One\u00a0is.\u2028Two\u0085is.\v Three\x1fis. Four\u3000is."),
}

func TestStrangePromptsHaveValidAnswers(t *testing.T) {
	for name, messages := range strange {
		for _, limit := range []int{0, 1, 2, 3, 7, 30, 80, 830, 3000} {
			a := answer.Compose(messages, answer.Asked{Max: limit})
			assertValid(t, a, limit, name)
			if a.Reason == sim.FinishLength {
				assert.LessOrEqual(t, limit, 40, "%s: a sentence fits into higher limits", name)
			}
		}
		a := answer.Compose(messages, answer.Asked{Max: 830})
		assert.Greater(t, len(a.Tokens), 800, "%s: a requested length is filled", name)
		assert.Equal(t, a, answer.Compose(messages, answer.Asked{Max: 830}), name)
	}
	short := answer.Compose(user("hello world"), answer.Asked{Max: 0})
	assert.Less(t, len(short.Tokens), 400, "no sentence is repeated where no length is requested")
	assert.Contains(t, short.Text, `"hello world"`)
}

// assertValid checks the properties of every answer.
func assertValid(t *testing.T, a answer.Answer, limit int, about string) {
	t.Helper()
	if limit > 0 {
		assert.LessOrEqual(t, len(a.Tokens), limit, about)
	}
	assert.NotEmpty(t, a.Tokens, about)
	assert.Equal(t, a.Text, text(a.Tokens), about)
	assert.NotContains(t, a.Text, "<|im_end|>", about)
	switch a.Reason {
	case sim.FinishStop:
		assert.Equal(t, sim.Encode(a.Text), a.Tokens, about)
		assert.True(t, utf8.ValidString(a.Text), about)
	case sim.FinishLength:
		assert.Greater(t, len(a.Tokens), limit-utf8.UTFMax, "%s: cut at the limit", about)
	default:
		t.Errorf("%s: reason %q", about, a.Reason)
	}
}

func text(ids []uint32) string {
	var b []byte
	for _, id := range ids {
		b = sim.AppendToken(b, id)
	}
	return string(b)
}

func TestSmallLimitsAreFilled(t *testing.T) {
	one := user(starters(t)[3].Text + "\n\nExplain it.")
	for limit := 1; limit <= 120; limit++ {
		a := answer.Compose(one, answer.Asked{Max: limit})
		assertValid(t, a, limit, fmt.Sprint(limit))
		assert.Greater(t, len(a.Tokens), limit*2/3-4, "limit %d", limit)
	}
}

// TestRequestForQuestionIsAnsweredWithQuestion uses prompts of load generators whose second model plays the user.
func TestRequestForQuestionIsAnsweredWithQuestion(t *testing.T) {
	article := starters(t)[9].Text
	request := "Ask one short follow-up question about the explanation above. Reply with the question only."
	for name, messages := range map[string][]sim.Message{
		"request by the system": {
			{Role: "system", Content: "You are a curious reader. " + request}, {Role: "user", Content: article},
		},
		"request at the end": user(article + "\n\n" + request),
		"after an answer": {
			{Role: "user", Content: "Explain caches."}, {Role: "assistant", Content: article}, {Role: "user", Content: request},
		},
		"without a text": user(request),
	} {
		for _, limit := range []int{5, 60, 80, 0} {
			a := answer.Compose(messages, answer.Asked{Max: limit})
			assert.Equal(t, sim.FinishStop, a.Reason, name)
			assert.Regexp(t, `^[^.?]+\?$`, a.Text, name)
			assert.Less(t, len(a.Tokens), 60)
			if limit != 5 && name != "without a text" {
				subject := quotation.FindStringSubmatch(a.Text)
				require.NotNil(t, subject, a.Text)
				assert.Contains(t, article, subject[1])
			}
		}
	}
}

func TestListedQuestionIsNotAskedAgain(t *testing.T) {
	const about = "A cache is close to the memory pages."
	asked := ""
	for range 5 { // number of questions about the one subject of the text
		messages := []sim.Message{
			{Role: "system", Content: "You have asked this already:" + asked},
			{Role: "user", Content: about + "\n\nAsk one follow-up question."},
		}
		for seed := range uint64(30) {
			question := answer.Compose(messages, answer.Asked{Seed: seed}).Text
			require.NotContains(t, asked, question)
			if seed == 29 {
				asked += "\n- " + question
			}
		}
	}
}

// TestNoSentenceFits uses a text whose sentences are longer than the limit, or whose only short one is used already.
func TestNoSentenceFits(t *testing.T) {
	long := "It goes on" + strings.Repeat(" and on", 60)
	content := fmt.Sprintf("%s. %s for ever. %s for good.", long, long, long)
	for _, limit := range []int{10, 41, 50} {
		a := answer.Compose([]sim.Message{{Role: "user", Content: content}}, answer.Asked{Max: limit})
		assertValid(t, a, limit, content)
		assert.Equal(t, sim.FinishLength, a.Reason, limit)
	}
	short := "It ends here."
	messages := []sim.Message{
		{Role: "user", Content: content + " " + short},
		{Role: "assistant", Content: short},
		{Role: "user", Content: "Go on."},
	}
	assertValid(t, answer.Compose(messages, answer.Asked{Max: 50}), 50, short)
}

// TestOwnSentencesHaveNoQuotablePhrase checks that the built-in questioner, which quotes answers, can only quote
// passages.
func TestOwnSentencesHaveNoQuotablePhrase(t *testing.T) {
	for _, sentence := range answer.OwnSentences() {
		question := corpus.BuiltinQuestioner{}.Follow(t.Context(), rand.New(rand.NewPCG(1, 1)), "", nil, sentence)
		assert.NotContains(t, question, `"`, sentence)
	}
}

func FuzzCompose(f *testing.F) {
	for _, messages := range strange {
		if len(messages) > 0 {
			f.Add(messages[0].Content, "What about \"that\"?", "user", 50)
		}
	}
	f.Add("# Caches\n\nOne is. Two is.\n\n## More\n\nThree is. Four is.", "Ask one question.", "system", 830)
	f.Fuzz(func(t *testing.T, content, question, role string, limit int) {
		limit = min(limit, 2000)
		first := answer.Compose([]sim.Message{{Role: role, Content: content}}, answer.Asked{Max: limit})
		assertValid(t, first, max(limit, 0), "first")
		messages := []sim.Message{
			{Role: role, Content: content}, {Role: "assistant", Content: first.Text}, {Role: "user", Content: question},
		}
		second := answer.Compose(messages, answer.Asked{Max: limit})
		assertValid(t, second, max(limit, 0), "second")
	})
}
