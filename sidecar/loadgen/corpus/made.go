package corpus

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/sim/draw"
)

// Opening returns the text that opens a conversation, by its number from 0: first the
// corpus's own texts, then any number of made ones, each from one of the texts in rotation.
// A made text depends only on seed and number. It begins with its number, so that no two
// share their first tokens; heading, sections and paragraphs of its article follow in its
// own order. It has the same number of tokens as its article (see [Tokenizer]), if
// sentences of suitable length can be left out for the number; from a text of few sentences
// it may be longer by up to that. In a sized corpus every text has the corpus's length. A
// scripted text is reused unchanged.
//
// Texts are made on request, in about 100 µs, and not kept.
func (c *Corpus) Opening(seed uint64, number int64) Starter {
	if number < int64(len(c.Starters)) {
		return c.Starters[number]
	}
	article := int(number % int64(len(c.Starters)))
	s := c.Starters[article]
	if len(s.Script) > 0 { // the questions of a script have one order
		return s
	}
	r := c.recipe(article)
	mixed := r.mix(seed, number)
	made := Starter{ID: madeID(s.ID, number), Topic: s.Topic}
	if c.Length > 0 {
		made.Text = mixed.exactly(c.Length, mixed.title(number))
	} else {
		made.Text = mixed.write(number)
	}
	return made
}

// Find returns an opening by its id; false means that no opening has it.
func (c *Corpus) Find(seed uint64, id string) (Starter, bool) {
	if i := slices.IndexFunc(c.Starters, func(s Starter) bool { return s.ID == id }); i >= 0 {
		return c.Starters[i], true
	}
	match := madeForm.FindStringSubmatch(id)
	if match == nil {
		return Starter{}, false
	}
	number, err := strconv.ParseInt(strings.ReplaceAll(match[2], "-", ""), 10, 64)
	if err != nil || number < int64(len(c.Starters)) {
		return Starter{}, false
	}
	if article := c.Starters[number%int64(len(c.Starters))]; madeID(article.ID, number) != id {
		return Starter{}, false
	}
	return c.Opening(seed, number), true
}

var madeForm = regexp.MustCompile(`^(.+)-(\d{3,}-\d{3}-\d{3})$`)

func madeID(article string, number int64) string { return article + "-" + grouped(number) }

// grouped writes a number in groups of three digits, each of which is one token. Numbers
// below 10⁹ have three groups.
func grouped(n int64) string {
	return fmt.Sprintf("%03d-%03d-%03d", n/1_000_000, n/1000%1000, n%1000)
}

// ordering separates the generators of made texts from others of the same seed.
const ordering = 2

// recipe is a text divided into parts. Every arrangement of the parts has the same length:
// each part starts with a new token at any position, since it follows a line's end or
// begins with a blank.
type recipe struct {
	front             string // precedes the number
	sections          []section
	shufflesSentences bool           // there are few paragraphs, so that sentences within them are shuffled as well
	tokens            map[string]int // of a sized recipe's parts, by their beginning
}

// section is a heading, or none, with its paragraphs.
type section struct {
	heading    string
	paragraphs []paragraph
}

// paragraph is a list of sentences; each but the first begins with a blank. The first and the
// last sentence keep their positions.
type paragraph []string

// fewParagraphs is the number of paragraphs up to which sentences are shuffled as well.
const fewParagraphs = 7

var (
	betweenParagraphs = regexp.MustCompile(`\n[ \t]*\n\s*`)
	betweenSentences  = regexp.MustCompile(`[.!?…]["'”’)\]]* `)
)

// recipe returns the recipe of a starter, which it keeps.
func (c *Corpus) recipe(article int) *recipe {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recipes == nil {
		c.recipes = map[int]*recipe{}
	}
	if c.recipes[article] == nil && c.Length > 0 {
		c.recipes[article] = c.whole.sizedRecipe(article, c.Length)
	}
	if c.recipes[article] == nil {
		c.recipes[article] = newRecipe(c.Starters[article].Text)
	}
	return c.recipes[article]
}

// fronts are words that precede the number, of one to five tokens. The longer ones serve
// articles without sentences that could be left out for the shortest.
var fronts = []string{
	"Document", "Document number", "This is document", "This is document number", "Here is document number",
}

