package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/report"
)

// A run is compared with earlier ones, whose scatter decides how certain a change is. What cannot be compared is
// refused at the start.
func TestRunAgainstAccepted(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	code, _, stderr := brief(t, server.URL, "--requests=40", "--output="+file("first.json"))
	require.Equal(t, success, code, stderr)
	var first report.Run
	require.NoError(t, json.Unmarshal([]byte(content(t, file("first.json"))), &first))

	var stdout string
	// nights writes three runs with these hit rates, and returns their names.
	nights := func(hits ...float64) string {
		var names []string
		for i, hit := range hits {
			r := first
			r.KVHitRatio = report.Value{Value: &hit, Interval: &[2]float64{hit - .001, hit + .001}}
			data, err := json.Marshal(r)
			require.NoError(t, err)
			names = append(names, file(fmt.Sprintf("night%d.json", i)))
			require.NoError(t, os.WriteFile(names[i], data, 0o600))
		}
		return strings.Join(names, ",")
	}
	for _, row := range []struct {
		hits    []float64
		args    string
		code    int
		outcome report.Outcome
		stderr  string
	}{
		{[]float64{.90, .91, .92}, "", failed, report.Failed, "a --fail-if condition was met"},
		{[]float64{.70, .71, .72}, "--not-certain=fail", success, report.Passed, ""},
		{[]float64{.50, .80, .99}, "", success, report.NotCertain, ""},
		{[]float64{.50, .80, .99}, "--not-certain=fail", failed, report.NotCertain, "and --not-certain is fail"},
	} {
		args := append([]string{
			"--requests=40", "--fail-if=kv_hit<-3%", "--against=" + nights(row.hits...), "--output=" + file("now.json"),
			"--output=" + file("junit.xml") + "," + file("series.csv") + "," + file("metrics.prom"),
		}, strings.Fields(row.args)...)
		code, stdout, stderr = brief(t, server.URL, args...)
		require.Equal(t, row.code, code, stderr)
		var now report.Run
		require.NoError(t, json.Unmarshal([]byte(content(t, file("now.json"))), &now))
		require.Len(t, now.Conditions, 1)
		assert.Equal(t, row.outcome, now.Conditions[0].Outcome, stdout)
		assert.InDelta(t, (row.hits[0]+row.hits[1]+row.hits[2])/3, *now.Conditions[0].Before, 1e-9)
		assert.Contains(t, stderr, row.stderr)
		assert.Contains(t, content(t, file("junit.xml")), `name="kv_hit&lt;-3%"`)
		assert.Contains(t, content(t, file("series.csv")), "main,0,")
		assert.Contains(t, content(t, file("metrics.prom")), `outcome="`+string(row.outcome)+`"`)
	}

	other := first
	other.Level, other.Steps = api.AtConversations(5), nil
	data, err := json.Marshal(other)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file("other.json"), data, 0o600))
	for _, row := range []struct{ args, want string }{
		{"", "against is required: fail_if has the relative condition kv_hit<-3%; give the result"},
		{"--against=" + file("missing.json"), "against: "},
		{"--against=" + file("junit.xml"), "against: " + file("junit.xml")},
		{
			"--against=" + file("other.json"),
			"a result with 4 conversations in an unknown mode, as this run has it; it has 5 conversations",
		},
	} {
		args := append([]string{"--requests=40", "--fail-if=kv_hit<-3%"}, strings.Fields(row.args)...)
		sent := server.turns.Load()
		code, stdout, stderr = brief(t, server.URL, args...)
		assert.Equal(t, badInput, code, stderr)
		assert.Contains(t, stderr, row.want)
		assert.Empty(t, stdout)
		assert.Equal(t, sent, server.turns.Load(), "no turn was sent")
	}

	// A part of a run passes no gate.
	p := newProgram(t, "--target-url="+server.URL, "--concurrency=4", "--duration=1h", "--fail-if=error_rate>50%").launch()
	p.prints("load generator started")
	sent := server.turns.Load()
	p.eventually("turns are sent", func() bool { return server.turns.Load() > sent+20 })
	assert.Equal(t, unmeasured, p.stop(os.Interrupt), p)
	assert.Contains(t, p.log.String(), "cut short by a signal")

	// The gate of a comparison.
	before := nights(.75) // as the target reports, so that the first run is as good, whether or not it has an interval
	code, stdout, stderr = command(t, "compare", before, file("first.json"), "--gate", "--output="+file("compare.xml"))
	assert.Equal(t, success, code, stderr+stdout)
	low := first
	low.KVHitRatio = report.Value{Value: new(.5), Interval: &[2]float64{.499, .501}}
	data, err = json.Marshal(low)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file("low.json"), data, 0o600))
	code, stdout, stderr = command(t, "compare", before, file("low.json"), "--gate", "--output="+file("compare.xml"))
	assert.Equal(t, failed, code, stderr+stdout)
	assert.Contains(t, stderr, "--gate: low is worse: kv_hit_ratio at 4 conversations: 25.0 points worse")
	assert.Contains(t, content(t, file("compare.xml")), `failures="1"`)
	code, _, stderr = command(t, "compare", before, file("low.json"))
	assert.Equal(t, success, code, stderr)
	code, _, stderr = command(t, "compare", before, file("other.json"), "--gate")
	assert.Equal(t, unmeasured, code, stderr)
}
