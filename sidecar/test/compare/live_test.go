//go:build verify

package compare

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kvbooth/internal/inmem"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/sim/draw"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"

	reporting "kvbooth/internal/figure"
)

// The simulated cluster over HTTP, with the load generator's workload and client, has the figures of the core's closed
// loop on the same draws. Server, connections and clock are in a synctest bubble, so that the machine's speed does not
// matter.
//
// On the same draws, the differences that remain are due to the cluster's own randomness, such as the jitter of its
// iterations, and its consequences. [coreSeeds] runs of the core with other seeds show their size: the live run, with
// yet another seed, must be within the 99.9 % prediction interval.
func TestLiveAgainstCore(t *testing.T) {
	for _, mode := range []api.Mode{api.ModeKV, api.ModeRoundRobin} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			s := setting{24, mode, 3}
			w, err := workloadOf(s.level, 1, fixedQuestion)
			require.NoError(t, err)
			w.MaxTokens, w.Output = 256, &api.Distribution{Mean: 150, CV: .3} // short answers make more turns
			o := sim.DefaultOptions(sim.H200())
			o.Mode, o.Seed = mode, coreSeeds+1
			var got result
			synctest.Test(t, func(t *testing.T) { got = live(t, o, w, sentence{}, 20*time.Second, 70*time.Second) })
			read := part{got.before, got.turns}
			runs, err := core(s, o, w, true, read)
			require.NoError(t, err)
			otherwise := api.ModeKV
			if mode == otherwise {
				otherwise = api.ModeRoundRobin
			}
			other, err := core(setting{mode: otherwise}, o, w, true, read)
			require.NoError(t, err)

			apart := false
			for _, f := range figures {
				b, v := bandOf(runs, f.of), f.of(&got)
				assert.InDelta(t, b.mean, v, b.run999, f.name)
				off := bandOf(other, f.of).mean - b.mean
				apart = apart || math.Abs(off) > b.run999
				reporting.Report(t, "%s over HTTP %s, in the core %s ± %s (99.9 %% of runs)",
					f.name, f.text(v), f.text(b.mean), f.text(b.run999))
				t.Logf("the other mode %+8.4f", off)
			}
			assert.True(t, apart, "no figure distinguishes the two modes")
		})
	}
}

// live runs the workload against a simulated cluster over HTTP in a bubble, and returns the figures of the turns that
// end in a span after a warm-up.
func live(t *testing.T, o sim.Options, w closedloop.Workload, q corpus.Questioner, warmUp, span time.Duration) result {
	server, err := httpd.New(httpd.Options{Cluster: o, Engine: "trtllm", Speed: 1})
	require.NoError(t, err)
	defer server.Close()
	at := inmem.Listen()
	frontend := &http.Server{Handler: server.Frontend()}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer frontend.Close()
	wg.Go(func() { _ = frontend.Serve(at) })

	client, err := chat.New(chat.Options{URL: "http://127.0.0.1:8000", Model: o.Profile.Model, Dial: at.Dial})
	require.NoError(t, err)
	defer client.Close()
	if problem := client.Probe(t.Context()); problem != nil {
		t.Fatal(problem)
	}
	articles, err := corpus.Builtin()
	require.NoError(t, err)
	seen := &turnsSeen{}
	load := workload.New(workload.Options{
		Lane: "main", Run: "r1", Seed: w.Seed, Sender: client, Corpus: articles, Questioner: q, Observer: seen,
	}, workload.Settings{
		Level:        w.Level,
		Turns:        w.Turns,
		Openings:     workload.OpeningsOf(w.Openings),
		MaxTokens:    w.MaxTokens,
		OutputTokens: *w.Output,
		StartRate:    w.StartRate,
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { load.Run(ctx) })

	from := time.Now().Add(warmUp)
	var spreads []float64
	for now := time.Now(); now.Before(from.Add(span)); now = time.Now() {
		wait.Advance(time.Second)
		if !now.Before(from) {
			spreads = append(spreads, spreadOf(t, server))
		}
	}
	cancel()
	running.Wait()
	r := summarize(seen.turns, from, from.Add(span))
	require.Empty(t, r.failed)
	r.spread = stat.Mean(spreads, nil)
	return r
}

// sentence opens every conversation on an article in the same way, as workloadOf assumes, and asks the follow-up
// question of the recorded results.
type sentence struct{ corpus.BuiltinQuestioner }

func (sentence) Open(_ *rand.Rand, topic string) string {
	return corpus.BuiltinQuestioner{}.Open(draw.Random(1), topic)
}

func (sentence) Follow(context.Context, *rand.Rand, string, []string, string) string {
	return sameSentence
}

var inflight = regexp.MustCompile(`(?m)^dynamo_component_inflight_requests\{.*\} (\d+)$`)

// spreadOf returns the difference of the requests on the busiest and the least busy worker, from the metrics.
func spreadOf(t *testing.T, server *httpd.Server) float64 {
	least, most := math.Inf(1), math.Inf(-1)
	for i := range server.Workers() {
		page := httptest.NewRecorder()
		server.Worker(i).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		text, err := io.ReadAll(page.Body)
		require.NoError(t, err)
		match := inflight.FindSubmatch(text)
		require.NotNil(t, match)
		n, err := strconv.ParseFloat(string(match[1]), 64)
		require.NoError(t, err)
		least, most = min(least, n), max(most, n)
	}
	return most - least
}

// turnsSeen records the turns of a workload.
type turnsSeen struct {
	mu    sync.Mutex
	turns []api.Turn
}

// TurnEnded implements [workload.Observer].
func (s *turnsSeen) TurnEnded(_ *workload.Conversation, t *workload.LiveTurn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns = append(s.turns, t.Turn.Turn)
}

// The other methods of [workload.Observer] do nothing.
func (*turnsSeen) ConversationStarted(*workload.Conversation)                            {}
func (*turnsSeen) TurnStarted(*workload.LiveTurn)                                        {}
func (*turnsSeen) FirstToken(*workload.LiveTurn)                                         {}
func (*turnsSeen) Arrived(int)                                                           {}
func (*turnsSeen) ConversationEnded(*workload.Conversation, api.ConversationStatus, int) {}
func (*turnsSeen) Active(int, api.Level, bool)                                           {}

// The token counts that the simulations use are those of the questioners' texts.
func TestQuestionTokensAreThoseOfTheSimulation(t *testing.T) {
	articles, err := corpus.Builtin()
	require.NoError(t, err)
	lengths := func(q corpus.Questioner) (all []float64) {
		for k := range uint64(60) {
			r, s := draw.Random(k), articles.Starters[k%10]
			answer := s.Text[:len(s.Text)/4] // about as long as an answer, on the same subject
			asked := []string{q.Open(r, s.Topic)}
			asked = append(asked, q.Follow(t.Context(), r, s.Topic, asked, answer))
			before := []sim.Message{{Role: "user", Content: s.Text + "\n\n" + asked[0]}}
			after := append(before, sim.Message{Role: "assistant", Content: answer},
				sim.Message{Role: "user", Content: asked[1]})
			all = append(all, float64(sim.Count(sim.RenderChat(after))-sim.Count(sim.RenderChat(before)+answer)))
		}
		return all
	}
	for _, length := range lengths(corpus.FixedQuestioner{Text: sameSentence}) {
		require.InDelta(t, fixedQuestion.Mean, length, 0)
	}
	mean, deviation := stat.MeanStdDev(lengths(corpus.BuiltinQuestioner{}), nil)
	assert.InDelta(t, builtInQuestions.Mean, mean, 1.5)
	assert.InDelta(t, builtInQuestions.CV, deviation/mean, .03)
}
