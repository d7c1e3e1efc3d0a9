package answer

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"kvbooth/sidecar/sim"
)

const (
	maxArticles  = 64        // that a composer keeps
	keptArticle  = 64 << 10  // bytes of the longest that it keeps
	readArticle  = 256 << 10 // bytes of an article that are read at all
	longSentence = 800       // bytes; what is longer is no sentence to repeat
	longFragment = 160       // bytes
	maxFragments = 400
	fewSentences = 3 // with fewer a text is no article
)

// article is a text, taken apart. It does not change.
type article struct {
	topic     string   // fit for the middle of a sentence
	headings  []string // of the sections; "" before the first heading
	sentences []sentence
	opens     map[string][]int // sentences by their first word
	frequency map[string]int   // in how many sentences a stem occurs
	general   bool             // the sentences are ours, for want of others
}

// sentence is one sentence of an article, without a line's end in it.
type sentence struct {
	text      string
	lower     string
	section   int
	paragraph int  // counted through the article
	leans     bool // on the sentence before it: it cannot open a passage
	stems     []string
	tokens    int // with a space in front
}

// article gives a text taken apart, from memory if it can.
func (c *Composer) article(text string) *article {
	c.mu.Lock()
	a, ok := c.articles[text]
	c.mu.Unlock()
	if ok {
		return a
	}
	a = split(text)
	if len(text) > keptArticle {
		return a
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for old := range c.articles {
		if len(c.articles) < maxArticles {
			break
		}
		delete(c.articles, old) // whichever comes: the ten that come again are soon back
	}
	c.articles[strings.Clone(text)] = a
	return a
}

// split takes a text apart. A text without sentences, such as a program, gives
// its lines, quoted; one without enough of either gives general sentences.
func split(text string) *article {
	text = clean(text)
	s := splitter{seen: map[string]bool{}, headings: []string{""}}
	s.text(text)
	if len(s.sentences) < fewSentences {
		s.quote(text)
	}
	if len(s.sentences) < fewSentences {
		return generalArticle(text)
	}
	return newArticle(s.topic, s.headings, s.sentences)
}

// clean makes a text safe to repeat: valid UTF-8, and without special tokens,
// which would end the answer in the next turn's prompt.
func clean(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), readArticle)], "\uFFFD")
	return strings.ReplaceAll(text, "<|", "< |")
}

// generalArticle stands in for an article where the prompt holds none.
func generalArticle(prompt string) *article {
	s := splitter{seen: map[string]bool{}, headings: []string{""}}
	for _, text := range generalSentences {
		s.add(text)
	}
	a := newArticle("your message", s.headings, s.sentences)
	if prompt = shorten(strings.Join(strings.Fields(prompt), " "), maxSubject); prompt != "" {
		a.topic = quote(prompt)
	}
	a.general = true
	return a
}

func newArticle(topic string, headings []string, sentences []sentence) *article {
	a := &article{
		topic: lowerFirst(topic), headings: headings, sentences: sentences,
		opens: map[string][]int{}, frequency: map[string]int{},
	}
	if topic == "" {
		a.topic = "its subject"
	}
	for i := range sentences {
		s := &sentences[i]
		s.lower = strings.ToLower(s.text)
		s.leans = leans(s.text)
		s.stems = stems(s.text)
		s.tokens = sim.Count(" " + s.text)
		word := firstWord(s.text)
		a.opens[word] = append(a.opens[word], i)
		for _, stem := range s.stems {
			a.frequency[stem]++
		}
	}
	return a
}

// firstWord is what stands before the first blank or line's end.
func firstWord(text string) string {
	for i := range len(text) {
		if text[i] == ' ' || text[i] == '\n' {
			return text[:i]
		}
	}
	return text
}

// said marks the article's sentences that stand in an answer.
func (a *article) said(answer string, marks []bool) {
	for answer != "" {
		word := firstWord(answer)
		for _, i := range a.opens[word] {
			marks[i] = marks[i] || strings.HasPrefix(answer, a.sentences[i].text)
		}
		answer = answer[min(len(word)+1, len(answer)):]
	}
}

