//go:build unix && !linux

package chat

import "golang.org/x/sys/unix"

func announce(int) {}

// recv reads what has come. It cannot say that nothing is left.
func recv(fd int, b *buffer) (n int, empty bool, err error) {
	n, err = unix.Read(fd, b.data[:])
	return n, false, err
}
