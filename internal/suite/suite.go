// Package suite runs the project's checks and tests in parts and prints the result of each.
package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"kvbooth/internal/figure"
)

// Count is the number of tests by result.
type Count struct {
	Passed, Failed, Skipped int
	Failures                []Failure       // the failed tests in the reports
	Skips                   []string        // reasons of skipped tests, each once
	Figures                 []figure.Figure // measured by the tests
}

// Failure is a test that failed.
type Failure struct {
	Name   string // last part of the package and name, or file of a journey
	Output string // the first lines of its output, indented
}

// String returns a line with the name, followed by the output.
func (f Failure) String() string { return "FAILED " + f.Name + f.Output }

func (c *Count) add(other Count) {
	c.Passed += other.Passed
	c.Failed += other.Failed
	c.Skipped += other.Skipped
	c.Failures = append(c.Failures, other.Failures...)
	c.Figures = append(c.Figures, other.Figures...)
	for _, reason := range other.Skips {
		if !slices.Contains(c.Skips, reason) {
			c.Skips = append(c.Skips, reason)
		}
	}
}

// Part is one part of the suite.
type Part struct {
	Name string
	// Run runs the part. An error without a failed test counts as one.
	Run func(context.Context) (Count, error)
	// WithPrevious starts the part at the same time as the one before it.
	WithPrevious bool
	// Throughout starts the part with the first one, at the lowest priority, concurrently with all others.
	Throughout bool
	// Checks is what docs/verification.md says of the part: what it checks of the product, and how.
	Checks string
}

// Skipped is the error of a part with a missing requirement. Its text names the command that installs it.
type Skipped string

func (s Skipped) Error() string { return "skipped: " + string(s) }

// Check returns a part that passes or fails as a whole.
func Check(name string, run func(context.Context) error) Part {
	return Part{Name: name, Run: func(ctx context.Context) (Count, error) {
		if err := run(ctx); err != nil {
			return Count{}, err
		}
		return Count{Passed: 1}, nil
	}}
}

// Result is the result of a part.
type Result struct {
	Part
	Count
	Err  error // nil if it passed or was skipped
	Took time.Duration
}

// Run runs all parts, even after a failure, until ctx ends, and returns their results, first those of the parts that
// ran throughout. Its output ends with the failures of all parts, a table of the parts, the names of the failed ones,
// and the line "N passed, N failed, N skipped". The error names the failed parts and tests. Concurrent parts write to
// out concurrently.
func Run(ctx context.Context, out io.Writer, parts ...Part) ([]Result, error) {
	var background, foreground []Part
	for _, p := range parts {
		if p.Throughout {
			background = append(background, p)
		} else {
			foreground = append(foreground, p)
		}
	}
	var results, rest []Result
	var wg sync.WaitGroup
	wg.Go(func() { results = runTogether(lowPriority(ctx), out, background) })
	for len(foreground) > 0 && ctx.Err() == nil {
		n := together(foreground)
		rest = append(rest, runTogether(ctx, out, foreground[:n])...)
		foreground = foreground[n:]
	}
	wg.Wait()
	results = append(results, rest...)
	var total Count
	var failed []string
	for _, r := range results {
		total.add(r.Count)
		if r.Err != nil {
			failed = append(failed, r.Name+named(r.Failures))
		}
	}
	err := outcome(ctx, failed)
	for _, f := range total.Failures {
		fmt.Fprintf(out, "\n%s\n", f)
	}
	fmt.Fprintf(out, "\n%s", table(results))
	if err != nil {
		fmt.Fprintln(out, err)
	}
	fmt.Fprintln(out, total)
	return results, err
}

// table renders a row for each part: time, tests, and the reasons of skipped tests.
func table(results []Result) string {
	text := new(strings.Builder)
	w := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "part\ttime\tpassed\tfailed\tskipped\twhy")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\n",
			r.Name, clock(r.Took), r.Passed, r.Failed, r.Skipped, strings.Join(r.Skips, "; "))
	}
	w.Flush()
	return text.String()
}

// clock formats a duration as minutes and seconds.
func clock(d time.Duration) string {
	seconds := int(d.Round(time.Second).Seconds())
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

// together returns the number of parts that start at the same time.
func together(parts []Part) int {
	n := 1
	for n < len(parts) && parts[n].WithPrevious {
		n++
	}
	return n
}

func runTogether(ctx context.Context, out io.Writer, parts []Part) []Result {
	results := make([]Result, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() {
			began := time.Now()
			count, err := p.run(ctx, out)
			results[i] = Result{Part: p, Count: count, Err: err, Took: time.Since(began)}
		})
	}
	wg.Wait()
	return results
}

// run runs one part and prints its failures.
func (p Part) run(ctx context.Context, out io.Writer) (Count, error) {
	fmt.Fprintf(out, "\n== %s\n", p.Name)
	count, err := p.Run(ctx)
	skipped := Skipped("")
	switch {
	case err == nil:
		return count, nil
	case errors.As(err, &skipped):
		fmt.Fprintln(out, skipped.Error())
		count.add(Count{Skipped: 1, Skips: []string{string(skipped)}})
		return count, nil
	}
	count.Failed = max(count.Failed, 1)
	var end strings.Builder // written at once, since concurrent parts write too
	for _, f := range count.Failures {
		fmt.Fprintln(&end, f)
	}
	fmt.Fprintf(out, "%s%s: %v\n", &end, p.Name, err)
	return count, err
}

// namedFailures is the number of failed tests that the line of a part names.
const namedFailures = 5

// named returns the names of failed tests in brackets, or "" for none.
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

// String returns "N passed, N failed, N skipped".
func (c Count) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.Passed, c.Failed, c.Skipped)
}

// Command runs a program with the standard streams of this process. When ctx ends, it is interrupted, and killed ten
// seconds later.
func Command(ctx context.Context, name string, args ...string) error {
	cmd := command(ctx, name, args...)
	cmd.Stdout = os.Stdout
	return cmd.Run()
}

// priority is the key of a context whose commands run at the lowest priority.
type lowest struct{}

func lowPriority(ctx context.Context) context.Context {
	return context.WithValue(ctx, lowest{}, true)
}

// command returns a command with the standard input and error of this process. The caller sets its output. When ctx
// ends, the command is interrupted, and killed ten seconds later. With a ctx of [lowPriority] it runs at the lowest
// priority, if the machine has the program nice.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	if nice, err := exec.LookPath("nice"); err == nil && ctx.Value(lowest{}) != nil {
		name, args = nice, append([]string{"-n", "19", name}, args...)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}
