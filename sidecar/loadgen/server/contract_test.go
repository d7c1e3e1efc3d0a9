package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// contract is a transport that checks requests and answers against the OpenAPI document, and records the operations.
type contract struct {
	t      *testing.T
	doc    *openapi3.T
	router routers.Router
	tr     *http.Transport
	bad    bool // whether the document must refuse the requests, too

	mu   sync.Mutex
	seen map[string]bool
}

// document31 reads the document once; it is immutable. The validator requires a decoder for each media type of a
// report.
var document31 = sync.OnceValues(func() (*openapi3.T, error) {
	for _, f := range api.ReportFormats[1:] {
		bare, _, _ := strings.Cut(f.MediaType(), ";")
		openapi3filter.RegisterBodyDecoder(bare, openapi3filter.PlainBodyDecoder)
	}
	return openapi3.NewLoader().LoadFromData(api.OpenAPI)
})

var documentRouter = sync.OnceValues(func() (routers.Router, error) {
	doc, err := document31()
	if err != nil {
		return nil, err
	}
	return legacy.NewRouter(doc)
})

func newContract(t *testing.T) *contract {
	doc, _ := document31()
	router, err := documentRouter()
	require.NoError(t, err)
	c := &contract{t: t, doc: doc, router: router, tr: &http.Transport{}, seen: map[string]bool{}}
	t.Cleanup(c.tr.CloseIdleConnections)
	return c
}

func (c *contract) RoundTrip(r *http.Request) (*http.Response, error) {
	find := r.Clone(r.Context())
	find.URL.Path = r.URL.EscapedPath() // this router takes %2F for a slash
	route, params, err := c.router.FindRoute(find)
	if err != nil {
		c.t.Errorf("%s %s is not in the document: %v", r.Method, r.URL.Path, err)
		return nil, err
	}
	c.saw(r.Method, route.Path)
	in := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{
			AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
			IncludeResponseStatus: true, SkipSettingDefaults: true, RejectWhenRequestBodyNotSpecified: true,
		},
	}
	if err := openapi3filter.ValidateRequest(r.Context(), in); (err != nil) != c.bad {
		c.t.Errorf("%s %s: the document refuses it: %t; it is to: %t (%v)", r.Method, r.URL, err != nil, c.bad, err)
	}
	res, err := c.tr.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	return res, c.validate(in, res)
}

// send sends a request, whose path is relative to the API's prefix, through the contract.
func (c *contract) send(base string, q request) *http.Response {
	r, err := http.NewRequest(cmp.Or(q.method, http.MethodGet), base+v1+q.path, strings.NewReader(q.body))
	require.NoError(c.t, err)
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	res, err := (&http.Client{Transport: c}).Do(r)
	require.NoError(c.t, err)
	return res
}

func (c *contract) validate(in *openapi3filter.RequestValidationInput, res *http.Response) error {
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return err
	}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: res.StatusCode,
		Header: res.Header, Options: in.Options,
	}
	if err := openapi3filter.ValidateResponse(context.Background(), out.SetBodyBytes(body)); err != nil {
		c.t.Errorf("%s %s answered %d: %v", in.Request.Method, in.Request.URL, res.StatusCode, err)
	}
	return nil
}

func (c *contract) saw(method, path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[method+" "+path] = true
}

func (c *contract) operations() (all []string) {
	for path, item := range c.doc.Paths.Map() {
		for method := range item.Operations() {
			all = append(all, method+" "+path)
		}
	}
	return all
}

// A call that changes something requires the access of a write.
func TestWritesAreNoReads(t *testing.T) {
	for _, rt := range newServer(t, &recorder{}, nil).routes() {
		method, _, _ := strings.Cut(rt.pattern, " ")
		require.Equal(t, rt.access != public && method != http.MethodGet, rt.access == write, rt.pattern)
	}
}

