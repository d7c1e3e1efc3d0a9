// Package processtest provides programs for tests of processes. The test binary itself acts as these programs. Call
// [Main] first in TestMain.
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

// flag, followed by its name, is the first argument of a test program.
const flag = "--play-"

// Main acts as the program that the test binary was started as, and then exits. In a test run it returns.
func Main() {
	var program func(address string, options []string) error
	switch {
	case len(os.Args) < 3:
	case os.Args[1] == flag+"hold":
		program = hold
	case os.Args[1] == flag+"parent":
		program = parent
	}
	if program == nil {
		// The race detector would delay the exit of a program by a second.
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
		return
	}
	if err := program(os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintf(os.Stderr, "test program: %v\n", err)
		os.Exit(3)
	}
	os.Exit(0)
}

// hold keeps a connection open until it ends, so that a test sees whether it runs. It reports a stop signal first, and
// continues if it is stubborn.
func hold(address string, options []string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintln(conn, "running")
	<-stop
	fmt.Fprintln(conn, "stopping")
	if slices.Contains(options, "stubborn") {
		select {}
	}
	return nil
}

// parent starts a child that holds a connection, with the option "parents" one that is a parent itself, and waits for
// it. With the option "runs" it runs the child by [process.Run].
func parent(address string, options []string) error {
	c := Hold(filepath.Join(os.TempDir(), "hold.log"), address)
	if slices.Contains(options, "runs") {
		return process.Run(context.Background(), c, func(string) {})
	}
	c.Parent = slices.Contains(options, "parents")
	p, err := process.Start(c)
	if err != nil {
		return err
	}
	return p.Wait()
}

// Hold returns the command of a process that connects to an address, sends "running", and keeps the connection until
// it ends. On a stop signal it sends "stopping" and exits, or continues with the option "stubborn".
func Hold(log, address string, options ...string) process.Command {
	return testProgram("hold", log, address, options...)
}

// Parent returns the command of a process that starts a child which holds a connection, and waits for it. With the
// option "parents", the child is a parent itself; with "runs", [process.Run] runs the child.
func Parent(log, address string, options ...string) process.Command {
	return testProgram("parent", log, address, options...)
}

func testProgram(name, log, address string, options ...string) process.Command {
	self, err := os.Executable()
	if err != nil {
		panic(err) // no test can run
	}
	args := append([]string{flag + name, address}, options...)
	return process.Command{Name: name, Path: self, Args: args, Log: log}
}

// Holder accepts the connections of processes that hold one.
type Holder struct {
	t        testing.TB
	listener net.Listener
}

// Held is the connection of one such process.
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

// Address returns the address to which the processes connect.
func (h *Holder) Address() string { return h.listener.Addr().String() }

// Accept waits for the connection of the next process and its first line.
func (h *Holder) Accept() *Held {
	h.t.Helper()
	conn, err := h.listener.Accept()
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	held := &Held{h.t, bufio.NewReader(conn)}
	if line, err := held.lines.ReadString('\n'); err != nil || line != "running\n" {
		h.t.Fatalf("got %q, %v", line, err)
	}
	return held
}

// Line waits for the next line from a process.
func (h *Held) Line() string {
	h.t.Helper()
	line, err := h.lines.ReadString('\n')
	if err != nil {
		h.t.Fatalf("got %q, %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// Rest returns the remaining output of a process that ends.
func (h *Held) Rest() string {
	h.t.Helper()
	rest, err := io.ReadAll(h.lines)
	if err != nil && len(rest) == 0 && !strings.Contains(err.Error(), "reset") {
		h.t.Fatal(err)
	}
	return string(rest)
}
