//go:build grafana && unix

package local_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/process/processtest"
)

// TestRealGrafana checks that a real Grafana adds the project's data source beside an existing default one, gives
// anonymous users Editor rights, and serves only the host name 127.0.0.1.
func TestRealGrafana(t *testing.T) {
	g, err := local.FindGrafana(t.Context())
	if errors.Is(err, local.ErrNoGrafana) {
		t.Skip("no Grafana: booth demo downloads one; GRAFANA_HOME names its folder")
	}
	require.NoError(t, err)
	provisioning := t.TempDir()
	folder := filepath.Join(provisioning, "datasources")
	require.NoError(t, os.Mkdir(folder, 0o755))
	ours, err := os.ReadFile(filepath.Join("..", "..", "..", "provisioning", "datasources", "prometheus.yaml"))
	require.NoError(t, err)
	const theirs = "apiVersion: 1\ndatasources:\n" +
		"- {uid: theirs, name: A Prometheus of theirs, type: prometheus, url: 'http://127.0.0.1:9098', isDefault: true}\n"
	require.NoError(t, errors.Join(
		os.WriteFile(filepath.Join(folder, "a.yaml"), []byte(theirs), 0o600), // read first, like an existing one
		os.WriteFile(filepath.Join(folder, "kvbooth.yaml"), ours, 0o600)))
	port := processtest.Ports(t, 1)
	c, err := g.Command(local.GrafanaOptions{
		Dir: t.TempDir(), Provisioning: provisioning, Port: port, Log: filepath.Join(t.TempDir(), "log"),
		Env: []string{"KVBOOTH_PROMETHEUS_URL=http://127.0.0.1:9099", "KVBOOTH_PROMETHEUS_UID=" + local.DataSourceUID},
	})
	require.NoError(t, err)
	p, err := process.Start(c)
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	base := "http://127.0.0.1:" + strconv.Itoa(port)
	require.NoError(t, local.Ready(wait.Context(t), base+"/api/health", p), process.Tail(c.Log))
	// Grafana responds before the provisioning is complete, and some calls until then never return.
	source := base + "/api/datasources/uid/" + local.DataSourceUID
	require.NoError(t, local.Ready(wait.Context(t), source, p), process.Tail(c.Log))

	assert.True(t, isDefault(t, base, "theirs"))
	assert.False(t, isDefault(t, base, local.DataSourceUID))
	const (
		dashboard = `{"dashboard": {"title": "new"}}`
		another   = `{"name": "new", "type": "prometheus", "access": "proxy"}`
	)
	status := call(t, "POST", base+"/api/dashboards/db", "127.0.0.1", dashboard)
	assert.Equal(t, http.StatusOK, status, "an Editor may save dashboards")
	status = call(t, "POST", base+"/api/datasources", "127.0.0.1", another)
	assert.Equal(t, http.StatusForbidden, status, "only an Admin may add data sources")
	assert.Equal(t, http.StatusMovedPermanently, call(t, "GET", base+"/api/search", "rebound.example.org", ""))

	ctx := wait.Context(t)
	p.Stop(ctx)
	assert.NoError(t, ctx.Err(), "Grafana stops in time")
}

// isDefault reports whether a data source is Grafana's default.
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

// call sends a request with a host name and returns the status of the response, without following redirects.
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
