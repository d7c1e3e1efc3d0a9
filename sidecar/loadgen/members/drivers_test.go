package members

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/workload"
)

// Members that begin a run together deal its first turns out as one process would: no two
// instances get numbers of turns that differ by more than one.
func TestFirstTurnsAreDealtEvenly(t *testing.T) {
	for _, of := range []struct{ members, concurrency, instances int }{{2, 30, 4}, {3, 30, 4}, {3, 100, 7}, {8, 1000, 3}, {5, 7, 3}} {
		all, instances := []candidate{}, []string{}
		for i := range of.members {
			all = append(all, candidate{ID: fmt.Sprint("m", i), Weight: 1})
		}
		for i := range of.instances {
			instances = append(instances, fmt.Sprint(i))
		}
		shares, _ := newAllotment("r").divide(total{Concurrency: of.concurrency}, all)
		dealt := map[string]int{}
		for _, s := range shares {
			p := newPart(&order{Run: "r", Instances: instances}, s, nil, nil, nil, nil)
			for range s.Concurrency {
				dealt[p.pin()]++
			}
		}
		least, most := of.concurrency, 0
		for _, id := range instances {
			least, most = min(least, dealt[id]), max(most, dealt[id])
		}
		assert.LessOrEqual(t, most-least, 1, "%+v: %v", of, dealt)
	}
}

// requested counts turns by the instance that they were pinned to.
type requested struct {
	*answers
	mu sync.Mutex
	by map[string]int
}

func (r *requested) Do(ctx context.Context, q chat.Request) chat.Result {
	r.mu.Lock()
	r.by[q.Instance]++
	r.mu.Unlock()
	return r.answers.Do(ctx, q)
}

// since gives what has been counted since it was asked last.
func (r *requested) since() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.by
	r.by = map[string]int{}
	return was
}

// task is a run of 30 conversations.
func task(t *testing.T, run string) lane.Task {
	t.Helper()
	texts, err := corpus.Builtin()
	require.NoError(t, err)
	return lane.Task{
		Lane: "main", Run: run, Seed: 7, Corpus: texts, Heard: newEars(), Step: api.StepRecord{Lane: "main", ID: 1, Concurrency: 30},
		Settings: workload.Settings{Concurrency: 30, Turns: api.Range{Min: 2, Max: 3}, MaxTokens: 8, StartRate: 1000},
	}
}

// Members pin turns to the instances that the driver names, and follow within two seconds where
// these change.
func TestPinned(t *testing.T) {
	f := newFleet(t)
	f.out.takes = 50 * time.Millisecond
	out := &requested{answers: f.out, by: map[string]int{}}
	for i := range 3 {
		f.memberThat(fmt.Sprint("m", i), func(o *MemberOptions) { o.Target = func(TargetOptions) (Target, error) { return out, nil } })
	}
	var instances atomic.Pointer[[]string]
	instances.Store(&[]string{"11", "22"})
	r := f.coord.Engine(TargetOptions{URL: "http://127.0.0.1:1"}, FollowupOptions{}, func() []string { return *instances.Load() }).Begin(task(t, "r1"))
	f.goes(r.Run)
	total := func(n map[string]int) (sum int) {
		for _, k := range n {
			sum += k
		}
		return sum
	}
	seen := map[string]int{}
	require.Eventually(t, func() bool {
		for id, n := range out.since() {
			seen[id] += n
		}
		return total(seen) > 1000
	}, time.Minute, 10*time.Millisecond)
	assert.InDelta(t, seen["11"], seen["22"], 5, "as many as there are members, and two that are being counted")
	assert.Len(t, seen, 2)

	changed := time.Now()
	instances.Store(&[]string{"22", "33"})
	require.Eventually(t, func() bool {
		n := out.since()
		return n["33"] > 5 && n["11"] == 0
	}, time.Minute, 100*time.Millisecond)
	t.Logf("followed after %v", time.Since(changed))
	assert.Less(t, time.Since(changed), 2*time.Second)
	instances.Store(new([]string))
	require.Eventually(t, func() bool {
		n := out.since()
		return n[""] > 5 && len(n) == 1
	}, time.Minute, 100*time.Millisecond, "left to the router")
}

// A run goes to the address in use when it begins.
func TestEndpoint(t *testing.T) {
	f := newFleet(t)
	var mu sync.Mutex
	var asked []string
	f.memberThat("m", func(o *MemberOptions) {
		o.Target = func(o TargetOptions) (Target, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, o.URL)
			return f.out, nil
		}
	})
	var inUse atomic.Pointer[string]
	e := f.coord.Engine(TargetOptions{URL: "http://whole", Endpoint: func() string { return *inUse.Load() }}, FollowupOptions{}, nil)
	for i, address := range []string{"http://kv", "http://round-robin"} {
		inUse.Store(&address)
		stop := f.goes(e.Begin(task(t, fmt.Sprint("r", i))).Run)
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Contains(asked, address)
		}, time.Minute, 10*time.Millisecond)
		stop()
	}
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, []string{"http://kv", "http://round-robin"}, asked)
}
