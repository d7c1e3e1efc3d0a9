package live

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// afar is a process that keeps notes, as seen by a Live that it tells.
type afar struct {
	Notes
	t     *testing.T
	name  string
	ahead time.Duration // its clock is
	bytes int           // told so far
	turns int
}

// tells is what goes on the wire, by the process's own clock.
func (a *afar) tells() *Told {
	told := a.Take()
	if told == nil {
		return nil
	}
	data, err := json.Marshal(told)
	require.NoError(a.t, err)
	a.bytes += len(data)
	told = new(Told)
	require.NoError(a.t, json.Unmarshal(data, told))
	told.Until = told.Until.Add(a.ahead)
	for i := range told.Events {
		told.Events[i].At += int64(a.ahead)
		if told.Events[i].Begin != nil {
			a.turns++
		}
	}
	return told
}

// talk holds a conversation of some turns, as each of several hears it.
func talk(k int, ids bool, hear ...func(Sent) *Turn) {
	r := rand.New(rand.NewPCG(7, uint64(k)))
	nap := func(most time.Duration) { time.Sleep(1 + time.Duration(r.Int64N(int64(most)))) }
	nap(5 * time.Second)
	text, tokens := "", prompt(k%5, 200)
	for range 6 {
		for range 20 {
			text += fmt.Sprint(" word", r.IntN(1000))
			tokens = append(tokens, r.Uint32())
		}
		worker, cached := uint64(11*(1+r.IntN(2))), r.IntN(200)
		var turns []*Turn
		for _, follow := range hear {
			turns = append(turns, follow(Sent{ID: fmt.Sprint(k), Conversation: fmt.Sprint(k), Concurrency: 10, Messages: words("user", text)}))
		}
		tell := func(f func(*Turn)) {
			for _, t := range turns {
				f(t)
			}
		}
		nap(time.Millisecond)
		if ids {
			tell(func(t *Turn) { t.Routed(tokens) })
		}
		nap(400 * time.Millisecond)
		tell(func(t *Turn) { t.FirstToken(worker) })
		nap(3 * time.Second)
		tell(func(t *Turn) {
			t.Ended(Result{OK: k%7 != 0, Worker: worker, PromptTokens: int(float64(len(text)) / usualRatio), OutputTokens: 20, CachedTokens: cached, Bytes: 100})
		})
		nap(time.Second)
	}
}

// report tells a Live once a second, each time a little later, until the turns have ended. Once
// nothing comes for a while.
func (a *afar) report(l *Live, done <-chan struct{}) {
	r := rand.New(rand.NewPCG(1, uint64(a.ahead)))
	for n, last := 0, false; !last; n++ {
		select {
		case <-done:
			last = true
		case <-time.After(time.Second):
		}
		told := a.tells()
		if n == 10 {
			time.Sleep(4 * time.Second)
		}
		time.Sleep(time.Duration(r.Int64N(int64(500 * time.Millisecond))))
		first, second := told.Halves()
		l.Hear(a.name, first, a.ahead, 0)
		l.Hear(a.name, second, a.ahead, 0)
	}
	l.Gone(a.name)
}

// What processes tell late, and not in the order in which it happened, gives the figures of an
// account that was there.
func TestHearsAsIfItWereThere(t *testing.T) {
	for name, ids := range map[string]bool{"token ids": true, "text": false} {
		t.Run(name, func(t *testing.T) {
			on(t, func(s *rig) {
				s.set(func(s *rig) { s.ids = ids })
				pass(2 * time.Second)
				there := New(s.opts) // which hears every turn itself
				there.adjust(time.Now())
				began := time.Now()
				var wg sync.WaitGroup
				members := []*afar{{name: "a", t: t}, {name: "b", t: t, ahead: 20 * time.Second}, {name: "c", t: t, ahead: -3 * time.Second}}
				for i, m := range members {
					m.Use(s.Cut())
					var talks sync.WaitGroup
					for n := range 15 {
						talks.Go(func() {
							k := 3*n + i
							talk(k, ids, there.Follow, m.Follow)
							m.Over(fmt.Sprint(k))
						})
					}
					done := make(chan struct{})
					wg.Go(func() {
						talks.Wait()
						close(done)
					})
					wg.Go(func() { m.report(s.Live, done) })
				}
				wg.Wait()
				require.Less(t, time.Since(began), 50*time.Second, "all of it is in the window")
				pass(hold + 2*time.Second)
				moment := s.account.away.known
				there.advance(moment)
				want, got := there.Shadow(moment), s.Live.Shadow(moment)
				require.Greater(t, want.Requests, 100, "since it was inferred whether answers are found again")
				want.Since, want.Seconds = got.Since, got.Seconds // it was opened earlier
				assert.Equal(t, want, got)
				assert.Equal(t, there.Decisions(1000), s.Live.Decisions(1000))
				assert.Zero(t, s.account.away.flying)
				assert.Empty(t, s.account.away.held)
				bytes, turns := 0, 0
				for _, m := range members {
					assert.Empty(t, m.past)
					assert.Zero(t, m.followed)
					bytes, turns = bytes+m.bytes, turns+m.turns
				}
				t.Logf("%d bytes a turn", bytes/turns)
			})
		})
	}
}

