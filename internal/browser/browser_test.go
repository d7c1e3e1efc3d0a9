package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// program makes a program that prints a line the only one on the PATH.
func program(t *testing.T, name, prints string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho '"+prints+"'\n"), 0o700))
	t.Setenv("PATH", dir)
	return path
}

func TestFindNodeChecksVersion(t *testing.T) {
	path := program(t, "node", "v20.19.0")
	found, err := FindNode(t.Context())
	require.NoError(t, err)
	require.Equal(t, path, found)

	for _, version := range []string{"v18.20.1", "v20.18.3", "nonsense"} {
		program(t, "node", version)
		_, err = FindNode(t.Context())
		require.ErrorIs(t, err, ErrNoNode)
		require.ErrorContains(t, err, version)
	}

	t.Setenv("PATH", t.TempDir())
	_, err = FindNode(t.Context())
	require.ErrorIs(t, err, ErrNoNode)
}

func TestFindChromiumByVariable(t *testing.T) {
	path := program(t, "chromium", "")
	t.Setenv(ChromiumVariable, path)
	found, err := FindChromium(t.Context(), t.Output())
	require.NoError(t, err)
	require.Equal(t, path, found)

	t.Setenv(ChromiumVariable, path+"-not-there")
	_, err = FindChromium(t.Context(), t.Output())
	require.ErrorContains(t, err, ChromiumVariable)
}
