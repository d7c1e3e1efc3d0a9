package server

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/sidecar/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "a-token-for-tests"

// call is what the backend heard.
type call struct {
	name, lane, by string
	req            any
}

// recorder is a Backend that notes what it hears and answers with values that
// have every field filled, or with err.
type recorder struct {
	mu    sync.Mutex
	calls []call
	err   error
	lost  error // what Lane gives in the place of a lane
	ready error
	csv   string // what TurnsCSV writes before it returns err
	who   string // asked for the last simulation
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

// last is the newest call, and none if there was none.
func (b *recorder) last() call {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.calls) == 0 {
		return call{}
	}
	return b.calls[len(b.calls)-1]
}

func (b *recorder) StatusJSON() ([]byte, error)   { return json.Marshal(sample[api.Status]()) }
func (b *recorder) SnapshotJSON() ([]byte, error) { return json.Marshal(sample[api.Snapshot]()) }
func (b *recorder) Settings() api.Settings        { return sample[api.Settings]() }
func (b *recorder) Ready() error                  { return b.ready }

func (b *recorder) Lane(name string) (Lane, error) {
	return &laneRecorder{b, name}, b.lost
}

// laneRecorder is the Lane of a name that the backend was asked for.
type laneRecorder struct {
	*recorder
	lane string
}

func (l *laneRecorder) state(name, by string, req any) (api.State, error) {
	return sample[api.State](), l.note(call{name, l.lane, by, req})
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

func (l *laneRecorder) SetMode(_ context.Context, by string, req api.ModeRequest) (api.State, error) {
	return l.state("set mode", by, req)
}

func (l *laneRecorder) CancelMode(_ context.Context, by string) (api.State, error) {
	return l.state("cancel mode", by, nil)
}

func (l *laneRecorder) Cluster() api.Cluster {
	_ = l.note(call{"cluster", l.lane, "", nil}) // it cannot fail
	return sample[api.Cluster]()
}

func (l *laneRecorder) History() api.History {
	_ = l.note(call{"history", l.lane, "", nil}) // it cannot fail
	return sample[api.History]()
}

func (l *laneRecorder) Decisions(_ context.Context, limit int) (api.DecisionList, error) {
	return sample[api.DecisionList](), l.note(call{"decisions", l.lane, "", limit})
}

func (l *laneRecorder) Starter(id string) (api.Starter, error) {
	return sample[api.Starter](), l.note(call{"starter", l.lane, "", id})
}

func (l *laneRecorder) Comparison(name string) (api.Comparison, error) {
	return sample[api.Comparison](), l.note(call{"comparison", l.lane, "", name})
}

func (b *recorder) Conversations(_ context.Context, q api.ConversationQuery) (api.ConversationList, error) {
	return sample[api.ConversationList](), b.note(call{"conversations", q.Lane, "", q})
}

func (b *recorder) Conversation(_ context.Context, id string) (api.Conversation, error) {
	return sample[api.Conversation](), b.note(call{"conversation", "", "", id})
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
	_ = b.note(call{name: "baselines"}) // it cannot fail
	return sample[api.BaselineList]().Baselines
}

func (b *recorder) Baseline(name string) (api.Baseline, error) {
	return sample[api.Baseline](), b.note(call{"baseline", "", "", name})
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
	return sample[api.Settings](), b.note(call{"patch settings", "", by, p})
}

func (b *recorder) Simulations() api.SimulationList {
	_ = b.note(call{name: "simulations"}) // it cannot fail
	return sample[api.SimulationList]()
}

func (b *recorder) StartSimulation(by, who string, req api.SimulationRequest) (api.SimulationResult, error) {
	b.mu.Lock()
	b.who = who
	b.mu.Unlock()
	return sample[api.SimulationResult](), b.note(call{"start simulation", "", by, req})
}

func (b *recorder) Simulation(id string) (api.SimulationResult, error) {
	return sample[api.SimulationResult](), b.note(call{"simulation", "", "", id})
}

func (b *recorder) CancelSimulation(id string) (api.SimulationResult, error) {
	return sample[api.SimulationResult](), b.note(call{"cancel simulation", "", "", id})
}

// FollowSimulation tells of one point, then of the progress until follow ends.
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
	_ = l.note(call{"shadow", l.lane, "", nil}) // it cannot fail
	return sample[api.Shadow]()
}

