package answer

import (
	"cmp"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
)

// passage is a run of sentences [from, to) of one paragraph.
type passage struct{ from, to int }

// stage is a part of an answer: passages, best first. A stage begins when those
// before it are used up.
type stage struct {
	lead   string   // opens it, where no turn does
	turns  []string // say which section comes now; none: nothing does
	place  string   // says it of the section that has what was asked about
	ahead  []int    // sections that come before the others
	ranked []passage
}

const (
	passageLength = 6   // sentences, in later answers: most paragraphs come whole
	focusShare    = .7  // of the best score, from which a passage's section comes first
	nearby        = 10. // what a sentence scores that stands in the paragraph of what the question quotes
)

// stages are the parts of the answer, for a length in tokens. Repetitions follow
// in endless number where the answer must be filled.
func (p *prompt) stages(rng *rand.Rand, tokens int) []*stage {
	a := p.article
	switch {
	case a.general:
		return []*stage{{ranked: a.passages(p.said, false, len(a.sentences))}, p.reminder(rng, nil)}
	case p.first:
		return []*stage{{turns: shuffled(rng, firstTurns), ranked: p.survey(rng, a.surveyLength(tokens))}}
	}
	scores := p.scores()
	fresh := p.survey(rng, passageLength)
	slices.SortStableFunc(fresh, func(x, y passage) int { return cmp.Compare(a.score(scores, y), a.score(scores, x)) })
	s := &stage{turns: shuffled(rng, laterTurns), place: pick(rng, placeTurns, "%s"), ranked: fresh}
	for _, x := range fresh {
		if best := a.score(scores, fresh[0]); best > 0 && a.score(scores, x) >= best*focusShare {
			s.ahead = append(s.ahead, a.sentences[x.from].section)
		}
	}
	return []*stage{s, p.reminder(rng, scores)}
}

// surveyLength is how many sentences of each section make an answer of so many
// tokens.
func (a *article) surveyLength(tokens int) int {
	all := 0
	for _, s := range a.sentences {
		all += s.tokens
	}
	const around, turn = 40, 10 // tokens of our own sentences
	perSentence := float64(all) / float64(len(a.sentences))
	perSection := (float64(tokens)-around)/float64(len(a.headings)) - turn
	return int(min(max(perSection/perSentence, 1), 6))
}

// reminder is the stage of what was said before, the best first.
func (p *prompt) reminder(rng *rand.Rand, scores []float64) *stage {
	marks := slices.Clone(p.said)
	for i := p.reminded().from; i < p.reminded().to; i++ {
		marks[i] = false
	}
	s := &stage{lead: pick(rng, reminders, ""), ranked: p.article.passages(marks, true, passageLength)}
	if scores != nil {
		slices.SortStableFunc(s.ranked, func(x, y passage) int {
			return cmp.Compare(p.article.score(scores, y), p.article.score(scores, x))
		})
	}
	return s
}

// reminded is the passage that the question quotes, if it has been said; with the
// sentence before it where it leans on that.
func (p *prompt) reminded() passage {
	i := p.anchor
	if i < 0 || !p.said[i] {
		return passage{}
	}
	a := p.article
	if i > 0 && a.sentences[i].leans && p.said[i-1] && a.sentences[i-1].paragraph == a.sentences[i].paragraph {
		return passage{i - 1, i + 1}
	}
	return passage{i, i + 1}
}

// repetition is the stage of everything once more.
func (p *prompt) repetition(rng *rand.Rand) *stage {
	all := make([]bool, len(p.said))
	return &stage{lead: pick(rng, repetitions, ""), ranked: p.article.passages(all, false, len(all))}
}

