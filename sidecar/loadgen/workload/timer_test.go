package workload

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A wait by a kernel timer is never too short, and ends early for the reasons for which others do.
func TestSleepExactly(t *testing.T) {
	began := time.Now()
	assert.True(t, sleepExactly(t.Context(), nil, time.Millisecond))
	assert.GreaterOrEqual(t, time.Since(began), time.Millisecond)

	changed := make(chan struct{})
	close(changed)
	assert.False(t, sleepExactly(t.Context(), changed, time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.False(t, sleepExactly(ctx, nil, time.Hour))
}
