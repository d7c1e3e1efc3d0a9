package sweep

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// Tokens of a member whose clock differs neither end the recorder nor make it grow beyond the current second.
func TestTokensOfOtherClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(time.Now(), 0, nil)
		<-time.After(2 * time.Second)
		for at, want := range map[time.Duration][]float64{
			-100 * 365 * 24 * time.Hour: nil, -2 * time.Second: nil, -time.Millisecond: nil,
			0: {7}, time.Second: {0, 7}, 2*time.Second + 1: {0, 0, 7}, 200 * 365 * 24 * time.Hour: {0, 0, 7},
		} {
			r.tokens = nil
			r.Tokens(r.base.Add(at), 7)
			assert.Equal(t, want, r.tokens, at)
		}
	})
}
