package doctor_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/doctor"
	"kvbooth/sidecar/loadgen/cluster/kubernetes"
)

const (
	token   = "a-token-that-is-hard-to-guess"
	version = "1.2.3"
	model   = "meta-llama/Llama-3.1-70B-Instruct"
)

// page is a response.
type page struct {
	code int
	body string
	kind string // content type; "" means JSON
	to   string // Location
}

// world simulates a load generator, a Dynamo, a Prometheus and a Grafana. All are healthy unless a test changes them.
type world struct {
	options  doctor.Options // URLs that are empty are those of the world
	status   api.Status
	snapshot api.Snapshot
	open     bool // the load generator requires no token
	pages    map[string]page
	hits     []float64 // predicted hit rates of the requests; the last one repeats. Empty means round-robin
	refuse   bool      // requests with nvext are rejected
	metrics  bool      // the frontend has its counters
	age      map[string]float64
	missing  string // name of a metric without series
	clock    time.Duration
	requests atomic.Int32
	plain    bool // the target is no Dynamo, but a router with these response headers
	header   http.Header
	delays   bool // every other short request, as Nagle's algorithm does
	short    atomic.Int32
	queries  sync.Map // queries to Prometheus
}

func newWorld() *world {
	w := &world{
		options: doctor.Options{Token: token, Version: version},
		pages: map[string]page{
			"/grafana/api/health": {body: `{"database":"ok","version":"12.2.0"}`},
			"/grafana/login":      {body: `<html><base href="/grafana/" /></html>`, kind: "text/html"},
			"/grafana/api/plugins/kvbooth-inference-app/health": {
				body: `{"status":"OK","message":"The load generator is healthy."}`,
			},
			"/grafana/api/datasources/uid/kvbooth-prometheus/health": {
				body: `{"status":"OK","message":"Successfully queried the Prometheus API."}`,
			},
			"/v1/models": {body: `{"data":[{"id":"` + model + `"}]}`},
			"/health": {body: `{"instances":[{"endpoint":"generate","instance_id":1},` +
				`{"endpoint":"generate","instance_id":2},{"endpoint":"worker_kv_query","instance_id":2}]}`},
			"/api/v1/targets": {body: targets("up", "")},
		},
		hits: []float64{0, 0, .97}, metrics: true, age: map[string]float64{},
	}
	w.status = api.Status{
		Version: version, Store: api.StoreStatus{Path: "/data/kvbooth.db", OK: true},
		Client: api.ClientHealth{Verdict: api.VerdictFine},
		Config: map[string]string{"prometheus.namespace": "dynamo"},
		Lanes: []api.LaneStatus{{
			Name: api.DefaultLane, State: api.State{Mode: api.ModeKV, Phase: api.PhaseStopped},
			Target: api.Target{Model: model, Reachable: true, Deployment: api.Deployment{Workers: 2}},
		}},
	}
	w.snapshot = api.Snapshot{Lanes: []api.LaneSnapshot{{Name: api.DefaultLane, State: w.status.Lanes[0].State}}}
	return w
}

// targets returns Prometheus' list of targets, with the given health of the second worker.
func targets(health, reason string) string {
	return fmt.Sprintf(`{"data":{"activeTargets":[
{"labels":{"job":"loadgen","instance":"10.0.0.1:8088"},"health":"up","scrapeInterval":"2s"},
{"labels":{"job":"workers","instance":"10.0.0.2:9090","pod":"worker-0","namespace":"dynamo"},
"health":"up","scrapeInterval":"2s"},
{"labels":{"job":"workers","instance":"10.0.0.3:9090","pod":"worker-1","namespace":"dynamo"},
"health":%q,"scrapeInterval":"2s","lastError":%q,"scrapeUrl":"http://10.0.0.3:9090/metrics"}]}}`, health, reason)
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Date", time.Now().Add(w.clock).UTC().Format(http.TimeFormat))
	authorized := w.open || r.Header.Get("Authorization") == "Bearer "+token
	switch p, known := w.pages[r.URL.Path]; {
	case known:
		rw.Header().Set("Content-Type", p.kind)
		rw.Header().Set("Location", p.to)
		rw.WriteHeader(max(p.code, http.StatusOK))
		_, _ = rw.Write([]byte(p.body))
	case r.URL.Path == "/healthz", r.URL.Path == "/readyz":
	case r.URL.Path == "/api/v1/query":
		w.query(rw, r.URL.Query().Get("query"))
	case r.URL.Path == "/metrics":
		w.counters(rw)
	case r.URL.Path == "/v1/chat/completions":
		w.complete(rw, r)
	case !strings.HasPrefix(r.URL.Path, "/api/v1/"):
		http.NotFound(rw, r)
	case !authorized:
		problem(rw, http.StatusUnauthorized, "the token is wrong")
	case r.URL.Path == "/api/v1/status":
		writeJSON(rw, w.status)
	case r.URL.Path == "/api/v1/snapshot":
		writeJSON(rw, w.snapshot)
	default:
		problem(rw, http.StatusBadRequest, "the body is no JSON")
	}
}

