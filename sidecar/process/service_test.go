package process

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestRestartPausesDouble checks that pauses double, that too many restarts within ten minutes are refused, and that
// the pauses start again later.
func TestRestartPausesDouble(t *testing.T) {
	var r restarts
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, want := range []time.Duration{1, 2, 4, 8, 16} {
		pause, ok := r.next(now)
		assert.True(t, ok)
		assert.Equal(t, want*time.Second, pause)
		now = now.Add(time.Minute)
	}
	_, ok := r.next(now)
	assert.False(t, ok)
	pause, ok := r.next(now.Add(restartWindow))
	assert.True(t, ok)
	assert.Equal(t, time.Second, pause)
}

func TestSuperviseRetriesUntilPermanentError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Time
		s := supervised{
			name: "child", say: t.Logf,
			ended: func(context.Context) error { return errors.New("crashed") },
			restart: func(context.Context) error {
				if tries = append(tries, time.Now()); len(tries) == 1 {
					return errors.New("not ready")
				}
				return fmt.Errorf("started: %w", Permanent{errors.New("bad flag")})
			},
		}
		began := time.Now()
		err := s.run(t.Context())
		assert.EqualError(t, err, "child keeps failing: started: bad flag")
		assert.Equal(t, []time.Time{began.Add(time.Second), began.Add(3 * time.Second)}, tries)
	})
}
