package process

import (
	"context"
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

// Start starts the process and returns when it is ready.
func (s *Service) Start(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, s.Within)
	defer cancel()
	return s.serve(limited)
}

// Watch restarts the process whenever it has ended, until ctx ends. The error is the reason for giving up.
func (s *Service) Watch(ctx context.Context) error {
	return Child{Name: s.Name, Ended: s.ended, Restart: s.serve, Within: s.Within, Say: s.Say}.Supervise(ctx)
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

// serve starts the process and kills an earlier one. A process that has exited is not ready, even if another server
// responds at its address.
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
