package live

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
)

// remoteProcess is a process that records its turns and reports them to a Live.
type remoteProcess struct {
	Recorder
	t     *testing.T
	name  string
	ahead time.Duration // of its clock
}

// nextReport returns the next report as it arrives over the network, by the clock of the process.
func (a *remoteProcess) nextReport() *Report {
	report := a.Take()
	if report == nil {
		return nil
	}
	data, err := json.Marshal(report)
	require.NoError(a.t, err)
	report = new(Report)
	require.NoError(a.t, json.Unmarshal(data, report))
	report.Until = report.Until.Add(a.ahead)
	for i := range report.Events {
		report.Events[i].At += int64(a.ahead)
	}
	return report
}

// talk holds a conversation of six turns, which every follower gets.
func talk(k int, ids bool, followers ...func(Sent) *Turn) {
	r := rand.New(rand.NewPCG(7, uint64(k)))
	pause := func(most time.Duration) { wait.Advance(1 + time.Duration(r.Int64N(int64(most)))) }
	pause(5 * time.Second)
	text, tokens := "", prompt(k%5, 200)
	for range 6 {
		for range 20 {
			text += fmt.Sprint(" word", r.IntN(1000))
			tokens = append(tokens, r.Uint32())
		}
		sent := Sent{ID: fmt.Sprint(k), Conversation: fmt.Sprint(k), Concurrency: 10, Messages: words("user", text)}
		result := Result{
			OK: k%7 != 0, Worker: uint64(11 * (1 + r.IntN(2))), PromptTokens: int(float64(len(text)) / usualRatio),
			OutputTokens: 20, CachedTokens: r.IntN(200), Bytes: 100,
		}
		var turns []*Turn
		for _, follow := range followers {
			turns = append(turns, follow(sent))
		}
		pause(time.Millisecond)
		for _, t := range turns {
			if ids {
				t.Routed(tokens)
			}
		}
		pause(400 * time.Millisecond)
		for _, t := range turns {
			t.FirstToken(strconv.FormatUint(result.Worker, 10))
		}
		pause(3 * time.Second)
		for _, t := range turns {
			t.end(result)
		}
		pause(time.Second)
	}
}

// reportTo reports to a Live once a second, with random delays and one pause, until the turns have ended.
func (a *remoteProcess) reportTo(l *Live, done *atomic.Bool) {
	r := rand.New(rand.NewPCG(1, uint64(a.ahead)))
	for n, last := 0, false; !last; n++ {
		wait.Advance(time.Second)
		last = done.Load()
		report := a.nextReport()
		if n == 10 {
			wait.Advance(4 * time.Second)
		}
		wait.Advance(time.Duration(r.Int64N(int64(500 * time.Millisecond))))
		first, second := report.Split()
		l.Receive(a.name, first, a.ahead, 0)
		l.Receive(a.name, second, a.ahead, 0)
	}
	l.Disconnect(a.name)
}

// Late reports, out of order, give the same figures as an account that follows every turn itself.
func TestReportsOfOtherProcessesGiveEqualFigures(t *testing.T) {
	for name, ids := range map[string]bool{"token ids": true, "text": false} {
		t.Run(name, func(t *testing.T) {
			on(t, func(s *rig) {
				s.set(func(s *rig) { s.ids = ids })
				pass(2 * time.Second)
				direct := New(s.opts)
				direct.adjust(time.Now())
				began := time.Now()
				var wg sync.WaitGroup
				members := []*remoteProcess{
					{name: "a", t: t}, {name: "b", t: t, ahead: 20 * time.Second}, {name: "c", t: t, ahead: -3 * time.Second},
				}
				for i, m := range members {
					m.Use(s.BlockSpec())
					var talks sync.WaitGroup
					for n := range 15 {
						talks.Go(func() {
							k := 3*n + i
							talk(k, ids, direct.Follow, m.Follow)
							m.EndConversation(fmt.Sprint(k))
						})
					}
					var done atomic.Bool
					wg.Go(func() {
						talks.Wait()
						done.Store(true)
					})
					wg.Go(func() { m.reportTo(s.Live, &done) })
				}
				wg.Wait()
				require.Less(t, time.Since(began), 50*time.Second, "all turns are in the window")
				pass(reorderDelay + 2*time.Second)
				moment := s.account.remote.known
				direct.advance(moment)
				want, got := direct.Shadow(moment), s.Live.Shadow(moment)
				require.Greater(t, want.Requests, 100, "turns since the reuse of answers was inferred")
				want.Since, want.Seconds = got.Since, got.Seconds // it was opened earlier
				assert.Equal(t, want, got)
				assert.Equal(t, direct.Decisions(1000), s.Live.Decisions(1000))
				assert.Zero(t, s.account.remote.inFlight)
				assert.Empty(t, s.account.remote.held)
				for _, m := range members {
					assert.Empty(t, m.past)
					assert.Zero(t, m.followed)
				}
			})
		})
	}
}

// member returns a process that reports to the rig.
func (s *rig) member(name string) *remoteProcess {
	m := &remoteProcess{name: name, t: s.t}
	m.Use(s.BlockSpec())
	return m
}

