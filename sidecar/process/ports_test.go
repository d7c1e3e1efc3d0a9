package process_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/process"
)

// Where a port is taken, the next free one is found.
func TestFreePorts(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	from := taken.Addr().(*net.TCPAddr).Port

	ports, err := process.FreePorts(from, 3)
	require.NoError(t, err)
	assert.Len(t, ports, 3)
	assert.Greater(t, ports[0], from)
	assert.IsIncreasing(t, ports)
	for _, port := range ports {
		listener, err := net.Listen("tcp", process.Loopback(port))
		require.NoError(t, err)
		require.NoError(t, listener.Close())
	}
}

func TestFreePortsRunsOut(t *testing.T) {
	_, err := process.FreePorts(65535, 2)
	assert.ErrorContains(t, err, "from port 65535 on, only ")
}
