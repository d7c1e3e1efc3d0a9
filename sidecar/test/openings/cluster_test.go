//go:build verify

package openings

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/test/virtual"
)

// run runs 60 conversations with a cluster that has cold caches, for a minute and then for a duration, and returns the
// turns that were sent after the minute.
func run(t *testing.T, mode api.Mode, openings workload.Openings, long time.Duration) (turns []virtual.Turn) {
	dir := virtual.Folder(t)
	synctest.Test(t, func(t *testing.T) {
		g := virtual.NewGenerator(t, dir)
		target := g.Cluster(virtual.Options{Mode: mode, Seed: 1})
		l := g.Lane(target, workload.Settings{
			Level: api.AtConversations(60), Turns: api.Range{Min: 3, Max: 5}, Openings: openings, MaxTokens: 1024,
			OutputTokens: api.Distribution{Mean: 830, CV: .15}, StartRate: 10, TargetRPS: 25,
		})
		g.Run()
		_, err := l.Start(t.Context(), "test", api.StartRequest{})
		require.NoError(t, err)
		wait.Advance(time.Minute + long)
		g.End()
		for _, u := range target.Turns() {
			if u.Sent >= time.Minute {
				turns = append(turns, u)
			}
		}
	})
	return turns
}