func (b *recorder) Twin() (api.Twin, error) {
	return sample[api.Twin](), b.note(call{name: "twin"})
}

func (b *recorder) ArrangeTwin(_ context.Context, by string, req api.TwinRequest) (api.Twin, error) {
	return sample[api.Twin](), b.note(call{"arrange twin", "", by, req})
}

func (b *recorder) StartShowcase(_ context.Context, by string, req api.ShowcaseRequest) (api.Twin, error) {
	return sample[api.Twin](), b.note(call{"start showcase", "", by, req})
}

func (b *recorder) StopShowcase(_ context.Context, by string) (api.Twin, error) {
	return sample[api.Twin](), b.note(call{"stop showcase", "", by, nil})
}

func (b *recorder) Sweeps(context.Context) api.SweepList {
	_ = b.note(call{name: "sweeps"}) // it cannot fail
	return sample[api.SweepList]()
}

func (b *recorder) StartSweep(_ context.Context, by, lane string, req api.SweepRequest) (api.Sweep, error) {
	return sample[api.Sweep](), b.note(call{"start sweep", lane, by, req})
}

func (b *recorder) Sweep(_ context.Context, id string) (api.Sweep, error) {
	return sample[api.Sweep](), b.note(call{"sweep", "", "", id})
}

func (b *recorder) PatchSweep(_ context.Context, by, id string, p api.SweepPatch) (api.Sweep, error) {
	return sample[api.Sweep](), b.note(call{"patch sweep " + id, "", by, p})
}

func (b *recorder) DeleteSweep(_ context.Context, by, id string) (api.SweepList, error) {
	return sample[api.SweepList](), b.note(call{"delete sweep", "", by, id})
}

func (b *recorder) SweepBaseline(_ context.Context, by, id string, req api.SweepBaselineRequest) (api.Baseline, error) {
	return sample[api.Baseline](), b.note(call{"baseline of sweep " + id, "", by, req})
}

func (b *recorder) WriteSeconds(_ context.Context, w io.Writer, id string) error {
	if b.csv != "" {
		_, _ = io.WriteString(w, b.csv)
	}
	return b.note(call{"seconds", "", "", id})
}

// sides are the two results that a report was asked for.
type sides struct{ a, b api.ReportSide }

func (b *recorder) WriteSweepReport(_ context.Context, w io.Writer, id string, f api.ReportFormat) error {
	_, _ = io.WriteString(w, reports[f])
	return b.note(call{"report of a sweep as " + string(f), "", "", id})
}

func (b *recorder) WriteReport(_ context.Context, w io.Writer, a, other api.ReportSide, f api.ReportFormat) error {
	_, _ = io.WriteString(w, reports[f])
	return b.note(call{"report as " + string(f), "", "", sides{a, other}})
}

