//go:build linux && !race

package chat

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// socketReader reads from a socket without the scheduler's preparations for a system call that blocks. A socket's reads
// do not block: without data they fail, and the goroutine waits for the poller. The preparations wake the runtime's
// monitor, a thread, where the process was idle, as it is between most chunks.
type socketReader struct {
	raw   syscall.RawConn
	try   func(fd uintptr) bool // [socketReader.tryRead], bound once
	p     []byte                // of the read in progress
	n     int
	errno syscall.Errno
}

// reader returns the reader of a connection, which is not safe for concurrent use.
func reader(nc net.Conn) io.Reader {
	socket, ok := nc.(*net.TCPConn)
	if !ok {
		return nc
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nc
	}
	r := &socketReader{raw: raw}
	r.try = r.tryRead
	return r
}

// Read implements [io.Reader]. Its errors wrap those of a [net.Conn].
func (r *socketReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	r.p = p
	err := r.raw.Read(r.try)
	r.p = nil
	switch {
	case err != nil:
		return 0, err
	case r.errno != 0:
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", r.errno)}
	case r.n == 0:
		return 0, io.EOF
	}
	return r.n, nil
}

// tryRead reports false where the socket has no data.
func (r *socketReader) tryRead(fd uintptr) bool {
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(r.p))),
			uintptr(len(r.p)))
		switch errno {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		}
		r.n, r.errno = int(n), errno
		return true
	}
}
