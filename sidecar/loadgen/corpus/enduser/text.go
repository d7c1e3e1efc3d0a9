package enduser

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	openai "github.com/sashabaranov/go-openai"
)

const (
	maxAnswer = 6000 // bytes of the last answer in the prompt: its end, which has the newest thoughts
	maxAsked  = 6    // earlier questions in the prompt
)

// The role of the model. %s is the topic. The request is at the end of the prompt, where models
// follow it best.
const (
	role = "You are a visitor at a trade fair, curious and friendly, at home with computers and new to this subject: " +
		"%s. " +
		"An expert is explaining it to you, and you read the end of the expert's last answer. " +
		"You want to know more about something specific in it, and say so in one sentence of at most thirty words, " +
		"in the language of the answer, without quotation marks and without anything in front of it."
	alreadyAsked = " You have asked this already, so choose something else:"
	request      = "Ask your one follow-up question about this explanation. Reply with the question only."
)

func prompt(topic string, asked []string, answer string) []openai.ChatCompletionMessage {
	system := fmt.Sprintf(role, topic)
	if len(asked) > 0 {
		system += alreadyAsked
		for _, q := range asked[max(0, len(asked)-maxAsked):] {
			system += "\n- " + clip(q, maxQuestion)
		}
	}
	return []openai.ChatCompletionMessage{
		{Role: openai.ChatMessageRoleSystem, Content: system},
		{Role: openai.ChatMessageRoleUser, Content: end(answer) + "\n\n" + request},
	}
}

// end returns the end of an answer, from the beginning of a sentence.
func end(answer string) string {
	answer = strings.TrimSpace(strings.ToValidUTF8(answer, ""))
	if len(answer) <= maxAnswer {
		return answer
	}
	answer = answer[len(answer)-maxAnswer:]
	if at := sentenceEnd.FindStringIndex(answer[:maxAnswer/2]); at != nil {
		return answer[at[1]:]
	}
	return strings.ToValidUTF8(answer, "") // the cut may be within a character
}

var sentenceEnd = regexp.MustCompile(`[.!?]["')\]]*\s+|\n+|[。！？]`)

var (
	thought = regexp.MustCompile(`(?s)^.*</think(?:ing)?>`)
	marks   = regexp.MustCompile(`^(?:[-*•>#_]+\s*|\d{1,2}[.)]\s+)+`)
	label   = regexp.MustCompile(`(?i)^(?:(?:my|your|the|a|one)\s+)?` +
		`(?:(?:follow[- ]?up|next|short|possible)\s+)*` +
		`(?:question|follow[- ]?up|visitor|user|q)\s*\d{0,2}\s*:\s*`)
)

const questionMarks = "?？؟"

// clean extracts one question from a model's output, without thoughts, lists, labels, quotation
// marks and remarks. It returns false where there is no question, or only one that is too long.
func clean(output string) (string, bool) {
	output = thought.ReplaceAllString(strings.ToValidUTF8(output, ""), "")
	for line := range strings.Lines(output) {
		if !strings.ContainsAny(line, questionMarks) {
			continue
		}
		separator := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
		line = strings.Join(strings.FieldsFunc(line, separator), " ")
		line = strings.ReplaceAll(line, "**", "")
		line = label.ReplaceAllString(marks.ReplaceAllString(line, ""), "")
		last := strings.LastIndexAny(line, questionMarks)
		_, size := utf8.DecodeRuneInString(line[last:])
		line = shortened(unquoted(strings.TrimSpace(line[:last+size])))
		if utf8.RuneCountInString(line) <= maxQuestion && strings.ContainsFunc(line, unicode.IsLetter) {
			return line, true
		}
	}
	return "", false
}

var pairs = []struct{ open, shut string }{
	{`"`, `"`}, {"“", "”"}, {"„", "“"}, {"«", "»"}, {"'", "'"}, {"‘", "’"}, {"`", "`"},
}

// unquoted removes an opening mark whose closing one was cut off with the text after the
// question.
func unquoted(s string) string {
	for _, p := range pairs {
		rest, found := strings.CutPrefix(s, p.open)
		unpaired := p.open != p.shut && !strings.Contains(rest, p.shut) ||
			p.open == p.shut && strings.Count(rest, p.shut)%2 == 0
		if found && unpaired {
			return strings.TrimSpace(rest)
		}
	}
	return s
}

// shortened returns the last sentence of a text that is too long.
func shortened(s string) string {
	if utf8.RuneCountInString(s) <= maxQuestion {
		return s
	}
	ends := sentenceEnd.FindAllStringIndex(s, -1)
	for i := len(ends) - 1; i >= 0; i-- {
		if rest := s[ends[i][1]:]; rest != "" {
			return rest
		}
	}
	return s
}

// clip shortens a text to one line of at most so many characters.
func clip(s string, most int) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s[:min(len(s), 8*most)], "")), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
