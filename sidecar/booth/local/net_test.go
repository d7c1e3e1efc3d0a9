package local_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/process/processtest"
)

// An error status is not ready, the first 2xx is.
func TestReadyWaitsFor2xx(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	assert.NoError(t, local.Ready(within(t, soon), server.URL, nil))
	assert.EqualValues(t, 3, calls.Load())
}

// It is waited for, unless the process that is to answer has ended.
func TestReady(t *testing.T) {
	holder := processtest.NewHolder(t)
	p := start(t, processtest.Hold(filepath.Join(t.TempDir(), "log"), holder.Address()))
	holder.Accept()
	ports, err := process.FreePorts(20000, 1)
	require.NoError(t, err)
	url := "http://" + process.Loopback(ports[0])

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = local.Ready(ctx, url, p)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "connection refused", "the last try says what was wrong")

	p.Kill()
	assert.ErrorContains(t, local.Ready(within(t, soon), url, p), "hold exited before it was ready")
}
