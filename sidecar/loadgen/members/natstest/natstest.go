// Package natstest runs NATS servers for tests of members.
package natstest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/process"
)

// Link is an address of loopback that leads to a server, which may be replaced or cut off.
type Link struct {
	listener net.Listener

	mu    sync.Mutex
	to    string // empty: it is cut
	conns []net.Conn
}

// NewLink returns a link that is cut. It ends with the test.
func NewLink(t testing.TB) *Link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &Link{listener: l}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { k.join(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		k.Lead("")
		wg.Wait()
	})
	return k
}

// URL is the address for clients.
func (k *Link) URL() string { return "nats://" + k.listener.Addr().String() }

// Lead ends all connections and leads new ones to another address; empty: nowhere.
func (k *Link) Lead(to string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.to = to
	for _, c := range k.conns {
		_ = c.Close()
	}
	k.conns = nil
}

// join copies both ways until one of them ends.
func (k *Link) join(c net.Conn) {
	defer c.Close()
	k.mu.Lock()
	to := k.to
	k.mu.Unlock()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	k.mu.Lock()
	changed := k.to != to
	k.conns = append(k.conns, c, server)
	k.mu.Unlock()
	if changed {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(server, c)
		_ = server.Close()
	}()
	_, _ = io.Copy(c, server)
	_ = c.Close()
	<-done
}

// Server is a NATS server with JetStream in a process of its own. It has another port after each start, which its
// link leads to.
type Server struct {
	*Link
	Address string // of the server itself

	t    testing.TB
	dir  string
	args []string
	cmd  *exec.Cmd
}

// Start starts a server with more arguments, which ends with the test. The test is skipped without a nats-server.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{Link: NewLink(t), t: t, dir: t.TempDir(), args: args}
	s.Restart()
	t.Cleanup(s.Kill)
	return s
}

// Restart starts the server after [Server.Kill], with what it stored.
func (s *Server) Restart() {
	s.t.Helper()
	program, err := process.FindNATS(filepath.Join("..", "..", "..", "bin"))
	if err != nil {
		s.t.Skip("no nats-server: go tool mage build")
	}
	args := []string{"-js", "-sd", s.dir, "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", s.dir}
	s.cmd = exec.Command(program, append(args, s.args...)...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	wait.Eventually(s.t, "the NATS server reports its port", func() (any, bool) {
		paths, _ := filepath.Glob(filepath.Join(s.dir, fmt.Sprintf("*_%d.ports", s.cmd.Process.Pid)))
		for _, path := range paths {
			text, _ := os.ReadFile(path)
			var ports struct{ NATS []string }
			if json.Unmarshal(text, &ports) == nil && len(ports.NATS) > 0 {
				s.Address = strings.TrimPrefix(ports.NATS[0], "nats://")
				return nil, true
			}
		}
		return paths, false
	})
	s.Lead(s.Address)
}

// Kill ends the process as a crash does.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}