func writeJSON(rw http.ResponseWriter, document any) {
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(document)
}

func problem(rw http.ResponseWriter, code int, detail string) {
	rw.Header().Set("Content-Type", "application/problem+json")
	rw.WriteHeader(code)
	_ = json.NewEncoder(rw).Encode(api.Problem{Status: code, Detail: detail})
}

// query responds with one sample per worker, or with one sample for series of other processes.
func (w *world) query(rw http.ResponseWriter, text string) {
	w.queries.Store(text, nil)
	if text == "time()" {
		seconds := float64(time.Now().Add(w.clock).UnixMilli()) / 1000
		fmt.Fprintf(rw, `{"data":{"resultType":"scalar","result":[0,"%.3f"]}}`, seconds)
		return
	}
	instances := []string{"10.0.0.1:8088"}
	if strings.Contains(text, "dynamo_component_") {
		instances = []string{"10.0.0.2:9090", "10.0.0.3:9090"}
	}
	var rows []string
	for _, i := range instances {
		if age := w.age[i]; age >= 0 && (w.missing == "" || !strings.Contains(text, w.missing)) {
			rows = append(rows, fmt.Sprintf(`{"metric":{"job":"workers","instance":%q},"value":[0,"%v"]}`, i, age))
		}
	}
	fmt.Fprintf(rw, `{"data":{"resultType":"vector","result":[%s]}}`, strings.Join(rows, ","))
}

func (w *world) counters(rw http.ResponseWriter) {
	if !w.metrics {
		http.NotFound(rw, nil)
		return
	}
	n := int(w.requests.Load())
	if len(w.hits) == 0 {
		n = 0
	}
	fmt.Fprintf(rw, "dynamo_component_router_kv_hit_rate_count{dynamo_component=\"router\"} %d\n", n)
}

func (w *world) complete(rw http.ResponseWriter, r *http.Request) {
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	_, extended := body["nvext"]
	if extended && w.refuse {
		http.Error(rw, `{"message":"unknown field nvext"}`, http.StatusBadRequest)
		return
	}
	if w.delays && strings.Contains(fmt.Sprint(body["messages"]), "Hello.") && w.short.Add(1)%2 == 1 {
		<-time.After(40 * time.Millisecond)
	}
	n := int(w.requests.Add(1)) - 1
	rw.Header().Set("Content-Type", "text/event-stream")
	maps.Copy(rw.Header(), w.header)
	fmt.Fprint(rw, `data: {"choices":[{"delta":{"content":"a"}}]}`+"\n\n")
	if !w.plain {
		fmt.Fprint(rw, `data: {"choices":[],"nvext":{"worker_id":{"decode_worker_id":1}},`+
			`"usage":{"prompt_tokens":40,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":32}}}`+"\n\n")
	}
	if extended && len(w.hits) > 0 && !w.plain {
		hit := w.hits[min(n, len(w.hits)-1)]
		fmt.Fprintf(rw, `data: {"choices":[],"nvext":{"timing":{"kv_hit_rate":%v}}}`+"\n\n", hit)
	}
	fmt.Fprint(rw, "data: [DONE]\n\n")
}