// startTurn follows one turn of 330 tokens up to its first token and reports it.
func (s *rig) startTurn(m *remoteProcess, text int) *Turn {
	f := m.Follow(Sent{ID: "r", Conversation: fmt.Sprint(text), Concurrency: 10})
	f.Routed(prompt(text, 330))
	pass(100 * time.Millisecond)
	f.FirstToken("11")
	pass(100 * time.Millisecond)
	s.Receive(m.name, m.nextReport(), 0, 0)
	return f
}

var well = Result{OK: true, Worker: 11, PromptTokens: 330, OutputTokens: 5, CachedTokens: 0}

// The turns in flight of a lost process are canceled. What it reports afterwards is ignored.
func TestDisconnectCancelsTurnsInFlight(t *testing.T) {
	on(t, func(s *rig) {
		m := s.member("a")
		f := s.startTurn(m, 1)
		s.startTurn(m, 2).end(well)
		s.Receive(m.name, m.nextReport(), 0, 0)
		assert.Equal(t, 1, s.account.remote.inFlight)
		s.Disconnect(m.name)
		s.Disconnect(m.name)
		f.end(well)
		s.Receive(m.name, m.nextReport(), 0, 0)
		pass(peerTimeout + time.Second)
		got := s.shadow()
		assert.Equal(t, 2, got.Requests, "both had their first tokens")
		assert.EqualValues(t, 1, s.account.Figures(0).Account.Requests, "one has reported what was cached")
		assert.Zero(t, s.account.remote.inFlight)
		assert.Empty(t, s.account.remote.held)
		assert.Zero(t, s.account.sequencer.Waiting())
		assert.Zero(t, got.Lost)
	})
}

// A silent process delays the others for a limited time.
func TestSilentProcessDelaysOthersUntilTimeout(t *testing.T) {
	on(t, func(s *rig) {
		silent, m := s.member("silent"), s.member("a")
		s.startTurn(silent, 1)
		for i := range 6 {
			s.startTurn(m, 2+i).end(well)
			pass(800 * time.Millisecond)
			s.Receive(m.name, m.nextReport(), 0, 0)
		}
		assert.LessOrEqual(t, s.shadow().Requests, 1)
		pass(peerTimeout - 6*time.Second)
		assert.Equal(t, 7, s.shadow().Requests)
	})
}

// After a reset, reports to the previous account are ignored, and later ones count.
func TestReportsToEarlierAccountAreIgnored(t *testing.T) {
	on(t, func(s *rig) {
		m := s.member("a")
		before := s.startTurn(m, 1)
		s.Reset()
		stale := m.Follow(Sent{ID: "r", Conversation: "2"})
		stale.Routed(prompt(2, 330))
		s.Receive(m.name, m.nextReport(), 0, 0)
		assert.Nil(t, s.account.remote.peers)
		m.Use(s.BlockSpec())
		before.end(well)
		stale.end(well)
		s.startTurn(m, 1).end(well)
		pass(time.Second)
		s.Receive(m.name, m.nextReport(), 0, 0)
		pass(reorderDelay)
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
	assert.Nil(t, none.BlockSpec())
	none.Receive("a", &Report{}, 0, 0)
	none.Disconnect("a")
}

// A turn that cannot be followed is counted as lost: one without ids, one that goes on from a turn that was never
// reported, and one too many.
func TestTurnsLostInOtherProcesses(t *testing.T) {
	on(t, func(s *rig) {
		m := s.member("a")
		silent := m.Follow(Sent{ID: "r"})
		silent.FirstToken("11")
		silent.end(well)
		s.Receive(m.name, m.nextReport(), 0, 0)
		assert.Equal(t, 1, s.shadow().Lost)

		m.Follow(Sent{ID: "r", Conversation: "1"}).Routed(prompt(1, 330))
		m.nextReport() // this report is lost
		m.Follow(Sent{ID: "r", Conversation: "1"}).Routed(prompt(1, 400))
		s.Receive(m.name, m.nextReport(), 0, 0)
		assert.Equal(t, 2, s.shadow().Lost)
		assert.Zero(t, s.account.remote.inFlight)

		for range maxFollowed - 2 {
			require.NotNil(t, m.Follow(Sent{ID: "r"}))
		}
		require.Nil(t, m.Follow(Sent{ID: "r"}))
		s.Receive(m.name, m.nextReport(), 0, 0)
		assert.Equal(t, 3, s.shadow().Lost)
	})
}

// The skew of the account grows with the uncertainty of a clock.
func TestSkewIncludesClockUncertainty(t *testing.T) {
	on(t, func(s *rig) {
		m := s.member("a")
		m.Follow(Sent{ID: "r", Conversation: "1"}).Routed(prompt(1, 330))
		pass(time.Second)
		s.Receive(m.name, m.nextReport(), 0, 300*time.Millisecond)
		pass(reorderDelay)
		s.shadow()
		assert.Equal(t, 300*time.Millisecond, s.account.skew)
	})
}
