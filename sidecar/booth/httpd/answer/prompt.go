package answer

import (
	"hash/fnv"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"kvbooth/sidecar/sim"
)

const (
	maxSubject = 80   // bytes of a phrase that an answer takes up
	maxRequest = 1200 // bytes; a paragraph behind a text is a request up to this length
)

// prompt is what an answer needs to know of a conversation.
type prompt struct {
	seed    uint64
	article *article
	said    []bool // the article's sentences that earlier answers used
	first   bool   // nothing has been answered yet
	asked   bool   // for a question

	question string // of the last user message
	subject  string // what the question is about, "" if it does not say
	anchor   int    // the sentence that has the subject, -1 for none
}

// read makes out who said what. The article is the longest message that is not
// the model's own, without the request that follows it.
func (c *Composer) read(messages []sim.Message) *prompt {
	p := &prompt{seed: seed(messages), first: true}
	longest, question := "", ""
	for _, m := range messages {
		text := m.Content
		switch m.Role {
		case "assistant":
			p.first = false
			continue
		case "system":
			p.asked = p.asked || wantsQuestion.MatchString(text)
		default:
			text, question = cutRequest(text)
		}
		if len(text) > len(longest) {
			longest = text
		}
	}
	p.asked = p.asked || wantsQuestion.MatchString(question)
	if p.asked {
		longest = newest(messages)
	}
	p.question = clean(question)
	p.article = c.article(longest)
	p.said = make([]bool, len(p.article.sentences))
	for _, m := range messages {
		if m.Role == "assistant" {
			p.article.said(m.Content, p.said)
		}
	}
	if p.anchor = -1; !p.first {
		p.subject = p.article.subject(p.question)
		p.anchor = p.article.find(p.subject)
	}
	return p
}

// seed is FNV-1a of the messages.
func seed(messages []sim.Message) uint64 {
	h := fnv.New64a()
	for _, m := range messages {
		_, _ = io.WriteString(h, m.Role+"\x00")
		_, _ = io.WriteString(h, m.Content)
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// cutRequest parts a text from the request behind it. A short text is all request.
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

// quoted is a phrase that a question takes from an answer.
var quoted = regexp.MustCompile(`["“«]([^"“”«»]{2,80})["”»]`)

// subject is what a question is about: the phrase that it quotes, or else the
// longest run of words in it that are telling and that the article has.
func (a *article) subject(question string) string {
	if m := quoted.FindStringSubmatch(question); m != nil {
		return strings.TrimSpace(m[1])
	}
	var best, run []string
	for field := range strings.FieldsSeq(question) {
		word := strings.TrimFunc(field, notWord)
		if found := stems(word); len(found) == 0 || a.frequency[found[0]] == 0 || questionWords[strings.ToLower(word)] || a.general {
			run = nil
			continue
		}
		if run = append(run, word); len(run) > len(best) && len(run) <= 4 {
			best = run
		}
		if !strings.HasSuffix(field, word) {
			run = nil
		}
	}
	return shorten(strings.Join(best, " "), maxSubject)
}

// find gives the first sentence that has a phrase, -1 for none.
func (a *article) find(phrase string) int {
	if phrase == "" || a.general {
		return -1
	}
	phrase = strings.ToLower(phrase)
	return slices.IndexFunc(a.sentences, func(s sentence) bool { return strings.Contains(s.lower, phrase) })
}

// wantsQuestion finds the request for a question: how a load generator has a
// second model play the user.
var wantsQuestion = regexp.MustCompile(`(?i)(?:^|[.!?:;,\n]\s*|\b(?:please|then|and|now|only|should|must|will|to|just)\s+)` +
	`(?:ask|write|generate|give|pose|formulate|suggest|produce|come up with|reply with|respond with)` +
	`(?:\s+(?:me|him|her|it|them|the assistant|only|just|exactly))*\s+(?:one|an?|1|your|the next)\s[^.?!\n]{0,80}?\b(?:question|follow-up)\b`)

// newest is the text that a question should be about: the longest one of the
// last two messages that are not the system's.
func newest(messages []sim.Message) string {
	best, left := "", 2
	for i := len(messages) - 1; i >= 0 && left > 0; i-- {
		if messages[i].Role == "system" {
			continue
		}
		text := messages[i].Content
		if messages[i].Role != "assistant" {
			text, _ = cutRequest(text)
		}
		if len(text) > len(best) {
			best = text
		}
		left--
	}
	return best
}

// ask gives questions about the article, from the one to try first to the
// shortest.
func (p *prompt) ask(rng *rand.Rand) []string {
	subject := p.article.topic
	if p.article.general {
		subject = "that"
	}
	if phrases := p.article.phrases(); len(phrases) > 0 {
		subject = quote(phrases[rng.IntN(len(phrases))])
	}
	var texts []string
	for _, i := range rng.Perm(len(questions)) {
		texts = append(texts, strings.ReplaceAll(questions[i], "%s", subject))
	}
	return append(texts, "Can you say more about that?", "Why is that?", "Why?")
}

// phrases are pairs of telling words that follow each other in the article: those
// that stand like things do, or, where there are none, all.
func (a *article) phrases() []string {
	var things, all []string
	if a.general {
		return nil
	}
	for _, s := range a.sentences {
		lead, before := "", ""
		for field := range strings.FieldsSeq(s.text) {
			word := strings.TrimRight(field, ".,;:!?)")
			if len(word) < 5 || stopWords[strings.ToLower(word)] || strings.ContainsFunc(word, notWord) {
				lead, before = strings.ToLower(field), ""
				continue
			}
			if before != "" {
				all = append(all, before+" "+word)
				if isThing(lead, before, word) {
					things = append(things, before+" "+word)
				}
				lead, before = "", ""
				continue
			}
			if before = word; word != field {
				lead, before = "", ""
			}
		}
	}
	if len(things) > 0 {
		return things
	}
	return all
}

// isThing says whether a pair of words, from its endings and the word in front of
// it, is more likely a thing than somebody who does something.
func isThing(lead, first, second string) bool {
	plural := func(w string) bool { return strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") }
	switch {
	case plural(first), strings.HasSuffix(second, "ed"), strings.HasSuffix(second, "ly"):
		return false
	case leadsToMany[lead]:
		return true
	}
	return leadsToOne[lead] && !plural(second)
}

var (
	leadsToOne  = setOf("a an the its their our your this that each every")
	leadsToMany = setOf("of in with by for between without against through across these those")
)
