// Package natstest runs NATS servers for tests of members.
package natstest

import (
	"bufio"
	"context"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"kvbooth/sidecar/process"
)

// Link is a loopback address that forwards to a server. The server may be replaced, and the link
// may be cut. It is safe for concurrent use.
type Link struct {
	listener net.Listener
	open     atomic.Int32

	mu    sync.Mutex
	to    string // empty: the link is cut
	conns []net.Conn
}

// NewLink returns a link that is cut. The end of the test closes it.
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

// URL returns the address for clients.
func (k *Link) URL() string { return "nats://" + k.listener.Addr().String() }

// Lead closes all connections and forwards new ones to another address; empty cuts the link.
func (k *Link) Lead(to string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.to = to
	for _, c := range k.conns {
		_ = c.Close()
	}
	k.conns = nil
}

// Open returns the number of connections that clients have.
func (k *Link) Open() int { return int(k.open.Load()) }

// join copies in both directions until one of them ends.
func (k *Link) join(c net.Conn) {
	k.open.Add(1)
	defer k.open.Add(-1)
	defer c.Close()
	k.mu.Lock()
	to := k.to
	k.mu.Unlock()
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", to)
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

// Server is a NATS server in a process of its own. Each start uses another port,
// which its link forwards to.
type Server struct {
	*Link
	Address string // of the server itself

	t    testing.TB
	args []string
	cmd  *exec.Cmd

	logged chan struct{} // closed at the end of the server's log
}

// Start starts a server with additional arguments. The end of the test stops it. Without a
// nats-server, the test is skipped.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{Link: NewLink(t), t: t, args: args}
	s.Restart()
	t.Cleanup(s.Kill)
	return s
}

// Restart starts the server after [Server.Kill].
func (s *Server) Restart() {
	s.t.Helper()
	program, err := process.FindNATS(filepath.Join("..", "..", "..", "bin"))
	if err != nil {
		s.t.Skip(err)
	}
	args := []string{"-a", "127.0.0.1", "-p", "-1"}
	s.cmd = exec.Command(program, append(args, s.args...)...)
	log, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	address := make(chan string, 1)
	s.logged = make(chan struct{})
	go func() {
		defer close(s.logged)
		defer close(address)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if _, at, ok := strings.Cut(lines.Text(), "Listening for client connections on "); ok {
				address <- at
			}
		}
	}()
	if s.Address = <-address; s.Address == "" {
		s.t.Fatal("the NATS server exited without an address")
	}
	s.Lead(s.Address)
}

// Kill ends the process as a crash does.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.logged
	_ = s.cmd.Wait()
}
