package cluster

import (
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/promtest"
	"kvbooth/sidecar/api"
)

func TestInvalidURLsAreRefused(t *testing.T) {
	for _, raw := range []string{"", "localhost:8000", "ftp://x", "http://", "http://a b", "://"} {
		var field *api.FieldError
		_, err := NewDirect(raw, nil, nil)
		require.ErrorAs(t, err, &field, raw)
		require.Equal(t, "target.url", field.Field)
		_, err = NewDirect("http://x", []string{raw}, nil)
		require.ErrorAs(t, err, &field, raw)
		require.Equal(t, "cluster.metrics_urls", field.Field)
		_, err = NewPrometheus(raw, Scope{}, nil)
		require.ErrorAs(t, err, &field, raw)
		require.Equal(t, "cluster.prometheus_url", field.Field)
		_, err = NewPinned(raw, nil, nil, nil)
		require.ErrorAs(t, err, &field, raw)
		_, err = NewSimulated(raw, nil, nil)
		require.ErrorAs(t, err, &field, raw)
		_, err = Probe(t.Context(), raw, nil)
		require.ErrorAs(t, err, &field, raw)
	}
}

func TestDirectPages(t *testing.T) {
	d, err := NewDirect("http://host:8000/v1/",
		[]string{"http://w:1", "http://w:1/metrics", "http://w:2/other?x=1", "http://host:8000/metrics"}, nil)
	require.NoError(t, err)
	var pages []string
	for _, page := range d.pages {
		pages = append(pages, page.String())
	}
	require.Equal(t, []string{"http://host:8000/metrics", "http://w:1/metrics", "http://w:2/other?x=1"}, pages,
		"each once")

	for _, raw := range []string{
		"http://host/a%2Fb/v1/chat/completions?key=1", "http://host/a%2Fb/v1/",
		"http://host/a%2Fb/chat/completions",
	} {
		d, err = NewDirect(raw, nil, nil)
		require.NoError(t, err)
		require.Equal(t, "http://host/a%2Fb/metrics", d.pages[0].String(), "path of the target as its client writes it")
	}

	d, err = NewDirect("http://host:8000", []string{"http://w:1", NoTarget}, nil)
	require.NoError(t, err)
	require.Len(t, d.pages, 1)
	require.Equal(t, "http://w:1/metrics", d.pages[0].String())
	d, err = NewDirect("http://host:8000", []string{NoTarget}, nil)
	require.NoError(t, err, "the workers may come from the turns alone")
	samples, err := d.Fetch(t.Context())
	require.Empty(t, samples)
	require.EqualError(t, err, "cluster.metrics_urls names no page to read (no-target)")
}

// A reading without samples returns the reason in time.
func TestDirectFailures(t *testing.T) {
	for want, do := range map[string]func(*http.Request) (*http.Response, error){
		"answered 404 Not Found":            scene{}.RoundTrip,
		"answered 401 Unauthorized":         answers(http.StatusUnauthorized, ""),
		"not in the Prometheus text format": answers(http.StatusOK, "<html><body>hi</body></html>"),
		"no metrics of Dynamo":              answers(http.StatusOK, "go_goroutines 7\n"),
		"no answer in time":                 silent,
	} {
		synctest.Test(t, func(t *testing.T) {
			direct, err := NewDirect("http://frontend:8000", nil, &http.Client{Transport: &fakeTransport{do: do}})
			require.NoError(t, err)
			begun := time.Now()
			samples, err := direct.Fetch(t.Context())
			require.Empty(t, samples)
			require.ErrorContains(t, err, "http://frontend:8000/metrics: "+want)
			require.LessOrEqual(t, time.Since(begun), pageTimeout)
		})
	}
}

// The page of TensorRT-LLM's own server is JSON, and named with the one in the right form.
func TestJSONPageIsNamed(t *testing.T) {
	for _, page := range []string{
		`[{"gpuMemUsage":1,"iter":1,"numActiveRequests":3,"kvCacheStats":{"usedNumBlocks":10}}]`, "[]", "[\n]\n", " {}",
		"[" + strings.Repeat(`{"iter":1},`, maxLine) + "{}]",
	} {
		d, err := NewDirect("http://trtllm:8000", nil, &http.Client{Transport: scene{"trtllm:8000": page}})
		require.NoError(t, err)
		samples, err := d.Fetch(t.Context())
		require.Empty(t, samples)
		require.ErrorContains(t, err, "it is JSON, such as the iterations of TensorRT-LLM; trtllm-serve has its Prometheus "+
			"page at /prometheus/metrics")
	}
}

// Exemplars follow the value of a sample in OpenMetrics.
func TestExemplarsAreRead(t *testing.T) {
	page := `vllm:num_requests_running{engine="0",model_name="m"} 4
vllm:prefix_cache_queries_total{model_name="m"} 200 # {trace_id="a}b"} 1.5 1790000000.123
vllm:prefix_cache_hits_total{model_name="a # {b"} 50 1790000000 # {} 1
vllm:request_queue_time_seconds_count 7 # {trace_id="x",span_id="y"} 0.67
# EOF
`
	d, err := NewDirect("http://w:1", nil, &http.Client{Transport: scene{"w:1": page}})
	require.NoError(t, err)
	samples, err := d.Fetch(t.Context())
	require.NoError(t, err)
	values := map[string]float64{}
	for _, s := range samples {
		values[s.Name] = s.Value
	}
	require.Equal(t, map[string]float64{
		"vllm:num_requests_running": 4, "vllm:prefix_cache_queries_total": 200, "vllm:prefix_cache_hits_total": 50,
		"vllm:request_queue_time_seconds_count": 7,
	}, values)
}

