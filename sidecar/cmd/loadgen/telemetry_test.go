//go:build unix

package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"kvbooth/sidecar/api"
)

// receiver is a server of OTLP over HTTP that keeps what it receives.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	metrics  map[string]*metrics.Metric // the latest of each name
	spans    map[string]*traces.Span    // by request id
	twice    []string                   // request ids of several spans
	resource map[string]string
}

func startReceiver(t *testing.T) *receiver {
	r := &receiver{metrics: map[string]*metrics.Metric{}, spans: map[string]*traces.Span{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	m, s := new(collectormetrics.ExportMetricsServiceRequest), new(collectortrace.ExportTraceServiceRequest)
	switch req.URL.Path {
	case "/v1/metrics":
		err = proto.Unmarshal(body, m)
	case "/v1/traces":
		err = proto.Unmarshal(body, s)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range m.GetResourceMetrics() {
		for _, scope := range of.GetScopeMetrics() {
			for _, one := range scope.GetMetrics() {
				r.metrics[one.GetName()] = one
			}
		}
	}
	for _, of := range s.GetResourceSpans() {
		r.resource = words(of.GetResource().GetAttributes())
		for _, scope := range of.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				id := words(span.GetAttributes())["kvbooth.request_id"]
				if r.spans[id] != nil {
					r.twice = append(r.twice, id)
				}
				r.spans[id] = span
			}
		}
	}
}

// words returns attributes as text.
func words(all []*common.KeyValue) map[string]string {
	texts := map[string]string{}
	for _, a := range all {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			texts[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			texts[a.GetKey()] = strconv.FormatInt(v.IntValue, 10)
		case *common.AnyValue_ArrayValue: // of one text here
			texts[a.GetKey()] = v.ArrayValue.GetValues()[0].GetStringValue()
		}
	}
	return texts
}

// newExporting returns a program with variables of the OpenTelemetry SDK. It runs in a process of its own, since the
// SDK reads the environment of its process.
func newExporting(t *testing.T, variables []string, args ...string) *program {
	t.Helper()
	p := newProcess(t, args...)
	p.cmd.Env = append(p.cmd.Env, variables...)
	return p
}

// Every turn is one span, whose ids the target received, and every counter and histogram is exported as on the page of
// metrics. Three of four turns end well.
func TestExportsTurnsAndMetrics(t *testing.T) {
	t.Parallel()
	r := startReceiver(t)
	exportsTo(t, r.URL, r)
}

// exportsTo runs a load generator that exports to an endpoint, from which a receiver gets the data.
func exportsTo(t *testing.T, endpoint string, r *receiver) {
	t.Helper()
	server := startTarget(t)
	server.failing.Store(1)
	var mu sync.Mutex
	parents := map[string]string{}
	seen := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		parents[req.Header.Get("X-Request-Id")] = req.Header.Get("Traceparent")
		mu.Unlock()
		server.ServeHTTP(w, req)
	}))
	t.Cleanup(seen.Close)
	p := newExporting(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_RESOURCE_ATTRIBUTES=room=hall"},
		"--concurrency=4", "--start").serve(seen.URL)
	p.eventually("turns have ended", p.serves(30))
	_, err := p.client.Stop(t.Context(), "", api.StopRequest{})
	require.NoError(t, err)
	var rows [][]string
	p.eventually("the turns are stored", func() bool {
		rows, err = csv.NewReader(strings.NewReader(p.turns())).ReadAll()
		require.NoError(t, err)
		totals := p.lane().Totals
		return int64(len(rows)-1) == totals.OK+totals.Errors+totals.Cancelled
	})
	families := p.families()
	p.endsWell()
	assert.NotContains(t, p.log.String(), "OpenTelemetry")

	p.eventually("the receiver has all", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.spans) >= len(rows)-1 && len(r.metrics) >= len(families)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	assert.Len(t, r.spans, len(rows)-1)
	assert.Empty(t, r.twice)
	assert.Equal(t, []string{"loadgen", api.ProgramVersion(), "hall"},
		[]string{r.resource["service.name"], r.resource["service.version"], r.resource["room"]})
	assert.Empty(t, parents["kvbooth-probe"])
	at, err := url.Parse(seen.URL)
	require.NoError(t, err)
	errors := 0
	for _, row := range rows[1:] {
		turn := map[string]string{}
		for i, name := range rows[0] {
			turn[name] = row[i]
		}
		id := turn["request_id"]
		span := r.spans[id]
		require.NotNil(t, span, id)
		if turn["status"] == "error" {
			errors++
		}
		matches(t, turn, span, at, parents[id])
	}
	assert.Positive(t, errors)
	for name, f := range families {
		if strings.HasPrefix(name, "loadgen_") && assert.NotNil(t, r.metrics[name], name) {
			sameSeries(t, f, r.metrics[name])
		}
	}
}

