package pack

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two runs give equal archives, whose folder has the program and the texts, and SHA256SUMS lists them.
func TestProgramIsReproducible(t *testing.T) {
	from := t.TempDir()
	program, license := filepath.Join(from, "booth"), filepath.Join(from, "LICENSE")
	require.NoError(t, os.WriteFile(program, []byte("program"), 0o600))
	require.NoError(t, os.WriteFile(license, []byte("terms"), 0o600))
	const name = "booth-1.2.3-darwin-arm64"
	var sums [2]string
	for i := range sums {
		dir := t.TempDir()
		a, err := Program(filepath.Join(dir, name+".tar.gz"), day, program, license)
		require.NoError(t, err)
		require.NoError(t, WriteSums(dir, []Archive{a}, t.Output()))
		text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
		require.NoError(t, err)
		sums[i] = string(text)
		modes, texts := untar(t, a.Path)
		require.Equal(t, map[string]fs.FileMode{name + "/booth": 0o755, name + "/LICENSE": 0o644}, modes)
		require.Equal(t, "program", texts[name+"/booth"])
	}
	require.Equal(t, sums[0], sums[1])
	require.Regexp(t, `^[0-9a-f]{64}  booth-1\.2\.3-darwin-arm64\.tar\.gz\n$`, sums[0])
}

func untar(t *testing.T, path string) (modes map[string]fs.FileMode, texts map[string]string) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	require.NoError(t, err)
	modes, texts = map[string]fs.FileMode{}, map[string]string{}
	for r := tar.NewReader(zipped); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return modes, texts
		}
		require.NoError(t, err)
		require.True(t, header.ModTime.Equal(day))
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		modes[header.Name], texts[header.Name] = header.FileInfo().Mode(), string(text)
	}
}
