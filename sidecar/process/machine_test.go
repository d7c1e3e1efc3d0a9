//go:build unix

package process_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/process"
	"kvbooth/sidecar/process/processtest"
)

func TestFreePortsSkipsPortsInUse(t *testing.T) {
	first := processtest.Ports(t, 4)
	taken, err := net.Listen("tcp", process.Loopback(first+1))
	require.NoError(t, err)
	defer taken.Close()

	ports, err := process.FreePorts(first, 3) //nolint:forbidigo // tests the function itself
	require.NoError(t, err)
	assert.Equal(t, []int{first, first + 2, first + 3}, ports)

	_, err = process.FreePorts(65535, 2) //nolint:forbidigo // tests the function itself
	assert.ErrorContains(t, err, "from port 65535 on, only ")
}
