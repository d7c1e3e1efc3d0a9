package process

import (
	"context"
	"errors"
	"fmt"
	"time"
)

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

// Child is a process under supervision.
type Child struct {
	Name    string
	Ended   func(context.Context) error // waits for the end and returns its cause; nil if ctx ends first
	Restart func(context.Context) error // returns when the child is ready
	Within  time.Duration               // timeout of a restart
	Say     func(format string, args ...any)
}

// Supervise restarts a child whenever it has ended, until ctx ends. It returns an error if the child keeps failing.
func (c Child) Supervise(ctx context.Context) error {
	var tries restarts
	for ctx.Err() == nil {
		cause := c.Ended(ctx)
		for cause != nil && ctx.Err() == nil {
			pause, ok := tries.next(time.Now())
			if !ok || errors.As(cause, new(Permanent)) {
				return fmt.Errorf("%s keeps failing: %w", c.Name, cause)
			}
			c.Say("%v\nrestarting %s in %v", cause, c.Name, pause)
			cause = c.again(ctx, pause)
		}
	}
	return nil
}

// again restarts a child once after a pause.
func (c Child) again(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
	}
	limited, cancel := context.WithTimeout(ctx, c.Within)
	defer cancel()
	err := c.Restart(limited)
	if err == nil {
		c.Say("%s is running again", c.Name)
	}
	return err
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
