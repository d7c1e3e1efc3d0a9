//go:build unix

package processtest

import (
	"net"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// The ports that Ports returns. They end below those that systems assign themselves, and below 32,768, which the
// ports of Dynamo's workers must not reach.
const (
	firstPort = 10_000
	lastPort  = 32_000
)

// Ports returns the first of n ports of 127.0.0.1 in a row that are the test's until it ends. The test process binds
// them without listening, so that no other program is assigned them and no other test binds them, while a program
// that the test names one to can listen there. Only Linux lets a program do that: elsewhere they are free when Ports
// returns, and not held.
func Ports(t testing.TB, n int) int {
	t.Helper()
	var held []int
	release := func() {
		for _, fd := range held {
			_ = syscall.Close(fd)
		}
		held = nil
	}
	t.Cleanup(release)
	for port := firstPort; port <= lastPort; port++ {
		fd, err := bind(port)
		if err != nil {
			release()
			continue
		}
		if held = append(held, fd); len(held) < n {
			continue
		}
		if runtime.GOOS != "linux" {
			release()
		}
		return port - n + 1
	}
	t.Fatalf("no %d ports in a row are free from %d to %d", n, firstPort, lastPort)
	return 0
}

// Address is Ports of one port, as host:port.
func Address(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(Ports(t, 1)))
}

// bind binds a socket to a port alone, and then lets others, which ask for SO_REUSEADDR as Go's listeners do, listen
// on the same port.
func bind(port int) (int, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, err
	}
	err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	}
	if err != nil {
		_ = syscall.Close(fd)
		return 0, err
	}
	return fd, nil
}
