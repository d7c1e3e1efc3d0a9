package baseline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

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
