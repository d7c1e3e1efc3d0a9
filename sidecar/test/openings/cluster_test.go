//go:build verify

package openings

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/test/virtual"
)

// noObserver ignores a workload's events.
type noObserver struct{}

func (noObserver) ConversationStarted(*workload.Conversation)                            {}
func (noObserver) TurnStarted(*workload.LiveTurn)                                        {}
func (noObserver) Arrived(int)                                                           {}
func (noObserver) TurnEnded(*workload.Conversation, *workload.LiveTurn)                  {}
func (noObserver) ConversationEnded(*workload.Conversation, api.ConversationStatus, int) {}
func (noObserver) Active(int, int)                                                       {}

// run runs 60 conversations with a cluster that has cold caches, for a minute and then for a duration, and returns the
// turns that were sent after the minute.
func run(t *testing.T, mode api.Mode, openings workload.Openings, long time.Duration) (turns []virtual.Turn) {
	synctest.Test(t, func(t *testing.T) {
		texts, err := corpus.Builtin()
		require.NoError(t, err)
		target, err := virtual.New(virtual.Options{Mode: mode, Seed: 1})
		require.NoError(t, err)
		w := workload.New(workload.Options{
			Lane: "main", Run: "r1", Seed: 1, Sender: target, Corpus: texts, Questioner: corpus.BuiltinQuestioner{},
			Observer: noObserver{},
		}, workload.Settings{
			Concurrency: 60, Turns: api.Range{Min: 3, Max: 5}, Openings: openings, MaxTokens: 1024,
			Output: &api.Distribution{Mean: 830, CV: .15}, StartRate: 10, TargetRPS: 25,
		})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { target.Run(ctx) })
		wg.Go(func() { w.Run(ctx) })
		wait.Advance(time.Minute + long)
		cancel()
		wg.Wait()
		for _, u := range target.Turns() {
			if u.Sent >= time.Minute {
				turns = append(turns, u)
			}
		}
	})
	return turns
}
