package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"kvbooth/sidecar/process"
)

// PrometheusRelease is the version of Prometheus that is downloaded or built if none is installed.
const PrometheusRelease = "3.15.0"

// OldestPrometheus is the oldest supported version of Prometheus.
const OldestPrometheus = "3.0.0"

// PrometheusVariable names the environment variable with the path of the program prometheus.
const PrometheusVariable = "KVBOOTH_PROMETHEUS"

// PrometheusMirrorVariable names the environment variable with the URL of a folder that has the
// archives of a release of Prometheus and its sha256sums.txt.
const PrometheusMirrorVariable = "KVBOOTH_PROMETHEUS_MIRROR"

// prometheusDownloads is the folder of the release.
const prometheusDownloads = "https://github.com/prometheus/prometheus/releases/download/v" + PrometheusRelease

// ErrNoPrometheus is in the chain of the error of [FindPrometheus] if no Prometheus is installed.
var ErrNoPrometheus = errors.New("no Prometheus is installed")

// FindPrometheus returns the path of an installed Prometheus: the one in [PrometheusVariable], otherwise the one in
// dir, otherwise the one on the PATH. A version before [OldestPrometheus] is an error.
func FindPrometheus(ctx context.Context, dir string) (string, error) {
	if path := os.Getenv(PrometheusVariable); path != "" {
		if err := checkPrometheus(ctx, path); err != nil {
			return "", fmt.Errorf("%s: %w", PrometheusVariable, err)
		}
		return path, nil
	}
	for _, name := range []string{filepath.Join(dir, prometheusProgram()), "prometheus"} {
		path, err := exec.LookPath(name)
		if err == nil {
			return path, checkPrometheus(ctx, path)
		}
	}
	return "", ErrNoPrometheus
}

func prometheusProgram() string {
	if runtime.GOOS == "windows" {
		return "prometheus.exe"
	}
	return "prometheus"
}

// checkPrometheus returns an error if a program is not a supported Prometheus.
func checkPrometheus(ctx context.Context, path string) error {
	output, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s --version: %w: %s", path, err, strings.TrimSpace(string(output)))
	}
	version := versionNumber.FindString(string(output))
	if version == "" {
		return fmt.Errorf("%s --version reports no version: %s", path, strings.TrimSpace(string(output)))
	}
	if slices.Compare(numbers(version), numbers(OldestPrometheus)) < 0 {
		return fmt.Errorf("%s is Prometheus %s, which is too old: %s or later is required",
			path, version, OldestPrometheus)
	}
	return nil
}

// InstallPrometheus returns the path of the Prometheus of version [PrometheusRelease] in cacheDir.
// The first call downloads it, verifies its SHA-256 and writes its progress. A failed download
// leaves nothing behind. Of several processes, one downloads and the others wait.
func InstallPrometheus(ctx context.Context, cacheDir string, progress io.Writer) (string, error) {
	home := filepath.Join(cacheDir, "prometheus-"+PrometheusRelease)
	check := func(ctx context.Context, home string) error {
		return checkPrometheus(ctx, filepath.Join(home, prometheusProgram()))
	}
	err := installOnce(ctx, home, "Prometheus", progress, func() bool { return check(ctx, home) == nil }, func() error {
		folder := prometheusDownloads
		if mirror := os.Getenv(PrometheusMirrorVariable); mirror != "" {
			folder = strings.TrimSuffix(mirror, "/")
		}
		name := fmt.Sprintf("prometheus-%s.%s-%s", PrometheusRelease, runtime.GOOS, runtime.GOARCH)
		extension := ".tar.gz"
		if runtime.GOOS == "windows" {
			extension = ".zip"
		}
		return release{
			title: "Prometheus " + PrometheusRelease, folder: folder, file: name + extension,
			sums: folder + "/sha256sums.txt",
			hint: "an installed one on the PATH is used instead", check: check,
		}.install(ctx, home, progress)
	})
	if err != nil {
		return "", fmt.Errorf("download Prometheus %s: %w", PrometheusRelease, err)
	}
	return filepath.Join(home, prometheusProgram()), nil
}

// PrometheusOptions are the files and the address of a Prometheus of a booth.
type PrometheusOptions struct {
	Config string // path of prometheus.yml
	Data   string // folder for the samples
	Listen string // host:port; port 0 takes a free one
	Log    string // path of the log
}

// PrometheusCommand returns the command of a Prometheus that keeps samples for six hours, in 2 GB.
// One query cannot exhaust the machine's memory, and pages of other sites cannot read samples.
func PrometheusCommand(program string, o PrometheusOptions) process.Command {
	return process.Command{
		Name: "Prometheus", Path: program, Log: o.Log,
		Args: []string{
			"--config.file=" + o.Config, "--storage.tsdb.path=" + o.Data, "--web.listen-address=" + o.Listen,
			"--storage.tsdb.retention.time=6h", "--storage.tsdb.retention.size=2GB",
			"--query.max-concurrency=4", "--query.max-samples=5000000", "--query.timeout=30s",
			"--web.cors.origin=^$",
			"--scrape.discovery-reload-interval=100ms", // the targets are fixed: scrape them at once, not after 5 s
		},
	}
}
