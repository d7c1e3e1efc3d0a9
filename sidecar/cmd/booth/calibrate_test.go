package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/sim"
)

// runCalibrate runs `booth calibrate`.
func runCalibrate(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), context.Background(), append([]string{"calibrate"}, args...), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// slowProfile writes a profile of a deployment with one slow worker, whose base time is multiplied, into a file.
func slowProfile(t *testing.T, factor float64) (sim.Profile, string) {
	t.Helper()
	p := sim.H200()
	p.Name, p.Workers, p.Memory.Bandwidth, p.Step.Floors = "one-slow", 1, 1200, nil
	p.Step.Base, p.Step.PerSequence, p.Step.PerContextToken = 150*factor, 1.1, 2e-4
	maps.DeleteFunc(p.Sources, func(name string, _ sim.Source) bool { return strings.HasPrefix(name, "step.floors") })
	text, err := p.YAML()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "profile.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return p, file
}

// exportBaseline simulates a profile and writes the results into a file that the load generator can import. It leaves
// out the hit ratio, which not every server reports.
func exportBaseline(t *testing.T, profile, levels string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "mine.csv")
	code, _, errOut := simulate(t, "--profile="+profile, "--concurrency="+levels, "--baseline="+file,
		"--modes=round_robin --first-seed=101 --seeds=2 --output-tokens-mean=150 --output-tokens-cv=.4")
	require.Equal(t, success, code, errOut)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	b, err := baseline.ReadCSV(bytes.NewReader(text), "mine")
	require.NoError(t, err)
	for i := range b.Rows {
		b.Rows[i].KVHitRatio = nil
	}
	var out bytes.Buffer
	require.NoError(t, baseline.WriteCSV(&out, b))
	require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
	return file
}

// The fitted profile can be opened by the other commands.
func TestCalibrateWritesUsableProfile(t *testing.T) {
	_, start := slowProfile(t, 1)
	p, measured := slowProfile(t, 1.2)
	from := exportBaseline(t, measured, "8,16,24")
	out := filepath.Join(t.TempDir(), "fitted.yaml")
	code, text, progress := runCalibrate(t, "--from="+from, "--profile="+start, "--fit=step.base", "--seeds=2",
		"--no-suggest", "--out="+out)
	require.Equal(t, success, code, progress)
	assert.Contains(t, progress, "booth: at the start: 4 of 4 runs\n")
	assert.Contains(t, progress, "booth: round 1: 8 of 8 runs\n")
	for _, part := range []string{
		"one-slow fitted to mine: ", "fitted to: 8, 24", "held out: 16", "step.base ", " fitted ",
		"the weights are read once an iteration", " derived ", "booth demo --profile " + out,
	} {
		assert.Contains(t, text, part)
	}
	fitted, err := sim.OpenProfile(out)
	require.NoError(t, err)
	assert.Equal(t, "fitted", fitted.Name)
	assert.Equal(t, "mine", fitted.Baseline)
	assert.InEpsilon(t, p.Step.Base, fitted.Step.Base, .05)
	assert.Equal(t, sim.Fitted, fitted.Sources["step.base"].Origin)
	_, err = (&simFlags{Profile: out, Mode: api.ModeKV, Speculation: api.SpeculationNotRecorded, Speed: 1}).simulation()
	assert.NoError(t, err)
}

func TestCalibrateRejectsBadInput(t *testing.T) {
	_, start := slowProfile(t, 1)
	one := exportBaseline(t, start, "8")
	broken := filepath.Join(t.TempDir(), "broken.json")
	require.NoError(t, os.WriteFile(broken, []byte(`{"name": 1}`), 0o600))
	for _, row := range []struct {
		intent string
		args   []string
		want   string
	}{
		{"nothing to fit to", nil, "from is required: a file, or one of h200x3-tp1-llama70b-fp8"},
		{"no such file", []string{"--from=nowhere.csv"}, "from: nowhere.csv is not allowed: a readable file"},
		{"no baseline", []string{"--from=" + broken}, "broken.json: line 1, name: number is not allowed"},
		{
			"one level",
			[]string{"--from=" + one, "--profile=" + start},
			"mine: concurrency: 8 alone is not allowed: two levels or more: one shows how long an iteration takes, not " +
				"what of it grows with the load; measure at 2 and 4, too",
		},
		{"a file that --profile would take for a name", []string{"--from=" + one, "--out=mine"}, "out: mine is not allowed"},
	} {
		t.Run(row.intent, func(t *testing.T) {
			code, _, text := runCalibrate(t, row.args...)
			assert.Equal(t, badInput, code)
			assert.Contains(t, text, row.want)
		})
	}
}

func TestCalibrateStartsFromProfileOfGPU(t *testing.T) {
	p, err := (&calibrateCmd{}).start(api.Deployment{GPU: "NVIDIA H100 80GB", TensorParallel: 2})
	require.NoError(t, err)
	assert.Equal(t, "h100-tp2", p.Name)
	_, err = (&calibrateCmd{}).start(api.Deployment{GPU: "A100"})
	assert.ErrorContains(t, err, `none for this baseline's GPU ("A100") with 1 GPUs per worker`)
}
