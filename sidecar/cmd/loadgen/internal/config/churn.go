package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster"
)

// Churn is the request of the command churn.
type Churn struct {
	Events string        `form:"path" placeholder:"FILE" help:"YAML file with the events: a list of name, do, undo, worker and settle. do and undo have run, a program with its arguments, or request, as in switch.http."`
	Event  []string      `placeholder:"NAME" help:"Built-in events, besides those of the file: lose-worker takes a worker from a simulated cluster for 10 s; nothing does nothing, and shows which recovery times chance alone makes."`
	Modes  []string      `form:"way" placeholder:"A,B" help:"Arms or modes. Default: all arms, else the mode in force."`
	Blocks int           `default:"6" min:"1" max:"1000" help:"Times that each event happens under each arm. An interval of 95 % of a median needs six."`
	WarmUp time.Duration `default:"30s" min:"0s" max:"1h" help:"Time under an arm that does not count."`
	Before time.Duration `default:"60s" min:"2s" max:"1h" help:"Time before an event that it is compared with."`
	After  time.Duration `default:"120s" min:"2s" max:"6h" help:"Time after an event that is observed."`
	Window time.Duration `default:"10s" min:"1s" max:"10m" help:"Length of the windows whose TTFT p95 and hit rate are compared with those before."`

	List  []Event         `kong:"-"` // of Events and Event
	Under []api.ModeState `kong:"-"` // Modes
}

// The built-in events.
const (
	LoseWorker = "lose-worker"
	Nothing    = "nothing"
)

// Event is an event of loadgen churn.
type Event struct {
	Name    string
	Do      cluster.Action // nil for a built-in event
	Undo    cluster.Action // nil: nothing is to be undone
	Worker  string         // part of the name by which a router knows the worker that is hit; empty: unknown
	Settle  time.Duration  // pause after Undo
	BuiltIn string         // empty: Do
}

// eventFile is an entry of the file of events.
type eventFile struct {
	Name   string      `json:"name"`
	Do     *actionFile `json:"do"`
	Undo   *actionFile `json:"undo"`
	Worker string      `json:"worker"`
	Settle string      `json:"settle"`
}

type actionFile struct {
	Run     []string        `json:"run"`
	Request json.RawMessage `json:"request"` // a [Call]
}

// takeChurn reads the events and arms of loadgen churn.
func (l *loader) takeChurn(c *Config) error {
	s := c.Churn
	if s == nil {
		return nil
	}
	for _, name := range s.Event {
		if name != LoseWorker && name != Nothing {
			return api.Refuse("event", name, "one of "+LoseWorker+" and "+Nothing)
		}
		s.List = append(s.List, Event{Name: name, BuiltIn: name})
	}
	if err := l.readEvents(c); err != nil {
		return err
	}
	if len(s.List) == 0 {
		return api.Require("events", "a file with events; or name built-in ones (--event)")
	}
	for _, mode := range s.Modes {
		s.Under = append(s.Under, c.way(mode).Resolve(c.Mode.States()))
	}
	if c.Mode.Served != nil && len(s.Modes) == 0 {
		s.Under = c.Mode.States()
	}
	for _, m := range s.Under {
		if c.Mode.Served != nil && !slices.Contains(c.Mode.States(), m) {
			_, err := c.Mode.servedAs("modes", m.Arm)
			return err
		}
	}
	return nil
}

// readEvents reads the file of events.
func (l *loader) readEvents(c *Config) error {
	s := c.Churn
	if s.Events == "" {
		return nil
	}
	data, err := l.read("events", s.Events, "a readable YAML file")
	if err != nil {
		return err
	}
	var list []eventFile
	if err := decodeStrictly(data, &list); err != nil {
		return api.Refuse("events", s.Events, "a list of name, do, undo, worker and settle; "+err.Error())
	}
	for i, e := range list {
		field := fmt.Sprintf("events[%d].", i)
		event := Event{Name: e.Name, Worker: e.Worker}
		known := func(other Event) bool { return other.Name == e.Name }
		if e.Name == "" || slices.ContainsFunc(s.List, known) {
			return api.Refuse(field+"name", e.Name, "a name that no other event has")
		}
		if e.Settle != "" {
			event.Settle, err = time.ParseDuration(e.Settle)
			if err != nil || event.Settle < 0 || event.Settle > time.Hour {
				return api.Refuse(field+"settle", e.Settle, "a duration up to 1h, such as 30s")
			}
		}
		if e.Do == nil {
			return api.Require(field+"do", "run or request")
		}
		if event.Do, err = l.action(field+"do.", e.Do); err != nil {
			return err
		}
		if e.Undo != nil {
			if event.Undo, err = l.action(field+"undo.", e.Undo); err != nil {
				return err
			}
		}
		s.List = append(s.List, event)
	}
	return nil
}

// action returns what an event does. field ends in a dot.
func (l *loader) action(field string, a *actionFile) (cluster.Action, error) {
	switch {
	case len(a.Run) > 0 && a.Request == nil:
		for i, word := range a.Run {
			if err := checkPlaceholders(fmt.Sprintf("%srun[%d]", field, i), word, armPlaceholders); err != nil {
				return nil, err
			}
		}
		if _, err := exec.LookPath(a.Run[0]); err != nil {
			return nil, api.Refuse(field+"run[0]", a.Run[0], "a program that can be run")
		}
		return cluster.Program(a.Run), nil
	case a.Request != nil && len(a.Run) == 0:
		text := []byte(a.Request)
		if plain := ""; json.Unmarshal(text, &plain) == nil {
			text = []byte(plain)
		}
		var call Call
		err := call.UnmarshalText(text)
		if bad := (*api.FieldError)(nil); errors.As(err, &bad) {
			return nil, api.Refuse(field+"request"+bad.Field, bad.Value, bad.Allowed)
		} else if err != nil {
			return nil, api.Refuse(field+"request", string(text), call.Allowed())
		}
		request, err := l.openCall(field+"request", call)
		return cluster.Call{Request: request}, err
	}
	return nil, api.Require(field[:len(field)-1], "one of run and request")
}

// checkChurn refuses settings that loadgen churn controls itself, and windows that do not fit.
func (c *Config) checkChurn() error {
	s := c.Churn
	if s == nil {
		return nil
	}
	if most := min(s.Before/4, s.After/2); s.Window > most { // fewer windows before have no scatter
		return api.Refuse("window", s.Window, fmt.Sprintf("up to %v: a quarter of before and half of after", most))
	}
	return c.checkEndless(Churned)
}
