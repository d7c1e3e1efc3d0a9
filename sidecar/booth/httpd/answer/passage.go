package answer

import (
	"embed"
	"path"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Each file of articles begins with the heading of a built-in article. A heading of the second level begins a section.
// The paragraph that follows it is the section's summary. The summaries together form a first answer, and the other
// paragraphs add details. A heading of the third level has the words of the questions that its text answers.
//
//go:embed articles/*.md
var files embed.FS

// articles returns the passages on each built-in article by its heading.
var articles = sync.OnceValue(func() map[string][]passage {
	all := map[string][]passage{}
	entries, err := files.ReadDir("articles")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	for _, entry := range entries {
		text, err := files.ReadFile(path.Join("articles", entry.Name()))
		if err != nil {
			panic(err)
		}
		all[title.FindStringSubmatch(string(text))[1]] = split(string(text))
	}
	return all
})

// passage is a paragraph. It is immutable.
type passage struct {
	level     int  // level of the heading above the paragraph
	overview  bool // first paragraph below a section's heading
	sentences []string
	words     map[string]bool // words of the heading have a # in front
}

const (
	maxText     = 256 << 10 // bytes of a text that are used
	maxSentence = 800       // bytes of a sentence that is repeated
)

// clean makes a text safe to repeat: valid UTF-8 without special tokens, which would end the answer in the next turn's
// prompt.
func clean(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), maxText)], "\uFFFD")
	return strings.ReplaceAll(text, "<|", "< |")
}

// split returns the paragraphs of a text that have sentences. Code and lists of words have none.
func split(text string) (all []passage) {
	var heading string
	var lines []string
	level, first, code, seen := 0, false, false, map[string]bool{}
	flush := func() {
		x := passage{level: level, overview: first && level == section, words: map[string]bool{}}
		for _, sentence := range sentences(strings.Join(lines, " ")) {
			if !seen[sentence] && len(sentence) <= maxSentence {
				seen[sentence] = true
				x.sentences = append(x.sentences, sentence)
			}
		}
		for _, word := range words(strings.Join(x.sentences, " ")) {
			x.words[word] = true
		}
		for _, word := range words(heading) {
			x.words["#"+word] = true
		}
		if len(x.sentences) > 0 {
			all = append(all, x)
			first = false
		}
		lines = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		bare := strings.TrimLeft(line, "#")
		switch {
		case strings.HasPrefix(line, "```"):
			code = !code
			flush()
		case code:
		case len(bare) < len(line):
			flush()
			level, heading, first = len(line)-len(bare), bare, true
		case line == "":
			flush()
		default:
			lines = append(lines, strings.TrimLeft(line, "-*> "))
		}
	}
	flush()
	return all
}

// words returns the words of three letters or more, in lower case and without endings.
func words(text string) (all []string) {
	separator := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), separator) {
		if utf8.RuneCountInString(word) >= 3 {
			word = strings.TrimSuffix(word, "s")
			all = append(all, word[:min(len(word), 6)])
		}
	}
	return all
}

// ideographic adds a blank after each ideographic full stop.
var ideographic = strings.NewReplacer("。", "。 ", "！", "！ ", "？", "？ ")

// sentences returns the sentences of a paragraph, without an incomplete one at its end.
func sentences(paragraph string) (all []string) {
	text := strings.Join(strings.Fields(ideographic.Replace(paragraph)), " ")
	start := 0
	for i := 0; i < len(text); i++ {
		afterSign := i > 0 && text[i] == ' ' && (text[i-1]|0x20 < 'a' || text[i-1]|0x20 > 'z')
		if afterSign && ends(text[start:i]) && begins(text[i+1:]) {
			all = append(all, text[start:i])
			start = i + 1
		}
	}
	if ends(text[start:]) {
		all = append(all, text[start:])
	}
	return all
}

// abbreviations end with a full stop that does not end a sentence.
const abbreviations = " e.g. i.e. cf. vs. al. approx. Mr. Mrs. Ms. Dr. St. No. Fig. "

// ends reports whether a text ends like a sentence.
func ends(text string) bool {
	bare := strings.TrimRight(text, `"')]”’`)
	if last, _ := utf8.DecodeLastRuneInString(bare); !strings.ContainsRune(".!?。！？", last) {
		return false
	}
	word := strings.TrimLeft(bare[strings.LastIndexByte(bare, ' ')+1:], `("'“‘`)
	initial := len(word) == 2 && unicode.IsUpper(rune(word[0])) && word[1] == '.'
	return !initial && !strings.Contains(abbreviations, " "+word+" ") && strings.ContainsFunc(bare, unicode.IsLetter)
}

// begins reports whether a text begins like a sentence.
func begins(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return !unicode.IsLower(first) && !strings.ContainsRune(",;:.)-–—", first)
}