// Every operation of the document is called as a client calls it. Requests and answers match the document, and the
// backend receives what was sent.
func TestEveryOperation(t *testing.T) {
	b := &recorder{csv: "id,ttft\n1,0.2\n"}
	base := start(t, b, withToken)
	c := newContract(t)
	client, err := api.NewClient(&http.Client{Transport: c}, base, token)
	require.NoError(t, err)
	client = client.As("gräfin")
	ctx := t.Context()

	for _, call := range everyCall(client) {
		t.Run(call.name, func(t *testing.T) {
			got, err := call.do(ctx)
			require.NoError(t, err)
			require.Equal(t, call.answer, got)
			if call.received.name != "" {
				require.Equal(t, call.received, b.last())
			}
		})
	}
	t.Run("stream", func(t *testing.T) { streamOnce(t, c, client) })
	t.Run("others", func(t *testing.T) { otherCalls(t, c, base) })

	var seen []string
	for op := range c.seen {
		seen = append(seen, op)
	}
	require.ElementsMatch(t, c.operations(), seen, "operations exercised")
}

type clientCall struct {
	name     string
	do       func(context.Context) (any, error)
	answer   any
	received call
}

func everyCall(c *api.Client) []clientCall {
	state, by := sample[api.State](), "gräfin"
	startReq, stopReq := api.StartRequest{Concurrency: new(180)}, api.StopRequest{Drain: true}
	patch, mode, settings := sample[api.WorkloadPatch](), sample[api.ModeRequest](), sample[api.SettingsPatch]()
	settings.Slider = &api.Slider{Min: 1, Max: 200, Increment: 10}
	query := api.ConversationQuery{Lane: "twin", Status: api.ConversationRetired, Topic: "a b&c", Cursor: "x=", Limit: 200}
	imported, lastPage := sample[api.Baseline](), sample[api.BaselineList]()
	lastPage.NextCursor = ""
	trial := api.SweepRequest{Kind: api.SweepTrial, Levels: []int{120}, Modes: []api.ModeState{{
		Mode:        "round_robin",
		Speculation: "off",
	}, {Mode: "kv", Speculation: "off"}}, Seed: new(uint64(1<<64 - 1))}
	pause, made := api.SweepPatch{State: api.SweepPaused}, sample[api.SweepBaselineRequest]()
	two := sides{
		api.ReportSide{Baseline: "of 2026+1", Mode: api.ModeRoundRobin, Speculation: api.SpeculationOff},
		api.ReportSide{Baseline: "this target", Arm: "round robin"},
	}
	question := sample[api.SimulationRequest]()
	question.QuestionTokens.Mean = 12
	swap, show := api.TwinRequest{Arranged: api.TwinSwapped}, api.ShowcaseRequest{Starter: new("gpu"), Turns: new(3)}
	table := api.Baseline{Name: "a table", Kind: "imported", Notes: "concurrency,mode\n", Rows: imported.Rows}
	measured := api.Baseline{Name: "a table", Kind: "imported", Rows: []api.BaselineRow{{
		Concurrency: 1,
		Mode:        api.ModeKV, Speculation: api.SpeculationOff,
	}}}
	all := []clientCall{
		{"ready", func(ctx context.Context) (any, error) { return nil, c.Ready(ctx) }, nil, call{}},
		{"status", func(ctx context.Context) (any, error) { return c.Status(ctx) }, sample[api.Status](), call{}},
		{"snapshot", func(ctx context.Context) (any, error) { return c.Snapshot(ctx) }, sample[api.Snapshot](), call{}},
		{"start", func(ctx context.Context) (any, error) { return c.Start(ctx, "", startReq) }, state, call{
			"start",
			"main", by, startReq,
		}},
		{"stop", func(ctx context.Context) (any, error) { return c.Stop(ctx, "twin", stopReq) }, state, call{
			"stop",
			"twin", by, stopReq,
		}},
		{"patch", func(ctx context.Context) (any, error) { return c.Patch(ctx, "twin", patch) }, state, call{
			"patch",
			"twin", by, patch,
		}},
		{"set mode", func(ctx context.Context) (any, error) { return c.SetMode(ctx, "", mode) }, state, call{
			"set mode",
			"main", by, mode,
		}},
		{
			"cancel mode", func(ctx context.Context) (any, error) { return c.CancelMode(ctx, "twin") }, state,
			call{"cancel mode", "twin", by, nil},
		},
		{
			"cluster", func(ctx context.Context) (any, error) { return c.Cluster(ctx, "twin") }, sample[api.Cluster](),
			call{"cluster", "twin", "", nil},
		},
		{
			"history", func(ctx context.Context) (any, error) { return c.History(ctx, "twin") }, sample[api.History](),
			call{"history", "twin", "", nil},
		},
		{
			"decisions", func(ctx context.Context) (any, error) { return c.Decisions(ctx, "twin", 1000) },
			sample[api.DecisionList](),
			call{"decisions", "twin", "", 1000},
		},
		{
			"decisions of the main lane", func(ctx context.Context) (any, error) { return c.Decisions(ctx, "", 0) },
			sample[api.DecisionList](),
			call{"decisions", "main", "", 50},
		},
		{
			"shadow", func(ctx context.Context) (any, error) { return c.Shadow(ctx, "twin") }, sample[api.Shadow](),
			call{"shadow", "twin", "", nil},
		},
		{"twin", func(ctx context.Context) (any, error) { return c.Twin(ctx) }, sample[api.Twin](), call{name: "twin"}},
		{
			"arrange twin", func(ctx context.Context) (any, error) { return c.ArrangeTwin(ctx, swap) }, sample[api.Twin](),
			call{"arrange twin", "", by, swap},
		},
		{
			"start showcase", func(ctx context.Context) (any, error) { return c.StartShowcase(ctx, show) },
			sample[api.Twin](),
			call{"start showcase", "", by, show},
		},
		{
			"stop showcase", func(ctx context.Context) (any, error) { return c.StopShowcase(ctx) }, sample[api.Twin](),
			call{"stop showcase", "", by, nil},
		},
		{
			"conversations", func(ctx context.Context) (any, error) { return c.Conversations(ctx, query) },
			sample[api.ConversationList](),
			call{"conversations", "twin", "", query},
		},
		{
			"all conversations", func(ctx context.Context) (any, error) {
				return c.Conversations(ctx,
					api.ConversationQuery{})
			}, sample[api.ConversationList](),
			call{"conversations", "main", "", api.ConversationQuery{Lane: "main", Limit: 50}},
		},
		{
			"conversation", func(ctx context.Context) (any, error) { return c.Conversation(ctx, "main-1/../2") },
			sample[api.Conversation](),
			call{"conversation", "", "", "main-1/../2"},
		},
		{
			"starter", func(ctx context.Context) (any, error) { return c.Starter(ctx, "twin", "gpu/1 ü") },
			sample[api.Starter](),
			call{"starter", "twin", "", "gpu/1 ü"},
		},
		{
			"starter of the main lane", func(ctx context.Context) (any, error) { return c.Starter(ctx, "", "gpu") },
			sample[api.Starter](),
			call{"starter", "main", "", "gpu"},
		},
		{"turns", func(ctx context.Context) (any, error) {
			var table bytes.Buffer
			err := c.TurnsCSV(ctx, &table, "twin", 12)
			return table.String(), err
		}, "id,ttft\n1,0.2\n", call{"turns", "twin", "", int64(12)}},
		{
			"events", func(ctx context.Context) (any, error) { return c.Events(ctx, "", 0) }, sample[api.EventList](),
			call{"events", "", "", 100},
		},
		{
			"events of a lane", func(ctx context.Context) (any, error) { return c.Events(ctx, "main", 5) },
			sample[api.EventList](),
			call{"events", "main", "", 5},
		},
		{"baselines", func(ctx context.Context) (any, error) { return c.Baselines(ctx) }, lastPage, call{name: "baselines"}},
		{
			"baseline", func(ctx context.Context) (any, error) { return c.Baseline(ctx, "this target") }, imported,
			call{"baseline", "", "", "this target"},
		},
		{
			"comparison", func(ctx context.Context) (any, error) { return c.Comparison(ctx, "twin", "a table") },
			sample[api.Comparison](),
			call{"comparison", "twin", "", "a table"},
		},
		{
			"comparison with the default", func(ctx context.Context) (any, error) { return c.Comparison(ctx, "", "") },
			sample[api.Comparison](),
			call{"comparison", "main", "", ""},
		},
		{
			"save baseline", func(ctx context.Context) (any, error) { return c.SaveBaseline(ctx, imported) }, imported,
			call{"save baseline", "", by, imported},
		},
		{"import CSV", func(ctx context.Context) (any, error) {
			return c.ImportCSV(ctx, "a table", strings.NewReader("concurrency,mode\n"))
		}, table, call{"save baseline", "", by, table}},
		{"import results", func(ctx context.Context) (any, error) {
			return c.ImportResults(ctx, "a table", api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationOff},
				true, strings.NewReader("{}"))
		}, measured, call{"merge baseline", "", by, measured}},
		{
			"delete baseline", func(ctx context.Context) (any, error) { return c.DeleteBaseline(ctx, "a table/2") },
			lastPage,
			call{"delete baseline", "", by, "a table/2"},
		},
		{
			"simulations", func(ctx context.Context) (any, error) { return c.Simulations(ctx) },
			sample[api.SimulationList](),
			call{name: "simulations"},
		},
		{
			"start simulation", func(ctx context.Context) (any, error) { return c.StartSimulation(ctx, question) },
			sample[api.SimulationResult](),
			call{"start simulation", "", by, question},
		},
		{
			"simulation", func(ctx context.Context) (any, error) { return c.Simulation(ctx, "a/b") },
			sample[api.SimulationResult](),
			call{"simulation", "", "", "a/b"},
		},
		{
			"cancel simulation", func(ctx context.Context) (any, error) { return c.CancelSimulation(ctx, "a1") },
			sample[api.SimulationResult](),
			call{"cancel simulation", "", "", "a1"},
		},
		{"settings", func(ctx context.Context) (any, error) { return c.Settings(ctx) }, sample[api.Settings](), call{}},
		{
			"patch settings", func(ctx context.Context) (any, error) { return c.PatchSettings(ctx, settings) },
			sample[api.Settings](),
			call{"patch settings", "", by, settings},
		},
		{
			"sweeps", func(ctx context.Context) (any, error) { return c.Sweeps(ctx) }, sample[api.SweepList](),
			call{name: "sweeps"},
		},
		{
			"start sweep", func(ctx context.Context) (any, error) { return c.StartSweep(ctx, "twin", trial) },
			sample[api.Sweep](),
			call{"start sweep", "twin", by, trial},
		},
		{
			"sweep outlook", func(ctx context.Context) (any, error) { return c.SweepOutlook(ctx, "twin", trial) },
			sample[api.SweepOutlook](),
			call{"sweep outlook", "twin", "", trial},
		},
		{
			"start sweep on the main lane", func(ctx context.Context) (any, error) { return c.StartSweep(ctx, "", trial) },
			sample[api.Sweep](),
			call{"start sweep", "main", by, trial},
		},
		{
			"sweep", func(ctx context.Context) (any, error) { return c.Sweep(ctx, "a/b") }, sample[api.Sweep](),
			call{"sweep", "", "", "a/b"},
		},
		{
			"patch sweep", func(ctx context.Context) (any, error) { return c.PatchSweep(ctx, "a1", pause) },
			sample[api.Sweep](),
			call{"patch sweep a1", "", by, pause},
		},
		{
			"delete sweep", func(ctx context.Context) (any, error) { return c.DeleteSweep(ctx, "a1") },
			sample[api.SweepList](),
			call{"delete sweep", "", by, "a1"},
		},
		{
			"baseline of sweep", func(ctx context.Context) (any, error) { return c.SweepBaseline(ctx, "a1", made) },
			imported,
			call{"baseline of sweep a1", "", by, made},
		},
		{"seconds", func(ctx context.Context) (any, error) {
			var table bytes.Buffer
			err := c.SweepSeconds(ctx, &table, "a1")
			return table.String(), err
		}, "id,ttft\n1,0.2\n", call{"seconds", "", "", "a1"}},
	}
	for _, f := range api.ReportFormats {
		all = append(all,
			clientCall{"report of a sweep as " + string(f), func(ctx context.Context) (any, error) {
				var text bytes.Buffer
				err := c.SweepReport(ctx, &text, "a1", f)
				return text.String(), err
			}, reports[f], call{"report of a sweep as " + string(f), "", "", "a1"}},
			clientCall{"report as " + string(f), func(ctx context.Context) (any, error) {
				var text bytes.Buffer
				err := c.Report(ctx, &text, two.a, two.b, f)
				return text.String(), err
			}, reports[f], call{"report as " + string(f), "", "", two}})
	}
	return all
}

