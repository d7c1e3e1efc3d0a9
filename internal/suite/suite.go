// Package suite runs the project's checks and tests in parts, and says what each
// of them did and how long it took.
package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// Count is how many tests ended in which way.
type Count struct {
	Passed, Failed, Skipped int
	Failures                []Failure // those that failed, as far as reports tell
}

// Failure is a test that failed.
type Failure struct {
	Name string // with the last part of its package, or the file of a journey
	Said string // the first lines of what it said, indented
}

func (f Failure) String() string { return "FAILED " + f.Name + f.Said }

func (c *Count) add(other Count) {
	c.Passed += other.Passed
	c.Failed += other.Failed
	c.Skipped += other.Skipped
	c.Failures = append(c.Failures, other.Failures...)
}

// Part is one part of the suite.
type Part struct {
	Name string
	// Run runs the part. An error together with no failed test counts as one.
	Run func(context.Context) (Count, error)
	// Beside has the part run at the same time as the one before it.
	Beside bool
}

// Skipped is the error of a part that cannot run here, and why.
type Skipped string

func (s Skipped) Error() string { return "skipped: " + string(s) }

// Check makes a part that passes or fails as a whole.
func Check(name string, run func(context.Context) error) Part {
	return Part{Name: name, Run: func(ctx context.Context) (Count, error) {
		if err := run(ctx); err != nil {
			return Count{}, err
		}
		return Count{Passed: 1}, nil
	}}
}

// Run runs all parts, also after one has failed, unless ctx ends. A part's output
// closes with what failed in it, and all output with that of all parts, a table of
// times, the names of the parts and tests that failed, and the line "N passed, N
// failed": who sees the end alone, sees why. Its error names the same parts and tests.
// Parts that run beside each other write to out at the same time.
func Run(ctx context.Context, out io.Writer, parts ...Part) error {
	var total Count
	var failed []string
	summary := new(strings.Builder)
	table := tabwriter.NewWriter(summary, 0, 0, 2, ' ', 0)
	for len(parts) > 0 && ctx.Err() == nil {
		n := together(parts)
		for _, r := range runTogether(ctx, out, parts[:n]) {
			total.add(r.count)
			if r.verdict == failure {
				failed = append(failed, r.name+named(r.count.Failures))
			}
			fmt.Fprintf(table, "%s\t%.1f s\t%s\n", r.name, r.took.Seconds(), r.verdict)
		}
		parts = parts[n:]
	}
	table.Flush()
	err := outcome(ctx, failed)
	for _, f := range total.Failures {
		fmt.Fprintf(out, "\n%s\n", f)
	}
	fmt.Fprintf(out, "\n%s", summary)
	if err != nil {
		fmt.Fprintln(out, err)
	}
	fmt.Fprintln(out, total)
	return err
}

// together says how many of the parts begin at the same time.
func together(parts []Part) int {
	n := 1
	for n < len(parts) && parts[n].Beside {
		n++
	}
	return n
}

// result is a line of the table.
type result struct {
	name    string
	count   Count
	verdict string
	took    time.Duration
}

func runTogether(ctx context.Context, out io.Writer, parts []Part) []result {
	results := make([]result, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() {
			began := time.Now()
			count, verdict := p.run(ctx, out)
			results[i] = result{p.Name, count, verdict, time.Since(began)}
		})
	}
	wg.Wait()
	return results
}

const failure = "FAILED"

// run runs one part and gives its line of the table.
func (p Part) run(ctx context.Context, out io.Writer) (count Count, verdict string) {
	fmt.Fprintf(out, "\n== %s\n", p.Name)
	count, err := p.Run(ctx)
	switch skipped := Skipped(""); {
	case err == nil:
		return count, "ok"
	case errors.As(err, &skipped):
		fmt.Fprintln(out, skipped.Error())
		count.Skipped = max(count.Skipped, 1)
		return count, skipped.Error()
	}
	count.Failed = max(count.Failed, 1)
	var end strings.Builder // written at once: a part beside this one writes, too
	for _, f := range count.Failures {
		fmt.Fprintln(&end, f)
	}
	fmt.Fprintf(out, "%s%s: %v\n", &end, p.Name, err)
	return count, failure
}

// namedFailures is how many failed tests of a part the line of the parts names.
const namedFailures = 5

// named gives the names of failed tests in brackets, or "" for none.
func named(failures []Failure) string {
	if len(failures) == 0 {
		return ""
	}
	var names []string
	for _, f := range failures[:min(len(failures), namedFailures)] {
		names = append(names, f.Name)
	}
	if more := len(failures) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return " (" + strings.Join(names, "; ") + ")"
}

func outcome(ctx context.Context, failed []string) error {
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case len(failed) > 0:
		return errors.New("failed: " + strings.Join(failed, ", "))
	}
	return nil
}

// String is "N passed, N failed", and what was skipped, if anything.
func (c Count) String() string {
	s := fmt.Sprintf("%d passed, %d failed", c.Passed, c.Failed)
	if c.Skipped > 0 {
		s += fmt.Sprintf(", %d skipped", c.Skipped)
	}
	return s
}

// Command runs a program with the standard streams of this one. When ctx ends it
// is interrupted, and killed ten seconds later.
func Command(ctx context.Context, name string, args ...string) error {
	cmd := command(ctx, name, args...)
	cmd.Stdout = os.Stdout
	return cmd.Run()
}

func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}
