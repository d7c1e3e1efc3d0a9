package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/baseline"
	"kvbooth/sidecar/chat"
	"kvbooth/sidecar/cluster"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/corpus"
	"kvbooth/sidecar/lane"
	"kvbooth/sidecar/selfcheck"
	"kvbooth/sidecar/server"
	"kvbooth/sidecar/stats"
	"kvbooth/sidecar/store"
	"kvbooth/sidecar/workload"
)

// generator is the load generator with all of its parts.
type generator struct {
	hub     *lane.Hub
	server  *server.Server
	watcher *cluster.Watcher
	check   *selfcheck.Watch
	client  *chat.Client
	store   *store.Store
	close   func() // the driver's
	log     *slog.Logger
}

// assemble makes the parts; nothing is sent yet. What the configuration cannot
// know to be wrong comes back as an error, with nothing left open.
func assemble(ctx context.Context, conf *config.Config, log *slog.Logger) (*generator, error) {
	g := &generator{check: new(selfcheck.Watch), close: func() {}, log: log}
	var err error
	if g.client, err = newClient(conf); err != nil {
		return nil, err
	}
	if g.watcher, err = newWatcher(conf, log); err != nil {
		return nil, err
	}
	driver, err := g.newDriver(ctx, conf)
	if err != nil {
		return nil, err
	}
	g.store, err = store.Open(ctx, store.Options{
		Dir: conf.DataDir, Owner: conf.Listen, MaxConversations: conf.Store.MaxConversations, MaxAge: conf.Store.MaxAge, Log: log,
	})
	if err != nil {
		g.close()
		return nil, err
	}
	if err := g.build(ctx, conf, driver); err != nil {
		g.close()
		return nil, errors.Join(err, g.store.Close())
	}
	return g, nil
}

func newClient(conf *config.Config) (*chat.Client, error) {
	return chat.New(chat.Options{
		URL: conf.Target.URL, Model: conf.Target.Model, APIKey: string(conf.Target.APIKey), CA: conf.Target.CA,
		ConnectTimeout: conf.Target.ConnectTimeout, FirstTokenTimeout: conf.Target.FirstTokenTimeout, StallTimeout: conf.Target.StallTimeout,
	})
}

// newWatcher reads the cluster through Prometheus, or from its own pages.
func newWatcher(conf *config.Config, log *slog.Logger) (*cluster.Watcher, error) {
	var source cluster.Source
	var err error
	if conf.Prometheus.URL != "" {
		source, err = cluster.NewPrometheus(conf.Prometheus.URL, conf.Prometheus.Namespace, nil)
	} else {
		source, err = cluster.NewDirect(conf.Target.URL, conf.Cluster.MetricsURLs, nil)
	}
	if err != nil {
		return nil, err
	}
	w := cluster.NewWatcher(source, log)
	w.SetSpeculation(conf.Mode.State().Speculation)
	return w, nil
}

// newDriver makes the mode driver and brings a pinned one to the mode that the
// configuration names, which a Dynamo under kv is not in by itself.
func (g *generator) newDriver(ctx context.Context, conf *config.Config) (workload.Driver, error) {
	if conf.Mode.Driver == "manual" {
		return cluster.NewManual(conf.Mode.States()), nil
	}
	d, err := cluster.NewPinned(conf.Target.URL, conf.Mode.State().Speculation, nil, g.log)
	if err != nil {
		return nil, err
	}
	g.close = d.Close
	start := conf.Mode.State()
	if start.Mode == api.ModeKV {
		return d, nil
	}
	kv := api.ModeState{Mode: api.ModeKV, Speculation: start.Speculation}
	if _, err := d.Switch(ctx, kv, start, func(string, string) {}); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// build joins the parts that need the store.
func (g *generator) build(ctx context.Context, conf *config.Config, driver workload.Driver) error {
	articles, err := corpus.Builtin()
	if err != nil {
		return err
	}
	step, err := g.store.MaxStep(ctx, api.DefaultLane)
	if err != nil {
		return err
	}
	g.hub, err = lane.NewHub(ctx, lane.HubOptions{
		Version: version(), Config: conf.Map(), Settings: conf.Settings(), Store: g.store, Health: g.check.Health, Log: g.log,
	})
	if err != nil {
		return err
	}
	l := g.hub.Add(lane.Options{
		Name: api.DefaultLane, Version: version(), Client: g.client, Corpus: articles, Questioner: questioner(conf),
		Settings: conf.WorkloadSettings(), Seed: conf.Seed, Deployment: conf.Deployment.API(),
		Driver: driver, Mode: conf.Mode.State(), LastStep: step,
		ModeChanged: func(m api.ModeState) { g.watcher.SetSpeculation(m.Speculation) },
		Cluster:     g.watcher.Current, Log: g.log,
	})
	registry := prometheus.NewRegistry()
	registry.MustRegister(l.Collector(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		stats.NewClientCollector(func() api.ClientHealth { return g.check.Health(time.Now()) }))
	g.server, err = server.New(server.Options{
		Backend: g.hub, Token: string(conf.Token), Hosts: conf.Hosts, PublicPage: conf.PublicPage,
		Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), ParseCSV: baseline.ReadCSV, ParseJSON: baseline.ReadJSON, Log: g.log,
	})
	return err
}

func questioner(conf *config.Config) corpus.Questioner {
	if conf.Followup.Text != "" {
		return corpus.FixedQuestioner{Text: conf.Followup.Text}
	}
	return corpus.BuiltinQuestioner{}
}

// run serves until ctx ends, and returns when every part has ended. cancel ends
// ctx, which assemble was given too.
func (g *generator) run(ctx context.Context, cancel context.CancelFunc, l net.Listener) error {
	var wg sync.WaitGroup
	wg.Go(g.hub.Run)
	wg.Go(func() { g.watcher.Run(ctx) })
	wg.Go(func() {
		if err := g.check.Run(ctx); err != nil {
			g.log.Error("the self-check does not run; the verdict on the client stays unknown", "error", err)
		}
	})
	err := g.server.Serve(ctx, l)
	cancel()
	wg.Wait()
	g.close()
	g.client.Close()
	return errors.Join(err, g.store.Close())
}
