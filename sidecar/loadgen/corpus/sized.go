package corpus

import (
	"slices"
	"strings"
	"unicode/utf8"

	"kvbooth/sidecar/sim/bpe"
)

// Sized returns the corpus with openings of exactly so many tokens (see [Tokenizer]). With 0, or
// for a corpus with scripts, it returns the corpus itself. A longer text is cut, possibly in the
// middle of a sentence. A shorter text continues with the next one of the corpus; the first one
// follows the last.
func (c *Corpus) Sized(tokens int) *Corpus {
	if tokens == 0 || c.Scripted() {
		return c
	}
	sized := &Corpus{Name: c.Name, Starters: slices.Clone(c.Starters), Length: tokens, whole: c}
	for i := range sized.Starters {
		sized.Starters[i].Text = c.sizedRecipe(i, tokens).exactly(tokens, "")
	}
	return sized
}

// Uncut returns the corpus that this one was sized from, or the corpus itself.
func (c *Corpus) Uncut() *Corpus {
	if c.whole != nil {
		return c.whole
	}
	return c
}

// from returns the text at an index, with as many of the following ones as make up so many tokens.
func (c *Corpus) from(place, tokens int) string {
	var all []string
	for n := 0; n < tokens && len(all) < tokens; place++ {
		text := c.Starters[place%len(c.Starters)].Text
		all = append(all, text)
		n += max(1, c.tokens(text))
	}
	return strings.Join(all, "\n\n")
}

// tokens returns the number of tokens of a text, which is counted once.
func (c *Corpus) tokens(text string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, known := c.counts[text]
	if !known {
		if c.counts == nil {
			c.counts = map[string]int{}
		}
		n = Tokens(text)
		c.counts[text] = n
	}
	return n
}

const paragraphEnd = "\n\n"

// sizedRecipe divides the text from an index on and counts the tokens of each part with the line's end that
// follows it, so that the counts add up in any order.
func (c *Corpus) sizedRecipe(place, tokens int) *recipe {
	r := divide(c.from(place, tokens))
	r.front = fronts[0]
	r.tokens = map[string]int{}
	count := func(begin, part string) {
		n := c.tokens(part + paragraphEnd)
		if known, twice := r.tokens[begin]; twice && known != n {
			n = ambiguous
		}
		r.tokens[begin] = n
	}
	for _, s := range r.sections {
		count(s.heading, s.heading)
		for _, p := range s.paragraphs {
			count(p[0], strings.Join(p, ""))
		}
	}
	return r
}

// ambiguous is the count of parts that have the same beginning.
const ambiguous = -1

// exactly joins the parts in order, after a title if there is one, and cuts the text to so many
// tokens. The recipe must have enough.
func (r *recipe) exactly(tokens int, title string) string {
	var parts, begins []string
	add := func(begin, part string) {
		parts = append(parts, part)
		begins = append(begins, begin)
	}
	if title != "" {
		add(title, title)
	}
	for _, s := range r.sections {
		if s.heading != "" {
			add(s.heading, s.heading)
		}
		for _, p := range s.paragraphs {
			add(p[0], strings.Join(p, ""))
		}
	}
	var b strings.Builder
	for i, part := range parts {
		n, known := r.tokens[begins[i]]
		if !known || n == ambiguous {
			n = Tokens(part + paragraphEnd)
		}
		if n < tokens && i < len(parts)-1 {
			b.WriteString(part + paragraphEnd)
			tokens -= n
			continue
		}
		if i < len(parts)-1 { // this part may be a token short, which the next part has
			part += " " + parts[i+1]
		}
		b.WriteString(cut(part, tokens))
		break
	}
	return b.String()
}

// cutReach is the distance in bytes from the end of the tokens within which a text may be cut.
const cutReach = 64

// cut ends a text after so many tokens. The beginning of a text need not have the same tokens as
// the whole: a text that is cut in the middle of a word may have one more or less. It is then cut
// at the nearest place with the right number. Where there is none, as between characters of
// several tokens each, words of one token fill the text up.
func cut(text string, tokens int) string {
	end := bpe.Leading(text, tokens)
	if end == len(text) {
		return text
	}
	for d := range cutReach {
		for _, at := range []int{end - d, end + d} {
			if at <= 0 || at > len(text) || at < len(text) && !utf8.RuneStart(text[at]) {
				continue
			}
			if short := text[:at]; strings.TrimSpace(short[at-1:]) != "" && Tokens(short) == tokens {
				return short
			}
		}
	}
	for end > 1 && (!utf8.RuneStart(text[end]) || Tokens(text[:end]) > tokens) {
		end--
	}
	return text[:end] + strings.Repeat(" and", tokens-Tokens(text[:end]))
}

// Tokenizer is the vocabulary for measuring texts, a common one of about the size of today's
// models'. The count of the target's own vocabulary differs by some per cent.
const Tokenizer = "cl100k_base"

// Tokens returns the number of tokens of a text.
func Tokens(text string) int { return bpe.Count(text) }
