package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/corpus/enduser"
	"kvbooth/sidecar/loadgen/corpus/source"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/page"
	"kvbooth/sidecar/loadgen/plausible"
	"kvbooth/sidecar/loadgen/selfcheck"
	"kvbooth/sidecar/loadgen/server"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/store"
	"kvbooth/sidecar/loadgen/sweep"
	"kvbooth/sidecar/loadgen/whatif"
	"kvbooth/sidecar/loadgen/workload"
)

// generator is the load generator with all of its parts.
type generator struct {
	files   openFiles
	view    *lane.View
	server  *server.Server
	watcher *cluster.Watcher
	check   *selfcheck.Watch
	client  client
	texts   *source.Reader // nil: the built-in articles
	// openings is their length in tokens; see [corpus.Corpus.Sized].
	openings int
	asker    *enduser.Questioner // nil: no model asks the follow-ups
	lane     *lane.Lane
	whatif   *whatif.Desk
	sweeps   *sweep.Desk
	question *question // nil: the command line asks for no sweep
	store    *store.Store
	close    func()         // the driver's
	mode     api.ModeState  // in force at the start
	later    *api.ModeState // to be switched to once the target serves; nil: none
	log      *slog.Logger
}

// client is the way to the server under load.
type client interface {
	lane.Client
	Close()
}

// assemble makes the parts; no turn is sent yet. The address is the one that it
// will be reached at. What the configuration cannot know to be wrong comes back as
// an error, with nothing left open.
func assemble(ctx context.Context, conf *config.Config, address string, files openFiles, log *slog.Logger) (*generator, error) {
	plausible.LogTo(log)
	desk := whatif.New(whatif.Options{CPUs: conf.Whatif.CPUs, Profiles: cmp.Or(conf.Whatif.Profiles, filepath.Join(conf.DataDir, "profiles")), Log: log})
	g := &generator{files: files, openings: conf.OpeningLength(), check: &selfcheck.Watch{Simulated: desk.Ran}, whatif: desk, close: func() {}, log: log}
	var err error
	if g.client, err = newClient(conf); err != nil {
		return nil, err
	}
	if g.watcher, err = g.newWatcher(conf, log); err != nil {
		return nil, err
	}
	driver, err := g.newDriver(ctx, conf)
	if err != nil {
		g.close()
		return nil, err
	}
	g.watcher.SetSpeculation(g.mode.Speculation)
	if g.store, err = openStore(ctx, conf, address, log); err != nil {
		g.close()
		return nil, err
	}
	if err := g.build(ctx, conf, driver); err != nil {
		g.close()
		return nil, errors.Join(err, g.store.Close())
	}
	return g, nil
}

// newClient makes the way to the target, or to each of its addresses.
func newClient(conf *config.Config) (client, error) {
	options := chat.Options{
		URL: conf.Target.URL, Model: conf.Target.Model, APIKey: string(conf.Target.APIKey), CA: conf.Target.CA,
		ConnectTimeout: conf.Target.ConnectTimeout, FirstTokenTimeout: conf.Target.FirstTokenTimeout, StallTimeout: conf.Target.StallTimeout,
		TurnTimeout: conf.Target.TurnTimeout,
	}
	if conf.Mode.Driver != "endpoints" {
		return chat.New(options)
	}
	urls := []string{conf.Mode.Address()} // in use first
	for _, e := range conf.Mode.Addresses() {
		urls = append(urls, e.URL)
	}
	return chat.NewSwitch(options, urls...)
}

// openStore says what to do where it fails, save where another process is named.
func openStore(ctx context.Context, conf *config.Config, address string, log *slog.Logger) (*store.Store, error) {
	s, err := store.Open(ctx, store.Options{
		Dir: conf.DataDir, Owner: address, Log: log,
		MaxConversations: conf.Store.MaxConversations, MaxAge: conf.Store.MaxAge, MaxBytes: int64(conf.Store.MaxBytes),
	})
	if err == nil || errors.As(err, new(*store.LockedError)) {
		return s, err
	}
	return nil, fmt.Errorf("data_dir: %s cannot be used: %w; free space there and make it writable, or choose another directory with --data-dir", conf.DataDir, err)
}

// newWatcher reads the cluster through Prometheus, or from its own pages: those of
// the address in use, where each mode has one.
func (g *generator) newWatcher(conf *config.Config, log *slog.Logger) (*cluster.Watcher, error) {
	if conf.Prometheus.URL != "" {
		p, err := cluster.NewPrometheus(conf.Prometheus.URL, conf.Prometheus.Namespace, nil)
		if err != nil {
			return nil, err
		}
		return cluster.NewWatcher(p, log), nil
	}
	redirected, ok := g.client.(lane.Redirected)
	if !ok {
		d, err := cluster.NewDirect(conf.Target.URL, conf.Cluster.MetricsURLs, nil)
		if err != nil {
			return nil, err
		}
		return cluster.NewWatcher(d, log), nil
	}
	pages := map[string]cluster.Source{}
	for _, e := range conf.Mode.Addresses() {
		d, err := cluster.NewDirect(e.URL, conf.Cluster.MetricsURLs, nil)
		if err != nil {
			return nil, err
		}
		pages[e.URL] = d
	}
	return cluster.NewWatcher(cluster.Chosen(func() cluster.Source { return pages[redirected.Endpoint()] }), log), nil
}

