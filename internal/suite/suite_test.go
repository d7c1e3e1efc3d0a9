package suite

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/internal/source"
	"kvbooth/internal/wait"
)

func TestRunThroughoutTheOthers(t *testing.T) {
	rest := make(chan struct{})
	lint := Check("lint", func(ctx context.Context) error {
		wait.Receive(t, "the other parts end", rest)
		return command(ctx, "true").Run()
	})
	lint.Throughout = true
	results, err := Run(t.Context(), io.Discard,
		Check("unit", func(context.Context) error { return nil }), lint,
		Check("page", func(context.Context) error { close(rest); return nil }))
	require.NoError(t, err)
	var names []string
	for _, r := range results {
		names = append(names, r.Name)
	}
	require.Equal(t, []string{"lint", "unit", "page"}, names)
}

func TestRunEndsWithFailuresAndATable(t *testing.T) {
	part := func(name string, c Count, err error) Part {
		return Part{Name: name, Run: func(context.Context) (Count, error) { return c, err }}
	}
	var out strings.Builder
	results, err := Run(t.Context(), &out,
		Check("vet", func(context.Context) error { return nil }),
		Check("lint", func(context.Context) error { return errors.New("exit status 1") }),
		part("unit", Count{
			Passed: 7, Failed: 2, Skipped: 1, Failures: []Failure{{"p TestA", "\n    1 is not 2"}}, Skips: []string{"no disk"},
		}, errors.New("exit status 1")),
		part("Dynamo", Count{}, Skipped("run apt-get install python3")),
	)
	require.EqualError(t, err, "failed: lint, unit (p TestA)")
	require.Len(t, results, 4)
	require.Equal(t, `
== vet

== lint
lint: exit status 1

== unit
FAILED p TestA
    1 is not 2
unit: exit status 1

== Dynamo
skipped: run apt-get install python3

FAILED p TestA
    1 is not 2

part    time  passed  failed  skipped  why
vet     0:00  1       0       0        
lint    0:00  0       1       0        
unit    0:00  7       2       1        no disk
Dynamo  0:00  0       0       1        run apt-get install python3
failed: lint, unit (p TestA)
8 passed, 3 failed, 2 skipped
`, out.String())
}

// Each of two parts waits for the other, and neither starts before the first part ends.
func TestRunStartsPartsConcurrently(t *testing.T) {
	ctx := wait.Context(t)
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
	other.WithPrevious = true
	_, err := Run(ctx, io.Discard, Check("first", func(context.Context) error { first.Store(true); return nil }), one,
		other)
	require.NoError(t, err)
}

func TestRunStopsWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out strings.Builder
	_, err := Run(ctx, &out,
		Check("first", func(context.Context) error { cancel(); return nil }),
		Check("second", func(context.Context) error { t.Error("it ran"); return nil }),
	)
	require.EqualError(t, err, "interrupted")
}

// module writes a module that contains gotestsum, and makes it the working directory.
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

// The counts include every result of a test and a package, and the report of another runner within a test.
func TestGoTestCountsEveryResult(t *testing.T) {
	module(t, map[string]string{
		"good/a_test.go": header + `func TestGood(t *testing.T) {
	t.Run("sub", func(t *testing.T) {})
	line := "{\"test\":\"TestGood\",\"text\":\"3 ms\"}\n"
	if err := os.WriteFile(os.Getenv("SUITE_FIGURES"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
}
func TestSkipped(t *testing.T) { t.Skip("the reason") }
func TestReports(t *testing.T) {
	report := "<testsuites><testsuite><testcase/><testcase classname='page' name='a journey'>" +
		"<failure>\nit takes\n\ntoo long\n</failure></testcase>" +
		"<testcase classname='page' name='another'><error>no such button</error></testcase>" +
		"<testcase><skipped/></testcase></testsuite></testsuites>"
	if err := os.WriteFile(os.Getenv("SUITE_REPORTS")+"/other.xml", []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
}`,
		"bad/a_test.go": header + `func TestBad(t *testing.T) { println("begun"); t.Run("sub", func(t *testing.T) { ` +
			`t.Error("what went wrong") }) }`,
		"exit/a_test.go":   header + `func TestExit(t *testing.T) { os.Exit(3) }`,
		"broken/a_test.go": header + `func TestBroken(t *testing.T) { undefined() }`,
		"none/a.go":        "package p\n",
	})
	count, err := GoTest(t.Context(), Brief, "./bad", "./exit", "./broken", "./none")
	require.EqualError(t, err, "go test: exit status 1")
	failures := count.Failures
	count.Failures = nil
	require.Equal(t, Count{Failed: 4}, count)
	require.Len(t, failures, 3, "TestBad failed because of its subtest")
	require.Contains(t, failures,
		Failure{"bad TestBad/sub", "\n        a_test.go:10: what went wrong\n    --- FAIL: TestBad/sub (0.00s)"})

	count, err = GoTest(t.Context(), Live, "./good")
	require.NoError(t, err)
	require.Equal(t, Count{
		Passed: 4, Failed: 2, Skipped: 2, Skips: []string{"the reason"}, Figures: []figure.Figure{{
			Test: "TestGood", Text: "3 ms",
		}},
		Failures: []Failure{{"page › a journey", "\n    it takes\n    too long"}, {"page › another", "\n    no such button"}},
	}, count)
}

