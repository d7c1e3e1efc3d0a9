//go:build unix

package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/booth/local/localtest"
	"kvbooth/sidecar/process"
)

func TestFindGrafana(t *testing.T) {
	home := localtest.Grafana(t)
	t.Setenv(local.GrafanaVariable, home)
	g, err := local.FindGrafana(t.Context())
	require.NoError(t, err)
	assert.Equal(t, local.Grafana{Home: home, Program: filepath.Join(home, "bin", "grafana"), Version: "12.2.0"}, g)

	t.Run("too old", func(t *testing.T) {
		t.Setenv(localtest.GrafanaVersion, "12.1.9")
		_, err := local.FindGrafana(t.Context())
		assert.EqualError(t, err, "Grafana 12.1.9 in "+home+" is too old: 12.2.0 or later is required")
	})
	t.Run("newer, though its digits sort before", func(t *testing.T) {
		t.Setenv(localtest.GrafanaVersion, "100.0.1-pre")
		g, err := local.FindGrafana(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "100.0.1", g.Version)
	})
	t.Run("without a version", func(t *testing.T) {
		t.Setenv(localtest.GrafanaVersion, "unknown")
		_, err := local.FindGrafana(t.Context())
		assert.ErrorContains(t, err, "reports no version: grafana version unknown")
	})
	t.Run("incomplete", func(t *testing.T) {
		require.NoError(t, os.Remove(filepath.Join(home, "public")))
		_, err := local.FindGrafana(t.Context())
		assert.ErrorContains(t, err, "GRAFANA_HOME is "+home+", which is not a Grafana directory: ")
	})
}

