package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"kvbooth/sidecar/local"
)

// loadgen runs the load generator as a child. start and stop may be called at the
// same time.
type loadgen struct {
	command local.Command
	ready   string // the URL that answers when it is up
	exits   chan error
	watches sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	process *local.Process
}

// newLoadgen describes the child. On a terminal it shares the screen, so that its
// status line is seen; elsewhere it writes a log.
func newLoadgen(args []string, address, logs string, out *screen) (*loadgen, error) {
	path, err := loadgenPath()
	if err != nil {
		return nil, err
	}
	g := &loadgen{
		command: local.Command{Name: "load generator", Path: path, Args: args, Log: filepath.Join(logs, "loadgen.log"), Env: os.Environ()},
		ready:   "http://" + address + "/healthz",
		exits:   make(chan error, 1),
	}
	if out.terminal != nil {
		g.command.Output = out.terminal
		if os.Getenv("LOADGEN_LOG_LEVEL") == "" {
			g.command.Env = append(g.command.Env, "LOADGEN_LOG_LEVEL=warn")
		}
	}
	return g, nil
}

// start starts the child and returns when it answers.
func (g *loadgen) start(ctx context.Context) error {
	p, err := g.launch()
	if err != nil {
		return err
	}
	if err := local.Ready(ctx, g.ready, p); err != nil {
		return g.final(p, err)
	}
	g.watches.Go(func() {
		<-p.Done()
		if p.Asked() {
			return
		}
		err := p.Wait()
		if err == nil {
			err = errors.New("the load generator ended by itself")
		}
		g.exits <- g.final(p, err) // start comes before the next one, and takes this one first
	})
	return nil
}

func (g *loadgen) launch() (*local.Process, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return nil, context.Canceled
	}
	if g.process != nil {
		g.process.Kill() // it did not become ready
	}
	p, err := local.Start(g.command)
	if err == nil {
		g.process = p
	}
	return p, err
}

// final marks an error that another try would give again: the load generator ends
// with 2 for what its caller must change.
func (g *loadgen) final(p *local.Process, err error) error {
	select {
	case <-p.Done():
		if p.ExitCode() == badInput {
			return fmt.Errorf("%w: %w", errFinal, err)
		}
	default:
	}
	return err
}

func (g *loadgen) running() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.process.Done():
		return false
	default:
		return true
	}
}

// stop stops the child, or kills it when ctx ends first.
func (g *loadgen) stop(ctx context.Context) {
	g.mu.Lock()
	g.stopped = true
	p := g.process
	g.mu.Unlock()
	if p != nil {
		p.Stop(ctx)
	}
	g.watches.Wait()
}
