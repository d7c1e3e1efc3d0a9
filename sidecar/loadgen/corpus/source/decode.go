package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"kvbooth/sidecar/api"
)

// document is one document of a place.
type document struct {
	name    string // path within the place, with slashes
	key     string // key in a bucket
	data    []byte
	problem string // why it was not read; empty after a success
}

// item is one text of a document.
type item struct {
	ID    string `json:"id"`
	Topic string `json:"topic"`
	Text  string `json:"text"`

	name   string   // document and position, for messages
	script []string // the user's turns of a question set; Text is then empty
}

const (
	maxTopic = 200  // characters
	maxRun   = 2000 // bytes of letters without a separator; longer than in any language
)

// extensions maps the extensions of documents to their decoders.
var extensions = map[string]func(document) ([]item, []api.SkippedItem){
	".jsonl": decodeLines,
	".json":  decodeJSON,
	".md":    decodeText,
	".txt":   decodeText,
}

// decode returns the texts of a document, and those that cannot be used with the reason.
func decode(d document) (items []item, skipped []api.SkippedItem) {
	read := extensions[strings.ToLower(path.Ext(d.name))]
	switch {
	case d.problem != "":
		return nil, []api.SkippedItem{{Name: d.name, Reason: d.problem}}
	case read == nil:
		return nil, []api.SkippedItem{{Name: d.name, Reason: "not a .jsonl, .json, .md or .txt"}}
	}
	d.data = bytes.TrimPrefix(d.data, []byte("\ufeff"))
	found, skipped := read(d)
	for _, it := range found {
		it.Text, it.Topic = strings.TrimSpace(it.Text), strings.TrimSpace(it.Topic)
		if reason := it.problem(); reason != "" {
			skipped = append(skipped, api.SkippedItem{Name: it.name, Reason: reason})
			continue
		}
		items = append(items, it)
	}
	return items, skipped
}

var (
	idForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
	notID  = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
)

// problem returns the reason why a text cannot be used, "" where there is none.
func (it item) problem() string {
	switch {
	case !idForm.MatchString(it.ID):
		return fmt.Sprintf("its id is %q; expected 1 to 100 letters, digits, dots, hyphens and underscores", clip(it.ID))
	case it.Topic == "":
		return "it has no topic"
	case utf8.RuneCountInString(it.Topic) > maxTopic || strings.ContainsFunc(it.Topic, unicode.IsControl):
		return fmt.Sprintf("its topic is not one line of at most %d characters", maxTopic)
	case len(it.script) > 0:
		return scriptProblem(it.script)
	case it.Text == "":
		return "it has no text"
	case !utf8.ValidString(it.Text):
		return "its text is not UTF-8"
	case strings.ContainsFunc(it.Text, isForbiddenControl):
		return "its text has control characters"
	case longestRun(it.Text) > maxRun:
		return fmt.Sprintf("it has a word of more than %d bytes", maxRun)
	}
	return ""
}

// longestRun returns the length in bytes of the longest run of letters and digits.
func longestRun(s string) (longest int) {
	begin := 0
	for i, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			longest = max(longest, i-begin)
			begin = i + utf8.RuneLen(r)
		}
	}
	return max(longest, len(s)-begin)
}

func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

// decodeLines reads one object a line. An invalid line does not affect the others.
func decodeLines(d document) (items []item, skipped []api.SkippedItem) {
	number := 0
	for line := range bytes.Lines(d.data) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		it, err := decodeObject(d, line, number)
		it.name = fmt.Sprintf("%s, line %d", d.name, number)
		if err != nil {
			skipped = append(skipped, api.SkippedItem{Name: it.name, Reason: err.Error()})
			continue
		}
		items = append(items, it)
	}
	return items, skipped
}

// decodeObject reads a text, or a conversation of a question set.
func decodeObject(d document, data []byte, number int) (item, error) {
	if it, found, err := script(d, data, number); found {
		if err == nil && len(it.script) == 0 {
			err = errors.New("it has no turn of a user")
		}
		return it, err
	}
	var it item
	if err := json.Unmarshal(data, &it); err != nil {
		return it, fmt.Errorf("not a JSON object with id, topic and text: %w", err)
	}
	return it, nil
}

// decodeJSON reads one object or a list of them.
func decodeJSON(d document) (items []item, skipped []api.SkippedItem) {
	elements := []json.RawMessage{d.data}
	if bytes.HasPrefix(bytes.TrimSpace(d.data), []byte("[")) {
		if err := json.Unmarshal(d.data, &elements); err != nil {
			return nil, []api.SkippedItem{{Name: d.name, Reason: "not JSON: " + err.Error()}}
		}
	}
	for i, element := range elements {
		it, err := decodeObject(d, element, i+1)
		it.name = fmt.Sprintf("%s, item %d", d.name, i+1)
		if err != nil {
			skipped = append(skipped, api.SkippedItem{Name: it.name, Reason: err.Error()})
			continue
		}
		items = append(items, it)
	}
	return items, skipped
}

// decodeText reads a text that is the whole document.
func decodeText(d document) ([]item, []api.SkippedItem) {
	base := strings.TrimSuffix(d.name, path.Ext(d.name))
	it := item{
		ID: strings.Trim(notID.ReplaceAllString(base, "-"), "-._"), Topic: topicOf(base),
		Text: strings.ReplaceAll(string(d.data), "\r\n", "\n"), name: d.name,
	}
	heading, _, _ := strings.Cut(strings.TrimSpace(it.Text), "\n")
	if topic, ok := strings.CutPrefix(heading, "# "); ok && path.Ext(d.name) != ".txt" {
		it.Topic = topic
	}
	return []item{it}, nil
}

// topicOf makes a topic from a path: the folder's name, or at the top the document's name.
func topicOf(base string) string {
	name := path.Base(base)
	if dir := path.Dir(base); dir != "." {
		name = path.Base(dir)
	}
	name = strings.TrimSpace(strings.NewReplacer("-", " ", "_", " ").Replace(name))
	if first, size := utf8.DecodeRuneInString(name); size > 0 {
		name = string(unicode.ToUpper(first)) + name[size:]
	}
	return name
}
