package workload

import (
	"sync"
	"time"
	"unique"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/sim/draw"
	"kvbooth/sidecar/sim/traffic"
)

// Conversation is one conversation in progress. Its exported fields do not change. Turn is safe for
// concurrent use.
type Conversation struct {
	ID string
	Draw
	Topic   string
	Starter string
	Planned int // number of turns
	Started time.Time

	intended time.Time // when the next turn is to be sent; zero: whenever it may be
	draw     drawn
	plan     *traffic.Conversation // nil: it is about a text of the corpus
	salt     uint64                // of the texts of a plan
	origin   time.Time             // from when the times of a plan count
	// scheduled is when the plan has the next turn sent; zero: once the turn before has ended.
	scheduled time.Time
	answer    chat.Message // to the latest turn of a plan
	limit     int          // of the answers of a plan without a limit of their own

	messages []chat.Message
	answers  int // memory of all answers in messages, in bytes
	// opening is the first message. Few openings differ and each is long, so conversations share
	// their memory. The handle keeps the shared text in memory.
	opening    unique.Handle[string]
	question   string    // the next question
	questioned time.Time // when that was there
	token      string    // of its session, as the server returned it last
	asked      []string
	done       int

	mu   sync.Mutex
	turn *LiveTurn
}

// Turn returns the turn under way, nil between two turns.
func (c *Conversation) Turn() *LiveTurn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turn
}

func (c *Conversation) setTurn(t *LiveTurn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn = t
}

// RoutingObserver receives what a router learns of one turn, and when. It is called from the
// goroutine of the conversation. It must not block, since the calls are part of the turn's measured
// times.
type RoutingObserver interface {
	// WantsIDs reports whether Routed must be called if the target can report ids.
	WantsIDs() bool
	// Routed receives the ids of the prompt's tokens, which it may keep.
	Routed(ids []uint32)
	// FirstToken is called at the first content chunk. The worker is empty if the target does not
	// report it.
	FirstToken(worker string)
	// Ended receives the turn with its outcome, before [Observer] does.
	Ended(t *api.Turn)
}

// Observer receives the events of a workload. Each is sent from the goroutine of the conversation
// concerned. It must be safe for concurrent use and return soon.
type Observer interface {
	ConversationStarted(*Conversation)
	// TurnStarted receives a turn before its request is sent. It calls [LiveTurn.Begin].
	TurnStarted(*LiveTurn)
	// FirstToken receives a turn at its first content chunk.
	FirstToken(*LiveTurn)
	// Arrived counts output tokens as they arrive, in any turn. At a turn's end a negative number may
	// correct earlier ones by the server's usage.
	Arrived(tokens int)
	TurnEnded(*Conversation, *LiveTurn)
	ConversationEnded(c *Conversation, status api.ConversationStatus, turnsDone int)
	// Active is called in order for each change of the number of conversations in progress, and for
	// each [Workload.Set], with the target at that moment. It must not call the workload.
	Active(actual int, target api.Level, settled bool)
}

// drawn holds the random choices for one conversation, and the text that opens it.
type drawn struct {
	draw.Conversation
	starter corpus.Starter
}

// newDraw draws conversation k. Its opening is one of those in circulation, or has the number own
// where every conversation has its own. rampedStart is the field RampedStart of [draw.Shape].
func newDraw(seed uint64, k, own, rampedStart int64, s Settings, c *corpus.Corpus) drawn {
	var text corpus.Starter
	d := draw.New(seed, k, own, draw.Shape{
		Turns: s.Turns, Openings: s.Openings.Of(c), MaxTokens: s.MaxTokens, Output: s.lengths(), RampedStart: rampedStart,
		Script: func(opening int64) int {
			text = c.Opening(seed, opening)
			return len(text.Script)
		},
	})
	return drawn{d, text}
}

// Opening returns the number of the text that opens conversation k, drawn with the settings and the
// corpus. own is the text's number where every conversation has its own.
func Opening(seed uint64, k, own int64, s Settings, c *corpus.Corpus) int64 {
	return draw.New(seed, k, own, draw.Shape{Turns: s.Turns, Openings: s.Openings.Of(c)}).Opening
}
