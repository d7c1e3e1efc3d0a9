package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// The number of conversations follows the slider from 1 to 180, 60, and 180, until the stop.
func TestConcurrencyFollowsTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, &server{}, booth(1))
		advance(30 * time.Second)
		assert.Equal(t, 1, r.actual())

		for range 2 {
			raised, had := time.Now(), r.actual()
			r.Set(booth(180))
			advance(5 * time.Second)
			assert.InDelta(t, had+50, r.actual(), 12, "ten starts a second, less what completes")
			r.waitActive(180, 15*time.Second)
			advance(4 * time.Minute)
			assert.InDelta(t, 180, r.mean(raised.Add(20*time.Second), time.Now()), .5)

			lowered := time.Now()
			r.Set(booth(60))
			advance(time.Second)
			assert.Greater(t, r.actual(), 150, "surplus conversations finish their turn")
			r.waitActive(60, longest)
			advance(longest)
			_, before := retired(r, raised, lowered)
			assert.Zero(t, before, "nothing retires at an unchanged target")
			turns, n := retired(r, lowered, time.Now())
			assert.InDelta(t, 120, n, 60, "the others ended by themselves")
			assert.NotContains(t, turns, 0, "a turn in flight ends whole")
			advance(time.Minute)
			assert.InDelta(t, 60, r.mean(lowered.Add(longest), time.Now()), .2)
		}

		_, count := r.ended()
		assert.Zero(t, count[api.ConversationCancelled]+count[api.ConversationError])
		r.stop()
		_, count = r.ended()
		assert.Equal(t, 60, count[api.ConversationCancelled], "what was in flight")
		assert.Zero(t, count[api.ConversationError])
		assertPaced(t, r.beginnings(), 10)
	})
}

// retired returns the numbers of turns of the conversations that retired between two times.
func retired(r *testRun, from, to time.Time) (turns []int, n int) {
	all, _ := r.ended()
	for _, e := range all {
		if e.status == api.ConversationRetired && !e.ended.Before(from) && e.ended.Before(to) {
			turns = append(turns, e.ok)
		}
	}
	return turns, len(turns)
}

// assertPaced checks times against a rate: no second that begins at one of them has more.
func assertPaced(t *testing.T, at []time.Time, perSecond int) {
	t.Helper()
	for i := perSecond; i < len(at); i++ {
		assert.GreaterOrEqual(t, at[i].Sub(at[i-perSecond]), time.Second-time.Microsecond, "from number %d", i-perSecond)
	}
}

// A stop cancels each conversation in progress at once, in any state.
func TestStopCancelsAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Settings)
		fault  *chat.Error
		after  time.Duration
	}{
		{"awaiting the first token", func(*Settings) {}, nil, ttft / 2},
		{"in mid-answer", func(*Settings) {}, nil, 5 * time.Second},
		{"while the user thinks", func(s *Settings) { s.ThinkTime = time.Hour }, nil, time.Minute},
		{"while the cap holds turns back", func(s *Settings) { s.TargetRPS = .001 }, nil, time.Minute},
		{"while starts are paced", func(s *Settings) { s.StartRate = .001 }, nil, time.Minute},
		{"while the target is down", func(*Settings) {}, &chat.Error{Class: api.ErrorConnect}, time.Minute},
	} {
		virtual(t, tt.name, func(t *testing.T) {
			s := booth(20)
			tt.change(&s)
			r := run(t, &server{fault: func(time.Time) *chat.Error { return tt.fault }}, s)
			advance(tt.after)
			stopped, active := time.Now(), r.actual()
			r.stop()
			assert.Equal(t, stopped, time.Now(), "at once")
			_, count := r.ended()
			assert.Equal(t, active, count[api.ConversationCancelled])
		})
	}
}

