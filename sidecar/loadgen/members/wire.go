package members

import (
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/stats"
)

// TargetOptions describe the server under load. Its key, headers and client certificate are not included: a member
// reads them from its own configuration.
type TargetOptions struct {
	Twin     bool         `json:"twin,omitempty"` // the target of lane twin, which has its own key
	URL      string       `json:"url"`
	Model    string       `json:"model,omitempty"`
	CA       []byte       `json:"ca,omitempty"`
	TokenIDs bool         `json:"token_ids,omitempty"`
	Routing  chat.Routing `json:"routing,omitzero"`
	// Fields, MinTokens, Priority and Planned are the fields of the same names in [chat.Options].
	Fields    map[string]any `json:"fields,omitempty"`
	MinTokens int            `json:"min_tokens,omitempty"`
	Priority  string         `json:"priority,omitempty"`
	Planned   bool           `json:"planned,omitempty"`
	chat.Settings
}

// order hands a turn to a member.
type order struct {
	By           string         `json:"by"` // id of the coordinator
	ID           string         `json:"id"`
	Target       TargetOptions  `json:"target"`
	Conversation string         `json:"conversation,omitempty"`
	Token        string         `json:"token,omitempty"`
	Instance     string         `json:"instance,omitempty"`
	MaxTokens    int            `json:"max_tokens"`
	Exact        bool           `json:"exact,omitempty"`
	Salt         uint64         `json:"salt,omitempty"`
	Model        string         `json:"model,omitempty"`
	WantsPrompt  bool           `json:"wants_prompt,omitempty"`
	TraceParent  string         `json:"traceparent,omitempty"`
	Messages     []chat.Message `json:"messages"`
}

// call is a message of the coordinator: once a second to all members, which answer it, or to one of them about turns.
type call struct {
	By      string        `json:"by"`
	Version string        `json:"version"`
	At      time.Duration `json:"at"`               // the coordinator's clock, which the answer repeats
	Cancel  []string      `json:"cancel,omitempty"` // turns that are no longer waited for
	Have    []string      `json:"have,omitempty"`   // turns whose results have arrived
	Show    []string      `json:"show,omitempty"`   // turns whose texts are on a screen
}

// report is a message of a member.
type report struct {
	Member string        `json:"member"` // its id, another one after each start
	At     time.Duration `json:"at"`     // its clock, since its start
	Beat   *beat         `json:"beat,omitempty"`
	Turns  []progress    `json:"turns,omitempty"`
}

// beat answers a call to all members.
type beat struct {
	Name    string           `json:"name"`
	Version string           `json:"version"`
	Started time.Time        `json:"started"`
	Leaving bool             `json:"leaving,omitempty"`
	Call    time.Duration    `json:"call"`            // call.At
	Files   int              `json:"files,omitempty"` // open files available to turns; 0: no limit
	Cores   int              `json:"cores"`
	Client  api.ClientHealth `json:"client"`
	Lag     stats.Lag        `json:"lag"`  // since the last beat
	Lost    int64            `json:"lost"` // results that no coordinator took
}

// progress is what a member has of a turn so far. It is complete each time, so that lost messages cost nothing.
type progress struct {
	ID     string        `json:"id"`
	Sent   time.Duration `json:"sent,omitempty"` // by the member's clock; 0: it is not sent yet
	TTFT   time.Duration `json:"ttft,omitempty"` // 0: no token has arrived
	Worker string        `json:"worker,omitempty"`
	Tokens int           `json:"tokens,omitempty"` // arrived so far
	Prompt []uint32      `json:"prompt,omitempty"` // ids of the prompt's tokens; only with the first token
	Text   string        `json:"text,omitempty"`   // received so far, for a text that is on a screen
	Result *result       `json:"result,omitempty"`
}

// result is that of a turn, with times of the member's clock.
type result struct {
	Sent  time.Duration `json:"sent"`
	Ended time.Duration `json:"ended"`
	chat.Result
}
