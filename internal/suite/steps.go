package suite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
)

// Step is a step of a build that runs beside others.
type Step struct {
	Name string
	Run  func(context.Context) error
	Far  func() string // what it does and how far it is; called while it runs
}

// farEvery is how often a build that takes long says how far it is.
const farEvery = 10 * time.Second

// Together runs steps at the same time and says on out, now and then, how far each
// is. Where one fails the others are ended, and its error is given.
func Together(ctx context.Context, out io.Writer, steps ...Step) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type end struct {
		step int
		err  error
	}
	began, ends, far := time.Now(), make(chan end), map[int]func() string{}
	for i, s := range steps {
		far[i] = s.Far
		go func() { ends <- end{i, s.Run(ctx)} }()
	}
	tick := time.NewTicker(farEvery)
	defer tick.Stop()
	var first error
	for len(far) > 0 {
		select {
		case e := <-ends:
			delete(far, e.step)
			switch name := steps[e.step].Name; {
			case e.err == nil:
				fmt.Fprintf(out, "%s: done after %.0f s\n", name, time.Since(began).Seconds())
			case first == nil:
				first = fmt.Errorf("%s: %w", name, e.err)
				cancel()
			}
		case <-tick.C:
			var lines []string
			for i, s := range steps {
				if far[i] != nil {
					lines = append(lines, s.Name+": "+s.Far())
				}
			}
			fmt.Fprintf(out, "%.0f s: %s\n", time.Since(began).Seconds(), strings.Join(lines, "; "))
		}
	}
	return first
}

// Compiler runs go build and counts the packages that it compiles.
type Compiler struct {
	Out   io.Writer // what the compiler says
	Dir   string    // of the module, "" for the working directory
	Env   []string  // "NAME=value" each, beside this process's
	Flags []string  // of go build

	compiled, all atomic.Int64
}

// Far is how many packages have been compiled, those that were compiled before not
// counted, of how many there are.
func (c *Compiler) Far() string {
	if c.all.Load() == 0 {
		return "finding the packages"
	}
	return fmt.Sprintf("compiled %d of at most %d packages", c.compiled.Load(), c.all.Load())
}

// packageLine is what go build -v says of a package that it compiles.
var packageLine = regexp.MustCompile(`^[\w.~/+-]+$`)

// BuildAll builds packages one after the other, each to a file: pairs of file and
// package.
func (c *Compiler) BuildAll(ctx context.Context, outputs ...[2]string) error {
	list := []string{"list", "-deps"}
	for _, o := range outputs {
		list = append(list, o[1])
	}
	needed, err := c.command(ctx, list...).Output()
	if err != nil {
		return err
	}
	c.all.Store(int64(strings.Count(string(needed), "\n")))
	for _, o := range outputs {
		if err := c.build(ctx, o[0], o[1]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Compiler) build(ctx context.Context, to, pkg string) error {
	cmd := c.command(ctx, append(append([]string{"build", "-v"}, c.Flags...), "-o", to, pkg)...)
	cmd.Stderr = nil
	said, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if packageLine.MatchString(lines.Text()) {
			c.compiled.Add(1)
		} else {
			fmt.Fprintln(c.Out, lines.Text())
		}
	}
	return cmd.Wait()
}

// command is one of go's, with its module and environment.
func (c *Compiler) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := command(ctx, "go", args...)
	cmd.Dir, cmd.Env = c.Dir, append(os.Environ(), c.Env...)
	return cmd
}
