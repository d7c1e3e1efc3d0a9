package workload

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// outage returns a fault that lasts from one time to another.
func outage(from, to time.Time, e chat.Error) func(time.Time) *chat.Error {
	return func(at time.Time) *chat.Error {
		if at.Before(from) || !at.Before(to) {
			return nil
		}
		return &e
	}
}

var refused = chat.Error{Class: api.ErrorConnect, Message: "connection refused"}

// A target that is down from the start receives a few requests, and then one at a time, after growing pauses.
func TestPausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &server{fault: outage(time.Now(), time.Now().Add(time.Hour), refused)}
		r := run(t, target, booth(180))
		advance(10 * time.Minute)
		sent := target.requests()
		for i, want := range []float64{.25, .5, 1, 2, 4, 4, 4} {
			assert.InDelta(t, want, sent[i+maxFailures].at.Sub(sent[i+maxFailures-1].at).Seconds(), .1, "pause %d", i+1)
		}
		assert.Less(t, len(sent), 160)
		assert.Less(t, r.mean(r.begun, time.Now()), .01, "places are free")
		_, count := r.ended()
		assert.Equal(t, len(sent), count[api.ConversationError])
	})
}

// When a target is lost during a run, its conversations fail. When it is back, the conversations are back as fast as
// the start rate allows.
func TestWorkloadRecoversFromOutage(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault chat.Error
	}{
		{"refuses connections", refused},
		{"accepts and says nothing", chat.Error{Class: api.ErrorTimeout}},
		{"answers 503 with Retry-After 4", chat.Error{Class: api.ErrorHTTP5xx, Status: 503, RetryAfter: 4 * time.Second}},
	} {
		virtual(t, tt.name, func(t *testing.T) {
			lost := time.Now().Add(time.Minute)
			back := lost.Add(10 * time.Minute)
			target := &server{fault: outage(lost, back, tt.fault)}
			r := run(t, target, booth(60))
			advance(11*time.Minute - time.Nanosecond)
			assert.LessOrEqual(t, len(target.requestsSince(lost)), 60+160, "those in progress, and a try every 4 s")

			advance(5 * time.Second)
			again := target.requestsSince(back)
			require.NotEmpty(t, again, "a try within 5 s of the return")
			advance(time.Until(again[0].at) + ttft)
			r.waitActive(60, 6*time.Second+100*time.Millisecond)
			advance(5 * time.Minute)
			all, _ := r.ended()
			for _, e := range all {
				assert.False(t, e.Started.After(back) && e.status == api.ConversationError, "%s failed after the return", e.ID)
			}
			assertPaced(t, moments(firsts(again)), 10)
		})
	}
}

// firsts returns the first turns among requests.
func firsts(all []request) (out []request) {
	for _, r := range all {
		if len(r.Messages) == 1 {
			out = append(out, r)
		}
	}
	return out
}

func TestRetryAfterSetsThePause(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{
		2 * time.Second: 2 * time.Second, 30 * time.Second: 30 * time.Second,
		100 * time.Millisecond: firstPause, time.Hour: maxAsked,
	} {
		synctest.Test(t, func(t *testing.T) {
			limited := chat.Error{Class: api.ErrorRateLimited, Status: 429, RetryAfter: asked}
			target := &server{fault: outage(time.Now(), time.Now().Add(200*time.Millisecond), limited)}
			r := run(t, target, booth(60))
			advance(100 * time.Second)
			sent := target.requests()
			assert.InDelta(t, want.Seconds(), sent[1].at.Sub(sent[0].at).Seconds(), .1, "%v", asked)
			assert.Equal(t, 60, r.actual())
		})
	}
}

// A few random errors do not reduce the number of conversations.
func TestRandomErrorsAreNoOutage(t *testing.T) {
	for concurrency, hours := range map[int]float64{1: 10, 60: .25, 180: .15} {
		synctest.Test(t, func(t *testing.T) {
			r := run(t, &server{fault: faulty(1, .01)}, booth(concurrency))
			advance(time.Duration(hours * float64(time.Hour)))
			_, count := r.ended()
			assert.Greater(t, count[api.ConversationError], 10)
			settled := r.begun.Add(20 * time.Second)
			assert.InEpsilon(t, float64(concurrency), r.mean(settled, time.Now()), .005)
		})
	}
}

// sender is a target whose answer depends on the number of the request, from 1.
type sender struct {
	n  atomic.Int32
	do func(ctx context.Context, n int32, req chat.Request) chat.Result
}

func (s *sender) Do(ctx context.Context, req chat.Request) chat.Result {
	return s.do(ctx, s.n.Add(1), req)
}

// A cancelled try is no result, and does not prevent the next try.
func TestCancelledTryIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &server{}
		r := run(t, &sender{do: func(ctx context.Context, n int32, req chat.Request) chat.Result {
			switch n {
			case 1:
				return chat.Result{Err: &refused}
			case 2:
				return chat.Result{Cancelled: true}
			}
			return target.Do(ctx, req)
		}}, booth(20))
		r.waitActive(20, firstPause+maxPause+ttft+3*time.Second)
	})
}

// An answer without content ends the pause, too.
func TestEmptyAnswerEndsThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, &sender{do: func(ctx context.Context, n int32, _ chat.Request) chat.Result {
			if n == 1 {
				return chat.Result{Err: &refused}
			}
			return chat.Result{Cancelled: !sleep(ctx, nil, time.Second), FinishReason: "stop"}
		}}, booth(5))
		advance(time.Minute)
		assert.Greater(t, r.mean(r.begun.Add(2*time.Second), time.Now()), 4.5)
	})
}

// beginObserver is an Observer that also calls begins when a conversation starts.
type beginObserver struct {
	Observer
	begins func()
}

func (b *beginObserver) ConversationStarted(c *Conversation) {
	b.Observer.ConversationStarted(c)
	b.begins()
}

// A try that retires before its turn is sent does not delay the others.
func TestRetiredTryIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &server{fault: outage(time.Now(), time.Now().Add(100*time.Millisecond), refused)}
		begun, running := 0, make(chan *testRun, 1)
		r := run(t, target, booth(5), func(o *Options) {
			o.Observer = &beginObserver{Observer: o.Observer, begins: func() {
				if begun++; begun == 2 { // the second conversation tries
					(<-running).Set(Settings{}) // concurrency 0: the try is one too many
				}
			}}
		})
		running <- r
		advance(2 * time.Second)
		require.Equal(t, 2, begun)
		require.Len(t, target.requests(), 1, "the try was not sent")
		require.Zero(t, r.actual())
		r.Set(booth(5))
		r.waitActive(5, maxPause+ttft+time.Second)
	})
}
