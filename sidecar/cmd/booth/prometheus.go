package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"time"

	"kvbooth/sidecar/booth/local"
)

// prometheusCmd is `booth prometheus`, which earlier versions had.
type prometheusCmd struct {
	Args []string `arg:"" optional:"" passthrough:""`
}

func (prometheusCmd) run(context.Context, context.Context, io.Writer, io.Writer) error {
	return fmt.Errorf("%w: booth prometheus was removed; run prometheus --config.file=FILE --storage.tsdb.path=DIR", errBadInput)
}

// How often Prometheus reads a page: the load generator's changes every second.
const (
	scrapeEvery        = 2 * time.Second
	scrapeLoadgenEvery = time.Second
)

// findPrometheus returns the path of the Prometheus to start: an installed one, else one that
// this call downloads.
func (b *booth) findPrometheus(ctx context.Context) (string, error) {
	self, err := besideThis("")
	if err != nil {
		return "", err
	}
	path, err := local.FindPrometheus(ctx, filepath.Dir(self))
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
func (b *booth) newPrometheus(program, loadgen string) (*service, error) {
	address, err := b.address("Prometheus", b.flags.PrometheusPort)
	if err != nil {
		return nil, err
	}
	config := b.folder("prometheus.yml")
	if err := local.WriteScrapeConfig(config, scrapeEvery, b.targets(loadgen, address)); err != nil {
		return nil, err
	}
	return b.newService("Prometheus", "http://"+address, "/-/ready", readyWithin, local.PrometheusCommand(program, local.PrometheusOptions{
		Config: config, Data: b.folder("prometheus"), Listen: address, Log: b.log("prometheus"),
	})), nil
}

// targets are the pages of all parts.
func (b *booth) targets(loadgen, own string) []local.ScrapeTarget {
	all := targets(b.backend.addresses(), loadgen, own)
	if b.twin != nil {
		all = append(all, clusterTargets(b.twin.addresses(), twinNamespace, "-twin")...)
	}
	return all
}

// targets are the pages to read, with the labels that they have on a cluster,
// where the DCGM exporter has a namespace of its own.
func targets(at addresses, loadgen, own string) []local.ScrapeTarget {
	all := []local.ScrapeTarget{
		frontendTarget(at, namespace, ""),
		target("loadgen", loadgen, "kvbooth", "loadgen", "loadgen"),
		target("prometheus", own, "kvbooth", "prometheus", "prometheus"),
	}
	every := scrapeLoadgenEvery.String()
	maps.Copy(all[1].Labels, map[string]string{"__scrape_interval__": every, "__scrape_timeout__": every})
	return append(all, workerTargets(at, namespace, "")...)
}

// clusterTargets are the pages of a cluster. of tells its pods from another cluster's.
func clusterTargets(at addresses, namespace, of string) []local.ScrapeTarget {
	return append([]local.ScrapeTarget{frontendTarget(at, namespace, of)}, workerTargets(at, namespace, of)...)
}

func frontendTarget(at addresses, namespace, of string) local.ScrapeTarget {
	return target("dynamo-frontend", at.frontend, namespace, "dynamo-frontend"+of, "main")
}

func workerTargets(at addresses, namespace, of string) (all []local.ScrapeTarget) {
	for i, address := range at.workers {
		all = append(all, target("dynamo-worker", address, namespace, fmt.Sprintf("%s%s-%d", workerPod, of, i+1), "main"))
	}
	for i, address := range at.gpus {
		all = append(all, target("dcgm-exporter", address, "gpu-operator", fmt.Sprintf("dcgm-exporter%s-%d", of, i+1), "exporter"))
	}
	return all
}

func target(job, address, namespace, pod, container string) local.ScrapeTarget {
	return local.ScrapeTarget{Job: job, Address: address, Labels: map[string]string{"namespace": namespace, "pod": pod, "container": container}}
}
