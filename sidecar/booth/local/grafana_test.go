//go:build unix

package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/booth/local/localtest"
)

func TestFindGrafanaByVariable(t *testing.T) {
	home := localtest.Grafana(t)
	t.Setenv(local.GrafanaVariable, home)
	g, err := local.FindGrafana(t.Context())
	require.NoError(t, err)
	assert.Equal(t, local.Grafana{Home: home, Program: filepath.Join(home, "bin", "grafana"), Version: "12.2.0"}, g)

	t.Setenv(localtest.GrafanaVersion, "100.0.1-pre") // newer, though its digits sort first
	g, err = local.FindGrafana(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "100.0.1", g.Version)
	for version, want := range map[string]string{
		"12.1.9":  "Grafana 12.1.9 in " + home + " is too old: 12.2.0 or later is required",
		"unknown": "grafana --version reports no version: grafana version unknown",
	} {
		t.Setenv(localtest.GrafanaVersion, version)
		_, err := local.FindGrafana(t.Context())
		assert.ErrorContains(t, err, want)
	}
	require.NoError(t, os.Remove(filepath.Join(home, "public")))
	_, err = local.FindGrafana(t.Context())
	assert.ErrorContains(t, err, "GRAFANA_HOME is "+home+", which is not a Grafana directory: ")
}

// TestFindGrafanaWithoutVariable checks that a package takes precedence over the program on the PATH, and that links
// to the program are followed.
func TestFindGrafanaWithoutVariable(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	t.Setenv("PATH", t.TempDir())
	_, err := local.FindGrafanaBeside(t.Context(), nowhere)
	assert.ErrorIs(t, err, local.ErrNoGrafana)

	packaged, home, bin := localtest.Grafana(t), localtest.Grafana(t), t.TempDir()
	program := filepath.Join(home, "bin", "grafana")
	require.NoError(t, os.Remove(program)) // the fake is a link itself
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho grafana version 13.0.1\n"), 0o700))
	require.NoError(t, os.Symlink(program, filepath.Join(bin, "grafana")))
	t.Setenv("PATH", bin)
	found, err := local.FindGrafanaBeside(t.Context(), nowhere)
	require.NoError(t, err)
	assert.Equal(t, local.Grafana{Home: home, Program: filepath.Join(bin, "grafana"), Version: "13.0.1"}, found)

	found, err = local.FindGrafanaBeside(t.Context(), packaged)
	require.NoError(t, err)
	assert.Equal(t, packaged, found.Home)

	require.NoError(t, os.RemoveAll(filepath.Join(home, "conf")))
	_, err = local.FindGrafanaBeside(t.Context(), nowhere)
	assert.ErrorContains(t, err, "has no conf/defaults.ini and public next to it; set GRAFANA_HOME to its directory")
}

// TestGrafanaCommandPreparesFolder checks that content of the folder stays, except for links of an earlier run.
func TestGrafanaCommandPreparesFolder(t *testing.T) {
	dir, old, plugin := t.TempDir(), t.TempDir(), t.TempDir()
	own := filepath.Join(dir, "plugins", "own")
	require.NoError(t, os.MkdirAll(own, 0o755))
	require.NoError(t, os.Symlink(old, filepath.Join(dir, "plugins", "old")))
	project := t.TempDir()
	for _, name := range []string{"datasources", "plugins"} {
		require.NoError(t, os.Mkdir(filepath.Join(project, name), 0o755))
	}
	for folder, text := range map[string]string{
		plugin:                     `{"id": "app", "includes": [{"type": "page"}, {"type": "panel", "path": "p/plugin.json"}]}`,
		filepath.Join(plugin, "p"): `{"id": "panel"}`,
	} {
		require.NoError(t, os.MkdirAll(folder, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "plugin.json"), []byte(text), 0o644))
	}
	g := local.Grafana{Home: "/home", Program: "/program"}
	c, err := g.Command(local.GrafanaOptions{
		Dir: dir, Provisioning: project, Plugins: map[string]string{"app": plugin},
		Port: 3001, Log: "/log", Env: []string{"MORE=1"},
	})
	require.NoError(t, err)
	assert.Equal(t, "/program", c.Path)
	assert.Equal(t, []string{"server", "--homepath", "/home", "--config", filepath.Join(dir, "grafana.ini")}, c.Args)
	assert.True(t, c.Parent)
	assert.Subset(t, c.Env, []string{
		"GF_SERVER_HTTP_ADDR=127.0.0.1", "GF_SERVER_HTTP_PORT=3001",
		"GF_PATHS_PROVISIONING=" + filepath.Join(dir, "provisioning"),
		"GF_PLUGINS_ALLOW_LOADING_UNSIGNED_PLUGINS=app,panel", "GF_AUTH_ANONYMOUS_ORG_ROLE=Editor", "MORE=1",
	})
	linked, err := os.Readlink(filepath.Join(dir, "plugins", "app"))
	require.NoError(t, err)
	assert.Equal(t, plugin, linked)
	assert.DirExists(t, own)
	assert.NoFileExists(t, filepath.Join(dir, "plugins", "old"))
	assert.DirExists(t, old)
	provisioned := func() []string {
		found, err := filepath.Glob(filepath.Join(dir, "provisioning", "*"))
		require.NoError(t, err)
		for i := range found {
			found[i] = filepath.Base(found[i])
		}
		return found
	}
	assert.Equal(t, []string{"datasources", "plugins"}, provisioned())

	// Without the app, its provisioning is left out, because Grafana would exit.
	_, err = g.Command(local.GrafanaOptions{Dir: dir, Provisioning: project})
	require.NoError(t, err)
	assert.Equal(t, []string{"datasources"}, provisioned())
}
