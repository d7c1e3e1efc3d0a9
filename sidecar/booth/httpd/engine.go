package httpd

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"kvbooth/sidecar/booth/httpd/events"
	"kvbooth/sidecar/sim"
)

// WorkerHeader is a response header of every worker's port. Its value is the worker's host and port.
const WorkerHeader = "X-Worker"

// engine is a worker as the engine that routers other than Dynamo's stand before. Unlike Dynamo, it ignores fields that
// it does not know.
type engine struct {
	server *Server
	index  int
	kind   engineKind
	faults *injector
	events *events.Publisher // nil without events
}

// engineKind is what engines of one kind have in common.
type engineKind struct {
	ownedBy string // in the list of models
	version string
	form    errorForm
}

var engineKinds = map[string]engineKind{
	"vllm":   {ownedBy: "vllm", version: "0.32.0+simulated", form: vllmError},
	"sglang": {ownedBy: "sglang", version: "simulated", form: sglangError},
	"trtllm": {ownedBy: "nvidia", version: "simulated"},
}

// engineError is the document of an error of vLLM and SGLang.
type engineError struct {
	Object  string  `json:"object,omitempty"`
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    int     `json:"code"`
}

func newEngineError(p *problem) engineError {
	kind := strings.TrimSuffix(strings.ReplaceAll(p.Type, " ", ""), "Error") + "Error"
	return engineError{Message: p.Message, Type: kind, Code: p.Code}
}

func vllmError(p *problem) any { return map[string]engineError{"error": newEngineError(p)} }

func sglangError(p *problem) any {
	e := newEngineError(p)
	e.Object = "error"
	return e
}

// seedOfWorkers separates the faults of the workers from those of the frontend.
const seedOfWorkers = 1000

func newEngine(s *Server, index int) *engine {
	o := &s.options
	e := &engine{
		server: s, index: index, kind: engineKinds[o.Engine],
		faults: newInjector(sim.Mix(o.Cluster.Seed+seedOfWorkers+uint64(index)), o.Faults),
	}
	if o.Events != nil {
		e.events = events.NewPublisher(*o.Events, o.Cluster.Profile.KV.BlockTokens)
	}
	return e
}

// cacheEvents passes the changes of the workers' caches to their publishers.
type cacheEvents struct{ server *Server }

// Stored implements [sim.CacheObserver].
func (c cacheEvents) Stored(worker int, r *sim.Request, first, end int) {
	c.server.workers[worker].events.Stored(r, first, end)
}

// Removed implements [sim.CacheObserver].
func (c cacheEvents) Removed(worker int, blocks []sim.BlockHash) {
	c.server.workers[worker].events.Removed(blocks)
}

// Cleared implements [sim.CacheObserver].
func (c cacheEvents) Cleared(worker int) { c.server.workers[worker].events.Cleared() }

// Events returns the publisher of one worker's events, numbered from 0; nil without [Options].Events.
func (s *Server) Events(i int) *events.Publisher { return s.workers[i].events }

// Worker returns the handler of the port of one worker, numbered from 0: its metrics and its engine.
func (s *Server) Worker(i int) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.Worker(i))
	for _, call := range s.workers[i].calls() {
		if call.serves(s.options.Engine) {
			mux.Handle(call.path, s.up(s.workers[i].abortLost(call.methods)))
		}
	}
	return s.running(named(mux))
}

// named sets the header that names the worker.
func named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if address, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
			w.Header().Set(WorkerHeader, address.String())
		}
		next.ServeHTTP(w, r)
	})
}

// engineCall is a path of a worker's port.
type engineCall struct {
	endpoint
	engines []string // that have it; nil for all
}

func (c engineCall) serves(engine string) bool {
	return c.engines == nil || slices.Contains(c.engines, engine)
}

