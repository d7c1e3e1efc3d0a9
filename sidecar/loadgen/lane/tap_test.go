package lane

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
)

// Every turn that the store gets is told with its conversation's draw, by which no two
// conversations of a lane are confused, whatever runs they belong to.
func TestEndedTurnsTellTheirConversation(t *testing.T) {
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
		of, opened, turns := map[Draw]string{}, map[int64]bool{}, []api.Turn{}
		for _, e := range ended {
			turns = append(turns, e.Turn)
			opened[e.Draw.Opened] = true
			assert.Equal(t, uint64(7), e.Draw.Seed)
			assert.True(t, strings.HasSuffix(e.Conversation, fmt.Sprintf("-%d", e.Draw.Number)), "%s is number %d", e.Conversation, e.Draw.Number)
			if other, known := of[e.Draw]; known {
				assert.Equal(t, other, e.Conversation, "one conversation for each draw")
			}
			of[e.Draw] = e.Conversation
		}
		assert.NotEmpty(t, turns)
		assert.ElementsMatch(t, stored, turns)
		assert.Len(t, opened, 2, "two runs")
		assert.Contains(t, opened, int64(0))
	}, func(o *options) {
		o.Ended = func(e EndedTurn) {
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, e)
		}
	})
}
