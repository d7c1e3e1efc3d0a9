package process

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
)

// Permanent is an error that another try would give again.
type Permanent struct{ Err error }

// Error is that of the error itself.
func (p Permanent) Error() string { return p.Err.Error() }

// Unwrap gives the error itself.
func (p Permanent) Unwrap() error { return p.Err }

// Child is one process as its supervisor sees it.
type Child struct {
	Name    string
	Ended   func(context.Context) error // waits for its end and says why it ended; nil where ctx ends first
	Restart func(context.Context) error // returns when the child serves
	Within  time.Duration               // which a restart may take
	Say     func(format string, args ...any)
}

// Supervise restarts a child whenever it has ended, until ctx ends. It gives up
// with an error where that does not help.
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

// again restarts a child once, after a pause.
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
