package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"time"

	"github.com/alecthomas/units"

	"kvbooth/sidecar/booth/prometheus"
)

// prometheusCmd is `booth prometheus`.
type prometheusCmd struct {
	ConfigFile    string           `required:"" placeholder:"FILE" help:"Path of prometheus.yml; only static_configs are supported."`
	DataDir       string           `required:"" placeholder:"DIR" help:"Directory for the samples."`
	Listen        string           `default:"127.0.0.1:9090" help:"Listen address of its API; port 0 takes a free one."`
	Retention     time.Duration    `default:"6h" help:"How long to keep samples."`
	RetentionSize units.Base2Bytes `default:"2GB" help:"Maximum disk space for samples; 0: no limit."`
}

func (c *prometheusCmd) run(ctx, _ context.Context, stdout, stderr io.Writer) error {
	return prometheus.Run(ctx, prometheus.Options{
		ConfigFile: c.ConfigFile, DataDir: c.DataDir, Listen: c.Listen,
		Retention: c.Retention, RetentionSize: int64(c.RetentionSize), Log: newLog(stderr, slog.LevelWarn),
		Ready: func(a net.Addr) { fmt.Fprintf(stdout, "Prometheus answers at http://%s\n", a) },
	})
}

func newLog(w io.Writer, from slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: from}))
}

// How often Prometheus reads a page: the load generator's changes every second.
const (
	scrapeEvery        = 2 * time.Second
	scrapeLoadgenEvery = time.Second
)

// newPrometheus writes the configuration and describes the service.
func (b *booth) newPrometheus(loadgen string) (*service, error) {
	address, err := b.address("Prometheus", b.flags.PrometheusPort)
	if err != nil {
		return nil, err
	}
	config := b.folder("prometheus.yml")
	if err := prometheus.WriteConfig(config, scrapeEvery, b.targets(loadgen, address)); err != nil {
		return nil, err
	}
	return b.ownService("Prometheus", address, "/-/ready", "prometheus",
		"--config-file="+config, "--data-dir="+b.folder("prometheus"), "--listen="+address)
}

// targets are the pages of all parts.
func (b *booth) targets(loadgen, own string) []prometheus.Target {
	all := targets(b.backend.addresses(), loadgen, own)
	if b.twin != nil {
		all = append(all, clusterTargets(b.twin.addresses(), twinNamespace, "-twin")...)
	}
	return all
}

// targets are the pages to read, with the labels that they have on a cluster,
// where the DCGM exporter has a namespace of its own.
func targets(at addresses, loadgen, own string) []prometheus.Target {
	all := []prometheus.Target{
		frontendTarget(at, namespace, ""),
		target("loadgen", loadgen, "kvbooth", "loadgen", "loadgen"),
		target("prometheus", own, "kvbooth", "prometheus", "prometheus"),
	}
	every := scrapeLoadgenEvery.String()
	maps.Copy(all[1].Labels, map[string]string{"__scrape_interval__": every, "__scrape_timeout__": every})
	return append(all, workerTargets(at, namespace, "")...)
}

// clusterTargets are the pages of a cluster. of tells its pods from another cluster's.
func clusterTargets(at addresses, namespace, of string) []prometheus.Target {
	return append([]prometheus.Target{frontendTarget(at, namespace, of)}, workerTargets(at, namespace, of)...)
}

func frontendTarget(at addresses, namespace, of string) prometheus.Target {
	return target("dynamo-frontend", at.frontend, namespace, "dynamo-frontend"+of, "main")
}

func workerTargets(at addresses, namespace, of string) (all []prometheus.Target) {
	for i, address := range at.workers {
		all = append(all, target("dynamo-worker", address, namespace, fmt.Sprintf("%s%s-%d", workerPod, of, i+1), "main"))
	}
	for i, address := range at.gpus {
		all = append(all, target("dcgm-exporter", address, "gpu-operator", fmt.Sprintf("dcgm-exporter%s-%d", of, i+1), "exporter"))
	}
	return all
}

func target(job, address, namespace, pod, container string) prometheus.Target {
	return prometheus.Target{Job: job, Address: address, Labels: map[string]string{"namespace": namespace, "pod": pod, "container": container}}
}
