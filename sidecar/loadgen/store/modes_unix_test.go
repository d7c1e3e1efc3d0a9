//go:build unix

package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Only the owner can read and write the store, regardless of the umask and the mode of
// the directory, also for existing files.
func TestFilesArePrivate(t *testing.T) {
	for _, umask := range []int{0, 0o777} {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, 0o777))
		var s *Store
		open := func() {
			defer syscall.Umask(syscall.Umask(umask))
			s = openTest(t, Options{Dir: dir}, defaultLimits)
		}
		modes := func() map[string]fs.FileMode {
			found := map[string]fs.FileMode{}
			files, err := os.ReadDir(dir)
			require.NoError(t, err)
			for _, f := range files {
				info, err := f.Info()
				require.NoError(t, err)
				found[f.Name()] = info.Mode()
			}
			return found
		}
		private := map[string]fs.FileMode{
			"kvbooth.db": 0o600, "kvbooth.db-wal": 0o600, "kvbooth.db-shm": 0o600, "lock": 0o600, "lock.json": 0o600,
		}
		open()
		assert.Equal(t, private, modes())
		require.NoError(t, s.Close())
		for name := range private { // as after an earlier version that was killed
			path := filepath.Join(dir, name)
			if name != "kvbooth.db" {
				require.NoError(t, os.WriteFile(path, nil, 0o600))
			}
			require.NoError(t, os.Chmod(path, 0o666))
		}
		open()
		assert.Equal(t, private, modes())
	}
}
