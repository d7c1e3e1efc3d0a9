package source

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
)

// The rows are valid and invalid documents of each kind.
func TestDecode(t *testing.T) {
	const good, noName = `{"id":"one","topic":"T","text":"A."}`, `{"topic":"T","text":"A."}`
	of := func(name, id, topic, text string) []item {
		return []item{{ID: id, Topic: topic, Text: text, name: name}}
	}
	one := func(name string) []item { return of(name, "one", "T", "A.") }
	long, word := strings.Repeat("x", 201), strings.Repeat("é", 1001)
	lines := func(all ...string) string { return strings.Join(all, "\n") }
	for _, tt := range []struct {
		name, document, data string
		want                 []item
		skipped              []string // name: beginning of the reason
	}{
		{
			"lines", "a.jsonl",
			lines(`{"id":"one","topic":"T","text":" A. \n","more":1}`, "", `{"id":"two","topic":"T","text":"B."}`),
			append(one("a.jsonl, line 1"), of("a.jsonl, line 3", "two", "T", "B.")...), nil,
		},
		{
			"bad lines beside good ones", "a.jsonl", lines("{", good, "[]", `{"id":2}`), one("a.jsonl, line 2"),
			[]string{
				"a.jsonl, line 1: not a JSON object with id, topic and text", "a.jsonl, line 3: not a JSON object",
				"a.jsonl, line 4: not a JSON object",
			},
		},
		{
			"members that are missing", "a.jsonl", lines(noName, `{"id":"a","text":"A."}`, `{"id":"a","topic":"T"}`), nil,
			[]string{`a.jsonl, line 1: its id is ""`, "a.jsonl, line 2: it has no topic", "a.jsonl, line 3: it has no text"},
		},
		{
			"members out of form", "a.jsonl", lines(
				`{"id":"a/b","topic":"T","text":"A."}`, `{"id":"a","topic":"`+long+`","text":"A."}`,
				`{"id":"a","topic":"T","text":"A\u0000."}`, `{"id":"a","topic":"T","text":"`+word+`"}`,
			), nil,
			[]string{
				`a.jsonl, line 1: its id is "a/b"`, "a.jsonl, line 2: its topic is not one line",
				"a.jsonl, line 3: its text has control characters", "a.jsonl, line 4: it has a word of more than 2000 bytes",
			},
		},
		{"an object", "a.json", good, one("a.json, item 1"), nil},
		{"a list", "a.JSON", "[" + good + ", 7]", one("a.JSON, item 1"), []string{"a.JSON, item 2: not a JSON object"}},
		{"a list without end", "a.json", `[{"id":"one"`, nil, []string{"a.json: not JSON"}},
		{
			"a heading is the topic", "b/gpu.md", "\n# GPUs\r\n\r\nText.",
			of("b/gpu.md", "b-gpu", "GPUs", "# GPUs\n\nText."), nil,
		},
		{
			"a folder is the topic", "cloud_news/ä 1.txt", "# Text.",
			of("cloud_news/ä 1.txt", "cloud_news-1", "Cloud news", "# Text."), nil,
		},
		{
			"or else the name", "object-storage.md", "Text.",
			of("object-storage.md", "object-storage", "Object storage", "Text."), nil,
		},
		{"not UTF-8", "a.txt", "a\xff", nil, []string{"a.txt: its text is not UTF-8"}},
		{"empty", "a.md", " \n", nil, []string{"a.md: it has no text"}},
		{"something else", "a.pdf", "%PDF", nil, []string{"a.pdf: not a .jsonl, .json, .md or .txt"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			items, skipped := decode(document{name: tt.document, data: []byte(tt.data)})
			assert.Equal(t, tt.want, items)
			require.Len(t, skipped, len(tt.skipped))
			for i, s := range skipped {
				assert.True(t, strings.HasPrefix(s.Name+": "+s.Reason, tt.skipped[i]), "%s: %s", s.Name, s.Reason)
			}
		})
	}
	_, skipped := decode(document{name: "a.md", problem: "permission denied"})
	assert.Equal(t, []api.SkippedItem{{Name: "a.md", Reason: "permission denied"}}, skipped)
}