// examine examines a world.
func examine(t *testing.T, w *world) doctor.Report {
	t.Helper()
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	lane := &w.status.Lanes[0]
	lane.Target.URL, w.status.Config["prometheus.url"] = cmp.Or(lane.Target.URL, server.URL), server.URL
	o := w.options
	o.LoadgenURL, o.GrafanaURL = cmp.Or(o.LoadgenURL, server.URL), cmp.Or(o.GrafanaURL, server.URL+"/grafana")
	r, err := doctor.Examine(t.Context(), o)
	require.NoError(t, err)
	return r
}

// text returns a report with one line per finding.
func text(r doctor.Report) string {
	var b strings.Builder
	for _, s := range r.Sections {
		for _, f := range s.Findings {
			fmt.Fprintf(&b, "%s: %s: %s -> %s\n", s.Name, f.Severity, f.Found, f.Do)
		}
	}
	return b.String()
}

func TestHealthyBoothHasNoProblems(t *testing.T) {
	w := newWorld()
	r := examine(t, w)
	assert.Zero(t, r.Problems+r.Warnings, text(r))
	assert.Equal(t, 1, r.NotChecked, "only Kubernetes is not checked: %s", text(r))
	for _, line := range []string{
		"Load generator: ok: a token is set",
		"Load generator: ok: our token is accepted",
		"Load generator: ok: it responds, version 1.2.3",
		"Load generator: ok: its database",
		"Target: ok: 2 of 2 workers have registered",
		"Target: ok: the router knows the caches: it predicts a hit rate of 97.0 %",
		"Target: ok: the router is NVIDIA Dynamo; its metrics: dynamo_component_requests_total",
		"Target: ok: the worker of a turn is known by nvext.worker_id",
		"Target: ok: cached tokens come from usage: 32 of a repeated prompt",
		"Prometheus: ok: all 3 targets are up",
		"Prometheus: ok: the workers' series in namespace dynamo: present and fresh, from 2 endpoint(s)",
		"Prometheus: ok: its clock matches",
		"Grafana: ok: its version is 12.2.0",
		"Grafana: ok: its pages are served under /grafana/",
		"Grafana: ok: the app: The load generator is healthy.",
		"Grafana: ok: the data source",
	} {
		assert.Contains(t, text(r), line)
	}
	assert.EqualValues(t, 3, w.requests.Load(), "the client's own probe, and requests until a repeat was predicted")
}

