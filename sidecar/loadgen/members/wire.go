package members

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/shadow/live"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// presence is what a member writes whenever it renews its lease.
type presence struct {
	// Member is what the API shows. A member that is leaving gets no more numbers and ends with its conversations.
	api.Member
	Gone  bool                `json:"gone,omitempty"`  // it has left; its lease has ended
	Lag   stats.Lag           `json:"lag"`             // since the last presence
	Files int                 `json:"files,omitempty"` // open files available to its conversations; 0: no limit
	Lanes map[string]standing `json:"lanes,omitempty"`
}

// standing is the state of a member on a lane.
type standing struct {
	Run    string `json:"run,omitempty"`  // the run that it holds; empty: none
	Over   string `json:"over,omitempty"` // the last run that has ended on the member
	Grant  int64  `json:"grant,omitempty"`
	Active int    `json:"active,omitempty"`
	Begun  int64  `json:"begun,omitempty"`
	// Uniform is true if every conversation in progress was drawn from the order's settings and texts.
	Uniform bool  `json:"uniform,omitempty"`
	Step    int64 `json:"step,omitempty"` // the step of the order that it has
}

// end is how a run is to end.
type end string

const (
	endNone   end = ""
	endDrain  end = "drain" // turns in flight are completed
	endCancel end = "now"
)

// order defines the run of a lane for all members. An empty Run means that the lane has none.
type order struct {
	lane.ResumedRun
	End      end             `json:"end,omitempty"`
	Next     int64           `json:"next"`   // the first number that has not been given
	Digest   string          `json:"corpus"` // of the texts
	Target   TargetOptions   `json:"target"`
	Followup FollowupOptions `json:"followup"`
	// Instances are the worker instances that turns are pinned to in turn; empty: turns are not pinned.
	Instances []string `json:"instances,omitempty"`
	// Shadow defines how prompts are divided into blocks for the lane's shadow; nil: no turn is
	// followed.
	Shadow *live.BlockSpec `json:"shadow,omitempty"`
}

// TargetOptions describe the server under load. Its key, headers and client certificate are not
// included: a member reads them from its own configuration.
type TargetOptions struct {
	Twin     bool          `json:"twin,omitempty"` // the target of lane twin, which has its own key
	URL      string        `json:"url"`
	Endpoint func() string `json:"-"` // returns the address of a run that begins now; nil: URL
	Model    string        `json:"model,omitempty"`
	CA       []byte        `json:"ca,omitempty"`
	TokenIDs bool          `json:"token_ids,omitempty"`
	Routing  Routing       `json:"routing,omitzero"`
	// Fields, MinTokens and Priority are the fields of the same names in [chat.Options].
	Fields            map[string]any `json:"fields,omitempty"`
	MinTokens         int            `json:"min_tokens,omitempty"`
	Priority          string         `json:"priority,omitempty"`
	ConnectTimeout    time.Duration  `json:"connect_timeout"`
	FirstTokenTimeout time.Duration  `json:"first_token_timeout"`
	StallTimeout      time.Duration  `json:"stall_timeout"`
	TurnTimeout       time.Duration  `json:"turn_timeout"`
	AnswerMemory      int64          `json:"answer_memory,omitempty"` // of each member; see [workload.Options]
}

// Routing has the settings that concern the router in front of the engines, under the names of the configuration.
type Routing struct {
	Router       string       `json:"router,omitempty"`        // empty: it is recognized
	WorkerHeader string       `json:"worker_header,omitempty"` // empty: those of known routers
	Session      chat.Session `json:"session,omitzero"`
	RequestID    string       `json:"request_id,omitempty"` // auto, on or off; empty: auto
	Direct       bool         `json:"direct,omitempty"`     // a Dynamo that answers only requests that name their worker
}

// FollowupOptions select the source of the questions from turn 2 on: a fixed text, a model, or with
// neither the built-in questioner. The model's key comes from the member's own environment.
type FollowupOptions struct {
	Text    string        `json:"text,omitempty"`
	URL     string        `json:"url,omitempty"`
	Model   string        `json:"model,omitempty"`
	CA      []byte        `json:"ca,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"`
}

// handedTurn is a turn with its texts, without its inter-token latencies, on its way to the store. It
// includes the conversation, which a member that was killed may not have reported.
type handedTurn struct {
	Run          string           `json:"run"`
	Turn         workload.Turn    `json:"turn"`
	Conversation api.Conversation `json:"conversation"`
}

// noRun returns the order of a lane without a run.
func noRun(name string) order {
	return order{ResumedRun: lane.ResumedRun{Task: lane.Task{Lane: name}}}
}

// report is a member's report on a lane's run, about once a second.
type report struct {
	Lane string `json:"lane"`
	Run  string `json:"run"`
	// Member and Seq identify the report, so that one that is delivered twice counts once.
	Member string    `json:"member"`
	Seq    int64     `json:"seq"`
	Sent   time.Time `json:"sent"` // by the member's clock

	Tokens int   `json:"tokens,omitempty"` // that arrived
	Probes int64 `json:"probes,omitempty"` // requests of no turn that were sent
	// Turns are those that ended, without texts. Their figures are exact, except for inter-token
	// latencies: those are a histogram with a resolution of 0.4 %.
	Turns         []workload.Turn               `json:"turns,omitempty"`
	Conversations []api.Conversation            `json:"conversations,omitempty"` // that began, progressed or ended
	Underway      workload.Underway             `json:"underway"`
	Waited        map[api.Limiter]time.Duration `json:"waited,omitempty"` // since the run began
	Shadow        *live.Report                  `json:"shadow,omitempty"`
	Last          bool                          `json:"last,omitempty"` // the part has ended
}

// divides reports whether each of the report's halves is smaller.
func (r *report) divides() bool {
	return len(r.Turns) > 1 || len(r.Conversations) > 1 || r.Shadow != nil && len(r.Shadow.Events) > 1
}

// halves returns two reports with the same content, in this order.
func (r report) halves() (first, second report) {
	turns, conversations := len(r.Turns)/2, len(r.Conversations)/2
	first, second = r, r
	first.Turns, second.Turns = r.Turns[:turns], r.Turns[turns:]
	first.Conversations, second.Conversations = r.Conversations[:conversations], r.Conversations[conversations:]
	first.Shadow, second.Shadow = r.Shadow.Split()
	first.Last, second.Tokens, second.Probes = false, 0, 0
	return first, second
}

// texts is a corpus as it is stored on the server.
type texts struct {
	Name     string           `json:"name"`
	Starters []corpus.Starter `json:"starters"`
	Length   int              `json:"length"`
}

// writeTexts stores a corpus under its digest, which it returns. A corpus that is stored is not
// written again.
func (b *bus) writeTexts(ctx context.Context, c *corpus.Corpus) (digest string, err error) {
	whole := c.Uncut()
	data, err := json.Marshal(texts{Name: whole.Name, Starters: whole.Starters, Length: c.Length})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	digest = hex.EncodeToString(sum[:])
	if _, err := b.texts.GetInfo(ctx, digest); err == nil {
		return digest, nil
	}
	_, err = b.texts.PutBytes(ctx, digest, data)
	return digest, err
}

// readTexts returns the corpus of a digest.
func (b *bus) readTexts(ctx context.Context, digest string) (*corpus.Corpus, error) {
	data, err := b.texts.GetBytes(ctx, digest)
	if err != nil {
		return nil, fmt.Errorf("the texts of the run: %w", err)
	}
	var t texts
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, fmt.Errorf("the texts of the run: %w", err)
	}
	return (&corpus.Corpus{Name: t.Name, Starters: t.Starters}).Sized(t.Length), nil
}