// newDriver makes the mode driver, and finds out the mode at the start.
func (g *generator) newDriver(ctx context.Context, conf *config.Config) (workload.Driver, error) {
	g.mode = conf.Mode.State()
	switch conf.Mode.Driver {
	case "pinned":
		return g.newPinned(ctx, conf)
	case "simulated":
		return g.newSimulated(ctx, conf)
	case "endpoints":
		return cluster.NewEndpoints(conf.Mode.Addresses(), g.client.(*chat.Switch), nil)
	}
	return cluster.NewManual(conf.Mode.States()), nil
}

// newPinned brings the driver to the mode that the configuration names, which a
// Dynamo under kv is not in by itself. Where the target does not tell its
// instances yet, it stays under kv until switchLater.
func (g *generator) newPinned(ctx context.Context, conf *config.Config) (workload.Driver, error) {
	d, err := cluster.NewPinned(conf.Target.URL, conf.Mode.State().Speculation, nil, g.log)
	if err != nil {
		return nil, err
	}
	g.close = d.Close
	if g.mode.Mode == api.ModeKV {
		return d, nil
	}
	wanted, kv := g.mode, api.ModeState{Mode: api.ModeKV, Speculation: g.mode.Speculation}
	if _, err := d.Switch(ctx, kv, wanted, func(string, string) {}); err != nil {
		g.log.Warn("the mode is kv until the target serves", "wanted", wanted.Mode, "error", err)
		g.mode, g.later = kv, &wanted
	}
	return d, nil
}

// clusterPatience is how long the start waits for a simulated cluster that may
// be starting, too.
const clusterPatience = 10 * time.Second

// newSimulated takes the mode that the cluster is in: it outlives the load
// generator, and may have been switched since the configuration was written.
// Where it does not answer, the configuration's mode is shown until it does, when
// the lane takes the cluster's.
func (g *generator) newSimulated(ctx context.Context, conf *config.Config) (workload.Driver, error) {
	d, err := cluster.NewSimulated(conf.Target.URL, nil, g.log)
	if err != nil {
		return nil, err
	}
	g.close = d.Close
	context.AfterFunc(ctx, d.Close) // so that no roll-back holds up the end
	mode, err := patiently(ctx, d.Current)
	switch {
	case err == nil:
		g.mode = mode
	case errors.As(err, new(*api.FieldError)) || ctx.Err() != nil:
		return nil, err
	default:
		g.log.Warn("the simulated cluster does not tell its mode yet; until it does, the configuration's is shown", "mode", g.mode.Mode, "error", err)
	}
	return d, nil
}

// patiently asks until there is an answer, an answer that will not change, or no
// patience left.
func patiently(ctx context.Context, ask func(context.Context) (api.ModeState, error)) (mode api.ModeState, err error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(clusterPatience); ; {
		mode, err = ask(ctx)
		if err == nil || errors.As(err, new(*api.FieldError)) || time.Now().After(deadline) {
			return mode, err
		}
		select {
		case <-ctx.Done():
			return mode, ctx.Err()
		case <-tick.C:
		}
	}
}

// switchLater waits until the target serves, and changes to the mode that the
// configuration names. It ends then, or with ctx.
func (g *generator) switchLater(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if g.view.Ready() == nil {
			_, err := g.lane.SetMode(ctx, "configuration", api.ModeRequest{Mode: g.later.Mode, Speculation: g.later.Speculation})
			if err != nil {
				g.log.Warn("the mode was not changed", "wanted", g.later.Mode, "error", err)
			}
			return
		}
	}
}

