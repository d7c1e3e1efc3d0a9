package httpd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/httpd/httpdtest"
	"kvbooth/sidecar/sim"
)

func TestChunksHaveDynamosShape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, err := os.Open("testdata/stream.txt")
		require.NoError(t, err)
		defer file.Close()
		dynamos, err := readEvents(file)
		require.NoError(t, err)
		b := open(t, nil)
		res := b.chat(ask("word", 40, `,"annotations":["token_ids"]`))
		assert.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
		ours, err := readEvents(res.Body)
		require.NoError(t, err)

		require.Equal(t, "token_ids", ours[0].name)
		var list string
		require.NoError(t, json.Unmarshal([]byte(ours[0].comment), &list))
		var ids []uint32
		require.NoError(t, json.Unmarshal([]byte(list), &ids))
		require.Equal(t, sim.Encode(sim.RenderChat([]sim.Message{{Role: "user", Content: "word"}})), ids)

		last := len(ours) - 1
		for _, pair := range []struct {
			intent     string
			ours, real int
		}{
			{"first", 1, 1},
			{"second", 2, 2},
			{"before the finish", last - 3, 3},
			{"finish", last - 2, 4},
			{"usage", last - 1, 5},
		} {
			want, got := []byte(dynamos[pair.real].data), []byte(ours[pair.ours].data)
			assert.Equal(t, httpdtest.Shape(want), httpdtest.Shape(got), pair.intent)
		}
		assert.Equal(t, dynamos[6], ours[last], "[DONE]")
	})
}

func TestNextTurnReusesCachedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, nil)
		prompt := "Explain – «naïve» 世界 😀."
		a := b.complete(ask(prompt, 200, ""))
		promptTokens := sim.Count(sim.RenderChat([]sim.Message{{Role: "user", Content: prompt}}))
		output := a.last.Usage.Completion
		assert.Contains(t, []string{"stop", "length"}, a.reason)
		assert.LessOrEqual(t, output, 200)
		assert.Equal(t, sim.Count(a.text), output)
		assert.Equal(t, promptTokens, a.last.Usage.Prompt)
		assert.Equal(t, output+promptTokens, a.last.Usage.Total)
		assert.Less(t, a.contents, output*3/4, "with speculation, chunks have several tokens")
		assert.NotContains(t, a.text, "\uFFFD")
		assert.Contains(t, b.ids(), a.worker)
		timing := a.finish.NVExt.Timing
		require.NotNil(t, timing)
		assert.InDelta(t, timing.TTFT, timing.PrefillWait+timing.Prefill, 1e-6)
		assert.Greater(t, timing.Total, timing.TTFT)
		assert.NotNil(t, timing.KVHitRate, "under kv")

		// The next turn reuses the cache blocks of the first one.
		u := b.document(fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q},{"role":"assistant","content":%q},`+
			`{"role":"user","content":"Go on."}],"max_completion_tokens":5,"nvext":{"extra_fields":["worker_id","timing"]}}`,
			sim.H200().Model, prompt, a.text))
		assert.Equal(t, "chat.completion", u.Object)
		assert.NotEmpty(t, u.Choices[0].Message.Content)
		assert.Equal(t, "assistant", u.Choices[0].Message.Role)
		assert.Equal(t, "length", *u.Choices[0].FinishReason)
		assert.Equal(t, 5, u.Usage.Completion)
		assert.Greater(t, u.Usage.Details.Cached, output/2)
		assert.Equal(t, a.worker, u.NVExt.Worker.Decode, "the KV router chooses the same worker again")
		assert.NotNil(t, u.NVExt.Timing)
	})
}

// ids returns the instances that /health lists.
func (b *booth) ids() (ids []uint64) {
	b.t.Helper()
	var h health
	b.get("/health", &h)
	for _, i := range h.Instances {
		ids = append(ids, uint64(i.InstanceID))
	}
	return ids
}

func TestStreamOmitsFieldsNotRequested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, nil)
		_, text := b.call(http.MethodPost, "/v1/chat/completions",
			`{"model":"meta-llama/Llama-3.1-70B-Instruct","messages":[`+
				`{"role":"system","content":[{"type":"text","text":"Be brief."},{"type":"text","text":"Please."}]},`+
				`{"role":"user","content":"x"}],"stream":true,"max_tokens":3,"stop":["never"],"seed":4}`)
		assert.Contains(t, text, "data: [DONE]\n\n")
		for _, unasked := range []string{"nvext", "usage", "token_ids"} {
			assert.NotContains(t, text, unasked)
		}
	})
}

// TestTooLongRequestsAreRefused checks the cluster's own limits. Requests that Dynamo refuses are in package
// httpdtest.
func TestTooLongRequestsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, func(o *Options) { o.Cluster.Profile.KV.Blocks = 64 })
		for _, row := range []struct {
			body    string
			status  int
			message string
		}{
			{ask(strings.Repeat("word ", 2100), 5, ""), 400, "maximum context length is 2048 tokens"},
			{ask(strings.Repeat(" ", maxChatBody), 5, ""), 413, "4194304"},
		} {
			status, text := b.call(http.MethodPost, "/v1/chat/completions", row.body)
			assert.Equal(t, row.status, status, text)
			assert.Contains(t, text, row.message)
		}
		assert.Equal(t, 0, b.state().Inflight)
	})
}

// TestRequirementsOnAnswer checks that a stream and a single document fulfill the same requirements of a request.
func TestRequirementsOnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, nil)
		const question = "Explain how a prefix cache works, please."
		// both requests a stream and a document with one seed, and returns their common result.
		both := func(limit int, more, inNVExt string) (text, reason string, tokens int) {
			t.Helper()
			body := strings.Replace(ask(question, limit, inNVExt), `"temperature":0.5`, `"temperature":0.5,"seed":7`+more, 1)
			a, u := b.complete(body), b.document(inOne(body))
			require.Equal(t, a.text, u.Choices[0].Message.Content)
			require.Equal(t, a.reason, *u.Choices[0].FinishReason)
			require.Equal(t, a.last.Usage.Completion, u.Usage.Completion)
			return a.text, a.reason, u.Usage.Completion
		}
		for _, row := range []struct {
			limit         int
			more, inNVExt string
			reason        string
			least, most   int // tokens
		}{
			{123, `,"ignore_eos":true`, "", "length", 123, 123},
			{123, "", `,"ignore_eos":true`, "length", 123, 123},
			{123, `,"ignore_eos":false`, `,"ignore_eos":true`, "stop", 1, 123}, // the field beside nvext takes precedence
			{2000, `,"min_tokens":1500`, "", "stop", 1500, 2000},
			{2000, "", `,"min_tokens":1500`, "stop", 1500, 2000},
		} {
			_, reason, tokens := both(row.limit, row.more, row.inNVExt)
			assert.Equal(t, row.reason, reason, row)
			assert.True(t, row.least <= tokens && tokens <= row.most, "%+v: %d tokens", row, tokens)
		}
		whole, _, _ := both(200, "", "")
		for _, stop := range []string{`" a"`, `["not in the answer", " a"]`} {
			text, reason, _ := both(200, `,"stop":`+stop, "")
			before, _, _ := strings.Cut(whole, " a")
			assert.Equal(t, before, text)
			assert.Equal(t, "stop", reason)
		}
		text, _, tokens := both(200, `,"stop":"`+whole[:1]+`"`, "")
		assert.Empty(t, text)
		assert.Equal(t, 1, tokens)
	})
}

func TestHealthHasMembersOfDynamo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, nil)
		dynamos, err := os.ReadFile("testdata/health.json")
		require.NoError(t, err)
		_, ours := b.call(http.MethodGet, "/health", "")
		assert.Equal(t, httpdtest.Shape(dynamos), httpdtest.Shape([]byte(ours)))
		var h health
		require.NoError(t, json.Unmarshal([]byte(ours), &h))
		assert.Equal(t, "healthy", h.Status)
		require.Len(t, h.Instances, 3)
		assert.Equal(t, "generate", h.Instances[0].Endpoint)
	})
}

func TestDisconnectedClientCancelsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, func(o *Options) { o.Speed = 1 })
		for _, body := range []string{ask("x", 900, ""), inOne(ask("x", 900, ""))} {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/v1/chat/completions", strings.NewReader(body))
			require.NoError(t, err)
			req.Header.Set("Content-Type", "application/json")
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				if res, err := b.client.Do(req); err == nil {
					_, _ = readEvents(res.Body)
					res.Body.Close()
				}
			}()
			b.becomes("the request is in progress", func(s state) bool { return s.Inflight == 1 })
			<-gone
			b.idle("the request is canceled")
		}
		assert.Contains(t, b.counts(2), `error_type="cancelled"`)
	})
}

// TestSlowClientDelaysNoOther checks that a client that does not read delays neither other clients nor Close.
func TestSlowClientDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, func(o *Options) { o.Speed = 1000 })
		slow, err := b.dial(t.Context(), "", "")
		require.NoError(t, err)
		defer slow.Close()
		body := ask("slow", 1000, "")
		const head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
		_, err = fmt.Fprintf(slow, head+"Content-Length: %d\r\n\r\n%s", len(body), body)
		require.NoError(t, err)
		for range 3 {
			b.complete(ask("quick", 300, ""))
		}
		b.idle("the slow client's answer is complete")
		_, text := b.call(http.MethodGet, "/metrics", "")
		require.InDelta(t, 1, metric(text, "dynamo_frontend_inflight_requests"), 0, "the client has not read it")
		b.Close()
	})
}

// TestMetricsMatchConcurrentStreams compares the metrics with the results of many concurrent clients.
func TestMetricsMatchConcurrentStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, nil)
		const clients = 60
		var group sync.WaitGroup
		answers := make([]answered, clients)
		for i := range clients {
			group.Go(func() {
				prompt := strings.Repeat(fmt.Sprintf("starter %d ", i%10), 100)
				answers[i] = b.complete(ask(prompt, 100+i, ""))
			})
		}
		group.Wait()
		output, prompt, cached := 0, 0, 0
		for i, a := range answers {
			require.Equal(t, sim.Count(a.text), a.last.Usage.Completion)
			require.LessOrEqual(t, a.last.Usage.Completion, 100+i)
			output += a.last.Usage.Completion
			prompt += a.last.Usage.Prompt
			cached += a.last.Usage.Details.Cached
		}
		assert.Positive(t, cached)
		text := b.counts(clients)
		for name, want := range map[string]int{
			"dynamo_frontend_output_tokens_total":       output,
			"dynamo_frontend_input_sequence_tokens_sum": prompt,
			"dynamo_frontend_cached_tokens_sum":         cached,
			"dynamo_frontend_inflight_requests":         0,
		} {
			assert.InDelta(t, want, metric(text, name), .5, name)
		}
		arrived := 0.0
		for i := range b.Workers() {
			arrived += metric(page(b.Worker(i)), "dynamo_component_requests_total")
		}
		assert.InDelta(t, clients, arrived, .5)
		assert.Contains(t, page(b.GPUs(0)), "DCGM_FI_DEV_GPU_UTIL")
	})
}

func TestSGLangUsageHasNoCachedTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, func(o *Options) { o.Engine = "sglang" })
		question := ask(strings.Repeat("text ", 100), 3, "")
		for _, question := range []string{question, inOne(question)} {
			_, text := b.call(http.MethodPost, "/v1/chat/completions", question)
			assert.Contains(t, text, `"completion_tokens":`)
			assert.NotContains(t, text, "cached_tokens")
		}
		assert.Contains(t, page(b.Worker(0)), "sglang:token_usage")
	})
}

// TestDecisionsListNewestFirst checks that decisions carry the X-Request-Id of their requests.
func TestDecisionsListNewestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, nil)
		for i := range 3 {
			body, id := ask(strings.Repeat("text ", 100), 1, ""), fmt.Sprintf("c-%d", i)
			res := b.chat(body, "X-Request-Id", id)
			complete(t, res.Body)
			assert.Equal(t, id, res.Header.Get("X-Request-Id"))
		}
		var got struct{ Decisions []api.RoutingDecision }
		b.get("/sim/v1/decisions?limit=2", &got)
		require.Len(t, got.Decisions, 2)
		assert.Equal(t, "c-1", got.Decisions[1].RequestID)
		d := got.Decisions[0]
		assert.Equal(t, "c-2", d.RequestID)
		assert.Equal(t, 32, d.BlockTokens)
		assert.Positive(t, d.Seconds)
		require.Len(t, d.Candidates, 3)
		chosen := d.Candidates[d.Chosen]
		assert.Equal(t, 3, chosen.OverlapBlocks, "blocks of the earlier request")
		isChosen := func(w workerState) bool { return w.ID == chosen.Worker && w.Name == chosen.Name }
		assert.True(t, slices.ContainsFunc(b.state().WorkerStates, isChosen))
		status, text := b.call(http.MethodGet, "/sim/v1/decisions?limit=0", "")
		assert.Equal(t, http.StatusBadRequest, status)
		assert.Contains(t, text, "limit")
	})
}