// matches checks the span of a turn, which is a row of the table of turns. A turn that was not sent has no parent.
func matches(t *testing.T, turn map[string]string, span *traces.Span, at *url.URL, parent string) {
	t.Helper()
	id := turn["request_id"]
	if parent != "" {
		assert.Equal(t, parent, fmt.Sprintf("00-%x-%x-01", span.GetTraceId(), span.GetSpanId()), id)
	}
	assert.Equal(t, "chat llama", span.GetName())
	began, ended := timeOf(t, turn["started"]), timeOf(t, turn["ended"])
	assert.InDelta(t, ended.Sub(began).Seconds(), float64(span.GetEndTimeUnixNano()-span.GetStartTimeUnixNano())/1e9, .002)
	assert.InDelta(t, 0, time.Unix(0, int64(span.GetStartTimeUnixNano())).Sub(began).Seconds(), .001)
	got := words(span.GetAttributes())
	want := map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.request.model": "llama", "gen_ai.conversation.id": turn["conversation"],
		"server.address": at.Hostname(), "server.port": at.Port(), "kvbooth.turn": turn["turn"], "kvbooth.lane": "main",
		"kvbooth.mode": turn["mode"], "kvbooth.status": turn["status"], "error.type": turn["error_class"],
		"kvbooth.worker": turn["worker"], "gen_ai.usage.input_tokens": turn["prompt_tokens"],
		"gen_ai.usage.cache_read.input_tokens": turn["cached_tokens"],
		"gen_ai.response.finish_reasons":       turn["finish_reason"],
	}
	if turn["token_source"] == "usage" {
		want["gen_ai.usage.output_tokens"] = turn["output_tokens"]
	}
	for name, value := range want {
		assert.Equal(t, value, got[name], "%s of %s", name, id)
	}
	failed := span.GetStatus().GetCode() == traces.Status_STATUS_CODE_ERROR
	assert.Equal(t, turn["status"] == "error", failed, id)
	if turn["ttft_seconds"] == "" {
		assert.Empty(t, span.GetEvents(), id)
		return
	}
	require.Len(t, span.GetEvents(), 1, id)
	ttft, err := strconv.ParseFloat(turn["ttft_seconds"], 64)
	require.NoError(t, err)
	first := float64(span.GetEvents()[0].GetTimeUnixNano()-span.GetStartTimeUnixNano()) / 1e9
	assert.InDelta(t, ttft, first, .001, id)
}

func timeOf(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return at
}

// sameSeries checks the values of counters, and the counts and sums of histograms. Other metrics follow the clock.
func sameSeries(t *testing.T, f *dto.MetricFamily, exported *metrics.Metric) {
	t.Helper()
	want, got := map[string]float64{}, map[string]float64{}
	for _, m := range f.GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		switch f.GetType() {
		case dto.MetricType_COUNTER:
			want[fmt.Sprint(labels)] = m.GetCounter().GetValue()
		case dto.MetricType_HISTOGRAM:
			want[fmt.Sprint(labels)] = float64(m.GetHistogram().GetSampleCount())
			want[fmt.Sprint(labels, "sum")] = m.GetHistogram().GetSampleSum()
		}
	}
	for _, p := range exported.GetSum().GetDataPoints() {
		got[fmt.Sprint(words(p.GetAttributes()))] = p.GetAsDouble()
	}
	for _, p := range exported.GetHistogram().GetDataPoints() {
		got[fmt.Sprint(words(p.GetAttributes()))] = float64(p.GetCount())
		got[fmt.Sprint(words(p.GetAttributes()), "sum")] = p.GetSum()
	}
	for _, p := range exported.GetExponentialHistogram().GetDataPoints() {
		got[fmt.Sprint(words(p.GetAttributes()))] = float64(p.GetCount())
		got[fmt.Sprint(words(p.GetAttributes()), "sum")] = p.GetSum()
	}
	assert.InDeltaMapValues(t, want, got, 1e-9, f.GetName())
}

