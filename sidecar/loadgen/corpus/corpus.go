// Package corpus holds the texts of conversations: the starters, ten original articles
// embedded in the program, and the questioner that asks about them.
package corpus

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"

	"kvbooth/sidecar/api"
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
	counts  map[string]int  // tokens of texts and their parts; counted when first needed
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

// Scripted reports whether any of the texts is a question set's conversation.
func (c *Corpus) Scripted() bool {
	return slices.ContainsFunc(c.Starters, func(s Starter) bool { return len(s.Script) > 0 })
}

// Turns returns the range of a conversation's turns. settings is the range for texts without a
// script.
func (c *Corpus) Turns(settings api.Range) api.Range {
	if !c.Scripted() {
		return settings
	}
	all := api.Range{Min: api.MaxTurns}
	for _, s := range c.Starters {
		own := settings
		if n := len(s.Script); n > 0 {
			own = api.Range{Min: n, Max: n}
		}
		all = api.Range{Min: min(all.Min, own.Min), Max: max(all.Max, own.Max)}
	}
	return all
}

// Asker returns the name of the questioner in the corpus's conversations, for the status and for baselines.
func (c *Corpus) Asker(q Questioner) string {
	if c.Scripted() {
		return "the question set"
	}
	return q.Name()
}

// Asker returns the questioner of a conversation about the text: its script, or else q.
func (s Starter) Asker(q Questioner) Questioner {
	if len(s.Script) == 0 {
		return q
	}
	return script{q, s.Script}
}

// script asks the questions of a script in order, and then those of a questioner.
type script struct {
	Questioner
	questions []string
}

// Open returns the script's first question.
func (s script) Open(*rand.Rand, string) string { return s.questions[0] }

// Follow returns the script's next question.
func (s script) Follow(ctx context.Context, r *rand.Rand, topic string, asked []string, answer string) string {
	if len(asked) < len(s.questions) {
		return s.questions[len(asked)]
	}
	return s.Questioner.Follow(ctx, r, topic, asked, answer)
}
