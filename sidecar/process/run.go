package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	// runGrace is the time that a program gets to end after ctx, and that a program left behind gets to close its output.
	runGrace = 5 * time.Second
	// maxRunLine and maxRunLines bound what [Run] passes on of a program's output.
	maxRunLine  = 400
	maxRunLines = 200
)

// Run runs a program to its end and passes each line of its output and its errors to output, one call at a time. It
// uses the name, path, arguments and environment of c. What the program leaves running goes on, and its later output is
// dropped. If ctx ends first, the program and its group are stopped, and killed five seconds later; the error is then
// the cause of ctx's end. Otherwise the error names the program and its exit code. On Linux, the program is killed when
// this process is killed.
func Run(ctx context.Context, c Command, output func(line string)) error {
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.SysProcAttr = ownGroup(false)
	if cmd.Env = c.Env; c.Env == nil {
		cmd.Env = Environment()
	}
	cmd.Cancel = func() error {
		signalGroup(cmd.Process.Pid, stopSignal)
		return nil
	}
	cmd.WaitDelay = runGrace
	lines := &lineWriter{output: output}
	cmd.Stdout, cmd.Stderr = lines, lines
	runtime.LockOSThread() // Linux kills the program when the thread that started it ends
	err := cmd.Run()
	runtime.UnlockOSThread()
	lines.flush()
	if ctx.Err() != nil {
		if cmd.Process != nil {
			signalGroup(cmd.Process.Pid, killSignal)
		}
		return context.Cause(ctx)
	}
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	if last := lines.last; last != "" {
		return fmt.Errorf("%s: %w: %s", c.Name, err, last)
	}
	return fmt.Errorf("%s: %w", c.Name, err)
}

// lineWriter passes on what is written to it, line by line.
type lineWriter struct {
	output func(line string)

	mu      sync.Mutex // standard output and errors are written by one goroutine each where they differ
	pending []byte
	n       int
	last    string // the latest line that is not empty
}

// Write passes on the lines that p ends.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = append(w.pending, p...)
	for {
		line, rest, found := bytes.Cut(w.pending, []byte("\n"))
		if !found {
			if len(w.pending) > maxRunLine {
				w.pending = w.pending[:maxRunLine]
			}
			return len(p), nil
		}
		w.emit(line)
		w.pending = rest
	}
}

func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.emit(w.pending)
	w.pending = nil
}

func (w *lineWriter) emit(line []byte) {
	text := strings.TrimSpace(strings.ToValidUTF8(string(line[:min(len(line), maxRunLine)]), "�"))
	if text == "" {
		return
	}
	w.last = text
	if w.n++; w.n <= maxRunLines {
		w.output(text)
	}
	if w.n == maxRunLines {
		w.output(fmt.Sprintf("the lines after the first %d are not shown", maxRunLines))
	}
}