// A question set's conversation is read as its user's turns, in order.
func TestQuestionSets(t *testing.T) {
	read := func(name string) string {
		data, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		return string(data)
	}
	asks := func(id, topic string, script ...string) corpus.Starter {
		return corpus.Starter{ID: id, Topic: topic, Script: script}
	}
	const parts = `{"messages": [{"role": "system", "content": "S"}, ` +
		`{"role": "user", "content": [{"type": "text", "text": "你好，"}, {"type": "text", "text": "?"}]}, ` +
		`{"role": "assistant", "content": null}, {"role": "User", "content": "B"}]}`
	most := strings.Repeat(`"A",`, 1000)
	for _, c := range []struct {
		name, data, skipped string
		want                []corpus.Starter
	}{
		{"mtbench.jsonl", read("mtbench.jsonl"), "", []corpus.Starter{
			asks("81", "writing", "Compose a travel post about an island.", "Rewrite it, each sentence with the letter A."),
			asks("82", "writing", "Draft a mail to a supervisor.", "Evaluate your own answer."),
		}},
		{"sharegpt.json", read("sharegpt.json"), "", []corpus.Starter{
			asks("a_0", "Sharegpt", "Question one, please answer at length.", "And then?"),
			asks("b_0", "Sharegpt", "Question two."),
		}},
		{"m.jsonl", parts, "", []corpus.Starter{asks("m-1", "M", "你好，?", "B")}},
		{
			"l.jsonl", `{"conversation_id": "x y", "conversation": [{"role": "user", "content": "A"}]}`, "",
			[]corpus.Starter{asks("x-y", "L", "A")},
		},
		{
			"a.jsonl", `{"session_id": "s", "turns": [{"text": "A", "delay": 5}, {"text": "B"}]}`, "",
			[]corpus.Starter{asks("s", "A", "A", "B")},
		},
		{
			"p.json", `[{"prompt": "A"}, {"question": ["B", "C"]}]`, "",
			[]corpus.Starter{asks("p-1", "P", "A"), asks("p-2", "P", "B", "C")},
		},
		{
			"b.jsonl", `{"custom_id": "r0", "method": "POST", "body": {"model": "m", "messages": [` +
				`{"role": "system", "content": "S"}, {"role": "user", "content": "A"}]}}`, "",
			[]corpus.Starter{asks("r0", "B", "A")},
		},
		{"w.jsonl", "\ufeff" + `{"prompt": "A"}` + "\r\n" + `{"text": "B"}`, "", []corpus.Starter{
			asks("w-1", "W", "A"), asks("w-2", "W", "B"),
		}},
		{"e.jsonl", `{"turns": ["A", " "]}`, "turn 2 of the user is empty", nil},
		{"n.jsonl", `{"conversations": [{"from": "gpt", "value": "A"}]}`, "it has no turn of a user", nil},
		{"t.jsonl", `{"turns": 7}`, "not a question set's conversation", nil},
		{"x.jsonl", `{"turns": [` + most + `"A"]}`, "it has 1001 turns of the user; the limit is 1000", nil},
	} {
		f := fitAll([]document{{name: c.name, data: []byte(c.data)}})
		assert.Equal(t, c.want, f.starters, c.name)
		if c.skipped != "" {
			require.Len(t, f.skipped, 1, c.name)
			assert.Contains(t, f.skipped[0].Reason, c.skipped)
		}
	}
}

// text returns a number of different sentences of about ten tokens each.
func text(name string, sentences int) string {
	var b strings.Builder
	for i := range sentences {
		fmt.Fprintf(&b, "Sentence %d of %s says what it says. ", i, name)
	}
	return strings.TrimSpace(b.String())
}

// assertSkipped checks which items are skipped, and a part of each reason.
func assertSkipped(t *testing.T, got []api.SkippedItem, reasons map[string]string) {
	t.Helper()
	assert.Len(t, got, len(reasons))
	for _, it := range got {
		want, known := reasons[it.Name]
		assert.True(t, known && strings.Contains(it.Reason, want), "%s: %s", it.Name, it.Reason)
	}
}

func made(id, topic string, sentences int) item {
	return item{ID: id, Topic: topic, Text: text(id, sentences), name: id}
}

