package corpus

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/draw"
)

// Opening gives the text that opens a conversation, by its number from 0 on: the
// corpus's own texts first, and beyond them as many as are asked for, each made of
// one of them in turn. A made text depends on seed and number alone. It has its
// number in front, so that no two share their first tokens; then come heading,
// sections and paragraphs of its article in an order of its own. It is as long as
// its article to the token (see [Tokenizer]), where sentences of a fitting length can
// be left out for the number; of a text of few sentences it may be longer by up to that.
// In a corpus that is [Corpus.Sized], each is exactly as long as that says. A scripted text is used
// again as it is.
//
// Texts are made when they are asked for, in some 100 µs, and not kept.
func (c *Corpus) Opening(seed uint64, number int64) Starter {
	if number < int64(len(c.Starters)) {
		return c.Starters[number]
	}
	of := int(number % int64(len(c.Starters)))
	s := c.Starters[of]
	if len(s.Script) > 0 { // there is no other way to ask it
		return s
	}
	r := c.recipe(of)
	mixed := r.mix(seed, number)
	made := Starter{ID: madeID(s.ID, number), Topic: s.Topic}
	if c.Length > 0 {
		made.Text = mixed.exactly(c.Length, mixed.title(number))
	} else {
		made.Text = mixed.write(number)
	}
	return made
}

// Find gives an opening by its id; false says that no opening has it.
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
	if of := c.Starters[number%int64(len(c.Starters))]; madeID(of.ID, number) != id {
		return Starter{}, false
	}
	return c.Opening(seed, number), true
}

var madeForm = regexp.MustCompile(`^(.+)-(\d{3,}-\d{3}-\d{3})$`)

func madeID(article string, number int64) string { return article + "-" + grouped(number) }

// grouped writes a number in groups of three digits, each of which is one token.
// Below 10⁹ there are three groups.
func grouped(n int64) string {
	return fmt.Sprintf("%03d-%03d-%03d", n/1_000_000, n/1000%1000, n%1000)
}

// ordering tells the generators of made texts from others of the same seed.
const ordering = 2

// recipe is a text taken apart. Whatever make puts together of it has the same length:
// each part begins where the tokenizer begins a token wherever the part stands, since
// what is in front of it is a line's end, or since it begins with the blank itself.
type recipe struct {
	front     string // of the number
	sections  []section
	sentences bool           // there are few paragraphs: the sentences within them change places, too
	tokens    map[string]int // of a sized recipe's parts, by how they begin
}

// section is a heading, or none, with its paragraphs.
type section struct {
	heading    string
	paragraphs []paragraph
}

// paragraph is a list of sentences; each but the first begins with a blank. Its first
// and its last sentence keep their places.
type paragraph []string

// fewParagraphs is up to where a text has too few for an order of its own.
const fewParagraphs = 7

var (
	betweenParagraphs = regexp.MustCompile(`\n[ \t]*\n\s*`)
	betweenSentences  = regexp.MustCompile(`[.!?…]["'”’)\]]* `)
)

// recipe gives that of a starter, which it keeps: it refers to the starter's own text.
func (c *Corpus) recipe(of int) *recipe {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recipes == nil {
		c.recipes = map[int]*recipe{}
	}
	if c.recipes[of] == nil && c.Length > 0 {
		c.recipes[of] = newSizedRecipe(c.whole.from(of, c.Length))
	}
	if c.recipes[of] == nil {
		c.recipes[of] = newRecipe(c.Starters[of].Text)
	}
	return c.recipes[of]
}

// fronts are words before the number, of one to five tokens. There is more than one for
// the articles that have no sentences to leave out for the shortest.
var fronts = []string{"Document", "Document number", "This is document", "This is document number", "Here is document number"}

// newRecipe takes a text apart with the first of the fronts that makes texts of its
// very length, else with that which comes closest.
func newRecipe(text string) (best *recipe) {
	tokens, least := Tokens(text), math.MaxInt
	for _, front := range fronts {
		r := takeApart(text)
		r.front = front
		if more := r.leaveOut(Tokens(r.write(0)) - tokens); more < least {
			best, least = r, more
		}
		if least == 0 {
			break
		}
	}
	return best
}

func takeApart(text string) *recipe {
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
	r.sentences = count <= fewParagraphs
	return r
}

// sentencesOf takes a paragraph apart, unless its sentences are not a blank apart.
func sentencesOf(text string) paragraph {
	var p paragraph
	begin := 0
	for _, at := range betweenSentences.FindAllStringIndex(text, -1) {
		p, begin = append(p, text[begin:at[1]-1]), at[1]-1
	}
	p = append(p, text[begin:])
	if strings.ContainsAny(text, "\n\t") || strings.Contains(text, "  ") {
		return paragraph{text}
	}
	return p
}

// leaveOut takes sentences out that have so many tokens together, as few as can be,
// or else as many tokens as can be up to that, and gives how many are still too many.
// First and last ones of paragraphs stay.
func (r *recipe) leaveOut(tokens int) (over int) {
	type place struct{ section, paragraph, sentence int }
	chosen := make([][]place, max(tokens, 0)+1) // by the tokens that they have together
	chosen[0] = []place{}
	for s, section := range r.sections {
		for p, paragraph := range section.paragraphs {
			for i := 1; i < len(paragraph)-1; i++ {
				n := Tokens(paragraph[i])
				for sum := tokens; sum >= n && n > 0; sum-- {
					if before := chosen[sum-n]; before != nil && (chosen[sum] == nil || len(before)+1 < len(chosen[sum])) {
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
	for _, at := range slices.Backward(chosen[len(chosen)-1]) { // from the end on, so that places stay true
		p := &r.sections[at.section].paragraphs[at.paragraph]
		*p = slices.Delete(*p, at.sentence, at.sentence+1)
	}
	return over
}

// mix puts the parts into an order that depends on seed and number. The first
// section stays first, since it has no heading but the title; the last paragraph stays
// last, since a text is shorter by the line that would follow it.
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
			if r.sentences && len(p) > 2 {
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

// title is the line in front of a made text.
func (r *recipe) title(number int64) string { return r.front + " " + grouped(number) }

// write is the whole text, with its number in front.
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
