//go:build unix

package processtest

import (
	"net"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// The range of ports for Ports. It ends below the ports that systems assign, and below 32,768, the limit for the
// ports of Dynamo's workers.
const (
	firstPort = 10_000
	lastPort  = 32_000
)

// Ports returns the first of n consecutive ports of 127.0.0.1 that are reserved for the test until it ends. The test
// process binds them without listening. Therefore no other program gets them, while a program that the test starts can
// listen on them. Only Linux allows that; on other systems the ports are free when Ports returns, but not reserved.
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
	t.Fatalf("no %d consecutive ports are free from %d to %d", n, firstPort, lastPort)
	return 0
}

// Address returns the address of one port from Ports, as host:port.
func Address(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(Ports(t, 1)))
}

// bind binds a socket to a port exclusively, and then lets listeners with SO_REUSEADDR, such as Go's, use the same
// port.
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
