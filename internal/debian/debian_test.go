package debian

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program is found on the PATH, and one that no package has is missing. apt-get is a script here.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	write := func(name, script string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700))
		return path
	}
	t.Setenv("PATH", dir)
	path := write("kvbooth-program", "")
	found, err := Find(t.Context(), "kvbooth-program", t.Output())
	require.NoError(t, err)
	require.Equal(t, path, found)

	write("apt-get", "echo 'E: Unable to locate package' && exit 100")
	_, err = Find(t.Context(), "kvbooth-missing", t.Output())
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "run apt-get install kvbooth-missing")
}
