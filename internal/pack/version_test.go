package pack

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/source"
)

var update = flag.Bool("update", false, "write the version of package.json where it is repeated")

// The version is that of package.json everywhere. `npm version` changes it, and runs this test with -update.
func TestVersionIsThatOfPackageJSON(t *testing.T) {
	root, err := source.Root()
	require.NoError(t, err)
	want := packageVersion(t)
	for _, place := range []struct{ name, line string }{
		{"sidecar/api/VERSION", `(?m)^(\d.*)$`},
		{"deploy/chart/kvbooth/Chart.yaml", `(?m)^version: (.*)$`},
		{"deploy/chart/kvbooth/Chart.yaml", `(?m)^appVersion: (.*)$`},
		{"docs/kubernetes.md", `(?m) V=(\d\S*)$`},
		{"package-lock.json", `^{\s*"name": "[^"]*",\s*"version": "([^"]*)"`},
		{"package-lock.json", `"packages": {\s*"": {\s*"name": "[^"]*",\s*"version": "([^"]*)"`},
	} {
		name, line := place.name, place.line
		path := filepath.Join(root, filepath.FromSlash(name))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		at := regexp.MustCompile(line).FindSubmatchIndex(text)
		require.NotNil(t, at, name)
		if *update {
			text = slices.Concat(text[:at[2]], []byte(want), text[at[3]:])
			require.NoError(t, os.WriteFile(path, text, 0o644))
			continue
		}
		assert.Equal(t, want, string(text[at[2]:at[3]]), name)
	}
}

// packageVersion returns the version of package.json.
func packageVersion(t *testing.T) string {
	t.Helper()
	root, err := source.Root()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "package.json"))
	require.NoError(t, err)
	var pkg struct{ Version string }
	require.NoError(t, json.Unmarshal(text, &pkg))
	return pkg.Version
}
