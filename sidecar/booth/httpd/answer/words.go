package answer

import (
	"slices"
	"strings"
	"unicode"
)

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func notWord(r rune) bool { return !isWord(r) }

// stopWords say nothing of what a text is about.
var stopWords = setOf(`about above after again all also although always and another any anything are around ask
	because been before being below between both but came can cannot come could did does doing done down each
	either else even ever every explain for from get give given goes going had has have her here him his how
	however into its itself just last let like made make makes many may mean means mention mentioned might more
	most much must need never next not nothing now off often once one only other our out over own part people
	perhaps please point question rather really said same say says shall she should since some something still
	such take tell text than that the their them then there these they thing things this those though through
	thus too two under until upon use used using very was way well were what when where whether which while who
	whose why will with within without would you your article elaborate continue detail details further`)

// questionWords are telling in an article, but not in a question about it.
var questionWords = setOf(`answer behave clear deeper describe described example first follow follows idea ideas look
	number numbers one pay practice practical simple somebody someone ten understand understood word words work
	works year years`)

// stems are the distinct stems of a text's telling words.
func stems(text string) []string {
	var all []string
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), notWord) {
		if len(word) > 2 && !stopWords[word] {
			all = append(all, stem(word))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func stemsOf(text string) map[string]bool { return setOf(strings.Join(stems(text), " ")) }

var suffixes = []string{"ations", "ation", "ions", "ion", "ings", "ing", "ied", "ies", "ed", "es", "ers", "er", "ly", "s", "e", "y"}

// stem takes one ending off a word, roughly: it need only bring the forms of a
// word together.
func stem(word string) string {
	for _, suffix := range suffixes {
		if short, ok := strings.CutSuffix(word, suffix); ok && len(short) > 3 {
			return short
		}
	}
	return word
}

// pronouns near the beginning of a sentence, and words and pairs of words at the
// very beginning, refer to what stands before it.
var (
	pronouns = setOf("it they them this these those he she his her him their its such that")
	openers  = setOf(`and but so or nor yet then thus hence therefore however instead otherwise both neither either
		another others one still also too again meanwhile moreover nevertheless conversely consequently worse
		indeed here there none each some certain many most more few later earlier yes no`)
	pairs = setOf(`the-first the-second the-third the-fourth the-last the-latter the-former the-other the-others
		the-same the-result the-answer the-reason the-next the-rest the-difference the-effect the-point the-two
		in-fact for-example for-instance as-a by-contrast in-contrast below-it above-it without-it what-follows`)
)

const pronounWithin = 5 // words

func leans(text string) bool {
	words := strings.FieldsFunc(strings.ToLower(text), notWord)
	if len(words) < 2 {
		return true
	}
	for _, word := range words[:min(len(words), pronounWithin)] {
		if pronouns[word] {
			return true
		}
	}
	return openers[words[0]] || pairs[words[0]+"-"+words[1]]
}

// lowerFirst makes a heading fit for the middle of a sentence, unless it begins
// with an abbreviation.
func lowerFirst(s string) string {
	r := []rune(s)
	if len(r) > 0 && (len(r) == 1 || !unicode.IsUpper(r[1])) {
		r[0] = unicode.ToLower(r[0])
	}
	return string(r)
}

func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, "'") + `"` }
