// Package frontend builds and checks the Grafana app and the load generator's page.
package frontend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"kvbooth/internal/browser"
	"kvbooth/internal/suite"
	"kvbooth/sidecar/booth/local"
)

// Paths from the module's root.
const (
	lock      = "package-lock.json"
	installed = "node_modules/.kvbooth-lock" // a copy of the installed lock file

	installedMB = 650
)

// Bundle is a front end, by its name in the configuration of the bundler.
type Bundle string

const (
	// App is the Grafana app, in dist.
	App Bundle = "app"
	// Page is the page that the load generator embeds, in sidecar/loadgen/server/page/files. The load generator must be
	// linked after it.
	Page Bundle = "page"
)

// builtFiles maps each bundle to the file that its build writes last.
var builtFiles = map[Bundle]string{App: "dist/module.js", Page: "sidecar/loadgen/server/page/files/index.html"}

// sources lists the files that the front ends are built from.
var sources = []string{
	"src", "dashboards", lock, "rspack.config.mjs", "rspack.page.config.mjs", ".config/webpack", "README.md",
	"CHANGELOG.md", "LICENSE",
}

// Rebuild builds the bundles, whether or not their sources have changed.
func Rebuild(ctx context.Context, bundles ...Bundle) error {
	for _, bundle := range bundles {
		if err := os.Remove(builtFiles[bundle]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return Build(ctx, bundles...)
}

// Build builds the bundles whose sources have changed. Without Node.js, it returns [browser.ErrNoNode].
func Build(ctx context.Context, bundles ...Bundle) error {
	if _, err := browser.FindNode(ctx); err != nil {
		return err
	}
	if err := Install(ctx); err != nil {
		return err
	}
	args := []string{"run", "--silent", "build", "--"}
	var stale []Bundle
	for _, bundle := range bundles {
		if changed(builtFiles[bundle]) {
			stale = append(stale, bundle)
			args = append(args, "--config-name="+string(bundle))
		}
	}
	if len(stale) == 0 {
		return nil
	}
	fmt.Println("bundling:", stale)
	phase.Store(bundling)
	if err := npm(ctx, args...); err != nil {
		return err
	}
	return touch(stale)
}

// The states of [Build].
const (
	checking = iota
	installing
	bundling
)

var phase atomic.Int32

// Progress returns the state of [Build].
func Progress() string {
	switch phase.Load() {
	case installing:
		return fmt.Sprintf("%d of about %d MB of packages installed", local.DiskUse("node_modules")>>20, installedMB)
	case bundling:
		return "packages installed, bundling"
	}
	return "checking what has changed"
}

// touch sets the time of the built files, since the bundler does not write unchanged files.
func touch(bundles []Bundle) error {
	var err error
	for _, bundle := range bundles {
		err = errors.Join(err, os.Chtimes(builtFiles[bundle], time.Time{}, time.Now()))
	}
	return err
}

// installation is locked during [Install].
var installation sync.Mutex

// Install installs the packages of the lock file, unless they are installed. It is safe for concurrent use.
func Install(ctx context.Context) error {
	installation.Lock()
	defer installation.Unlock()
	want, err := os.ReadFile(lock)
	if err != nil {
		return err
	}
	if have, err := os.ReadFile(installed); err == nil && bytes.Equal(have, want) {
		return nil
	}
	fmt.Printf("installing the front end's packages (about %d MB, once)\n", installedMB)
	phase.Store(installing)
	if err := npm(ctx, "ci", "--no-audit", "--no-fund", "--loglevel=error"); err != nil {
		return err
	}
	return os.WriteFile(installed, want, 0o644)
}

// changed reports whether a source is newer than a built file.
func changed(name string) bool {
	file, err := os.Stat(name)
	if err != nil {
		return true
	}
	for _, root := range sources {
		err := filepath.WalkDir(root, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if info, err := entry.Info(); err != nil || info.ModTime().After(file.ModTime()) {
				return errNewer
			}
			return nil
		})
		if err != nil {
			return true
		}
	}
	return false
}

var errNewer = errors.New("newer than the build")

func npm(ctx context.Context, args ...string) error { return suite.Command(ctx, "npm", args...) }

// Lint checks types and style of the front end. It is skipped without Node.js.
func Lint(ctx context.Context) (suite.Count, error) {
	if err := prepare(ctx); err != nil {
		return suite.Count{}, err
	}
	for i, script := range []string{"typecheck", "lint"} {
		began := time.Now()
		if err := npm(ctx, "run", "--silent", script); err != nil {
			return suite.Count{Passed: i}, fmt.Errorf("npm run %s: %w", script, err)
		}
		fmt.Printf("%s %.0f s\n", script, time.Since(began).Seconds())
	}
	return suite.Count{Passed: 2}, nil
}

// Test runs the unit tests of the front end. It is skipped without Node.js.
func Test(ctx context.Context) (suite.Count, error) {
	if err := prepare(ctx); err != nil {
		return suite.Count{}, err
	}
	return testAndStore(ctx)
}

// CheckChanged runs [Lint], and the unit tests that git's changes since the last pass can affect.
func CheckChanged(ctx context.Context) (suite.Count, error) {
	if _, err := Lint(ctx); err != nil {
		return suite.Count{}, err
	}
	return testAndStore(ctx, affectedTestFlags(ctx)...)
}

// testAndStore runs jest and stores the commit for [CheckChanged] if all tests passed.
func testAndStore(ctx context.Context, flags ...string) (suite.Count, error) {
	count, err := jest(ctx, flags...)
	if err == nil {
		err = storePassedCommit(ctx)
	}
	return count, err
}

// prepare installs the packages. Without Node.js, it returns a [suite.Skipped].
func prepare(ctx context.Context) error {
	if _, err := browser.FindNode(ctx); errors.Is(err, browser.ErrNoNode) {
		return suite.Skipped(err.Error() + "; install it from https://nodejs.org")
	}
	return Install(ctx)
}

// passedFile holds the latest commit at which all tests passed.
const passedFile = "node_modules/.cache/kvbooth-passed"

// unimported lists files that the tests depend on without importing them.
var unimported = []string{
	lock, "package.json", "jest.config.js", "tsconfig.json", ".config", "sidecar/api/openapi.yaml",
	"sidecar/loadgen/baseline/data",
}

// affectedTestFlags returns the flags with which jest runs only the tests that changes since the last pass affect. It
// returns none if all tests must run.
func affectedTestFlags(ctx context.Context) []string {
	commit, err := os.ReadFile(passedFile)
	if err != nil {
		return nil
	}
	if _, same := git(ctx, append([]string{"diff", "--quiet", string(commit), "--"}, unimported...)...); !same {
		return nil
	}
	fmt.Printf("skipping tests that passed at %.7s and are not affected by changes; go tool mage test runs all\n", commit)
	return []string{"--changedSince=" + string(commit), "--passWithNoTests"}
}

// storePassedCommit stores the current commit, unless there are uncommitted changes. Without git, all tests run each
// time.
func storePassedCommit(ctx context.Context) error {
	changes, known := git(ctx, append([]string{"status", "--porcelain", "--", "src"}, unimported...)...)
	if !known || len(changes) > 0 {
		return nil
	}
	commit, known := git(ctx, "rev-parse", "HEAD")
	if !known {
		return nil
	}
	return os.WriteFile(passedFile, bytes.TrimSpace(commit), 0o644)
}

// git returns git's output. ok is false if git is missing or fails.
func git(ctx context.Context, args ...string) (out []byte, ok bool) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	return out, err == nil
}

// jest runs the tests and reads their counts from its report.
func jest(ctx context.Context, flags ...string) (suite.Count, error) {
	dir, err := os.MkdirTemp("", "kvbooth-jest-")
	if err != nil {
		return suite.Count{}, err
	}
	defer os.RemoveAll(dir)
	report := filepath.Join(dir, "report.json")
	ran := npm(ctx,
		append([]string{"run", "--silent", "test", "--", "--silent", "--json", "--outputFile=" + report}, flags...)...)
	text, err := os.ReadFile(report)
	if err != nil {
		return suite.Count{}, errors.Join(ran, err)
	}
	var result struct {
		Passed  int `json:"numPassedTests"`
		Failed  int `json:"numFailedTests"`
		Pending int `json:"numPendingTests"`
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return suite.Count{}, err
	}
	count := suite.Count{Passed: result.Passed, Failed: result.Failed, Skipped: result.Pending}
	var exit *exec.ExitError
	if errors.As(ran, &exit) && result.Failed > 0 { // the counts contain the failure
		return count, errors.New("front end tests failed")
	}
	return count, ran
}
