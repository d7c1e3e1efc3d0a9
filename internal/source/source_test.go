package source

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRootHasGoMod(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	below := filepath.Join(root, "a", "testdata")
	require.NoError(t, os.MkdirAll(below, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module m\n"), 0o600))
	t.Chdir(below)
	found, err := Root()
	require.NoError(t, err)
	require.Equal(t, root, found)
}

func TestSumDependsOnSourcesWithoutTests(t *testing.T) {
	dir := t.TempDir()
	sum := func(name, text string) string {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := os.Stat(filepath.Join(dir, "go.sum")); err != nil {
			return ""
		}
		s, err := Sum(dir)
		require.NoError(t, err)
		return string(s)
	}
	sum("go.mod", "module tool\n")
	first := sum("go.sum", "")
	program := sum("cmd/tool/main.go", "package main\n")
	require.NotEqual(t, first, program)
	require.Equal(t, program, sum("cmd/tool/main_test.go", "package main\n"), "tests must not count")
	require.NotEqual(t, program, sum("cmd/tool/main.go", "package main // another\n"))
	require.NotEqual(t, program, sum("go.mod", "module tool2\n"))
}
