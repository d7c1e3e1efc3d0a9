package local_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/booth/local"
)

// Where a port is taken, the next free one is found.
func TestFreePorts(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	from := taken.Addr().(*net.TCPAddr).Port

	ports, err := local.FreePorts(from, 3)
	require.NoError(t, err)
	assert.Len(t, ports, 3)
	assert.Greater(t, ports[0], from)
	assert.IsIncreasing(t, ports)
	for _, port := range ports {
		listener, err := net.Listen("tcp", local.Loopback(port))
		require.NoError(t, err)
		require.NoError(t, listener.Close())
	}
}

func TestFreePortsRunsOut(t *testing.T) {
	_, err := local.FreePorts(65535, 2)
	assert.ErrorContains(t, err, "of the ports from 65535 on, ")
}

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
