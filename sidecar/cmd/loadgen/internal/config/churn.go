package config

import (
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster"
)

// Churn is the request of the command churn.
type Churn struct {
	Events string        `form:"path" placeholder:"FILE" help:"YAML file with a list of events: name, run (a program) or request (as switch.http), undo_run or undo_request, worker (its name in a router's metrics), and settle (a pause after the undoing)."`
	Event  []string      `placeholder:"NAME" help:"Built-in events: lose-worker takes a worker from a simulated cluster for 10 s; nothing is the control, whose recovery times are chance."`
	Modes  []string      `form:"way" placeholder:"A,B" help:"Arms or modes. Default: all arms, else the mode in force."`
	Blocks int           `default:"6" min:"1" max:"1000" help:"Times that each event happens under each arm. A median has an interval of 95 % from six on."`
	WarmUp time.Duration `default:"30s" min:"0s" max:"1h" help:"Time under an arm that does not count."`
	Before time.Duration `default:"60s" min:"4s" max:"1h" help:"Time before an event that it is compared with."`
	After  time.Duration `default:"120s" min:"2s" max:"6h" help:"Time after an event that is observed."`
	Window time.Duration `default:"10s" min:"1s" max:"10m" help:"Length of the windows whose TTFT p95 and hit rate are compared with those before."`

	List  []Event         `kong:"-"` // of Event and Events
	Under []api.ModeState `kong:"-"` // what Modes names; empty: the mode in force
}

// Event is an event of loadgen churn.
type Event struct {
	Name     string
	Do, Undo cluster.Action // nil: nothing
	Worker   string         // part of the name by which a router's metrics know the worker that is hit; empty: unknown
	Settle   time.Duration  // pause after Undo
}

// eventFields are the fields of an event in the file.
type eventFields struct {
	Name        string
	Run         Program
	Request     Call
	UndoRun     Program
	UndoRequest Call
	Worker      string
	Settle      time.Duration `min:"0s" max:"1h"`
}

var builtInEvents = []Event{
	{Name: "lose-worker", Do: cluster.Call{Request: cluster.Request{
		URL: "{url}/sim/v1/workers/any/lose", Body: `{"seconds":10}`,
	}}},
	{Name: "nothing"},
}

// takeChurn reads the events and arms of loadgen churn.
func (l *loader) takeChurn(c *Config) error {
	s := c.Churn
	if s == nil {
		return nil
	}
	for _, name := range s.Event {
		i := slices.IndexFunc(builtInEvents, func(e Event) bool { return e.Name == name })
		if i < 0 {
			return api.Refuse("event", name, "lose-worker or nothing")
		}
		s.List = append(s.List, builtInEvents[i])
	}
	if err := l.readEvents(s); err != nil {
		return err
	}
	for i, e := range s.List {
		if slices.ContainsFunc(s.List[:i], func(other Event) bool { return other.Name == e.Name }) {
			return api.Refuse("events", e.Name, "a name that no other event has")
		}
	}
	if len(s.List) == 0 {
		return api.Require("events", "a file with events; or name built-in ones (--event)")
	}
	if c.Mode.Served != nil && len(s.Modes) == 0 {
		s.Under = c.Mode.States()
	}
	for _, mode := range s.Modes {
		m := c.way(mode)
		if c.Mode.Served != nil {
			arm, err := c.Mode.servedAs("modes", mode)
			if err != nil {
				return err
			}
			m = arm.State
		}
		s.Under = append(s.Under, m)
	}
	return nil
}

// readEvents reads the file of events.
func (l *loader) readEvents(s *Churn) error {
	if s.Events == "" {
		return nil
	}
	data, err := l.read("events", s.Events, "a readable YAML file")
	if err != nil {
		return err
	}
	var list []yaml.Node
	if err := yaml.Unmarshal(data, &list); err != nil {
		return api.Refuse("events", s.Events, "a list of events; "+err.Error())
	}
	for i := range list {
		var e eventFields
		field := fmt.Sprintf("events[%d]", i)
		if err := setObject(field, &list[i], &e); err != nil {
			return err
		}
		if e.Name == "" {
			return api.Require(field+".name", "a name")
		}
		event := Event{Name: e.Name, Worker: e.Worker, Settle: e.Settle}
		if event.Do, err = l.action(field+".request", e.Run, e.Request); err != nil {
			return err
		}
		if event.Do == nil {
			return api.Require(field+".run", "a program; or set request")
		}
		if event.Undo, err = l.action(field+".undo_request", e.UndoRun, e.UndoRequest); err != nil {
			return err
		}
		s.List = append(s.List, event)
	}
	return nil
}

// action returns the action of a program or a request, nil without either. field is that of the request.
func (l *loader) action(field string, run Program, request Call) (cluster.Action, error) {
	switch {
	case len(run) > 0 && request.URL != "":
		return nil, api.Refuse(field, request, "leave it out with a program")
	case len(run) > 0:
		return cluster.Program(run), nil
	case request.URL != "":
		opened, err := l.openCall(field, request)
		return cluster.Call{Request: opened}, err
	}
	return nil, nil
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
