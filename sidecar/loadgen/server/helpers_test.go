package server

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/sidecar/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "a-token-for-tests"

// call is a call that the backend received.
type call struct {
	name, lane, by string
	req            any
}

// recorder is a Backend that records its calls. It returns values with every field filled, or err.
type recorder struct {
	mu    sync.Mutex
	calls []call
	err   error
	lost  error // returned by Lane in place of a lane
	ready error
	csv   string // what TurnsCSV writes before it returns err
	who   string // requested the last simulation
	// follow, when it is closed, ends those that are followed.
	follow chan struct{}
	subs   map[chan []byte]bool
}

func (b *recorder) note(c call) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, c)
	return b.err
}

// record records a call and returns a sample.
func record[T any](b *recorder, c call) (T, error) { return sample[T](), b.note(c) }

// show records a call that cannot fail.
func show[T any](b *recorder, c call) T {
	v, _ := record[T](b, c)
	return v
}

// last returns the newest call, and the zero value if there was none.
func (b *recorder) last() call {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.calls) == 0 {
		return call{}
	}
	return b.calls[len(b.calls)-1]
}

func (b *recorder) StatusJSON() ([]byte, error)    { return json.Marshal(sample[api.Status]()) }
func (b *recorder) SnapshotJSON() ([]byte, error)  { return json.Marshal(sample[api.Snapshot]()) }
func (b *recorder) Settings() api.Settings         { return sample[api.Settings]() }
func (b *recorder) Ready() error                   { return b.ready }
func (b *recorder) Lane(name string) (Lane, error) { return &laneRecorder{b, name}, b.lost }

// laneRecorder is the Lane of a requested name.
type laneRecorder struct {
	*recorder
	lane string
}

func (l *laneRecorder) state(name, by string, req any) (api.State, error) {
	return record[api.State](l.recorder, call{name, l.lane, by, req})
}

func (l *laneRecorder) Start(_ context.Context, by string, req api.StartRequest) (api.State, error) {
	return l.state("start", by, req)
}

func (l *laneRecorder) Stop(_ context.Context, by string, req api.StopRequest) (api.State, error) {
	return l.state("stop", by, req)
}

func (l *laneRecorder) Patch(_ context.Context, by string, req api.WorkloadPatch) (api.State, error) {
	return l.state("patch", by, req)
}

func (l *laneRecorder) MeasureAnew(_ context.Context, by string, req api.MeasureRequest) (api.State, error) {
	return l.state("measure anew", by, req)
}

func (l *laneRecorder) SetMode(_ context.Context, by string, req api.ModeRequest) (api.State, error) {
	return l.state("set mode", by, req)
}

func (l *laneRecorder) CancelMode(_ context.Context, by string) (api.State, error) {
	return l.state("cancel mode", by, nil)
}

func (l *laneRecorder) Cluster() api.Cluster {
	return show[api.Cluster](l.recorder, call{"cluster", l.lane, "", nil})
}

func (l *laneRecorder) History() api.History {
	return show[api.History](l.recorder, call{"history", l.lane, "", nil})
}

func (l *laneRecorder) Decisions(_ context.Context, limit int) (api.DecisionList, error) {
	return record[api.DecisionList](l.recorder, call{"decisions", l.lane, "", limit})
}

func (l *laneRecorder) Starter(id string) (api.Starter, error) {
	return record[api.Starter](l.recorder, call{"starter", l.lane, "", id})
}

func (l *laneRecorder) Comparison(name string) (api.Comparison, error) {
	return record[api.Comparison](l.recorder, call{"comparison", l.lane, "", name})
}

func (l *laneRecorder) PreviewTraffic(
	_ context.Context, req api.TrafficPreviewRequest,
) (api.TrafficPreview, error) {
	return record[api.TrafficPreview](l.recorder, call{"preview traffic", l.lane, "", req})
}

func (b *recorder) Conversations(_ context.Context, q api.ConversationQuery) (api.ConversationList, error) {
	return record[api.ConversationList](b, call{"conversations", q.Lane, "", q})
}

func (b *recorder) Conversation(_ context.Context, id string) (api.Conversation, error) {
	return record[api.Conversation](b, call{"conversation", "", "", id})
}

func (b *recorder) TurnsCSV(_ context.Context, w io.Writer, lane string, step int64) error {
	if b.csv != "" {
		_, _ = io.WriteString(w, b.csv)
	}
	return b.note(call{"turns", lane, "", step})
}

