package members

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// crew plays members that do at once what their shares say, and report it.
type crew struct {
	t       *testing.T
	a       *allotment
	begun   map[int64]string // number → member
	members map[string]*fake
}

type fake struct {
	share  Share
	blocks []Block // not begun
	told   told
	alive  bool
}

func newCrew(t *testing.T) *crew {
	return &crew{t: t, a: newAllotment("run"), begun: map[int64]string{}, members: map[string]*fake{}}
}

func (c *crew) join(ids ...string) {
	for _, id := range ids {
		c.members[id] = &fake{alive: true}
	}
}

// divide has the members hear of their shares.
func (c *crew) divide(t total) map[string]Share {
	var candidates []candidate
	for id, m := range c.members {
		if m.alive {
			candidates = append(candidates, candidate{ID: id, Weight: 1, Told: m.told})
		}
	}
	shares, changed := c.a.divide(t, candidates)
	for _, id := range changed {
		m, s := c.members[id], shares[id]
		for _, b := range s.Blocks {
			if len(m.blocks) == 0 && b.From >= m.share.end() || len(m.blocks) > 0 && b.From >= m.blocks[len(m.blocks)-1].To {
				m.blocks = append(m.blocks, b)
			}
		}
		m.share = s
	}
	return shares
}

// work has each member fill its places, after some of its conversations have ended.
func (c *crew) work(ended func(id string, active int) int) {
	for id, m := range c.members {
		if !m.alive {
			continue
		}
		m.told.Active -= ended(id, m.told.Active)
		for m.told.Active < m.share.Concurrency && len(m.blocks) > 0 {
			k := m.blocks[0].From
			require.Emptyf(c.t, c.begun[k], "number %d is begun twice", k)
			c.begun[k] = id
			if m.blocks[0].From++; m.blocks[0].From == m.blocks[0].To {
				m.blocks = m.blocks[1:]
			}
			m.told.Active++
			m.told.Begun++
		}
		m.told.Grant = m.share.Grant
	}
}

func (c *crew) active() (sum int) {
	for _, m := range c.members {
		if m.alive {
			sum += m.told.Active
		}
	}
	return sum
}

func none(string, int) int { return 0 }

// The first conversations of a run are those of the lowest numbers, whoever holds them.
func TestFirstNumbersAreLowest(t *testing.T) {
	for _, members := range []int{1, 3, 8} {
		c := newCrew(t)
		for i := range members {
			c.join(fmt.Sprint(i))
		}
		c.divide(total{Concurrency: 100, StartRate: 10, TargetRPS: 4})
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

// Whoever comes and goes: no number is begun twice, what is in progress never grows beyond what
// is asked for, and it is what is asked for soon.
func TestAllotmentHolds(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := newCrew(t)
		c.join("0")
		wanted := 1 + r.IntN(400)
		for round := range 200 {
			switch r.IntN(6) {
			case 0:
				c.join(fmt.Sprint(seed, round))
			case 1:
				for id, m := range c.members { // any
					if m.alive && len(c.members) > 1 {
						m.alive = false
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
			c.divide(total{Concurrency: wanted, StartRate: 1})
			c.work(func(_ string, active int) int { return r.IntN(active + 1) })
			require.LessOrEqual(t, c.active(), max(before, wanted))
		}
		for range 4 {
			c.divide(total{Concurrency: wanted, StartRate: 1000}) // so that shares move at once
			c.work(func(id string, active int) int { return max(0, active-c.members[id].share.Concurrency) })
		}
		assert.Equal(t, wanted, c.active())
	}
}

// Whoever has begun its numbers gets more, long before there are none.
func TestNumbersDoNotRunOut(t *testing.T) {
	c := newCrew(t)
	c.join("a", "b")
	for range 100 {
		c.divide(total{Concurrency: 100})
		c.work(func(_ string, active int) int { return active })
		require.Equal(t, 100, c.active())
	}
}

// Nothing is written where nothing has changed.
func TestQuietAllotment(t *testing.T) {
	c := newCrew(t)
	c.join("a", "b")
	c.divide(total{Concurrency: 10})
	c.work(none)
	for range 3 {
		before := c.a.grant
		c.divide(total{Concurrency: 10})
		if before == c.a.grant {
			return
		}
		c.work(none)
	}
	t.Error("shares go on changing")
}

// A coordinator that takes over gives none of the numbers that the one before gave.
func TestResumedAllotment(t *testing.T) {
	c := newCrew(t)
	c.join("a", "b", "c")
	c.divide(total{Concurrency: 30})
	c.work(none)
	next := newAllotment("run")
	for id, m := range c.members {
		next.resume(id, m.share)
	}
	assert.Equal(t, c.a.next, next.next)
	c.a = next
	c.members["b"].alive = false
	delete(c.members, "b")
	c.join("d")
	for range 3 {
		c.divide(total{Concurrency: 60})
		c.work(none)
	}
	assert.Equal(t, 60, c.active())
}

// Conversations begin where they are missing, at the rate of all together.
func TestStartsGoWhereTheyAreMissing(t *testing.T) {
	held := []candidate{{ID: "a", Told: told{Active: 50}}, {ID: "b", Told: told{Active: 49}}}
	assert.Equal(t, []float64{.5, .5}, startParts(held, []int{50, 50}), "one that ended is not missing")
	parts := startParts(append(held, candidate{ID: "c"}, candidate{ID: "d"}), []int{50, 50, 50, 0})
	assert.Greater(t, parts[2], .9)
	assert.Equal(t, parts[0], parts[1])
	assert.Positive(t, parts[0])
	assert.Zero(t, parts[3])
	assert.InDelta(t, 1, parts[0]+parts[1]+parts[2], 1e-9)
	assert.Equal(t, []float64{0}, startParts(held[:1], []int{0}))
}

// Whoever comes gets its share without a gap in what is in progress that takes long to fill.
func TestSharesMoveAsFastAsConversationsBegin(t *testing.T) {
	c := newCrew(t)
	c.join("a", "b")
	at := total{Concurrency: 400, StartRate: 20}
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
		assert.Equal(t, 100, m.told.Active, id)
	}
	at.Concurrency = 100 // at once
	settle()
	for id, m := range c.members {
		assert.Equal(t, 25, m.told.Active, id)
	}
}

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
