package baseline

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

func TestReadCSVInAnyOrderWithMetadata(t *testing.T) {
	const file = "\ufeff# title: Our cluster, May\r\n# engine: vllm\r\n# model: Qwen3 32B\r\n# gpu: L40S\r\n# " +
		"workers: 8\r\n" +
		"# tensor_parallel: 2\r\n# speculation: draft\r\n# workload: " +
		"{\"turns\":{\"min\":3,\"max\":5},\"max_tokens\":512}\r\n" +
		"# taken after hours: twice\r\n" +
		"mode, kv_hit_rate_pct,concurrency,itl_p95_ms,gap_itl_p50_ms,measured,n,speculation\r\n" +
		"kv,91.5,20,33,30.5,2026-05-01T10:00:00+02:00,400,\r\n# half way\r\nkv,,10,,,,,eagle3\r\n"
	b, err := ReadCSV(strings.NewReader(file), "ours")
	require.NoError(t, err)
	golden(t, "csv", b)
}

func TestReadCSVWithoutMetadata(t *testing.T) {
	b, err := ReadCSV(strings.NewReader("concurrency,mode\n1,kv\n"), "plain")
	require.NoError(t, err)
	assert.Equal(t, "plain", b.Title)
	assert.Equal(t, api.SpeculationNotRecorded, b.Rows[0].Speculation)
	assert.Nil(t, b.Workload)
}

func TestReadCSVRefuses(t *testing.T) {
	const header = "concurrency,mode,ttft_p50_ms,kv_hit_rate_pct\n"
	for _, c := range []struct {
		file  string
		field string // of the error
		value string // quoted in the error
	}{
		{"", "file", "empty"},
		{"# only a comment\n", "file", "empty"},
		{"concurrency,ttft_p50_ms\n1,2\n", "line 1, header", "no column mode"},
		{"concurrency,mode,color\n", "line 1, header", "color"},
		{"concurrency,mode,mode\n", "line 1, header", "mode"},
		{header, "rows", "0"},
		{header + "1,kv,2\n", "line 2", "3 fields"},
		{header + "1,kv,2,3,4\n", "line 2", "5 fields"},
		{header + "0,kv,,\n", "line 2, column concurrency", "0"},
		{header + "100001,kv,,\n", "line 2, column concurrency", "100001"},
		{header + "1.5,kv,,\n", "line 2, column concurrency", "1.5"},
		{header + ",kv,,\n", "line 2, column concurrency", `""`},
		{header + "1,KV,,\n", "line 2, column mode", "KV"},
		{header + "1,kv,abc,\n", "line 2, column ttft_p50_ms", "abc"},
		{header + "1,kv,-1,\n", "line 2, column ttft_p50_ms", "-1"},
		{header + "1,kv,NaN,\n", "line 2, column ttft_p50_ms", "NaN"},
		{header + "1,kv,Inf,\n", "line 2, column ttft_p50_ms", "Inf"},
		{header + "1,kv,0x1p3,\n", "line 2, column ttft_p50_ms", "0x1p3"},
		{header + "1,kv,1e400,\n", "line 2, column ttft_p50_ms", "1e400"},
		{header + "1,kv,1e308,\n", "line 2, column ttft_p50_ms", "1e308"},
		{header + "1,kv,86400001,\n", "line 2, column ttft_p50_ms", "86400001"},
		{"concurrency,mode,tops\n1,kv,1e308\n", "line 2, column tops", "1e308"},
		{"concurrency,mode,itl_p95_ms,itl_p50_ms\n1,kv,20,30\n", "line 2, column itl_p95_ms", "20"},
		{header + "1,kv,,100.1\n", "line 2, column kv_hit_rate_pct", "100.1"},
		{"concurrency,mode,acceptance_rate_pct\n1,kv,101\n", "line 2, column acceptance_rate_pct", "101"},
		{header + "# a comment\n1,kv,,\n1,kv,5,\n", "line 4", "second row"}, // comments count as lines
		{header + "1,\"kv,,\n", "line 2, character 9", "this text"},
		{"# workers: many\n" + header, "line 1, workers", "many"},
		{"# chunked_prefill: on\n" + header, "line 1, chunked_prefill", "on"},
		{"# free_gpu_memory_fraction: 90\n" + header, "line 1, free_gpu_memory_fraction", "90"},
		{"# gpu: a\n# gpu: b\n" + header, "line 2, gpu", "b"},
		{"# workload: {\"color\":1}\n" + header, "line 1, workload", "color"},
		{"# speculation: some\n" + header, "line 1, speculation", "some"},
		{header + "1,\"k\xff\",,\n", "file", "encoding"},
		{header + strings.Repeat("#\n", maxBytes/2), "file", "bytes"},
		{"concurrency,mode,n\n" + manyRows(maxRows+1), "file", "more rows"},
	} {
		_, err := ReadCSV(strings.NewReader(c.file), "x")
		refused := refusal(t, err)
		assert.Equal(t, c.field, refused.Field, "%.80q", c.file)
		assert.Contains(t, refused.Value, c.value, "%.80q", c.file)
		assert.NotEmpty(t, refused.Allowed)
	}
	_, err := ReadCSV(strings.NewReader(header+"1,kv,1e308,\n"), "x")
	assert.ErrorContains(t, err, "a number from 0 to 86400000, or empty")
}

