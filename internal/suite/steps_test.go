package suite

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
)

// Steps run concurrently, and the progress of long ones is printed.
func TestTogetherPrintsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lasts := func(d time.Duration) func(context.Context) error {
			return func(context.Context) error {
				wait.Advance(d)
				return nil
			}
		}
		var out strings.Builder
		require.NoError(t, Together(t.Context(), &out,
			Step{"page", lasts(15 * time.Second), func() string { return "bundling" }},
			Step{"programs", lasts(25 * time.Second), func() string { return "compiled 7 of 9" }}))
		require.Equal(t, `10 s: page: bundling; programs: compiled 7 of 9
page: done after 15 s
20 s: programs: compiled 7 of 9
programs: done after 25 s
`, out.String())
	})
}

// If a step fails, the others are canceled, and the first error is returned.
func TestTogetherReturnsFirstError(t *testing.T) {
	var out strings.Builder
	err := Together(t.Context(), &out,
		Step{Name: "page", Run: func(context.Context) error { return errors.New("no disk") }},
		Step{Name: "programs", Run: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}})
	require.EqualError(t, err, "page: no disk")
	require.Empty(t, out.String())
}

func TestCompilerCountsPackages(t *testing.T) {
	dir := module(t, map[string]string{
		"a/a.go":     "package a\n\nconst A = 1\n",
		"main.go":    "package main\n\nimport \"example.org/m/a\"\n\nfunc main() { println(a.A) }\n",
		"bad/bad.go": "package bad\n\nvar x = undefined\n",
	})
	var out strings.Builder
	c := Compiler{Out: &out}
	require.NoError(t, c.BuildAll(t.Context(), [2]string{dir + "/program", "."}))
	require.FileExists(t, dir+"/program")
	require.Regexp(t, `^compiled [1-9]\d* of at most [1-9]\d* packages$`, c.Progress())
	require.Empty(t, out.String())
	require.Error(t, c.BuildAll(t.Context(), [2]string{dir + "/none", "./bad"}))
	require.Contains(t, out.String(), "undefined: undefined")
}
