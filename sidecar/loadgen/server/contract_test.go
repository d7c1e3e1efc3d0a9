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
	"slices"
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

// client returns a client of the server at base whose calls go through the contract.
func (c *contract) client(base, token string) *api.Client {
	client, err := api.NewClient(&http.Client{Transport: c}, base, token)
	require.NoError(c.t, err)
	return client
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
	client := c.client(base, token).As("gräfin")
	for _, call := range everyCall(client) {
		b.calls = nil
		got, err := call.do(t.Context())
		require.NoError(t, err, call.received.name)
		require.Equal(t, call.answer, got, call.received.name)
		require.Equal(t, call.received, b.last())
	}
	t.Run("stream", func(t *testing.T) { streamOnce(t, c, client) })
	t.Run("others", func(t *testing.T) { otherCalls(t, c, base) })

	var seen []string
	for op := range c.seen {
		seen = append(seen, op)
	}
	require.ElementsMatch(t, c.operations(), seen, "operations exercised")
}

// clientCall is a call of the client, its result, and what the backend receives.
type clientCall struct {
	do       func(context.Context) (any, error)
	answer   any
	received call
}

// call0 is a call without arguments whose answer is a sample.
func call0[T any](do func(context.Context) (T, error), received call) clientCall {
	return clientCall{func(ctx context.Context) (any, error) { return do(ctx) }, sample[T](), received}
}

// call1 is a call with an argument.
func call1[A, T any](do func(context.Context, A) (T, error), a A, received call) clientCall {
	return call0(func(ctx context.Context) (T, error) { return do(ctx, a) }, received)
}

// call2 is a call with two arguments.
func call2[A, B, T any](do func(context.Context, A, B) (T, error), a A, b B, received call) clientCall {
	return call0(func(ctx context.Context) (T, error) { return do(ctx, a, b) }, received)
}

// file is a call that writes its answer.
func file(do func(context.Context, io.Writer) error, text string, received call) clientCall {
	return call0(func(ctx context.Context) (string, error) {
		var out bytes.Buffer
		err := do(ctx, &out)
		return out.String(), err
	}, received).answers(text)
}

// answers replaces the sample.
func (c clientCall) answers(v any) clientCall {
	c.answer = v
	return c
}

func everyCall(c *api.Client) []clientCall {
	return slices.Concat(laneCalls(c), baselineCalls(c), resultCalls(c), fileCalls(c))
}

// laneCalls are the calls that read or change the present state.
func laneCalls(c *api.Client) []clientCall {
	const by = "gräfin"
	startReq, stopReq := api.StartRequest{Level: new(api.AtConversations(180))}, api.StopRequest{Drain: true}
	patch, mode, settings := sample[api.WorkloadPatch](), sample[api.ModeRequest](), sample[api.SettingsPatch]()
	settings.Slider = &api.Slider{Min: 1, Max: 200, Increment: 10}
	swap, show := api.TwinRequest{Arranged: api.TwinSwapped}, api.ShowcaseRequest{Starter: new("gpu"), Turns: new(3)}
	return []clientCall{
		call0(func(ctx context.Context) (any, error) { return nil, c.Ready(ctx) }, call{}),
		call0(c.Status, call{}),
		call0(c.Snapshot, call{}),
		call0(c.Settings, call{}),
		call1(c.PatchSettings, settings, call{"patch settings", "", by, settings}),
		call2(c.Start, "", startReq, call{"start", "main", by, startReq}),
		call2(c.Stop, "twin", stopReq, call{"stop", "twin", by, stopReq}),
		call2(c.Patch, "twin", patch, call{"patch", "twin", by, patch}),
		call1(c.MeasureAnew, "twin", call{"measure anew", "twin", by, api.MeasureRequest{}}),
		call2(c.SetMode, "", mode, call{"set mode", "main", by, mode}),
		call1(c.CancelMode, "twin", call{"cancel mode", "twin", by, nil}),
		call1(c.Cluster, "twin", call{"cluster", "twin", "", nil}),
		call1(c.History, "twin", call{"history", "twin", "", nil}),
		call2(c.Decisions, "twin", 1000, call{"decisions", "twin", "", 1000}),
		call2(c.Decisions, "", 0, call{"decisions", "main", "", 50}),
		call1(c.Shadow, "twin", call{"shadow", "twin", "", nil}),
		call0(c.Twin, call{name: "twin"}),
		call1(c.ArrangeTwin, swap, call{"arrange twin", "", by, swap}),
		call1(c.StartShowcase, show, call{"start showcase", "", by, show}),
		call0(c.StopShowcase, call{"stop showcase", "", by, nil}),
		call2(c.Starter, "twin", "gpu/1 ü", call{"starter", "twin", "", "gpu/1 ü"}),
		call2(c.Starter, "", "gpu", call{"starter", "main", "", "gpu"}),
		call2(c.Comparison, "twin", "a table", call{"comparison", "twin", "", "a table"}),
		call2(c.Comparison, "", "", call{"comparison", "main", "", ""}),
	}
}

