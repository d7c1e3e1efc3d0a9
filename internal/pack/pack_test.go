package pack

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/source"
	"kvbooth/sidecar/booth/local"
)

const builtManifest = `{
  "id": "kvbooth-inference-app", "executable": "gpx_kvbooth",
  "info": {"version": "1.2.3", "updated": "2020-01-01", "logos": {"small": "img/logo.svg", "large": "img/logo.svg"}},
  "includes": [
    {"type": "page", "path": "/a/kvbooth-inference-app"},
    {"type": "panel", "path": "panels/x/plugin.json"},
    {"type": "dashboard", "path": "dashboards/booth.json"}
  ]
}`

// built writes a small app as the front end's build leaves it, with leftovers of a backend's build.
func built(t *testing.T) string {
	t.Helper()
	dist := t.TempDir()
	for name, text := range map[string]string{
		"plugin.json": builtManifest, "module.js": "define()", "img/logo.svg": "<svg/>", "dashboards/booth.json": "{}",
		"panels/x/plugin.json": `{"info": {"updated":"2020-01-01"}}`, "panels/x/module.js": "define()",
		"gpx_kvbooth_plan9_mips": "another run's", "go_plugin_build_manifest": "another run's",
	} {
		path := filepath.Join(dist, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dist
}

var day = time.Date(2026, 11, 21, 12, 0, 2, 0, time.UTC)

// options returns options for a built app with backends of one line.
func options(t *testing.T, dist string) Options {
	root, err := source.Root()
	require.NoError(t, err)
	return Options{
		Dist: dist, Examples: filepath.Join(root, "provisioning"), Dir: t.TempDir(), Date: day, Platforms: Platforms,
		Out: t.Output(),
		Build: func(b Backend) error {
			require.Equal(t, "kvbooth-inference-app 1.2.3", b.ID+" "+b.Version)
			require.Equal(t, day, b.Date)
			if err := os.WriteFile(filepath.Join(b.Dir, buildManifest), []byte("sums"), 0o755); err != nil {
				return err
			}
			m := manifest{Executable: "gpx_kvbooth"}
			return os.WriteFile(filepath.Join(b.Dir, m.backend(b.Platform)), []byte(b.String()), 0o600)
		},
	}
}

// The archive has one folder with the app's ID, executable backends, and no leftovers of an earlier build.
func TestArchiveContent(t *testing.T) {
	o := options(t, built(t))
	out := new(strings.Builder)
	o.Out = out
	a, err := App(o)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(o.Dir, "kvbooth-inference-app-1.2.3.zip"), a.Path)
	require.Contains(t, out.String(), "building the backend for linux/arm64 (2 of 6)\n")
	require.Contains(t, out.String(), "MB, SHA-256 "+a.SHA256)

	bytes, err := os.ReadFile(a.Path)
	require.NoError(t, err)
	sum := sha256.Sum256(bytes)
	require.Equal(t, hex.EncodeToString(sum[:]), a.SHA256)
	require.EqualValues(t, len(bytes), a.Size)

	modes, texts := read(t, a.Path)
	want := map[string]fs.FileMode{}
	for _, name := range []string{
		"plugin.json", "module.js", "img/logo.svg", "dashboards/booth.json", "panels/x/plugin.json", "panels/x/module.js",
		"go_plugin_build_manifest",
		"provisioning/datasources/prometheus.yaml", "provisioning/plugins/kvbooth.yaml", "provisioning/alerting/rules.yaml",
	} {
		want["kvbooth-inference-app/"+name] = 0o644
	}
	for _, name := range []string{
		"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "windows_amd64.exe", "windows_arm64.exe",
	} {
		want["kvbooth-inference-app/gpx_kvbooth_"+name] = 0o755
	}
	require.Equal(t, want, modes)
	require.Contains(t, want, local.AppID+"/"+local.AppBackend(), "the booth requires this backend")
	require.Equal(t, "windows/arm64", texts["kvbooth-inference-app/gpx_kvbooth_windows_arm64.exe"])
	require.Contains(t, texts["kvbooth-inference-app/provisioning/alerting/rules.yaml"],
		"datasourceUid: $KVBOOTH_PROMETHEUS_UID\n")
	require.Equal(t, "sums", texts["kvbooth-inference-app/go_plugin_build_manifest"])
	for _, name := range []string{"plugin.json", "panels/x/plugin.json"} {
		require.Regexp(t, `"updated": ?"2026-11-21"`, texts["kvbooth-inference-app/"+name])
	}
}

// read returns the modes and the contents of an archive's files, all of one time.
func read(t *testing.T, path string) (modes map[string]fs.FileMode, texts map[string]string) {
	t.Helper()
	modes, texts = map[string]fs.FileMode{}, map[string]string{}
	r, err := zip.OpenReader(path)
	require.NoError(t, err)
	defer r.Close()
	for _, f := range r.File {
		in, err := f.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(in)
		require.NoError(t, err)
		require.True(t, f.Modified.Equal(day), "%s: %s", f.Name, f.Modified)
		modes[f.Name], texts[f.Name] = f.Mode(), string(text)
	}
	return modes, texts
}

// The archive does not depend on the times of the files.
func TestArchiveIsReproducible(t *testing.T) {
	dist := built(t)
	first, err := App(options(t, dist))
	require.NoError(t, err)
	require.NoError(t, os.Chtimes(filepath.Join(dist, "module.js"), time.Time{}, day.Add(time.Hour)))
	require.NoError(t,
		os.WriteFile(filepath.Join(dist, "plugin.json"), []byte(strings.Replace(builtManifest, "2020", "2021", 1)), 0o600))
	second, err := App(options(t, dist))
	require.NoError(t, err)
	require.Equal(t, first.SHA256, second.SHA256)
}

func TestIncompleteAppIsRefused(t *testing.T) {
	for _, row := range []struct {
		intent, file, text string // "" removes the file
		names              string
	}{
		{"nothing is built", "plugin.json", "", "the app is not built"},
		{
			"the version was not stamped", "plugin.json", strings.Replace(builtManifest, "1.2.3", "%VERSION%", 1),
			`info.version is "%VERSION%"`,
		},
		{
			"no executable", "plugin.json", strings.Replace(builtManifest, "gpx_kvbooth", "", 1),
			"id and executable are required",
		},
		{"no JSON", "plugin.json", "{", "plugin.json"},
		{"no front end", "module.js", "", "module.js"},
		{"a dashboard is missing", "dashboards/booth.json", "", "booth.json"},
		{"a panel has no code", "panels/x/module.js", "", filepath.Join("panels", "x", "module.js")},
		{"no logo", "img/logo.svg", "", "logo.svg"},
	} {
		dist := built(t)
		path := filepath.Join(dist, filepath.FromSlash(row.file))
		require.NoError(t, os.Remove(path))
		if row.text != "" {
			require.NoError(t, os.WriteFile(path, []byte(row.text), 0o600))
		}
		_, err := App(options(t, dist))
		require.ErrorContains(t, err, row.names, row.intent)
	}

	o := options(t, built(t))
	o.Build = func(Backend) error { return nil }
	_, err := App(o)
	require.ErrorContains(t, err, "the backend for linux/amd64 was not built")
}

func TestDateOfArchive(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	t.Setenv(dateVariable, "1795285458")
	date, err := Date(t.Context(), now)
	require.NoError(t, err)
	require.Equal(t, time.Unix(1795285458, 0).UTC(), date)

	for _, bad := range []string{"yesterday", "12"} { // ZIP files cannot have dates before 1980
		t.Setenv(dateVariable, bad)
		_, err = Date(t.Context(), now)
		require.ErrorContains(t, err, "SOURCE_DATE_EPOCH: \""+bad)
	}

	t.Setenv(dateVariable, "")
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(t.TempDir()))
	t.Chdir(t.TempDir())
	date, err = Date(t.Context(), now)
	require.NoError(t, err)
	require.Equal(t, now.Truncate(time.Second), date, "now without a repository")
}

// The archive's README names every plugin that Grafana must allow.
func TestReadmeNamesEveryPlugin(t *testing.T) {
	text, err := os.ReadFile("../../src/README.md")
	require.NoError(t, err)
	ids, err := local.PluginIDs("../../src")
	require.NoError(t, err)
	require.Contains(t, string(text), "allow_loading_unsigned_plugins = "+strings.Join(ids, ",")+"\n")
}
