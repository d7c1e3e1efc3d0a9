package answer

import (
	"cmp"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"kvbooth/sidecar/sim"
)

const (
	maxRequest = 1200 // bytes of a paragraph behind a text that is taken as the request
	maxExcerpt = 80   // bytes of a prompt without a text that the answer repeats
	section    = 2    // level of the headings that the built-in article has too
)

// prompt is the analysis of a conversation.
type prompt struct {
	text     string // subject of the conversation
	topic    string // heading of the text, for use within a sentence
	question string // question of the last user message
	role     string // the system messages, which may list earlier questions
	ranked   []passage
	uses     map[string]int // number of uses of a sentence in earlier answers

	first         bool // there is no earlier answer
	known         bool // the text is a built-in article
	general       bool // there is no text
	wantsQuestion bool
}

var (
	title  = regexp.MustCompile(`(?m)^# +(\S.*?)\s*$`)
	quoted = regexp.MustCompile(`["“«]([^"“”«»]{2,80})["”»]`) // quotation of an answer in a question

	// questionWanted matches a request for a question. A load generator sends one if a second model plays the user.
	questionWanted = regexp.MustCompile(`(?i)` +
		`(?:^|[.!?:;,\n]\s*|\b(?:please|then|and|now|only|should|must|will|to|just)\s+)` +
		`(?:ask|write|generate|give|pose|formulate|suggest|produce|come up with|reply with|respond with)` +
		`(?:\s+(?:me|him|her|it|them|the assistant|only|just|exactly))*` +
		`\s+(?:one|an?|1|your|the next)\s[^.?!\n]{0,80}?\b(?:question|follow-up)\b`)

	// nounPhrase matches a pair of words that is likely a name: behind an article or a preposition, and before a
	// punctuation mark.
	nounPhrase = regexp.MustCompile(`\b(?:an?|the|its|their|of|with|by|for|without) ([a-z]{5,} [a-z]{5,})[.,;]`)

	questions = []string{
		"What exactly do you mean by %s, and why does it matter?",
		"How does %s work in practice?",
		"Can you give me a concrete example of %s, with numbers?",
		"What would happen without %s?",
		"What are the limits of %s?",
	}
)

// read analyzes a conversation. The text is the longest message that is not the model's own, without the request that
// follows it. If a question is wanted, the text is the longer one of the last two messages.
func read(messages []sim.Message) *prompt {
	p := &prompt{first: true, uses: map[string]int{}}
	recent := make([]string, 2)
	for _, m := range messages {
		content := clean(m.Content)
		switch m.Role {
		case "assistant":
			p.first = false
			for paragraph := range strings.SplitSeq(content, "\n\n") {
				for _, sentence := range sentences(paragraph) {
					p.uses[sentence]++
				}
			}
		case "system":
			p.wantsQuestion = p.wantsQuestion || questionWanted.MatchString(content)
			p.role += content + "\n"
			continue
		default:
			content, p.question = cutRequest(content)
			p.text = longer(p.text, content)
		}
		recent = append(recent, content)[1:]
	}
	if p.wantsQuestion = p.wantsQuestion || questionWanted.MatchString(p.question); p.wantsQuestion {
		p.text = longer(recent[0], recent[1])
		return p
	}
	p.gather()
	return p
}

func longer(a, b string) string {
	if len(b) > len(a) {
		return b
	}
	return a
}

// cutRequest separates a text from the request behind it. A short text is all request.
func cutRequest(content string) (text, request string) {
	content = strings.TrimSpace(content)
	if i := strings.LastIndex(content, "\n\n"); i >= 0 && len(content)-i <= maxRequest {
		return content[:i], content[i+2:]
	}
	if len(content) <= maxRequest {
		return content, content
	}
	return content, ""
}

// enoughSentences is the number of sentences that suffice for an answer of any requested length.
const enoughSentences = 90

// gather collects and ranks the passages for the answer.
func (p *prompt) gather() {
	all, unsaid := 0, 0
	add := func(passages []passage) {
		for _, x := range passages {
			for _, sentence := range x.sentences {
				all++
				if p.uses[sentence] == 0 {
					unsaid++
				}
			}
		}
		p.ranked = append(p.ranked, p.rank(passages)...)
	}
	if m := title.FindStringSubmatch(p.text); m != nil {
		var written []passage
		written, p.known = articles()[m[1]]
		p.topic = lowerFirst(m[1])
		add(slices.Clone(written))
	}
	if unsaid < enoughSentences {
		add(split(p.text))
	}
	if p.general = all < 3; p.general {
		p.ranked = articles()["No text"]
	}
}