// TestOneProblemAtATime breaks one part at a time. Its finding must name the problem and a remedy, and there must be
// no other problem.
func TestOneProblemAtATime(t *testing.T) {
	const (
		good    = "ok"
		warn    = "warning"
		bad     = "problem"
		skip    = "not checked"
		nowhere = "http://127.0.0.1:1"
		gone    = nowhere + " is unreachable"
		health  = "/grafana/api/health"
		app     = "/grafana/api/plugins/kvbooth-inference-app/health"
		source  = "/grafana/api/datasources/uid/kvbooth-prometheus/health"
	)
	serves := func(path string, p page) func(*world) { return func(w *world) { w.pages[path] = p } }
	type row struct {
		name, severity, found, do string
		change                    func(*world)
	}
	for section, rows := range map[string][]row{
		doctor.LoadGenerator: {
			{"absent", bad, gone + ": connection refused", "--loadgen-url", func(w *world) { w.options.LoadgenURL = nowhere }},
			{
				"another server", bad, "is not the load generator, or is unhealthy: it returned 404", "without /api/v1",
				serves("/healthz", page{code: 404}),
			},
			{"wrong token", bad, "it rejects our token: the token is wrong", "LOADGEN_TOKEN", func(w *world) {
				w.options.Token = "another-token-of-some-length"
			}},
			{"none", bad, "it requires a token, and none was given", "KVBOOTH_TOKEN", func(w *world) { w.options.Token = "" }},
			{"no token set", good, "no token is set", "", func(w *world) { w.open = true }},
			{"another version", warn, "version 1.2.2; this program is version 1.2.3", "use the booth program", func(w *world) {
				w.status.Version = "1.2.2"
			}},
			{"not ready", bad, "it is not ready", "fix its target", serves("/readyz", page{code: 503})},
			{"store", bad, "its database /data/kvbooth.db fails: disk full", "free space", func(w *world) {
				w.status.Store = api.StoreStatus{Path: "/data/kvbooth.db", Problem: "disk full"}
			}},
			{"bottleneck", warn, "the load generator's own timing error is too large: lag 40 ms", "more CPU", func(w *world) {
				w.status.Client = api.ClientHealth{Verdict: api.VerdictBottleneck, Reason: "lag 40 ms"}
			}},
			{"no verdict", skip, "its own error: not known yet", "try again", func(w *world) {
				w.status.Client.Verdict = api.VerdictUnknown
			}},
			{"a clock ahead", warn, "ahead of this machine's", "NTP", func(w *world) { w.clock = 20 * time.Second }},
		},
		doctor.Target: {
			{"unreachable", bad, gone, "start the server", func(w *world) {
				w.status.Lanes[0].Target.Reachable, w.options.TargetURL = false, nowhere+"/v1"
			}},
			{"unreachable from here", skip, "is unreachable from here", "--target-url", func(w *world) {
				w.options.TargetURL = "http://frontend.invalid:1"
			}},
			{"unreachable, unnoticed", bad, gone, "start the server", func(w *world) { w.options.TargetURL = nowhere }},
			{"no model", bad, "no worker has registered", "workers' logs", serves("/v1/models", page{body: `{"data":[]}`})},
			{
				"another model", bad, "does not serve " + model + "; it serves other", "set target.model",
				serves("/v1/models", page{body: `{"data":[{"id":"other"}]}`}),
			},
			{"a key", skip, "requires an API key", "set LOADGEN_TARGET_API_KEY", serves("/v1/models", page{code: 401})},
			{
				"missing worker", bad, "1 of 2 workers have registered; not responding: worker-1 10.0.0.3:9090",
				"start it again", func(w *world) {
					w.pages["/health"] = page{body: `{"instances":[{"endpoint":"generate","instance_id":1}]}`}
					w.pages["/api/v1/targets"] = page{body: targets("down", "connection refused")}
				},
			},
			{
				"too many workers", warn, "2 workers have registered, deployment.workers is 1", "correct deployment.workers",
				func(w *world) { w.status.Lanes[0].Target.Deployment.Workers = 1 },
			},
			{
				"requests fail", bad, "a short request fails: the server failed (500): out of memory", "logs of frontend",
				serves("/v1/chat/completions", page{code: 500, body: "out of memory"}),
			},
			{
				"no stream", bad, "the server did not stream", "logs of frontend",
				serves("/v1/chat/completions", page{body: "{}", kind: "application/json"}),
			},
			{
				"no events", bad, "the router receives no KV events: it predicted a hit rate of 0 for 5 repeats",
				"publish KV events", func(w *world) { w.hits = []float64{0} },
			},
			{"round-robin", skip, "mode round-robin does not use them", "switch to kv", func(w *world) {
				w.hits, w.status.Lanes[0].State.Mode = nil, api.ModeRoundRobin
			}},
			{"a plain server", skip, "it reports no predicted hit rate", "switch to kv", func(w *world) {
				w.refuse, w.metrics = true, false
			}},
			{
				"running, events", good, "predicted hit rate 91.0 % over the last 60 s; a workload is running", "",
				func(w *world) { w.running(new(.91)) },
			},
			{"running, no events", bad, "predicted hit rate 0 over the last 60 s", "publish KV events", func(w *world) {
				w.running(new(0.))
			}},
			{"running, nothing", skip, "reported no predicted hit rate", "try again", func(w *world) { w.running(nil) }},
		},
		doctor.Prometheus: {
			{"absent", bad, "no Prometheus responds at " + nowhere, "prometheus.url", func(w *world) {
				w.options.PrometheusURL = nowhere
			}},
			{"a clock far behind", bad, "its clock is at least 59 s behind", "NTP", func(w *world) {
				w.clock = -time.Minute + 500*time.Millisecond
			}},
			{
				"a worker is not reachable", bad,
				"it cannot scrape worker-1 10.0.0.3:9090 of job workers: dial: connection refused", "DYN_SYSTEM_PORT",
				serves("/api/v1/targets", page{body: targets("down", "dial: connection refused")}),
			},
			{
				"blocked by the network", bad, "context deadline exceeded", "NetworkPolicy",
				serves("/api/v1/targets", page{body: targets("down", "context deadline exceeded")}),
			},
			{
				"a worker is not scraped", bad, "the workers' series in namespace dynamo: 1 of 2 endpoints have them",
				"PodMonitor", func(w *world) { w.age["10.0.0.3:9090"] = -1 },
			},
			{"old series", bad, "are stale: 10.0.0.3:9090 is 20 s old", "keeps up", func(w *world) {
				w.age["10.0.0.3:9090"] = 20
			}},
			{
				"no series of the load generator", bad, "the load generator's series (loadgen_info) are missing",
				"ServiceMonitor", func(w *world) { w.missing = "loadgen_info" },
			},
			{
				"no GPUs", warn, "the DCGM GPU series in namespace dynamo are missing", "without honorLabels",
				func(w *world) { w.missing = "DCGM" },
			},
		},
		doctor.Grafana: {
			{"absent", bad, gone, "start Grafana", func(w *world) { w.options.GrafanaURL = nowhere }},
			{
				"its database", bad, "its database is failing", "volume",
				serves(health, page{body: `{"database":"failing","version":"12.2.0"}`}),
			},
			{
				"too old", bad, "its version is 11.6.1", "12.2 or later",
				serves(health, page{body: `{"database":"ok","version":"11.6.1"}`}),
			},
			{
				"sub-path", bad, "its pages expect the path / but are served under /grafana/", "GF_SERVER_ROOT_URL",
				serves("/grafana/login", page{body: `<base href="/" />`, kind: "text/html"}),
			},
			{"redirected", bad, "redirects to /g/", "GF_SERVER_SERVE_FROM_SUB_PATH", serves(health, page{code: 302, to: "/g/"})},
			{"app", bad, "the app kvbooth-inference-app is not installed", "plugins directory", serves(app, page{code: 404})},
			{
				"an unhealthy app", bad, "the app: The token is wrong.", "Test connection",
				serves(app, page{code: 400, body: `{"status":"ERROR","message":"The token is wrong."}`}),
			},
			{"login", skip, "the data source: Grafana requires a login (401)", "GRAFANA_TOKEN", serves(source, page{code: 401})},
			{"source", warn, "no data source has the UID kvbooth-prometheus", "provision it", serves(source, page{code: 404})},
		},
		doctor.Kubernetes: {
			{"no credentials", bad, "no credentials for Kubernetes here", "--kubeconfig", func(w *world) {
				w.options.Context = "no-such-context"
			}},
			{"not asked for", skip, "no credentials for Kubernetes here", "--kubeconfig", func(w *world) {
				w.status.Config["mode.driver"], w.status.Config["mode.kubernetes.context"] = "kubernetes", "no-such-context"
			}},
		},
	} {
		for _, row := range rows {
			t.Run(section+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld()
				row.change(w)
				r := examine(t, w)
				var found kubernetes.Finding
				for _, s := range r.Sections {
					for _, f := range s.Findings {
						if s.Name == section && strings.Contains(f.Found, row.found) {
							found = f
						}
					}
				}
				assert.EqualValues(t, row.severity, found.Severity, text(r))
				assert.Contains(t, found.Do, row.do)
				if row.severity == bad {
					assert.NotEmpty(t, found.Do)
				} else {
					assert.Zero(t, r.Problems, text(r))
				}
			})
		}
	}
}

