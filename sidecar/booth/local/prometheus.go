package local

import (
	"cmp"
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
	"time"

	"github.com/google/renameio/v2/maybe"
	"go.yaml.in/yaml/v3"

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
	for _, name := range []string{filepath.Join(dir, executable("prometheus")), "prometheus"} {
		path, err := exec.LookPath(name)
		if err == nil {
			return path, checkPrometheus(ctx, path)
		}
	}
	return "", ErrNoPrometheus
}

// checkPrometheus returns an error if a program is not a supported Prometheus.
func checkPrometheus(ctx context.Context, path string) error {
	_, err := versionOf(ctx, path, "Prometheus", filepath.Dir(path), OldestPrometheus)
	return err
}

// InstallPrometheus returns the path of the Prometheus of version [PrometheusRelease] in cacheDir.
// The first call downloads it, verifies its SHA-256 and writes its progress. A failed download
// leaves nothing behind. Of several processes, one downloads and the others wait.
func InstallPrometheus(ctx context.Context, cacheDir string, progress io.Writer) (string, error) {
	home := filepath.Join(cacheDir, "prometheus-"+PrometheusRelease)
	extension := ".tar.gz"
	if runtime.GOOS == "windows" {
		extension = ".zip"
	}
	err := release{
		name: "Prometheus", version: PrometheusRelease, sums: "sha256sums.txt",
		file:   fmt.Sprintf("prometheus-%s.%s-%s%s", PrometheusRelease, runtime.GOOS, runtime.GOARCH, extension),
		folder: cmp.Or(strings.TrimSuffix(os.Getenv(PrometheusMirrorVariable), "/"), prometheusDownloads),
		hint:   "an installed one on the PATH is used instead",
		check: func(ctx context.Context, home string) error {
			return checkPrometheus(ctx, filepath.Join(home, executable("prometheus")))
		},
	}.installOnce(ctx, home, progress)
	return filepath.Join(home, executable("prometheus")), err
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

// ScrapeTarget is a metrics page at /metrics.
type ScrapeTarget struct {
	Job     string // targets of one job are grouped in the configuration
	Address string // host:port
	Labels  map[string]string
}

// longestScrapeTimeout is Prometheus' default timeout.
const longestScrapeTimeout = 10 * time.Second

// The written fields of prometheus.yml.
type (
	prometheusConfig struct {
		Global  scrapeDefaults `yaml:"global"`
		Scrapes []*scrapeJob   `yaml:"scrape_configs"`
	}
	scrapeDefaults struct {
		Interval string `yaml:"scrape_interval"`
		Timeout  string `yaml:"scrape_timeout"`
		// Native histograms are stored beside the classic ones, which the dashboards query.
		Native  bool `yaml:"scrape_native_histograms"`
		Classic bool `yaml:"always_scrape_classic_histograms"`
	}
	scrapeJob struct {
		Name   string        `yaml:"job_name"`
		Groups []scrapeGroup `yaml:"static_configs"`
	}
	scrapeGroup struct {
		Targets []string          `yaml:"targets"`
		Labels  map[string]string `yaml:"labels,omitempty"`
	}
)

// WriteScrapeConfig writes a prometheus.yml that scrapes the targets at the interval, in whole milliseconds. Labels
// are added to every series of their target; a label of the same name that the target itself exposes becomes
// exported_<name>. The file is replaced atomically.
func WriteScrapeConfig(path string, interval time.Duration, targets []ScrapeTarget) error {
	config := prometheusConfig{Global: scrapeDefaults{
		Interval: milliseconds(interval), Timeout: milliseconds(min(interval, longestScrapeTimeout)),
		Native: true, Classic: true,
	}}
	for _, t := range targets {
		i := slices.IndexFunc(config.Scrapes, func(j *scrapeJob) bool { return j.Name == t.Job })
		if i < 0 {
			i = len(config.Scrapes)
			config.Scrapes = append(config.Scrapes, &scrapeJob{Name: t.Job})
		}
		config.Scrapes[i].Groups = append(config.Scrapes[i].Groups, scrapeGroup{[]string{t.Address}, t.Labels})
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	return maybe.WriteFile(path, text, 0o644)
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }
