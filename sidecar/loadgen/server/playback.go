package server

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"kvbooth/sidecar/api"
)

// Playback returns recorded data, in place of a [Backend]. [kvbooth/sidecar/loadgen/replay.Player] implements it.
type Playback interface {
	View
	// Answer returns the recorded answer to GET at a path below [api.Prefix].
	Answer(path string, query url.Values) ([]byte, error)
}

// playback is a backend of which the routes of a recording use only the view.
type playback struct {
	View
	Catalog
	Records
	simulations
	SweepDesk
	TwinDesk
}

type simulations = Simulations // a field of that name would hide the method

func (playback) Lane(string) (Lane, error) { return nil, api.ErrNotFound }

// errRecording refuses calls that would change something.
var errRecording = fmt.Errorf("%w: this is the replay of a recording, in which nothing can be started or changed",
	api.ErrConflict)

// played replaces the routes of a load generator by a recording's answers.
func (s *Server) played(all []route) []route {
	for i, rt := range all {
		method, path, _ := strings.Cut(rt.pattern, " ")
		switch {
		case path == api.Prefix+"/stream", path == api.Prefix+"/snapshot", path == api.Prefix+"/openapi.yaml":
		case rt.access == write:
			all[i].handle = func(http.ResponseWriter, *http.Request) error { return errRecording }
		case rt.access == read && method == http.MethodGet:
			all[i].handle = s.recorded
		}
	}
	return all
}

func (s *Server) recorded(w http.ResponseWriter, r *http.Request) error {
	text, err := s.opts.Playback.Answer(strings.TrimPrefix(cmp.Or(r.URL.RawPath, r.URL.Path), api.Prefix), r.URL.Query())
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // a reader that does not read has disconnected
	return nil
}
