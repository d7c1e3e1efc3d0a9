package pack

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two runs give equal archives, whose folders have the program and the texts, and SHA256SUMS lists them.
func TestProgramsAreReproducible(t *testing.T) {
	license := filepath.Join(t.TempDir(), "LICENSE")
	require.NoError(t, os.WriteFile(license, []byte("terms"), 0o600))
	var sums [2]string
	for i := range sums {
		o := ProgramOptions{
			Dir: t.TempDir(), Texts: []string{license}, Version: "1.2.3", Date: day, Platforms: ProgramPlatforms,
			Out: t.Output(),
			Build: func(p Platform, name, to string) error {
				return os.WriteFile(to, []byte(name+" for "+p.String()), 0o600)
			},
		}
		archives, err := Programs(o)
		require.NoError(t, err)
		require.Len(t, archives, 8)
		require.NoError(t, WriteSums(o.Dir, archives))
		text, err := os.ReadFile(filepath.Join(o.Dir, "SHA256SUMS"))
		require.NoError(t, err)
		sums[i] = string(text)

		modes, texts := untar(t, filepath.Join(o.Dir, "booth-1.2.3-darwin-arm64.tar.gz"))
		require.Equal(t, map[string]fs.FileMode{
			"booth-1.2.3-darwin-arm64/booth": 0o755, "booth-1.2.3-darwin-arm64/LICENSE": 0o644,
		}, modes)
		require.Equal(t, "booth for darwin/arm64", texts["booth-1.2.3-darwin-arm64/booth"])
	}
	require.Equal(t, sums[0], sums[1])
	require.Regexp(t, `(?m)^[0-9a-f]{64}  loadgen-1\.2\.3-linux-amd64\.tar\.gz$`, sums[0])
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
		if err == io.EOF {
			return modes, texts
		}
		require.NoError(t, err)
		require.True(t, header.ModTime.Equal(day))
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		modes[header.Name], texts[header.Name] = header.FileInfo().Mode(), string(text)
	}
}