// A drain lets turns in flight end and sends no other turn, whatever the conversations and the starts wait for.
func TestDrainSendsNoFurtherTurn(t *testing.T) {
	asksForAMinute := &chat.Error{Class: api.ErrorRateLimited, RetryAfter: time.Minute}
	for _, tt := range []struct {
		name   string
		change func(*Settings)
		fault  *chat.Error
		after  time.Duration
		within time.Duration
	}{
		{"turns in flight", func(*Settings) {}, nil, 50 * time.Second, longest},
		{"conversations still starting", func(s *Settings) { s.StartRate = 1 }, nil, 5 * time.Second, longest},
		{"users who think", func(s *Settings) { s.ThinkTime = time.Hour }, nil, time.Minute, 0},
		{"turns held back by the cap", func(s *Settings) { s.TargetRPS = .01 }, nil, time.Minute, 0},
		{
			"starts held back by their rate",
			func(s *Settings) { s.StartRate, s.Turns = .001, api.Range{Min: 1, Max: 1} }, nil, time.Minute, 0,
		},
		{"a target that asked for a pause", func(*Settings) {}, asksForAMinute, 5 * time.Second, 0},
	} {
		virtual(t, tt.name, func(t *testing.T) {
			s, target := booth(20), &server{fault: func(time.Time) *chat.Error { return tt.fault }}
			tt.change(&s)
			r := run(t, target, s)
			advance(tt.after)
			drained, before := time.Now(), len(target.requests())
			r.Drain()
			<-r.done
			assert.LessOrEqual(t, time.Since(drained), tt.within)
			assert.Len(t, target.requests(), before, "no turn is sent after a drain")
			_, count := r.ended()
			assert.Zero(t, count[api.ConversationCancelled])
			answered := 0
			for _, sent := range target.requests() {
				answered += sent.MaxTokens
			}
			assert.True(t, r.tokens == answered || tt.fault != nil, "%d tokens of %d are reported", r.tokens, answered)
			r.Set(booth(100))
			assert.True(t, r.hasReturned(), "new settings do not restart a drained workload")
		})
	}
}

func TestTargetRPSLimitsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, target := booth(60), &server{}
		s.StartRate, s.TargetRPS = 1000, 2
		r := run(t, target, s)
		advance(10 * time.Minute)
		sent := moments(target.requests())
		assertPaced(t, sent, 2)
		assert.InDelta(t, 1200, len(sent), 2, "the cap is used up")
		meanTurn := ttft + 829*gap
		assert.InDelta(t, 2*meanTurn.Seconds()+4, r.actual(), 4, "conversations that would only wait are not begun")

		raised := time.Now()
		s.TargetRPS = 20
		r.Set(s)
		advance(2 * time.Second)
		faster := moments(target.requestsSince(raised))
		assert.GreaterOrEqual(t, len(faster), 20, "the new rate applies to turns that were waiting")
		assertPaced(t, faster, 20)

		s.TargetRPS = .01
		r.Set(s)
		advance(longest)
		opened := time.Now()
		s.TargetRPS = 0
		r.Set(s)
		advance(time.Millisecond)
		assert.GreaterOrEqual(t, len(target.requestsSince(opened)), 55, "without a cap all are sent at once")
	})
}

// Pace reports what the next conversation waits for: the start rate while the workload grows, the cap where that holds
// it below its concurrency, and nothing at its concurrency.
func TestPaceReportsTheLimiter(t *testing.T) {
	for _, tt := range []struct {
		name           string
		change         func(*Settings)
		starts, cap    float64 // seconds of the last minute, roughly
		least, highest int     // conversations in progress
	}{
		{"enough", func(*Settings) {}, 0, 0, 60, 60},
		{"on the way", func(s *Settings) { s.Level, s.StartRate = api.AtConversations(1000), 1 }, 60, 0, 50, 110},
		{"at the cap", func(s *Settings) { s.Level, s.TargetRPS = api.AtConversations(1000), 10 }, 10, 50, 165, 190},
	} {
		virtual(t, tt.name, func(t *testing.T) {
			s := booth(60)
			tt.change(&s)
			r := run(t, &server{}, s)
			advance(2 * time.Minute)
			before := r.Pace()
			advance(time.Minute)
			p := r.Pace()
			since := func(l api.Limiter) float64 { return (p.Waited[l] - before.Waited[l]).Seconds() }
			assert.InDelta(t, tt.starts, since(api.LimitedByStartRate), 10)
			assert.InDelta(t, tt.cap, since(api.LimitedByTargetRPS), 10)
			assert.Equal(t, r.actual(), p.Actual)
			assert.True(t, tt.least <= p.Actual && p.Actual <= tt.highest, "%d in progress", p.Actual)
			assert.EqualValues(t, len(r.beginnings()), p.Begun)
		})
	}
}

func moments(all []request) (at []time.Time) {
	for _, r := range all {
		at = append(at, r.at)
	}
	return at
}

// The think time precedes every turn but the first. A change applies at once.
func TestThinkTimePrecedesFollowUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, target := booth(5), &server{}
		s.ThinkTime = 7 * time.Second
		r := run(t, target, s)
		advance(5 * time.Minute)
		follows := gaps(target)
		assert.Greater(t, len(follows), 30)
		for _, pause := range follows {
			assert.Equal(t, s.ThinkTime, pause)
		}
		all, _ := r.ended()
		for _, e := range all {
			assert.Equal(t, e.Started, target.conversations()[e.ID][0].at, "a new conversation begins without a pause")
		}

		s.ThinkTime = time.Hour
		r.Set(s)
		advance(2 * longest)
		changed := time.Now()
		s.ThinkTime = 0
		r.Set(s)
		synctest.Wait()
		assert.Len(t, target.requestsSince(changed), 5)
	})
}

