package server

import (
	"context"
	"net/http"

	"kvbooth/sidecar/api"
)

func (s *Server) shadow(w http.ResponseWriter, r *http.Request) error {
	lane, err := s.onlyLane(r)
	if err != nil {
		return err
	}
	return replyJSON(w, lane.Shadow(), nil)
}

func (s *Server) twin(w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	v, err := s.opts.Backend.Twin()
	return replyJSON(w, v, err)
}

// steerTwin answers a call that changes what the two lanes do.
func steerTwin[T interface{ Check() error }](status int, do func(ctx context.Context, by string, req T) (api.Twin, error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := params(r); err != nil {
			return err
		}
		req, err := object[T](w, r)
		if err == nil {
			err = req.Check()
		}
		if err != nil {
			return err
		}
		v, err := do(r.Context(), caller(r), req)
		if err != nil {
			return err
		}
		return reply(w, status, "application/json", v)
	}
}

func (s *Server) stopShowcase(w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	v, err := s.opts.Backend.StopShowcase(r.Context(), caller(r))
	return replyJSON(w, v, err)
}
