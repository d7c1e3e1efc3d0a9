package source

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFiles(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{
		"go.mod", "main.go", "a/a.go", "a/a_test.go", "a/a_plan9.go", "a/notes.md",
		"a/testdata/x.go", "other/go.mod", "other/o.go", ".git/g.go", "_old/o.go", "src/node_modules/n.go",
	} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("package p\n"), 0o600))
	}
	files, err := Files(root)
	require.NoError(t, err)
	found := map[string]bool{}
	for _, f := range files {
		require.Equal(t, "p", f.AST.Name.Name)
		found[f.Path] = f.Test
	}
	require.Equal(t, map[string]bool{"main.go": false, "a/a.go": false, "a/a_plan9.go": false, "a/a_test.go": true}, found)
	require.Equal(t, "a", files[0].Dir())

	t.Chdir(filepath.Join(root, "a", "testdata"))
	got, err := Root()
	require.NoError(t, err)
	require.True(t, sameFile(t, root, got))
}

func TestNeedsAndFunctions(t *testing.T) {
	for text, needs := range map[string]bool{
		"//go:build dynamo\n\npackage p\n":                                     true,
		"// A comment.\n\n//go:build dynamo && linux || dynamo\n\npackage p\n": true,
		"//go:build !dynamo\n\npackage p\n":                                    false,
		"//go:build linux\n\npackage p\n":                                      false,
		"package p\n\n//go:build dynamo\n":                                     false, // too late to count
	} {
		root := t.TempDir()
		text += "func FuzzA() {}\nfunc (T) FuzzB() {}\nfunc fuzz() {}\n"
		require.NoError(t, os.WriteFile(filepath.Join(root, "a_test.go"), []byte(text), 0o600))
		files, err := Files(root)
		require.NoError(t, err)
		require.Equal(t, needs, files[0].Needs("dynamo"), text)
		require.Equal(t, []string{"FuzzA"}, files[0].Functions("Fuzz"))
	}
}

func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := os.Stat(a)
	require.NoError(t, err)
	y, err := os.Stat(b)
	require.NoError(t, err)
	return os.SameFile(x, y)
}

func TestFilesNamesWhatDoesNotParse(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "bad.go"), []byte("package"), 0o600))
	_, err := Files(root)
	require.ErrorContains(t, err, "bad.go")
}
