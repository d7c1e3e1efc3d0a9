package process

import (
	"fmt"
	"net"
	"strconv"
)

const lastPort = 65535

// FreePorts returns n ports that are free on loopback, ascending, the first at or above from. The ports are not
// reserved.
func FreePorts(from, n int) ([]int, error) {
	ports := make([]int, 0, n)
	for port := from; port <= lastPort && len(ports) < n; port++ {
		listener, err := net.Listen("tcp", Loopback(port))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	if len(ports) < n {
		return nil, fmt.Errorf("from port %d on, only %d ports are free on loopback; %d are needed", from, len(ports), n)
	}
	return ports, nil
}

// Loopback returns the address of a port on loopback.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
