//go:build verify

package shadow

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/members"
	"kvbooth/sidecar/loadgen/members/natstest"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/test/virtual"
)

// served is a model of a cluster as a member's target.
type served struct{ *virtual.Cluster }

func (served) Close() {}

// shadowed is a lane with its shadow against a cluster of its own, which is the model by the real
// clock.
func shadowed(t *testing.T, changes ...func(*virtual.Generator, *lane.Options)) (*lane.Lane, *virtual.Cluster) {
	t.Helper()
	g := virtual.NewGenerator(t, virtual.Folder(t))
	t.Cleanup(g.End)
	c := g.Cluster(virtual.Options{Mode: api.ModeKV, Seed: 1, TokenIDs: true})
	l := g.Lane(c, workload.Settings{
		Concurrency: 20, Turns: api.Range{Min: 3, Max: 5}, Openings: 10, MaxTokens: 24, Output: &api.Distribution{Mean: 16, CV: .15}, StartRate: 20,
	}, func(o *lane.Options) {
		o.Cluster, o.Shadow = c.State, true
		for _, change := range changes {
			change(g, o)
		}
	})
	g.Run()
	return l, c
}

// goes runs something until the end of the test, or of what it returns.
func goes(t *testing.T, run func(context.Context) error) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-done)
	})
	t.Cleanup(end)
	return end
}

// The shadow of a lane whose conversations two members hold tells what that of a lane tells which
// holds them itself.
func TestFollowsMembers(t *testing.T) {
	access, log := members.Access{URL: natstest.Start(t).URL(), Fleet: "test"}, slog.New(slog.DiscardHandler)
	alone, _ := shadowed(t)
	together, on := shadowed(t, func(g *virtual.Generator, o *lane.Options) {
		c, err := members.Open(t.Context(), members.Options{Access: access, Name: "test", Version: "1", FilesEach: 1, Store: g.Store, Log: log})
		require.NoError(t, err)
		goes(t, c.Run)
		o.Engine = c.Engine(members.TargetOptions{URL: "http://127.0.0.1:1", TokenIDs: true}, members.FollowupOptions{}, nil)
	})
	ends := make([]func(), 2)
	for i := range ends {
		ends[i] = goes(t, func(ctx context.Context) error {
			return members.RunMember(ctx, members.MemberOptions{
				Access: access, Name: fmt.Sprint("m", i), Version: "1", Log: log,
				Target: func(members.TargetOptions) (members.Target, error) { return served{on}, nil },
				Questioner: func(members.FollowupOptions) (corpus.Questioner, func(), error) {
					return corpus.BuiltinQuestioner{}, nil, nil
				},
				Health: func(time.Time) api.ClientHealth { return api.ClientHealth{Verdict: api.VerdictFine} },
			})
		})
	}
	lanes := []*lane.Lane{alone, together}
	var got [2]api.Shadow
	for _, l := range lanes {
		_, err := l.Start(t.Context(), "ann", api.StartRequest{})
		require.NoError(t, err)
	}
	for i, l := range lanes {
		wait.Eventually(t, "the shadow has followed enough turns", func() (any, bool) {
			got[i] = l.Shadow()
			return got[i], got[i].Requests >= 500
		})
	}
	for i, s := range got {
		figure.Report(t, "%s: %d turns, measured %.2f %%, the shadow is %.2f points off",
			[]string{"one process", "two members"}[i], s.Requests, 100**s.Measured.HitRatio, 100**s.CacheError)
		assert.Equal(t, api.ShadowTokenIDs, s.Source)
		assert.Zero(t, s.Lost)
		assert.Empty(t, s.Withheld)
		assert.InDelta(t, 0, *s.CacheError, .01)
	}
	within := map[string]float64{"best": .005, "opening_hash": .005, "round_robin": .01} // what hangs little on who comes first
	for i, p := range got[0].Policies {
		other := got[1].Policies[i]
		assert.InDelta(t, *p.Figures.HitRatio, *other.Figures.HitRatio, cmp.Or(within[p.Policy], .03), p.Policy)
	}
	for _, l := range lanes {
		c := l.Shadow().Choices
		require.NotNil(t, c)
		assert.InDelta(t, c.Clear, c.ClearAgreed, 2+.05*float64(c.Clear), "%+v", *c)
		assert.Greater(t, c.Turns, 250)
	}

	ends[0]() // what it held is cancelled, and the account goes on with the other one's
	turns := together.Shadow().Choices.Turns
	wait.Eventually(t, "the other member has all conversations, and the shadow follows them", func() (any, bool) {
		c := together.Shadow().Choices
		return c, together.State().Concurrency.Actual == 20 && c.Turns > turns+100
	})
	assert.InDelta(t, 0, *together.Shadow().CacheError, .01)
}
