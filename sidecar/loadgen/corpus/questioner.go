package corpus

import (
	"context"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"

	"kvbooth/sidecar/api"
)

// Questioner asks the questions of conversations. It must be safe for concurrent use and
// keep no state of a conversation besides the arguments.
type Questioner interface {
	// Name identifies the questioner in the status and in baselines.
	Name() string
	// Kind returns the kind of questioner.
	Kind() api.QuestionerKind
	// Open returns the request to explain the starter.
	Open(r *rand.Rand, topic string) string
	// Follow returns a question about the last answer. asked are the questions of the
	// conversation so far, which it does not repeat. It may take as long as a model takes, but
	// always returns a question, soon after ctx ends. It is called while no turn waits for it.
	Follow(ctx context.Context, r *rand.Rand, topic string, asked []string, answer string) string
}

// Reporter is a Questioner that counts its questions by their source.
type Reporter interface {
	// Report returns the counts since the process began.
	Report() api.FollowupStatus
}

// BuiltinQuestioner makes questions from templates about phrases of the last answer.
type BuiltinQuestioner struct{}

// Name returns "built-in questioner".
func (BuiltinQuestioner) Name() string { return "built-in questioner" }

// Kind returns built-in.
func (BuiltinQuestioner) Kind() api.QuestionerKind { return api.QuestionerBuiltIn }

var openings = []string{
	"Explain the article above to me in detail. I know computers, but this subject is new to me.",
	"Please walk me through the text above, one idea after the other, and say why each of them matters.",
	"What are the central ideas of this article on %s? Explain each of them thoroughly.",
	"I have to present %s to colleagues tomorrow. Explain the text above so that I really understand it.",
	"Take the article above and explain its argument step by step, with examples of your own.",
	"Give me a thorough explanation of the text above, and begin with what a newcomer most often gets wrong about %s.",
	"Which problems does this article on %s describe, and how is each of them solved? Explain in detail.",
	"Explain the text above as you would to an engineer from another field, leaving out nothing essential.",
}

// Open returns the request to explain the starter.
func (BuiltinQuestioner) Open(r *rand.Rand, topic string) string {
	q := openings[r.IntN(len(openings))]
	if strings.Contains(q, "%s") {
		q = fmt.Sprintf(q, lowerFirst(topic))
	}
	return q
}

var followUps = []string{
	"You mention %q. How does that work in detail?",
	"What would go wrong without what you describe as %q?",
	"Can you give a concrete example, with numbers, of %q?",
	"How did people manage before there was %q?",
	"I did not quite follow the part on %q. Could you explain it in another way?",
	"What does %q cost, and who pays for it?",
	"Where does %q reach its limits?",
	"How would I measure whether %q really helps?",
	"What is the strongest objection to %q?",
	"How is %q connected with the other points you made?",
	"Suppose everything became ten times larger. What would happen to %q?",
	"Which mistakes do people make with %q in practice?",
	"Is there an alternative to %q, and when would you choose it?",
	"What should I try out first to get a feeling for %q?",
}

var plainFollowUps = []string{
	"What follows from that in practice?",
	"Which part of this is most often misunderstood, and why?",
	"Could you go deeper into the last point of your answer?",
	"What would you look at first if this did not behave as described?",
	"How would you explain the same thing to somebody who has to pay for it?",
	"Which of these ideas will still matter in ten years?",
}

// maxRead is how many bytes of an answer a follow-up question is made from. The words of a text take several times its
// memory.
const maxRead = 64 << 10

// Follow asks about a phrase of the answer with a template that the conversation has not
// used. Where the answer has no phrase, or every template was used, it asks a plain question.
// When those are used up it numbers its question, so that no question is repeated.
func (BuiltinQuestioner) Follow(_ context.Context, r *rand.Rand, _ string, asked []string, answer string) string {
	phrases := phrases(answer[:min(len(answer), maxRead)])
	for _, i := range r.Perm(len(followUps)) {
		if len(phrases) == 0 || wasUsed(asked, followUps[i]) {
			continue
		}
		return fmt.Sprintf(followUps[i], phrases[r.IntN(len(phrases))])
	}
	for _, i := range r.Perm(len(plainFollowUps)) {
		if !slices.Contains(asked, plainFollowUps[i]) {
			return plainFollowUps[i]
		}
	}
	return fmt.Sprintf("Please go on; this is my question number %d.", len(asked)+1)
}

// wasUsed reports whether a template was used, with any phrase.
func wasUsed(asked []string, template string) bool {
	before, after, _ := strings.Cut(template, "%q")
	return slices.ContainsFunc(asked, func(q string) bool {
		return strings.HasPrefix(q, before) && strings.HasSuffix(q, after)
	})
}

const (
	phraseWords = 3  // maximum words of a phrase that a question can quote
	maxWord     = 32 // maximum bytes of a word in a language with spaces
	maxPhrases  = 64 // considered, at the end of the answer, which has the newest thoughts
)

