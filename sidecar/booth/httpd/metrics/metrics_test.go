package metrics

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

func TestCountsAtEachStageOfRequest(t *testing.T) {
	b := start(t, "vllm")
	counted := func(intent string, want ...float64) {
		t.Helper()
		f := scrape(t, b.metrics.Frontend())
		stage := func(name string) float64 {
			return f.value(t, "dynamo_frontend_stage_requests", "stage", name)
		}
		assert.Equal(t, want, []float64{
			max(0, f.value(t, "dynamo_frontend_requests_total", "status", "success", "error_type", "")),
			f.value(t, "dynamo_frontend_inflight_requests"), f.value(t, "dynamo_frontend_active_requests"),
			f.value(t, "dynamo_frontend_queued_requests"), stage("preprocess"), stage("route"), stage("dispatch"),
			f.value(t, "dynamo_request_plane_inflight_requests"), f.count(t, "dynamo_frontend_input_sequence_tokens"),
			f.count(t, "dynamo_component_router_kv_hit_rate"), f.count(t, "dynamo_frontend_cached_tokens"),
		}, intent)
	}
	counted("before any request", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	r := &turn{Request: b.metrics.Begin(true)}
	counted("after Begin", 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0)
	r.Tokenized()
	counted("tokenized", 0, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0)
	b.do(func(c *sim.Cluster) {
		_, err := c.Submit(sim.NewRequest("a", make([]uint32, 3200), make([]uint32, 50), 50, 32), r)
		require.NoError(t, err)
	})
	counted("routed", 0, 1, 1, 1, 0, 0, 1, 1, 0, 1, 0)
	b.advance(700 * time.Millisecond)
	counted("streaming", 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0)
	b.drain()
	counted("ended", 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1)
	r.Ended("internal")
	counted("a second end has no effect", 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1)

	f, w := scrape(t, b.metrics.Frontend()), families(nil)
	for i := range 3 {
		if page := scrape(t, b.metrics.Worker(i)); page.value(t, "dynamo_component_requests_total") == 1 {
			w = page
		}
	}
	near := func(want time.Duration, got float64, intent string) {
		t.Helper()
		assert.InDelta(t, want.Seconds(), got, 1e-6, intent)
	}
	ttft, duration := r.report.FirstToken-r.report.Submitted, r.report.Ended-r.report.Submitted
	near(ttft, f.sum(t, "dynamo_frontend_time_to_first_token_seconds"), "time to first token")
	near(r.report.Ended-r.report.FirstToken, f.sum(t, "dynamo_frontend_inter_token_latency_seconds"),
		"the gaps add up to the time between the first and the last token")
	gaps := f.count(t, "dynamo_frontend_inter_token_latency_seconds")
	assert.EqualValues(t, 49, gaps, "one for each token except the first")
	near(duration, f.sum(t, "dynamo_frontend_request_duration_seconds"), "duration")
	const out = 8 * time.Millisecond
	near(r.report.FirstToken-out-r.report.Arrived, w.sum(t, "vllm:time_to_first_token_seconds"), "at the engine")
	near(r.report.Ended-out-r.report.Arrived, w.sum(t, "vllm:e2e_request_latency_seconds"), "at the engine")
	near(r.report.Ended-out-r.report.Arrived, w.sum(t, "dynamo_component_request_duration_seconds"), "at the worker")
	assert.EqualValues(t, len(r.chunks)-1, w.count(t, "vllm:inter_token_latency_seconds"), "vLLM counts iterations")
}

func TestHitRateMetrics(t *testing.T) {
	b := start(t, "vllm")
	b.send(3200, 10)
	b.drain()
	r := b.send(6400, 10)
	b.drain()
	f := scrape(t, b.metrics.Frontend())
	assert.InDelta(t, .5, f.sum(t, "dynamo_component_router_kv_hit_rate"), 1e-9)
	assert.EqualValues(t, 3200, f.value(t, "dynamo_component_router_kv_best_eligible_cached_prefix_tokens_total"))
	assert.EqualValues(t, 3200, f.value(t, "dynamo_component_router_kv_selected_cached_prefix_tokens_total"))
	assert.EqualValues(t, r.report.CachedTokens, f.value(t, "dynamo_component_router_kv_worker_reused_tokens_total"))
	assert.EqualValues(t, r.report.CachedTokens, f.sum(t, "dynamo_frontend_cached_tokens"))
	assert.Positive(t, f.value(t, "dynamo_component_kv_cache_events_applied", "event_type", "stored", "status", "ok"))
}

func TestFailedRequestsAreCountedOnce(t *testing.T) {
	b := start(t, "trtllm")
	waiting, streaming := b.send(3200, 50), b.send(3200, 50)
	b.do(func(c *sim.Cluster) { c.Cancel(waiting.job) })
	b.advance(time.Second)
	streaming.Ended("internal") // the server aborts the stream before it cancels the job
	b.do(func(c *sim.Cluster) { c.Cancel(streaming.job) })
	b.metrics.Begin(false).Ended("validation")

	f := scrape(t, b.metrics.Frontend())
	ended := func(class, kind string) float64 {
		return f.value(t, "dynamo_frontend_requests_total", "status", "error", "error_type", class, "request_type", kind)
	}
	assert.Equal(t, []float64{1, 1, 1}, []float64{
		ended("cancelled", "stream"), ended("internal", "stream"), ended("validation", "unary"),
	})
	assert.EqualValues(t, 3, f.count(t, "dynamo_frontend_request_duration_seconds"))
	assert.EqualValues(t, 1, f.value(t, "dynamo_frontend_disconnected_clients"))
	assert.EqualValues(t, 1, f.count(t, "dynamo_frontend_output_sequence_tokens"), "only the request with output")
	assert.Zero(t, f.count(t, "dynamo_frontend_cached_tokens"), "failed requests have no usage")
	for _, name := range []string{"inflight_requests", "active_requests", "queued_requests"} {
		assert.Zero(t, f.value(t, "dynamo_frontend_"+name), name)
	}
	for _, stage := range []string{"preprocess", "route", "dispatch"} {
		assert.Zero(t, f.value(t, "dynamo_frontend_stage_requests", "stage", stage), stage)
	}
	canceled := 0.
	for i := range 3 {
		canceled += scrape(t, b.metrics.Worker(i)).value(t, "dynamo_component_cancellation_total")
	}
	assert.EqualValues(t, 1, canceled, "the other request had not arrived at a worker")
}

func TestEngineMetrics(t *testing.T) {
	run := func(engine string, kind api.Speculation) (families, []*turn) {
		b := start(t, engine, func(o *sim.Options) { o.Speculation, o.Profile.Workers = kind, 1 })
		var turns []*turn
		for range 20 {
			turns = append(turns, b.send(3200, 100))
			b.advance(10 * time.Millisecond)
		}
		b.drain()
		return scrape(t, b.metrics.Worker(0)), turns
	}
	specs := map[string][]string{
		"trtllm": {
			"trtllm_spec_decode_num_draft_tokens_total", "trtllm_spec_decode_num_accepted_tokens_total",
			"trtllm_spec_decode_acceptance_length",
		},
		"vllm": {
			"vllm:spec_decode_num_drafts_total", "vllm:spec_decode_num_draft_tokens_total",
			"vllm:spec_decode_num_accepted_tokens_total",
		},
		"sglang": {"sglang:spec_accept_length", "sglang:spec_accept_rate"},
	}
	for engine, names := range specs {
		on, turns := run(engine, api.SpeculationEagle3)
		off, _ := run(engine, api.SpeculationOff)
		for _, name := range names {
			assert.Positive(t, on.value(t, name), name)
			assert.NotContains(t, off, name)
		}
		queueTime, runs := "request_queue_time_seconds", "num_requests_running"
		prefix := map[string]string{"trtllm": "trtllm_", "vllm": "vllm:", "sglang": "sglang:"}[engine]
		if engine == "sglang" {
			queueTime, runs = "queue_time_seconds", "num_running_reqs"
		}
		var queued time.Duration
		for _, r := range turns {
			queued += r.report.Started - r.report.Arrived
		}
		require.Positive(t, queued)
		assert.EqualValues(t, len(turns), on.count(t, prefix+queueTime))
		assert.InDelta(t, queued.Seconds(), on.sum(t, prefix+queueTime), 1e-6)
		assert.Zero(t, on.value(t, prefix+runs))
	}

	f, turns := run("trtllm", api.SpeculationEagle3)
	rate := f.value(t, "trtllm_spec_decode_num_accepted_tokens_total") /
		f.value(t, "trtllm_spec_decode_num_draft_tokens_total")
	assert.InDelta(t, .702, rate, .03, "acceptance rate of the profile")
	assert.InDelta(t, 1+3*rate, f.value(t, "trtllm_spec_decode_acceptance_length"), 1e-9)
	success := f.value(t, "trtllm_request_success_total", "finished_reason", "stop", "engine_type", "trtllm")
	assert.EqualValues(t, 20, success)
	cached, perToken := 0, 0.
	for _, r := range turns {
		cached += r.report.CachedTokens
		perToken += (r.report.Ended - r.report.FirstToken).Seconds() / 99
	}
	assert.InDelta(t, float64(cached)/(20*3200), f.value(t, "trtllm_kv_cache_hit_rate"), 1e-9)
	assert.InDelta(t, perToken, f.sum(t, "trtllm_time_per_output_token_seconds"), 1e-6)
	f, _ = run("trtllm", api.SpeculationOff)
	assert.EqualValues(t, 1, f.value(t, "trtllm_avg_decoded_tokens_per_iter"))
	f, _ = run("vllm", api.SpeculationOff)
	assert.EqualValues(t, 20*3200, f.value(t, "vllm:prefix_cache_queries_total"))
	assert.EqualValues(t, cached, f.value(t, "vllm:prefix_cache_hits_total"))

	f, turns = run("sglang", api.SpeculationEagle3)
	assert.InDelta(t, .702, f.value(t, "sglang:spec_accept_rate"), .03, "acceptance rate of the profile")
	assert.InDelta(t, 1+3*f.value(t, "sglang:spec_accept_rate"), f.value(t, "sglang:spec_accept_length"), 1e-9)
	assert.EqualValues(t, 20*3200, f.value(t, "sglang:prompt_tokens_total"))
	assert.EqualValues(t, cached, f.value(t, "sglang:cached_tokens_total", "cache_source", "device"))
	assert.EqualValues(t, 20, f.value(t, "sglang:num_requests_total"))
	gaps := f.count(t, "sglang:inter_token_latency_seconds")
	assert.EqualValues(t, 20*100-20, gaps, "one for each token except a turn's first")
	last := turns[len(turns)-1].report
	hitRate := float64(last.CachedTokens) / float64(last.PromptTokens)
	assert.InDelta(t, hitRate, f.value(t, "sglang:cache_hit_rate"), 1e-9, "hit rate of the latest prefill")
}

// TestSGLangReportsNoCachedTokens checks that the frontend counts no cached tokens, while the router predicts them and
// the engine itself counts them.
func TestSGLangReportsNoCachedTokens(t *testing.T) {
	b := loaded(t, "sglang", api.ModeKV)
	b.drain()
	f := scrape(t, b.metrics.Frontend())
	assert.Zero(t, f.count(t, "dynamo_frontend_cached_tokens"))
	assert.Positive(t, f.count(t, "dynamo_component_router_kv_hit_rate"))
	cached := scrape(t, b.metrics.Worker(0)).value(t, "sglang:cached_tokens_total", "cache_source", "device")
	assert.Positive(t, cached)
}

// TestRestartedBeginsAtZero checks that pages are unavailable during a change of mode, that all counters begin at zero
// afterwards, and that requests of the old processes do not count in the new ones.
func TestRestartedBeginsAtZero(t *testing.T) {
	b := loaded(t, "vllm", api.ModeKV)
	before := scrape(t, b.metrics.Frontend())
	old := b.send(3200, 50)
	slow := b.metrics.Begin(true)
	b.do(func(c *sim.Cluster) { require.NoError(t, c.Switch(api.ModeRoundRobin, api.SpeculationOff)) })
	b.metrics.Restarted()
	require.ErrorIs(t, old.report.Err, sim.ErrRestarting)
	for _, h := range []http.Handler{b.metrics.Frontend(), b.metrics.Worker(0), b.metrics.Worker(2)} {
		status, body := get(h)
		assert.Equal(t, http.StatusServiceUnavailable, status)
		assert.Equal(t, "The cluster restarts.\n", body)
	}
	gpu := scrape(t, b.metrics.GPUs(0))
	assert.Zero(t, gpu.value(t, "DCGM_FI_DEV_GPU_UTIL"))
	b.advance(5 * time.Second)
	slow.Ended("unavailable")

	zero := func(f families) {
		t.Helper()
		for name, family := range f {
			for _, m := range family.GetMetric() {
				assert.Zero(t, m.GetCounter().GetValue(), name)
				assert.Zero(t, m.GetHistogram().GetSampleCount(), name)
			}
		}
	}
	f := scrape(t, b.metrics.Frontend())
	zero(f)
	for i := range 3 {
		w := scrape(t, b.metrics.Worker(i))
		zero(w)
		assert.Zero(t, w.value(t, "dynamo_component_uptime_seconds"))
	}
	assert.Zero(t, f.value(t, "dynamo_frontend_inflight_requests"))
	assert.NotContains(t, f, "dynamo_component_router_kv_worker_reused_tokens_total", "metric of the kv mode")
	assert.NotContains(t, f, "dynamo_frontend_worker_last_time_to_first_token_seconds", "no request yet")
	router := func(f families) string {
		return labels(f.find(t, "dynamo_component_router_requests_total"))["router_id"]
	}
	assert.NotEqual(t, router(before), router(f), "id of the new process")

	b.send(3200, 50)
	b.drain()
	f = scrape(t, b.metrics.Frontend())
	assert.EqualValues(t, 1, f.value(t, "dynamo_frontend_requests_total"))
	assert.NotNil(t, f.find(t, "dynamo_frontend_worker_last_time_to_first_token_seconds", "dp_rank", "none"))

	b.do(func(c *sim.Cluster) { require.NoError(t, c.Switch(api.ModeKV, api.SpeculationOff)) })
	b.metrics.Restarted()
	b.advance(5 * time.Second)
	f = scrape(t, b.metrics.Frontend())
	zero(f)
	assert.Contains(t, f, "dynamo_component_router_kv_worker_reused_tokens_total")
}

// TestWorkerRestartedKeepsOthers checks that the counters of the other workers and of the frontend continue.
func TestWorkerRestartedKeepsOthers(t *testing.T) {
	b := loaded(t, "trtllm", api.ModeKV)
	id := b.snapshot().Workers[1].ID
	other := scrape(t, b.metrics.Worker(0)).value(t, "dynamo_component_requests_total")
	events := func() float64 {
		return scrape(t, b.metrics.Frontend()).value(t, "dynamo_component_kv_cache_events_applied",
			"event_type", "stored", "status", "ok")
	}
	stored := events()
	require.Positive(t, stored)
	b.do(func(c *sim.Cluster) { require.NoError(t, c.LoseWorker(id, 3*time.Second)) })
	b.metrics.WorkerRestarted(1)
	b.metrics.WorkerRestarted(9) // no such worker

	status, body := get(b.metrics.Worker(1))
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Equal(t, "The worker was lost and is not back yet.\n", body)
	status, _ = get(b.metrics.Worker(3))
	assert.Equal(t, http.StatusNotFound, status)
	gpu := scrape(t, b.metrics.GPUs(1))
	assert.Zero(t, gpu.value(t, "DCGM_FI_DEV_GPU_UTIL"))
	assert.Zero(t, gpu.value(t, "DCGM_FI_DEV_FB_USED"))
	f := scrape(t, b.metrics.Frontend())
	lost := fmt.Sprint(uint64(id))
	assert.Nil(t, f.find(t, "dynamo_frontend_worker_active_decode_blocks", "worker_id", lost))
	assert.Len(t, f["dynamo_component_router_worker_registered"].GetMetric(), 2)

	b.advance(3 * time.Second)
	w := scrape(t, b.metrics.Worker(1))
	assert.Zero(t, w.value(t, "dynamo_component_requests_total"))
	assert.NotContains(t, w, "trtllm_kv_cache_hit_rate", "no prompt tokens yet")
	assert.Zero(t, w.count(t, "trtllm_e2e_request_latency_seconds"))
	assert.GreaterOrEqual(t, events(), stored, "the frontend's counters continue")
	assert.GreaterOrEqual(t, scrape(t, b.metrics.Worker(0)).value(t, "dynamo_component_requests_total"), other)
	f = scrape(t, b.metrics.Frontend())
	assert.Nil(t, f.find(t, "dynamo_frontend_worker_last_time_to_first_token_seconds", "worker_id", lost))
	assert.EqualValues(t, 1, f.value(t, "dynamo_frontend_model_ready"))
}

// TestConcurrentScrapes scrapes from several goroutines while the cluster works.
func TestConcurrentScrapes(t *testing.T) {
	b := start(t, "vllm")
	done := make(chan struct{})
	var scrapers sync.WaitGroup
	handlers := []http.Handler{
		b.metrics.Frontend(), b.metrics.Frontend(), b.metrics.Worker(0), b.metrics.GPUs(0), b.metrics.GPUs(0),
	}
	for _, h := range handlers {
		scrapers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					get(h)
				}
			}
		})
	}
	for i := range 60 {
		b.send(3200, 50)
		b.advance(50 * time.Millisecond)
		switch i {
		case 20:
			b.do(func(c *sim.Cluster) { assert.NoError(t, c.LoseWorker(c.Workers()[0].ID, 0)) })
			b.metrics.WorkerRestarted(0)
		case 40:
			b.do(func(c *sim.Cluster) { assert.NoError(t, c.Switch(api.ModeKV, api.SpeculationOff)) })
			b.metrics.Restarted()
		}
	}
	b.drain()
	b.advance(time.Minute)
	close(done)
	scrapers.Wait()
	f := scrape(t, b.metrics.Frontend())
	assert.Zero(t, f.value(t, "dynamo_frontend_inflight_requests"))
	assert.Zero(t, f.value(t, "dynamo_frontend_queued_requests"))
}