// streamOnce receives one snapshot from the stream and checks it against the schema.
func streamOnce(t *testing.T, c *contract, client *api.Client) {
	for got, err := range client.Stream(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, sample[api.Snapshot](), got)
		text, err := json.Marshal(got)
		require.NoError(t, err)
		var value any
		require.NoError(t, json.Unmarshal(text, &value))
		require.NoError(t, c.doc.Components.Schemas["Snapshot"].Value.VisitJSON(value, openapi3.EnableJSONSchema2020()))
		break
	}
	c.saw(http.MethodGet, api.Prefix+"/stream")
}

// otherCalls makes the calls that a typed client lacks.
func otherCalls(t *testing.T, c *contract, base string) {
	client := http.Client{Transport: c}
	for path, want := range map[string]string{
		"/healthz": "ok\n", "/metrics": "up 1\n",
		api.Prefix + "/openapi.yaml": string(api.OpenAPI),
	} {
		r, err := http.NewRequest(http.MethodGet, base+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := client.Do(r)
		require.NoError(t, err)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	exchange := request{method: http.MethodPost, path: "/session", body: `{"token":"` + token + `"}`}
	require.Equal(t, http.StatusNoContent, c.send(base, exchange).StatusCode)
	require.Equal(t, http.StatusOK, c.send(base, request{path: "/session"}).StatusCode)
	require.Equal(t, http.StatusNoContent, c.send(base, request{method: http.MethodDelete, path: "/session"}).StatusCode)
}

// An error of the backend arrives at the client as the same error, through a documented answer. The text of an
// unexpected error stays in the log.
func TestBackendErrors(t *testing.T) {
	b := &recorder{}
	base := start(t, b, nil)
	client, err := api.NewClient(&http.Client{Transport: newContract(t)}, base, "")
	require.NoError(t, err)
	field := &api.FieldError{Field: "concurrency", Value: "5000", Allowed: "1 to 1000 (max_concurrency)"}
	for _, call := range everyCall(client) {
		switch call.received.name {
		case "", "cluster", "history", "shadow", "baselines", "simulations", "sweeps":
			continue // it cannot fail
		}
		t.Run(call.name, func(t *testing.T) {
			for _, want := range []error{api.ErrNotFound, api.ErrConflict, api.ErrUnavailable} {
				b.err = errors.Join(errors.New("the reason"), want)
				_, err := call.do(t.Context())
				require.ErrorIs(t, err, want)
				require.ErrorContains(t, err, "the reason")
			}
			b.err = field
			_, err := call.do(t.Context())
			require.Equal(t, field, err)
			b.err = errors.New("/secret/path: disk on fire")
			_, err = call.do(t.Context())
			var p *api.ProblemError
			require.ErrorAs(t, err, &p)
			require.Equal(t, http.StatusInternalServerError, p.Status)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

// Every call on an unknown lane returns that there is none. Stored data of a former lane can still be listed.
func TestUnknownLane(t *testing.T) {
	b := &recorder{lost: fmt.Errorf("%w: no lane of this name", api.ErrNotFound)}
	base := start(t, b, nil)
	client, err := api.NewClient(&http.Client{Transport: newContract(t)}, base, "")
	require.NoError(t, err)
	for _, call := range everyCall(client) {
		if call.received.lane == "" || call.received.name == "conversations" || call.received.name == "events" {
			continue
		}
		_, err := call.do(t.Context())
		require.ErrorIs(t, err, api.ErrNotFound, call.name)
		require.ErrorContains(t, err, "no lane of this name", call.name)
	}
	require.Empty(t, b.last())
}

func TestReadyzReportsReason(t *testing.T) {
	b := &recorder{ready: errors.New("lane main: connection refused; start the target")}
	base := start(t, b, withToken)
	c := newContract(t)
	client, err := api.NewClient(&http.Client{Transport: c}, base, "")
	require.NoError(t, err)
	err = client.Ready(t.Context())
	require.ErrorIs(t, err, api.ErrUnavailable)
	require.EqualError(t, err, "lane main: connection refused; start the target")
}