// calls returns the paths of a worker's port besides its metrics. docs/simulated-api.md lists them.
func (e *engine) calls() []engineCall {
	get := func(path, description string, document func() any, engines ...string) engineCall {
		h := func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, document()) }
		return engineCall{endpoint{path, methods{http.MethodGet: h}, nil, description}, engines}
	}
	post := func(path, description string, h http.HandlerFunc, engines ...string) engineCall {
		return engineCall{endpoint{path, methods{http.MethodPost: h}, nil, description}, engines}
	}
	const vllm, sglang = "vllm", "sglang"
	flush := post("/flush_cache", "Empties the cache; 400 while it is in use.", e.flush, sglang)
	flush.methods[http.MethodGet] = e.flush
	return []engineCall{
		post("/v1/chat/completions", "Chat completion; unknown fields are ignored.", e.chat),
		post("/v1/completions", "Completion of a text or of token ids.", e.complete),
		get("/v1/models", "Lists the model.", e.models),
		get("/health", "200 while the worker is there.", func() any { return struct{}{} }),
		post("/tokenize", "The token ids of `messages` or `prompt`.", e.tokens(e.tokenized)),
		post("/v1/chat/completions/render", "The token ids of a chat request.",
			e.tokens(e.rendered), vllm),
		get("/version", "The version. SMG recognizes vLLM by it.", e.version, vllm),
		get("/load", "Requests in batch and queue.", e.serverLoad, vllm),
		get("/get_load", "Requests and tokens of batch and queue.", e.rankLoads, sglang),
		get("/get_load", "As `/load`; vllm-router reads it, vLLM lacks it.", e.load, vllm),
		get("/v1/loads", "Requests, tokens, use of the cache.", e.loads),
		get("/loads", "As `/v1/loads`. SMG requests it.", e.loads),
		get("/server_info", "Model and limits, as SGLang.", e.serverInfo),
		get("/get_server_info", "As `/server_info`.", e.serverInfo),
		get("/model_info", "The model, as SGLang.", e.modelInfo),
		get("/get_model_info", "As `/model_info`.", e.modelInfo),
		get("/kv_event_sources", "Where events are published, with `--workers-only`.", e.sources, vllm),
		post("/reset_prefix_cache", "Empties the cache, unless it is in use.", e.reset, vllm),
		flush,
	}
}

// abortLost aborts the connections of a lost worker, whose process does not run.
func (e *engine) abortLost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !e.stats().Ready {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

func (e *engine) stats() (s sim.WorkerStats) {
	e.server.clock.do(func(c *sim.Cluster) { s = c.Workers()[e.index] })
	return s
}

// problem returns a problem in the engine's form.
func (e *engine) problem(p *problem) *problem {
	own := *p
	own.form = e.kind.form
	return &own
}

// fails answers a request that cannot be read.
func (e *engine) fails(w http.ResponseWriter, err error) { e.problem(e.server.explain(err)).write(w) }

func (e *engine) chat(w http.ResponseWriter, r *http.Request) {
	q, err := readChat(w, r, false)
	e.serve(w, r, q, err)
}

func (e *engine) complete(w http.ResponseWriter, r *http.Request) {
	q, err := readCompletion(w, r)
	e.serve(w, r, q, err)
}

// serve answers a request on this worker.
func (e *engine) serve(w http.ResponseWriter, r *http.Request, q *chatRequest, err error) {
	if err != nil {
		e.fails(w, err)
		return
	}
	q.NVExt = &nvext{Instance: new(instanceID(e.stats().ID))}
	e.server.complete(w, r, q, e)
}

// lost reports whether a request failed because its worker was lost, so that its connection is aborted.
func lost(err error) bool {
	return errors.Is(err, sim.ErrWorkerLost) || errors.Is(err, sim.ErrNoInstance)
}

func (e *engine) models() any {
	served := e.server.served()
	return struct {
		Object string           `json:"object"`
		Data   []map[string]any `json:"data"`
	}{"list", []map[string]any{{
		"id": served.ID, "object": served.Object, "created": served.Created, "owned_by": e.kind.ownedBy,
		"root": served.ID, "parent": nil, "max_model_len": served.ContextWindow,
	}}}
}

// tokens returns the handler that answers with the token ids of a prompt in a document.
func (e *engine) tokens(document func(ids []uint32) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ids, err := e.server.readTokens(w, r)
		if err != nil {
			e.fails(w, err)
			return
		}
		writeJSON(w, http.StatusOK, document(ids))
	}
}

func (e *engine) tokenized(ids []uint32) any {
	return map[string]any{
		"count": len(ids), "tokens": ids, "max_model_len": e.server.served().ContextWindow, "token_strs": nil,
	}
}

