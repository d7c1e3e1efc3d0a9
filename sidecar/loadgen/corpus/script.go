package corpus

import (
	"context"
	"math/rand/v2"

	"kvbooth/sidecar/api"
)

// Scripted reports whether any of the texts is a question set's conversation.
func (c *Corpus) Scripted() bool {
	for _, s := range c.Starters {
		if len(s.Script) > 0 {
			return true
		}
	}
	return false
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
