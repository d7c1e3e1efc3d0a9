package boothtest

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/browser"
	"kvbooth/internal/suite"
	"kvbooth/sidecar/process"
)

// Tools are the programs that the journeys need.
type Tools struct{ node, chromium string }

// FindTools finds the tools, and skips the test if one is missing.
func FindTools(t *testing.T) Tools {
	t.Helper()
	var found Tools
	var err error
	found.node, err = browser.FindNode(t.Context())
	Need(t, err, browser.ErrNoNode, "no Node.js 20.19; install it from https://nodejs.org")
	found.chromium, err = browser.FindChromium(t.Context(), os.Stderr)
	Need(t, err, browser.ErrNoChromium, "no Chromium; run apt-get install chromium")
	return found
}

// Need skips the test if err is missing, with the name of the needed tool, and fails it with other errors.
func Need(t *testing.T, err, missing error, name string) {
	t.Helper()
	switch {
	case errors.Is(err, missing):
		t.Skipf("skipped: %s (%v)", name, err)
	case err != nil:
		t.Fatal(err)
	}
}

// filterVariable names the environment variable with the files of the journeys to run, separated by commas.
const filterVariable = "BOOTHTEST_JOURNEYS"

// Journeys runs a project of playwright.config.ts with further environment variables. A suite that runs the test
// includes the journeys in its reports.
func (b *Booth) Journeys(t *testing.T, found Tools, project string, env ...string) {
	t.Helper()
	playwright := filepath.Join(b.Root, "node_modules", "@playwright", "test", "cli.js")
	args := []string{playwright, "test", "--config=" + b.Root, "--project=" + project}
	if only := os.Getenv(filterVariable); only != "" {
		args = append(args, strings.Split(only, ",")...)
	}
	logs := filepath.Dir(Log(t, ""))
	report := strings.ReplaceAll(t.Name(), "/", "-") + "-" + project + ".xml"
	report = filepath.Join(cmp.Or(os.Getenv(suite.ReportsVariable), logs), report)
	node, err := process.Start(process.Command{
		Name: "playwright", Path: found.node, Args: args, Output: os.Stdout, Parent: true,
		Env: append(append(os.Environ(), "LOADGEN_URL="+b.Loadgen, "LOADGEN_TOKEN="+b.Token,
			"TARGET_URL=http://"+b.target.Frontend, "CONTROL_URL="+Control(t, b.parts), "PLACE="+project,
			browser.ChromiumVariable+"="+found.chromium, "RESULTS="+filepath.Join(Results(t), "screenshots"),
			"JOURNEYS_OUTPUT="+filepath.Join(logs, project), "PLAYWRIGHT_JUNIT_OUTPUT_FILE="+report), env...),
	})
	require.NoError(t, err)
	t.Cleanup(func() { stop(node) })
	if err := node.Wait(); err != nil {
		t.Errorf("%v; pictures and traces of what failed are in %s", err, filepath.Join(logs, project))
	}
}
