package workload

import (
	"sync"
	"time"
	"unique"

	openai "github.com/sashabaranov/go-openai"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// Conversation is one conversation in progress. Its exported fields do not change. Turn is safe for
// concurrent use.
type Conversation struct {
	ID      string
	Number  int64 // in the run, from 0
	Shape   int   // number of changes of settings or corpus that affect draws, since the run began
	Topic   string
	Starter string
	Planned int // number of turns
	Started time.Time

	draw     drawn
	messages []openai.ChatCompletionMessage
	answers  int // bytes of all answers in messages
	// opening is the first message. Few openings differ and each is long, so conversations share
	// their memory. The handle keeps the shared text in memory.
	opening  unique.Handle[string]
	question string // the next question
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
	// Instance is the worker instance (decimal id) that the turn is pinned to, "" if the router
	// chooses one. It is set before a [RoutingObserver] receives the turn, and empty without one.
	Instance string

	prompt []openai.ChatCompletionMessage
}

// Prompt returns the messages that the turn sends. They are shared and must not be modified.
func (t *Turn) Prompt() []openai.ChatCompletionMessage { return t.prompt }

// Turn returns the turn under way, nil between two turns.
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

// RoutingObserver receives a turn at the times at which a router receives it and decides on it. It
// is called from the goroutine of the conversation. It must be safe for concurrent use, and must
// not block, since the call is part of the turn's measured times. For each turn that is passed to
// Sent, [Observer].TurnEnded is called at the end.
type RoutingObserver interface {
	// Sent is called right before a turn is sent. The function that it returns is called with the
	// ids of the prompt's tokens, which it may keep, if the target reports them. nil: the ids are
	// not requested from the target.
	Sent(*Turn) func(ids []uint32)
	// FirstToken is called at the first content chunk. [chat.Live] then has the worker if the
	// target reports it.
	FirstToken(*Turn)
}

// Observer receives the events of a workload. Each is sent from the goroutine of the conversation
// concerned. It must be safe for concurrent use and return soon.
type Observer interface {
	ConversationStarted(*Conversation)
	TurnStarted(*Turn)
	Chunk(tokens int) // a content chunk arrived, in any turn
	TurnEnded(*Turn, *chat.Result)
	ConversationEnded(c *Conversation, status api.ConversationStatus, turnsDone int)
	// Active is called in order for each change of the number of conversations in progress, and for
	// each [Workload.Set], with the target at that moment. It must not call the workload.
	Active(actual, target int)
}
