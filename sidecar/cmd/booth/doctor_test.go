package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/doctor"
)

// A flag that is not allowed exits with 2, a problem with 1.
func TestDoctorExitCodesAndOutput(t *testing.T) {
	t.Setenv("KVBOOTH_TOKEN", "the-token-of-the-environment")
	tokens := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
		case "/api/v1/status":
			tokens <- r.Header.Get("Authorization")
			w.WriteHeader(http.StatusUnauthorized)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("the-token-of-the-file\n"), 0o600))
	call := func(args ...string) (code int, out, errOut string) {
		var stdout, stderr bytes.Buffer
		code = run(t.Context(), t.Context(),
			append([]string{"doctor", "--loadgen-url=" + server.URL, "--grafana-url=" + server.URL}, args...), &stdout,
			&stderr)
		return code, stdout.String(), stderr.String()
	}

	for _, bad := range []string{
		"--target-url=nowhere", "--gpus=-1", "--gpus=many", "--graph=/", "--token-file=/does/not/exist",
		"--kubeconfig=/does/not/exist",
	} {
		code, out, errOut := call(bad)
		assert.Equal(t, badInput, code, bad)
		assert.Empty(t, out, bad)
		assert.NotEmpty(t, errOut, bad)
	}
	assert.Empty(t, tokens, "no request is sent")

	code, out, errOut := call()
	assert.Equal(t, failure, code)
	assert.Contains(t, out, "Load generator\n")
	assert.Contains(t, out, "  problem      it rejects our token")
	assert.Contains(t, out, "               -> use the load generator's token")
	assert.Contains(t, out, "  not checked  Kubernetes: the load generator does not switch modes there\n")
	assert.Regexp(t, `(?m)^\d problems, 0 warnings, \d ok, \d not checked$`, out)
	assert.Contains(t, errOut, "booth: not ready for an event")
	assert.Equal(t, "Bearer the-token-of-the-environment", <-tokens)

	code, out, _ = call("--json", "--token-file="+file)
	assert.Equal(t, failure, code)
	var r doctor.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Contains(t, out, `"program": "`+api.BoothProgram()+`",`)
	assert.Len(t, r.Sections, 5)
	assert.Positive(t, r.Problems)
	assert.Equal(t, "Bearer the-token-of-the-file", <-tokens)
}