// splitter gathers the sentences of a text.
type splitter struct {
	topic     string
	headings  []string
	sentences []sentence
	paragraph int
	lines     []string // of the paragraph under way
	seen      map[string]bool
}

// text takes the sentences of running text; code and lists of words have none.
func (s *splitter) text(text string) {
	code := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			code = !code
			s.flush()
		case code:
		case strings.HasPrefix(line, "#"):
			s.flush()
			s.heading(strings.TrimSpace(strings.TrimLeft(line, "#")))
		case line == "":
			s.flush()
		default:
			s.lines = append(s.lines, strings.TrimLeft(line, "-*> "))
		}
	}
	s.flush()
}

// heading begins a section. The first heading of all names the topic.
func (s *splitter) heading(heading string) {
	switch heading = shorten(heading, maxSubject); {
	case heading == "":
	case s.topic == "":
		s.topic = heading
	default:
		s.headings = append(s.headings, heading)
	}
}

// flush ends a paragraph.
func (s *splitter) flush() {
	for _, text := range cutSentences(strings.Join(s.lines, " ")) {
		s.add(text)
	}
	s.lines = s.lines[:0]
	s.paragraph++
}

// add takes a sentence, unless the text has had it before.
func (s *splitter) add(text string) {
	if s.seen[text] || len(text) > longSentence {
		return
	}
	s.seen[text] = true
	s.sentences = append(s.sentences, sentence{text: text, section: len(s.headings) - 1, paragraph: s.paragraph})
}

// quote makes sentences of a text's lines.
func (s *splitter) quote(text string) {
	s.sentences, s.headings = nil, []string{""}
	for line := range strings.Lines(text) {
		for line = strings.Join(strings.Fields(line), " "); line != ""; {
			part := shorten(line, longFragment)
			line = strings.TrimSpace(line[len(part):])
			if len(s.sentences) < maxFragments && strings.ContainsFunc(part, isWord) && !s.seen[part] {
				s.seen[part] = true
				s.add(fmt.Sprintf(quotations[len(s.sentences)%len(quotations)], strings.ReplaceAll(part, `"`, "'")))
			}
		}
	}
}

// ideographic full stops have no blank behind them.
var ideographic = strings.NewReplacer("。", "。 ", "！", "！ ", "？", "？ ")

// cutSentences gives the sentences of a paragraph; what does not end like one at
// the paragraph's end is left out.
func cutSentences(paragraph string) []string {
	text := strings.Join(strings.Fields(ideographic.Replace(paragraph)), " ")
	var sentences []string
	start := 0
	for i := 0; i < len(text); i++ {
		if text[i] == ' ' && ends(text[start:i]) && begins(text[i+1:]) {
			sentences = append(sentences, text[start:i])
			start = i + 1
		}
	}
	if ends(text[start:]) {
		sentences = append(sentences, text[start:])
	}
	return sentences
}

// abbreviations end with a full stop that ends no sentence.
var abbreviations = setOf("e.g. i.e. cf. vs. al. approx. Mr. Mrs. Ms. Dr. St. No. Fig.")

// ends says whether a text ends like a sentence.
func ends(text string) bool {
	bare := strings.TrimRight(text, `"')]”’`)
	if last, _ := utf8.DecodeLastRuneInString(bare); !strings.ContainsRune(".!?。！？", last) {
		return false
	}
	word := strings.TrimLeft(bare[strings.LastIndexByte(bare, ' ')+1:], `("'“‘`)
	initial := len(word) == 2 && unicode.IsUpper(rune(word[0])) && word[1] == '.'
	return !initial && !abbreviations[word] && strings.ContainsFunc(bare, isWord)
}

// begins says whether a text begins like a sentence.
func begins(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return !unicode.IsLower(first) && !strings.ContainsRune(",;:.)-–—", first)
}

// shorten cuts a text to so many bytes, at a blank if there is one.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	if blank := strings.LastIndexByte(text[:most], ' '); blank > 0 {
		return text[:blank]
	}
	return text[:most]
}
