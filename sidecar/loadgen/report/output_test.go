package report

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// An output may be a key of a ConfigMap, which is checked before the run without a change, and made if it is not there.
func TestOutputIsKeyOfConfigMap(t *testing.T) {
	var calls []string
	found := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		calls = append(calls, fmt.Sprintf("%s %s %s", r.Method, r.URL, bytes.TrimSpace(text)))
		w.Header().Set("Content-Type", "application/json")
		if !found && r.Method == http.MethodPatch {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
			return
		}
		_, _ = io.WriteString(w, `{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "gate"}}`)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", kubeconfig)
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: x,
  clusters: [{name: x, cluster: {server: %q}}], users: [{name: x}],
  contexts: [{name: x, context: {cluster: x, user: x, namespace: bench}}]}`, server.URL), 0o600))

	const all = "/api/v1/namespaces/bench/configmaps"
	object := func(text string) string {
		return `{"apiVersion":"v1","data":{"run.json":"` + text + `"},"kind":"ConfigMap","metadata":{"name":"gate"}}`
	}
	o, err := OpenOutputs(RunFormats, []string{"configmap:gate/run.json"})
	require.NoError(t, err)
	assert.Equal(t, []string{"configmap:gate/run.json"}, o.Names())
	found = false
	require.NoError(t, o.Write(func(w io.Writer, f api.ReportFormat) error {
		assert.Equal(t, api.ReportJSON, f)
		_, err := io.WriteString(w, "report")
		return err
	}))
	assert.Equal(t, []string{
		"PATCH " + all + "/gate?dryRun=All " + object(""), "PATCH " + all + "/gate " + object("report"),
		"POST " + all + " " + object("report"),
	}, calls)

	err = o.Write(func(w io.Writer, _ api.ReportFormat) error {
		_, err := w.Write(make([]byte, 1<<20+1))
		return err
	})
	require.ErrorContains(t, err, "output: configmap:gate/run.json could not be written: ")
	require.ErrorContains(t, err, "a ConfigMap holds at most 1048576")
	_, err = OpenOutputs(RunFormats, []string{"configmap:run.json"})
	require.ErrorContains(t, err, "a ConfigMap is written as configmap:NAME/KEY")
}
