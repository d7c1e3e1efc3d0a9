package chat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Each case has the wait at 10 s. Times are in seconds.
func TestPausesGrowUntilSuccess(t *testing.T) {
	epoch := time.Unix(0, 0)
	at := func(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }
	for _, tt := range []struct {
		name string
		do   func(b *Breaker)
		want float64 // end of the wait at 10
	}{
		{"nothing has failed", func(*Breaker) {}, 0},
		{"a failure begins a pause", func(b *Breaker) { b.Failure(at(10), at(9), 0) }, .25},
		{"the failure of an earlier request is ignored", func(b *Breaker) {
			b.Failure(at(9.9), at(9), 0)
			b.Failure(at(10), at(9.5), 0)
			b.Failure(at(10), at(9.95), 0)
		}, .15},
		{"the failure of a later request doubles the pause", func(b *Breaker) {
			b.Failure(at(9), at(8), 0)
			b.Failure(at(10), at(9.5), 0)
		}, .5},
		{"a success ends it", func(b *Breaker) {
			b.Failure(at(10), at(9), time.Minute)
			assert.True(t, b.Success())
			assert.False(t, b.Success(), "once")
		}, 0},
		{"pauses begin anew", func(b *Breaker) {
			b.Failure(at(8), at(7), 0)
			b.Failure(at(9), at(8.5), 0)
			b.Success()
			b.Failure(at(10), at(9.5), 0)
		}, .25},
		{"a try delays the next one", func(b *Breaker) {
			b.Failure(at(8), at(7), 0)
			assert.True(t, b.Admit(at(9)))
			assert.False(t, b.Admit(at(9.5)), "one at a time")
		}, 3},
		{"the failure of a try begins a pause", func(b *Breaker) {
			b.Failure(at(8), at(7), 0)
			b.Admit(at(9))
			b.Failure(at(10), at(9), 0)
		}, .5},
		{"an earlier try that fails late is ignored", func(b *Breaker) {
			b.Failure(at(1), at(0), 0)
			b.Admit(at(2))
			b.Admit(at(9))
			b.Failure(at(10), at(2), 0)
		}, 3},
		{"no try is admitted within the pause", func(b *Breaker) {
			b.Failure(at(10), at(9), 2*time.Second)
			assert.False(t, b.Admit(at(10)))
		}, 2},
		{"a request without a pause is no try", func(b *Breaker) { assert.True(t, b.Admit(at(9))) }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &Breaker{Failures: 1, Least: 250 * time.Millisecond, Most: 4 * time.Second}
			tt.do(b)
			assert.Equal(t, at(tt.want), epoch.Add(b.Wait(at(10))))
		})
	}
}

// A pause begins after the given number of failures. A try may be released.
func TestPauseBeginsAfterFailures(t *testing.T) {
	now := time.Unix(0, 0)
	b := &Breaker{Failures: 3, Least: time.Second, Most: 30 * time.Second}
	assert.False(t, b.Failure(now, now, 0))
	assert.False(t, b.Failure(now, now, 0))
	assert.True(t, b.Admit(now), "two failures begin no pause")
	assert.True(t, b.Failure(now, now, 0))
	assert.Equal(t, time.Second, b.Wait(now))

	now = now.Add(time.Second)
	assert.True(t, b.Admit(now))
	assert.False(t, b.Admit(now), "one at a time")
	b.Release(now)
	assert.True(t, b.Admit(now))
}