func (b *recorder) Events(_ context.Context, lane string, limit int) ([]api.Event, error) {
	return sample[api.EventList]().Events, b.note(call{"events", lane, "", limit})
}

func (b *recorder) Baselines() []api.Baseline {
	return show[api.BaselineList](b, call{name: "baselines"}).Baselines
}

func (b *recorder) Baseline(name string) (api.Baseline, error) {
	return record[api.Baseline](b, call{"baseline", "", "", name})
}

func (b *recorder) SaveBaseline(_ context.Context, by string, req api.Baseline) (api.Baseline, error) {
	return req, b.note(call{"save baseline", "", by, req})
}

func (b *recorder) CheckBaseline(req api.Baseline) (api.Baseline, error) {
	return req, b.note(call{"check baseline", "", "", req})
}

func (b *recorder) MergeBaseline(_ context.Context, by string, req api.Baseline, dry bool) (api.Baseline, error) {
	if dry {
		return req, b.note(call{"check merged baseline", "", "", req})
	}
	return req, b.note(call{"merge baseline", "", by, req})
}

func (b *recorder) DeleteBaseline(_ context.Context, by, name string) ([]api.Baseline, error) {
	return sample[api.BaselineList]().Baselines, b.note(call{"delete baseline", "", by, name})
}

func (b *recorder) PatchSettings(_ context.Context, by string, p api.SettingsPatch) (api.Settings, error) {
	return record[api.Settings](b, call{"patch settings", "", by, p})
}

func (b *recorder) Simulations() api.SimulationList {
	return show[api.SimulationList](b, call{name: "simulations"})
}

func (b *recorder) StartSimulation(by, who string, req api.SimulationRequest) (api.SimulationResult, error) {
	b.mu.Lock()
	b.who = who
	b.mu.Unlock()
	return record[api.SimulationResult](b, call{"start simulation", "", by, req})
}

func (b *recorder) Simulation(id string) (api.SimulationResult, error) {
	return record[api.SimulationResult](b, call{"simulation", "", "", id})
}

func (b *recorder) CancelSimulation(id string) (api.SimulationResult, error) {
	return record[api.SimulationResult](b, call{"cancel simulation", "", "", id})
}

// FollowSimulation publishes one point, then the progress until follow ends.
func (b *recorder) FollowSimulation(ctx context.Context, id string, on func(string, any) error) error {
	if err := b.note(call{"follow simulation", "", "", id}); err != nil {
		return err
	}
	err := on("point", sample[api.SimulationPoint]())
	if err != nil {
		return err
	}
	select {
	case <-b.follow:
	case <-ctx.Done():
		return nil
	}
	return on("end", sample[api.SimulationEnd]())
}

func (l *laneRecorder) Shadow() api.Shadow {
	return show[api.Shadow](l.recorder, call{"shadow", l.lane, "", nil})
}

func (b *recorder) Twin() (api.Twin, error) { return record[api.Twin](b, call{name: "twin"}) }

func (b *recorder) ArrangeTwin(_ context.Context, by string, req api.TwinRequest) (api.Twin, error) {
	return record[api.Twin](b, call{"arrange twin", "", by, req})
}

func (b *recorder) StartShowcase(_ context.Context, by string, req api.ShowcaseRequest) (api.Twin, error) {
	return record[api.Twin](b, call{"start showcase", "", by, req})
}

func (b *recorder) StopShowcase(_ context.Context, by string) (api.Twin, error) {
	return record[api.Twin](b, call{"stop showcase", "", by, nil})
}

func (b *recorder) Sweeps(context.Context) api.SweepList {
	return show[api.SweepList](b, call{name: "sweeps"})
}

func (b *recorder) SweepOutlook(_ context.Context, lane string, req api.SweepRequest) (api.SweepOutlook, error) {
	return record[api.SweepOutlook](b, call{"sweep outlook", lane, "", req})
}

func (b *recorder) StartSweep(_ context.Context, by, lane string, req api.SweepRequest) (api.Sweep, error) {
	return record[api.Sweep](b, call{"start sweep", lane, by, req})
}

func (b *recorder) Sweep(_ context.Context, id string) (api.Sweep, error) {
	return record[api.Sweep](b, call{"sweep", "", "", id})
}

func (b *recorder) Runs(context.Context) ([]api.RunRecord, error) { return nil, nil }

func (b *recorder) RunHistory(_ context.Context, name string) (api.RunHistory, error) {
	return record[api.RunHistory](b, call{"runs", "", "", name})
}