func TestPrometheusFailures(t *testing.T) {
	success := func(data string) string { return `{"status":"success","data":{` + data + `}}` }
	for want, do := range map[string]func(*http.Request) (*http.Response, error){
		`has scraped no metrics of Dynamo, TensorRT-LLM, vLLM, SGLang or DCGM in namespace "booth"`: answers(200,
			success(`"resultType":"vector","result":[]`)),
		"answers a query for a vector with": answers(200, success(`"resultType":"scalar","result":[1,"2"]`)),
		"query timed out": answers(422,
			`{"status":"error","errorType":"execution","error":"query timed out"}`),
		"answered 503 Service Unavailable":    answers(503, "<html>overloaded</html>"),
		"answered 404 Not Found":              answers(404, ""),
		"larger than 16 MiB":                  answers(200, strings.Repeat(" ", maxBody+1)),
		"not an answer of the Prometheus API": answers(200, "<html>log in first</html>"),
	} {
		transport := &fakeTransport{do: do}
		source, err := NewPrometheus("http://prometheus:9090", Scope{Namespace: "booth"}, &http.Client{Transport: transport})
		require.NoError(t, err)
		samples, err := source.Fetch(t.Context())
		require.Empty(t, samples)
		require.ErrorContains(t, err, want)
		transport.use(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		})
		_, err = source.Fetch(t.Context())
		require.EqualError(t, err, "Prometheus at http://prometheus:9090: connection refused", "the same every time")
	}
}

// The query selects every metric, within the configured namespace and graph. The name of another graph may begin with
// that graph's name.
func TestPrometheusQueryScope(t *testing.T) {
	one := promQuery(Scope{Namespace: `a"b`})
	require.Contains(t, one, `,namespace="a\"b"} or {__name__=~"DCGM_FI_DEV_GPU_UTIL|`)
	require.Contains(t, one, `,exported_namespace="a\"b"} or on(__name__, job, instance) (process_start_time_seconds and `)
	require.Equal(t, `up{namespace="a\"b"} == 0 or up{job=~".*dcgm.*"} == 0 or count(up)`,
		upQuery(Scope{Namespace: `a"b`}))
	require.Equal(t, "up == 0 or count(up)", upQuery(Scope{}))

	wantFrom := func(instances ...string) (all []string) {
		for _, each := range instances {
			for _, name := range []string{"DCGM_FI_DEV_GPU_UTIL", "process_start_time_seconds", "vllm:num_requests_running"} {
				all = append(all, name+" "+each)
			}
		}
		return all
	}
	ask := promtest.On(t, `
vllm:num_requests_running{namespace="a",job="j",instance="one"} 1
vllm:num_requests_running{namespace="b",job="j",instance="two"} 1
process_start_time_seconds{namespace="a",job="j",instance="one"} 1
process_start_time_seconds{namespace="b",job="j",instance="two"} 1
process_start_time_seconds{namespace="a",job="j",instance="another"} 1
DCGM_FI_DEV_GPU_UTIL{namespace="gpus",exported_namespace="a",job="d",instance="one"} 1
vllm:num_requests_running{namespace="c",pod="booth-worker-0",job="j",instance="main"} 1
vllm:num_requests_running{namespace="c",pod="booth-twin-worker-0",job="j",instance="twin"} 1
process_start_time_seconds{namespace="c",pod="booth-worker-0",job="j",instance="main"} 1
process_start_time_seconds{namespace="c",pod="booth-twin-worker-0",job="j",instance="twin"} 1
DCGM_FI_DEV_GPU_UTIL{namespace="gpus",pod="dcgm",exported_namespace="c",exported_pod="booth-worker-0",job="d",instance="main"} 1
DCGM_FI_DEV_GPU_UTIL{namespace="gpus",pod="dcgm",exported_namespace="c",exported_pod="booth-twin-worker-0",job="d",instance="twin"} 1
`)
	for scope, want := range map[Scope][]string{
		{Namespace: "a"}: wantFrom("one"),
		{Namespace: "b"}: {"process_start_time_seconds two", "vllm:num_requests_running two"},
		{Namespace: "c"}: wantFrom("main", "twin"),
		{Namespace: "c", Graph: "booth", ExcludeGraph: "booth-twin"}: wantFrom("main"),
		{Namespace: "c", Graph: "booth-twin", ExcludeGraph: "booth"}: wantFrom("twin"),
		{}: append(wantFrom("one", "main", "twin"), "process_start_time_seconds two", "vllm:num_requests_running two"),
	} {
		var got []string
		for _, s := range ask(promQuery(scope)) {
			got = append(got, string(s.Metric["__name__"]+" "+s.Metric["instance"]))
		}
		require.ElementsMatch(t, want, got, scope)
	}
}
