package process

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Refused is the exit code of our programs for invalid input. A restart would end with it again.
const Refused = 2

// Service is a process that is restarted when it ends. Its methods are safe for concurrent use.
type Service struct {
	Name    string // for use within a sentence
	Command Command
	Ready   func(context.Context, *Process) error // returns when the process is ready; nil means at once
	Within  time.Duration                         // timeout of Ready
	Say     func(format string, args ...any)
	// Final reports whether a process that has ended with this exit code, -1 for a signal, is not restarted. nil
	// means that it always is.
	Final func(code int) bool

	mu      sync.Mutex
	stopped bool // by Stop
	process *Process
}

// Start starts the process, kills an earlier one, and returns when it is ready. A process that has exited is not ready,
// even if another server responds at its address.
func (s *Service) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.Within)
	defer cancel()
	p, err := s.launch()
	if err != nil || s.Ready == nil {
		return err
	}
	err = s.Ready(ctx, p)
	exited := p.Exited()
	if err == nil && exited {
		err = p.Ended(context.WithoutCancel(ctx))
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s is not ready: %w", s.Name, err)
	if exited && p.ExitCode() == Refused {
		err = Permanent{err}
	}
	return err
}

// Watch restarts the process whenever it has ended, until ctx ends. The error is the reason for giving up.
func (s *Service) Watch(ctx context.Context) error {
	return supervised{s.Name, s.ended, s.Start, s.Say}.run(ctx)
}

// Up reports whether the service has been started and has not been stopped.
func (s *Service) Up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil && !s.stopped
}

// Process returns the latest process, or nil before Start.
func (s *Service) Process() *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

func (s *Service) launch() (*Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, context.Canceled
	}
	if s.process != nil {
		s.process.Kill() // an earlier process that did not become ready
	}
	p, err := Start(s.Command)
	if err == nil {
		s.process = p
	}
	return p, err
}

// ended waits for the end of the process.
func (s *Service) ended(ctx context.Context) error {
	p := s.Process()
	err := p.Ended(ctx)
	if err != nil && s.Final != nil && s.Final(p.ExitCode()) {
		return Permanent{err}
	}
	return err
}

// Stop stops the process and prevents restarts. It kills the process if ctx ends first.
func (s *Service) Stop(ctx context.Context) {
	s.mu.Lock()
	s.stopped = true
	p := s.process
	s.mu.Unlock()
	if p != nil {
		p.Stop(ctx)
	}
}

// A child is restarted at most maxRestarts times within restartWindow, after pauses that start with firstPause and
// double.
const (
	maxRestarts   = 5
	restartWindow = 10 * time.Minute
	firstPause    = time.Second
)

// Permanent is an error that a retry would give again.
type Permanent struct{ Err error }

// Error returns the message of the wrapped error.
func (p Permanent) Error() string { return p.Err.Error() }

// Unwrap returns the wrapped error.
func (p Permanent) Unwrap() error { return p.Err }

// supervised is a process that is restarted whenever it has ended.
type supervised struct {
	name    string
	ended   func(context.Context) error // waits for the end and returns its cause; nil if ctx ends first
	restart func(context.Context) error // returns when the process is ready
	say     func(format string, args ...any)
}

// run restarts the process until ctx ends. It returns an error if the process keeps failing.
func (s supervised) run(ctx context.Context) error {
	var tries restarts
	for ctx.Err() == nil {
		cause := s.ended(ctx)
		for cause != nil && ctx.Err() == nil {
			pause, ok := tries.next(time.Now())
			if !ok || errors.As(cause, new(Permanent)) {
				return fmt.Errorf("%s keeps failing: %w", s.name, cause)
			}
			s.say("%v\nrestarting %s in %v", cause, s.name, pause)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(pause):
			}
			if cause = s.restart(ctx); cause == nil {
				s.say("%s is running again", s.name)
			}
		}
	}
	return nil
}

// restarts records the times of recent restarts.
type restarts struct{ recent []time.Time }

// next returns the pause before another restart; false if there were too many.
func (r *restarts) next(now time.Time) (pause time.Duration, ok bool) {
	for len(r.recent) > 0 && now.Sub(r.recent[0]) > restartWindow {
		r.recent = r.recent[1:]
	}
	if len(r.recent) == maxRestarts {
		return 0, false
	}
	pause = firstPause << len(r.recent)
	r.recent = append(r.recent, now)
	return pause, true
}