// manyRows returns n different rows.
func manyRows(n int) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "%d,%s,1\n", i%maxConcurrency+1, modes[i/maxConcurrency])
	}
	return s.String()
}

func TestReadCSVAcceptsLargestTable(t *testing.T) {
	b, err := ReadCSV(strings.NewReader("concurrency,mode,n\n"+manyRows(maxRows)), "large")
	require.NoError(t, err)
	assert.Len(t, b.Rows, maxRows)
}

func TestReadersReturnErrorOfSource(t *testing.T) {
	broken := errors.New("connection lost")
	_, err := ReadCSV(iotest.ErrReader(broken), "x")
	assert.ErrorIs(t, err, broken)
	_, err = ReadJSON(iotest.ErrReader(broken), "", api.ModeState{})
	assert.ErrorIs(t, err, broken)
}

func roundTrip(t *testing.T, b api.Baseline) api.Baseline {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, WriteCSV(&file, b))
	again, err := ReadCSV(bytes.NewReader(file.Bytes()), b.Name)
	require.NoError(t, err, file.String())
	return again
}

func TestWriteCSVRoundTrips(t *testing.T) {
	measured := api.Baseline{
		Name: api.ThisTarget, Title: "", Kind: KindImported, Notes: "title: this is a note\n\ngpu: so is this",
		Workload: &api.WorkloadShape{Turns: api.Range{Min: 3, Max: 5}, OutputTokens: &api.Distribution{
			Mean: 830, CV: .15,
		}, ThinkTime: new(2.), TargetRPS: new(0.), Timeouts: &api.Timeouts{Turn: 600}},
		Rows: []api.BaselineRow{
			{
				Level: api.AtConversations(1), Mode: api.ModeKV, Speculation: api.SpeculationOff,
				// values whose neighbors in milliseconds are many digits long
				TTFT: api.Percentiles{P50: new(0.1 + 0.2), P95: new(1.0 / 3)},
				TPOT: api.Percentiles{P50: new(math.SmallestNonzeroFloat64), P95: new(math.Nextafter(maxSeconds, 0))},
				ITL:  api.Percentiles{P50: new(0.0)}, KVHitRatio: new(math.Nextafter(1, 0)),
				AcceptanceRate: new(2.0 / 3), TokensPerStep: new(1.0), GPUMemoryBytes: new(140e9 / 3),
				N: 12, Measured: new(time.Date(2026, 11, 1, 2, 3, 4, 567, time.UTC)),
			},
		},
	}
	for _, b := range []api.Baseline{h200(), h100(), measured} {
		b.Kind = KindImported
		assert.Equal(t, b, roundTrip(t, b))
	}
}

func TestWriteCSVLooksLikeTheRecordedTables(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, WriteCSV(&file, h200()))
	assert.Contains(t, file.String(),
		"\n60,kv,not_recorded,248.7,445.8,27,31,26.2,27.1,24326,27674.4,2262.8,91.6,2.57,,,,,,,,,,,,,,\n")
	for _, none := range []string{"gap_itl", "acceptance", "tokens_per_step", "gpu_memory_bytes"} {
		assert.NotContains(t, file.String(), none, "columns without a value are left out")
	}
}

func TestWriteCSVRefusesUnreadableBaselines(t *testing.T) {
	refusal(t, WriteCSV(&bytes.Buffer{}, api.Baseline{Name: "x", Kind: KindMeasured}))
}

