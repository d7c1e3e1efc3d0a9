package answer

import (
	"math/rand/v2"
	"slices"
	"strings"

	"kvbooth/sidecar/sim"
)

// draft is an answer in the making.
type draft struct {
	prompt   *prompt
	rng      *rand.Rand
	limit    int // tokens
	fill     bool
	opening  string
	closings []string
	stages   []*stage
	taken    [][]passage // by stage
	left     []option    // the passages that were not taken
	counted  map[string]int
}

// option is one way to end: a passage more, and a closing sentence.
type option struct {
	stage   int
	extra   passage // empty: none
	closing string
	tokens  int
	worse   int // than others, in tokens of room that it would be worth to have another
}

const (
	// reserve is left for the end, where sentences are chosen to fit: an average
	// closing, and as much again to choose from.
	reserve = 30
	// repeated bounds the stages of one answer that repeat what it has said.
	repeated = longest / reserve
	tries    = 4
)

func newDraft(p *prompt, rng *rand.Rand, limit int, fill bool) *draft {
	d := &draft{prompt: p, rng: rng, limit: limit, fill: fill, counted: map[string]int{}}
	d.speak()
	d.stages = p.stages(rng, limit)
	d.taken = make([][]passage, len(d.stages))
	return d
}

// speak chooses what the answer opens with, and what it may close with.
func (d *draft) speak() {
	p := d.prompt
	subject, closings := p.article.topic, laterClosings
	switch {
	case p.article.general:
		d.opening, closings = pick(d.rng, generalOpenings, subject), generalClosings
	case p.first:
		d.opening, closings = pick(d.rng, firstOpenings, subject), firstClosings
	case p.subject == "":
		d.opening = pick(d.rng, plainOpenings, subject)
	default:
		subject = quote(p.subject)
		d.opening = fill(kindOf(p.question).opening, subject)
	}
	for _, closing := range shuffled(d.rng, closings) {
		d.closings = append(d.closings, fill(closing, subject))
	}
}

// finish takes passages as long as there is room, and then the end that fits
// best. What a sentence takes depends a little on its neighbours, so an end that
// is too long after all is tried again with less room.
func (d *draft) finish() Answer {
	opening := d.opening
	rest := d.limit - d.count(opening)
	if rest < 0 {
		d.opening, rest = "", d.limit
	}
	rest = d.take(rest)
	ends := d.ends()
	for range tries {
		end, ok := fitting(ends, rest)
		if !ok {
			break
		}
		text := d.render(end)
		ids := sim.Encode(text)
		if text != "" && len(ids) <= d.limit {
			return Answer{Text: text, Tokens: ids, Reason: sim.FinishStop}
		}
		rest = min(rest, end.tokens) - (len(ids) - d.limit)
	}
	return finish([]string{opening}, d.limit)
}

// take takes passages in their order as long as they leave room for the end, and
// gives what is left of the room. What the question quotes comes in any case, at
// the end, unless it is too long for that.
func (d *draft) take(rest int) int {
	if x, last := d.prompt.reminded(), len(d.stages)-1; x.to > 0 && d.cost(last, x) < rest/4 {
		rest -= d.add(last, x)
	}
	for i := 0; i < len(d.stages); i++ {
		for j, x := range d.stages[i].ranked {
			if d.cost(i, x) <= rest-reserve {
				rest -= d.add(i, x)
				continue
			}
			if n := d.fits(i, x, rest-reserve); n > 1 {
				x.to = x.from + n
				rest -= d.add(i, x)
				j++
			}
			d.leave(i, j)
			return rest
		}
		if d.fill && i+1 == len(d.stages) && i < repeated && rest > reserve {
			d.stages = append(d.stages, d.prompt.repetition(d.rng))
			d.taken = append(d.taken, nil)
		}
	}
	return rest
}

// add takes a passage and gives its cost.
func (d *draft) add(stage int, x passage) int {
	cost := d.cost(stage, x)
	d.taken[stage] = append(d.taken[stage], x)
	return cost
}

// fits is how many sentences of a passage have room.
func (d *draft) fits(stage int, x passage, rest int) int {
	for n := x.to - x.from; n > 0; n-- {
		if d.cost(stage, passage{x.from, x.from + n}) <= rest {
			return n
		}
	}
	return 0
}

// leave lists what was not taken: how passages that were taken go on, and those
// from a stage's j-th on, in every length.
func (d *draft) leave(stage, j int) {
	a := d.prompt.article
	var used []passage
	for _, taken := range d.taken {
		used = append(used, taken...)
	}
	for i := range d.stages[:stage+1] {
		for _, x := range d.taken[i] {
			d.parts(i, passage{x.to, a.upTo(x, used)}, 0)
		}
	}
	for i := stage; i < len(d.stages); i++ {
		for _, x := range d.stages[i].ranked[min(j, len(d.stages[i].ranked)):] {
			worse := 3 * (1 + i - stage)
			if a.sentences[x.from].leans {
				worse += 6
			}
			if !d.knows(i, x) {
				worse += 3
			}
			d.parts(i, x, worse)
		}
		j = 0
	}
}