// baselineCalls are the calls on baselines.
func baselineCalls(c *api.Client) []clientCall {
	const by = "gräfin"
	imported, lastPage := sample[api.Baseline](), sample[api.BaselineList]()
	lastPage.NextCursor = ""
	table := api.Baseline{Name: "a table", Kind: "imported", Notes: "concurrency,mode\n", Rows: imported.Rows}
	kv := api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationOff}
	measured := api.Baseline{Name: "a table", Kind: "imported", Rows: []api.BaselineRow{{
		Level: api.AtConversations(1), Mode: kv.Mode, Speculation: kv.Speculation,
	}}}
	return []clientCall{
		call0(c.Baselines, call{name: "baselines"}).answers(lastPage),
		call1(c.Baseline, "this target", call{"baseline", "", "", "this target"}),
		call1(c.SaveBaseline, imported, call{"save baseline", "", by, imported}),
		call0(func(ctx context.Context) (any, error) {
			return c.ImportCSV(ctx, "a table", strings.NewReader("concurrency,mode\n"))
		}, call{"save baseline", "", by, table}).answers(table),
		call0(func(ctx context.Context) (any, error) {
			return c.ImportResults(ctx, "a table", kv, true, strings.NewReader("{}"))
		}, call{"merge baseline", "", by, measured}).answers(measured),
		call1(c.DeleteBaseline, "a table/2", call{"delete baseline", "", by, "a table/2"}).answers(lastPage),
	}
}

// resultCalls are the calls on conversations, events, simulations and sweeps.
func resultCalls(c *api.Client) []clientCall {
	const by = "gräfin"
	query := api.ConversationQuery{Lane: "twin", Status: api.ConversationRetired, Topic: "a b&c", Cursor: "x=", Limit: 200}
	question := sample[api.SimulationRequest]()
	question.QuestionTokens.Mean = 12
	rr, kv := api.ModeState{Mode: "round_robin", Speculation: "off"}, api.ModeState{Mode: "kv", Speculation: "off"}
	trial := api.SweepRequest{
		Kind: api.SweepTrial, Levels: api.LevelsOf(120), Modes: []api.ModeState{rr, kv}, Seed: new(uint64(1<<64 - 1)),
	}
	pause, made := api.SweepPatch{State: api.SweepPaused}, sample[api.SweepBaselineRequest]()
	return []clientCall{
		call1(c.Conversations, query, call{"conversations", "twin", "", query}),
		call1(c.Conversations, api.ConversationQuery{},
			call{"conversations", "main", "", api.ConversationQuery{Lane: "main", Limit: 50}}),
		call1(c.Conversation, "main-1/../2", call{"conversation", "", "", "main-1/../2"}),
		call2(c.Events, "", 0, call{"events", "", "", 100}),
		call2(c.Events, "main", 5, call{"events", "main", "", 5}),
		call0(c.Simulations, call{name: "simulations"}),
		call1(c.StartSimulation, question, call{"start simulation", "", by, question}),
		call1(c.Simulation, "a/b", call{"simulation", "", "", "a/b"}),
		call1(c.CancelSimulation, "a1", call{"cancel simulation", "", "", "a1"}),
		call1(c.Runs, "nightly", call{"runs", "", "", "nightly"}),
		call2(c.AcceptRun, "a/b", api.RunPatch{Accepted: true}, call{"accept run a/b", "", "", true}),
		call0(c.Sweeps, call{name: "sweeps"}),
		call2(c.StartSweep, "twin", trial, call{"start sweep", "twin", by, trial}),
		call2(c.StartSweep, "", trial, call{"start sweep", "main", by, trial}),
		call2(c.SweepOutlook, "twin", trial, call{"sweep outlook", "twin", "", trial}),
		call2(c.PreviewTraffic, "twin", sample[api.TrafficPreviewRequest](),
			call{"preview traffic", "twin", "", sample[api.TrafficPreviewRequest]()}),
		call1(c.Sweep, "a/b", call{"sweep", "", "", "a/b"}),
		call2(c.PatchSweep, "a1", pause, call{"patch sweep a1", "", by, pause}),
		call1(c.DeleteSweep, "a1", call{"delete sweep", "", by, "a1"}),
		call2(c.SweepBaseline, "a1", made, call{"baseline of sweep a1", "", by, made}),
	}
}

