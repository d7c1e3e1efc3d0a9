// Package corpus holds what conversations are about: the starters, ten original
// articles embedded in the program, and the questioner that asks about them.
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

// Starter is a text that opens conversations. Its Text stands byte-identical at
// the beginning of every conversation on it, which is what makes it a shared prefix.
type Starter struct {
	ID    string // stable, fit for a URL
	Topic string
	Text  string
	// Script is the user's turns of a question set's conversation, in their order; then there is no Text.
	Script []string `json:",omitempty"`
}

// Corpus is a set of starters, at least one, and of as many openings made of them as
// are asked for. It does not change and is safe for concurrent use.
type Corpus struct {
	Name     string
	Starters []Starter
	Length   int // tokens of every opening; 0: as many as its text has, see [Corpus.Sized]

	whole *Corpus // what it was cut from; nil: nothing

	mu      sync.Mutex
	recipes map[int]*recipe // by the starter's place; made at the first need
}

// Builtin gives the ten articles of the program, in the order of their ids.
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

// parse takes the topic from the article's heading.
func parse(id, text string) (Starter, error) {
	text = strings.TrimSpace(text)
	heading, _, _ := strings.Cut(text, "\n")
	topic, ok := strings.CutPrefix(heading, "# ")
	if !ok {
		return Starter{}, fmt.Errorf("starter %s: its first line is %q, not a heading", id, heading)
	}
	return Starter{ID: id, Topic: topic, Text: text}, nil
}
