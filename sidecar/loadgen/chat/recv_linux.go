package chat

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"
)

// announce makes the kernel say with each read what is left (TCP_INQ, since
// Linux 4.18). Where it cannot, recv never finds a socket empty.
func announce(fd int) { _ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_INQ, 1) }

// recv reads what has come. empty says that neither a byte nor the connection's
// regular end is left; of a reset right behind the bytes the kernel says nothing
// (see conn.reset). The Recvmsg of x/sys allocates, syscall's does not.
func recv(fd int, b *buffer) (n int, empty bool, err error) {
	n, told, _, _, err := syscall.Recvmsg(fd, b.data[:], b.control[:], 0)
	if told >= unix.CmsgLen(4) {
		empty = binary.NativeEndian.Uint32(b.control[unix.CmsgLen(0):]) == 0
	}
	return n, empty, err
}