// A collector that refuses connections, and one that never answers, cost a run neither its result nor more than the
// time to close, and are logged once.
func TestExportEndsWithoutCollector(t *testing.T) {
	t.Parallel()
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, refusing.Close())
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	for name, address := range map[string]string{"refusing": refusing.Addr().String(), "silent": silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newExporting(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address, "OTEL_BSP_SCHEDULE_DELAY=50"},
				"--target-url="+startTarget(t).URL, "--turns-min=1", "--turns-max=2", "--concurrency=2", "--requests=20")
			began := time.Now()
			code, stdout, stderr := p.finish()
			assert.Equal(t, success, code, stderr)
			assert.Less(t, time.Since(began), 20*time.Second)
			assert.Contains(t, stdout, "ended by --requests")
			most := 1
			if name == "refusing" {
				most = 2 // the first error, and what was lost at the end
			}
			lines := strings.Count(stderr, "OpenTelemetry data was not exported completely")
			assert.Positive(t, lines, stderr)
			assert.LessOrEqual(t, lines, most, stderr)
			assert.Contains(t, stderr, "endpoint=http://"+address)
		})
	}
}

// Without an endpoint for traces, or with a sampler that drops them, requests have no header or say so.
func TestTraceParentFollowsTheEnvironment(t *testing.T) {
	t.Parallel()
	r := startReceiver(t)
	for name, test := range map[string]struct {
		variables []string
		want      string // the header's end
		spans     bool
	}{
		"metrics alone": {[]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=" + r.URL + "/v1/metrics"}, "", false},
		"no exporter":   {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + r.URL, "OTEL_TRACES_EXPORTER=none"}, "", false},
		"disabled":      {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + r.URL, "OTEL_SDK_DISABLED=true"}, "", false},
		"no sample": {
			[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + r.URL, "OTEL_TRACES_SAMPLER=always_off"}, "-00", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startTarget(t)
			var mu sync.Mutex
			var headers bytes.Buffer
			seen := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if h := req.Header.Get("Traceparent"); h != "" {
					mu.Lock()
					fmt.Fprintln(&headers, h)
					mu.Unlock()
				}
				server.ServeHTTP(w, req)
			}))
			t.Cleanup(seen.Close)
			code, _, stderr := newExporting(t, test.variables, "--target-url="+seen.URL, "--requests=4").finish()
			require.Equal(t, success, code, stderr)
			mu.Lock()
			defer mu.Unlock()
			if test.want == "" {
				assert.Empty(t, headers.String())
			} else {
				assert.Regexp(t, `^(00-[0-9a-f]{32}-[0-9a-f]{16}`+test.want+`\n){4}$`, headers.String())
			}
		})
	}
	t.Cleanup(func() { assert.Empty(t, r.spans) })
}

// Variables that the export cannot follow are refused before anything starts.
func TestExportRefusesVariables(t *testing.T) {
	t.Parallel()
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317"
	for want, variables := range map[string][]string{
		"OTEL_EXPORTER_OTLP_PROTOCOL: grpc is not allowed: http/protobuf": {endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: http/json is not allowed: http/protobuf": {
			endpoint, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json",
		},
		"OTEL_METRICS_EXPORTER: console is not allowed: otlp, or none": {endpoint, "OTEL_METRICS_EXPORTER=console"},
		"OTEL_EXPORTER_OTLP_ENDPOINT: collector:4318 is not allowed: a URL": {
			"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318",
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := newExporting(t, variables, someTarget).finish()
			assert.Equal(t, badInput, code)
			assert.Contains(t, stderr, want)
		})
	}
}
