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

// An operator's afternoon: the slider goes 1, 180, 60, 180, then stop.
func TestConcurrencyFollowsTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, &server{}, booth(1))
		after(30 * time.Second)
		assert.Equal(t, 1, r.actual())

		for range 2 {
			raised, had := time.Now(), r.actual()
			r.Set(booth(180))
			after(5 * time.Second)
			assert.InDelta(t, had+50, r.actual(), 12, "ten starts a second, less what completes")
			r.reaches(180, 15*time.Second)
			after(4 * time.Minute)
			assert.InDelta(t, 180, r.mean(raised.Add(20*time.Second), time.Now()), .5)

			lowered := time.Now()
			r.Set(booth(60))
			after(time.Second)
			assert.Greater(t, r.actual(), 150, "surplus conversations finish their turn")
			r.reaches(60, longest)
			after(longest)
			_, before := retired(r, raised, lowered)
			assert.Zero(t, before, "nothing retires at an unchanged target")
			turns, n := retired(r, lowered, time.Now())
			assert.InDelta(t, 120, n, 60, "the others ended by themselves")
			assert.NotContains(t, turns, 0, "a turn in flight ends whole")
			after(time.Minute)
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

// retired gives the numbers of turns of those that retired in a span.
func retired(r *rig, from, to time.Time) (turns []int, n int) {
	all, _ := r.ended()
	for _, e := range all {
		if e.status == api.ConversationRetired && !e.ended.Before(from) && e.ended.Before(to) {
			turns = append(turns, e.ok)
		}
	}
	return turns, len(turns)
}

// assertPaced holds moments against a rate: after any of them, no second has more.
func assertPaced(t *testing.T, at []time.Time, perSecond int) {
	t.Helper()
	for i := perSecond; i < len(at); i++ {
		assert.GreaterOrEqual(t, at[i].Sub(at[i-perSecond]), time.Second-time.Microsecond, "from number %d", i-perSecond)
	}
}

// A cancelled conversation is one that the stop met, wherever it was.
func TestStop(t *testing.T) {
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
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := booth(20)
				tt.change(&s)
				r := run(t, &server{fault: func(time.Time) *chat.Error { return tt.fault }}, s)
				after(tt.after)
				stopped, active := time.Now(), r.actual()
				r.stop()
				assert.Equal(t, stopped, time.Now(), "at once")
				_, count := r.ended()
				assert.Equal(t, active, count[api.ConversationCancelled])
			})
		})
	}
}

// A drain lets turns in flight end and sends none after them, whatever the
// conversations and the starts were waiting for.
func TestDrain(t *testing.T) {
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
		{"starts held back by their rate", func(s *Settings) { s.StartRate, s.Turns = .001, api.Range{Min: 1, Max: 1} }, nil, time.Minute, 0},
		{"a target that asked for a pause", func(*Settings) {}, asksForAMinute, 5 * time.Second, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, target := booth(20), &server{fault: func(time.Time) *chat.Error { return tt.fault }}
				tt.change(&s)
				r := run(t, target, s)
				after(tt.after)
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
				assert.True(t, r.over(), "a drained workload stays so")
			})
		})
	}
}

func TestTargetRPS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, target := booth(60), &server{}
		s.StartRate, s.TargetRPS = 1000, 2
		r := run(t, target, s)
		after(10 * time.Minute)
		sent := moments(target.requests())
		assertPaced(t, sent, 2)
		assert.InDelta(t, 1200, len(sent), 2, "the cap is used up")
		meanTurn := ttft + 829*gap
		assert.InDelta(t, 2*meanTurn.Seconds()+4, r.actual(), 4, "what would only wait is not begun")

		raised := time.Now()
		s.TargetRPS = 20
		r.Set(s)
		after(2 * time.Second)
		faster := moments(target.since(raised))
		assert.GreaterOrEqual(t, len(faster), 20, "those who waited need not wait at the old rate")
		assertPaced(t, faster, 20)

		s.TargetRPS = .01
		r.Set(s)
		after(longest)
		opened := time.Now()
		s.TargetRPS = 0
		r.Set(s)
		after(time.Millisecond)
		assert.GreaterOrEqual(t, len(target.since(opened)), 55, "without a cap all are sent at once")
	})
}

