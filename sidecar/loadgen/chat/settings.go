package chat

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Settings are the settings of a connection that do not depend on the server. The configuration reads their tags, and
// members receive them as JSON.
type Settings struct {
	ConnectTimeout    time.Duration `json:"connect_timeout" default:"5s" min:"100ms" max:"5m" help:"Timeout for connecting."`                                                                                                                                                                                      // TLS included; 0 means 5 s
	FirstTokenTimeout time.Duration `json:"first_token_timeout" default:"120s" min:"100ms" max:"1h" help:"Timeout for the first token of an answer."`                                                                                                                                                              // from sending to the first content chunk; 0 means 120 s
	StallTimeout      time.Duration `json:"stall_timeout" default:"30s" min:"100ms" max:"1h" help:"Timeout between two tokens of an answer."`                                                                                                                                                                      // between two non-empty events of the stream; 0 means 30 s
	TurnTimeout       time.Duration `json:"turn_timeout" default:"10m" min:"100ms" max:"24h" help:"Timeout for a complete answer."`                                                                                                                                                                                // from sending to the end of the answer; 0 means 10 min
	AnswerMemory      int           `json:"answer_memory,omitempty" default:"536870912" min:"16777216" max:"1099511627776" help:"Maximum bytes of memory of all answers in progress, with their copies and garbage, of a lane and of a member. Half of it is text. A turn beyond it ends with the error overrun."` // the limit of a [TextBudget]; 0: none
}

// Routing has the settings that concern the router in front of the engines. They may differ between the routers of one
// trial.
type Routing struct {
	Router       string  `json:"router,omitempty" oneof:"smg litellm aibrix llm-d vllm-router sglang-router dynamo production-stack ray-serve envoy" help:"Router in front of the engines, but for arms with one of their own. Default: recognized by its answers and metrics, as that of a twin always is."`
	WorkerHeader string  `json:"worker_header,omitempty" form:"header_name" placeholder:"NAME" help:"Response header that names the worker of a turn, such as one of the engines. It precedes Dynamo's nvext and the headers of known routers, which are read in any case."`
	Session      Session `json:"session,omitzero" placeholder:"KIND:NAME" help:"How a request shows its conversation to a router: header:NAME or body:FIELD has its id, returned:NAME the value of that response header. Default: not at all. It is part of the workload."`
	RequestID    string  `json:"request_id,omitempty" name:"request_id" default:"auto" oneof:"auto on off" help:"Whether requests have X-Request-Id, which differs for every turn: auto omits it for a router that routes by it (vllm-router)."`

	Direct bool `json:"direct,omitempty" kong:"-"` // a Dynamo that answers only requests that name their worker
}

// RequestIDHeader is the header that [Routing].RequestID is about.
const RequestIDHeader = "X-Request-Id"

// HeaderName matches a token of RFC 9110, section 5.6.2.
var HeaderName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// WireHeaders are the headers that follow from a request's body and its connection.
var WireHeaders = []string{
	"Content-Length", "Connection", "Transfer-Encoding",
	"Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Upgrade", // of one hop
}

// OwnHeaders are the headers that a turn's request has already.
var OwnHeaders = append([]string{"Accept", "Content-Type"}, WireHeaders...)

// OwnFields are the fields that must not be in a setting on the body: the client sets them, or they have a setting of
// their own.
var OwnFields = []string{
	"model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "nvext", "n",
	"ignore_eos", "min_tokens", "temperature", "top_p", "seed",
}

// SessionKind says how a request names its conversation.
type SessionKind string

// The kinds of [Session].
const (
	SessionNone     SessionKind = ""
	SessionHeader   SessionKind = "header"   // the conversation's id in a request header
	SessionBody     SessionKind = "body"     // the conversation's id in a field of the body
	SessionReturned SessionKind = "returned" // the value of a response header, sent back in a header of that name
)

// Session says how the server learns which conversation a request belongs to. The zero value does not show it. Its text
// is that of the setting target.session.
type Session struct {
	Kind SessionKind
	Name string // of the header, canonical, or of the field
}

// String returns the session in the notation of the setting target.session; empty: there is none.
func (s Session) String() string {
	if s.Kind == SessionNone {
		return ""
	}
	return string(s.Kind) + ":" + s.Name
}

// MarshalText returns the text of [Session.String].
func (s Session) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Allowed describes the texts that [Session.UnmarshalText] accepts.
func (Session) Allowed() string {
	return "header:NAME, body:FIELD or returned:NAME, with the name of a header other than Set-Cookie that the " +
		"load generator does not set itself, or of a field that is not in request.body"
}

var errSession = errors.New("no session")

// bodyField is a name at the top level of a request's body.
var bodyField = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,99}$`)

// sessionHeaders are the headers that cannot show a session.
var sessionHeaders = append([]string{"Host", RequestIDHeader, "Authorization", "User-Agent", "Set-Cookie"},
	OwnHeaders...)

// UnmarshalText parses KIND:NAME; the empty text is no session. [Session.Allowed] explains the error.
func (s *Session) UnmarshalText(text []byte) error {
	kind, name, _ := strings.Cut(string(text), ":")
	parsed, valid := Session{Kind: SessionKind(kind), Name: name}, false
	switch parsed.Kind {
	case SessionNone:
		valid = len(text) == 0
	case SessionHeader, SessionReturned:
		parsed.Name = http.CanonicalHeaderKey(name)
		valid = HeaderName.MatchString(name) && !slices.Contains(sessionHeaders, parsed.Name)
	case SessionBody:
		valid = bodyField.MatchString(name) && !slices.Contains(OwnFields, name)
	}
	if !valid {
		return errSession
	}
	*s = parsed
	return nil
}
