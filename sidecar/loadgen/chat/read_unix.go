//go:build unix

package chat

import (
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// rawConn gives access to the socket itself, and makes it ready for recv.
func rawConn(nc net.Conn) syscall.RawConn {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil || raw.Control(func(fd uintptr) { announce(int(fd)) }) != nil {
		return nil
	}
	return raw
}

// alive says whether a kept connection is still open and silent.
func (c *conn) alive() bool {
	if c.raw == nil {
		return true
	}
	open := false
	err := c.raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		open = err == unix.EAGAIN
		return true
	})
	return err == nil && open
}

// reset says whether the connection was reset. The watchdog asks, since a reset
// that came together with bytes does not end the wait for more.
func (c *conn) reset() bool {
	if !c.direct() {
		return false
	}
	err := error(unix.EAGAIN)
	_ = c.raw.Control(func(fd uintptr) {
		var one [1]byte
		_, _, err = unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return err != nil && err != unix.EAGAIN && err != unix.EINTR
}

// readRaw feeds the stream until it has enough. Conn.Read would begin each wait
// with a read that finds nothing; here the wait follows at once where the kernel
// says that nothing is left, which halves the system calls.
//
// The poller reports a change once, so a wait with something left would not end.
// A read that did not fill the buffer proves nothing: the connection's end may
// have come with the last bytes, in the same report. And RawConn.Read forgets
// what was reported before it was called, so each call begins with a read.
func (s *stream) readRaw(raw syscall.RawConn) error {
	var failure error
	var again bool
	once := func(fd uintptr) (done bool) {
		buf := buffers.Get().(*buffer)
		defer buffers.Put(buf)
		n, empty, err := recv(int(fd), buf)
		again = false
		switch {
		case err == unix.EAGAIN:
			return false
		case err == unix.EINTR:
			again = true
		case err != nil:
			failure = err
		case n == 0:
			failure = io.EOF
		case !s.feed(buf.data[:n]):
			again = !empty
			return again
		}
		return true
	}
	// Between two calls the deadline is looked at, however fast the bytes come.
	for again = true; again && failure == nil; {
		if err := raw.Read(once); err != nil {
			return err
		}
	}
	return failure
}
