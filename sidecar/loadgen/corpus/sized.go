package corpus

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Sized is the corpus with openings of exactly so many tokens (see [Tokenizer]), the own
// ones and those made of them; 0, or a corpus with scripts, is the corpus itself. A text that is longer is cut, in
// the middle of a sentence where that is the place; one that is shorter goes on with the
// next of the corpus, and from the last one on with the first.
func (c *Corpus) Sized(tokens int) *Corpus {
	if tokens == 0 || c.Scripted() {
		return c
	}
	sized := &Corpus{Name: c.Name, Starters: slices.Clone(c.Starters), Length: tokens, whole: c}
	for i := range sized.Starters {
		sized.Starters[i].Text = newSizedRecipe(c.from(i, tokens)).exactly(tokens, "")
	}
	return sized
}

// Uncut is the corpus that this one was sized from, itself where it was not.
func (c *Corpus) Uncut() *Corpus {
	if c.whole != nil {
		return c.whole
	}
	return c
}

// from is the text at a place, with as many of those behind it as make up so many tokens.
func (c *Corpus) from(place, tokens int) string {
	var all []string
	for n := 0; n < tokens && len(all) < tokens; place++ {
		text := c.Starters[place%len(c.Starters)].Text
		all, n = append(all, text), n+max(1, Tokens(text))
	}
	return strings.Join(all, "\n\n")
}

const paragraphEnd = "\n\n"

// newSizedRecipe takes a text apart and counts its parts: each with the line that follows
// it, so that they add up in any order.
func newSizedRecipe(text string) *recipe {
	r := takeApart(text)
	r.front, r.tokens = fronts[0], map[string]int{}
	count := func(begin, part string) {
		n := Tokens(part + paragraphEnd)
		if known, twice := r.tokens[begin]; twice && known != n {
			n = unclear
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

// unclear is the count of parts that begin alike.
const unclear = -1

// exactly is the parts in their order, behind a title where it has one, cut to so many
// tokens, of which the recipe must have enough.
func (r *recipe) exactly(tokens int, title string) string {
	var parts, begins []string
	add := func(begin, part string) { parts, begins = append(parts, part), append(begins, begin) }
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
		if !known || n == unclear {
			n = Tokens(part + paragraphEnd)
		}
		if n < tokens && i < len(parts)-1 {
			b.WriteString(part + paragraphEnd)
			tokens -= n
			continue
		}
		if i < len(parts)-1 { // it may be a token short, which the next part has
			part += " " + parts[i+1]
		}
		b.WriteString(cut(part, tokens))
		break
	}
	return b.String()
}

// cutReach is how many bytes from where tokens end a text may be cut instead.
const cutReach = 64

// cut ends a text behind so many tokens. The tokens of a whole text need not be those of
// its beginning: a text that is cut in the middle of a word may have one more or less,
// and is then cut at the nearest place where it has as many. Where no place has, as
// between characters of several tokens each, words of one token fill it up.
func cut(text string, tokens int) string {
	_, parts, err := Encoder().Encode(text)
	if err != nil || len(parts) <= tokens {
		return text
	}
	end := 0 // in bytes
	for _, part := range parts[:tokens] {
		end += len(part)
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
