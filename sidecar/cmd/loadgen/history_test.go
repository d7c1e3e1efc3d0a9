//go:build unix

package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// Two runs of one data directory are listed with their labels. One is accepted, on the command line and through the
// API, which also imports the summary of a run.
func TestHistory(t *testing.T) {
	t.Parallel()
	server, dir := startTarget(t), t.TempDir()
	summary := filepath.Join(t.TempDir(), "run.json")
	for _, commit := range []string{"one", "two"} {
		p := newProgram(t, "--target-url="+server.URL, "--concurrency=4", "--start-rate=1000", "--target-rps=0",
			"--turns-min=1", "--turns-max=2", "--requests=20", "--name=nightly", "--label=commit="+commit,
			"--output="+summary, "--fail-if=error_rate>0%")
		p.dir = dir
		code, stdout, stderr := p.finish()
		require.Equal(t, success, code, stderr)
		assert.Contains(t, stdout, "of loadgen history")
	}
	code, stdout, stderr := command(t, "history", "--data-dir="+dir)
	require.Equal(t, success, code, stderr)
	lines := regexp.MustCompile(`(?m)^(\w+) +\S+ \S+  nightly  run   4 conversations .* commit=(one|two)$`).
		FindAllStringSubmatch(stdout, -1)
	require.Len(t, lines, 2, stdout)
	assert.Equal(t, []string{"one", "two"}, []string{lines[0][2], lines[1][2]})

	code, stdout, stderr = command(t, "history", "accept", "latest", "--data-dir="+dir)
	require.Equal(t, success, code, stderr)
	assert.Equal(t, lines[1][1]+" accepted\n", stdout)
	code, stdout, stderr = command(t, "history", "withdraw", lines[1][1], "--data-dir="+dir)
	require.Equal(t, success, code, stderr)
	assert.Equal(t, lines[1][1]+" withdrawn\n", stdout)
	code, _, stderr = command(t, "history", "accept", "other", "--data-dir="+dir)
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, `run: "other" is not allowed: latest, or the id of a run in the history`)
	code, _, stderr = command(t, "history", "accept", lines[1][1], "--data-dir="+dir)
	require.Equal(t, success, code, stderr)
	code, stdout, _ = command(t, "history", "--name=else", "--data-dir="+dir)
	assert.Equal(t, success, code)
	assert.Contains(t, stdout, `No run with the name "else" has ended in `+dir)
	code, _, stderr = command(t, "history", "accept", "latest", "--name=else", "--data-dir="+dir)
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, `No run with the name "else" has ended in `+dir)

	p := newProgram(t, "--target-url=http://127.0.0.1:1", "--requests=2", "--name=down")
	p.dir = dir
	code, _, _ = p.finish()
	assert.Equal(t, broken, code)
	code, stdout, _ = command(t, "history", "--name=down", "--data-dir="+dir)
	assert.Equal(t, success, code)
	assert.Regexp(t, `  down  run  .* failed\n`, stdout)
	code, _, stderr = command(t, "history", "accept", "latest", "--name=down", "--data-dir="+dir)
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, "is not allowed: a run that measured a TTFT; its verdict is: SLO missed")

	p = newProgram(t)
	p.dir = dir
	p.serve(server.URL)
	h, err := p.client.Runs(t.Context(), "nightly")
	require.NoError(t, err)
	require.Len(t, h.Runs, 2)
	require.Len(t, h.Series, 1)
	assert.NotNil(t, h.Runs[1].Accepted)
	assert.Equal(t, 20, h.Runs[0].Result.Rows[0].N)
	assert.Equal(t, "Result passed: 1 condition, none met", h.Runs[0].Verdict)
	r, err := p.client.AcceptRun(t.Context(), h.Runs[1].ID, api.RunPatch{})
	require.NoError(t, err)
	assert.Nil(t, r.Accepted)
	_, err = p.client.AcceptRun(t.Context(), "other", api.RunPatch{Accepted: true})
	require.ErrorIs(t, err, api.ErrNotFound)

	data, err := os.ReadFile(summary)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.address+api.Prefix+"/baselines?name=yesterday",
		bytes.NewReader(data))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	res, err := p.http.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, http.StatusCreated, res.StatusCode)
	b, err := p.client.Baseline(t.Context(), "yesterday")
	require.NoError(t, err)
	assert.Equal(t, h.Runs[1].Result.Rows[0].TTFT, b.Rows[0].TTFT)
	p.endsWell()
}
