package members

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbooth/internal/wait"
)

func TestLeaseCountsFromTheSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLease()
		assert.False(t, l.holds(), "not renewed yet")
		sent := time.Now()
		wait.Advance(time.Second) // until it is acknowledged
		l.renewed(sent)
		assert.True(t, l.holds())
		began := time.Now()
		l.watch(t.Context())
		assert.Equal(t, leaseSpan-leaseMargin, time.Since(sent), "it counts from the sending, not from %v", began)
		assert.False(t, l.holds())
		l.renewed(time.Now())
		assert.False(t, l.holds(), "an expired lease is not renewed")
	})
}

func TestEndedLeaseIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLease()
		l.renewed(time.Now())
		wait.Advance(renewEvery)
		l.renewed(time.Now().Add(-2 * renewEvery)) // acknowledged out of order
		assert.True(t, l.holds())
		l.end()
		assert.False(t, l.holds())
		l.renewed(time.Now())
		assert.False(t, l.holds())
	})
}