func (e *engine) rendered(ids []uint32) any {
	return map[string]any{
		"request_id": "chatcmpl-" + uuid.NewString(), "model": e.server.served().ID, "token_ids": ids,
	}
}

func (e *engine) version() any { return map[string]string{"version": e.kind.version} }

func (e *engine) serverLoad() any {
	s := e.stats()
	return map[string]int{"server_load": s.Running + s.Waiting}
}

func (e *engine) load() any {
	s := e.stats()
	return map[string]int{"load": s.Running + s.Waiting}
}

func (e *engine) rankLoads() any {
	s := e.stats()
	return []map[string]int{{
		"dp_rank": 0, "num_reqs": s.Running + s.Waiting, "num_waiting_reqs": s.Waiting,
		"num_tokens": e.used(s) + s.ActivePrefillTokens, "num_pending_tokens": s.ActivePrefillTokens,
	}}
}

// used returns the size of the blocks in use, in tokens.
func (e *engine) used(s sim.WorkerStats) int {
	return s.ActiveBlocks * e.server.options.Cluster.Profile.KV.BlockTokens
}

func (e *engine) loads() any {
	s, p := e.stats(), &e.server.options.Cluster.Profile
	hitRate := 0.
	if s.PromptTokens > 0 {
		hitRate = float64(s.CachedTokens) / float64(s.PromptTokens)
	}
	return map[string]any{
		"timestamp": time.Now().UTC().Format(time.RFC3339Nano), "version": e.kind.version, "dp_rank_count": 1,
		"loads": []map[string]any{{
			"dp_rank": 0, "num_running_reqs": s.Running, "num_waiting_reqs": s.Waiting,
			"num_total_reqs": s.Running + s.Waiting, "num_waiting_uncached_tokens": s.ActivePrefillTokens,
			"num_used_tokens": e.used(s), "num_total_tokens": e.used(s) + s.ActivePrefillTokens,
			"max_total_num_tokens": p.KV.Tokens(), "token_usage": s.CacheUse(), "cache_hit_rate": hitRate,
			"max_running_requests": p.MaxSequences,
		}},
	}
}

func (e *engine) serverInfo() any {
	p := &e.server.options.Cluster.Profile
	return map[string]any{
		"served_model_name": p.Model, "model_path": p.Model, "tokenizer_path": p.Model, "version": e.kind.version,
		"tp_size": p.TensorParallel, "dp_size": 1, "pp_size": 1, "context_length": p.KV.Tokens(),
		"page_size": p.KV.BlockTokens, "max_total_num_tokens": p.KV.Tokens(), "max_running_requests": p.MaxSequences,
		"disaggregation_mode": "null",
	}
}

func (e *engine) modelInfo() any {
	p := &e.server.options.Cluster.Profile
	return map[string]any{"model_path": p.Model, "tokenizer_path": p.Model, "is_generation": true}
}

func (e *engine) sources() any {
	if e.events == nil {
		return []events.Source{}
	}
	return []events.Source{e.events.Source()}
}

// clear empties the cache. It returns false while requests use it.
func (e *engine) clear() (done bool) {
	e.server.clock.do(func(c *sim.Cluster) { done = c.ClearCache(e.index) })
	if !done {
		e.server.log.Warn("the cache is in use and was not emptied", "worker", workerName(e.index))
	}
	return done
}

func (e *engine) reset(w http.ResponseWriter, _ *http.Request) {
	e.clear()
	w.WriteHeader(http.StatusOK)
}

func (e *engine) flush(w http.ResponseWriter, _ *http.Request) {
	if !e.clear() {
		e.fails(w, newProblem(http.StatusBadRequest, kindValidation, "the cache is in use and was not emptied"))
		return
	}
	writeJSON(w, http.StatusOK, map[string]bool{"success": true})
}

// Locate says where a worker listens, numbered from 0, before it publishes events: host and port of its API, of its
// events, and of their replay. It has no effect without events.
func (s *Server) Locate(i int, api, published, replay string) {
	if s.options.Events == nil {
		return
	}
	source := events.Source{Endpoint: "tcp://" + published, Replay: "tcp://" + replay}
	if s.options.Events.PodTopic {
		source.Topic = "kv@" + api + "@" + s.options.Cluster.Profile.Model
	}
	s.workers[i].events.Locate(source)
}