// newRecipe divides a text, with the first of the fronts that gives texts of exactly its
// length, else with the one that comes closest.
func newRecipe(text string) (best *recipe) {
	tokens, least := Tokens(text), math.MaxInt
	for _, front := range fronts {
		r := divide(text)
		r.front = front
		if more := r.leaveOut(Tokens(r.write(0)) - tokens); more < least {
			best = r
			least = more
		}
		if least == 0 {
			break
		}
	}
	return best
}

// divide returns a recipe without a front. A paragraph that begins with "#" is a heading and begins a section. The
// first section has the title, or no heading.
func divide(text string) *recipe {
	r := &recipe{sections: []section{{}}}
	count := 0
	for i, p := range betweenParagraphs.Split(strings.TrimSpace(text), -1) {
		last := &r.sections[len(r.sections)-1]
		switch {
		case !strings.HasPrefix(p, "#"):
			last.paragraphs = append(last.paragraphs, sentencesOf(p))
			count++
		case i == 0:
			last.heading = p
		default:
			r.sections = append(r.sections, section{heading: p})
		}
	}
	r.shufflesSentences = count <= fewParagraphs
	return r
}

// sentencesOf divides a paragraph, unless its sentences are separated by more than one blank.
func sentencesOf(text string) paragraph {
	var p paragraph
	begin := 0
	for _, at := range betweenSentences.FindAllStringIndex(text, -1) {
		p = append(p, text[begin:at[1]-1])
		begin = at[1] - 1
	}
	p = append(p, text[begin:])
	if strings.ContainsAny(text, "\n\t") || strings.Contains(text, "  ") {
		return paragraph{text}
	}
	return p
}

// leaveOut removes the smallest number of sentences that have so many tokens together, or
// else as many tokens as possible up to that. It returns the tokens that remain in excess.
// The first and the last sentence of a paragraph stay.
func (r *recipe) leaveOut(tokens int) (over int) {
	type place struct{ section, paragraph, sentence int }
	chosen := make([][]place, max(tokens, 0)+1) // sentences by the sum of their tokens
	chosen[0] = []place{}
	for s, section := range r.sections {
		for p, paragraph := range section.paragraphs {
			for i := 1; i < len(paragraph)-1; i++ {
				n := Tokens(paragraph[i])
				for sum := tokens; sum >= n && n > 0; sum-- {
					before := chosen[sum-n]
					if before != nil && (chosen[sum] == nil || len(before)+1 < len(chosen[sum])) {
						chosen[sum] = append(slices.Clone(before), place{s, p, i})
					}
				}
			}
		}
	}
	for len(chosen) > 1 && chosen[len(chosen)-1] == nil {
		chosen = chosen[:len(chosen)-1]
		over++
	}
	for _, at := range slices.Backward(chosen[len(chosen)-1]) { // from the end, so that indices stay valid
		p := &r.sections[at.section].paragraphs[at.paragraph]
		*p = slices.Delete(*p, at.sentence, at.sentence+1)
	}
	return over
}

// mix shuffles the parts by seed and number. The first section stays first, since its only
// heading is the title. The last paragraph stays last, since no line follows it, which makes
// the text shorter.
func (r *recipe) mix(seed uint64, number int64) *recipe {
	random := draw.Random(seed, uint64(number), ordering)
	mixed := &recipe{front: r.front, sections: slices.Clone(r.sections), tokens: r.tokens}
	end := len(mixed.sections) - 1
	if end > 1 {
		shuffle(random, mixed.sections[1:end])
	}
	for i := range mixed.sections {
		s := &mixed.sections[i]
		s.paragraphs = slices.Clone(s.paragraphs)
		movable := s.paragraphs
		if i == end && len(movable) > 0 {
			movable = movable[:len(movable)-1]
		}
		shuffle(random, movable)
		for j, p := range s.paragraphs {
			if r.shufflesSentences && len(p) > 2 {
				s.paragraphs[j] = slices.Clone(p)
				shuffle(random, s.paragraphs[j][1:len(p)-1])
			}
		}
	}
	return mixed
}

func shuffle[T any](r *rand.Rand, all []T) {
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
}

// title returns the first line of a made text.
func (r *recipe) title(number int64) string { return r.front + " " + grouped(number) }

// write returns the whole text, which begins with its number.
func (r *recipe) write(number int64) string {
	var b strings.Builder
	b.WriteString(r.title(number))
	for _, s := range r.sections {
		if s.heading != "" {
			b.WriteString("\n\n" + s.heading)
		}
		for _, p := range s.paragraphs {
			b.WriteString("\n\n")
			for _, sentence := range p {
				b.WriteString(sentence)
			}
		}
	}
	return b.String()
}