func (b *recorder) AcceptRun(_ context.Context, id string, accepted bool) (api.RunRecord, error) {
	return record[api.RunRecord](b, call{"accept run " + id, "", "", accepted})
}

func (b *recorder) PatchSweep(_ context.Context, by, id string, p api.SweepPatch) (api.Sweep, error) {
	return record[api.Sweep](b, call{"patch sweep " + id, "", by, p})
}

func (b *recorder) DeleteSweep(_ context.Context, by, id string) (api.SweepList, error) {
	return record[api.SweepList](b, call{"delete sweep", "", by, id})
}

func (b *recorder) SweepBaseline(_ context.Context, by, id string, req api.SweepBaselineRequest) (api.Baseline, error) {
	return record[api.Baseline](b, call{"baseline of sweep " + id, "", by, req})
}

func (b *recorder) WriteSeconds(_ context.Context, w io.Writer, id string) error {
	if b.csv != "" {
		_, _ = io.WriteString(w, b.csv)
	}
	return b.note(call{"seconds", "", "", id})
}

// sides are the two results of a requested report.
type sides struct{ a, b api.ReportSide }

func (b *recorder) WriteSweepReport(_ context.Context, w io.Writer, id string, f api.ReportFormat) error {
	_, _ = io.WriteString(w, reports[f])
	return b.note(call{"report of a sweep as " + string(f), "", "", id})
}

func (b *recorder) WriteReport(_ context.Context, w io.Writer, a, other api.ReportSide, _ []api.LevelRange,
	f api.ReportFormat,
) error {
	_, _ = io.WriteString(w, reports[f])
	return b.note(call{"report as " + string(f), "", "", sides{a, other}})
}

// reports are what the recorder writes.
var reports = map[api.ReportFormat]string{
	api.ReportJSON: "{\"title\":\"trial\"}\n", api.ReportTSV: "level\tttft_p95\n", api.ReportMarkdown: "# Trial\n",
	api.ReportHTML: "<!doctype html><title>Trial</title>\n",
}

func (b *recorder) Subscribe() (<-chan []byte, func()) {
	c := make(chan []byte, 1)
	frame, _ := b.SnapshotJSON()
	c <- frame
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subs == nil {
		b.subs = map[chan []byte]bool{}
	}
	b.subs[c] = true
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subs, c)
	}
}

// publish replaces a frame that was not yet received.
func (b *recorder) publish(frame []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.subs {
		select {
		case <-c:
		default:
		}
		c <- frame
	}
}

func (b *recorder) subscribers() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.subs)
}

// sample returns a value with every field filled that satisfies the document.
func sample[T any]() T {
	var v T
	fill(reflect.ValueOf(&v).Elem())
	return v
}

// fill sets every field. Strings of a named type get the first value in the document.
func fill(v reflect.Value) {
	if v.Type() == level {
		v.Set(reflect.ValueOf(api.AtConversations(7)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint64:
		v.SetUint(1<<64 - 1)
	case reflect.Float64:
		v.SetFloat(0.25)
	case reflect.String:
		v.SetString("text")
		if schema := schemaOf(v.Type()); schema != nil {
			choose(v, schema)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		fillStruct(v)
	}
}

func fillStruct(v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)))
		return
	}
	schema := schemaOf(v.Type())
	if schema == nil { // an embedded type, whose fields are in the embedding type of the document
		schema = &openapi3.Schema{}
	}
	for f, value := range v.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		fill(value)
		if property := schema.Properties[name]; property != nil {
			choose(reflect.Indirect(value), property.Value)
		}
	}
	if b, ok := v.Addr().Interface().(*api.Baseline); ok {
		b.Name, b.Kind = "of 2026+1", "imported"
	}
}

// schemaOf returns the document's schema of a type, nil for a type that it does not name.
func schemaOf(t reflect.Type) *openapi3.Schema {
	doc, err := document31()
	if err != nil {
		panic(err)
	}
	ref := doc.Components.Schemas[t.Name()]
	if ref == nil {
		return nil
	}
	return ref.Value
}

// choose replaces a value that the schema does not allow by one that it does.
func choose(v reflect.Value, schema *openapi3.Schema) {
	switch {
	case len(schema.Enum) > 0 && v.Kind() == reflect.String:
		v.SetString(schema.Enum[0].(string))
	case schema.Min != nil && v.Kind() == reflect.Int:
		v.SetInt(max(v.Int(), int64(*schema.Min)))
	case schema.Min != nil && v.Kind() == reflect.Float64:
		v.SetFloat(max(v.Float(), *schema.Min))
	}
}

