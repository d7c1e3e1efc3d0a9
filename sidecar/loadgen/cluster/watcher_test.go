package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

// fakeTransport is a transport whose behavior can change while a watcher uses it.
type fakeTransport struct {
	mu sync.Mutex
	do func(*http.Request) (*http.Response, error)
}

func (p *fakeTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	p.mu.Lock()
	do := p.do
	p.mu.Unlock()
	return do(req)
}

func (p *fakeTransport) use(do func(*http.Request) (*http.Response, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.do = do
}

func refused(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }

func silent(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// watch runs a watcher on a direct source inside a bubble of virtual time.
func watch(t *testing.T, transport http.RoundTripper, log *slog.Logger, further ...string) *Watcher {
	t.Helper()
	direct, err := NewDirect("http://frontend:8000", further, &http.Client{Transport: transport})
	require.NoError(t, err)
	w := NewWatcher(direct, anyModel, log)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return w
}

// after advances virtual time by d and waits until the watcher is idle.
func after(d time.Duration) {
	wait.Advance(d)
	synctest.Wait()
}

func TestSourceLostAndRecovered(t *testing.T) {
	up := scene{"frontend:8000": fixture(t, "frontend-kv.prom")}
	for name, loss := range map[string]func(*http.Request) (*http.Response, error){
		"refused": refused, "silent": silent, "not found": scene{}.RoundTrip,
		"another program's page": scene{"frontend:8000": "<html>hello</html>"}.RoundTrip,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var text bytes.Buffer
				source := &fakeTransport{do: up.RoundTrip}
				w := watch(t, source, slog.New(slog.NewTextHandler(&text, nil)))
				after(10*time.Second + 100*time.Millisecond)
				require.True(t, w.Current().Available)
				require.Equal(t, "direct", w.Current().Source)
				require.Less(t, w.Current().UpdatedSecond, 1.0)

				source.use(loss)
				after(5 * time.Second)
				c := w.Current()
				require.False(t, c.Available, "5 s after the loss")
				require.Contains(t, c.Problem, "http://frontend:8000/metrics: ")
				require.Nil(t, c.Queued, "no figure of an earlier reading")
				require.NotNil(t, c.Workers)
				require.Empty(t, c.Workers)
				require.GreaterOrEqual(t, c.UpdatedSecond, 4.0)

				after(10 * time.Minute)
				source.use(up.RoundTrip)
				after(lastPause + readTimeout)
				require.True(t, w.Current().Available, "available again without a call")
				require.NotNil(t, w.Current().Queued)
				require.Equal(t, 3, strings.Count(text.String(), "\n"), "the log has one line for each change:\n%s", &text)
			})
		})
	}
}

// One slow answer does not make the cluster unavailable.
func TestSlowReadingIsBridged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := scene{"frontend:8000": fixture(t, "frontend-kv.prom")}
		source := &fakeTransport{do: up.RoundTrip}
		w := watch(t, source, discard)
		after(3*time.Second + 100*time.Millisecond)
		source.use(silent)
		after(time.Second)
		source.use(up.RoundTrip)
		for range 50 {
			after(100 * time.Millisecond)
			require.True(t, w.Current().Available)
		}
	})
}

// Before the first reading the reason is shown and logged once, and the pauses between attempts grow.
func TestRetriesBeforeFirstReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		var begun []time.Time
		w := watch(t, &fakeTransport{do: func(*http.Request) (*http.Response, error) {
			begun = append(begun, time.Now())
			return nil, errors.New("connection refused")
		}}, slog.New(slog.NewTextHandler(&text, nil)))
		require.False(t, w.Current().Available)
		require.NotEmpty(t, w.Current().Problem)
		after(time.Minute)
		require.Contains(t, w.Current().Problem, "connection refused")
		require.InDelta(t, 60, w.Current().UpdatedSecond, 0.1)
		require.Equal(t, 1, strings.Count(text.String(), "\n"), "the problem is logged once:\n%s", &text)
		for i, pause := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 2 * time.Second} {
			require.Equal(t, pause, begun[i+1].Sub(begun[i]))
		}
	})
}

