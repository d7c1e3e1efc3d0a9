//go:build unix

package chat

import (
	"net"
	"syscall"
)

// silent says that a kept connection is still open and that nothing has come over
// it: a server that spoke meanwhile has given it up.
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
