package members

import (
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/shadow/live"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// presence is what a member says of itself whenever it renews its lease.
type presence struct {
	ID      string              `json:"id"` // of the lease: a member that lost one comes back as another
	Name    string              `json:"name"`
	Version string              `json:"version"`
	Started time.Time           `json:"started"`
	Leaves  bool                `json:"leaves,omitempty"` // it wants no more than it has, and then to go
	Gone    bool                `json:"gone,omitempty"`   // it has gone: its lease is over
	Health  api.ClientHealth    `json:"health"`
	Lag     stats.Lag           `json:"lag"`             // since the last of these
	Files   int                 `json:"files,omitempty"` // that its conversations may open; 0: it has no bound
	Lost    int64               `json:"lost,omitempty"`  // turns that were not handed over, ever
	Lanes   map[string]standing `json:"lanes,omitempty"`
}

// standing is where a member is in a lane.
type standing struct {
	Run    string `json:"run,omitempty"`  // that it is in; empty: in none
	Over   string `json:"over,omitempty"` // the run that has ended here last
	Grant  int64  `json:"grant,omitempty"`
	Active int    `json:"active,omitempty"`
	Begun  int64  `json:"begun,omitempty"`
	// Uniform says that every conversation in progress was drawn from what the order says.
	Uniform bool  `json:"uniform,omitempty"`
	Step    int64 `json:"step,omitempty"` // the latest that it has heard of
}

// end says how a run is to end.
type end string

const (
	goesOn  end = ""
	drains  end = "drain" // the turns in flight end
	endsNow end = "now"
)

// order is what the members of a lane are to do.
type order struct {
	Lane   string    `json:"lane"`
	Run    string    `json:"run"` // empty: nothing
	End    end       `json:"end,omitempty"`
	Next   int64     `json:"next"` // no number from here on was given to anybody
	Seed   uint64    `json:"seed"`
	Opened int64     `json:"opened,omitempty"`
	Midway int64     `json:"midway,omitempty"`
	Nonce  string    `json:"nonce,omitempty"`
	Began  time.Time `json:"began"`
	Taken  bool      `json:"taken,omitempty"` // nobody takes it over
	// Settings are those of all members together.
	Settings workload.Settings `json:"settings"`
	Corpus   string            `json:"corpus"` // digest of the texts
	Step     api.StepRecord    `json:"step"`
	Target   TargetOptions     `json:"target"`
	Followup FollowupOptions   `json:"followup"`
	// Instances are what turns are pinned to, one after the other; empty: nothing.
	Instances []string `json:"instances,omitempty"`
	// Shadow is how prompts are cut for the lane's shadow; nil: it follows nothing.
	Shadow *live.BlockSpec `json:"shadow,omitempty"`
}

// TargetOptions are the server under load. Its key, headers and client certificate are not in it:
// a member has them from its own configuration.
type TargetOptions struct {
	Twin     bool          `json:"twin,omitempty"` // its key is the one for the lane twin
	URL      string        `json:"url"`
	Endpoint func() string `json:"-"` // where a run is to go that begins now; nil: to the URL
	Model    string        `json:"model,omitempty"`
	CA       []byte        `json:"ca,omitempty"`
	TokenIDs bool          `json:"token_ids,omitempty"`
	// Fields and MinTokens are those of [chat.Options].
	Fields            map[string]any `json:"fields,omitempty"`
	MinTokens         int            `json:"min_tokens,omitempty"`
	ConnectTimeout    time.Duration  `json:"connect_timeout"`
	FirstTokenTimeout time.Duration  `json:"first_token_timeout"`
	StallTimeout      time.Duration  `json:"stall_timeout"`
	TurnTimeout       time.Duration  `json:"turn_timeout"`
	AnswerMemory      int64          `json:"answer_memory,omitempty"` // that of [workload.Options], of each member
}

// FollowupOptions are who asks the questions from turn 2 on: a fixed text, a model, or with neither
// the built-in questioner. The model's key comes from the member's own environment.
type FollowupOptions struct {
	Text    string        `json:"text,omitempty"`
	URL     string        `json:"url,omitempty"`
	Model   string        `json:"model,omitempty"`
	CA      []byte        `json:"ca,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"`
}

// handed is a turn with its texts, on its way to the store. Its conversation comes with it: what a
// member that was killed had not reported yet is otherwise not known.
type handed struct {
	Run          string           `json:"run"`
	Turn         api.Turn         `json:"turn"`
	Conversation api.Conversation `json:"conversation"`
	Shape        int              `json:"shape,omitempty"` // of the conversation
}

// report is what a member has to tell of a lane's run, about once a second.
type report struct {
	Lane string `json:"lane"`
	Run  string `json:"run"`
	// Member and Seq name the report: one that comes twice counts once.
	Member string    `json:"member"`
	Seq    int64     `json:"seq"`
	Sent   time.Time `json:"sent"` // by the member's clock

	Tokens        int                           `json:"tokens,omitempty"`        // that arrived
	Probes        int64                         `json:"probes,omitempty"`        // requests of no turn that were sent
	Turns         []measured                    `json:"turns,omitempty"`         // that ended
	Conversations []api.Conversation            `json:"conversations,omitempty"` // that began, got on or ended
	Underway      workload.Underway             `json:"underway"`
	Waited        map[api.Limiter]time.Duration `json:"waited,omitempty"` // since the run began
	Shadow        *live.Report                  `json:"shadow,omitempty"`
	Last          bool                          `json:"last,omitempty"` // the part is over
}

// divides says whether each of its halves is smaller.
func (r *report) divides() bool {
	return len(r.Turns) > 1 || len(r.Conversations) > 1 || r.Shadow != nil && len(r.Shadow.Events) > 1
}

// halves are two reports that tell the same, in this order.
func (r report) halves() (first, second report) {
	turns, conversations := len(r.Turns)/2, len(r.Conversations)/2
	first, second = r, r
	first.Turns, second.Turns = r.Turns[:turns], r.Turns[turns:]
	first.Conversations, second.Conversations = r.Conversations[:conversations], r.Conversations[conversations:]
	first.Shadow, second.Shadow = r.Shadow.Split()
	first.Last, second.Tokens, second.Probes = false, 0, 0
	return first, second
}

// measured is a turn as the window takes it. Its own figures are exact; of its inter-token
// latencies, which are many, it has how many tokens had which, to 0.4 %.
type measured struct {
	Row    api.Turn    `json:"row"`              // without texts
	Number int64       `json:"number"`           // of the conversation
	Shape  int         `json:"shape,omitempty"`  // of the conversation
	Chunks int         `json:"chunks,omitempty"` // content chunks
	ITL    []stats.Gap `json:"itl,omitempty"`
}

// turn is the turn as the lane takes it.
func (m *measured) turn() lane.RemoteTurn {
	s := stats.SampleOf(&m.Row)
	s.ITL, s.ITLEstimated, s.Chunks = m.ITL, m.Row.ITLEstimated, m.Chunks
	return lane.RemoteTurn{Sample: s, Row: m.Row, Number: m.Number, Shape: m.Shape}
}
