package whatif

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim/study"
)

// Command is the argument with which the program becomes the process that computes a simulation.
// The program must then call [Work] before anything else.
const Command = "simulations-worker"

// job is the input of the process.
type job struct {
	Grid   study.Grid      `json:"grid"`
	Memory int64           `json:"memory"`          // limit of the heap in bytes
	Trace  json.RawMessage `json:"trace,omitempty"` // nil: none
}

// report is a line of the process's standard output. The last line has End or Error.
type report struct {
	Point *api.SimulationPoint `json:"point,omitempty"`
	End   *conclusion          `json:"end,omitempty"`
	Error string               `json:"error,omitempty"`
}

// conclusion is the result of all runs.
type conclusion struct {
	Explanation []string `json:"explanation,omitempty"`
}

// process computes a simulation in a child process. The child has exited when it returns.
func (d *Desk) process(ctx context.Context, s *simulation) (explanation []string, err error) {
	cmd, err := d.command(ctx)
	if err != nil {
		return nil, err
	}
	j := job{Grid: s.grid, Memory: d.opts.Memory}
	if *s.request.Trace {
		j.Trace = d.opts.Spec
	}
	input, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var stderr head
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("the simulation's process cannot be started: %w", err)
	}
	_, _ = in.Write(input) // if the process does not read it, its error or exit code shows the reason
	last := d.readReports(s, out)
	if last.End == nil {
		_ = kill(cmd.Process)
	}
	_ = in.Close()
	switch err := cmd.Wait(); {
	case last.End != nil:
		return last.End.Explanation, nil
	case last.Error != "":
		return nil, errors.New(last.Error)
	case err != nil:
		return nil, fmt.Errorf("the simulation's process ended before it was done: %w%s", err, stderr.suffix())
	}
	return nil, errors.New("the simulation's process ended before it was done" + stderr.suffix())
}

// command returns the process, not started: this program, without its environment, which may
// hold secrets.
func (d *Desk) command(ctx context.Context) (*exec.Cmd, error) {
	program := "/proc/self/exe" // the running file, also after it was replaced under its name
	if runtime.GOOS != "linux" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, program, Command)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(d.environ[:len(d.environ):len(d.environ)],
		fmt.Sprintf("GOMAXPROCS=%d", d.opts.CPUs), fmt.Sprintf("GOMEMLIMIT=%d", d.opts.Memory))
	cmd.Cancel = func() error { return kill(cmd.Process) }
	cmd.SysProcAttr = ownGroup() // an interrupt from the terminal ends only the load generator
	cmd.WaitDelay = time.Second
	return cmd, nil
}

// kill kills the process. On a busy machine a process of the lowest priority may take seconds to
// exit, so its priority is raised first.
func kill(p *os.Process) error {
	raisePriority(p.Pid)
	return p.Kill()
}

// readReports reads the output of the process, and returns the last report: the end, an error, or
// an empty one where the output stops.
func (d *Desk) readReports(s *simulation, out io.Reader) report {
	lines := json.NewDecoder(out)
	for {
		var r report
		if lines.Decode(&r) != nil || r.Point == nil {
			return r
		}
		d.update(s, *r.Point)
	}
}

// head keeps the beginning of a process's standard error, where a crash names its reason.
type head struct{ text []byte }

const maxHead = 2000 // bytes

func (h *head) Write(b []byte) (int, error) {
	h.text = append(h.text, b[:min(len(b), maxHead-len(h.text))]...)
	return len(b), nil
}

// suffix returns the first line as the end of an error.
func (h *head) suffix() string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(h.text)), "\n")
	if line == "" {
		return ""
	}
	return ": " + line
}