// fileCalls are the downloads.
func fileCalls(c *api.Client) []clientCall {
	a := api.ReportSide{Baseline: "of 2026+1", Mode: api.ModeRoundRobin, Speculation: api.SpeculationOff}
	b := api.ReportSide{Baseline: "this target", Arm: "round robin"}
	turns := func(ctx context.Context, w io.Writer) error { return c.TurnsCSV(ctx, w, "twin", 12) }
	seconds := func(ctx context.Context, w io.Writer) error { return c.SweepSeconds(ctx, w, "a1") }
	all := []clientCall{
		file(turns, "id,ttft\n1,0.2\n", call{"turns", "twin", "", int64(12)}),
		file(seconds, "id,ttft\n1,0.2\n", call{"seconds", "", "", "a1"}),
	}
	for _, f := range api.ReportFormats {
		sweep := func(ctx context.Context, w io.Writer) error { return c.SweepReport(ctx, w, "a1", f) }
		two := func(ctx context.Context, w io.Writer) error { return c.Report(ctx, w, a, b, f) }
		all = append(all, file(sweep, reports[f], call{"report of a sweep as " + string(f), "", "", "a1"}),
			file(two, reports[f], call{"report as " + string(f), "", "", sides{a, b}}))
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
// unexpected error stays in the log. A target that cannot serve has its reason.
func TestBackendErrors(t *testing.T) {
	b := &recorder{ready: errors.New("lane main: connection refused; start the target")}
	client := newContract(t).client(start(t, b, nil), "")
	err := client.Ready(t.Context())
	require.ErrorIs(t, err, api.ErrUnavailable)
	require.EqualError(t, err, b.ready.Error())
	field := &api.FieldError{Field: "concurrency", Value: "5000", Allowed: "1 to 1000 (max_concurrency)"}
	for _, call := range everyCall(client) {
		switch call.received.name {
		case "", "cluster", "history", "shadow", "baselines", "simulations", "sweeps":
			continue // it cannot fail
		}
		for _, want := range []error{api.ErrNotFound, api.ErrConflict, api.ErrUnavailable} {
			b.err = errors.Join(errors.New("the reason"), want)
			_, err := call.do(t.Context())
			require.ErrorIs(t, err, want, call.received.name)
			require.ErrorContains(t, err, "the reason", call.received.name)
		}
		b.err = field
		_, err := call.do(t.Context())
		require.Equal(t, field, err, call.received.name)
		b.err = errors.New("/secret/path: disk on fire")
		_, err = call.do(t.Context())
		var p *api.ProblemError
		require.ErrorAs(t, err, &p, call.received.name)
		require.Equal(t, http.StatusInternalServerError, p.Status)
		require.NotContains(t, err.Error(), "secret")
	}
}

// Every call on an unknown lane returns that there is none. Stored data of a former lane can still be listed.
func TestUnknownLane(t *testing.T) {
	b := &recorder{lost: fmt.Errorf("%w: no lane of this name", api.ErrNotFound)}
	client := newContract(t).client(start(t, b, nil), "")
	for _, call := range everyCall(client) {
		if call.received.lane == "" || call.received.name == "conversations" || call.received.name == "events" {
			continue
		}
		_, err := call.do(t.Context())
		require.ErrorIs(t, err, api.ErrNotFound, call.received.name)
		require.ErrorContains(t, err, "no lane of this name", call.received.name)
	}
	require.Empty(t, b.last())
}
