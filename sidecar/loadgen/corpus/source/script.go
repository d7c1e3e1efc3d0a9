package source

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/trace"
)

// script makes an item of a question set's object, with the user's turns in order. found is false for
// another object. number is the position in the document.
func script(d document, data []byte, number int) (it item, found bool, err error) {
	dialog, found, err := trace.ReadDialog(data)
	if !found {
		return it, false, nil
	}
	if err != nil {
		return it, true, fmt.Errorf("not a question set's conversation: %w", err)
	}
	for _, turn := range dialog.Turns {
		for _, m := range turn.Messages {
			if m.Role == trace.RoleUser {
				it.script = append(it.script, strings.TrimSpace(m.Text))
			}
		}
	}
	base := strings.TrimSuffix(d.name, path.Ext(d.name))
	it.Topic = cmp.Or(dialog.Topic, topicOf(base))
	id := cmp.Or(dialog.ID, fmt.Sprintf("%s-%d", base, number))
	it.ID = strings.TrimLeft(notID.ReplaceAllString(id, "-"), "-._")
	it.ID = it.ID[:min(len(it.ID), 100)]
	return it, true, nil
}

// scriptProblem returns the reason why a script cannot be used, "" where there is none.
func scriptProblem(turns []string) string {
	for i, turn := range turns {
		switch {
		case turn == "":
			return fmt.Sprintf("turn %d of the user is empty", i+1)
		case len(turn) > maxBytes:
			return fmt.Sprintf("turn %d of the user has %d bytes; the limit is %d", i+1, len(turn), maxBytes)
		case !utf8.ValidString(turn):
			return "its text is not UTF-8"
		case strings.ContainsFunc(turn, isForbiddenControl):
			return "its text has control characters"
		}
	}
	if len(turns) > api.MaxTurns {
		return fmt.Sprintf("it has %d turns of the user; the limit is %d", len(turns), api.MaxTurns)
	}
	return ""
}

// isForbiddenControl reports whether a rune is a control character other than white space.
func isForbiddenControl(r rune) bool {
	return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r)
}
