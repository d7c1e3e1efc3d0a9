package corpus

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func generator(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

const prose = `The block manager keeps physical blocks in a free list. When memory pressure rises, the
scheduler evicts unreferenced blocks; prefix caching therefore degrades gracefully (under heavy load).
Routers compare overlapping prefixes against every worker's published events.`

// Possible answers of a model, well formed or not.
var answers = []struct{ name, answer string }{
	{"prose", prose},
	{"empty", ""},
	{"only space", " \n\t \n"},
	{"one word", "Certainly"},
	{"one phrase", "Continuous batching."},
	{"gibberish", "xq zzv !!! 0x1f ��� ))(( \x00\x01 qqqq\x7f ;;; --- ____"},
	{"not UTF-8", "block\xff manager \xc3\x28 physical\xfe blocks"},
	{"endless word", strings.Repeat("a", 100_000) + " " + strings.Repeat("b", 100_000)},
	{"Chinese, without spaces", strings.Repeat("键值缓存使模型不必重新计算以前的词元。", 50)},
	{"German", "Der Zwischenspeicher enthält Schlüssel und Werte früherer Wörter, weshalb größere Speicher günstiger " +
		"würden."},
	{"Arabic", "تخزن الذاكرة المؤقتة المفاتيح والقيم السابقة لتجنب إعادة الحساب"},
	{"code", "```go\nfor i := range n { fmt.Println(a[i]) }\n```"},
	{"format verbs", "%q %s %!d(MISSING) literal percent %d signs everywhere"},
	{"huge", strings.Repeat(prose+"\n\n", 300)},
}

// There are fewer templates than fifty turns: no question may be repeated, empty, or grow with the answer. The same
// draws give the same questions.
func TestFollowNeverRepeats(t *testing.T) {
	for _, tt := range answers {
		t.Run(tt.name, func(t *testing.T) {
			r, same, q := generator(1), generator(1), BuiltinQuestioner{}
			asked := []string{q.Open(r, "Observability")}
			q.Open(same, "Observability")
			for range 49 {
				next := q.Follow(t.Context(), r, "Observability", asked, tt.answer)
				assert.Equal(t, next, q.Follow(t.Context(), same, "Observability", asked, tt.answer),
					"the question depends only on the draws")
				assert.NotContains(t, asked, next)
				assert.Regexp(t, `^[A-Z].*[.?]$`, next)
				assert.Less(t, len(next), 300)
				assert.NotContains(t, next, "%!", "a template filled wrongly")
				asked = append(asked, next)
			}
		})
	}
}

var quoted = regexp.MustCompile(`"(.+)"`)

// While a template is left, a question quotes the answer, up to the spaces between two words.
func TestFollowQuotesTheAnswer(t *testing.T) {
	for seed := range uint64(50) {
		r, asked := generator(seed), []string{}
		for range followUps {
			question := BuiltinQuestioner{}.Follow(t.Context(), r, "", asked, prose)
			phrase := quoted.FindStringSubmatch(question)
			if assert.NotNil(t, phrase, question) {
				assert.Contains(t, strings.Join(strings.Fields(prose), " "), phrase[1])
			}
			asked = append(asked, question)
		}
	}
}

func TestPhrases(t *testing.T) {
	for _, tt := range []struct {
		name, answer string
		want         []string
	}{
		{
			"little words and punctuation divide", "Prefix caching is useful; paged attention, too.",
			[]string{"Prefix caching", "paged attention"},
		},
		{"a long run is no phrase", "tensor parallel decode worker pool sizes vary", nil},
		{"a participle ends no phrase", "requests are key-value pairs stored", []string{"key-value pairs"}},
		{"nor does an adverb", "block managers evidently", []string{"block managers"}},
		{"nor a verb with its object", "what the paying customer draws from this", []string{"paying customer"}},
		{
			"what comes twice is a subject",
			"Prefix caching is old. Queues grow slowly. Where prefix caching is on they shrink.",
			[]string{"Prefix caching", "prefix caching"},
		},
		{
			"a thing has an article", "Slow queues grow, the block manager waits, and the block table is full.",
			[]string{"block table"},
		},
		{"a plural does something", "In most places values happen, in the end with free blocks.", []string{"free blocks"}},
		{"an opening bracket divides", "shared memory (bank conflicts) hurt", []string{"shared memory", "bank conflicts"}},
		{
			"a line's end divides", "## Memory bandwidth\n\nModern accelerators differ",
			[]string{"Memory bandwidth", "Modern accelerators differ"},
		},
		{
			"emphasis is left out", "**Speculative decoding** drafts several tokens",
			[]string{"Speculative decoding", "drafts several tokens"},
		},
		{"a hyphen joins", "key-value caches", []string{"key-value caches"}},
		{"a dash is no word", "blocks ---- cached blocks", []string{"cached blocks"}},
		{"numbers and contractions are no words", "32 blocks don't move", nil},
		{"a single word is no phrase", "Throughput.", nil},
		{"letters of any alphabet", "größere Speicher", []string{"größere Speicher"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.ElementsMatch(t, tt.want, phrases(tt.answer))
		})
	}
}

// Phrases come from the end of an answer, which has the newest thoughts.
func TestPhrasesOfTheEnd(t *testing.T) {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "The early thought %d.\n", i)
	}
	b.WriteString("The final remark.")
	got := phrases(b.String())
	assert.Len(t, got, maxPhrases)
	assert.Equal(t, "final remark", got[len(got)-1])
}

func TestOpenNamesTheTopic(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(200) {
		q := BuiltinQuestioner{}.Open(generator(seed), "Cloud infrastructure")
		assert.NotContains(t, q, "%")
		assert.NotContains(t, q, "Cloud", "in the middle of a sentence")
		seen[q] = true
	}
	assert.Len(t, seen, len(openings), "every opening is used")
	assert.Equal(t, "GPU architecture", lowerFirst("GPU architecture"), "an abbreviation")
	assert.Equal(t, "über", lowerFirst("Über"))
	assert.Empty(t, lowerFirst(""))
}

func TestFixedQuestioner(t *testing.T) {
	q := FixedQuestioner{Text: "elaborate further"}
	assert.Equal(t, "the same short sentence", q.Name(), "as the recorded baselines name it")
	assert.Equal(t, "always: go on, please", FixedQuestioner{Text: " go on,\n please\x00"}.Name())
	long := strings.Repeat("why? ", 50)
	assert.NotEqual(t, FixedQuestioner{Text: long}.Name(), FixedQuestioner{Text: long + "How?"}.Name())
	assert.Less(t, len(FixedQuestioner{Text: long}.Name()), 200, "the name is one line")
	assert.Equal(t, BuiltinQuestioner{}.Open(generator(5), "Observability"), q.Open(generator(5), "Observability"))
	assert.Equal(t, q.Text, q.Follow(t.Context(), generator(1), "", []string{q.Text}, prose))
}

// The rest of a very long answer is not read: its words would take several times its memory.
func TestQuestionOnLongAnswer(t *testing.T) {
	text := strings.Repeat("The scheduler of the cluster distributes the cached blocks. ", maxRead/60+1)
	follow := func(answer string) string {
		return BuiltinQuestioner{}.Follow(t.Context(), rand.New(rand.NewPCG(1, 2)), "", nil, answer)
	}
	assert.Equal(t, follow(text[:maxRead]), follow(text[:maxRead]+strings.Repeat("The other subject. ", 1_000_000)))
}
