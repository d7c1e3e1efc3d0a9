package corpus

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/sim/bpe"
)

// far is the number of an opening beyond the texts of any corpus.
const far = 1_000_000

// The own texts come first, unchanged. Further texts are made of each in rotation, with the same number of tokens, and
// no two begin with the same twelve tokens.
func TestMadeOpeningsFollowOwnTexts(t *testing.T) {
	c, begins := builtin(t), map[string]bool{}
	for i, s := range c.Starters {
		n := int64(i)
		assert.Equal(t, s, c.Opening(1, n))
		made := c.Opening(1, n+990)
		assert.Equal(t, s.Topic, made.Topic)
		assert.Equal(t, fmt.Sprintf("%s-000-000-%d", s.ID, n+990), made.ID)
		assert.Regexp(t, fmt.Sprintf("^[A-Z][a-z ]+ 000-000-%d\n\n# %s\n\n", n+990, s.Topic), made.Text)
		want := Tokens(s.Text)
		for seed, number := range []int64{n + 10, n + 120, far + n, far + n + 30, 999_999_900 + n, 999_999_980 + n} {
			text := c.Opening(uint64(seed), number).Text
			assert.Equal(t, want, Tokens(text), "%s, number %d", s.ID, number)
			begins[text[:bpe.Leading(text, 12)]] = true
		}
	}
	assert.Len(t, begins, 6*len(c.Starters))
}

// Every sentence of a made text is in its article, once, and less than one in twenty is missing.
func TestMadeTextHasSentencesOfArticle(t *testing.T) {
	c := builtin(t)
	for i, s := range c.Starters {
		made := c.Opening(7, far+int64(i))
		left := s.Text
		parts := betweenParagraphs.Split(made.Text, -1)
		for _, p := range parts[1:] {
			for _, sentence := range sentencesOf(p) {
				before := left
				left = strings.Replace(left, strings.TrimPrefix(sentence, " "), "", 1)
				assert.NotEqual(t, before, left, "%s: %q is in no article, or twice", made.ID, sentence)
			}
		}
		left = strings.TrimSpace(left)
		assert.Less(t, len(left), len(s.Text)/20, "%s leaves out %q", made.ID, left)
		own := betweenParagraphs.Split(s.Text, -1)
		assert.Equal(t, own[0], parts[1], "the title comes first")
		assert.Equal(t, own[len(own)-1], parts[len(parts)-1], "the last paragraph comes last")
		same := 0
		for j := 1; j < min(len(own), len(parts)-1); j++ {
			if own[j] == parts[j+1] {
				same++
			}
		}
		assert.Less(t, same, len(own)/2, "%s: paragraphs that did not move", made.ID)
	}
}

// A text depends only on its number and the seed. Find returns it by its id, and no text by an unknown id.
func TestFind(t *testing.T) {
	c, other := builtin(t), builtin(t)
	for n := range int64(30) {
		other.Opening(5, 40-n)
	}
	for _, n := range []int64{0, 9, 10, 999, far, 12_345_678_901} {
		want := c.Opening(5, n)
		got, ok := other.Find(5, want.ID)
		assert.True(t, ok, want.ID)
		assert.Equal(t, want, got)
		assert.Equal(t, n < 10, want.Text == c.Opening(6, n).Text, "another seed, number %d", n)
	}
	first := c.Starters[0].ID
	for _, id := range []string{
		"", "unknown", "000-000-010", first + "-000-000-011", first + "-000-000-000",
		first + "-10", first + "-0000-000-010", first + "-99999999999999999999-000-010",
	} {
		_, ok := c.Find(5, id)
		assert.False(t, ok, id)
	}
}

// External texts have any form. A made text loses only sentences, and a sized one has exactly the requested number of
// tokens.
func TestOpeningsOfOtherTexts(t *testing.T) {
	sentences := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "Sentence number %d says something about the river and its bridges. ", i)
		}
		return strings.TrimSpace(b.String())
	}
	for name, texts := range map[string][]string{
		"a single paragraph":   {sentences(200) + " It is so. " + sentences(2)},
		"few paragraphs":       {sentences(60) + "\n\n" + sentences(60) + "\n \n\n" + sentences(60)},
		"lines within":         {"# Rivers\n\nOne line\nand another.\n\n- a list\n- of two\n\nThe end."},
		"spaces of all kinds":  {"one\ntwo\n\tthree  four\n\n\n\nfive   \n\nsix"},
		"no sentences":         {strings.Repeat("河流和桥梁", 300)},
		"sentences, no spaces": {strings.Repeat("河川は流れる。", 40)},
		"emoji":                {strings.Repeat("🦀🌊 ", 30)},
		"one word":             {"Bridges"},
		"one sentence":         {"All there is to know about rivers."},
		"one long word":        {strings.Repeat("x", 5000)},
		"a heading at the end": {"First.\n\nSecond.\n\n## Nothing below"},
		"parts begin alike":    {"It is so. A.\n\nIt is so. A longer one.\n\nIt is so."},
		"two texts": {
			"# Rivers\n\nThey flow. They flood.",
			"# Bridges\n\nThey stand. They stand. They fall.\n\nThey stand again.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Corpus{Name: name}
			for i, text := range texts {
				c.Starters = append(c.Starters, Starter{ID: string(rune('a' + i)), Topic: "Rivers", Text: text})
			}
			for i := range int64(len(texts)) {
				one, two := c.Opening(1, 10+2*i), c.Opening(1, 20+2*i)
				assert.NotEqual(t, one.Text, two.Text)
				assert.InDelta(t, Tokens(c.Starters[(10+2*i)%int64(len(texts))].Text), Tokens(one.Text), 20)
			}
			for _, tokens := range []int{200, 257, 1000} {
				sized := c.Sized(tokens)
				for number := range int64(6) {
					assert.Equal(t, tokens, Tokens(sized.Opening(3, number).Text), "%d tokens, number %d", tokens, number)
				}
			}
		})
	}
}

// Every opening has exactly the requested number of tokens: fewer than an article, as many, or more than two articles.
func TestSizedOpeningsHaveExactLength(t *testing.T) {
	c := builtin(t)
	assert.Same(t, c, c.Sized(0))
	for _, tokens := range []int{200, 333, 3750, 8000, 50_000} {
		sized := c.Sized(tokens)
		assert.Equal(t, c.Name, sized.Name)
		assert.Equal(t, tokens, sized.Length)
		texts := map[string]bool{}
		for i := 0; i < len(sized.Starters); i += 3 {
			s := sized.Starters[i]
			require.Equal(t, tokens, Tokens(s.Text), s.ID)
			assert.True(t, strings.HasPrefix(s.Text, "# "+s.Topic+"\n\n"), "the opening begins like its article")
			texts[s.Text] = true
			for _, number := range []int64{int64(i) + 10, 999_999_900 + int64(i)} {
				made := sized.Opening(5, number)
				require.Equal(t, tokens, Tokens(made.Text), made.ID)
				assert.Equal(t, s.Topic, made.Topic)
				assert.Contains(t, made.Text[:40], grouped(number), "no two share their first tokens")
				found, ok := sized.Find(5, made.ID)
				assert.True(t, ok)
				assert.Equal(t, made, found, "the same opening on each request")
				texts[made.Text] = true
			}
		}
		assert.Len(t, texts, 12)
	}
}
