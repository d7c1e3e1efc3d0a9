package suite

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/source"
)

func TestRun(t *testing.T) {
	part := func(name string, c Count, err error) Part {
		return Part{Name: name, Run: func(context.Context) (Count, error) { return c, err }}
	}
	var out strings.Builder
	err := Run(t.Context(), &out,
		Check("vet", func(context.Context) error { return nil }),
		Check("lint", func(context.Context) error { return errors.New("exit status 1") }),
		part("tests", Count{Passed: 7, Failed: 2, Skipped: 1, Failures: []Failure{{"p TestA", "\n    1 is not 2"}}}, errors.New("exit status 1")),
		part("Dynamo", Count{}, Skipped("no Python 3.10 or later")),
	)
	require.EqualError(t, err, "failed: lint, tests (p TestA)")
	require.Equal(t, `
== vet

== lint
lint: exit status 1

== tests
FAILED p TestA
    1 is not 2
tests: exit status 1

== Dynamo
skipped: no Python 3.10 or later

FAILED p TestA
    1 is not 2

vet     0.0 s  ok
lint    0.0 s  FAILED
tests   0.0 s  FAILED
Dynamo  0.0 s  skipped: no Python 3.10 or later
failed: lint, tests (p TestA)
8 passed, 3 failed, 2 skipped
`, regexp.MustCompile(`\d\.\d s`).ReplaceAllString(out.String(), "0.0 s"))

	out.Reset()
	require.NoError(t, Run(t.Context(), &out, part("tests", Count{Passed: 1}, nil)))
	require.True(t, strings.HasSuffix(out.String(), "\n1 passed, 0 failed\n"))
}

// Each of two parts waits for the other, and neither has begun before the first
// part has ended.
func TestRunBeside(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var first atomic.Bool
	left, right := make(chan bool), make(chan bool)
	meet := func(name string, here, there chan bool) Part {
		return Check(name, func(ctx context.Context) error {
			if !first.Load() {
				t.Error("it ran before the first part had ended")
			}
			close(here)
			select {
			case <-there:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}
	one, other := meet("left", left, right), meet("right", right, left)
	other.Beside = true
	require.NoError(t, Run(ctx, io.Discard, Check("first", func(context.Context) error { first.Store(true); return nil }), one, other))
}

func TestRunStopsWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out strings.Builder
	err := Run(ctx, &out,
		Check("first", func(context.Context) error { cancel(); return nil }),
		Check("second", func(context.Context) error { t.Error("it ran"); return nil }),
	)
	require.EqualError(t, err, "interrupted")
}

// module writes a module of its own, makes it the working directory, and has GoTest
// find gotestsum in it.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	ours, err := source.Root()
	require.NoError(t, err)
	root := t.TempDir()
	files["go.mod"] = "module example.org/m\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	require.NoError(t, os.Symlink(filepath.Join(ours, "tools"), filepath.Join(root, "tools")))
	t.Chdir(root)
	return root
}

const header = "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar _ = os.Exit\n\n"

// What gotestsum really counts, for every way in which a package can end, and what
// another runner reports from within a test.
func TestGoTest(t *testing.T) {
	module(t, map[string]string{
		"good/a_test.go": header + `func TestGood(t *testing.T) { t.Run("sub", func(t *testing.T) {}) }
func TestSkipped(t *testing.T) { t.Skip("the reason") }
func TestReports(t *testing.T) {
	report := "<testsuites><testsuite><testcase/><testcase classname='page' name='a journey'><failure>\nit takes\n\ntoo long\n</failure></testcase><testcase classname='page' name='another'><error>no such button</error></testcase><testcase><skipped/></testcase></testsuite></testsuites>"
	if err := os.WriteFile(os.Getenv("SUITE_REPORTS")+"/other.xml", []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
}`,
		"bad/a_test.go":    header + `func TestBad(t *testing.T) { println("begun"); t.Run("sub", func(t *testing.T) { t.Error("what went wrong") }) }`,
		"exit/a_test.go":   header + `func TestExit(t *testing.T) { os.Exit(3) }`,
		"broken/a_test.go": header + `func TestBroken(t *testing.T) { undefined() }`,
		"none/a.go":        "package p\n",
	})
	count, err := GoTest(t.Context(), Brief, "./bad", "./exit", "./broken", "./none")
	require.EqualError(t, err, "go test: exit status 1")
	failures := count.Failures
	count.Failures = nil
	require.Equal(t, Count{Failed: 4}, count)
	require.Len(t, failures, 3, "TestBad failed for its subtest's sake")
	require.Contains(t, failures, Failure{"bad TestBad/sub", "\n        a_test.go:10: what went wrong\n    --- FAIL: TestBad/sub (0.00s)"})

	count, err = GoTest(t.Context(), Live, "./good")
	require.NoError(t, err)
	require.Equal(t, Count{Passed: 4, Failed: 2, Skipped: 2, Failures: []Failure{{"page › a journey", "\n    it takes\n    too long"}, {"page › another", "\n    no such button"}}}, count)
}

func TestFuzz(t *testing.T) {
	module(t, map[string]string{
		"good/a_test.go": header + `func FuzzGood(f *testing.F) { f.Fuzz(func(*testing.T, int) {}) }
func TestFuzzier(t *testing.T) {}`,
		"good/fuzz.go":  "package p\n\nfunc FuzzNot() {}\n",
		"bad/a_test.go": "package p_test\n\nimport \"testing\"\n\nfunc FuzzBad(f *testing.F) { f.Add(0); f.Fuzz(func(t *testing.T, _ int) { t.Error(\"found\") }) }",
	})
	count, err := Fuzz(t.Context(), 10)
	require.ErrorContains(t, err, "FuzzBad in ")
	require.NotContains(t, err.Error(), "FuzzGood")
	require.Equal(t, 1, count.Passed, "the good one ran, too")
	require.NotZero(t, count.Failed)
}
