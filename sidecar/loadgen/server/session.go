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

// end ends a session before its time.
func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ends, id)
}

// valid says whether a session lives. Ids are too random for a comparison's
// time to tell anything.
func (s *sessions) valid(id string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.ends[id])
}

func (s *Server) createSession(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[api.SessionRequest](w, r)
	if err != nil {
		return err
	}
	if s.opts.Token == "" {
		return fmt.Errorf("%w: this server has no token, so no session is needed", api.ErrConflict)
	}
	if err := s.checkAttempt(r, req.Token); err != nil {
		return err
	}
	setCookie(w, r, s.sessions.begin(s.now()), sessionLife)
	return nil
}

// setCookie answers with a cookie that no script and no other site gets hold of.
// One without a life is removed.
func setCookie(w http.ResponseWriter, r *http.Request, value string, life time.Duration) {
	age := int(life / time.Second)
	if age == 0 {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: api.Scheme(r) == "https",
	})
	w.WriteHeader(http.StatusNoContent)
}

// inSession says whether the caller's cookie carries a session that lives.
func (s *Server) inSession(r *http.Request) bool {
	c, err := r.Cookie(cookieName)
	return err == nil && s.sessions.valid(c.Value, s.now())
}

// readSession tells a page what to offer, before it asks for anything else.
func (s *Server) readSession(w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	required, authenticated := s.opts.Token != "", s.inSession(r)
	return replyJSON(w, api.Session{
		TokenRequired: required, Authenticated: required && authenticated,
		CanRead:  !required || authenticated || s.opts.PublicPage,
		CanWrite: !required || authenticated,
	}, nil)
}

func (s *Server) endSession(w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	if c, err := r.Cookie(cookieName); err == nil {
		s.sessions.end(c.Value)
	}
	setCookie(w, r, "", 0)
	return nil
}
