package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A child is restarted at most maxRestarts times within restartWindow, after
// pauses that double from firstPause on.
const (
	maxRestarts   = 5
	restartWindow = 10 * time.Minute
	firstPause    = time.Second
	readyWithin   = 30 * time.Second
)

// permanent is an error that another try would give again.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// child is one process as its supervisor sees it.
type child struct {
	name    string
	ended   func(context.Context) error // waits for its end and says why it ended; nil where ctx ends first
	restart func(context.Context) error // returns when the child serves
	within  time.Duration               // which a restart may take
	say     func(format string, args ...any)
}

// supervise restarts a child whenever it has ended, until ctx ends. It gives up
// with an error where that does not help.
func (c child) supervise(ctx context.Context) error {
	var tries restarts
	for ctx.Err() == nil {
		cause := c.ended(ctx)
		for cause != nil && ctx.Err() == nil {
			pause, ok := tries.next(time.Now())
			if !ok || errors.As(cause, new(permanent)) {
				return fmt.Errorf("%s cannot be kept running: %w", c.name, cause)
			}
			c.say("%v\n%s is restarted in %v", cause, c.name, pause)
			cause = c.again(ctx, pause)
		}
	}
	return nil
}

// again restarts a child once, after a pause.
func (c child) again(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
	}
	limited, cancel := context.WithTimeout(ctx, c.within)
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
