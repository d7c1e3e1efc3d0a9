package members

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/loadgen/workload"
)

// testMembers simulates members that apply their shares at once, and report that.
type testMembers struct {
	t       *testing.T
	a       *allotment
	begun   map[int64]string // number → member
	members map[string]*testMember
}

type testMember struct {
	share    Share
	blocks   []Block // not begun
	reported standing
	present  bool
}

func newTestMembers(t *testing.T, ids ...string) *testMembers {
	c := &testMembers{t: t, a: newAllotment("run"), begun: map[int64]string{}, members: map[string]*testMember{}}
	c.join(ids...)
	return c
}

func (c *testMembers) join(ids ...string) {
	for _, id := range ids {
		c.members[id] = &testMember{present: true}
	}
}

// divide divides the total and passes the shares to the members.
func (c *testMembers) divide(total workload.Settings) map[string]Share {
	var candidates []candidate
	for id, m := range c.members {
		if m.present {
			candidates = append(candidates, candidate{ID: id, Reported: m.reported})
		}
	}
	shares := c.a.divide(total, candidates)
	for id, s := range shares {
		m := c.members[id]
		if s.Grant == m.share.Grant {
			continue
		}
		for _, b := range s.Blocks {
			if len(m.blocks) == 0 && b.From >= m.share.end() || len(m.blocks) > 0 && b.From >= m.blocks[len(m.blocks)-1].To {
				m.blocks = append(m.blocks, b)
			}
		}
		m.share = s
	}
	return shares
}

// work makes each member begin conversations up to its share, after some have ended.
func (c *testMembers) work(ended func(id string, active int) int) {
	for id, m := range c.members {
		if !m.present {
			continue
		}
		m.reported.Active -= ended(id, m.reported.Active)
		for m.reported.Active < m.share.Concurrency && len(m.blocks) > 0 {
			k := m.blocks[0].From
			require.Emptyf(c.t, c.begun[k], "number %d is begun twice", k)
			c.begun[k] = id
			if m.blocks[0].From++; m.blocks[0].From == m.blocks[0].To {
				m.blocks = m.blocks[1:]
			}
			m.reported.Active++
			m.reported.Begun++
		}
		m.reported.Grant = m.share.Grant
	}
}

func (c *testMembers) active() (sum int) {
	for _, m := range c.members {
		if m.present {
			sum += m.reported.Active
		}
	}
	return sum
}

func none(string, int) int { return 0 }

// The first conversations of a run have the lowest numbers, on any number of members.
func TestFirstNumbersAreLowest(t *testing.T) {
	for _, members := range []int{1, 3, 8} {
		c := newTestMembers(t)
		for i := range members {
			c.join(fmt.Sprint(i))
		}
		c.divide(workload.Settings{Concurrency: 100, StartRate: 10, TargetRPS: 4})
		c.work(none)
		require.Len(t, c.begun, 100)
		for k := range int64(100) {
			assert.NotEmpty(t, c.begun[k], "number %d", k)
		}
		rate, rps := 0., 0.
		for _, m := range c.members {
			rate, rps = rate+m.share.StartRate, rps+m.share.TargetRPS
		}
		assert.InDelta(t, 10, rate, 1e-9)
		assert.InDelta(t, 4, rps, 1e-9)
	}
}

// While members join and leave at random, no number is begun twice, the conversations in progress never grow beyond the
// total, and soon reach it.
func TestAllotmentReachesTheTotal(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := newTestMembers(t, "0")
		wanted := 1 + r.IntN(400)
		for round := range 200 {
			switch r.IntN(6) {
			case 0:
				c.join(fmt.Sprint(seed, round))
			case 1:
				for id, m := range c.members { // any
					if m.present && len(c.members) > 1 {
						m.present = false
						delete(c.members, id)
						break
					}
				}
			case 2:
				wanted = 1 + r.IntN(400)
			}
			if len(c.members) == 0 {
				c.join("last" + fmt.Sprint(round))
			}
			before := c.active()
			c.divide(workload.Settings{Concurrency: wanted, StartRate: 1})
			c.work(func(_ string, active int) int { return r.IntN(active + 1) })
			require.LessOrEqual(t, c.active(), max(before, wanted))
		}
		for range 4 {
			c.divide(workload.Settings{Concurrency: wanted, StartRate: 1000}) // so that shares move at once
			c.work(func(id string, active int) int { return max(0, active-c.members[id].share.Concurrency) })
		}
		assert.Equal(t, wanted, c.active())
	}
}

