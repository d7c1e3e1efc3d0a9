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

// Command is the argument by which a program becomes the process that computes a
// simulation: it is to call [Work] then, before anything else.
const Command = "simulations-worker"

// job is what the process is told on its standard input.
type job struct {
	Grid   study.Grid `json:"grid"`
	Memory int64      `json:"memory"` // bytes of heap that it may use
}

// report is a line of the process's standard output. The last has End or Error.
type report struct {
	Point *api.SimulationPoint `json:"point,omitempty"`
	End   *conclusion          `json:"end,omitempty"`
	Error string               `json:"error,omitempty"`
}

// conclusion is what can be said when all is computed.
type conclusion struct {
	Explanation []string `json:"explanation,omitempty"`
}

// process computes a simulation in a process of its own, which has ended when this
// returns.
func (d *Desk) process(ctx context.Context, s *simulation) (explanation []string, err error) {
	cmd, err := d.command(ctx)
	if err != nil {
		return nil, err
	}
	told, err := json.Marshal(job{s.grid, d.opts.Memory})
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
	var words head
	cmd.Stderr = &words
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("the simulation's process cannot be started: %w", err)
	}
	_, _ = in.Write(told) // a process that does not read it says why not, or its exit does
	last := d.listen(s, out)
	if last.End == nil {
		_ = end(cmd.Process) // it has nothing more to say
	}
	_ = in.Close()
	switch err := cmd.Wait(); {
	case last.End != nil:
		return last.End.Explanation, nil
	case last.Error != "":
		return nil, errors.New(last.Error)
	case err != nil:
		return nil, fmt.Errorf("the simulation's process ended before it was done: %w%s", err, words.said())
	}
	return nil, errors.New("the simulation's process ended before it was done" + words.said())
}

// command is the process, not started: this program, with nothing of its environment,
// which may hold secrets.
func (d *Desk) command(ctx context.Context) (*exec.Cmd, error) {
	program := "/proc/self/exe" // this very file, even where another one has taken its name
	if runtime.GOOS != "linux" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, program, Command)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(d.environ[:len(d.environ):len(d.environ)], fmt.Sprintf("GOMAXPROCS=%d", d.opts.CPUs), fmt.Sprintf("GOMEMLIMIT=%d", d.opts.Memory))
	cmd.Cancel = func() error { return end(cmd.Process) }
	cmd.SysProcAttr = ownGroup() // an interrupt from the terminal is for the load generator alone
	cmd.WaitDelay = time.Second
	return cmd, nil
}

// end kills the process. On a machine that is busy, one of the lowest priority gets so little
// of the cores that even dying takes it seconds.
func end(p *os.Process) error {
	stepForward(p.Pid)
	return p.Kill()
}

// listen reads what the process says, and gives the last of it: the end, an error, or
// neither where it just stopped.
func (d *Desk) listen(s *simulation, out io.Reader) report {
	lines := json.NewDecoder(out)
	for {
		var r report
		if lines.Decode(&r) != nil || r.Point == nil {
			return r
		}
		d.grow(s, *r.Point)
	}
}

// head keeps the beginning of what a process says on its standard error, where a
// crash names its reason.
type head struct{ text []byte }

const maxHead = 2000 // bytes

func (h *head) Write(b []byte) (int, error) {
	h.text = append(h.text, b[:min(len(b), maxHead-len(h.text))]...)
	return len(b), nil
}

// said is its first line, to be put behind an error.
func (h *head) said() string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(h.text)), "\n")
	if line == "" {
		return ""
	}
	return ": " + line
}