// heard follows one turn of 330 tokens afar, up to its first token, and has it told.
func (s *rig) heard(m *afar, text int) *Turn {
	f := m.Follow(Sent{ID: "r", Conversation: fmt.Sprint(text), Concurrency: 10})
	f.Routed(prompt(text, 330))
	pass(100 * time.Millisecond)
	f.FirstToken(11)
	pass(100 * time.Millisecond)
	s.Hear(m.name, m.tells(), 0, 0)
	return f
}

var well = Result{OK: true, Worker: 11, PromptTokens: 330, OutputTokens: 5, CachedTokens: 0}

// What a process that is lost had in flight is cancelled; what it tells afterwards is nobody's.
func TestGone(t *testing.T) {
	on(t, func(s *rig) {
		m := &afar{name: "a", t: t}
		m.Use(s.Cut())
		f := s.heard(m, 1)
		s.heard(m, 2).Ended(well)
		s.Hear(m.name, m.tells(), 0, 0)
		assert.Equal(t, 1, s.account.away.flying)
		s.Gone(m.name)
		s.Gone(m.name)
		f.Ended(well)
		s.Hear(m.name, m.tells(), 0, 0)
		pass(silence + time.Second)
		got := s.shadow()
		assert.Equal(t, 2, got.Requests, "both had their first tokens")
		assert.EqualValues(t, 1, s.account.Figures(0).Account.Requests, "one has told what was cached")
		assert.Zero(t, s.account.away.flying)
		assert.Empty(t, s.account.away.held)
		assert.Zero(t, s.account.sequencer.Waiting())
		assert.Zero(t, got.Lost)
	})
}

// A process that tells nothing is waited for, but not for ever.
func TestSilence(t *testing.T) {
	on(t, func(s *rig) {
		mute, m := &afar{name: "mute", t: t}, &afar{name: "a", t: t}
		mute.Use(s.Cut())
		m.Use(s.Cut())
		s.heard(mute, 1)
		for i := range 6 {
			s.heard(m, 2+i).Ended(well)
			pass(800 * time.Millisecond)
			s.Hear(m.name, m.tells(), 0, 0)
		}
		assert.LessOrEqual(t, s.shadow().Requests, 1)
		pass(silence - 6*time.Second)
		assert.Equal(t, 7, s.shadow().Requests)
	})
}

// With the caches empty, what was told to the account before is nobody's, and what is told from
// then on stands by itself.
func TestHearsAfterReset(t *testing.T) {
	on(t, func(s *rig) {
		m := &afar{name: "a", t: t}
		m.Use(s.Cut())
		before := s.heard(m, 1)
		s.Reset()
		stale := m.Follow(Sent{ID: "r", Conversation: "2"})
		stale.Routed(prompt(2, 330))
		s.Hear(m.name, m.tells(), 0, 0)
		assert.Nil(t, s.account.away.peers)
		m.Use(s.Cut())
		before.Ended(well)
		stale.Ended(well)
		s.heard(m, 1).Ended(well)
		pass(time.Second)
		s.Hear(m.name, m.tells(), 0, 0)
		pass(hold)
		got := s.shadow()
		assert.Equal(t, 1, got.Requests)
		assert.Zero(t, got.Lost)
		assert.InDelta(t, 0, *got.CacheError, 1e-9)

		m.Use(nil)
		assert.Nil(t, m.Follow(Sent{ID: "r"}))
		assert.Nil(t, m.Take())
		assert.Empty(t, m.past)
	})
	var none *Live
	assert.Nil(t, none.Cut())
	none.Hear("a", &Told{}, 0, 0)
	none.Gone("a")
}

// What cannot be followed is counted as lost: a turn of which no ids were told, one too many, and
// one whose beginning says that it goes on from what was never heard.
func TestLostAfar(t *testing.T) {
	on(t, func(s *rig) {
		m := &afar{name: "a", t: t}
		m.Use(s.Cut())
		silent := m.Follow(Sent{ID: "r"})
		silent.FirstToken(11)
		silent.Ended(well)
		s.Hear(m.name, m.tells(), 0, 0)
		assert.Equal(t, 1, s.shadow().Lost)

		m.Follow(Sent{ID: "r", Conversation: "1"}).Routed(prompt(1, 330))
		m.tells() // which nobody hears
		m.Follow(Sent{ID: "r", Conversation: "1"}).Routed(prompt(1, 400))
		s.Hear(m.name, m.tells(), 0, 0)
		assert.Equal(t, 2, s.shadow().Lost)
		assert.Zero(t, s.account.away.flying)

		for range mostFollowed - 2 {
			require.NotNil(t, m.Follow(Sent{ID: "r"}))
		}
		require.Nil(t, m.Follow(Sent{ID: "r"}))
		s.Hear(m.name, m.tells(), 0, 0)
		assert.Equal(t, 3, s.shadow().Lost)
	})
}

// By how much a clock may be wrong, the router may have seen a turn earlier or later.
func TestUncertainClock(t *testing.T) {
	on(t, func(s *rig) {
		m := &afar{name: "a", t: t}
		m.Use(s.Cut())
		m.Follow(Sent{ID: "r", Conversation: "1"}).Routed(prompt(1, 330))
		pass(time.Second)
		s.Hear(m.name, m.tells(), 0, 300*time.Millisecond)
		pass(hold)
		s.shadow()
		assert.Equal(t, 300*time.Millisecond, s.account.skew)
	})
}
