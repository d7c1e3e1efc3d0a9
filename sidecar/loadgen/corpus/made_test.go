package corpus

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// far is the number of an opening that no pool of texts reaches.
const far = 1_000_000

// The own texts come first, as they are; then they are taken in turn.
func TestOpenings(t *testing.T) {
	c := builtin(t)
	for i, s := range c.Starters {
		assert.Equal(t, s, c.Opening(1, int64(i)))
		made := c.Opening(1, int64(i)+990)
		assert.Equal(t, s.Topic, made.Topic)
		assert.Equal(t, fmt.Sprintf("%s-000-000-%d", s.ID, i+990), made.ID)
		assert.Regexp(t, fmt.Sprintf("^[A-Z][a-z ]+ 000-000-%d\n\n# %s\n\n", i+990, s.Topic), made.Text)
	}
}

// A made text is as long as its article to the token, wherever its parts come to stand.
func TestMadeLength(t *testing.T) {
	c := builtin(t)
	for i, s := range c.Starters {
		want := Tokens(s.Text)
		for n := int64(0); n < 12; n++ {
			for _, number := range []int64{10 + 10*n + int64(i), far + 10*n + int64(i), 999_999_900 + 10*(n%9) + int64(i)} {
				assert.Equal(t, want, Tokens(c.Opening(uint64(n), number).Text), "%s, number %d", s.ID, number)
			}
		}
	}
}

// All that is in a made text stands in its article, each sentence once, and less than
// one in twenty is missing.
func TestMadeOfTheArticle(t *testing.T) {
	c := builtin(t)
	for i, s := range c.Starters {
		made := c.Opening(7, far+int64(i))
		left := s.Text
		parts := betweenParagraphs.Split(made.Text, -1)
		assert.Regexp(t, fmt.Sprintf("^[A-Z][a-z ]+ 001-000-%03d$", i), parts[0])
		for _, p := range parts[1:] {
			for _, sentence := range sentencesOf(p) {
				before := left
				left = strings.Replace(left, strings.TrimPrefix(sentence, " "), "", 1)
				assert.NotEqual(t, before, left, "%s: %q stands in no article, or twice", made.ID, sentence)
			}
		}
		assert.Less(t, len(strings.TrimSpace(left)), len(s.Text)/20, "%s leaves out %q", made.ID, strings.TrimSpace(left))
		own := betweenParagraphs.Split(s.Text, -1)
		assert.Equal(t, own[0], parts[1], "its title is first")
		assert.Equal(t, own[len(own)-1], parts[len(parts)-1], "its end is last")
		same := 0
		for j := 1; j < min(len(own), len(parts)-1); j++ {
			if own[j] == parts[j+1] {
				same++
			}
		}
		assert.Less(t, same, len(own)/2, "%s: paragraphs that did not move", made.ID)
	}
}

// Thousands of texts differ from one another within their first twelve tokens.
func TestMadeDifferFromTheFirstTokensOn(t *testing.T) {
	c, seen := builtin(t), map[string]int64{}
	numbers := []int64{999, 1000, 1001, 999_999, 999_999_999}
	for n := range int64(1000) {
		numbers = append(numbers, n, far+n)
	}
	slices.Sort(numbers)
	for _, n := range slices.Compact(numbers) {
		text := c.Opening(1, n).Text
		_, tokens, err := Encoder().Encode(text[:min(len(text), 200)])
		require.NoError(t, err)
		begin := strings.Join(tokens[:12], "")
		other, taken := seen[begin]
		assert.False(t, taken, "%d and %d begin with %q", n, other, begin)
		seen[begin] = n
	}
}

// A text depends on its number and the seed, and on what was made before it in no way.
func TestMadeDependsOnSeedAndNumber(t *testing.T) {
	one, other := builtin(t), builtin(t)
	for n := int64(40); n > 0; n-- {
		other.Opening(3, n)
	}
	for n := int64(10); n < 40; n++ {
		assert.Equal(t, one.Opening(3, n), other.Opening(3, n))
		assert.NotEqual(t, one.Opening(3, n).Text, one.Opening(4, n).Text)
	}
}

// What was made is found again by its id; nothing is by any other.
func TestFind(t *testing.T) {
	c := builtin(t)
	for _, n := range []int64{0, 9, 10, 999, far, 12_345_678_901} {
		want := c.Opening(5, n)
		got, ok := c.Find(5, want.ID)
		assert.True(t, ok, want.ID)
		assert.Equal(t, want, got)
	}
	for _, id := range []string{
		"", "unheard-of", "000-000-010", c.Starters[0].ID + "-000-000-011", c.Starters[0].ID + "-000-000-000",
		c.Starters[0].ID + "-10", c.Starters[0].ID + "-0000-000-010", c.Starters[0].ID + "-99999999999999999999-000-010",
	} {
		_, ok := c.Find(5, id)
		assert.False(t, ok, id)
	}
}

// Texts from outside come in every form; what is made of them loses nothing but sentences.
func TestMadeOfOtherTexts(t *testing.T) {
	sentences := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "Sentence number %d says something about the river and its bridges. ", i)
		}
		return strings.TrimSpace(b.String())
	}
	for name, text := range map[string]string{
		"a single paragraph":   sentences(200) + " It is so. " + sentences(2),
		"few paragraphs":       sentences(60) + "\n\n" + sentences(60) + "\n \n\n" + sentences(60),
		"lines within":         "# Rivers\n\nOne line\nand another.\n\n- a list\n- of two\n\nThe end.",
		"no sentences":         strings.Repeat("河流和桥梁", 300),
		"one word":             "Bridges",
		"a heading at the end": "First.\n\nSecond.\n\n## Nothing below",
	} {
		t.Run(name, func(t *testing.T) {
			c := &Corpus{Starters: []Starter{{ID: "a", Topic: "Rivers", Text: text}}}
			one, two := c.Opening(1, 1), c.Opening(1, 2)
			assert.NotEqual(t, one.Text, two.Text)
			want := Tokens(text)
			for _, s := range []Starter{one, two} {
				n := Tokens(s.Text)
				assert.LessOrEqual(t, math.Abs(float64(n-want)), 20., "%d tokens for %d", n, want)
			}
		})
	}
}

func BenchmarkOpening(b *testing.B) {
	c := builtin(b)
	for i := range 10 {
		c.Opening(1, far+int64(i))
	}
	n := int64(far)
	for b.Loop() {
		n++
		c.Opening(1, n)
	}
}