// running simulates a running workload with a predicted hit rate.
func (w *world) running(predicted *float64) {
	w.status.Lanes[0].State.Phase = api.PhaseRunning
	l := &w.snapshot.Lanes[0]
	l.State.Phase, l.Cluster.KV = api.PhaseRunning, api.KV{PredictedRatio: predicted, HitRatio: new(.9)}
	w.pages["/v1/chat/completions"] = page{code: 500, body: "a request that would change the measurement"}
}

func TestTargetWithPathAndQuery(t *testing.T) {
	w := newWorld()
	completed := false
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		path, ok := strings.CutPrefix(r.URL.Path, "/deployments/x")
		if isAPI := path == "/models" || path == "/chat/completions"; isAPI && ok {
			ok = r.URL.RawQuery == "version=1"
			completed = completed || path == "/chat/completions"
			path = "/v1" + path
		}
		if r.URL.Path = path; !ok {
			http.NotFound(rw, r)
			return
		}
		w.ServeHTTP(rw, r)
	}))
	t.Cleanup(front.Close)
	at := front.URL + "/deployments/x"
	w.status.Config["target.url"] = at + "/chat/completions?version=1"
	for name, urls := range map[string]struct{ lane, flag string }{
		"from the status": {lane: at},
		"from a flag":     {flag: w.status.Config["target.url"]},
	} {
		completed = false
		w.status.Lanes[0].Target.URL, w.options.TargetURL = urls.lane, urls.flag
		report := text(examine(t, w))
		assert.Contains(t, report, at+" serves "+model, name)
		assert.True(t, completed, report)
	}
}

