//go:build engines

package engines

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/test/boothtest"
)

var update = flag.Bool("update", false, "rewrite the table of differences in docs/simulated-api.md")

// differences is the table in the document.
var differences = regexp.MustCompile(`(?s)<!-- begin vllm -->\n(.*)<!-- end vllm -->`)

// A simulated engine answers with the fields, streams, metrics and events of vLLM, except for what the document lists.
// Token ids are the same.
func TestSimulatedEngineIsLikeVLLM(t *testing.T) {
	bin := boothtest.Programs(t)
	vLLM, simulated := engines(t, bin)[0], boothtest.SimulatedEngines(t, bin, "vllm")
	cache, err := local.CacheDir()
	require.NoError(t, err)
	python, err := local.InstallVLLM(t.Context(), cache, os.Stderr)
	require.NoError(t, err)
	script := exec.CommandContext(t.Context(), python, "compare.py", "http://"+vLLM, vllm.events[0],
		"http://"+simulated.Workers[0], "tcp://"+simulated.Events[0])
	var failure strings.Builder
	script.Stderr = &failure
	rows, err := script.Output()
	require.NoError(t, err, failure.String())
	table := "<!-- begin vllm -->\n| call | only vLLM " + local.VLLMVersion + " | only simulated |\n|---|---|---|\n" +
		differing(string(rows)) + "<!-- end vllm -->"
	const document = "../../../docs/simulated-api.md"
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	if *update {
		text = []byte(differences.ReplaceAllLiteralString(string(text), table))
		require.NoError(t, os.WriteFile(document, text, 0o600))
	}
	assert.Equal(t, string(differences.Find(text)), table,
		"go test -tags engines -run TestSimulatedEngineIsLikeVLLM ./sidecar/test/engines -update rewrites the table")
	for _, same := range []string{"`POST /tokenize`", "token ids of a chat"} {
		assert.Contains(t, string(rows), "| "+same+" | – | – |")
	}
}

// differing returns the rows with a difference, without the members of listed objects and arrays.
func differing(rows string) string {
	var b strings.Builder
	for row := range strings.Lines(rows) {
		if strings.Contains(row, " | – | – |") {
			continue
		}
		cells := strings.Split(row, " | ")
		for i, cell := range cells {
			var kept []string
			for name := range strings.SplitSeq(cell, ", ") {
				last := kept[max(0, len(kept)-1):]
				inside := strings.Trim(strings.Join(last, ""), "`")
				if inside == "" || !strings.HasPrefix(name, "`"+inside+".") && !strings.HasPrefix(name, "`"+inside+"[") {
					kept = append(kept, name)
				}
			}
			cells[i] = strings.Join(kept, ", ")
		}
		b.WriteString(strings.Join(cells, " | "))
	}
	return b.String()
}
