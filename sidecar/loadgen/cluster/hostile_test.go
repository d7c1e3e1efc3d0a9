package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat/plausible"
)

// repeated returns a page of head and then lines, of size bytes.
func repeated(head string, line func(i int) string, size int) io.ReadCloser {
	read, write := io.Pipe()
	go func() {
		w := &bytes.Buffer{}
		w.WriteString(head)
		for i := 0; size > 0; i++ {
			w.WriteString(line(i))
			if w.Len() < 64<<10 {
				continue
			}
			size -= w.Len()
			if _, err := w.WriteTo(write); err != nil {
				return
			}
		}
		_, _ = w.WriteTo(write)
		write.Close()
	}()
	return read
}

// paged is a transport that answers every request with a page.
type paged func() io.ReadCloser

func (p paged) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Body: p(), Request: req}, nil
}

// Valid samples of a page count, invalid ones are left out and reported, and parsing takes
// less than the second until the next reading.
func TestHostilePagesAreBounded(t *testing.T) {
	head := workerPage("a", 4)
	const endless = 1 << 40
	for _, row := range []struct {
		name, want string
		size       int // of the lines after the head
		line       func(i int) string
		samples    int
	}{
		{"endless", "cut after 16 MiB", endless, func(int) string { return "x 1\n" }, 1},
		{"endless blanks", "cut after 16 MiB", endless, func(int) string { return strings.Repeat("\n", 64<<10) }, 1},
		{
			"a million families", "cut after 16 MiB", 50 << 20,
			func(i int) string { return fmt.Sprintf("# TYPE family_%d gauge\nfamily_%d{worker=\"a\"} 1\n", i, i) }, 1,
		},
		{"a million workers", "cut after 65536 samples", 10 << 20, func(i int) string {
			return workerPage(fmt.Sprintf("b%x", i), 1)
		}, maxSamples},
		{"a line of 100 MB", "too long, are left out", 15 << 20, func(int) string { return strings.Repeat("x", 1<<20) }, 1},
		{"an endless line", "cut after 16 MiB", endless, func(int) string { return strings.Repeat("x", 1<<20) }, 1},
		{"an endless label", "cut after 16 MiB", endless, func(i int) string {
			if i == 0 {
				return `dynamo_component_inflight_requests{worker_id="`
			}
			return "ffffffff"
		}, 1},
		{
			"a long label", "too long, are left out", 1,
			func(int) string { return workerPage(strings.Repeat("f", maxLabel+1), 4) }, 1,
		},
		{
			"65,536 lines that cannot be read", "cannot be read", 5 << 20,
			func(int) string { return workerInflight[0] + "{worker_id=\"a\" 1\n" }, 1,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			direct, err := NewDirect("http://frontend:8000", nil,
				&http.Client{Transport: paged(func() io.ReadCloser { return repeated(head, row.line, row.size) })})
			require.NoError(t, err)
			samples, err := direct.Fetch(t.Context())
			require.ErrorContains(t, err, row.want)
			require.LessOrEqual(t, len(err.Error()), 300, "it is shown")
			require.Len(t, samples, row.samples)
			h := history{}
			c := summarize(t.Context(), h.add(start, samples), api.SpeculationOff)
			require.Equal(t, row.samples, c.WorkerCount())
		})
	}
}

func TestImpossibleValuesAreLeftOut(t *testing.T) {
	before := plausible.Rejected()[plausible.Metrics]
	impossible := []string{
		"dynamo_frontend_queued_requests -1e308", "dynamo_frontend_queued_requests -1",
		"dynamo_frontend_inflight_requests 1e999",
		"dynamo_frontend_inflight_requests +Inf", "dynamo_frontend_cached_tokens_sum -5", "trtllm_kv_cache_utilization 55",
		`DCGM_FI_DEV_GPU_UTIL{gpu="0"} 101`, `DCGM_FI_DEV_FB_USED{gpu="0"} 1e300`,
	}
	for _, line := range impossible {
		c, problem := readPage(t, workerPage("a", 4, line, "trtllm_num_requests_waiting 3"))
		near(t, 4, c.Workers[0].Inflight, line)
		near(t, 3, c.Workers[0].Waiting, line)
		require.Nil(t, c.QueuedRouter, line)
		require.Nil(t, c.Workers[0].CacheUse, line)
		require.Contains(t, problem, "are left out", line)
	}
	require.Equal(t, before+int64(len(impossible)), plausible.Rejected()[plausible.Metrics], "every sample is counted")

	c, problem := readPage(t, workerPage("a", 4, "trtllm_num_requests_waiting NaN"))
	require.Nil(t, c.Workers[0].Waiting, "not known")
	require.Empty(t, problem)

	twice := workerPage("a", 4)
	c, _ = readPage(t, twice+twice+strings.ReplaceAll(twice, "} 4", "} 9"))
	near(t, 4, c.Inflight, "a series counts once")
}

