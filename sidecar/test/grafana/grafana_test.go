//go:build grafana

package grafana

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/test/boothtest"
)

// password is that of every user of the test's Grafana: admin, editor and viewer.
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
	root := "http://" + local.Loopback(port)
	command, err := installed.Command(local.GrafanaOptions{
		Dir: t.TempDir(), Provisioning: filepath.Join(b.Root, "provisioning"), Plugins: map[string]string{local.AppID: dist},
		Unsigned: local.AppIDs, Port: port, Log: boothtest.Log(t, "grafana"),
		Env: []string{
			"KVBOOTH_PROMETHEUS_URL=" + b.Prometheus, "KVBOOTH_SIDECAR_URL=" + b.Loadgen, "KVBOOTH_SIDECAR_TOKEN=" + b.Token,
			"GF_AUTH_ANONYMOUS_ORG_ROLE=Viewer", "GF_SECURITY_ADMIN_PASSWORD=" + password,
			"GF_SERVER_ROOT_URL=" + root + path + "/", fmt.Sprintf("GF_SERVER_SERVE_FROM_SUB_PATH=%t", path != ""),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	grafana := &boothtest.Part{Command: command, Ready: root + path + "/api/health"}
	grafana.Run(t)
	if err := addUsers(t.Context(), root+path); err != nil {
		t.Fatal(err)
	}
	return root + path
}

// addUsers adds the users editor and viewer, with the roles of those names.
func addUsers(ctx context.Context, url string) error {
	var err error
	for login, role := range map[string]string{"editor": "Editor", "viewer": "Viewer"} {
		var added struct {
			ID int64 `json:"id"`
		}
		err = errors.Join(err,
			ask(ctx, http.MethodPost, url+"/api/admin/users", map[string]any{"login": login, "password": password}, &added),
			ask(ctx, http.MethodPatch, fmt.Sprintf("%s/api/org/users/%d", url, added.ID), map[string]any{"role": role}, nil))
	}
	return err
}

// ask calls Grafana's API as its administrator.
func ask(ctx context.Context, method, url string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.SetBasicAuth("admin", password)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", method, url, response.Status, said)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(said, answer)
}
