// Package process starts, supervises and ends processes on this machine ([Start], [Child]). It signals only processes
// that it started. On Linux, none of them outlives this process, not even after a crash. [Run] is different: what its
// program leaves running goes on.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Command describes a program to start.
type Command struct {
	Name   string   // for messages
	Path   string   // of the program
	Args   []string // without the program's name
	Env    []string // "NAME=value" each; nil means [Environment]
	Log    string   // file to which the output is appended; its folder is made where necessary
	Brief  bool     // messages name the log without quoting it
	Output *os.File // replaces the log, if not nil
	Errors *os.File // for the standard error only, if not nil
	Input  *os.File // standard input; nil for none

	// Parent means that the program has children of its own. If this process is killed, the program is stopped
	// instead of killed, so that it can end its children (Linux).
	Parent bool
}

// Process is a child in its own process group, which the child's own children join by default. Its methods are safe
// for concurrent use.
type Process struct {
	name string
	log  string // "" if the output goes elsewhere
	tail bool   // messages quote the log
	cmd  *exec.Cmd

	done chan struct{}

	mu     sync.Mutex // held while signaling and while reaping
	reaped bool       // the pid may belong to another process
	err    error      // set before done is closed
}

// Start starts a program. The error names the program and the cause.
func Start(c Command) (*Process, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.SysProcAttr = ownGroup(c.Parent)
	p := &Process{name: c.Name, cmd: cmd, done: make(chan struct{})}
	output := c.Output
	if output == nil {
		log, err := openLog(c.Log)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", c.Name, err)
		}
		defer log.Close() // the child has its own descriptor
		output, p.log, p.tail = log, c.Log, !c.Brief
	}
	cmd.Env, cmd.Stdout, cmd.Stderr = c.Env, output, output
	if c.Errors != nil {
		cmd.Stderr = c.Errors
	}
	if c.Input != nil {
		cmd.Stdin = c.Input
	}
	if c.Env == nil {
		cmd.Env = Environment()
	}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	return p, nil
}

// Environment returns this process's environment without the load generator's settings, which include its token and
// its keys.
func Environment() []string {
	isSetting := func(variable string) bool { return strings.HasPrefix(variable, "LOADGEN_") }
	return slices.DeleteFunc(os.Environ(), isSetting)
}

// openLog opens a log that only this user can read, because it may quote prompts.
func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	// The file may have been made by an older version with other permissions.
	if err := log.Chmod(0o600); err != nil && runtime.GOOS != "windows" {
		return nil, errors.Join(err, log.Close())
	}
	return log, nil
}

// run starts the child and waits for its end on one thread, because Linux kills the child when the thread that
// started it ends.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	ended := awaitEnd(p.cmd.Process.Pid)
	if ended {
		p.mu.Lock() // excludes signals to a pid that is being reaped
		signalGroup(p.cmd.Process.Pid, killSignal)
	}
	err = p.cmd.Wait()
	if !ended {
		p.mu.Lock()
	}
	p.reaped, p.err = true, err
	p.mu.Unlock()
	close(p.done)
}

// Name returns the child's name for messages.
func (p *Process) Name() string { return p.name }

// PID returns the child's process id, which is also its group's.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exited reports whether the child has ended.
func (p *Process) Exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// ExitCode waits for the end and returns the child's exit code, -1 if a signal ended it.
func (p *Process) ExitCode() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// Wait waits for the end. If the child failed or was ended by a signal, the error has the last lines of its log.
func (p *Process) Wait() error {
	<-p.done
	if p.err == nil {
		return nil
	}
	err := fmt.Errorf("%s exited: %w", p.name, p.err)
	if p.log != "" && !p.tail {
		return fmt.Errorf("%w; see %s", err, p.log)
	}
	if tail := Tail(p.log); tail != "" {
		err = fmt.Errorf("%w; last lines of %s:\n%s", err, p.log, tail)
	}
	return err
}

// Ended waits for the end and returns its cause, which is an error even if the child did not fail. It returns nil if
// ctx ends first.
func (p *Process) Ended(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.done:
	}
	if err := p.Wait(); err != nil {
		return err
	}
	err := fmt.Errorf("%s exited unexpectedly", p.name)
	if p.log != "" {
		err = fmt.Errorf("%w; see %s", err, p.log)
	}
	return err
}

// Stop stops the child and its group, and kills them if ctx ends first. It returns when the child has ended.
func (p *Process) Stop(ctx context.Context) {
	p.signal(stopSignal)
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Kill()
	}
}

// Kill kills the child and its group, and returns when the child has ended.
func (p *Process) Kill() {
	p.signal(killSignal)
	<-p.done
}

func (p *Process) signal(s signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		signalGroup(p.cmd.Process.Pid, s)
	}
}

// Tail returns the last lines of a log, indented by two blanks: at most twelve, from the last 4 KB. It returns "" if
// there is nothing to read.
func Tail(log string) string {
	const lines, size = 12, 4096
	file, err := os.Open(log)
	if err != nil {
		return ""
	}
	defer file.Close()
	if end, err := file.Seek(0, io.SeekEnd); err == nil {
		_, _ = file.Seek(max(0, end-size), io.SeekStart)
	}
	content, err := io.ReadAll(io.LimitReader(file, size))
	if err != nil || len(bytes.TrimSpace(content)) == 0 {
		return ""
	}
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	return "  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}
