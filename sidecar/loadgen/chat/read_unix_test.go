//go:build unix

package chat

import (
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// tcpPair is a connection over loopback, from both ends.
func tcpPair(t testing.TB) (near *conn, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	return &conn{Conn: nc, socket: nc, raw: rawConn(nc)}, far
}

// receive reads once, after a wait where nothing has come yet.
func receive(t testing.TB, raw syscall.RawConn, b *buffer) (n int, empty bool) {
	var failure error
	err := raw.Read(func(fd uintptr) bool {
		n, empty, failure = recv(int(fd), b)
		return failure != unix.EAGAIN
	})
	if err != nil || failure != nil {
		t.Fatal(err, failure)
	}
	return n, empty
}

func TestRecvSaysWhatIsLeft(t *testing.T) {
	near, far := tcpPair(t)
	b := new(buffer)
	send := func(n int) {
		if _, err := far.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	peek := func(n int) { // until so many bytes, or the end, have come
		eventually(t, "the bytes", func() bool {
			var got int
			_ = near.raw.Control(func(fd uintptr) {
				got, _, _ = unix.Recvfrom(int(fd), make([]byte, n), unix.MSG_PEEK|unix.MSG_DONTWAIT)
			})
			return got == n
		})
	}
	send(100)
	if n, empty := receive(t, near.raw, b); n != 100 || empty != (runtime.GOOS == "linux") {
		t.Errorf("all: read %d, empty %v", n, empty)
	}
	send(len(b.data) + 1)
	peek(len(b.data) + 1)
	if n, empty := receive(t, near.raw, b); n != len(b.data) || empty {
		t.Errorf("not all: read %d, empty %v", n, empty)
	}
	if n, empty := receive(t, near.raw, b); n != 1 || empty != (runtime.GOOS == "linux") {
		t.Errorf("the rest: read %d, empty %v", n, empty)
	}
	send(1)
	far.Close()
	eventually(t, "the end", func() bool { return !near.alive() })
	if n, _ := receive(t, near.raw, b); n != 1 {
		t.Errorf("before the end: read %d", n)
	}
	if n, _ := receive(t, near.raw, b); n != 0 {
		t.Errorf("the end: read %d", n)
	}
}

func TestAlive(t *testing.T) {
	near, far := tcpPair(t)
	if !near.alive() {
		t.Error("a silent connection is not alive")
	}
	if _, err := io.WriteString(far, "HTTP/1.1 408 Request Timeout\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a connection on which the server spoke is unusable", func() bool { return !near.alive() })
	near, far = tcpPair(t)
	far.Close()
	eventually(t, "a closed connection is not alive", func() bool { return !near.alive() })
	near.Close()
	if near.alive() {
		t.Error("a connection closed on this side is alive")
	}
}

// A read of what has come allocates nothing.
func TestRecvAllocatesNothing(t *testing.T) {
	near, far := tcpPair(t)
	b, token := new(buffer), frame()
	var n int
	var empty bool
	once := func(fd uintptr) bool {
		var err error
		n, empty, err = recv(int(fd), b)
		return err != unix.EAGAIN
	}
	allocs := testing.AllocsPerRun(200, func() {
		_, _ = far.Write(token)
		_ = near.raw.Read(once)
	})
	if allocs != 0 || n != len(token) || empty != (runtime.GOOS == "linux") {
		t.Errorf("%v allocations; read %d of %d bytes, empty %v", allocs, n, len(token), empty)
	}
}