// A member that begins its numbers gets more before none are left.
func TestNumbersDoNotRunOut(t *testing.T) {
	c := newTestMembers(t, "a", "b")
	for range 100 {
		c.divide(workload.Settings{Concurrency: 100})
		c.work(func(_ string, active int) int { return active })
		require.Equal(t, 100, c.active())
	}
}

// Without changes, no share changes.
func TestSharesSettle(t *testing.T) {
	c := newTestMembers(t, "a", "b")
	c.divide(workload.Settings{Concurrency: 10})
	c.work(none)
	for range 3 {
		before := c.a.grant
		c.divide(workload.Settings{Concurrency: 10})
		if before == c.a.grant {
			return
		}
		c.work(none)
	}
	t.Error("shares still change after three rounds without a change of members or total")
}

// A coordinator that takes over gives none of the numbers that the former one gave.
func TestResumedAllotmentGivesNewNumbers(t *testing.T) {
	c := newTestMembers(t, "a", "b", "c")
	c.divide(workload.Settings{Concurrency: 30})
	c.work(none)
	next := newAllotment("run")
	for id, m := range c.members {
		next.resume(id, m.share)
	}
	assert.Equal(t, c.a.next, next.next)
	c.a = next
	c.members["b"].present = false
	delete(c.members, "b")
	c.join("d")
	for range 3 {
		c.divide(workload.Settings{Concurrency: 60})
		c.work(none)
	}
	assert.Equal(t, 60, c.active())
}

// The start rate goes to members that miss conversations.
func TestStartsGoWhereTheyAreMissing(t *testing.T) {
	held := []candidate{{ID: "a", Reported: standing{Active: 50}}, {ID: "b", Reported: standing{Active: 49}}}
	assert.Equal(t, []float64{.5, .5}, startParts(held, []int{50, 50}), "one that ended is not missing")
	parts := startParts(append(held, candidate{ID: "c"}, candidate{ID: "d"}), []int{50, 50, 50, 0})
	assert.Greater(t, parts[2], .9)
	assert.Equal(t, parts[0], parts[1])
	assert.Positive(t, parts[0])
	assert.Zero(t, parts[3])
	assert.InDelta(t, 1, parts[0]+parts[1]+parts[2], 1e-9)
	assert.Equal(t, []float64{0}, startParts(held[:1], []int{0}))
}

// Shares move to new members only as fast as conversations can begin, so that few are missing meanwhile.
func TestSharesMoveAsFastAsConversationsBegin(t *testing.T) {
	c := newTestMembers(t, "a", "b")
	at := workload.Settings{Concurrency: 400, StartRate: 20}
	settle := func() {
		for range 4 {
			c.divide(at)
			c.work(func(id string, active int) int { return max(0, active-c.members[id].share.Concurrency) })
		}
	}
	settle()
	require.Equal(t, 400, c.active())
	c.join("c", "d")
	for range 100 {
		c.divide(at)
		c.work(func(id string, active int) int { return max(0, active-c.members[id].share.Concurrency) })
		require.GreaterOrEqual(t, c.active(), 380)
	}
	for id, m := range c.members {
		assert.Equal(t, 100, m.reported.Active, id)
	}
	at.Concurrency = 100 // at once
	settle()
	for id, m := range c.members {
		assert.Equal(t, 25, m.reported.Active, id)
	}
}

// Members that begin a run together pin its first turns as one process would: the numbers of turns of any two instances
// differ by at most one.
func TestFirstTurnsArePinnedEvenly(t *testing.T) {
	for _, tt := range []struct{ members, concurrency, instances int }{
		{2, 30, 4}, {3, 30, 4}, {3, 100, 7}, {8, 1000, 3}, {5, 7, 3},
	} {
		all, instances := []candidate{}, []string{}
		for i := range tt.members {
			all = append(all, candidate{ID: fmt.Sprint("m", i)})
		}
		for i := range tt.instances {
			instances = append(instances, fmt.Sprint(i))
		}
		shares := newAllotment("r").divide(workload.Settings{Concurrency: tt.concurrency}, all)
		pinned := map[string]int{}
		for _, s := range shares {
			p := newPart(&order{Instances: instances}, s, nil, nil, nil, nil)
			for range s.Concurrency {
				pinned[p.pin()]++
			}
		}
		least, most := tt.concurrency, 0
		for _, id := range instances {
			least, most = min(least, pinned[id]), max(most, pinned[id])
		}
		assert.LessOrEqual(t, most-least, 1, "%+v: %v", tt, pinned)
	}
}
