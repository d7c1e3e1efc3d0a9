package corpus

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every opening has the length that was asked for, to the token: shorter than an article,
// as long, or longer than two of them.
func TestSized(t *testing.T) {
	c := builtin(t)
	assert.Same(t, c, c.Sized(0))
	for _, tokens := range []int{200, 333, 3750, 8000} {
		sized := c.Sized(tokens)
		assert.Equal(t, c.Name, sized.Name)
		assert.Equal(t, tokens, sized.Length)
		texts := map[string]bool{}
		for i, s := range sized.Starters {
			require.Equal(t, tokens, Tokens(s.Text), s.ID)
			assert.True(t, strings.HasPrefix(s.Text, "# "+s.Topic+"\n\n"), "it begins as its article does")
			texts[s.Text] = true
			for _, number := range []int64{int64(i) + 10, 999_999_900 + int64(i)} {
				made := sized.Opening(5, number)
				require.Equal(t, tokens, Tokens(made.Text), made.ID)
				assert.Equal(t, made, sized.Opening(5, number), "the same whenever it is asked for")
				assert.Equal(t, s.Topic, made.Topic)
				assert.Contains(t, made.Text[:40], grouped(number), "no two share their first tokens")
				found, ok := sized.Find(5, made.ID)
				assert.True(t, ok)
				assert.Equal(t, made, found)
				texts[made.Text] = true
			}
		}
		assert.Len(t, texts, 3*len(c.Starters))
	}
}

// Short texts go on with the next ones, whatever is in them; there must be some text.
func TestSizedOfOtherTexts(t *testing.T) {
	for name, texts := range map[string][]string{
		"one sentence":  {"All there is to know about rivers."},
		"two texts":     {"# Rivers\n\nThey flow. They flood.", "# Bridges\n\nThey stand. They stand. They fall.\n\nThey stand again."},
		"no spaces":     {strings.Repeat("河川は流れる。", 40)},
		"emoji":         {strings.Repeat("🦀🌊 ", 30)},
		"lines":         {"one\ntwo\n\tthree  four\n\n\n\nfive   \n\nsix"},
		"begin alike":   {"It is so. A.\n\nIt is so. A longer one.\n\nIt is so."},
		"one long word": {strings.Repeat("x", 5000)},
	} {
		c := &Corpus{Name: name}
		for i, text := range texts {
			c.Starters = append(c.Starters, Starter{ID: string(rune('a' + i)), Topic: "a topic", Text: text})
		}
		for _, tokens := range []int{200, 257, 1000} {
			sized := c.Sized(tokens)
			for number := range int64(6) {
				assert.Equal(t, tokens, Tokens(sized.Opening(3, number).Text), "%s: %d tokens, number %d", name, tokens, number)
			}
		}
	}
}

func BenchmarkSizedOpening(b *testing.B) {
	c, err := Builtin()
	if err != nil {
		b.Fatal(err)
	}
	sized := c.Sized(8000)
	for i := range 10 {
		sized.Opening(1, int64(i)+10)
	}
	for i := int64(0); b.Loop(); i++ {
		sized.Opening(1, far+i)
	}
}