// upTo is where the sentences end with which a passage can be continued: where
// its paragraph does, or where another passage begins.
func (a *article) upTo(x passage, used []passage) int {
	to := len(a.sentences)
	for i := x.to; i < to; i++ {
		if a.sentences[i].paragraph != a.sentences[x.from].paragraph {
			return i
		}
		if slices.ContainsFunc(used, func(y passage) bool { return y.from == i }) {
			return i
		}
	}
	return to
}

// parts lists the beginnings of a passage, of every length.
func (d *draft) parts(stage int, x passage, worse int) {
	for to := x.from + 1; to <= x.to; to++ {
		part := passage{x.from, to}
		d.left = append(d.left, option{stage: stage, extra: part, tokens: d.cost(stage, part), worse: worse})
	}
}

// cost is what a passage adds to the answer, in tokens, with the sentences that
// lead to it.
func (d *draft) cost(stage int, x passage) int {
	a, cost := d.prompt.article, 0
	for _, s := range a.sentences[x.from:x.to] {
		cost += s.tokens
	}
	if !d.knows(stage, x) {
		cost += d.count(d.turn(stage, x, len(d.taken[stage]) == 0))
	}
	return cost
}

// count gives the tokens of a sentence of ours, which is asked for time and again.
func (d *draft) count(sentence string) int {
	n, ok := d.counted[sentence]
	if !ok {
		n = sim.Count(sentence)
		d.counted[sentence] = n
	}
	return n
}

// knows says whether a stage has something of a passage's section already.
func (d *draft) knows(stage int, x passage) bool {
	a := d.prompt.article
	return slices.ContainsFunc(d.taken[stage], func(y passage) bool {
		return a.sentences[y.from].section == a.sentences[x.from].section
	})
}

// turn is the sentence that leads to a passage of another section, and to the
// first of a stage, "" for none.
func (d *draft) turn(stage int, x passage, first bool) string {
	s, p := d.stages[stage], d.prompt
	section := p.article.sentences[x.from].section
	heading := p.article.headings[section]
	switch {
	case len(s.turns) > 0 && heading != "" && s.place != "" && p.anchor >= 0 && p.article.sentences[p.anchor].section == section:
		return fill(s.place, heading)
	case len(s.turns) > 0 && heading != "":
		return fill(s.turns[section%len(s.turns)], heading)
	case first:
		return s.lead
	}
	return ""
}

// ends are the ways to end: each closing sentence, or none, behind each passage
// that was left, or none.
func (d *draft) ends() []option {
	const unclosed = 3 // tokens of room that a closing sentence is worth
	lefts := append([]option{{}}, d.left...)
	var ends []option
	for _, closing := range append(slices.Clone(d.closings), "") {
		tokens, worse := d.count(closing), 0
		if closing == "" {
			worse = unclosed
		}
		for _, left := range lefts {
			left.closing = closing
			left.tokens += tokens
			left.worse += worse
			ends = append(ends, left)
		}
	}
	return ends
}

// fitting is the end that leaves the least room, of equally good ones the first.
func fitting(ends []option, rest int) (best option, ok bool) {
	const enough = 2 // tokens of room that are as good as none
	least := 0
	for _, end := range ends {
		room := rest - end.tokens
		if room < 0 {
			continue
		}
		if bad := max(room, enough) + end.worse; !ok || bad < least {
			best, least, ok = end, bad, true
		}
	}
	return best, ok
}

// render gives the text with an end.
func (d *draft) render(end option) string {
	var w writer
	w.say(d.opening)
	for i, taken := range d.taken {
		if end.extra.to > 0 && end.stage == i {
			taken = append(slices.Clone(taken), end.extra)
		}
		d.renderStage(&w, i, taken)
	}
	w.paragraph()
	w.say(end.closing)
	w.paragraph()
	return strings.Join(w.paragraphs, "\n\n")
}

const shortParagraph = 3 // sentences, at which a new source paragraph begins a new one

// renderStage writes a stage's passages in the article's order, but for the
// sections that come ahead.
func (d *draft) renderStage(w *writer, stage int, taken []passage) {
	if len(taken) == 0 {
		return
	}
	a := d.prompt.article
	place := func(x passage) int {
		if slices.Contains(d.stages[stage].ahead, a.sentences[x.from].section) {
			return x.from - len(a.sentences)
		}
		return x.from
	}
	taken = slices.SortedFunc(slices.Values(taken), func(x, y passage) int { return place(x) - place(y) })
	if stage > 0 {
		w.paragraph()
	}
	for i, x := range taken {
		s := a.sentences[x.from]
		if i == 0 {
			w.say(d.turn(stage, x, true))
		} else if a.sentences[taken[i-1].from].section != s.section {
			w.paragraph()
			w.say(d.turn(stage, x, false))
		} else if len(w.sentences) > shortParagraph && a.sentences[taken[i-1].from].paragraph != s.paragraph {
			w.paragraph()
		}
		for _, s := range a.sentences[x.from:x.to] {
			w.say(s.text)
		}
	}
}

// writer joins sentences to paragraphs.
type writer struct {
	paragraphs []string
	sentences  []string
}

func (w *writer) say(sentence string) {
	if sentence != "" {
		w.sentences = append(w.sentences, sentence)
	}
}

func (w *writer) paragraph() {
	if len(w.sentences) > 0 {
		w.paragraphs = append(w.paragraphs, strings.Join(w.sentences, " "))
		w.sentences = w.sentences[:0]
	}
}
