// Package processtest has programs for tests of processes: the test binary itself plays
// them. Call [Main] first thing in TestMain.
package processtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"kvbooth/sidecar/process"
)

// flag in front of its name is the first argument of a played program.
const flag = "--play-"

// Main plays the program that the test binary was started as, and does not return
// then. In a test run it does nothing.
func Main() {
	var play func(address string, how []string) error
	switch {
	case len(os.Args) < 3:
	case os.Args[1] == flag+"hold":
		play = hold
	case os.Args[1] == flag+"parent":
		play = parent
	}
	if play == nil {
		// Under the race detector a program sleeps for a second before it ends.
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
		return
	}
	if err := play(os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintf(os.Stderr, "played program: %v\n", err)
		os.Exit(3)
	}
	os.Exit(0)
}

// hold keeps a connection open, by which a test sees that it lives. Asked to end,
// it says so first, unless it is stubborn.
func hold(address string, how []string) error {
	ask := make(chan os.Signal, 1)
	signal.Notify(ask, syscall.SIGTERM)
	conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintln(conn, "alive")
	<-ask
	fmt.Fprintln(conn, "asked")
	if slices.Contains(how, "stubborn") {
		select {}
	}
	return nil
}

// parent starts a child that holds a connection, one that is a parent itself if
// it is told so, and waits for it.
func parent(address string, how []string) error {
	c := Hold(filepath.Join(os.TempDir(), "hold.log"), address)
	c.Parent = slices.Contains(how, "parents")
	p, err := process.Start(c)
	if err != nil {
		return err
	}
	return p.Wait()
}

// Hold is the command of a process that connects to an address, says "alive", and
// keeps the connection until it ends. Asked to end it says "asked" first, and goes
// on all the same if it is "stubborn".
func Hold(log, address string, how ...string) process.Command {
	return played("hold", log, address, how...)
}

// Parent is the command of a process that starts a child which holds a connection, one
// that is a parent itself if it is told "parents", and waits for it.
func Parent(log, address string, how ...string) process.Command {
	return played("parent", log, address, how...)
}

func played(name, log, address string, how ...string) process.Command {
	self, err := os.Executable()
	if err != nil {
		panic(err) // nothing can be tested
	}
	return process.Command{Name: name, Path: self, Args: append([]string{flag + name, address}, how...), Log: log}
}

// Holder is the test's end of the connections of processes that hold one.
type Holder struct {
	t        testing.TB
	listener net.Listener
}

// Held is one such process as the test sees it.
type Held struct {
	t     testing.TB
	lines *bufio.Reader
}

// NewHolder listens for processes that hold a connection, until the test ends.
func NewHolder(t testing.TB) *Holder {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return &Holder{t, listener}
}

// Address is what the processes connect to.
func (h *Holder) Address() string { return h.listener.Addr().String() }

// Accept waits for the next process and for its word that it lives.
func (h *Holder) Accept() *Held {
	h.t.Helper()
	conn, err := h.listener.Accept()
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	held := &Held{h.t, bufio.NewReader(conn)}
	if line, err := held.lines.ReadString('\n'); err != nil || line != "alive\n" {
		h.t.Fatalf("got %q, %v", line, err)
	}
	return held
}

// Line waits for the next line that a process says.
func (h *Held) Line() string {
	h.t.Helper()
	line, err := h.lines.ReadString('\n')
	if err != nil {
		h.t.Fatalf("got %q, %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// Rest gives what a process still says, once it has ended.
func (h *Held) Rest() string {
	h.t.Helper()
	rest, err := io.ReadAll(h.lines)
	if err != nil && len(rest) == 0 && !strings.Contains(err.Error(), "reset") {
		h.t.Fatal(err)
	}
	return string(rest)
}