// reports are what the recorder writes.
var reports = map[api.ReportFormat]string{
	api.ReportJSON: "{\"title\":\"trial\"}\n", api.ReportTSV: "level\tttft_p95\n", api.ReportMarkdown: "# Trial\n", api.ReportHTML: "<!doctype html><title>Trial</title>\n",
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

// publish puts a frame in the place of one not yet taken.
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

// sample is a value with every field filled that the document would let through.
func sample[T any]() T {
	var v T
	fill(reflect.ValueOf(&v).Elem())
	return v
}

var sampleText = map[reflect.Type]string{
	reflect.TypeFor[api.Mode]():               "kv",
	reflect.TypeFor[api.Speculation]():        "off",
	reflect.TypeFor[api.ErrorClass]():         "stall",
	reflect.TypeFor[api.TurnStatus]():         "ok",
	reflect.TypeFor[api.ConversationStatus](): "active",
	reflect.TypeFor[api.Phase]():              "running",
	reflect.TypeFor[api.Verdict]():            "ok",
	reflect.TypeFor[api.MemberState]():        "late",
	reflect.TypeFor[api.Lookup]():             "exact",
	reflect.TypeFor[api.Outcome]():            "better",
	reflect.TypeFor[api.EventKind]():          "start",
	reflect.TypeFor[api.TargetKind]():         "real",
	reflect.TypeFor[api.QuestionerKind]():     "model",
	reflect.TypeFor[api.ModeSource]():         "operator",
	reflect.TypeFor[api.Limiter]():            "target_rps",
	reflect.TypeFor[api.Vendor]():             "neutral",
	reflect.TypeFor[api.SimulationState]():    "running",
	reflect.TypeFor[api.SweepKind]():          "trial",
	reflect.TypeFor[api.SweepOrder]():         "interleaved",
	reflect.TypeFor[api.SweepState]():         "running",
	reflect.TypeFor[api.SweepPhase]():         "counting",
	reflect.TypeFor[api.SweepCause]():         "operator",
	reflect.TypeFor[api.ShadowSource]():       "token_ids",
	reflect.TypeFor[api.TwinArrangement]():    "apart",
	reflect.TypeFor[api.TwinEvidence]():       "alike",
	reflect.TypeFor[api.ShowcaseState]():      "running",
}

func fill(v reflect.Value) {
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
		if s, ok := sampleText[v.Type()]; ok {
			v.SetString(s)
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
	for _, f := range v.Fields() {
		fill(f)
	}
	switch b := v.Addr().Interface().(type) {
	case *api.Baseline:
		b.Name, b.Kind = "of 2026+1", "imported"
	case *api.SimulationResult:
		b.Basis = api.BasisSimulated
	case *api.SimulationRequest:
		b.KVTokens = new(100_000)
	case *api.SimulationPoint:
		b.Basis = api.BasisSimulated
	case *api.SweepRequest:
		b.Primary, b.Seconds, b.MaxSeconds = new("goodput"), new(240.), new(3600.)
	case *api.SweepNow:
		b.Arm = "pilot"
	case *api.SweepSpan:
		b.Arm, b.Cold = "a", "emptied"
	case *api.TrialDifference:
		b.Outcome, b.Basis = "running", "pairs"
	case *api.TrialState:
		b.Verdict = "time_over"
	case *api.LevelTest:
		b.Verdict = "open"
	case *api.Crossing:
		b.Below = "b"
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
				return api.Baseline{Name: name, Kind: "imported", Rows: []api.BaselineRow{{Concurrency: 1, Mode: run.Mode, Speculation: run.Speculation}}}, nil
			}
			return b, json.Unmarshal(text, &b)
		},
	}
}

// start serves a backend; change, if not nil, changes the options first.
func start(t *testing.T, b *recorder, change func(*Options)) (*Server, *httptest.Server) {
	t.Helper()
	opts := options(b)
	if change != nil {
		change(&opts)
	}
	s, err := New(opts)
	require.NoError(t, err)
	ts := httptest.NewServer(s)
	t.Cleanup(func() {
		s.streams.end()
		ts.Close()
	})
	return s, ts
}

func withToken(o *Options) { o.Token = token }

// request is one that the tests vary.
type request struct {
	method, path, body string
	header             map[string]string
	host               string
}

// do sends a request and gives the response with its body read.
func do(t *testing.T, base string, q request) (*http.Response, string) {
	t.Helper()
	if q.method == "" {
		q.method = http.MethodGet
	}
	r, err := http.NewRequest(q.method, base+q.path, strings.NewReader(q.body))
	require.NoError(t, err)
	if q.method != http.MethodGet && q.method != http.MethodDelete {
		r.Header.Set("Content-Type", "application/json")
	}
	for k, v := range q.header {
		r.Header.Set(k, v)
	}
	r.Host = q.host
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res, string(text)
}

// refusal sends a request that is to be refused, and gives its problem document.
func refusal(t *testing.T, base string, q request) api.Problem {
	t.Helper()
	res, text := do(t, base, q)
	require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"), text)
	var p api.Problem
	require.NoError(t, json.Unmarshal([]byte(text), &p))
	require.Equal(t, res.StatusCode, p.Status)
	require.NotEmpty(t, p.Title)
	return p
}

func bearer(t string, more ...string) map[string]string {
	h := map[string]string{"Authorization": "Bearer " + t}
	for i := 0; i < len(more); i += 2 {
		maps.Copy(h, map[string]string{more[i]: more[i+1]})
	}
	return h
}

func ptr[T any](v T) *T { return &v }

func readProblem(t *testing.T, res *http.Response) (p api.Problem) {
	t.Helper()
	defer res.Body.Close()
	require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
	require.NoError(t, json.NewDecoder(res.Body).Decode(&p))
	require.Equal(t, res.StatusCode, p.Status)
	return p
}
