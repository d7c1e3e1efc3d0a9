//go:build booth && unix

package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// A sweep ends by itself and leaves its report on the terminal and in files, one of which can be compared again. On a
// busy machine, spans with a late load generator are repeated, which prolongs the test.
func TestSweepOnTheCommandLine(t *testing.T) {
	kv, rr := startTarget(t), startTarget(t)
	kv.cached.Store(0) // a span that is not cold does not count
	rr.cached.Store(0)
	dir := t.TempDir()
	document, page := filepath.Join(dir, "sweep.json"), filepath.Join(dir, "sweep.html")
	p := newProgram(t, append([]string{
		"sweep", "--levels=4", "--modes=round_robin,kv", "--repeats=1", "--warm-up=0s", "--span=1s", "--snapshots=1",
		"--output=" + document + "," + page, "--turns-min=1", "--turns-max=1",
	}, twoRouters(kv, rr)...)...)
	code, stdout, stderr := p.finish()
	require.Equal(t, success, code, stderr)
	assert.Contains(t, stdout, "\n# ", "a report in Markdown")
	var spans []string
	for _, s := range regexp.MustCompile(`span \d, ([\w-]+ at \d): TTFT p95 \d+ ms`).FindAllStringSubmatch(stderr, -1) {
		spans = append(spans, s[1])
	}
	assert.ElementsMatch(t, []string{"KV-aware at 4", "Round-robin at 4"}, spans, stderr)
	assert.True(t, strings.HasSuffix(strings.TrimSpace(content(t, page)), "</html>"))
	type result struct {
		Sides []struct{ Rows []api.BaselineRow }
	}
	var measured, compared result
	require.NoError(t, json.Unmarshal([]byte(content(t, document)), &measured))
	require.Len(t, measured.Sides, 2)

	code, stdout, stderr = command(t, "compare", document, document, "--a-mode=round_robin", "--b-mode=kv",
		"--format=json")
	require.Equal(t, success, code, stderr)
	require.NoError(t, json.Unmarshal([]byte(stdout), &compared))
	for i, s := range compared.Sides {
		require.Len(t, s.Rows, 1)
		assert.Equal(t, measured.Sides[i].Rows[0].Level, s.Rows[0].Level)
		assert.Equal(t, measured.Sides[i].Rows[0].TTFT.P95, s.Rows[0].TTFT.P95)
	}
}
