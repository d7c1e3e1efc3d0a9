package process

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Refused is the exit code by which our programs end for what their caller must change:
// they would end like that again.
const Refused = 2

// Service is a process that is kept running. Its methods are safe for concurrent use.
type Service struct {
	Name    string // in the middle of a sentence
	Command Command
	Ready   func(context.Context, *Process) error // returns when it serves; nil: it does at once
	Within  time.Duration                         // which that may take
	Say     func(format string, args ...any)
	// Final says whether a process that has ended with this exit code, -1 where a signal
	// ended it, is to stay ended; nil: none is.
	Final func(code int) bool

	mu      sync.Mutex
	stopped bool // for good
	process *Process
}

// Start starts the process and returns when it serves.
func (s *Service) Start(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, s.Within)
	defer cancel()
	return s.serve(limited)
}

// Watch restarts the process whenever it has ended, until ctx ends; its error says
// why it does not go on.
func (s *Service) Watch(ctx context.Context) error {
	return Child{Name: s.Name, Ended: s.ended, Restart: s.serve, Within: s.Within, Say: s.Say}.Supervise(ctx)
}

// Up says whether the service has been started and has not been stopped since.
func (s *Service) Up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil && !s.stopped
}

// Process is the one that was started last, nil before.
func (s *Service) Process() *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// serve starts the process, also in place of an earlier one. A process that has exited is not ready, whatever it has
// left behind and whatever else responds at its address.
func (s *Service) serve(ctx context.Context) error {
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

func (s *Service) launch() (*Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, context.Canceled
	}
	if s.process != nil {
		s.process.Kill() // it did not become ready
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

// Stop stops the process for good, or kills it when ctx ends first.
func (s *Service) Stop(ctx context.Context) {
	s.mu.Lock()
	s.stopped = true
	p := s.process
	s.mu.Unlock()
	if p != nil {
		p.Stop(ctx)
	}
}
