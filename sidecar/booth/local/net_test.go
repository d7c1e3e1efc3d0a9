//go:build unix

package local_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/process/processtest"
)

// TestReadyWaitsForSuccess checks that an error status is not ready and a 2xx is, and that Ready returns when the
// context ends or the server's process exits.
func TestReadyWaitsForSuccess(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	require.NoError(t, local.Ready(wait.Context(t), server.URL, nil))
	assert.EqualValues(t, 3, calls.Load())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := local.Ready(ctx, server.URL, nil)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "the last attempt failed with: ")

	holder := processtest.NewHolder(t)
	p, err := process.Start(processtest.Hold(filepath.Join(t.TempDir(), "log"), holder.Address()))
	require.NoError(t, err)
	holder.Accept()
	p.Kill()
	err = local.Ready(wait.Context(t), "http://"+processtest.Address(t), p)
	assert.ErrorContains(t, err, "hold exited before it was ready")
	err = local.Ready(wait.Context(t), server.URL, p)
	assert.ErrorContains(t, err, "hold exited before it was ready", "with another server at its address")
}