// An OpenAI-compatible server without a load generator has no problem, whether it is a Dynamo or not, until it fails.
func TestTargetAlone(t *testing.T) {
	nothing := httptest.NewServer(nil)
	nothing.Close()
	for name, row := range map[string]struct {
		change func(*world)
		finds  string
	}{
		"plain":       {func(w *world) { w.plain, w.metrics, w.pages["/health"] = true, false, page{body: "ok"} }, ""},
		"a Dynamo":    {func(*world) {}, ""},
		"round-robin": {func(w *world) { w.hits, w.metrics = nil, false }, ""},
		"no model":    {func(w *world) { w.pages["/v1/models"] = page{body: `{"data":[]}`} }, "Target: problem: no worker"},
	} {
		w := newWorld()
		row.change(w)
		server := httptest.NewServer(w)
		r, err := doctor.Examine(t.Context(), doctor.Options{
			LoadgenURL: nothing.URL, TargetAlone: true, TargetURL: server.URL,
		})
		server.Close()
		require.NoError(t, err)
		assert.Contains(t, text(r), "Load generator: not checked: no load generator responds at "+nothing.URL, name)
		assert.Contains(t, text(r), "Grafana: not checked", name)
		assert.Contains(t, text(r), row.finds, name)
		assert.Equal(t, row.finds != "", r.Problems > 0, "%s: %s", name, text(r))
	}
}

// Each fact of a router that changes a comparison is named.
func TestRouterIsNamed(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*world)
		lines  []string
	}{
		"SMG": {func(w *world) { w.header = http.Header{"X-Smg-Routed-Worker-Id": {"http://10.0.0.2:8000"}} }, []string{
			"ok: the router is Shepherd model gateway (SMG); its metrics: smg_worker_requests_total",
			"ends at the response's headers, before the first token",
			"ok: the worker of a turn is known by the response header X-Smg-Routed-Worker-Id, such as 10.0.0.2:8000",
			"not checked: cached tokens: usage does not report them",
			"ok: first token of a request on a reused connection",
		}},
		"sglang-router": {func(w *world) {
			w.pages["/workers"] = page{body: `{"workers":[{"connection_mode":"HTTP"}]}`}
			w.delays, w.status.Config["target.session"] = true, "body:user"
		}, []string{
			"ok: the router is sglang-router",
			"not checked: the worker of a turn: not known, unless the engine sends a header of its own",
			"problem: sglang-router drops these fields of a request: nvext, user,",
			"target.session cannot be body:user; it can be header:X-SMG-Routing-Key",
			"warning: first token of a request on a reused connection",
		}},
		"vllm-router": {func(w *world) {
			w.pages["/list_workers"] = page{body: `{"urls":["http://10.0.0.2:8000"]}`}
			w.header, w.status.Config["target.worker_header"] = http.Header{"X-Engine": {"engine-2"}}, "X-Engine"
			w.status.Config["target.request_id"] = "on"
		}, []string{
			"the response header X-Engine, such as engine-2",
			"warning: target.request_id is on, and vllm-router takes X-Request-Id, which differs for each turn, as a sticky key",
		}},
		"by its name": {func(w *world) {
			w.status.Config["target.router"], w.status.Config["target.worker_header"] = "ray-serve", "X-None"
		}, []string{
			"ok: the router is Ray Serve LLM ->",
			"warning: target.worker_header is X-None, and the server's answer has no such header",
		}},
	} {
		w := newWorld()
		w.plain = true
		w.pages["/health"] = page{body: "ok"}
		row.change(w)
		report := text(examine(t, w))
		for _, line := range row.lines {
			assert.Contains(t, report, line, name)
		}
	}
}

