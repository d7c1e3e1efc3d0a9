package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kvbooth/sidecar/booth/local"
)

// prometheusCmd is `booth prometheus`, which has been removed.
type prometheusCmd struct {
	Args []string `arg:"" optional:"" passthrough:""`
}

func (prometheusCmd) run(context.Context, context.Context, io.Writer, io.Writer) error {
	return fmt.Errorf("%w: booth prometheus was removed; "+
		"run prometheus --config.file=FILE --storage.tsdb.path=DIR", errBadInput)
}

// Scrape intervals. The load generator's page changes every second.
const (
	scrapeInterval        = 2 * time.Second
	loadgenScrapeInterval = time.Second
)

// findPrometheus returns the path of an installed Prometheus, or downloads one.
func (b *booth) findPrometheus(ctx context.Context) (string, error) {
	own, err := ownFolder()
	if err != nil {
		return "", err
	}
	path, err := local.FindPrometheus(ctx, own)
	if !errors.Is(err, local.ErrNoPrometheus) {
		return path, err
	}
	path, err = local.InstallPrometheus(ctx, b.cache, b.out.stderr)
	if err != nil {
		return "", fmt.Errorf("%w: %w; build it with go tool mage build, put it on the PATH, or set %s to its path",
			local.ErrNoPrometheus, err, local.PrometheusVariable)
	}
	return path, nil
}

// newPrometheus writes the configuration and describes the service.
func (b *booth) newPrometheus(program string) (*service, error) {
	address, config := b.prometheusAt, b.folder("prometheus.yml")
	if err := local.WriteScrapeConfig(config, scrapeInterval, b.targets(b.loadgenAt, address)); err != nil {
		return nil, err
	}
	command := local.PrometheusCommand(program, local.PrometheusOptions{
		Config: config, Data: b.folder("prometheus"), Listen: address, Log: b.log("prometheus"),
	})
	return b.newService("Prometheus", "http://"+address, "/-/ready", readyTimeout, command), nil
}

// targets returns the scrape targets of all parts.
func (b *booth) targets(loadgen, own string) []local.ScrapeTarget {
	all := targets(b.backend.addresses(), loadgen, own)
	if b.twin != nil {
		all = append(all, clusterTargets(b.twin.addresses(), twinNamespace, "-twin")...)
	}
	return all
}

// targets returns the scrape targets of one cluster and the other parts, with the labels of a Kubernetes cluster,
// where the DCGM exporter has its own namespace.
func targets(at addresses, loadgen, own string) []local.ScrapeTarget {
	all := slices.Insert(clusterTargets(at, namespace, ""), 1,
		target("loadgen", loadgen, "kvbooth", "loadgen", "loadgen"),
		target("prometheus", own, "kvbooth", "prometheus", "prometheus"))
	interval := loadgenScrapeInterval.String()
	maps.Copy(all[1].Labels, map[string]string{"__scrape_interval__": interval, "__scrape_timeout__": interval})
	return all
}

// clusterTargets returns the scrape targets of a cluster, its frontend first. suffix is that of its pods' names.
func clusterTargets(at addresses, namespace, suffix string) []local.ScrapeTarget {
	all := []local.ScrapeTarget{
		target("dynamo-frontend", at.frontend, namespace, "dynamo-frontend"+suffix, "main"),
	}
	for i, address := range at.workers {
		pod := fmt.Sprintf("%s%s-%d", workerPod, suffix, i+1)
		all = append(all, target("dynamo-worker", address, namespace, pod, "main"))
	}
	for i, address := range at.gpus {
		pod := fmt.Sprintf("dcgm-exporter%s-%d", suffix, i+1)
		all = append(all, target("dcgm-exporter", address, "gpu-operator", pod, "exporter"))
	}
	return all
}

func target(job, address, namespace, pod, container string) local.ScrapeTarget {
	labels := map[string]string{"namespace": namespace, "pod": pod, "container": container}
	return local.ScrapeTarget{Job: job, Address: address, Labels: labels}
}

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
	if app != nil {
		b.startPage = local.HomePage
	}
	command, err := g.Command(local.GrafanaOptions{
		Dir: b.folder("grafana"), Provisioning: provisioning, Plugins: app,
		Port: port(b.grafanaAt), Log: b.log("grafana"),
		Env: []string{
			"KVBOOTH_PROMETHEUS_URL=" + b.prometheus.url, "KVBOOTH_PROMETHEUS_UID=" + local.DataSourceUID,
			"KVBOOTH_SIDECAR_URL=http://" + b.loadgenAt,
		},
	})
	if err != nil {
		return nil, err
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
