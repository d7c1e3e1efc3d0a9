package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
)

// readyTimeout is the time until most programs must be ready.
const readyTimeout = 30 * time.Second

// service is a part of a booth that consists of one process.
type service struct {
	process.Service

	url      string
	optional bool // the booth continues without it
}

// newService describes a service that is ready when it responds at a path of a URL.
func (b *booth) newService(name, url, ready string, timeout time.Duration, c process.Command) *service {
	return &service{url: url, Service: process.Service{
		Name: name, Command: c, Within: timeout, Say: b.out.say,
		Ready: func(ctx context.Context, p *process.Process) error { return local.Ready(ctx, url+ready, p) },
	}}
}

func (s *service) title() string { return s.Name }

// start starts the process and returns when it is ready.
func (s *service) start(ctx context.Context) error { return s.tolerate(ctx, s.Start(ctx)) }

// watch restarts the process whenever it has ended, until ctx ends or the process keeps failing.
func (s *service) watch(ctx context.Context) error {
	if !s.Up() {
		return nil
	}
	return s.tolerate(ctx, s.Watch(ctx))
}

// tolerate reports the error of an optional service and returns nil. It returns other errors.
func (s *service) tolerate(ctx context.Context, err error) error {
	if err == nil || !s.optional || ctx.Err() != nil {
		return err
	}
	s.Stop(atOnce)
	s.Say("%v\ncontinuing without %s", err, s.Name)
	return nil
}

// stop stops the process, or kills it if ctx ends first.
func (s *service) stop(ctx context.Context) { s.Stop(ctx) }

// atOnce is a canceled context. Stopping with it kills the process.
var atOnce = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// ownService describes a service that is this program with another command.
func (b *booth) ownService(name, address, ready string, args ...string) (*service, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return b.newService(name, "http://"+address, ready, readyTimeout, process.Command{
		Name: strings.TrimPrefix(name, "the "), Path: self, Args: args, Log: b.log(args[0]),
	}), nil
}

// ownFolder returns the folder of this program, where the project's other programs are.
func ownFolder() (string, error) {
	self, err := os.Executable()
	return filepath.Dir(self), err
}