// While a workload runs, the doctor repeats what the target's answers show, such as a proxy that holds streams back.
func TestNoticesOfTheTarget(t *testing.T) {
	w := newWorld()
	w.snapshot.Lanes[0].State.Phase = api.PhaseRunning
	w.snapshot.Lanes[0].Target.Notices = []string{"40 of 100 answers came in bursts: a proxy buffers its streams."}
	assert.Contains(t, text(examine(t, w)), "warning: 40 of 100 answers came in bursts: a proxy buffers its streams ->")
}

func TestLanesAreExaminedSeparately(t *testing.T) {
	w := newWorld()
	other := newWorld()
	other.hits = []float64{0}
	second := httptest.NewServer(other)
	t.Cleanup(second.Close)
	twin := w.status.Lanes[0]
	twin.Name, twin.Target.URL = api.TwinLane, second.URL
	w.status.Lanes = append(w.status.Lanes, twin)
	w.status.Config["twin.prometheus.namespace"] = "dynamo-twin"
	report := text(examine(t, w))
	assert.Contains(t, report, "Target: ok: lane main: the router knows the caches")
	assert.Contains(t, report, "Target: problem: lane twin: the router receives no KV events")
	assert.Contains(t, report, "Prometheus: ok: lane twin: the workers' series in namespace dynamo-twin")

	w.status.Config["twin.prometheus.namespace"] = "dynamo"
	w.status.Config["mode.kubernetes.name"] = "booth"
	w.status.Config["twin.mode.kubernetes.name"] = "booth-twin"
	examine(t, w)
	queries := ""
	w.queries.Range(func(query, _ any) bool {
		queries += query.(string)
		return true
	})
	assert.Contains(t, queries, `{namespace="dynamo",pod=~"booth-.+",pod!~"booth-twin-.+"}`)
	assert.Contains(t, queries, `{exported_namespace="dynamo",exported_pod=~"booth-twin-.+"}`)
}

// TestInvalidOptionsAreRefused checks that the error does not contain a value that may be a password.
func TestInvalidOptionsAreRefused(t *testing.T) {
	for field, o := range map[string]doctor.Options{
		"loadgen-url":    {},
		"target-url":     {LoadgenURL: "http://a", TargetURL: "http://user:secret@b"},
		"prometheus-url": {LoadgenURL: "http://a", PrometheusURL: "b:9090"},
		"grafana-url":    {LoadgenURL: "http://a", GrafanaURL: "ftp://b"},
		"gpus":           {LoadgenURL: "http://a", GPUs: new(int64(-1))},
		"kubeconfig":     {LoadgenURL: "http://a", Kubeconfig: "/does/not/exist"},
		"graph":          {LoadgenURL: "http://a", Graphs: []string{"a/"}},
		"secret":         {LoadgenURL: "http://a", Secrets: []string{"a/b"}},
		"token":          {LoadgenURL: "http://a", Token: strings.Repeat("x", api.MaxToken+1)},
	} {
		_, err := doctor.Examine(t.Context(), o)
		var refused *api.FieldError
		require.ErrorAs(t, err, &refused, field)
		assert.Equal(t, field, refused.Field)
		assert.NotContains(t, err.Error(), "secret@")
	}
}
