package answer

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// Our own sentences. Where an article is explained, no two words of four or more
// letters follow each other in them unless one is a little word: what the
// built-in questioner asks about should be the article's words, not ours.

// %s is the topic, in the middle of a sentence.
var firstOpenings = []string{
	"The text is about %s, and this is its argument, step by step.",
	"To get at %s, it helps to take the text in its own order.",
	"Here is %s as the text has it, one idea after the other.",
	"On %s there is a lot to say, and the text has an order that makes sense.",
	"The subject is %s, and the points below are those that matter.",
	"Let me take you through %s in the order of the text.",
}

// %s is the topic.
var firstClosings = []string{
	"That, in short, is %s.",
	"All in all, this is what the text has to say on %s, and it holds only as a whole.",
	"In short, there is no trick to %s, only one choice after another, each with a price.",
	"So much for %s in outline; ask about any part of it, and I will go deeper.",
	"If you keep one thing in mind about %s, let it be that its parts need each other.",
	"This is %s from end to end.",
	"That is the gist.",
	"That is %s in outline, and what it all comes down to is that one thing has to be paid for with another.",
}

// %s is a section's heading.
var firstTurns = []string{
	`The next part is headed "%s".`,
	`Then comes "%s".`,
	`Under "%s" it goes on like this.`,
	`From there it moves on to "%s".`,
	`After this it turns to "%s".`,
	`"%s" is where it goes next.`,
	`It then has a part on "%s".`,
	`What comes after this is "%s".`,
}

// %s is a section's heading.
var laterTurns = []string{
	`Under "%s" there is more to be found.`,
	`The part on "%s" adds to the picture.`,
	`From "%s" comes the next point.`,
	`"%s" is another place to look.`,
	`Then there is what "%s" has to say.`,
	`Let me go back to "%s" for this.`,
	`The next thing is to be had from "%s".`,
}

// %s is the heading of the section that has what was asked about.
var placeTurns = []string{
	`The text has it under "%s".`,
	`It belongs to the part on "%s".`,
	`Its place is under "%s".`,
}

// %s is what was asked about.
var laterClosings = []string{
	"In short, this is what the text has to offer on %s.",
	"That should make it clear what is meant by %s.",
	"So much for %s.",
	"To sum up, %s is not to be had apart from what is around it.",
	"All of this has to be kept in mind with %s, and none of it comes for free.",
	"That is as far as it goes on %s; if a point is still unclear, name it.",
	"This is the answer in short.",
	"I hope that this is what you were after.",
}

// %s is the topic, where the question names nothing.
var plainOpenings = []string{
	"There is more to say about %s.",
	"Let us go on with %s.",
	"Here is what has been left out so far about %s.",
}

var (
	generalOpenings = []string{"There is no text to explain in %s, so what I can say about it stays general."}
	generalClosings = []string{"That is as much as I can say about %s.", "Tell me more, and so will I.", "So much for %s."}
	reminders       = []string{"As a reminder, this came up before.", "Some of it was said before, and bears on this too.", "To recall it, here is what came up before."}
	repetitions     = []string{"Once more, from the top.", "Let me go over it again.", "To say it once again:"}
)

// quotations make sentences of what has none.
var quotations = []string{
	`It says "%s".`, `Then comes "%s".`, `Below that it has "%s".`, `After that there is "%s".`, `It goes on with "%s".`,
}

var questions = []string{
	"What exactly do you mean by %s, and why does it matter?",
	"How does %s work in practice?",
	"Can you give me a concrete example of %s, with numbers?",
	"What would happen without %s?",
	"What are the limits of %s?",
}

// kind is a kind of question: how it is told, how the answer opens, and what to
// look for in the article beside the subject.
type kind struct {
	told    map[string]bool // words of the question; any will do
	opening string          // %s is the subject
	hints   map[string]bool // stems of fitting sentences
	figures bool            // sentences with figures fit
}

