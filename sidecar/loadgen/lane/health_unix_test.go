//go:build unix

package lane

import (
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// reserve takes a port on which nobody answers until listen is called, and which
// nobody else can take meanwhile.
func reserve(t *testing.T) (addr string, listen func() net.Listener) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	file := os.NewFile(uintptr(fd), "reserved port")
	t.Cleanup(func() { file.Close() })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	tcp := net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*syscall.SockaddrInet4).Port}
	return tcp.String(), func() net.Listener {
		require.NoError(t, syscall.Listen(fd, syscall.SOMAXCONN))
		l, err := net.FileListener(file)
		require.NoError(t, err)
		return l
	}
}

// hangUp answers nothing and closes the connection.
func hangUp(http.ResponseWriter) { panic(http.ErrAbortHandler) }

// A target that is down at the start, comes up, is lost, and comes back as an
// older server: the workload recovers each time without help, and what the
// server takes is found out anew.
func TestTargetComesAndGoes(t *testing.T) {
	t.Parallel()
	addr, listen := reserve(t)
	b := newBooth(t, dial(t, "http://"+addr))
	b.start(3)
	b.eventually("errors", func() bool { return b.totals().ErrorsByClass[api.ErrorConnect] >= 2 })
	b.unready("cannot connect to " + addr + ": connection refused")
	s := b.snapshot()
	assert.False(t, s.Target.Reachable)
	assert.Contains(t, s.Target.Problem, "connection refused")
	assert.Equal(t, 1., *s.Window.ErrorRatio)
	assert.Positive(t, s.Window.Errors[api.ErrorConnect])
	assert.Empty(t, s.Target.Model)
	for _, turn := range b.store.allTurns() {
		assert.Equal(t, api.TurnError, turn.Status)
		assert.Equal(t, api.ErrorConnect, turn.ErrorClass)
		assert.Contains(t, turn.ErrorMessage, "is the server running")
		assert.False(t, turn.Counted)
	}

	up := newServer(t)
	up.Listener.Close()
	up.Listener = listen()
	up.Start()
	t.Cleanup(up.Close)
	b.recovers()
	b.agrees(3)
	assert.Equal(t, map[string]bool{chat.ExtNVExt: true, chat.ExtStreamOptions: true}, b.view.Status().Lanes[0].Extensions)
	assert.Equal(t, "test-model", b.snapshot().Target.Model)

	up.set(func(s *server) { s.fault = hangUp })
	b.eventually("the loss", func() bool { return b.view.Ready() != nil })
	errors := b.totals().Errors
	up.set(func(s *server) { s.fault, s.nvext = nil, false })
	b.recovers()
	assert.False(t, b.view.Status().Lanes[0].Extensions[chat.ExtNVExt], "probed again")
	assert.GreaterOrEqual(t, b.totals().Errors, errors)
	assert.LessOrEqual(t, b.totals().ErrorsByClass[api.ErrorHTTP4xx], int64(3), "no more than were on their way")
}