func TestConcurrentFindsGoroutinesAndLocks(t *testing.T) {
	module(t, map[string]string{
		"lock/a.go": "package p\n\nimport \"sync\"\n\nvar Mu sync.Mutex\n", "lock/a_test.go": header,
		"start/a.go": "package p\n\nfunc F() {\n\tgo F()\n}\n", "start/a_test.go": header,
		"plain/a.go": "package p\n\n// F lets go of it.\nfunc F() {}\n", "plain/a_test.go": header,
		"untested/a.go": "package p\n\nimport \"sync\"\n\nvar Mu sync.Mutex\n",
	})
	found, err := Concurrent(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"example.org/m/lock", "example.org/m/start"}, found)
}

func TestVerificationKeepsRowsOfPartsThatDidNotRun(t *testing.T) {
	page := filepath.Join(t.TempDir(), "verification.md")
	one, two := Part{Name: "one", Checks: "kills"}, Part{Name: "two", Checks: "a | b"}
	day := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	all := []Part{one, two}
	first := []Result{{
		Part: two, Count: Count{Passed: 3, Figures: []figure.Figure{{Text: "2.1 s", Page: true}, {Text: "2.2 s"}}},
		Took: 70 * time.Second,
	}}
	require.NoError(t, WriteVerification(page, all, first, day, "go 1.26"))
	below, err := os.OpenFile(page, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = below.WriteString(earlier + "\n- three, by hand.\n")
	require.NoError(t, errors.Join(err, below.Close()))
	second := []Result{{Part: one, Count: Count{Failed: 1}, Err: errors.New("exit status 1")}}
	require.NoError(t, WriteVerification(page, all, second, day.AddDate(0, 0, 1), "go 1.27"))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, pageHeading+
		"| one | kills | **FAILED**: 0 passed, 1 failed in 0:00 |  | 2026-11-27 |\n"+
		"| two | a \\| b | 3 passed in 1:10 | 2.1 s | 2026-11-26 |\n"+
		"\n- 2026-11-26: go 1.26.\n- 2026-11-27: go 1.27.\n"+
		earlier+"\n- three, by hand.\n", string(text))
}

func TestFuzz(t *testing.T) {
	module(t, map[string]string{
		"good/a_test.go": header + `func FuzzGood(f *testing.F) { f.Fuzz(func(*testing.T, int) {}) }
func TestFuzzier(t *testing.T) {}`,
		"good/fuzz.go": "package p\n\nfunc FuzzNot() {}\n",
		"bad/a_test.go": "package p_test\n\nimport \"testing\"\n\nfunc FuzzBad(f *testing.F) { f.Add(0); f.Fuzz(func(t " +
			"*testing.T, _ int) { t.Error(\"found\") }) }",
	})
	count, err := Fuzz(t.Context(), 10)
	require.ErrorContains(t, err, "FuzzBad in ")
	require.NotContains(t, err.Error(), "FuzzGood")
	require.Equal(t, 1, count.Passed, "the good one must run too")
	require.NotZero(t, count.Failed)
}
