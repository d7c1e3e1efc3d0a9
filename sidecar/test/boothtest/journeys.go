package boothtest

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvbooth/internal/browser"
	"kvbooth/sidecar/booth/local"
)

// Tools are what the journeys need of the machine.
type Tools struct{ node, chromium string }

// FindTools skips the test where one of them is missing.
func FindTools(t *testing.T) Tools {
	t.Helper()
	var found Tools
	var err error
	found.node, err = browser.FindNode(t.Context())
	Need(t, err, browser.ErrNoNode, "no Node.js 20")
	found.chromium, err = browser.FindChromium(t.Context(), os.Stderr)
	Need(t, err, browser.ErrNoChromium, "no Chromium")
	return found
}

// Need skips the test, by the name of what it needs, where that is missing.
func Need(t *testing.T, err, missing error, name string) {
	t.Helper()
	switch {
	case errors.Is(err, missing):
		t.Skipf("skipped: %s (%v)", name, err)
	case err != nil:
		t.Fatal(err)
	}
}

// filterVariable names the environment variable with the journeys' files to run, separated
// by commas.
const filterVariable = "BOOTHTEST_JOURNEYS"

// Journeys runs files of tests/browser, or of a folder in it, with what else they
// are to find in their environment. Each test in them is a subtest.
func (b *Booth) Journeys(t *testing.T, found Tools, files []string, env ...string) {
	t.Helper()
	if only := os.Getenv(filterVariable); only != "" {
		files = strings.Split(only, ",")
	}
	scripts := filepath.Join(b.Root, "tests", "browser")
	events, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	node, err := local.Start(local.Command{
		Name: "node", Path: found.node, Output: output, Parent: true,
		Args: []string{"--test", "--test-reporter=" + filepath.Join(scripts, "reporter.mjs"), filepath.Join(scripts, "run.mjs")},
		Env: append(append(os.Environ(),
			"LOADGEN_URL="+b.Loadgen, "LOADGEN_TOKEN="+b.Token, "CONTROL_URL="+control(t, b.parts),
			"JOURNEYS="+strings.Join(files, ","), "TARGET="+b.target.Name,
			browser.ChromiumVariable+"="+found.chromium, "RESULTS="+filepath.Join(Results(t), "screenshots"), "FAILED="+filepath.Dir(Log(t, ""))), env...),
	})
	if err = errors.Join(err, output.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(node) })
	report(t, events)
	if err := node.Wait(); err != nil && !t.Failed() {
		t.Error(err)
	}
}

// event is a line of reporter.mjs: a test's end, or something that it says.
type event struct {
	Test    string  `json:"test"` // "" for what is only said
	Seconds float64 `json:"seconds"`
	Failure string  `json:"failure"` // "" where it passed
	Skipped string  `json:"skipped"` // why
	Said    string  `json:"said"`
}

// report makes a subtest of every test, and passes on what is said.
func report(t *testing.T, events io.Reader) {
	t.Helper()
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			reportLine(t, line)
		}
		if err != nil {
			return
		}
	}
}

func reportLine(t *testing.T, line []byte) {
	t.Helper()
	var e event
	if json.Unmarshal(line, &e) != nil {
		e = event{Said: string(line)}
	}
	if e.Test == "" {
		t.Log(strings.TrimRight(e.Said, "\n"))
		return
	}
	t.Run(e.Test, func(t *testing.T) {
		switch {
		case e.Skipped != "":
			t.Skip("skipped:", e.Skipped)
		case e.Failure != "":
			t.Error(e.Failure)
		}
		t.Logf("%.1f s", e.Seconds)
	})
}
