//go:build grafana

package grafana

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/test/boothtest"
)

const (
	// token is the load generator's token. It is set, so that the journeys can try a wrong one.
	token = "the-booth-of-a-test"
	// password is the password of all users of the test's Grafana: admin, and those that the journeys add.
	password = "only-for-a-test"
)

// TestGate runs the journeys that visit each part of the app once.
func TestGate(t *testing.T) { run(t, "", "grafana-gate", boothtest.Simulated) }

// TestBooth runs all other journeys.
func TestBooth(t *testing.T) { run(t, "", "grafana", boothtest.Simulated) }

// TestUnderAPath runs the journeys that depend on Grafana's path.
func TestUnderAPath(t *testing.T) { run(t, "/grafana", "under-a-path", boothtest.Simulated) }

// run runs a project of the journeys on a booth with a target and a Grafana under a path.
func run(t *testing.T, path, project string, target func(*testing.T, string) boothtest.Target) *boothtest.Booth {
	t.Helper()
	installed, tools := find(t), boothtest.FindTools(t)
	b := boothtest.Start(t, boothtest.Options{Token: token, Target: target, Flags: []string{"--think-time=3s"}})
	grafana := startGrafana(t, b, installed, path)
	b.Journeys(t, tools, project, "GRAFANA_URL="+grafana, "PASSWORD="+password)
	return b
}

// find skips the test if Grafana is not installed.
func find(t *testing.T) local.Grafana {
	t.Helper()
	installed, err := local.FindGrafana(t.Context())
	boothtest.Need(t, err, local.ErrNoGrafana, "no Grafana")
	return installed
}

// startGrafana starts Grafana with the project's provisioning and app, under a path such as /grafana, or "". Users
// without a login are Viewers.
func startGrafana(t *testing.T, b *boothtest.Booth, installed local.Grafana, path string) string {
	t.Helper()
	dist := filepath.Join(b.Root, "dist")
	for _, name := range []string{"plugin.json", "module.js", local.AppBackend()} {
		if _, err := os.Stat(filepath.Join(dist, name)); err != nil {
			t.Fatalf("the app is not built: %v", err)
		}
	}
	grafana := part(t, installed, path, local.DataSourceUID, local.GrafanaOptions{
		Dir: t.TempDir(), Provisioning: filepath.Join(b.Root, "provisioning"),
		Plugins: map[string]string{local.AppID: dist},
		Env: []string{
			"KVBOOTH_PROMETHEUS_URL=" + b.Prometheus, "KVBOOTH_PROMETHEUS_UID=" + local.DataSourceUID,
			"KVBOOTH_SIDECAR_URL=" + b.Loadgen, "KVBOOTH_SIDECAR_TOKEN=" + b.Token,
			"GF_AUTH_ANONYMOUS_ORG_ROLE=Viewer", "GF_SECURITY_ADMIN_PASSWORD=" + password,
			"GF_SERVER_ROOT_URL=http://127.0.0.1" + path + "/",
			fmt.Sprintf("GF_SERVER_SERVE_FROM_SUB_PATH=%t", path != ""),
		},
	})
	return grafana.URL() + path
}

// listens finds the address in Grafana's log.
var listens = regexp.MustCompile(`HTTP Server Listen" address=(\S+)`)

// part starts a Grafana on a free port. It is ready after it has read its provisioning, including a data source: it
// reports earlier that it is healthy, and does not answer some calls until then.
func part(t *testing.T, installed local.Grafana, path, source string, o local.GrafanaOptions) *boothtest.Part {
	t.Helper()
	o.Log = boothtest.Log(t, "grafana")
	command, err := installed.Command(o)
	require.NoError(t, err)
	ready := "http://admin:" + password + "@" + boothtest.AnyPort + path + "/api/datasources/uid/" + source
	p := &boothtest.Part{Command: command, Prints: listens, Ready: ready}
	p.Run(t)
	return p
}
