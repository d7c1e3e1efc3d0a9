//go:build grafana

package grafanatest

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvbooth/internal/browser"
	"kvbooth/internal/source"
	"kvbooth/sidecar/local"
)

// tools are what the journeys need of the machine.
type tools struct {
	grafana        local.Grafana
	node, chromium string
}

// findTools skips the test where one of them is missing.
func findTools(t *testing.T) tools {
	t.Helper()
	var found tools
	var err error
	need := func(missing error, name string) {
		t.Helper()
		switch {
		case errors.Is(err, missing):
			t.Skipf("skipped: %s (%v)", name, err)
		case err != nil:
			t.Fatal(err)
		}
	}
	found.grafana, err = local.FindGrafana(t.Context())
	need(local.ErrNoGrafana, "no Grafana")
	found.node, err = browser.FindNode(t.Context())
	need(browser.ErrNoNode, "no Node.js 20")
	found.chromium, err = browser.FindChromium(t.Context(), os.Stderr)
	need(browser.ErrNoChromium, "no Chromium")
	return found
}

// resultsVariable names the folder for screenshots and logs. Without it, they go to
// test-results in the module.
const resultsVariable = "GRAFANATEST_RESULTS"

func results(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv(resultsVariable); dir != "" {
		return dir
	}
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "test-results")
}

// The journeys that hold against any target and under any address, and the others.
var (
	core   = []string{"dashboards", "operate", "workers"}
	others = []string{"screenshots", "cost", "roles", "loss", "settings", "together", "accessibility"}
)

func TestBooth(t *testing.T) {
	found := findTools(t)
	b := startBooth(t, simulated)
	t.Run("at the root", func(t *testing.T) { b.journeys(t, found, "", slices.Concat(core, others)) })
	t.Run("under a path", func(t *testing.T) { b.journeys(t, found, "/grafana", core) })
}

// filterVariable names the environment variable with the journeys' files to run, separated
// by commas.
const filterVariable = "GRAFANATEST_JOURNEYS"

// journeys runs files of tests/browser against a Grafana of its own. Each test in
// them is a subtest.
func (b *booth) journeys(t *testing.T, found tools, path string, files []string) {
	t.Helper()
	if only := os.Getenv(filterVariable); only != "" {
		files = strings.Split(only, ",")
	}
	grafana := b.startGrafana(t, found.grafana, path)
	scripts := filepath.Join(b.root, "tests", "browser")
	events, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	node, err := local.Start(local.Command{
		Name: "node", Path: found.node, Output: output, Parent: true,
		Args: []string{"--test", "--test-reporter=" + filepath.Join(scripts, "reporter.mjs"), filepath.Join(scripts, "run.mjs")},
		Env: append(os.Environ(),
			"GRAFANA_URL="+grafana, "LOADGEN_URL="+b.loadgen, "LOADGEN_TOKEN="+token, "CONTROL_URL="+control(t, b.parts),
			"JOURNEYS="+strings.Join(files, ","), "TARGET="+b.target.name, "PASSWORD="+password,
			browser.ChromiumVariable+"="+found.chromium, "RESULTS="+filepath.Join(results(t), "screenshots")),
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
