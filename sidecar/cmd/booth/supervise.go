package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"kvbooth/sidecar/local"
)

// A child is restarted at most maxRestarts times within restartWindow, after
// pauses that double from firstPause on.
const (
	maxRestarts   = 5
	restartWindow = 10 * time.Minute
	firstPause    = time.Second
	readyWithin   = 30 * time.Second
)

// errFinal is in the chain of errors that another try would not mend.
var errFinal = errors.New("it would not run again either")

// child is one process as its supervisor sees it.
type child struct {
	name    string
	exits   <-chan error // wakes the supervisor, with the reason; may come late
	running func() bool
	restart func(context.Context) error // returns when the child serves
	say     func(format string, args ...any)
}

// supervise restarts a child whenever it has ended, until ctx ends. It gives up
// with an error where that does not help.
func (c child) supervise(ctx context.Context) error {
	var tries restarts
	for {
		select {
		case <-ctx.Done():
			return nil
		case cause := <-c.exits:
			if c.running() {
				continue // it has been restarted since
			}
			for cause != nil && ctx.Err() == nil {
				pause, ok := tries.next(time.Now())
				if !ok || errors.Is(cause, errFinal) {
					return fmt.Errorf("%s cannot be kept running: %w", c.name, cause)
				}
				c.say("%v\n%s is restarted in %v", cause, c.name, pause)
				cause = c.again(ctx, pause)
			}
		}
	}
}

// again restarts a child once, after a pause.
func (c child) again(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
	}
	limited, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	err := c.restart(limited)
	if err == nil {
		c.say("%s is back", c.name)
	}
	return err
}

// restarts remembers when a child was restarted.
type restarts struct{ recent []time.Time }

// next gives the pause before another restart, or says that there were too many.
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

// watch supervises all children until ctx ends, or until one is given up.
func (b *booth) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	exits := map[int]chan error{}
	var wg sync.WaitGroup
	for _, c := range b.children(exits) {
		wg.Go(func() {
			if err := c.supervise(ctx); err != nil {
				cancel(err)
			}
		})
	}
	for {
		select {
		case exit := <-b.dynamo.Exits():
			select {
			case exits[exit.Worker] <- exit.Err:
			default: // its supervisor is awake already
			}
		case <-ctx.Done():
			wg.Wait()
			if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		}
	}
}

// children describes the load generator, the frontend and the workers. The exits
// of the last two, by worker number, are to be fed.
func (b *booth) children(exits map[int]chan error) []child {
	all := []child{{name: "the load generator", exits: b.loadgen.exits, running: b.loadgen.running, restart: b.loadgen.start, say: b.out.say}}
	part := func(number int, name string, restart func(context.Context) error) {
		exits[number] = make(chan error, 1)
		all = append(all, child{
			name: name, exits: exits[number], restart: restart, say: b.out.say,
			running: func() bool { return b.dynamo.Running(number) },
		})
	}
	part(local.Frontend, "the frontend", b.dynamo.StartFrontend)
	for i, w := range b.dynamo.Workers() {
		part(i, w.Name, func(ctx context.Context) error { return b.dynamo.RestartWorker(ctx, i) })
	}
	return all
}
