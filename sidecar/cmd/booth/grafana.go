package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"kvbooth/sidecar/booth/local"
)

// dashboardUID is the uid of the first dashboard to open.
const dashboardUID = "kvbooth-booth"

// grafanaTimeout is the time until Grafana must be ready. Its first start makes the database.
const grafanaTimeout = 90 * time.Second

const howToGetGrafana = `Everything runs without Grafana, too: the page above shows the same. To see it in Grafana,
get version ` + local.OldestGrafana + ` or later from https://grafana.com/grafana/download, unpack it anywhere,
set ` + local.GrafanaVariable + ` to its folder, and start the booth again.`

// installedGrafana is a variable so that tests can ignore the Grafana of this machine.
var installedGrafana = local.FindGrafana

// findGrafana returns an installed Grafana, or downloads one. Without one, it reports the reason and returns nil, and
// the booth continues.
func (b *booth) findGrafana(ctx context.Context) *local.Grafana {
	if b.flags.Grafana == "off" {
		return nil
	}
	g, err := installedGrafana(ctx)
	if errors.Is(err, local.ErrNoGrafana) && b.flags.Grafana == "auto" {
		if g, err = local.InstallGrafana(ctx, b.cache, b.out.stderr); err != nil {
			err = fmt.Errorf("%w, and downloading it failed: %w", local.ErrNoGrafana, err)
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		b.noGrafana = err
		b.out.say("%v\ncontinuing without Grafana", err)
		return nil
	}
	return &g
}

// newGrafana describes Grafana. The booth continues after an error.
func (b *booth) newGrafana(g local.Grafana) (*service, error) {
	provisioning, err := b.provisioning()
	if err != nil {
		return nil, err
	}
	url, app := "http://"+b.grafanaAt, app(provisioning)
	command, err := g.Command(local.GrafanaOptions{
		Dir: b.folder("grafana"), Provisioning: provisioning, Plugins: app,
		Unsigned: local.AppIDs, Port: port(b.grafanaAt), Log: b.log("grafana"),
		Env: []string{
			"KVBOOTH_PROMETHEUS_URL=" + b.prometheus.url, "KVBOOTH_PROMETHEUS_UID=" + local.DataSourceUID,
			"KVBOOTH_SIDECAR_URL=http://" + b.loadgenAt,
		},
	})
	if err != nil {
		return nil, err
	}
	if app != nil {
		b.startPage = "/d/" + dashboardUID
	}
	s := b.newService("Grafana", url, "/api/health", grafanaTimeout, command)
	s.optional = true
	return s, nil
}

// withoutGrafana returns a message with the reason for a missing Grafana.
func withoutGrafana(err error) string {
	if errors.Is(err, local.ErrNoGrafana) {
		return howToGetGrafana
	}
	return "Grafana was not started: " + err.Error()
}

// provisioning returns Grafana's provisioning folder. The project's is beside the folder of this program.
func (b *booth) provisioning() (string, error) {
	dir := b.flags.Provisioning
	if dir == "" {
		own, err := ownFolder()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(own, "..", "provisioning")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("its provisioning is missing: %w; set the directory with --provisioning", err)
	}
	return dir, nil
}

// app returns the folder of the project's built Grafana app by its id, or nil if the build is incomplete.
func app(provisioning string) map[string]string {
	dist := filepath.Join(filepath.Dir(provisioning), "dist")
	for _, name := range []string{"plugin.json", "module.js", local.AppBackend()} {
		if _, err := os.Stat(filepath.Join(dist, name)); err != nil {
			return nil
		}
	}
	return map[string]string{local.AppID: dist}
}
