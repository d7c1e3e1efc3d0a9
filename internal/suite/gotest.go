package suite

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// GoTest runs go test with the arguments and prints a line for each package as
// it ends, with all that a failed or skipped test wrote. Live prints everything
// as it comes, for tests that take their time.
func GoTest(ctx context.Context, out io.Writer, live bool, args ...string) (Count, error) {
	cmd := command(ctx, "go", append([]string{"test", "-json"}, args...)...)
	events, err := cmd.StdoutPipe()
	if err != nil {
		return Count{}, err
	}
	if err := cmd.Start(); err != nil {
		return Count{}, err
	}
	count, readErr := report(events, out, live)
	if err := errors.Join(readErr, cmd.Wait()); err != nil {
		return count, fmt.Errorf("go test: %w", err)
	}
	return count, nil
}

// event is one line of go test -json, as go doc test2json describes it.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// test names one test; that without a name is the package itself.
type test struct{ pkg, name string }

// reporter turns events into a report. It keeps what tests write until they end.
type reporter struct {
	out     io.Writer
	live    bool
	written map[test]*strings.Builder
	failed  map[string]bool // packages with a failed test
	count   Count
}

// report reads events up to the end. Lines that are none are printed as they are.
func report(events io.Reader, out io.Writer, live bool) (Count, error) {
	r := &reporter{out: out, live: live, written: map[test]*strings.Builder{}, failed: map[string]bool{}}
	reader := bufio.NewReader(events)
	for {
		line, err := reader.ReadBytes('\n')
		var e event
		if len(line) > 0 && json.Unmarshal(line, &e) != nil {
			fmt.Fprintf(out, "%s", line)
		}
		r.take(e)
		if errors.Is(err, io.EOF) {
			return r.count, nil
		}
		if err != nil {
			return r.count, err
		}
	}
}

func (r *reporter) take(e event) {
	t := test{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.write(t, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(t, e.Action)
		} else {
			r.endTest(t, e.Action)
		}
	}
}

func (r *reporter) write(t test, text string) {
	if strings.HasPrefix(text, "=== ") || text == "PASS\n" {
		return
	}
	if r.live && t.name != "" {
		fmt.Fprint(r.out, text)
		return
	}
	if r.written[t] == nil {
		r.written[t] = new(strings.Builder)
	}
	r.written[t].WriteString(text)
}

func (r *reporter) endTest(t test, action string) {
	switch action {
	case "pass":
		r.count.Passed++
	case "skip":
		r.count.Skipped++
		r.print(t)
	case "fail":
		r.count.Failed++
		r.failed[t.pkg] = true
		r.print(t)
	}
	delete(r.written, t)
}

// endPackage prints the package's own lines. One that fails without a failed
// test, as when it does not compile or a test ends the process, counts as one
// failure, and what its tests wrote until then is shown.
func (r *reporter) endPackage(t test, action string) {
	if action == "fail" && !r.failed[t.pkg] {
		r.count.Failed++
	}
	if action == "fail" {
		for other := range r.written {
			if other.pkg == t.pkg && other != t {
				r.print(other)
				delete(r.written, other)
			}
		}
	}
	r.print(t)
	delete(r.written, t)
}

func (r *reporter) print(t test) {
	if text := r.written[t]; text != nil {
		fmt.Fprint(r.out, text)
	}
}