func options(b Backend) Options {
	return Options{
		Backend: b,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = io.WriteString(w, "up 1\n")
		}),
		ParseCSV: func(r io.Reader, name string) (api.Baseline, error) {
			text, err := io.ReadAll(r)
			return api.Baseline{Name: name, Kind: "imported", Notes: string(text), Rows: sample[api.Baseline]().Rows}, err
		},
		ParseJSON: func(r io.Reader, name string, run api.ModeState) (b api.Baseline, err error) {
			text, err := io.ReadAll(r)
			if err != nil {
				return b, err
			}
			if run != (api.ModeState{}) {
				return api.Baseline{Name: name, Kind: "imported", Rows: []api.BaselineRow{{
					Level: api.AtConversations(1),
					Mode:  run.Mode, Speculation: run.Speculation,
				}}}, nil
			}
			return b, json.Unmarshal(text, &b)
		},
	}
}

// newServer makes the server of a backend. change, if not nil, changes the options first.
func newServer(t testing.TB, b Backend, change func(*Options)) *Server {
	t.Helper()
	opts := options(b)
	if change != nil {
		change(&opts)
	}
	s, err := New(opts)
	require.NoError(t, err)
	return s
}

// start serves a backend over TCP.
func start(t testing.TB, b Backend, change func(*Options)) (base string) {
	t.Helper()
	s := newServer(t, b, change)
	ts := httptest.NewServer(s)
	t.Cleanup(func() {
		s.streams.end()
		ts.Close()
	})
	return ts.URL
}

func withToken(o *Options) { o.Token = token }

func publicPage(o *Options) { o.Token, o.PublicPage = token, true }

// request is a request that tests vary.
type request struct {
	method, path, body string
	header             map[string]string
	host, from         string // by default this machine
}

// do sends a request and returns the response with its body read.
func do(t testing.TB, s *Server, q request) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(cmp.Or(q.method, http.MethodGet), "http://localhost"+q.path, strings.NewReader(q.body))
	r.Host, r.RemoteAddr = cmp.Or(q.host, r.Host), cmp.Or(q.from, "127.0.0.1:1")
	if r.Method != http.MethodGet && r.Method != http.MethodDelete {
		r.Header.Set("Content-Type", "application/json")
	}
	for k, v := range q.header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	res := w.Result()
	for name, values := range w.Header() { // as a network changes header names
		res.Header[http.CanonicalHeaderKey(name)] = values
	}
	return res, w.Body.String()
}

// post is a request with a body. The path is relative to the API's prefix.
func post(path, body string, header map[string]string) request {
	return request{method: http.MethodPost, path: v1 + path, body: body, header: header}
}

// answer sends a request that must be answered with a status.
func answer(t testing.TB, s *Server, status int, q request) (*http.Response, string) {
	t.Helper()
	res, text := do(t, s, q)
	require.Equal(t, status, res.StatusCode, "%s %s %v: %s", q.method, q.path, q.header, text)
	return res, text
}

// refusal sends a request that must be refused, and returns its problem document.
func refusal(t testing.TB, s *Server, q request) api.Problem {
	t.Helper()
	res, text := do(t, s, q)
	res.Body = io.NopCloser(strings.NewReader(text))
	return readProblem(t, res)
}

// readProblem reads an answer that must be a problem document.
func readProblem(t testing.TB, res *http.Response) (p api.Problem) {
	t.Helper()
	defer res.Body.Close()
	require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
	require.NoError(t, json.NewDecoder(res.Body).Decode(&p))
	require.Equal(t, res.StatusCode, p.Status)
	require.NotEmpty(t, p.Title)
	require.NotEmpty(t, p.Detail)
	return p
}

func bearer(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}

func cookie(value string) map[string]string {
	return map[string]string{"Cookie": cookieName + "=" + value}
}

// routeCall is a request for a route.
type routeCall struct {
	route
	request
}

// everyRoute returns a request for each route, with a body where its method has one.
func everyRoute(s *Server) (all []routeCall) {
	for _, rt := range s.routes() {
		method, path, _ := strings.Cut(rt.pattern, " ")
		all = append(all, routeCall{rt, request{method: method, path: path, body: stop}})
	}
	return all
}
