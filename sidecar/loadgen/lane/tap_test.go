package lane

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
)

// Every stored turn is reported with the draw of its conversation. No two conversations of a lane have one draw,
// whatever runs they belong to.
func TestEndedTurnsHaveTheDrawOfTheirConversation(t *testing.T) {
	var mu sync.Mutex
	var ended []EndedTurn
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		for range 2 {
			b.start(3)
			f.turns()
			b.stop()
		}
		stored := b.store.allTurns()
		mu.Lock()
		defer mu.Unlock()
		byDraw, runs, turns := map[Draw]string{}, map[int64]bool{}, []api.Turn{}
		for _, e := range ended {
			turns = append(turns, e.Turn)
			runs[e.Draw.Opened] = true
			assert.Equal(t, uint64(7), e.Draw.Seed)
			assert.True(t, strings.HasSuffix(e.Conversation, fmt.Sprintf("-%d", e.Draw.Number)), "%+v", e)
			if other, known := byDraw[e.Draw]; known {
				assert.Equal(t, other, e.Conversation, "one conversation for each draw")
			}
			byDraw[e.Draw] = e.Conversation
		}
		assert.NotEmpty(t, turns)
		assert.ElementsMatch(t, stored, turns)
		assert.Len(t, runs, 2)
		assert.Contains(t, runs, int64(0))
	}, func(o *options) {
		o.Ended = func(e EndedTurn) {
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, e)
		}
	})
}
