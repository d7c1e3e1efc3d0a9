package corpus

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
)

// Questioner asks a conversation's questions. An implementation is safe for
// concurrent use; what it must remember is in the arguments.
type Questioner interface {
	// Name says who asks, for the status and for baselines.
	Name() string
	// Open asks to explain the starter.
	Open(r *rand.Rand, topic string) string
	// Follow asks about the last answer. asked are the questions of the
	// conversation so far; none of them is asked again.
	Follow(r *rand.Rand, topic string, asked []string, answer string) string
}

// BuiltinQuestioner asks from templates about phrases of the last answer.
type BuiltinQuestioner struct{}

// Name gives "built-in questioner".
func (BuiltinQuestioner) Name() string { return "built-in questioner" }

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

// Open asks to explain the starter.
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

// Follow asks about a phrase of the answer with a template that the
// conversation has not heard, or, where the answer has no phrase to ask about
// or every template was used, more plainly. When all is used up it numbers its
// question, so that it never repeats itself.
func (BuiltinQuestioner) Follow(r *rand.Rand, _ string, asked []string, answer string) string {
	phrases := phrases(answer)
	for _, i := range r.Perm(len(followUps)) {
		if len(phrases) == 0 || heard(asked, followUps[i]) {
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

// heard says whether a template was used, with whatever phrase.
func heard(asked []string, template string) bool {
	before, after, _ := strings.Cut(template, "%q")
	return slices.ContainsFunc(asked, func(q string) bool {
		return strings.HasPrefix(q, before) && strings.HasSuffix(q, after)
	})
}

const (
	phraseWords = 4  // a phrase that a question can quote has at most so many words
	maxWord     = 32 // bytes of a word; what is longer is no word of a language with spaces
	maxPhrases  = 64 // of the answer's end, where the newest thoughts stand
)

// phrases finds runs of two to four words, none of them a little word, that do
// not cross punctuation or a line's end: what a reader would ask about.
func phrases(answer string) []string {
	var out, run []string
	flush := func() {
		if len(run) >= 2 {
			out = append(out, strings.Join(run, " "))
		}
		run = run[:0]
	}
	for line := range strings.Lines(answer) {
		for field := range strings.FieldsSeq(line) {
			word := strings.TrimFunc(field, notLetter)
			if !strings.HasPrefix(field, word) {
				flush()
			}
			if !telling(word) {
				flush()
				continue
			}
			run = append(run, word)
			if len(run) == phraseWords || !strings.HasSuffix(field, word) {
				flush()
			}
		}
		flush()
	}
	return out[max(0, len(out)-maxPhrases):]
}

// telling says whether a word may stand in a phrase: letters and hyphens.
func telling(word string) bool {
	return len(word) >= 4 && len(word) <= maxWord && !little[strings.ToLower(word)] &&
		!strings.ContainsFunc(word, func(r rune) bool { return notLetter(r) && r != '-' })
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) }

// little are the words that make no phrase worth asking about.
var little = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`about above after again also although always another because been before
		being below between both could does down during each either even ever every from further have here
		however into itself just like made make makes many might more most much must need needs never next
		only other over rather same should since some such than that their them then there these they
		this those though through thus under until upon very well were what when where whether which while
		will with within without would your yours already almost still often once perhaps instead`) {
		m[w] = true
	}
	return m
}()

// lowerFirst makes a topic fit for the middle of a sentence, unless it begins
// with an abbreviation.
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

// FixedQuestioner asks the same at every follow-up, as the generator of the
// recorded runs did.
type FixedQuestioner struct{ Text string }

// Name says what the recorded baselines say of their runs.
func (FixedQuestioner) Name() string { return "the same short sentence" }

// Open asks like the built-in questioner.
func (FixedQuestioner) Open(r *rand.Rand, topic string) string {
	return BuiltinQuestioner{}.Open(r, topic)
}

// Follow gives the fixed question.
func (q FixedQuestioner) Follow(*rand.Rand, string, []string, string) string { return q.Text }
