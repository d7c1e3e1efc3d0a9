package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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
	all := []local.ScrapeTarget{
		frontendTarget(at, namespace, ""),
		target("loadgen", loadgen, "kvbooth", "loadgen", "loadgen"),
		target("prometheus", own, "kvbooth", "prometheus", "prometheus"),
	}
	interval := loadgenScrapeInterval.String()
	maps.Copy(all[1].Labels, map[string]string{"__scrape_interval__": interval, "__scrape_timeout__": interval})
	return append(all, workerTargets(at, namespace, "")...)
}

// clusterTargets returns the scrape targets of a cluster. suffix is that of its pods' names.
func clusterTargets(at addresses, namespace, suffix string) []local.ScrapeTarget {
	frontend := frontendTarget(at, namespace, suffix)
	return append([]local.ScrapeTarget{frontend}, workerTargets(at, namespace, suffix)...)
}

func frontendTarget(at addresses, namespace, suffix string) local.ScrapeTarget {
	return target("dynamo-frontend", at.frontend, namespace, "dynamo-frontend"+suffix, "main")
}

func workerTargets(at addresses, namespace, suffix string) (all []local.ScrapeTarget) {
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