// lockedText is a log that is read while a watcher writes it.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Notices on what the readings lack appear three seconds after the first one, since until then the router is not
// recognized, it has no series before the first request, and a page may be slow once.
func TestNoticesOfTheStart(t *testing.T) {
	idle := scene{"router:29000": "smg_worker_pool_size 1\n"}
	serving := scene{"router:29000": routerPage(t, "sglang-router")}
	engine := scene{"one:1": plainVLLM("10", "100", "1", "10")["frontend:8000"]}
	for name, row := range map[string]struct {
		later  scene // the pages from 1.5 s on
		notice string
	}{
		"complete from the first request on": {serving, ""},
		"a page that is missing":             {idle, "http://router:29000/metrics: no metrics of Dynamo"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log lockedText
			begun := time.Now()
			answered := func() bool { return time.Since(begun) > 1500*time.Millisecond }
			direct, err := NewDirect("http://frontend:8000", []string{"http://router:29000", "http://one:1"},
				&http.Client{Transport: &fakeTransport{do: func(req *http.Request) (*http.Response, error) {
					switch {
					case req.URL.Host != "router:29000":
						return engine.RoundTrip(req)
					case answered():
						return row.later.RoundTrip(req)
					}
					return idle.RoundTrip(req)
				}}})
			require.NoError(t, err)
			direct.Router = func() string {
				if answered() {
					return "sglang-router"
				}
				return ""
			}
			selected := SelectedSource(func() Source { return direct })
			w := NewWatcher(selected, anyModel, slog.New(slog.NewTextHandler(&log, nil)))
			var group sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			group.Go(func() { w.Run(ctx) })
			for range 29 {
				after(100 * time.Millisecond)
				require.True(t, w.Current().Available, name)
				require.Empty(t, w.Current().Problem, name)
				require.Empty(t, w.Current().Unread, name)
			}
			require.Empty(t, log.String(), name)
			after(200 * time.Millisecond)
			require.Contains(t, w.Current().Problem, row.notice, name)
			require.Equal(t, row.notice == "", w.Current().Problem == "", name)
			require.Equal(t, 1, strings.Count(log.String(), "\n"), "%s: %s", name, &log)
			cancel()
			group.Wait()
		})
	}
}

// If a worker does not answer, the problem names it, and the frontend and the other workers are shown.
func TestReadingWithGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, unreachable := range map[string]func(*http.Request) (*http.Response, error){
			"refused": refused, "silent": silent,
		} {
			up := scene{"frontend:8000": fixture(t, "frontend-kv.prom"), "one:1": fixture(t, "worker-trtllm.prom")}
			source := &fakeTransport{do: func(req *http.Request) (*http.Response, error) {
				if req.URL.Host == "two:1" {
					return unreachable(req)
				}
				return up.RoundTrip(req)
			}}
			w := watch(t, source, discard, "http://one:1/metrics", "http://two:1/metrics")
			after(2 * time.Second)
			for range 40 {
				after(250 * time.Millisecond)
				require.LessOrEqual(t, w.Current().UpdatedSecond, pageTimeout.Seconds(),
					"a worker that hangs delays the reading by at most pageTimeout")
			}
			c := w.Current()
			require.True(t, c.Available, name)
			require.NotNil(t, c.Queued, name)
			require.Len(t, c.Workers, 1, name)
			require.Contains(t, c.Problem, "http://two:1/metrics: ", name)
		}
	})
}

