//go:build engines

package engines

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/test/boothtest"
)

// waits are the first times to the first token under the honest arms.
type waits struct {
	sync.Mutex
	seconds []float64
}

const enoughWaits = 60

func (w *waits) add(seconds float64) {
	w.Lock()
	defer w.Unlock()
	if len(w.seconds) < enoughWaits {
		w.seconds = append(w.seconds, seconds)
	}
}

// limit is the time that a quarter of them exceeds. No turn exceeds it before there are enough.
func (w *waits) limit() time.Duration {
	w.Lock()
	defer w.Unlock()
	if len(w.seconds) < enoughWaits {
		return math.MaxInt64
	}
	slices.Sort(w.seconds)
	return time.Duration(w.seconds[enoughWaits*3/4] * float64(time.Second))
}

// balancer sends requests to workers in turn.
type balancer struct {
	workers []string
	honest  *waits
	late    http.HandlerFunc // answers a turn whose first token does not come within the limit; nil: there is none
	next    atomic.Uint64
}

var errLate = errors.New("the first token did not come within the limit")

// ServeHTTP implements [http.Handler].
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	began, limit := time.Now(), time.Duration(math.MaxInt64)
	if b.late != nil {
		limit = b.honest.limit()
	}
	timer := time.AfterFunc(limit, func() { cancel(errLate) })
	defer timer.Stop()
	worker := b.workers[b.next.Add(1)%uint64(len(b.workers))]
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: worker}) },
		ModifyResponse: func(response *http.Response) error {
			body := bufio.NewReader(response.Body)
			if _, err := body.Peek(1); err != nil { // the first token
				return err
			}
			timer.Stop()
			if b.late == nil && r.Method == http.MethodPost {
				b.honest.add(time.Since(began).Seconds())
			}
			response.Body = struct {
				io.Reader
				io.Closer
			}{body, response.Body}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			w.Header().Set(httpd.WorkerHeader, worker)
			if errors.Is(context.Cause(r.Context()), errLate) {
				b.late(w, r)
				return
			}
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

func failTurn(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, errLate.Error(), http.StatusInternalServerError)
}

// endTurn answers with a single token, as a stream that ends well.
func endTurn(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, member := range []string{
		`"choices":[{"index":0,"delta":{"role":"assistant","content":"Yes"},"finish_reason":null}]`,
		`"choices":[{"index":0,"delta":{},"finish_reason":"length"}]`,
		`"choices":[],"usage":{"prompt_tokens":1700,"completion_tokens":1,"total_tokens":1701}`,
	} {
		fmt.Fprintf(w, `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m",%s}`+"\n\n", member)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// mortal serves so many requests, and then closes its listener and its connections for good.
func mortal(requests int64, next http.Handler) (s *httptest.Server) {
	var served atomic.Int64
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if served.Add(1) == requests {
			_ = s.Listener.Close()
			s.CloseClientConnections()
		}
		next.ServeHTTP(w, r)
	}))
	return s
}

// Names of the arms, by what they do.
const (
	honest    = "honest"
	honestToo = "honest too"
	fails     = "fails late turns"
	shortens  = "shortens late turns"
	ends      = "ends"
)

// A ranking holds against arms that look better than they are. Of two equal arms none is better. One that fails its
// slowest turns, and one that ends them with a single token, are not better than an honest one. One that ends for good
// leaves the trial of the others, and is last.
func TestArenaAgainstCheats(t *testing.T) {
	bin, times := boothtest.Programs(t), &waits{}
	// These report no cached tokens, so that spans do not wait for the hit rate.
	workers := boothtest.SimulatedAs(t, bin, "sglang", "--speculation=off").Workers
	inTurn := func(late http.HandlerFunc) *balancer { return &balancer{workers: workers, honest: times, late: late} }
	var arms []map[string]any
	add := func(name string, s *httptest.Server) {
		t.Cleanup(s.Close)
		arms = append(arms, map[string]any{"name": name, "url": s.URL, "worker_header": httpd.WorkerHeader})
	}
	const lifetime = 200 // requests, of two spans or so
	add(honest, httptest.NewServer(inTurn(nil)))
	add(honestToo, httptest.NewServer(inTurn(nil)))
	add(fails, httptest.NewServer(inTurn(failTurn)))
	add(shortens, httptest.NewServer(inTurn(endTurn)))
	add(ends, mortal(lifetime, inTurn(nil)))
	r := trialReport(t, bin, append(configured(t, workers, arms...)[:1], "--question=order", "--max-time=5m",
		"--shape=batch", "--shape-answer-tokens=24", "--concurrency=12", "--start-rate=100"))
	words := strings.Join(r.Words, " ")
	figure.Report(t, "%s", words)
	require.Equal(t, api.SweepDone, r.Sweep.State, r.Sweep.Reason)
	k, names := r.Sweep.Trial.Ranking, map[api.TrialArm]string{}
	for _, p := range k.Places {
		names[p.Arm] = p.Mode.Arm
	}
	require.Len(t, k.Pairs, 6, "every pair of those that serve")
	for i := range k.Pairs {
		checkPair(t, &k.Pairs[i], names)
	}
	p95 := map[string]float64{}
	for _, side := range r.Sides {
		p95[side.Mode.Arm] = *side.Rows[0].TTFT.P95
	}
	assert.Less(t, max(p95[fails], p95[shortens]), min(p95[honest], p95[honestToo]), "they look better")
	assert.Regexp(t, `turns failed: \d+\.?\d* % under `+fails, words)
	last := k.Places[len(k.Places)-1]
	assert.Equal(t, []any{ends, [2]int{5, 5}}, []any{names[last.Arm], last.Place})
	assert.Contains(t, words, ends+" left the trial ")
}

// checkPair checks what a ranking says of two arms of which one is honest.
func checkPair(t *testing.T, p *api.TrialPair, names map[api.TrialArm]string) {
	t.Helper()
	a, b := names[p.A], names[p.B]
	isHonest := func(name string) bool { return name == honest || name == honestToo }
	better := ""
	switch proof.Verdict(p.Primary.Outcome) {
	case proof.ABetter:
		better = a
	case proof.BBetter:
		better = b
	}
	switch {
	case isHonest(a) && isHonest(b):
		assert.Empty(t, better, "equal arms")
	case isHonest(a) || isHonest(b):
		assert.Contains(t, []string{"", honest, honestToo}, better)
		assert.NotContains(t, []string{honest, honestToo}, names[p.More])
	}
	for _, g := range p.Guards {
		if proof.Verdict(g.Outcome) == proof.Unlike {
			assert.Empty(t, better, "the answers of %s and %s differ", a, b)
		}
		if proof.Metric(g.Metric) == proof.AnswerTokens && (a == shortens || b == shortens) {
			assert.Equal(t, a == shortens, g.A < g.B, "the length of the answers of %s and %s", a, b)
		}
	}
}
