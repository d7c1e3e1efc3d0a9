// Package prometheus is a whole Prometheus inside this program: it scrapes what a
// prometheus.yml names, keeps it on disk, and answers the HTTP API that Grafana's
// data source and promtool speak.
//
// It is wired from Prometheus' own scrape manager, storage, query engine and API.
// Left out are rules and alerts, remote write and read, tracing, the web pages,
// and every way to discover targets but static_configs. A configuration that asks
// for one of these is refused.
package prometheus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/tsdb"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/process"
)

// Version is that of the Prometheus that is built in, as its own releases count:
// the library's v0.315.0 is Prometheus 3.15.0.
const Version = "3.15.0"

// The smallest limits that do something. What is younger than about one and a half
// blocks is never removed, whatever the limits.
const (
	MinRetention     = time.Duration(tsdb.DefaultBlockDuration) * time.Millisecond
	MinRetentionSize = 64 << 20 // bytes
)

// Options say what is scraped, where it is kept and where it is served.
type Options struct {
	ConfigFile    string        // a prometheus.yml with static_configs
	DataDir       string        // is made where it is missing
	Listen        string        // host:port; port 0 takes a free one
	Retention     time.Duration // how long samples are kept, at least MinRetention
	RetentionSize int64         // bytes on disk, with the log of the last 2 to 3 h, from which whole old blocks are removed; at least MinRetentionSize, 0 for no limit
	Log           *slog.Logger  // of Prometheus itself, which says much below the level of a warning

	// Ready is called once, when the scraping has begun and requests are accepted,
	// with the address. It may be nil.
	Ready func(net.Addr)
}

// Run scrapes, stores and serves until ctx ends, and returns nil when all of it is
// closed. What the caller must change comes back as an [api.FieldError], before
// anything is served: an address that is no address or is taken, a configuration
// that cannot be read or is not valid, a folder that another Prometheus is using, a
// limit that is too low.
//
// A process that was killed loses no sample that was scraped, and the next one on
// its folder recovers by itself.
func Run(ctx context.Context, o Options) (err error) {
	cfg, err := o.check()
	if err != nil {
		return err
	}
	unlock, err := lock(o.DataDir)
	if err != nil {
		return err
	}
	defer unlock()
	listener, err := listen(o.Listen)
	if err != nil {
		return err
	}
	defer listener.Close() // already closed where it was served

	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	store, err := openStore(o, reg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.close()) }()
	targets, err := scrapeAll(cfg, store.db, o.Log, reg)
	if err != nil {
		return err
	}
	defer targets.stop()
	web := newWeb(o, cfg, store, targets.Manager, listener.Addr(), reg)
	return web.serve(ctx, listener, o.Ready)
}

// check refuses what cannot be run, and reads the configuration.
func (o Options) check() (*config.Config, error) {
	switch {
	case o.DataDir == "":
		return nil, api.Require("data_dir", "a directory")
	case o.Retention < MinRetention:
		return nil, api.Refuse("retention", o.Retention, fmt.Sprintf("a duration of at least %s", MinRetention))
	case o.RetentionSize != 0 && o.RetentionSize < MinRetentionSize:
		return nil, api.Refuse("retention_size", o.RetentionSize, fmt.Sprintf("at least %d bytes, or 0 for no limit", MinRetentionSize))
	}
	return readConfig(o.ConfigFile)
}

// lock takes the lock that every Prometheus takes on its folder, before anything
// in it is touched. The system gives it back when a process is killed.
func lock(dir string) (unlock func(), err error) {
	unlock, ok, err := process.TryLock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	if !ok {
		return nil, api.Refuse("data_dir", dir, "a directory that no other Prometheus uses; stop that one, or choose another directory")
	}
	return unlock, nil
}

func listen(address string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, api.Refuse("listen", fmt.Sprintf("%q", address), "host:port, such as 127.0.0.1:9090")
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, api.Refuse("listen", fmt.Sprintf("%q", address), fmt.Sprintf("a free host:port of this machine; %v", err))
	}
	return listener, nil
}
