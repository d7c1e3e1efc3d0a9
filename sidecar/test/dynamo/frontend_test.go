//go:build dynamo

package dynamo

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/source"
	"kvbooth/sidecar/booth/httpd/httpdtest"
)

var update = flag.Bool("update", false, "rewrite "+httpdtest.File+" with what the real Dynamo answers")

// A real Dynamo gives the answers that the simulated cluster is compared with.
func (b *booth) answersAsKept(t *testing.T) {
	all, err := httpdtest.Exchanges()
	require.NoError(t, err)
	for i := range all {
		e := &all[i]
		status, answer, err := e.Ask(t.Context(), b.dynamo.URL())
		require.NoError(t, err, e.Name)
		if *update {
			e.Status, e.Answer = status, answer
			continue
		}
		assert.Equal(t, e.Status, status, "%s: %s", e.Name, answer)
		assert.Equal(t, httpdtest.Shape(e.Answer), httpdtest.Shape(answer), e.Name)
		var kept, got httpdtest.Problem
		if status >= 400 && len(answer) > 0 {
			require.NoError(t, json.Unmarshal(answer, &got), e.Name)
			require.NoError(t, json.Unmarshal(e.Answer, &kept), e.Name)
			assert.Equal(t, kept, got, e.Name)
		}
	}
	if !*update {
		return
	}
	data, err := httpdtest.Encode(all)
	require.NoError(t, err)
	root, err := source.Root()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, httpdtest.File), data, 0o600))
}
