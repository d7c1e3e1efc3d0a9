// Package corpus holds the texts of conversations: the starters, ten original articles
// embedded in the program, and the questioner that asks about them.
package corpus

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
)

//go:embed starters/*.md
var embedded embed.FS

// Starter is a text that opens conversations. Its Text is byte-identical at the beginning
// of every conversation about it, which makes it a shared prefix.
type Starter struct {
	ID    string // stable, valid in a URL
	Topic string
	Text  string
	// Script holds the user's turns of a question set's conversation, in order. Text is then empty.
	Script []string `json:",omitempty"`
}

// Corpus is a set of at least one starter, and of any number of openings made from them. It
// does not change and is safe for concurrent use.
type Corpus struct {
	Name     string
	Starters []Starter
	Length   int // tokens of every opening; 0: the length of its text, see [Corpus.Sized]

	whole *Corpus // the corpus that this one was sized from; may be nil

	mu      sync.Mutex
	recipes map[int]*recipe // by the starter's index; made when first needed
}

// Builtin returns the ten embedded articles, in the order of their ids.
func Builtin() (*Corpus, error) {
	files, err := fs.Glob(embedded, "starters/*.md")
	if err != nil {
		return nil, err
	}
	c := &Corpus{Name: "built-in articles"}
	for _, name := range files {
		text, err := embedded.ReadFile(name)
		if err != nil {
			return nil, err
		}
		s, err := parse(strings.TrimSuffix(path.Base(name), ".md"), string(text))
		if err != nil {
			return nil, err
		}
		c.Starters = append(c.Starters, s)
	}
	return c, nil
}

// parse reads the topic from the article's heading.
func parse(id, text string) (Starter, error) {
	text = strings.TrimSpace(text)
	heading, _, _ := strings.Cut(text, "\n")
	topic, ok := strings.CutPrefix(heading, "# ")
	if !ok {
		return Starter{}, fmt.Errorf("starter %s: its first line is %q, not a heading", id, heading)
	}
	return Starter{ID: id, Topic: topic, Text: text}, nil
}