// build joins the parts that need the store.
func (g *generator) build(ctx context.Context, conf *config.Config, driver workload.Driver) error {
	texts, err := g.openCorpus(ctx, conf)
	if err != nil {
		return err
	}
	asker, err := g.newQuestioner(conf)
	if err != nil {
		return err
	}
	step, err := g.store.MaxStep(ctx, api.DefaultLane)
	if err != nil {
		return err
	}
	catalogue, err := lane.NewCatalogue(ctx, lane.Process{
		Version: version(), Config: conf.Map(), Store: g.store, Health: g.check.Health, Lag: g.check.Lag, Log: g.log,
		CheckConcurrency: g.files.check,
	}, conf.Settings())
	if err != nil {
		return err
	}
	l := lane.Options{
		Name: api.DefaultLane, Client: g.client, Corpus: texts.Sized(conf.OpeningLength()), Questioner: asker,
		Settings: conf.WorkloadSettings(), Seed: conf.Seed, Target: api.TargetKind(conf.Deployment.Kind), Deployment: conf.Deployment.API(),
		Driver: driver, Mode: g.mode, LastStep: step,
		ModeChanged: func(m api.ModeState) { g.watcher.SetSpeculation(m.Speculation) },
		Cluster:     g.watcher.Current,
	}
	if g.texts != nil {
		l.CorpusStatus = g.texts.Status
	}
	g.lane = lane.New(ctx, catalogue, l)
	g.view = lane.NewView(catalogue)
	g.sweeps, err = sweep.Open(ctx, sweep.Options{Program: version(), Lane: g.lane, Catalogue: catalogue, Store: g.store, Lag: g.check.Lag, Log: g.log})
	if err != nil {
		return err
	}
	if conf.Sweep != nil {
		if g.question, err = g.newQuestion(ctx, conf); err != nil {
			return err
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(g.lane.Collector(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		stats.NewClientCollector(func() api.ClientHealth { return g.check.Health(time.Now()) }))
	certificate, err := serverTLS(conf, g.log)
	if err != nil {
		return err
	}
	g.server, err = server.New(server.Options{
		TLS:     certificate,
		Backend: server.Parts{View: g.view, Catalogue: catalogue, Records: g.store, Desk: g.whatif, SweepDesk: g.sweeps, TwinDesk: server.OneLane{}}, Token: string(conf.Token), MetricsToken: string(conf.MetricsToken), Hosts: conf.Hosts, PublicPage: conf.PublicPage, MaxConnections: g.files.connections,
		Page: page.Handler(), Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), ParseCSV: baseline.ReadCSV, ParseJSON: baseline.ReadJSON, Log: g.log,
	})
	return err
}

// openCorpus gives the texts to begin with: those of the place that the
// configuration names, or the built-in articles.
func (g *generator) openCorpus(ctx context.Context, conf *config.Config) (*corpus.Corpus, error) {
	c := conf.Corpus
	options := source.Options{Path: cmp.Or(c.Dir, c.File), Refresh: c.Refresh, Log: g.log}
	if c.S3.Bucket != "" {
		options.Bucket = &source.Bucket{
			Endpoint: c.S3.Endpoint, Name: c.S3.Bucket, Prefix: c.S3.Prefix, Region: c.S3.Region, PathStyle: c.S3.PathStyle,
			AccessKey: string(c.S3.AccessKey), SecretKey: string(c.S3.SecretKey), CA: c.S3.CA,
		}
	}
	if options.Path == "" && options.Bucket == nil {
		return corpus.Builtin()
	}
	var err error
	if g.texts, err = source.Open(ctx, options); err != nil {
		return nil, err
	}
	return g.texts.Corpus(), nil
}

func (g *generator) newQuestioner(conf *config.Config) (corpus.Questioner, error) {
	f := conf.Followup
	switch {
	case f.Text != "":
		return corpus.FixedQuestioner{Text: f.Text}, nil
	case f.URL == "":
		return corpus.BuiltinQuestioner{}, nil
	}
	var err error
	g.asker, err = enduser.New(enduser.Options{
		URL: f.URL, Model: f.Model, APIKey: string(f.APIKey), CA: f.CA, Timeout: f.Timeout, Log: g.log,
	})
	return g.asker, err
}

// run serves until ctx ends, and returns when every part has ended. cancel ends
// ctx, which assemble was given too.
func (g *generator) run(ctx context.Context, cancel context.CancelFunc, l net.Listener) error {
	var wg sync.WaitGroup
	wg.Go(func() { g.view.Run(ctx) })
	wg.Go(func() { g.watcher.Run(ctx) })
	wg.Go(func() { g.whatif.Run(ctx) })
	wg.Go(func() { g.sweeps.Run(ctx) })
	wg.Go(func() {
		if err := g.check.Run(ctx); err != nil {
			g.log.Error("the self-check does not run; the verdict on the client stays unknown", "error", err)
		}
	})
	if g.texts != nil {
		wg.Go(func() {
			g.texts.Run(ctx, func(c *corpus.Corpus) { g.lane.SetCorpus(c.Sized(g.openings)) })
		})
	}
	if g.later != nil {
		wg.Go(func() { g.switchLater(ctx) })
	}
	err := g.server.Serve(ctx, l)
	cancel()
	wg.Wait()
	g.close()
	g.client.Close()
	if g.asker != nil {
		g.asker.Close()
	}
	return errors.Join(err, g.store.Close())
}
