package prometheus

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2/maybe"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"go.yaml.in/yaml/v3"

	"kvbooth/sidecar/api"
)

// Target is one page of metrics.
type Target struct {
	Job     string // targets of one job stand together in the configuration
	Address string // host:port
	Path    string // the same for all of a job; "" for /metrics
	Labels  map[string]string
}

const (
	defaultPath    = "/metrics"
	minInterval    = 100 * time.Millisecond
	longestTimeout = 10 * time.Second
)

// The parts of a prometheus.yml that are written.
type (
	file struct {
		Global  global `yaml:"global"`
		Scrapes []*job `yaml:"scrape_configs"`
	}
	global struct {
		Interval string `yaml:"scrape_interval"`
		Timeout  string `yaml:"scrape_timeout"`
		// Native histograms are taken beside the classic ones, which dashboards ask for.
		Native  bool `yaml:"scrape_native_histograms"`
		Classic bool `yaml:"always_scrape_classic_histograms"`
	}
	job struct {
		Name   string  `yaml:"job_name"`
		Path   string  `yaml:"metrics_path"`
		Groups []group `yaml:"static_configs"`
	}
	group struct {
		Targets []string          `yaml:"targets"`
		Labels  map[string]string `yaml:"labels,omitempty"`
	}
)

// WriteConfig writes a prometheus.yml that scrapes the targets, each at the
// interval, a whole number of milliseconds. The labels stand in every series of
// their target; a label of the same name that the target gives itself becomes
// exported_<name>. The file is replaced in one go, so that a reader sees the old or
// the new one. What Prometheus would not accept comes back as an [api.FieldError],
// and nothing is written.
func WriteConfig(path string, interval time.Duration, targets []Target) error {
	if interval < minInterval || interval%time.Millisecond != 0 {
		return api.Refuse("interval", interval, fmt.Sprintf("whole milliseconds, at least %s", minInterval))
	}
	jobs, err := byJob(targets)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(file{
		Global: global{
			Interval: inMillis(interval), Timeout: inMillis(min(interval, longestTimeout)),
			Native: true, Classic: true,
		},
		Scrapes: jobs,
	})
	if err != nil {
		return err
	}
	if _, err := parse(string(text)); err != nil {
		return api.Refuse("targets", fmt.Sprintf("%d given", len(targets)), fmt.Sprintf("targets that Prometheus can scrape; %v", err))
	}
	return maybe.WriteFile(path, text, 0o644)
}

func inMillis(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

// byJob gathers the targets by job, in the order in which the jobs first appear.
func byJob(targets []Target) ([]*job, error) {
	var jobs []*job
	for i, t := range targets {
		field := fmt.Sprintf("targets[%d]", i)
		host, port, err := net.SplitHostPort(t.Address)
		if err != nil || host == "" || port == "" {
			return nil, api.Refuse(field+".address", fmt.Sprintf("%q", t.Address), "host:port, such as 127.0.0.1:8000")
		}
		if t.Path == "" {
			t.Path = defaultPath
		}
		at := slices.IndexFunc(jobs, func(j *job) bool { return j.Name == t.Job })
		if at < 0 {
			at = len(jobs)
			jobs = append(jobs, &job{Name: t.Job, Path: t.Path})
		}
		if t.Path != jobs[at].Path {
			return nil, api.Refuse(field+".path", fmt.Sprintf("%q", t.Path), fmt.Sprintf("%q, like the first target of job %s", jobs[at].Path, t.Job))
		}
		jobs[at].Groups = append(jobs[at].Groups, group{[]string{t.Address}, t.Labels})
	}
	return jobs, nil
}

// readConfig reads a prometheus.yml and refuses what nothing here would heed.
func readConfig(path string) (*config.Config, error) {
	refused := func(what string, err error) error {
		return api.Refuse("config_file", fmt.Sprintf("%q", path), fmt.Sprintf("%s; %v", what, err))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
			err = pathErr.Err // the value names the path
		}
		return nil, refused("a readable file", err)
	}
	cfg, err := parse(string(text))
	if err != nil {
		return nil, refused("a valid Prometheus configuration", err)
	}
	if err := checkSections(text); err != nil {
		return nil, refused("a configuration with only global and scrape_configs", err)
	}
	cfg.SetDirectory(filepath.Dir(path))
	return cfg, nil
}

// parse has Prometheus read and check a configuration.
func parse(text string) (*config.Config, error) {
	cfg, err := config.Load(text, promslog.NewNopLogger())
	if err != nil {
		return nil, err
	}
	_, err = cfg.GetScrapeConfigs() // checks what Load leaves
	return cfg, err
}

func checkSections(text []byte) error {
	var sections map[string]yaml.Node
	if err := yaml.Unmarshal(text, &sections); err != nil {
		return err
	}
	for name := range sections {
		if name != "global" && name != "scrape_configs" {
			return fmt.Errorf("this Prometheus does not support %s", name)
		}
	}
	return nil
}
