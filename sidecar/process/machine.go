package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/gofrs/flock"
)

// NATSVariable names the environment variable with the path of a nats-server.
const NATSVariable = "NATS_SERVER"

// ErrNoNATS means that there is no nats-server on this machine.
var ErrNoNATS = errors.New("nats-server not found: build it with go tool mage build, " +
	"put it next to loadgen or in the PATH, or set " + NATSVariable)

// FindNATS finds a nats-server: the one in [NATSVariable], otherwise the one in a folder, otherwise the one on the
// PATH.
func FindNATS(dir string) (string, error) {
	if path := os.Getenv(NATSVariable); path != "" {
		return path, nil
	}
	if path, err := exec.LookPath(filepath.Join(dir, "nats-server")); err == nil {
		return path, nil
	}
	path, err := exec.LookPath("nats-server")
	if err != nil {
		return "", ErrNoNATS
	}
	return path, nil
}

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

// TryLock takes a lock between processes. ok is false if another process holds it. The lock file remains after unlock.
func TryLock(path string) (unlock func(), ok bool, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, false, err
	}
	l := flock.New(path)
	ok, err = l.TryLock()
	return func() { _ = l.Unlock() }, ok, err
}
