package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/booth/local"
)

// service is a part of a booth that is one process. Its methods are safe for
// concurrent use.
type service struct {
	name     string // in the middle of a sentence
	command  local.Command
	url      string
	ready    string        // the path that answers when it is up
	within   time.Duration // which that may take
	optional bool          // the booth goes on without it
	say      func(format string, args ...any)

	mu      sync.Mutex
	stopped bool // for good
	process *local.Process
}

func (s *service) title() string { return s.name }

// start starts the process and returns when it answers.
func (s *service) start(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	return s.tolerate(ctx, s.serve(limited))
}

// watch restarts the process whenever it has ended, until ctx ends or that does
// not help.
func (s *service) watch(ctx context.Context) error {
	if !s.up() {
		return nil
	}
	c := child{name: s.name, ended: s.ended, restart: s.serve, within: s.within, say: s.say}
	return s.tolerate(ctx, c.supervise(ctx))
}

// tolerate keeps an error to itself where the booth can do without the service.
func (s *service) tolerate(ctx context.Context, err error) error {
	if err == nil || !s.optional || ctx.Err() != nil {
		return err
	}
	s.stop(atOnce)
	s.say("%v\nthe booth goes on without %s", err, s.name)
	return nil
}

// up says whether the service has been started and has not been stopped since.
func (s *service) up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil && !s.stopped
}

// serve starts the process, also in place of an earlier one.
func (s *service) serve(ctx context.Context) error {
	p, err := s.launch()
	if err != nil {
		return err
	}
	if err = local.Ready(ctx, s.url+s.ready, p); err == nil {
		return nil
	}
	err = fmt.Errorf("%s is not ready: %w", s.name, err)
	select {
	case <-p.Done():
		if p.ExitCode() == badInput { // as our programs end for what their caller must change
			err = permanent{err}
		}
	default:
	}
	return err
}

func (s *service) launch() (*local.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, context.Canceled
	}
	if s.process != nil {
		s.process.Kill() // it did not become ready
	}
	p, err := local.Start(s.command)
	if err == nil {
		s.process = p
	}
	return p, err
}

// ended waits for the end of the process.
func (s *service) ended(ctx context.Context) error {
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	return p.Ended(ctx)
}

// stop stops the process for good, or kills it when ctx ends first.
func (s *service) stop(ctx context.Context) {
	s.mu.Lock()
	s.stopped = true
	p := s.process
	s.mu.Unlock()
	if p != nil {
		p.Stop(ctx)
	}
}

// atOnce is a context that has ended: what is stopped with it is killed.
var atOnce = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// ownService is a service that is this program, with another command.
func (b *booth) ownService(name, address, ready string, args ...string) (*service, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &service{
		name: name, url: "http://" + address, ready: ready, within: readyWithin, say: b.out.say,
		command: local.Command{Name: strings.TrimPrefix(name, "the "), Path: self, Args: args, Log: b.log(args[0])},
	}, nil
}

// besideThis is a program that was built into the folder of this one.
func besideThis(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(filepath.Dir(self), name), nil
}
