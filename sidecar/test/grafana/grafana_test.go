//go:build grafana

package grafana

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

// password is that of every user of the test's Grafana: admin, and those whom the
// journeys add.
const password = "only-for-a-test"

// startGrafana starts Grafana with the project's provisioning and app, under a path
// such as /grafana, or "". Without a login, one is a Viewer.
func startGrafana(t *testing.T, b *boothtest.Booth, installed local.Grafana, path string) string {
	t.Helper()
	dist := filepath.Join(b.Root, "dist")
	for _, name := range []string{"plugin.json", "module.js", local.AppBackend()} {
		if _, err := os.Stat(filepath.Join(dist, name)); err != nil {
			t.Fatalf("the app is not built: %v", err)
		}
	}
	port := b.Ports.Take(t, 1)
	root := "http://" + process.Loopback(port)
	command, err := installed.Command(local.GrafanaOptions{
		Dir: t.TempDir(), Provisioning: filepath.Join(b.Root, "provisioning"), Plugins: map[string]string{local.AppID: dist},
		Unsigned: local.AppIDs, Port: port, Log: boothtest.Log(t, "grafana"),
		Env: []string{
			"KVBOOTH_PROMETHEUS_URL=" + b.Prometheus, "KVBOOTH_PROMETHEUS_UID=" + local.DataSourceUID, "KVBOOTH_SIDECAR_URL=" + b.Loadgen, "KVBOOTH_SIDECAR_TOKEN=" + b.Token,
			"GF_AUTH_ANONYMOUS_ORG_ROLE=Viewer", "GF_SECURITY_ADMIN_PASSWORD=" + password,
			"GF_SERVER_ROOT_URL=" + root + path + "/", fmt.Sprintf("GF_SERVER_SERVE_FROM_SUB_PATH=%t", path != ""),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	grafana := &boothtest.Part{Command: command, Ready: whole(root+path, local.DataSourceUID)}
	grafana.Run(t)
	return root + path
}

// whole is an address that answers once a Grafana has read its provisioning, down to a
// data source. It says that it is healthy before, and some calls that come meanwhile
// are never answered.
func whole(grafana, source string) string {
	return strings.Replace(grafana, "://", "://admin:"+password+"@", 1) + "/api/datasources/uid/" + source
}