// A conversation that waits is between two turns, so that a lower concurrency is reached at once.
func TestSurplusRetiresWhileItWaits(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Settings)
	}{
		{"for the user", func(s *Settings) { s.ThinkTime = time.Hour }},
		{"for the cap", func(s *Settings) { s.TargetRPS = .001 }},
	} {
		virtual(t, tt.name, func(t *testing.T) {
			s := booth(60)
			r := run(t, &server{}, s)
			r.waitActive(60, 10*time.Second)
			tt.change(&s)
			r.Set(s)
			advance(longest)
			before := r.actual()
			require.Greater(t, before, 40)
			s.Level = api.AtConversations(10)
			r.Set(s)
			synctest.Wait()
			assert.Equal(t, 10, r.actual())
			_, count := r.ended()
			assert.Equal(t, before-10, count[api.ConversationRetired])
		})
	}
}

// A new start rate also applies to the start that waits. Repeated changes of the concurrency neither speed up the
// starts nor delay them.
func TestNewStartRateAppliesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := booth(100)
		s.StartRate = .001
		r := run(t, &server{}, s)
		advance(30 * time.Second) // less than three turns
		assert.Equal(t, 1, r.actual())
		s.StartRate = 50
		r.Set(s)
		for i := range 100 {
			advance(10 * time.Millisecond)
			s.Level = api.AtConversations(100 + i)
			r.Set(s)
		}
		assert.InDelta(t, 51, r.actual(), 1)
		assertPaced(t, r.beginnings()[1:], 50)
	})
}

// Conversations returns those in progress with the turn under way. Its user message is without the starter.
func TestConversationsHaveTheTurnUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &server{}
		r := run(t, target, booth(5), func(o *Options) { o.Nonce = "[c01d]" })
		advance(time.Second)
		all := r.Conversations()
		require.Len(t, all, 5)
		slices.SortFunc(all, func(a, b *Conversation) int { return int(a.Number - b.Number) })
		for i, c := range all {
			assert.Equal(t, fmt.Sprintf("main-r1-%d", i), c.ID)
			assert.NotEmpty(t, c.Topic)
			assert.NotEmpty(t, c.Starter)
			assert.Equal(t, r.begun.Add(time.Duration(i)*100*time.Millisecond), c.Started)
			turn := c.Turn()
			require.NotNil(t, turn)
			assert.Equal(t, c.ID, turn.Conversation)
			assert.Equal(t, c.Started, turn.Began)
			assert.Less(t, len(turn.UserMessage), 200)
			first := target.conversations()[c.ID][0].Messages[0].Text
			assert.True(t, strings.HasSuffix(first, "\n\n"+turn.UserMessage), turn.UserMessage)
		}
	})
}

// Several goroutines change all settings at random, on a target that fails at random. The recorder checks every call.
func TestConcurrentChanges(t *testing.T) {
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			target := &server{fault: faulty(seed, .05)}
			r := run(t, target, booth(20), func(o *Options) { o.Seed = seed })
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			defer cancel()
			var wg sync.WaitGroup
			for worker := range uint64(4) {
				wg.Go(func() { changeAtRandom(ctx, r, rand.New(rand.NewPCG(seed, worker+1))) })
			}
			wait.Advance(time.Duration(rng.IntN(40_000)) * time.Millisecond)
			if rng.IntN(2) == 0 {
				r.Drain()
				wait.Advance(time.Duration(rng.IntN(5000)) * time.Millisecond)
			}
			r.stop()
			wg.Wait()
		})
	}
}

// changeAtRandom changes and reads the workload at random times until ctx ends.
func changeAtRandom(ctx context.Context, r *testRun, rng *rand.Rand) {
	for sleep(ctx, nil, time.Duration(rng.IntN(300))*time.Millisecond) {
		s := booth(1 + rng.IntN(60))
		s.StartRate = 1 + 50*rng.Float64()
		s.TargetRPS = float64(rng.IntN(30))
		s.ThinkTime = time.Duration(rng.IntN(3)) * time.Second
		s.MaxTokens = 1 + rng.IntN(300)
		r.Set(s)
		for _, c := range r.Conversations() {
			if turn := c.Turn(); turn != nil {
				_ = turn.Live.Text() + turn.UserMessage
			}
		}
	}
}

// faulty returns the faults of a target that fails a share of the requests at random.
func faulty(seed uint64, share float64) func(time.Time) *chat.Error {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 99))
	return func(time.Time) *chat.Error {
		mu.Lock()
		defer mu.Unlock()
		if rng.Float64() >= share {
			return nil
		}
		return &chat.Error{Class: api.ErrorHTTP5xx}
	}
}
