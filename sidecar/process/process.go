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

// Command is a program to start.
type Command struct {
	Name   string   // for messages
	Path   string   // of the program
	Args   []string // without the program's name
	Env    []string // "NAME=value" each; nil means what [Environment] gives
	Log    string   // the file that its output is appended to; the folder is made if need be
	Brief  bool     // messages name the log, and do not quote it
	Output *os.File // where its output goes instead of a log, if not nil
	Errors *os.File // where its standard error goes instead of there, if not nil
	Input  *os.File // its standard input; nil: it has none

	// Parent says that it has children of its own. Where this process is killed, it
	// is asked to end, so that it can end them, instead of being killed too (Linux).
	Parent bool
}

// Process is a child in a process group of its own, which its own children join
// unless they leave it. Its methods are safe for concurrent use.
type Process struct {
	name string
	log  string // "" where its output goes elsewhere
	tail bool   // messages quote the log
	cmd  *exec.Cmd

	done chan struct{}

	mu     sync.Mutex // held while it is signalled and while it is reaped
	reaped bool       // its pid may be another process's by now
	err    error      // set before done is closed
}

// Start starts a program. The error says which program and why.
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
		defer log.Close() // the child has its own copy
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

// Environment is this process's environment without the load generator's settings,
// which are nobody else's business: its token and its keys are among them.
func Environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "LOADGEN_") })
}

// openLog opens a log, which may quote what people have asked, for this user alone.
func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := log.Chmod(0o600); err != nil && runtime.GOOS != "windows" { // it may be an older version's
		return nil, errors.Join(err, log.Close())
	}
	return log, nil
}

// run starts the child and waits for its end on one and the same thread: Linux
// kills the child when the thread that started it ends.
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
		p.mu.Lock() // nobody may signal a pid that is being given back
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

// Name is what messages call the child.
func (p *Process) Name() string { return p.name }

// PID is the child's process id, which is its group's too.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exited says whether the child has ended.
func (p *Process) Exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// ExitCode waits for the end and gives the child's exit code, -1 if a signal ended it.
func (p *Process) ExitCode() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// Wait waits for the end. The error of a child that failed, or that a signal
// ended, says so with the last lines of its log.
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

// Ended waits for the end and says why the child ended, which is an error even where
// it did not fail. It gives nil where ctx ends first.
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

// Stop asks the child and its group to end, and kills them when ctx ends first.
// It returns when the child has ended.
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

// StopAll stops several processes at once; nil ones are passed over.
func StopAll(ctx context.Context, processes ...*Process) {
	var wg sync.WaitGroup
	for _, p := range processes {
		if p != nil {
			wg.Go(func() { p.Stop(ctx) })
		}
	}
	wg.Wait()
}

// Tail gives the last lines of a log, each indented by two blanks: at most twelve,
// from the last 4 KB. It is "" where there is nothing to read.
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
