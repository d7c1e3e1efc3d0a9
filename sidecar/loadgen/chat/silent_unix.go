//go:build unix

package chat

import (
	"net"
	"syscall"
)

// silent reports whether a kept connection is open and has no unread data. A server that sent data meanwhile is closing
// it.
func silent(socket net.Conn) bool {
	sc, ok := stamping(socket).Conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Read(func(fd uintptr) bool {
		_, e := syscall.Read(int(fd), make([]byte, 1))
		ok = e == syscall.EAGAIN
		return true
	})
	return err == nil && ok
}
