package prometheus

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/logging"
)

const (
	scrapeWithin = 5 * time.Second
	lookEvery    = 5 * time.Millisecond
)

// scraper is a scrape manager at work.
type scraper struct {
	*scrape.Manager
	ended chan struct{}
}

// scrapeAll begins to scrape every target of the configuration.
func scrapeAll(cfg *config.Config, into storage.AppendableV2, log *slog.Logger, reg prometheus.Registerer) (*scraper, error) {
	opts := &scrape.Options{DiscoveryReloadOnStartup: true} // at once, for the targets never change
	manager, err := scrape.NewManager(opts, log.With("component", "scrape"), logging.NewJSONFileLogger, nil, into, reg)
	if err != nil {
		return nil, err
	}
	if err := manager.ApplyConfig(cfg); err != nil {
		return nil, err
	}
	groups, err := targetGroups(cfg)
	if err != nil {
		return nil, err
	}
	sets := make(chan map[string][]*targetgroup.Group, 1)
	sets <- groups
	s := &scraper{manager, make(chan struct{})}
	go func() {
		defer close(s.ended)
		_ = manager.Run(sets) // it gives no error
	}()
	if err := s.begun(len(groups)); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// targetGroups are the targets by job.
func targetGroups(cfg *config.Config) (map[string][]*targetgroup.Group, error) {
	scrapes, err := cfg.GetScrapeConfigs()
	if err != nil {
		return nil, err
	}
	jobs := make(map[string][]*targetgroup.Group, len(scrapes))
	for _, s := range scrapes {
		jobs[s.JobName] = nil
		for _, d := range s.ServiceDiscoveryConfigs {
			static, ok := d.(discovery.StaticConfig)
			if !ok { // no other one is linked in, and none gets through the parser
				return nil, fmt.Errorf("job %s: targets by %s are not supported", s.JobName, d.Name())
			}
			jobs[s.JobName] = append(jobs[s.JobName], static...)
		}
	}
	return jobs, nil
}

// begun waits until every job is being scraped. A manager that is stopped before
// would begin afterwards, and then nobody would stop it.
func (s *scraper) begun(jobs int) error {
	deadline := time.After(scrapeWithin)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for len(s.ScrapePools()) < jobs {
		select {
		case <-tick.C:
		case <-deadline:
			return errors.New("not every job in the configuration could be scraped; see the log")
		}
	}
	return nil
}

// stop ends the scrapes in progress and waits for them.
func (s *scraper) stop() {
	s.Stop()
	<-s.ended
}
