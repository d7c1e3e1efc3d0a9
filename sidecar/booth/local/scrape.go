package local

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/renameio/v2/maybe"
	"go.yaml.in/yaml/v3"
)

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
