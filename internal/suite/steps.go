package suite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Step is a step of a build that runs concurrently with others.
type Step struct {
	Name     string
	Run      func(context.Context) error
	Progress func() string // returns the current state; called while the step runs
}

// progressInterval is the interval at which a long build prints its progress.
const progressInterval = 10 * time.Second

// Together runs steps concurrently and prints their progress to out. If a step fails, the others are canceled, and its
// error is returned.
func Together(ctx context.Context, out io.Writer, steps ...Step) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type end struct {
		step int
		err  error
	}
	began, ends, progress := time.Now(), make(chan end), map[int]func() string{}
	for i, s := range steps {
		progress[i] = s.Progress
		go func() { ends <- end{i, s.Run(ctx)} }()
	}
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	var first error
	for len(progress) > 0 {
		select {
		case e := <-ends:
			delete(progress, e.step)
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
				if progress[i] != nil {
					lines = append(lines, s.Name+": "+s.Progress())
				}
			}
			fmt.Fprintf(out, "%.0f s: %s\n", time.Since(began).Seconds(), strings.Join(lines, "; "))
		}
	}
	return first
}

// Compiler runs go build and counts the packages that it compiles.
type Compiler struct {
	Out   io.Writer // receives the compiler's messages
	Dir   string    // folder of the module; "" means the working directory
	Env   []string  // variables as "NAME=value", in addition to this process's
	Flags []string  // flags of go build

	compiled, all atomic.Int64
}

// Progress returns how many packages have been compiled, and how many there are. Cached packages are not counted as
// compiled.
func (c *Compiler) Progress() string {
	if c.all.Load() == 0 {
		return "finding the packages"
	}
	return fmt.Sprintf("compiled %d of at most %d packages", c.compiled.Load(), c.all.Load())
}

// packageLine matches the line of go build -v for a package that it compiles.
var packageLine = regexp.MustCompile(`^[\w.~/+-]+$`)

// BuildAll builds packages one after the other. An output is a pair of file and package.
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
	output, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if packageLine.MatchString(lines.Text()) {
			c.compiled.Add(1)
		} else {
			fmt.Fprintln(c.Out, lines.Text())
		}
	}
	return cmd.Wait()
}

// collectLess lets compilers and tests collect garbage less often: a sixth less processor time for more memory.
const collectLess = "GOGC=400"

// compilerMemory is the environment of compilers: [collectLess] up to a limit for each process.
var compilerMemory = []string{collectLess, "GOMEMLIMIT=1500MiB"}

// Compile runs a go command that mostly compiles, with the environment for compilers.
func Compile(ctx context.Context, args ...string) error {
	cmd := command(ctx, "go", args...)
	cmd.Stdout, cmd.Env = os.Stdout, append(os.Environ(), compilerMemory...)
	return cmd.Run()
}

// command returns a go command in the module with its environment.
func (c *Compiler) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := command(ctx, "go", args...)
	cmd.Dir, cmd.Env = c.Dir, slices.Concat(os.Environ(), compilerMemory, c.Env)
	return cmd
}