// rank sorts the passages by their match with the question. A shared word counts more if fewer passages have it, and
// more in a heading or a quotation. Passages of the sections come before those for other questions. In a first
// answer, the overviews come before nearly everything.
func (p *prompt) rank(passages []passage) []passage {
	score := map[string]float64{}
	rate := func(word string, weight float64) {
		having := slices.DeleteFunc(slices.Clone(passages), func(x passage) bool { return !x.words[word] })
		for _, x := range having {
			score[x.sentences[0]] += weight / float64(len(having))
		}
	}
	for _, word := range words(p.question) {
		rate(word, 1)
		rate("#"+word, 3)
	}
	for _, word := range words(strings.Join(quoted.FindStringSubmatch(p.question), " ")) {
		rate(word, 5)
	}
	for _, x := range passages {
		switch first := x.sentences[0]; {
		case p.uses[first] > 0: // the rest of an interrupted passage
			score[first] = -1
		case p.first && x.overview:
			score[first] = 7
		case x.level == section:
			score[first] += 4
		}
	}
	slices.SortStableFunc(passages, func(x, y passage) int {
		return cmp.Compare(score[y.sentences[0]], score[x.sentences[0]])
	})
	return passages
}

// frame returns the opening sentence of the answer and the possible endings. The endings for a text that is not a
// built-in article come from the text, because it may be in any language.
func (p *prompt) frame(rng *rand.Rand) (opening string, endings []string) {
	if !p.known {
		for _, x := range p.ranked {
			endings = append(endings, x.sentences...)
		}
		if p.general {
			opening = "There is no text to explain in " + excerpt(p.question) + ", so what I can say about it stays general."
		}
		return opening, endings
	}
	subject, openings := p.topic, firstOpenings
	if !p.first {
		openings = laterOpenings
		if m := quoted.FindStringSubmatch(p.question); m != nil {
			subject = `"` + strings.TrimSpace(m[1]) + `"`
		}
	}
	fill := func(sentences []string) (filled []string) {
		for _, i := range rng.Perm(len(sentences)) {
			filled = append(filled, strings.ReplaceAll(sentences[i], "%s", subject))
		}
		return filled
	}
	fresh := func(sentences []string) string {
		return slices.MinFunc(fill(sentences), func(a, b string) int { return cmp.Compare(p.uses[a], p.uses[b]) })
	}
	return fresh(preludes) + " " + fresh(openings), fill(closings)
}

// maxDraws is the maximum number of draws until a question is new.
const maxDraws = 20

// ask returns a question about the text that the system messages do not list already, or a short one if the limit
// allows no other.
func (p *prompt) ask(rng *rand.Rand, limit int) Answer {
	things := nounPhrase.FindAllStringSubmatch(p.text, -1)
	draw := func() string {
		subject := "that"
		if len(things) > 0 {
			subject = `"` + things[rng.IntN(len(things))][1] + `"`
		}
		return strings.ReplaceAll(questions[rng.IntN(len(questions))], "%s", subject)
	}
	question := draw()
	for n := 1; n < maxDraws && strings.Contains(p.role, question); n++ {
		question = draw()
	}
	var ids []uint32
	for _, text := range []string{question, "Can you say more about that?", "Why?"} {
		if ids = sim.Encode(text); len(ids) <= limit {
			return Answer{Text: text, Tokens: ids, Reason: sim.FinishStop}
		}
	}
	return cut(ids, limit, 0)
}

// excerpt returns the quoted beginning of a prompt.
func excerpt(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "your message"
	}
	return `"` + strings.ReplaceAll(strings.ToValidUTF8(text[:min(len(text), maxExcerpt)], ""), `"`, "'") + `"`
}

// lowerFirst adapts a heading for use within a sentence. Headings that begin with an abbreviation do not change.
func lowerFirst(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	if second, _ := utf8.DecodeRuneInString(s[n:]); unicode.IsUpper(second) {
		return s
	}
	return string(unicode.ToLower(first)) + s[n:]
}