// A mode change may change the configured speculation, and a caller may modify the list of workers.
func TestWatcherIsSafeToChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := scene{"frontend:8000": fixture(t, "frontend-kv.prom"), "one:1": fixture(t, "worker-sglang.prom")}
		w := watch(t, up, discard, "http://one:1")
		after(1500 * time.Millisecond)
		require.Nil(t, w.Current().Speculation.TokensPerStep, "the speculation is unknown")
		w.Current().Workers[0].Name = "a reader's own"
		require.Equal(t, "one:1", w.Current().Workers[0].Name)
		w.SetSpeculation(api.SpeculationOff)
		after(time.Second)
		near(t, 1, w.Current().Speculation.TokensPerStep, "off")
	})
}

func TestManySamplesAreReadEveryOtherSecond(t *testing.T) {
	for n, every := range map[int]time.Duration{10: time.Second, manySamples + 1: 2 * time.Second} {
		page := &strings.Builder{}
		for i := range n {
			page.WriteString(workerPage(strconv.Itoa(i), 1))
		}
		synctest.Test(t, func(t *testing.T) {
			var reads atomic.Int64
			pages := scene{"frontend:8000": page.String()}
			w := watch(t, &fakeTransport{do: func(req *http.Request) (*http.Response, error) {
				reads.Add(1)
				return pages.RoundTrip(req)
			}}, discard)
			after(9 * time.Second)
			require.EqualValues(t, 1+9*time.Second/every, reads.Load())
			require.Equal(t, n, w.Current().WorkerCount())
		})
	}
}

// The totals of engines and GPUs extend beyond the window: gauges as a mean over the readings, counters across a
// restart.
func TestEngineTotals(t *testing.T) {
	page := func(length, rate float64, memory int) scene {
		return scene{"frontend:8000": fmt.Sprintf("sglang:num_running_reqs 1\nsglang:spec_accept_length "+
			"%g\nsglang:spec_accept_rate %g\n"+
			"DCGM_FI_DEV_FB_USED{gpu=\"0\"} %d\nDCGM_FI_DEV_FB_USED{gpu=\"1\"} %[3]d\n", length, rate, memory)}
	}
	synctest.Test(t, func(t *testing.T) {
		p := &fakeTransport{do: page(2, .5, 1000).RoundTrip}
		w := watch(t, p, discard)
		after(500 * time.Millisecond)
		before := w.Current().Engines
		after(90 * time.Second)
		p.use(page(3, .8, 1600).RoundTrip)
		after(90 * time.Second)
		use := w.Current().Engines.Since(*before)
		near(t, .65, use.AcceptanceRate, "")
		near(t, 2.5, use.TokensPerStep, "")
		near(t, 1300<<20, use.GPUMemoryBytes, "")
	})
}

// The growth of counters is kept beyond the window and across a restart. A frontend without reports of cached tokens
// has no count of hits, instead of a count of zero.
func TestCountedHits(t *testing.T) {
	page := func(cached, ends, input int) scene {
		return scene{"frontend:8000": fmt.Sprintf("dynamo_frontend_cached_tokens_sum "+
			"%d\ndynamo_frontend_cached_tokens_count %d\n"+
			"dynamo_frontend_input_sequence_tokens_sum %d\n", cached, ends, input)}
	}
	for name, row := range map[string]struct {
		then []scene
		want map[string][2]float64
	}{
		"beyond the window": {
			[]scene{page(400, 11, 1400), page(700, 12, 1900)}, map[string][2]float64{"frontend": {600, 900}},
		},
		"a restart":          {[]scene{page(400, 11, 1400), page(30, 1, 50)}, map[string][2]float64{"frontend": {330, 450}}},
		"no end is reported": {[]scene{page(100, 10, 1400), page(100, 10, 1900)}, map[string][2]float64{}},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &fakeTransport{do: page(100, 10, 1000).RoundTrip}
			w := watch(t, p, discard)
			after(2 * time.Second)
			for _, s := range row.then {
				p.use(s.RoundTrip)
				after(2 * window)
			}
			got := w.Current().KV.Counted
			maps.DeleteFunc(got, func(_ string, n [2]float64) bool { return n == [2]float64{} })
			require.Equal(t, row.want, got, name)
		})
	}
}
