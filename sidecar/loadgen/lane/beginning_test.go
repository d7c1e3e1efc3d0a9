package lane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// The state says what the first turns of the run found in the caches, as soon as they have ended.
func TestCachesAtTheBeginning(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		for _, row := range []struct {
			prompt, cached int
			state          api.CachesState
		}{{5000, 400, api.CachesWereCold}, {5000, 4000, api.CachesWereWarm}, {1000, 900, ""}} {
			f.set(func(f *fake) { f.prompt, f.cached = row.prompt, row.cached })
			b.start(3)
			require.Nil(t, b.snapshot().State.Caches, "no turn has ended")
			pass(20 * time.Second)
			found := b.snapshot().State.Caches
			if row.state == "" {
				require.Nil(t, found, "the prompts are shorter than an opening")
			} else {
				require.Equal(t, row.state, found.State)
				require.Positive(t, found.Openings)
				require.Equal(t, row.state == api.CachesWereWarm, found.Warm > 0)
			}
			b.stop()
			require.Equal(t, found, b.snapshot().State.Caches, "of the last start")
			pass(20 * time.Second)
		}
	})
}