// readPage returns the cluster of one page and the source's error.
func readPage(t *testing.T, page string) (api.Cluster, string) {
	t.Helper()
	direct, err := NewDirect("http://frontend:8000", nil, &http.Client{Transport: scene{"frontend:8000": page}})
	require.NoError(t, err)
	samples, err := direct.Fetch(t.Context())
	h := history{}
	c := summarize(t.Context(), h.add(start, samples), api.SpeculationOff)
	if err == nil {
		return c, ""
	}
	return c, err.Error()
}

// An invalid number does not affect the others of the answer.
func TestImpossibleValuesOfPrometheus(t *testing.T) {
	before := plausible.Rejected()[plausible.Prometheus]
	const sample = `{"metric":{"__name__":"%s","instance":"w:1"},"value":%s}`
	for _, value := range []string{
		`[1,"1e999"]`, `[1,"-1e308"]`, `[1,"+Inf"]`, `[1,"x"]`, `[1,7]`, `[1]`, `[]`, `7`, `null`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[`+sample+`,`+sample+`]}}`,
				queued[0], value, inflight[0], `[1,"12"]`)
		}))
		source, err := NewPrometheus(server.URL, Scope{}, server.Client())
		require.NoError(t, err)
		samples, err := source.Fetch(t.Context())
		server.Close()
		require.ErrorContains(t, err, "left out", value)
		require.Len(t, samples, 1, value)
		require.Equal(t, 12.0, samples[0].Value, value)
	}
	require.Equal(t, before+3, plausible.Rejected()[plausible.Prometheus], "only the samples with a valid number")
}

// A target that renames its series each second does not exhaust the memory.
func TestHistoryIsBounded(t *testing.T) {
	h := history{}
	for i := range 2 {
		samples := make([]Sample, maxSamples+1)
		for k := range samples {
			samples[k] = Sample{Name: fmt.Sprintf("x%d_%d_total", i, k), Value: 1}
		}
		h.add(start.Add(time.Duration(i)*time.Second), samples)
	}
	require.Len(t, h.series, maxSeries)
}

// No answer of a page or a Prometheus ends the process or exceeds the bounds.
func FuzzAnswers(f *testing.F) {
	f.Add(workerPage("a", 4, "# HELP x\n# TYPE x gauge", "trtllm_kv_cache_utilization 1e999",
		`vllm:num_requests_waiting{engine="\\"}",a=""} 2 1700000000`))
	f.Add(`{"status":"success","data":{"resultType":"vector","result":[{"metric":` +
		`{"__name__":"vllm:num_requests_waiting","a":"\u00e9"},"value":[1,"2"]}]}}`)
	f.Add(`{"status":"error","error":"query timed out"}`)
	f.Fuzz(func(t *testing.T, answer string) {
		client := &http.Client{Transport: answering(answer)}
		direct, err := NewDirect("http://frontend:8000", nil, client)
		require.NoError(t, err)
		prometheus, err := NewPrometheus("http://prometheus:9090", Scope{}, client)
		require.NoError(t, err)
		for _, source := range []Source{direct, prometheus} {
			samples, err := source.Fetch(t.Context())
			require.True(t, len(samples) > 0 || err != nil)
			again, _ := source.Fetch(t.Context())
			require.Len(t, again, len(samples), "from the cache")
			for _, s := range samples {
				r := wanted[s.Name]
				require.True(t, s.Value >= r.Min && s.Value <= r.Max, s)
			}
			h := history{}
			_, err = json.Marshal(summarize(t.Context(), h.add(start, samples), api.SpeculationOff))
			require.NoError(t, err)
		}
	})
}
