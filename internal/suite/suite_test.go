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
)

func TestRun(t *testing.T) {
	part := func(name string, c Count, err error) Part {
		return Part{Name: name, Run: func(context.Context) (Count, error) { return c, err }}
	}
	var out strings.Builder
	err := Run(t.Context(), &out,
		Check("vet", func(context.Context) error { return nil }),
		Check("lint", func(context.Context) error { return errors.New("exit status 1") }),
		part("tests", Count{Passed: 7, Failed: 2, Skipped: 1}, errors.New("exit status 1")),
		part("Dynamo", Count{}, Skipped("no Python 3.10 or later")),
	)
	require.EqualError(t, err, "failed: lint, tests")
	require.Equal(t, `
== vet

== lint
lint: exit status 1

== tests
tests: exit status 1

== Dynamo
skipped: no Python 3.10 or later

vet     0.0 s  ok
lint    0.0 s  FAILED
tests   0.0 s  FAILED
Dynamo  0.0 s  skipped: no Python 3.10 or later
failed: lint, tests
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

// module writes a module of its own and makes it the working directory.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	files["go.mod"] = "module example.org/m\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	t.Chdir(root)
	return root
}

const header = "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar _ = os.Exit\n\n"

// What go test really writes, for every way in which a package can end.
func TestGoTest(t *testing.T) {
	module(t, map[string]string{
		"good/a_test.go": header + `func TestGood(t *testing.T) { t.Log("not shown"); t.Run("sub", func(t *testing.T) {}) }
func TestSkipped(t *testing.T) { t.Skip("the reason") }`,
		"bad/a_test.go":    header + `func TestBad(t *testing.T) { t.Error("what went wrong") }`,
		"exit/a_test.go":   header + `func TestExit(t *testing.T) { println("last words"); os.Exit(3) }`,
		"broken/a_test.go": header + `func TestBroken(t *testing.T) { undefined() }`,
		"none/a.go":        "package p\n",
	})
	var out strings.Builder
	count, err := GoTest(t.Context(), &out, false, "./...")
	require.EqualError(t, err, "go test: exit status 1")
	require.Equal(t, Count{Passed: 2, Failed: 3, Skipped: 1}, count)
	for _, want := range []string{
		"ok  \texample.org/m/good", "the reason", "what went wrong", "FAIL\texample.org/m/bad",
		"last words", "FAIL\texample.org/m/exit", "undefined: undefined", "FAIL\texample.org/m/broken [build failed]",
		"?   \texample.org/m/none\t[no test files]",
	} {
		require.Contains(t, out.String(), want)
	}
	require.NotContains(t, out.String(), "not shown")

	out.Reset()
	_, err = GoTest(t.Context(), &out, true, "./good")
	require.NoError(t, err)
	require.Contains(t, out.String(), "not shown", "live output is complete")
}

func TestFuzz(t *testing.T) {
	root := module(t, map[string]string{
		"good/a_test.go": header + `func FuzzGood(f *testing.F) { f.Fuzz(func(*testing.T, int) {}) }
func TestFuzzier(t *testing.T) {}`,
		"good/fuzz.go":  "package p\n\nfunc FuzzNot() {}\n",
		"bad/a_test.go": header + `func FuzzBad(f *testing.F) { f.Add(0); f.Fuzz(func(t *testing.T, _ int) { t.Error("found") }) }`,
	})
	targets, err := FuzzTargets(root)
	require.NoError(t, err)
	require.Equal(t, []FuzzTarget{{"./bad", "FuzzBad"}, {"./good", "FuzzGood"}}, targets)

	var out strings.Builder
	count, err := Fuzz(t.Context(), &out, root, 10)
	require.EqualError(t, err, "FuzzBad in ./bad: go test: exit status 1")
	require.Equal(t, 1, count.Passed, "the good one ran, too")
	require.NotZero(t, count.Failed)
	require.Contains(t, out.String(), "found")
}

func TestTagged(t *testing.T) {
	root := module(t, map[string]string{
		"a/a_test.go": header + "func TestPlain(t *testing.T) {}\n",
		"a/b_test.go": "//go:build slow\n\n" + header + "func TestOne(t *testing.T) {}\nfunc TestMain(m *testing.M) { m.Run() }\n",
		"b/b_test.go": "//go:build slow\n\n" + header + "func TestTwo(t *testing.T) {}\n",
	})
	args, err := Tagged(root, "slow")
	require.NoError(t, err)
	require.Equal(t, []string{"-tags=slow", "-run=^(TestOne|TestTwo)$", "./a", "./b"}, args)
	count, err := GoTest(t.Context(), new(strings.Builder), false, args...)
	require.NoError(t, err)
	require.Equal(t, Count{Passed: 2}, count, "and not the plain one")

	args, err = Tagged(root, "other")
	require.NoError(t, err)
	require.Empty(t, args)
}

// Lines that are no events, as from a go command that cannot start, are not lost.
func TestReportShowsWhatIsNoEvent(t *testing.T) {
	var out strings.Builder
	count, err := report(strings.NewReader("go: no such tool\n{\"Action\":\"pass\",\"Package\":\"p\",\"Test\":\"T\"}"), &out, false)
	require.NoError(t, err)
	require.Equal(t, Count{Passed: 1}, count)
	require.Equal(t, "go: no such tool\n", out.String())
}
