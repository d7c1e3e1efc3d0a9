package workload

import (
	"sync"
	"time"
	"unique"

	openai "github.com/sashabaranov/go-openai"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// Conversation is one conversation in progress. Its exported fields do not
// change; Turn may be asked while it runs.
type Conversation struct {
	ID      string
	Number  int64 // k
	Shape   int   // how often settings or corpus had changed what it was drawn from, since the run began
	Topic   string
	Starter string
	Planned int // turns
	Started time.Time

	draw     drawn
	messages []openai.ChatCompletionMessage
	answers  int // bytes of the messages that are answers
	// opening is the first message. Few differ and each is long, so conversations
	// share them; a text is shared only as long as somebody holds its handle.
	opening  unique.Handle[string]
	question string // the next one
	asked    []string
	done     int

	mu   sync.Mutex
	turn *Turn
}

// Turn is one turn under way or just ended.
type Turn struct {
	Conversation *Conversation
	Number       int // from 1
	RequestID    string
	UserMessage  string // as the user typed it; the starter of turn 1 is left out
	Began        time.Time
	Live         chat.Live
	// Instance is the worker instance (decimal id) that it is pinned to, "" where the router
	// chooses one. It is set where there is a [Witness], before it hears of the turn.
	Instance string

	prompt []openai.ChatCompletionMessage
}

// Prompt are the messages that the turn sends. They are shared and must not be written.
func (t *Turn) Prompt() []openai.ChatCompletionMessage { return t.prompt }

// Turn is the turn under way, nil between two turns.
func (c *Conversation) Turn() *Turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turn
}

func (c *Conversation) setTurn(t *Turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn = t
}

// Witness hears of what a router hears of, at the moments when it does, from the goroutine
// of the conversation. It must be safe for concurrent use, and returns at once: the
// turn's measured times wait for it. Of each turn whose start it heard, it hears the end
// by [Observer].TurnEnded.
type Witness interface {
	// Sent comes right before a turn is sent. What it returns gets the ids of the prompt's
	// tokens where the target tells them, which are its own; nil: nobody wants them, and
	// the target is not asked.
	Sent(*Turn) func(ids []uint32)
	// FirstToken comes with the first content chunk, when [chat.Live] knows the worker if
	// the target tells it.
	FirstToken(*Turn)
}

// Observer is told what happens, from the goroutine of the conversation that it
// happens to. It must be safe for concurrent use and return soon.
type Observer interface {
	ConversationStarted(*Conversation)
	TurnStarted(*Turn)
	Chunk(tokens int) // a content chunk arrived, in whatever turn
	TurnEnded(*Turn, *chat.Result)
	ConversationEnded(c *Conversation, status api.ConversationStatus, turnsDone int)
	// Active is told of each change of the number of conversations in progress,
	// and of every [Workload.Set], in order, with the target at that moment. It
	// must not call the workload.
	Active(actual, target int)
}
