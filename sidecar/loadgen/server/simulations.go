package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"kvbooth/sidecar/api"
)

// startSimulation starts a simulation of a what-if question.
func (s *Server) startSimulation(r *http.Request, _ none, req api.SimulationRequest) (api.SimulationResult, error) {
	by := caller(r)
	return s.opts.Backend.StartSimulation(by, s.reader(r).share+" "+by, req)
}

// simulation returns the results so far, or streams the rest.
func (s *Server) simulation(w http.ResponseWriter, r *http.Request, _ none) error {
	id := r.PathValue("id")
	if api.WantsEvents(r) {
		return s.followSimulation(w, r, id)
	}
	v, err := s.opts.Backend.Simulation(id)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, "application/json", v)
}

// followSimulation sends a simulation's events until it ends, the reader disconnects, or the server stops.
func (s *Server) followSimulation(w http.ResponseWriter, r *http.Request, id string) error {
	open, err := s.streams.begin(r.Context(), s.reader(r))
	if err != nil {
		return err
	}
	defer s.streams.done(open)
	out := &events{w: w}
	err = s.opts.Backend.FollowSimulation(open, id, func(name string, data any) error {
		s.streams.reads(open)
		return out.send(name, data)
	})
	if err != nil && !errors.Is(err, errGone) {
		return err
	}
	return nil
}

// errGone is the error of a disconnected reader.
var errGone = errors.New("the client disconnected")

// events is an answer of server-sent events. It continues as long as it is read.
type events struct {
	w     http.ResponseWriter
	begun bool
}

func (e *events) send(name string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	control := http.NewResponseController(e.w)
	_ = control.SetWriteDeadline(deadline(frameTimeout)) // a failure leaves the server's deadline
	if !e.begun {
		e.begun = true
		e.w.Header().Set("Content-Type", api.EventStream)
		e.w.Header().Set("X-Accel-Buffering", "no") // disables buffering in proxies
	}
	if _, err := fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", name, text); err != nil {
		return errGone
	}
	if control.Flush() != nil {
		return errGone
	}
	return nil
}
