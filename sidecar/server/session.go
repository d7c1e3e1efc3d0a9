package server

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"sync"
	"time"

	"kvbooth/sidecar/api"
)

const (
	cookieName  = "kvbooth_session"
	sessionLife = 12 * time.Hour // a day at the booth
	maxSessions = 1000
)

// sessions are the cookies that were handed out. They live in memory: after a
// restart everyone shows the token again. The zero value is ready.
type sessions struct {
	mu   sync.Mutex
	ends map[string]time.Time // by session id
}

// begin makes a session. With too many of them, the oldest ends.
func (s *sessions) begin(now time.Time) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends == nil {
		s.ends = map[string]time.Time{}
	}
	oldest := ""
	for id, end := range s.ends {
		switch {
		case !now.Before(end):
			delete(s.ends, id)
		case oldest == "" || end.Before(s.ends[oldest]):
			oldest = id
		}
	}
	if len(s.ends) >= maxSessions {
		delete(s.ends, oldest)
	}
	id = rand.Text()
	s.ends[id] = now.Add(sessionLife)
	return id
}

// valid says whether a session lives. Ids are too random for a comparison's
// time to tell anything.
func (s *sessions) valid(id string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.ends[id])
}

func (s *Server) createSession(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[api.SessionRequest](w, r, nil)
	if err != nil {
		return err
	}
	if s.opts.Token == "" {
		return fmt.Errorf("%w: this server has no token, and needs no session", api.ErrConflict)
	}
	if err := s.checkAttempt(r, req.Token); err != nil {
		return err
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: s.sessions.begin(s.now()), Path: "/", MaxAge: int(sessionLife / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: scheme(r) == "https",
	})
	w.WriteHeader(http.StatusNoContent)
	return nil
}