// A workload tells what the next conversation waits for: for nothing once there are
// enough, for the start rate on the way there, for the cap where it does not get there.
func TestPace(t *testing.T) {
	for _, tt := range []struct {
		name           string
		change         func(*Settings)
		starts, cap    float64 // seconds of the last minute, roughly
		least, highest int     // conversations in progress
	}{
		{"enough", func(*Settings) {}, 0, 0, 60, 60},
		{"on the way", func(s *Settings) { s.Concurrency, s.StartRate = 1000, 1 }, 60, 0, 50, 110},
		{"at the cap", func(s *Settings) { s.Concurrency, s.TargetRPS = 1000, 10 }, 10, 50, 165, 190},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := booth(60)
				tt.change(&s)
				r := run(t, &server{}, s)
				after(2 * time.Minute)
				before := r.Pace()
				after(time.Minute)
				p := r.Pace()
				since := func(by api.Limiter) float64 { return (p.Waited[by] - before.Waited[by]).Seconds() }
				assert.InDelta(t, tt.starts, since(api.LimitedByStartRate), 10)
				assert.InDelta(t, tt.cap, since(api.LimitedByTargetRPS), 10)
				assert.Equal(t, r.actual(), p.Actual)
				assert.True(t, tt.least <= p.Actual && p.Actual <= tt.highest, "%d in progress", p.Actual)
				assert.EqualValues(t, len(r.beginnings()), p.Begun)
			})
		})
	}
}

func moments(all []request) (at []time.Time) {
	for _, r := range all {
		at = append(at, r.at)
	}
	return at
}

// The pause is before every turn but the first, and a change holds at once.
func TestThinkTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, target := booth(5), &server{}
		s.ThinkTime = 7 * time.Second
		r := run(t, target, s)
		after(5 * time.Minute)
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
		after(2 * longest)
		changed := time.Now()
		s.ThinkTime = 0
		r.Set(s)
		synctest.Wait()
		assert.Len(t, target.since(changed), 5)
	})
}

// Who waits is between two turns: fewer conversations are reached at once.
func TestSurplusRetiresWhileItWaits(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Settings)
	}{
		{"for the user", func(s *Settings) { s.ThinkTime = time.Hour }},
		{"for the cap", func(s *Settings) { s.TargetRPS = .001 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := booth(60)
				r := run(t, &server{}, s)
				r.reaches(60, 10*time.Second)
				tt.change(&s)
				r.Set(s)
				after(longest)
				before := r.actual()
				require.Greater(t, before, 40)
				s.Concurrency = 10
				r.Set(s)
				synctest.Wait()
				assert.Equal(t, 10, r.actual())
				_, count := r.ended()
				assert.Equal(t, before-10, count[api.ConversationRetired])
			})
		})
	}
}

// A new start rate holds for the start that is waited for, too, and a slider that is dragged neither speeds the starts
// up nor holds them back.
func TestStartRateChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := booth(100)
		s.StartRate = .001
		r := run(t, &server{}, s)
		after(30 * time.Second) // less than three turns
		assert.Equal(t, 1, r.actual())
		s.StartRate = 50
		r.Set(s)
		for i := range 100 {
			after(10 * time.Millisecond)
			s.Concurrency = 100 + i
			r.Set(s)
		}
		assert.InDelta(t, 51, r.actual(), 1)
		assertPaced(t, r.beginnings()[1:], 50)
	})
}

// Conversations lists what is in progress, with the turn under way, whose question leaves the starter out.
func TestConversations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &server{}
		r := run(t, target, booth(5), func(o *Options) { o.Nonce = "[c01d]" })
		after(time.Second)
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
			assert.Same(t, c, turn.Conversation)
			assert.Equal(t, c.Started, turn.Began)
			assert.Less(t, len(turn.UserMessage), 200)
			first := target.conversations()[c.ID][0].Messages[0].Content
			assert.True(t, strings.HasSuffix(first, "\n\n"+turn.UserMessage), turn.UserMessage)
		}
	})
}

// Every control at once, from several sides, on a target that fails now and
// then: under the race detector, with the ledger's eye on every call.
func TestStress(t *testing.T) {
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			target := &server{fault: faulty(seed, .05)}
			r := run(t, target, booth(20), func(o *Options) { o.Seed = seed })
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			defer cancel()
			var wg sync.WaitGroup
			for worker := range uint64(4) {
				wg.Go(func() { fiddle(ctx, r, rand.New(rand.NewPCG(seed, worker+1))) })
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

// fiddle changes and reads what it can, at odd moments.
func fiddle(ctx context.Context, r *rig, rng *rand.Rand) {
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

// faulty gives a target's faults: a share of the requests, by chance.
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