// Texts of the right length stay unchanged, long ones are cut after a sentence, short ones are
// joined with the next of their topic, and the others are reported.
func TestFit(t *testing.T) {
	per := corpus.Tokens(text("s1", 101)) - corpus.Tokens(text("s1", 100)) // tokens of a sentence
	whole := 3750 / per
	parts := func(whole ...string) string { return strings.Join(whole, "\n\n") }
	f := fit([]item{
		made("r1", "A", whole),
		made("long", "B", 2*whole),
		made("s1", "C", whole/2), made("s2", "C", whole/2+1), // joined they have the right length
		// three joined are too long, one is left over
		made("t1", "D", whole/2), made("t2", "D", whole/4), made("t3", "D", whole), made("t4", "D", whole/4),
		made("short", "E", whole/2),
		{ID: "endless", Topic: "F", Text: strings.Repeat("no end in sight ", 3000), name: "endless"},
		{ID: "huge", Topic: "G", Text: text("huge", 10*whole), name: "huge"},
		made("r1", "H", whole),
	})
	var ids []string
	for _, s := range f.starters {
		ids = append(ids, s.ID)
		n := corpus.Tokens(s.Text)
		assert.True(t, n >= leastTokens && n <= mostTokens, "%s has %d tokens", s.ID, n)
		assert.True(t, strings.HasSuffix(s.Text, "it says."), "%s ends with %q", s.ID, s.Text[len(s.Text)-20:])
	}
	assert.Equal(t, []string{"huge", "long", "r1", "s1", "t1"}, ids)
	require.Len(t, f.starters, 5)
	assert.True(t, f.starters[2].Text == text("r1", whole), "a text of the right length is unchanged")
	assert.True(t, f.starters[3].Text == parts(text("s1", whole/2), text("s2", whole/2+1)), "both parts are complete")
	joined := parts(text("t1", whole/2), text("t2", whole/4), "Sentence 0 of t3")
	assert.True(t, strings.HasPrefix(f.starters[4].Text, joined))
	assert.Equal(t, 3, f.cut, "long, huge and t1 are cut")
	assert.Equal(t, 2, f.joined)
	assertSkipped(t, f.skipped, map[string]string{
		"r1": `its id "r1" is that of r1`, "short": "it is too short: about", "t4": "it is too short: about",
		"endless": "none of its sentences ends at 3500 to 4000 tokens",
	})
}

// The result does not depend on the order of the texts.
func TestFitDoesNotDependOnOrder(t *testing.T) {
	var items []item
	for i := range 6 {
		items = append(items, made(fmt.Sprintf("text-%02d", i), fmt.Sprint("T", i%2), 200))
	}
	want := fit(slices.Clone(items)).starters
	require.NotEmpty(t, want)
	slices.Reverse(items)
	assert.Equal(t, want, fit(items).starters)
	assert.NotEqual(t, version(want), version(want[1:]))
}

// The built-in articles are unchanged.
func TestFitKeepsStarters(t *testing.T) {
	articles, err := corpus.Builtin()
	require.NoError(t, err)
	var items []item
	for _, s := range articles.Starters {
		items = append(items, item{ID: s.ID, Topic: s.Topic, Text: s.Text, name: s.ID})
	}
	f := fit(items)
	assert.Equal(t, articles.Starters, f.starters)
	assert.Zero(t, f.cut+f.joined+len(f.skipped))
}

func FuzzCut(f *testing.F) {
	f.Add("One. Two! 三。 \n\nFour", 9)
	few := span{20, 40}
	f.Fuzz(func(t *testing.T, sentence string, n int) {
		if sentence = strings.ToValidUTF8(sentence, ""); len(sentence) == 0 || len(sentence) > 500 {
			return
		}
		text := strings.Repeat(sentence, min(max(n, 1), 2000/len(sentence)+1))
		if got, ok := few.cut(text); ok {
			assert.True(t, strings.HasPrefix(strings.TrimSpace(text), got))
			assert.True(t, corpus.Tokens(got) >= few.least && corpus.Tokens(got) <= few.most, "%d tokens: %q",
				corpus.Tokens(got), got)
		}
	})
}