func FuzzReadCSV(f *testing.F) {
	for _, b := range Builtin() {
		text, err := data.ReadFile("data/" + b.Name + ".csv")
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte("# title: a\n# note: gpu: b\n# workload: " +
		"{\"turns\":{\"min\":1,\"max\":2}}\nconcurrency,mode,tops,measured,n\n1,kv,1e-5,2026-01-02T03:04:05.6+07:00,8\n"))
	f.Add([]byte("\ufeffmode,concurrency,speculation,rps\r\n\"kv\", 7 ,eagle3,1e9\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := ReadCSV(bytes.NewReader(text), "fuzzed")
		if err != nil {
			return
		}
		assert.Equal(t, b, roundTrip(t, b))
	})
}

// A table may be separated by tabs. That of a report has other columns and units, and keeps its intervals.
func TestReadsTabSeparatedValues(t *testing.T) {
	read := func(text string) (api.Baseline, error) { return ReadCSV(strings.NewReader(text), "table") }
	b, err := read("# title: A sweep\nconcurrency\tmode\tttft_p95_ms\tkv_hit_rate_pct\n60\tkv\t445.8\t91.6\n")
	require.NoError(t, err)
	assert.Equal(t, "A sweep", b.Title)
	assert.InDelta(t, .4458, *b.Rows[0].TTFT.P95, 1e-12)
	assert.InDelta(t, .916, *b.Rows[0].KVHitRatio, 1e-12)

	b, err = read("side\tbaseline\tconcurrency\tmode\tspeculation\tn\tseconds\t" +
		"ttft_p95\tttft_p95_low\tttft_p95_high\tadvantage_ttft_p95\toutcome_ttft_p95\tkv_hit_ratio\n" +
		"KV-aware\tsweep\t60\tkv\toff\t900\t300\t0.4458\t0.44\t0.45\t0.32\tbetter\t0.916\n" +
		"Round-robin\tsweep\t60\tround_robin\toff\t0\t0\t0.6554\t\t\t\t\t\n")
	require.NoError(t, err)
	require.Len(t, b.Rows, 2)
	kv, roundRobin := b.Rows[1], b.Rows[0]
	assert.InDelta(t, .4458, *kv.TTFT.P95, 1e-12)
	assert.Equal(t, &[2]float64{.44, .45}, kv.Intervals.TTFT.P95)
	assert.Equal(t, []any{900, 300.}, []any{kv.N, kv.Seconds})
	assert.InDelta(t, .916, *kv.KVHitRatio, 1e-12)
	assert.Nil(t, roundRobin.Intervals)

	for text, want := range map[string]string{
		"concurrency\tmode\tttft_p95\n60\tkv\t1\n":                           `line 1, header: "ttft_p95" is not allowed`,
		"side\tconcurrency\tmode\tttft_p95_ms\nx\t60\tkv\t1\n":               `line 1, header: "ttft_p95_ms" is not allowed`,
		"side\tconcurrency\tmode\tttft_p95\nx\t60\tkv\t-1\n":                 `line 2, column ttft_p95: "-1" is not allowed`,
		"side\tconcurrency\tmode\tttft_p95_low\nx\t60\tkv\tlow\n":            `line 2, column ttft_p95_low: "low" is not allowed`,
		"side\tconcurrency\tmode\nA\t60\tkv\nB\t60\tkv\n":                    "each concurrency, mode and speculation once",
		"side\tconcurrency\tmode\tttft_p95_low\tttft_p95\nA\t60\tkv\t2\t1\n": "",
	} {
		_, err := read(text)
		if want == "" {
			assert.Error(t, err, text)
			continue
		}
		assert.ErrorContains(t, err, want, text)
	}
}

// Files of former versions have earlier names.
func TestReadEarlierNames(t *testing.T) {
	const shape = `{"turns":{"min":3,"max":5},"max_tokens":64,"think_seconds":2}`
	b, err := ReadJSON(strings.NewReader(`{"name":"x","workload":`+shape+`,"rows":[{"concurrency":1,"mode":"kv"}]}`), "",
		api.ModeState{})
	require.NoError(t, err)
	require.Equal(t, new(2.), b.Workload.ThinkTime)
	b, err = ReadCSV(strings.NewReader("# workload: "+shape+"\nconcurrency,mode\n1,kv\n"), "x")
	require.NoError(t, err)
	require.Equal(t, new(2.), b.Workload.ThinkTime)
}