// phrases finds phrases to ask about: runs of two or three content words that do not cross
// punctuation or a line's end and do not end in a verb. Repeated phrases are the subjects of
// the answer. Those that their context shows to be things are used as well. Other phrases are
// used only where there is neither.
func phrases(answer string) []string {
	var all []phrase
	count := map[string]int{}
	for line := range strings.Lines(answer) {
		for _, p := range runs(strings.Fields(line)) {
			all = append(all, p)
			count[strings.ToLower(p.text)]++
		}
	}
	good := texts(all, func(p phrase) bool { return count[strings.ToLower(p.text)] > 1 || p.isThing() })
	if len(good) > 0 {
		return good
	}
	return texts(all, func(phrase) bool { return true })
}

// phrase is a run of content words, and the stop word before it, "" after punctuation.
type phrase struct{ text, before string }

// isThing reports whether an article or a preposition precedes the phrase and no word but the
// last is a plural, which could be a verb. A plural at the end may be a verb after an
// article, as in "the guest believes".
func (p phrase) isThing() bool {
	words := strings.Fields(p.text)
	last := len(words) - 1
	if slices.ContainsFunc(words[:last], isPlural) {
		return false
	}
	return prepositions[p.before] || articles[p.before] && !isPlural(words[last])
}

func isPlural(word string) bool {
	return strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss")
}

// texts returns the last maxPhrases of the wanted phrases.
func texts(all []phrase, wanted func(phrase) bool) (out []string) {
	for _, p := range all {
		if wanted(p) {
			out = append(out, p.text)
		}
	}
	return out[max(0, len(out)-maxPhrases):]
}

// runs finds the phrases of one line. A longer run is not used, since the relation of its
// words is ambiguous.
func runs(fields []string) (out []phrase) {
	var run []string
	before := ""
	flush := func(next string) {
		for len(run) > 0 && isVerb(run[len(run)-1], next) {
			run, next = run[:len(run)-1], ""
		}
		if len(run) >= 2 && len(run) <= phraseWords {
			out = append(out, phrase{strings.Join(run, " "), before})
		}
		run = run[:0]
		before = next
	}
	for _, field := range fields {
		word := strings.TrimFunc(field, notLetter)
		if !strings.HasPrefix(field, word) {
			flush("")
		}
		if isContentWord(word) {
			run = append(run, word)
		} else {
			flush(strings.ToLower(word))
		}
		if !strings.HasSuffix(field, word) {
			flush("")
		}
	}
	flush("")
	return out
}

// isVerb reports whether the last word of a phrase is probably a verb: it has the ending of a
// participle or an adverb, or that of a verb and an object follows.
func isVerb(word, next string) bool {
	word = strings.ToLower(word)
	return strings.HasSuffix(word, "ed") || strings.HasSuffix(word, "ly") || isPlural(word) && objects[next]
}

var (
	// objects are words that begin an object, and seldom follow a noun.
	objects = setOf(`a an the its his her their our your this these those each every no some any all both
		more less itself them it him us you one two three how what whether when why into onto from out up off`)

	articles     = setOf("a an the its his her their our your this that each every")
	prepositions = setOf("of in with by for between without against through across these those no any some")
)

// isContentWord reports whether a word may be part of a phrase: letters and hyphens.
func isContentWord(word string) bool {
	return len(word) >= 4 && len(word) <= maxWord && !stopWords[strings.ToLower(word)] &&
		!strings.ContainsFunc(word, func(r rune) bool { return notLetter(r) && r != '-' })
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) }

// stopWords are words that are not part of a phrase.
var stopWords = setOf(`about above after again also although always another because been before
		being below between both could does down during each either even ever every from further have here
		however into itself just like made make makes many might more most much must need needs never next
		only other over rather same should since some such than that their them then there these they
		this those though through thus under until upon very well were what when where whether which while
		will with within without would your yours already almost still often once perhaps instead
		cannot came come comes nobody anyone everyone anything nothing something`)

func setOf(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// lowerFirst converts a topic for the middle of a sentence, unless it begins with an
// abbreviation.
func lowerFirst(s string) string {
	r := []rune(s)
	if len(r) > 1 && unicode.IsUpper(r[1]) {
		return s
	}
	if len(r) > 0 {
		r[0] = unicode.ToLower(r[0])
	}
	return string(r)
}

// FixedQuestioner opens like the built-in one, and asks the same question at every follow-up,
// like the generator of the recorded runs.
type FixedQuestioner struct {
	BuiltinQuestioner
	Text string
}

const (
	recorded  = "elaborate further" // the sentence of the recorded runs
	maxQuoted = 100                 // characters
)

// Name returns a name that identifies the question, since a longer one is more load: the
// question, or its beginning, length and checksum.
func (q FixedQuestioner) Name() string {
	if q.Text == recorded {
		return api.RecordedFollowup
	}
	separator := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	text := strings.Join(strings.FieldsFunc(q.Text, separator), " ")
	if r := []rune(text); len(r) > maxQuoted {
		checksum := crc32.ChecksumIEEE([]byte(q.Text))
		text = fmt.Sprintf("%s… (%d characters, %08x)", string(r[:maxQuoted]), len(r), checksum)
	}
	return "always: " + text
}

// Kind returns fixed.
func (FixedQuestioner) Kind() api.QuestionerKind { return api.QuestionerFixed }

// Follow returns the fixed question.
func (q FixedQuestioner) Follow(context.Context, *rand.Rand, string, []string, string) string {
	return q.Text
}
