package report

import (
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	naming "github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

// suites is a JUnit report as its readers see it. A missing number is a failure to parse it.
type suites struct {
	Suite struct {
		Name       string     `xml:"name,attr"`
		Tests      string     `xml:"tests,attr"`
		Failures   string     `xml:"failures,attr"`
		Errors     string     `xml:"errors,attr"`
		Skipped    string     `xml:"skipped,attr"`
		Time       string     `xml:"time,attr"`
		Properties []property `xml:"properties>property"`
		Cases      []struct {
			Name      string    `xml:"name,attr"`
			Classname string    `xml:"classname,attr"`
			Failure   *property `xml:"failure"`
			Error     *property `xml:"error"`
			Skipped   *property `xml:"skipped"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

type property struct {
	Name    string `xml:"name,attr"`
	Value   string `xml:"value,attr"`
	Message string `xml:"message,attr"`
}

// junitOf returns how the cases of a report ended, with the reason, and its properties. It checks the numbers.
func junitOf(t *testing.T, r Readable, name string) (ended, properties map[string]string) {
	t.Helper()
	text := written(t, r, JUnit)
	if dir := os.Getenv("JUNIT_DIR"); dir != "" { // for a validation against a schema
		require.NoError(t, os.WriteFile(dir+"/"+name+".xml", []byte(text), 0o600))
	}
	var s suites
	require.NoError(t, xml.Unmarshal([]byte(text), &s))
	ended, properties = map[string]string{}, map[string]string{}
	n := map[string]int{}
	for _, c := range s.Suite.Cases {
		assert.NotEmpty(t, c.Classname)
		how, reason := "passed", ""
		for kind, p := range map[string]*property{"failed": c.Failure, "error": c.Error, "skipped": c.Skipped} {
			if p != nil {
				how, reason = kind, p.Message
			}
		}
		n[how]++
		ended[c.Name] = how + strings.TrimSuffix(": "+reason, ": ")
	}
	assert.Equal(t, fmt.Sprint(len(s.Suite.Cases), n["failed"], n["error"], n["skipped"]),
		strings.Join([]string{s.Suite.Tests, s.Suite.Failures, s.Suite.Errors, s.Suite.Skipped}, " "))
	for _, p := range s.Suite.Properties {
		properties[p.Name] = p.Value
	}
	assert.NotEmpty(t, s.Suite.Name)
	return ended, properties
}

func TestJUnit(t *testing.T) {
	for _, fails := range []bool{false, true} {
		r := reported(t, some(), func(e *Ended) {
			e.Against, e.NotCertainFails = usual.accepted(t), fails
			e.Steps, e.Status.State.Speculation = nil, api.SpeculationNotRecorded
		}, "errors>2", "error_rate>1%", "verdict=bottleneck", "achieved_share<50%", "ttft_p50>+5%", "kv_hit<-2%")
		ended, properties := junitOf(t, r, "run")
		notCertain := "skipped"
		if fails {
			notCertain = "failed"
		}
		assert.Equal(t, notCertain, strings.Split(ended["ttft_p50>+5%"], ":")[0])
		delete(ended, "ttft_p50>+5%")
		assert.Equal(t, map[string]string{
			"turns succeed": "passed", "errors>2": "failed: errors>2: FAILED, value is 3", "error_rate>1%": "passed",
			"verdict=bottleneck": "passed", "achieved_share<50%": "skipped: achieved_share<50%: not measured",
			"kv_hit<-2%": "passed",
		}, ended)
		assert.Equal(t, "http://gpu.example:8000", properties["target"])
		assert.Equal(t, "1.2.3", properties["version"])
		assert.Equal(t, "accepted.json", properties["against"])
	}
	broken := reported(t, []*api.Turn{failure(30, api.ErrorHTTP5xx, "503 \x1b<busy>")}, nil)
	ended, _ := junitOf(t, broken, "broken")
	assert.Equal(t, "error: no turn succeeded: 1 turn failed, 1 as http_5xx: 503 \ufffd<busy>", ended["turns succeed"])
}

// The gate of a comparison names what is certainly worse with all figures together at 5 %, and nothing else.
func TestCompareGate(t *testing.T) {
	a := usual.accepted(t).Result
	compared := func(now values) *Results {
		b, err := now.run(t).AsBaseline("now")
		require.NoError(t, err)
		r, err := Compare(a, b, proof.Question{OneSystem: true})
		require.NoError(t, err)
		return r
	}
	r := compared(values{.6, .02, 1000, 20, .6, .01})
	assert.Equal(t, []string{"ttft_p95 at 20 conversations: 20.0 % worse (95 %: 14.3 to 25.7)"}, r.Worse())
	ended, _ := junitOf(t, r, "compare")
	assert.Equal(t, "failed: 20.0 % worse (95 %: 14.3 to 25.7)", ended["ttft_p95 at 20 conversations"])
	assert.Equal(t, "passed", ended["output_tokens_per_second at 20 conversations"])
	assert.Empty(t, compared(values{.4, .02, 1000, 20, .6, .01}).Worse(), "better")
	barely := compared(values{.53, .02, 1000, 20, .6, .01}) // its own interval excludes 0
	assert.Empty(t, barely.Worse())
	assert.Less(t, barely.Pairs[0].Levels[0].Figures[proof.QuantityTTFT95].Interval[1], 0.)
	assert.True(t, barely.Judged())
}

func TestMetricsFile(t *testing.T) {
	r := reported(t, some(), nil, "errors>2", "error_rate>1%")
	r.Twin = reported(t, some(), func(e *Ended) { e.Data.Lane = "twin" })
	parser := expfmt.NewTextParser(naming.LegacyValidation)
	text := written(t, r, Prometheus)
	if dir := os.Getenv("JUNIT_DIR"); dir != "" {
		require.NoError(t, os.WriteFile(dir+"/metrics.prom", []byte(text), 0o600))
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint() // as promtool check metrics
	require.NoError(t, err)
	assert.Empty(t, problems)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	ttft := families["loadgen_run_ttft_seconds"]
	require.Len(t, ttft.GetMetric(), 2, "two lanes")
	assert.Contains(t, ttft.GetHelp(), "Time to first token")
	summary := ttft.GetMetric()[0].GetSummary()
	assert.InDelta(t, *r.Metrics.TTFT.P95, summary.GetQuantile()[1].GetValue(), 1e-9)
	assert.Equal(t, uint64(600), summary.GetSampleCount())
	assert.InDelta(t, .75, families["loadgen_run_kv_hit_ratio"].GetMetric()[0].GetGauge().GetValue(), 1e-9)
	assert.Contains(t, text, `loadgen_run_condition{condition="errors>2",lane="main",outcome="failed"} 1`)
	assert.Contains(t, text, `loadgen_run_requests{lane="twin",status="error"} 3`)
	assert.NotContains(t, text, "gpu_memory_bytes", "not known")
}

func TestSeriesFile(t *testing.T) {
	r := reported(t, some(), nil)
	rows, err := csv.NewReader(strings.NewReader(written(t, r, Series))).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+maxPoints)
	completed := 0
	for i, row := range rows[1:] {
		n, err := strconv.Atoi(row[3])
		require.NoError(t, err)
		completed += n
		assert.Equal(t, strconv.Itoa(2*i), row[1])
	}
	assert.Equal(t, 600, completed)
	assert.Equal(t, []string{"ttft_p95_seconds", "output_tokens_per_second"}, []string{rows[0][6], rows[0][9]})
	for path, want := range map[string]api.ReportFormat{
		"a/series.csv": Series, "night-Series.CSV": Series, "turns.csv": CSV, "junit.xml": JUnit, "x.prom": Prometheus,
	} {
		format, ok := RunFormats.Of(path)
		assert.True(t, ok)
		assert.Equal(t, want, format, path)
	}
	format, ok := ShadowFormats.Of("series.csv")
	assert.Equal(t, []any{CSV, true}, []any{format, ok}, "a report without a series")
}