// Without the variable, a package's counts more than the program on the PATH, and
// that is followed to where it really is.
func TestFindGrafanaByItself(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	t.Setenv("PATH", t.TempDir())
	_, err := local.FindGrafanaBeside(t.Context(), nowhere)
	assert.ErrorIs(t, err, local.ErrNoGrafana)

	packaged, home, bin := localtest.Grafana(t), localtest.Grafana(t), t.TempDir()
	program := filepath.Join(home, "bin", "grafana")
	require.NoError(t, os.Remove(program)) // the played one is a link itself
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

// What the folder holds is left alone, but for the links to plugins of an earlier run.
func TestGrafanaCommand(t *testing.T) {
	dir, old, plugin := t.TempDir(), t.TempDir(), t.TempDir()
	own := filepath.Join(dir, "plugins", "own")
	require.NoError(t, os.MkdirAll(own, 0o755))
	require.NoError(t, os.Symlink(old, filepath.Join(dir, "plugins", "old")))
	project := t.TempDir()
	for _, name := range []string{"datasources", "plugins"} {
		require.NoError(t, os.Mkdir(filepath.Join(project, name), 0o755))
	}
	g := local.Grafana{Home: "/home", Program: "/program"}
	c, err := g.Command(local.GrafanaOptions{
		Dir: dir, Provisioning: project, Plugins: map[string]string{"app": plugin}, Unsigned: []string{"app", "panel"},
		Port: 3001, Log: "/log", Env: []string{"MORE=1"},
	})
	require.NoError(t, err)
	assert.Equal(t, "/program", c.Path)
	assert.Equal(t, []string{"server", "--homepath", "/home", "--config", filepath.Join(dir, "grafana.ini")}, c.Args)
	assert.True(t, c.Parent)
	assert.Subset(t, c.Env, []string{
		"GF_SERVER_HTTP_ADDR=127.0.0.1", "GF_SERVER_HTTP_PORT=3001", "GF_PATHS_PROVISIONING=" + filepath.Join(dir, "provisioning"),
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

	// Where the app was not built, Grafana must not ask for it: it would end.
	_, err = g.Command(local.GrafanaOptions{Dir: dir, Provisioning: project})
	require.NoError(t, err)
	assert.Equal(t, []string{"datasources"}, provisioned())
}

// A real one comes up with the project's data source, lets in whoever reaches it
// as an Editor, and answers under no other name than 127.0.0.1.
func TestRealGrafana(t *testing.T) {
	g := realGrafana(t)
	provisioning, err := filepath.Abs(filepath.Join("..", "..", "..", "provisioning"))
	require.NoError(t, err)
	p, base := startProvisioned(t, g, provisioning)
	assert.True(t, isDefault(t, base, "kvbooth-prometheus"), "Grafana makes the only one its default by itself")
	assert.Equal(t, http.StatusOK, call(t, "POST", base+"/api/dashboards/db", "127.0.0.1", `{"dashboard": {"title": "new"}}`), "an Editor may")
	assert.Equal(t, http.StatusForbidden, call(t, "POST", base+"/api/datasources", "127.0.0.1", `{"name": "new", "type": "prometheus", "access": "proxy"}`), "an Admin alone may")
	assert.Equal(t, http.StatusMovedPermanently, call(t, "GET", base+"/api/search", "rebound.example.org", ""))

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	p.Stop(ctx)
	assert.NoError(t, ctx.Err(), "it ends in time")
}

// A Grafana that has a default data source keeps it when the project's comes along.
func TestRealGrafanaKeepsItsDefault(t *testing.T) {
	g := realGrafana(t)
	provisioning := t.TempDir()
	folder := filepath.Join(provisioning, "datasources")
	require.NoError(t, os.Mkdir(folder, 0o755))
	ours, err := os.ReadFile(filepath.Join("..", "..", "..", "provisioning", "datasources", "prometheus.yaml"))
	require.NoError(t, err)
	const theirs = "apiVersion: 1\ndatasources:\n- {uid: theirs, name: A Prometheus of theirs, type: prometheus, url: 'http://127.0.0.1:9098', isDefault: true}\n"
	require.NoError(t, errors.Join(
		os.WriteFile(filepath.Join(folder, "a.yaml"), []byte(theirs), 0o600), // read first: it was there before
		os.WriteFile(filepath.Join(folder, "kvbooth.yaml"), ours, 0o600)))
	_, base := startProvisioned(t, g, provisioning)
	assert.True(t, isDefault(t, base, "theirs"))
	assert.False(t, isDefault(t, base, "kvbooth-prometheus"))
}

// realGrafana is the installed one. Where there is none, the test is skipped.
func realGrafana(t *testing.T) local.Grafana {
	t.Helper()
	g, err := local.FindGrafana(t.Context())
	if err != nil {
		t.Skip("skipped: no Grafana")
	}
	return g
}

// startProvisioned starts a Grafana and gives it and its address once the project's data
// source is there.
func startProvisioned(t *testing.T, g local.Grafana, provisioning string) (p *process.Process, base string) {
	t.Helper()
	ports, err := process.FreePorts(23000, 1)
	require.NoError(t, err)
	c, err := g.Command(local.GrafanaOptions{
		Dir: t.TempDir(), Provisioning: provisioning, Port: ports[0], Log: filepath.Join(t.TempDir(), "log"),
		Env: []string{"KVBOOTH_PROMETHEUS_URL=http://127.0.0.1:9099", "KVBOOTH_PROMETHEUS_UID=" + local.DataSourceUID},
	})
	require.NoError(t, err)
	p = start(t, c)
	base = "http://" + process.Loopback(ports[0])
	require.NoError(t, local.Ready(within(t, 2*time.Minute), base+"/api/health", p), process.Tail(c.Log))
	// It answers before all of that is read, and some calls that come meanwhile never.
	require.NoError(t, local.Ready(within(t, 2*time.Minute), base+"/api/datasources/uid/kvbooth-prometheus", p), process.Tail(c.Log))
	return p, base
}

// isDefault says whether a data source is the one that a Grafana takes where none is named.
func isDefault(t *testing.T, grafana, uid string) bool {
	t.Helper()
	response, err := http.Get(grafana + "/api/datasources/uid/" + uid)
	require.NoError(t, err)
	defer response.Body.Close()
	var source struct {
		UID       string `json:"uid"`
		IsDefault *bool  `json:"isDefault"`
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&source))
	require.Equal(t, uid, source.UID)
	require.NotNil(t, source.IsDefault)
	return *source.IsDefault
}

// call gives the status of an answer to a request under a name; redirects are not followed.
func call(t *testing.T, method, url, host, body string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Host = host
	r.Header.Set("Content-Type", "application/json")
	r.Close = true
	response, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer response.Body.Close()
	return response.StatusCode
}