// kinds are tried in turn; the first that is told by a word of the question wins.
var kinds = []kind{
	{told: setOf("example numbers figures"), opening: "With %s it is best to look at figures.", hints: stemsOf("suppose example say numbers"), figures: true},
	{told: setOf("wrong fail"), opening: "Without %s, much of the rest would not hold.", hints: stemsOf("without fail lose lost wrong problem otherwise error cannot")},
	{told: setOf("manage history origin"), opening: "Before there was %s, people had to make do with less.", hints: stemsOf("before earlier once old replaced until years first"), figures: true},
	{told: setOf("follow simply simpler understand"), opening: "Let me try %s again from another side.", hints: stemsOf("example like picture imagine resembles suppose")},
	{told: setOf("cost costs pays price expensive"), opening: "The price of %s has more than one part.", hints: stemsOf("cost price pay money expensive cheap memory time power bill")},
	{told: setOf("limits limit limitations"), opening: "Where %s ends is as telling as what it can do.", hints: stemsOf("limit cannot fail bound loss fewer ceiling less")},
	{told: setOf("measure metric"), opening: "Whether %s helps is a matter of what you look at.", hints: stemsOf("measure per cent average count compare test"), figures: true},
	{told: setOf("objection criticism drawback drawbacks"), opening: "Not all is well with %s, and the text does not hide it.", hints: stemsOf("but however though objection problem doubt wrong")},
	{told: setOf("connected related relation"), opening: "%s touches on most of the other points."},
	{told: setOf("larger scale grow bigger"), opening: "With size, %s does not stay the same.", hints: stemsOf("scale grow larger thousand million square size"), figures: true},
	{told: setOf("mistakes mistake misunderstood pitfalls"), opening: "Most mistakes with %s come from one of a few causes.", hints: stemsOf("mistake wrong fail error forget assume wrongly careful")},
	{told: setOf("alternative alternatives instead choose"), opening: "There are other ways than %s, each with its own price.", hints: stemsOf("instead alternative rather choose compare different")},
	{told: setOf("try experiment"), opening: "To get a feeling for %s, begin with what is close to it.", hints: stemsOf("example simple small try suppose")},
	{told: setOf("work works detail how"), opening: "To see how %s works, look at what is around it."},
	{told: setOf("practice practical follows"), opening: "What %s comes to in practice is told by what is around it.", hints: stemsOf("practice practical user operator engineer day")},
}

// plainKind is that of any other question.
var plainKind = kind{opening: "You ask about %s, so let us look at that."}

func kindOf(question string) *kind {
	words := strings.FieldsFunc(strings.ToLower(quoted.ReplaceAllString(question, "")), notWord)
	for i := range kinds {
		if slices.ContainsFunc(words, func(word string) bool { return kinds[i].told[word] }) {
			return &kinds[i]
		}
	}
	return &plainKind
}

// generalSentences say something where the prompt holds nothing to explain.
var generalSentences = []string{
	"A first step is to say what the words stand for, since the same word can mean different things to different people.",
	"The next is to ask what the thing is for, because a purpose explains more than a definition does.",
	"It also helps to name what it is not, and where the border runs.",
	"An example makes most of this concrete, and a small one will do.",
	"Numbers help as well, even rough ones, since they show which parts matter and which can be left aside.",
	"Where something has a history, it pays to ask what people did before, and why they gave it up.",
	"Every choice has a price, and a good explanation says who pays it.",
	"Then come the limits: the cases in which it no longer works, and what happens there.",
	"Two things that look alike should be compared side by side, with the difference stated in one sentence.",
	"Whatever cannot be checked should be marked as an opinion.",
	"A picture or a table can replace a page of words.",
	"At the end stands the question of what to do next, which only the reader can answer.",
	"If you add a paragraph of text on the subject, I can explain that text instead.",
	"You can also tell me what you know about it already, so that I begin at the right place.",
}

// pick draws one of some sentences and fills it.
func pick(rng *rand.Rand, sentences []string, subject string) string {
	return fill(sentences[rng.IntN(len(sentences))], subject)
}

func fill(sentence, subject string) string { return strings.ReplaceAll(sentence, "%s", subject) }
