//go:build peers

package peers

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/sim/arrival"
	"kvbooth/sidecar/test/boothtest"
)

// stub is a server that answers each stream at once with two tokens, and records when requests reached it.
type stub struct {
	*httptest.Server
	mu   sync.Mutex
	came []time.Time // of all but the load generator's probes, which are short
}

func startStub(t *testing.T) *stub {
	t.Helper()
	s := &stub{}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

const (
	chunk = `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"stub","choices":[{"index":0,` +
		`"delta":{"role":"assistant","content":" the"},"finish_reason":%s}]}` + "\n\n"
	usage = `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"stub","choices":[],` +
		`"usage":{"prompt_tokens":128,"completion_tokens":2,"total_tokens":130}}` + "\n\ndata: [DONE]\n\n"
)

func (s *stub) serve(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	if r.Method != http.MethodPost {
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"stub","object":"model","created":1,"owned_by":"stub"}]}`)
		return
	}
	if body, _ := io.Copy(io.Discard, r.Body); body > 500 && strings.HasSuffix(r.URL.Path, api.ChatPath) {
		s.mu.Lock()
		s.came = append(s.came, now)
		s.mu.Unlock()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, chunk, "null")
	_ = http.NewResponseController(w).Flush()
	fmt.Fprintf(w, chunk+usage, `"stop"`)
}

// lateness returns how late requests reached the server, against a schedule of which they are as many. It begins so
// that none was early, since no tool says when it began: what all are late alike does not show.
func (s *stub) lateness(schedule func(k int) time.Duration) starts {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.came, time.Time.Compare)
	late := make([]time.Duration, len(s.came))
	for k, at := range s.came {
		late[k] = at.Sub(s.came[0]) - schedule(k)
	}
	slices.Sort(late)
	above, _ := slices.BinarySearch(late, late[0]+50*time.Millisecond)
	return starts{
		p50: late[len(late)/2] - late[0], p99: late[len(late)*99/100] - late[0],
		above: 1 - float64(above)/float64(len(late)),
	}
}

// starts is how late requests were.
type starts struct {
	p50, p99 time.Duration
	above    float64 // share that is more than 50 ms late
}

func (s starts) String() string {
	return fmt.Sprintf("%.2f and %.2f ms, %.1f %%", 1000*s.p50.Seconds(), 1000*s.p99.Seconds(), 100*s.above)
}

// median returns the median of each figure.
func median(all []starts) starts {
	var m starts
	middle := len(all) / 2
	slices.SortFunc(all, func(a, b starts) int { return int(a.above*1e9 - b.above*1e9) })
	m.above = all[middle].above
	slices.SortFunc(all, func(a, b starts) int { return int(a.p50 - b.p50) })
	m.p50 = all[middle].p50
	slices.SortFunc(all, func(a, b starts) int { return int(a.p99 - b.p99) })
	m.p99 = all[middle].p99
	return m
}

const startsSeed = 7

// schedule returns the times of a load of this program at a rate.
func schedule(arrivals api.Arrivals, rate int) func(int) time.Duration {
	open := arrival.NewOpen(0, 0, arrival.Ramp{To: float64(rate)},
		arrival.Schedule{Gaps: arrivals, Burstiness: 1, Seed: startsSeed})
	first := open.Begin(arrival.State{})
	times := []time.Duration{0}
	return func(k int) time.Duration {
		for len(times) <= k {
			times = append(times, open.Begin(arrival.State{})-first)
		}
		return times[k]
	}
}

// tool sends a number of single requests of 128 tokens to a server at a rate. reported is how late it says that they
// were, zero if it does not.
type tool struct {
	name     string
	arrivals api.Arrivals
	send     func(t *testing.T, url string, rate, requests int) (reported starts)
}

// loadgenStarts runs this program.
func loadgenStarts(bin string, arrivals api.Arrivals) tool {
	return tool{"loadgen", arrivals, func(t *testing.T, url string, rate, requests int) starts {
		summary := filepath.Join(t.TempDir(), "run.json")
		run(t, filepath.Join(bin, "loadgen"), "--listen", boothtest.AnyPort, "--target-url", url, "--data-dir", t.TempDir(),
			"--rate", fmt.Sprintf("%d/s", rate), "--arrivals", string(arrivals), "--seed", strconv.Itoa(startsSeed),
			"--requests", strconv.Itoa(requests), "--shape", "prefix", "--shape-groups", "1000000",
			"--shape-prefix-tokens", "64", "--shape-suffix-tokens", "64", "--shape-answer-tokens", "2", "--output", summary)
		var r report.Run
		read(t, summary, &r)
		require.NotNil(t, r.Late)
		assert.Equal(t, requests, r.Late.N)
		seconds := func(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
		return starts{seconds(r.Late.P50), seconds(r.Late.P99), r.Late.Above}
	}}
}

func aiperfStarts(t *testing.T) tool {
	t.Helper()
	program, tokens := filepath.Join(filepath.Dir(boothtest.Interpreter(t, aiperf)), "aiperf"), tokenizer(t)
	return tool{"AIPerf", api.ArrivalsConstant, func(t *testing.T, url string, rate, requests int) (unknown starts) {
		run(t, program, "profile", "--model", "stub", "--url", url, "--endpoint-type", "chat", "--streaming",
			"--tokenizer", tokens, "--request-rate", strconv.Itoa(rate), "--arrival-pattern", "constant",
			"--request-count", strconv.Itoa(requests), "--synthetic-input-tokens-mean", "128",
			"--synthetic-input-tokens-stddev", "0", "--output-tokens-mean", "2", "--output-tokens-stddev", "0",
			"--use-server-token-count", "--random-seed", strconv.Itoa(startsSeed), "--ui", "none", "--no-gpu-telemetry",
			"--no-server-metrics", "--output-artifact-dir", t.TempDir())
		return unknown
	}}
}

func guideLLMStarts(t *testing.T) tool {
	t.Helper()
	program, tokens := filepath.Join(filepath.Dir(boothtest.Interpreter(t, guideLLM)), "guidellm"), tokenizer(t)
	return tool{"GuideLLM", api.ArrivalsConstant, func(t *testing.T, url string, rate, requests int) (unknown starts) {
		run(t, program, "run", "--backend", fmt.Sprintf("kind=openai_http,target=%s,model=stub", url),
			"--profile", fmt.Sprintf("kind=constant,rate=%d", rate),
			"--constraint", fmt.Sprintf("kind=max_requests,count=%d", requests),
			"--tokenizer", "kind=huggingface_auto,model="+tokens,
			"--data", "kind=synthetic_text,prompt_tokens=128,output_tokens=2",
			"--output", "kind=json,path="+filepath.Join(t.TempDir(), "report.json"), "--disable-console")
		return unknown
	}}
}

// The tools in turn send the same number of requests at the same rate to the same server, which sees when they come.
func TestStartsAtRate(t *testing.T) {
	bin := boothtest.Programs(t)
	tools := []tool{
		loadgenStarts(bin, api.ArrivalsPoisson), loadgenStarts(bin, api.ArrivalsConstant), aiperfStarts(t), guideLLMStarts(t),
	}
	for _, rate := range []int{5, 50, 500} {
		t.Run(strconv.Itoa(rate), func(t *testing.T) {
			requests := min(10*rate, 2500)
			seen, reported := make([][]starts, len(tools)), make([][]starts, len(tools))
			for range 3 {
				for i, tool := range tools {
					s := startStub(t)
					reported[i] = append(reported[i], tool.send(t, s.URL, rate, requests))
					require.Equal(t, requests, len(s.came), tool.name)
					seen[i] = append(seen[i], s.lateness(schedule(tool.arrivals, rate)))
					t.Log(tool.name, tool.arrivals, seen[i], reported[i])
				}
			}
			var text strings.Builder
			for i, tool := range tools {
				fmt.Fprintf(&text, "; %s, %s: %v", tool.name, tool.arrivals, median(seen[i]))
				if tool.name == "loadgen" {
					fmt.Fprintf(&text, ", by itself %v", median(reported[i]))
				}
			}
			figure.Report(t, "%d starts/s, how late the server gets requests (p50 and p99, share above 50 ms)%s", rate, &text)
		})
	}
}
