package source

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRoot(t *testing.T) {
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
