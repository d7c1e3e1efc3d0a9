package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

// source is the stream that a relay opens: a snapshot a second while it is up, a refusal while it is down, and nothing
// while it is silent. It ends with its context.
type source struct {
	down, silent atomic.Bool
	opened       atomic.Int32
	err          error // of a refusal

	mu    sync.Mutex
	times []time.Time // at which it was opened
}

func (s *source) open(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		s.mu.Lock()
		s.times = append(s.times, time.Now())
		s.mu.Unlock()
		s.opened.Add(1)
		defer s.opened.Add(-1)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			if s.down.Load() {
				yield(nil, s.err)
				return
			}
			if !s.silent.Load() && !yield(sampleText, nil) {
				return
			}
			select {
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			case <-tick.C:
			}
		}
	}
}

func (s *source) attempts() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.times)
}

// sampleText is a snapshot of a later version of the load generator.
var sampleText = func() []byte {
	text, _ := json.Marshal(sample())
	return append([]byte(`{ "new": 1, `), text[1:]...)
}()

var errDown = errors.New("connection refused")

// withRelay runs a test of a relay in virtual time, with the limits of production.
func withRelay(t *testing.T, test func(*testing.T, *relay, *source)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &source{err: errDown}
		a := &App{settings: settings{SidecarURL: "http://sidecar"}}
		f := newRelay(s.open, a.explain, normal)
		t.Cleanup(f.close)
		test(t, f, s)
	})
}

// listen subscribes to a relay until the test ends.
func listen(t *testing.T, f *relay) (c <-chan message, leave func()) {
	t.Helper()
	c, leave, err := f.subscribe()
	require.NoError(t, err)
	t.Cleanup(leave)
	return c, leave
}

// newest waits for d, and returns the newest message then.
func newest(t *testing.T, c <-chan message, d time.Duration) message {
	t.Helper()
	var m message
	for end := time.After(d); ; {
		select {
		case m = <-c:
		case <-end:
			synctest.Wait()
			select {
			case m = <-c:
			default:
			}
			require.False(t, m.at.IsZero(), "there was no message")
			return m
		}
	}
}

// Snapshots are forwarded. 3 s after the last one, whether the connection is open or not, the sidecar counts as lost,
// which is published every second. When it has recovered, that is detected within 5 s.
func TestLostAndBack(t *testing.T) {
	for name, lose := range map[string]func(*source) *atomic.Bool{
		"has stopped sending": func(s *source) *atomic.Bool { return &s.silent },
		"down":                func(s *source) *atomic.Bool { return &s.down },
	} {
		withRelay(t, func(t *testing.T, f *relay, s *source) {
			c, _ := listen(t, f)
			m := newest(t, c, 10*time.Second+time.Millisecond)
			require.NotNil(t, m.snapshot)
			require.Equal(t, sampleText, m.text, "as it came, whatever a newer load generator adds to it")
			last := m.at

			lose(s).Store(true)
			wait.Advance(2900 * time.Millisecond)
			synctest.Wait()
			require.Empty(t, c, "%s: not lost before 3 s", name)
			var lost []message
			for range 20 {
				lost = append(lost, <-c)
				require.Nil(t, lost[len(lost)-1].snapshot, name)
			}
			require.Equal(t, normal.silence, lost[0].at.Sub(last))
			require.Equal(t, 19*normal.repeat, lost[19].at.Sub(lost[0].at))
			require.Equal(t, last, lost[19].since)
			if name == "down" {
				require.Contains(t, lost[19].problem, outlines[reasonForeign], "it is the text for every role")
			}
			require.NotEmpty(t, lost[0].problem)

			lose(s).Store(false)
			back := time.Now()
			for m = range c {
				if m.snapshot != nil {
					break
				}
			}
			require.Less(t, m.at.Sub(back), 5*time.Second, name)
			require.NotNil(t, newest(t, c, 3*time.Second).snapshot)
		})
	}
}

