package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"kvbooth/sidecar/api"
)

const (
	cookieName  = "kvbooth_session"
	sessionLife = 12 * time.Hour // a day at the booth
	maxSessions = 1000
)

// errSessionOver is the reason why a read ends when its session has ended.
var errSessionOver = errors.New("the session has ended; sign in again")

// sessions are the cookies in force. They are kept in memory: after a restart the token has to be entered again. The
// zero value is ready to use.
type sessions struct {
	mu   sync.Mutex
	open []session // oldest first
}

// session is a context that ends with the session: after [sessionLife] by the monotonic clock, which is independent of
// changes of the system time, or earlier.
type session struct {
	context.Context

	id  string
	end context.CancelFunc
}

// begin starts a session. With too many of them, the oldest ends.
func (s *sessions) begin() (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(each session) bool { return each.Err() != nil })
	if len(s.open) >= maxSessions {
		s.open[0].end()
		s.open = slices.Delete(s.open, 0, 1)
	}
	ctx, end := context.WithTimeout(context.Background(), sessionLife)
	s.open = append(s.open, session{ctx, rand.Text(), end})
	return s.open[len(s.open)-1].id
}

// of returns the session of a caller's cookie, nil without one in force. Ids are random enough that comparing them in
// variable time reveals nothing.
func (s *sessions) of(r *http.Request) context.Context {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.open, func(each session) bool { return each.id == c.Value && each.Err() == nil })
	if i < 0 {
		return nil
	}
	return s.open[i]
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
	setCookie(w, r, s.sessions.begin(), sessionLife)
	return nil
}

// setCookie answers with a cookie that no script and no other site can read. A life of zero removes it.
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

// readSession returns what a page may do, before it requests anything else.
func (s *Server) readSession(r *http.Request, _ none) (api.Session, error) {
	required, authenticated := s.opts.Token != "", s.sessions.of(r) != nil
	return api.Session{
		TokenRequired: required, Authenticated: required && authenticated,
		CanRead:  !required || authenticated || s.opts.PublicPage,
		CanWrite: (!required || authenticated) && s.opts.Playback == nil, Replay: s.opts.Playback != nil,
	}, nil
}

// endSession ends the session of the request's cookie, removes the cookie and answers 204. A request without a session
// in force is no error.
func (s *Server) endSession(w http.ResponseWriter, r *http.Request, _ none) error {
	if session, ok := s.sessions.of(r).(session); ok {
		session.end()
	}
	setCookie(w, r, "", 0)
	return nil
}