// passages cuts the sentences whose mark is this one into runs of about n that do
// not cross paragraphs. A sentence that leans on another stays with it if it can.
func (a *article) passages(marks []bool, mark bool, n int) []passage {
	var all []passage
	for from := 0; from < len(marks); {
		if marks[from] != mark {
			from++
			continue
		}
		to := from + 1
		joins := func() bool {
			return to < len(marks) && marks[to] == mark && a.sentences[to].paragraph == a.sentences[from].paragraph
		}
		for joins() && (to-from < n || a.sentences[to].leans && to-from <= n) {
			to++
		}
		all = append(all, passage{from, to})
		from = to
	}
	return all
}

// survey ranks what is new so that all sections come in turn. Within a section,
// passages that can stand alone and those near its beginning come first.
func (p *prompt) survey(rng *rand.Rand, n int) []passage {
	a := p.article
	sections := make([][]passage, len(a.headings))
	for _, x := range a.passages(p.said, false, n) {
		s := a.sentences[x.from].section
		sections[s] = append(sections[s], x)
	}
	order := rng.Perm(len(sections))
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(min(x, 1), min(y, 1)) })
	for _, section := range sections {
		a.sortByOpening(rng, section)
	}
	var ranked []passage
	for round, left := 0, true; left; round++ {
		left = false
		for _, s := range order {
			if round < len(sections[s]) {
				ranked, left = append(ranked, sections[s][round]), true
			}
		}
	}
	return ranked
}

// sortByOpening sorts a section's passages by how well an account may open with them.
func (a *article) sortByOpening(rng *rand.Rand, section []passage) {
	order := map[passage]float64{}
	for i, x := range section {
		order[x] = rng.Float64() + .3*float64(i)
		if s := a.sentences[x.from]; s.leans {
			order[x] += 2
		} else if x.from > 0 && a.sentences[x.from-1].paragraph == s.paragraph {
			order[x]++
		}
		order[x] += .5 * float64(a.upTo(x, nil)-x.to)
	}
	slices.SortFunc(section, func(x, y passage) int { return cmp.Compare(order[x], order[y]) })
}

var figures = regexp.MustCompile(`[0-9]`)

// scores say how much each sentence has to do with the question: the words that it
// shares with the subject, rare ones more, and little if others are missing; one for each word that the kind of
// question makes fitting; how near it stands to what the question quotes; and a
// share of the best in the same paragraph, which explains what stands beside it.
func (p *prompt) scores() []float64 {
	a, kind := p.article, kindOf(p.question)
	subject := p.subject
	if subject == "" {
		subject = p.question
	}
	wanted := stemsOf(subject)
	scores := make([]float64, len(a.sentences))
	best := map[int]float64{}
	for i, s := range a.sentences {
		found := 0.
		for _, stem := range s.stems {
			if wanted[stem] {
				found++
				scores[i] += 1 + math.Log(float64(len(a.sentences))/float64(a.frequency[stem]))
			}
		}
		scores[i] *= found / max(float64(len(wanted)), 1)
		for _, stem := range s.stems {
			if kind.hints[stem] {
				scores[i]++
			}
		}
		if kind.figures && figures.MatchString(s.text) {
			scores[i]++
		}
		if p.anchor >= 0 {
			scores[i] += nearby / (1 + math.Abs(float64(s.paragraph-a.sentences[p.anchor].paragraph)))
		}
		best[s.paragraph] = max(best[s.paragraph], scores[i])
	}
	for i, s := range a.sentences {
		scores[i] += best[s.paragraph] / 2
	}
	return scores
}

// score is a passage's: the mean of its sentences, half where it opens with one
// that leans on another, and half where it is a single one.
func (a *article) score(scores []float64, x passage) float64 {
	sum := 0.
	for _, s := range scores[x.from:x.to] {
		sum += s
	}
	if a.sentences[x.from].leans {
		sum /= 2
	}
	if x.to-x.from == 1 {
		sum /= 2
	}
	return sum / float64(x.to-x.from)
}

func shuffled(rng *rand.Rand, s []string) []string {
	s = slices.Clone(s)
	rng.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
	return s
}