// A listener without any message so far receives the reason at once, and a late one receives the newest message at
// once. A load generator that accepts the connection and sends nothing is lost, too.
func TestNeverThere(t *testing.T) {
	for _, tt := range []struct {
		lose  func(*source) *atomic.Bool
		after time.Duration
		why   string
	}{
		{func(s *source) *atomic.Bool { return &s.down }, 0, outlines[reasonForeign]},
		{func(s *source) *atomic.Bool { return &s.silent }, normal.silence, "has stopped sending"},
	} {
		withRelay(t, func(t *testing.T, f *relay, s *source) {
			tt.lose(s).Store(true)
			began := time.Now()
			c, _ := listen(t, f)
			m := <-c
			require.Equal(t, tt.after, m.at.Sub(began))
			require.Equal(t, began, m.since)
			require.Contains(t, m.problem, tt.why)
			var published lost
			require.NoError(t, json.Unmarshal(m.text, &published))
			require.True(t, published.Lost)
			require.Equal(t, m.problem, published.Problem)
			require.True(t, published.Since.Equal(began))
			for range 10 {
				next := <-c
				require.Equal(t, normal.repeat, next.at.Sub(m.at), "once a second, however often it is tried")
				m = next
			}
			late, _ := listen(t, f)
			require.Equal(t, m.at, (<-late).at)
		})
	}
}

// The pauses between attempts grow to 2 s and are randomized. After a refusal, which more attempts would only prolong,
// they are long at once.
func TestPauses(t *testing.T) {
	type pauses = []time.Duration
	refused := func(status int) error { return &api.ProblemError{Problem: api.Problem{Status: status}} }
	for _, tt := range []struct {
		err       error
		low, high pauses // of the first pauses; the last ones hold for the rest
	}{
		{errDown, pauses{125 * ms, 250 * ms, 500 * ms, time.Second}, pauses{251 * ms, 501 * ms, 1001 * ms, 2001 * ms}},
		{refused(401), pauses{10 * time.Second}, pauses{10 * time.Second}},
		{refused(421), pauses{10 * time.Second}, pauses{10 * time.Second}},
		{refused(503), pauses{125 * ms}, pauses{2001 * ms}},
	} {
		withRelay(t, func(t *testing.T, f *relay, s *source) {
			s.down.Store(true)
			s.err = tt.err
			listen(t, f)
			wait.Advance(time.Minute)
			synctest.Wait()
			times := s.attempts()
			require.Greater(t, len(times), 5)
			for i := range times[1:] {
				pause := times[i+1].Sub(times[i])
				require.GreaterOrEqual(t, pause, tt.low[min(i, len(tt.low)-1)], "%v, pause %d", tt.err, i)
				require.LessOrEqual(t, pause, tt.high[min(i, len(tt.high)-1)], "%v, pause %d", tt.err, i)
			}
		})
	}
}

// One stream serves any number of listeners, and ends some time after the last.
func TestOneStream(t *testing.T) {
	withRelay(t, func(t *testing.T, f *relay, s *source) {
		require.Zero(t, s.opened.Load(), "there are no listeners")
		a, leaveA := listen(t, f)
		b, leaveB := listen(t, f)
		require.NotNil(t, newest(t, a, 2*time.Second).snapshot)
		require.NotNil(t, (<-b).snapshot)
		require.EqualValues(t, 1, s.opened.Load())

		leaveA()
		leaveB()
		wait.Advance(normal.linger - time.Second)
		synctest.Wait()
		require.EqualValues(t, 1, s.opened.Load(), "a listener may return")
		c, leaveC := listen(t, f)
		require.NotNil(t, (<-c).snapshot, "at once")
		wait.Advance(2 * normal.linger)
		synctest.Wait()
		require.EqualValues(t, 1, s.opened.Load(), "the pause was called off")
		require.Len(t, s.attempts(), 1)

		leaveC()
		leaveC()
		wait.Advance(normal.linger)
		synctest.Wait()
		require.Zero(t, s.opened.Load())

		s.silent.Store(true)
		d, _ := listen(t, f)
		synctest.Wait()
		require.Empty(t, d, "messages from before the pause are dropped")
		require.EqualValues(t, 1, s.opened.Load())
	})
}

// A listener that does not read loses messages, but never the newest, and does not block other listeners.
func TestSlowListener(t *testing.T) {
	withRelay(t, func(t *testing.T, f *relay, s *source) {
		slow, _ := listen(t, f)
		wait.Advance(time.Minute)
		synctest.Wait()
		require.Len(t, slow, 1)
		require.Less(t, time.Since((<-slow).at), 1100*time.Millisecond)
	})
}
