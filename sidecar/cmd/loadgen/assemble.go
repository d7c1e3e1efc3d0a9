package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/chat/plausible"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/cluster/kubernetes"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/corpus/source"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/lane/twin"
	"kvbooth/sidecar/loadgen/members"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/loadgen/server"
	"kvbooth/sidecar/loadgen/server/page"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/stats/selfcheck"
	"kvbooth/sidecar/loadgen/store"
	"kvbooth/sidecar/loadgen/sweep"
	"kvbooth/sidecar/loadgen/telemetry"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/sim/whatif"
)

// generator is the load generator with all of its parts.
type generator struct {
	files  openFiles
	view   *lane.View
	server *server.Server
	check  *selfcheck.Watch
	texts  *source.Reader // nil: the built-in articles
	// openings is their length in tokens; see [corpus.Corpus.Sized].
	openings int
	plan     *workload.Plan  // nil: the conversations are about texts
	lane     *lane.Lane      // main
	sides    []*side         // main, and the twin where there is one
	twins    *twin.Desk      // nil: there is one lane
	accepted *proof.Accepted // nil: no condition is relative to a result
	whatif   *whatif.Desk
	sweeps   *sweep.Desk
	question *question           // nil: the command line requests no sweep
	members  *members.Fleet      // nil: this process sends all turns
	local    *local              // the members on this machine; nil: none
	exporter *telemetry.Exporter // nil: the environment names no collector
	viewed   atomic.Pointer[lane.View]
	store    *store.Store
	log      *slog.Logger
}

// side is a lane with the parts that belong to it alone.
type side struct {
	name    string
	conf    *config.Config        // of this lane
	fleet   func() *members.Fleet // sends the turns, once it is open; nil: this process does
	ownKey  bool                  // the target's key is not that of lane main
	client  client
	watcher *cluster.Watcher
	driver  workload.Driver
	closes  func() // closes the questioner; nil: there is nothing to close
	lane    *lane.Lane
	end     func()         // the driver's
	mode    api.ModeState  // in force at the start
	later   *api.ModeState // the mode to switch to once the target serves; nil: none
	goesOn  bool           // later is a switch that the previous process had begun; it starts at once
	log     *slog.Logger
}

// client sends turns to the server under load.
type client interface {
	lane.Client
	Close()
}

// assemble makes the parts; it sends no turn. address is the one at which the load generator will be reachable. It
// returns the errors that checks of the configuration cannot detect, and leaves nothing open then.
func assemble(ctx context.Context, conf *config.Config, address string, files openFiles,
	log *slog.Logger,
) (*generator, error) {
	plausible.LogTo(log)
	if conf.Baseline != "" {
		if err := checkData(ctx, conf); err != nil {
			return nil, err
		}
	}
	plan, simulations, err := readTrace(ctx, conf, log)
	if err != nil {
		return nil, err
	}
	simulations.CPUs, simulations.Log = conf.Whatif.CPUs, log
	simulations.Profiles = cmp.Or(conf.Whatif.Profiles, filepath.Join(conf.DataDir, "profiles"))
	desk := whatif.New(simulations)
	g := &generator{
		files: files, openings: conf.OpeningLength(), check: &selfcheck.Watch{Simulated: desk.Ran},
		whatif: desk, plan: plan, log: log,
	}
	if g.sides, err = g.newSides(ctx, conf, address); err != nil {
		return nil, err
	}
	texts, err := g.openCorpus(ctx, conf) // before the store: a start that fails at it makes no data directory
	if err == nil {
		g.exporter, err = telemetry.Open(ctx, log)
	}
	if err == nil {
		g.store, err = openStore(ctx, conf, address, log)
	}
	if err == nil {
		err = g.openMembers(ctx, conf, address)
	}
	if err == nil {
		err = g.build(ctx, conf, texts)
	}
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// newSides makes the parts of each lane, without the lane.
func (g *generator) newSides(ctx context.Context, conf *config.Config, address string) ([]*side, error) {
	sides := []*side{{name: api.DefaultLane, conf: conf}}
	if own := conf.ForTwin(); own != nil {
		sides = append(sides, &side{name: api.TwinLane, conf: own})
	}
	for i, s := range sides {
		s.log, s.end = g.log, func() {}
		if conf.Members.Coordinates() {
			s.fleet = func() *members.Fleet { return g.members }
		}
		s.ownKey = s.conf.Target.APIKey != conf.Target.APIKey
		other := sides[len(sides)-1-i].conf
		if err := s.open(ctx, other, address); err != nil {
			closeSides(sides[:i+1])
			if i > 0 {
				return nil, fmt.Errorf("lane %s: %w", s.name, err)
			}
			return nil, err
		}
	}
	return sides, nil
}

// open makes client, watcher and driver. other is the configuration of the other lane, address that of the load
// generator.
func (s *side) open(ctx context.Context, other *config.Config, address string) (err error) {
	c, err := s.newClient()
	if err != nil { // c may be a nil pointer in an interface
		return err
	}
	s.client = c
	if s.watcher, err = s.newWatcher(other); err != nil {
		return err
	}
	if s.driver, err = s.newDriver(ctx, address); err != nil {
		return err
	}
	s.watcher.SetSpeculation(s.mode.Speculation)
	return nil
}

// close closes the parts of each lane, the members and the store, as far as they are open.
func (g *generator) close() error {
	g.exporter.Close()
	closeSides(g.sides)
	if g.members != nil {
		g.members.Close()
	}
	if g.local != nil {
		g.local.stop()
	}
	if g.store == nil {
		return nil
	}
	return g.store.Close()
}

func closeSides(sides []*side) {
	for _, s := range sides {
		s.end()
		if s.client != nil {
			s.client.Close()
		}
		if s.closes != nil {
			s.closes()
		}
	}
}

// newClient makes the client of the target, or of each of its addresses.
func (s *side) newClient() (client, error) {
	conf := s.conf
	to := targetOptions(conf)
	options, err := chatOptions(to, conf.Target.APIKey, conf.Target.Opened)
	if err != nil {
		return nil, err
	}
	if s.fleet != nil {
		to.Twin = s.ownKey
		options.Send = func(ctx context.Context, url, model string, req chat.Request) chat.Result {
			to := to
			to.URL, to.Model = url, model
			return s.fleet().Send(ctx, to, req)
		}
	}
	served := conf.Mode.Addresses()
	if conf.Mode.Served == nil && conf.Mode.Driver != "endpoints" {
		return chat.New(options)
	}
	var endpoints []chat.Endpoint
	for _, a := range served {
		e := chat.Endpoint{Name: a.Key(), URL: a.URL, Field: a.Field, Headers: a.Headers}
		if at, own := conf.At(a); own {
			options, err := chatOptions(targetOptions(at), at.Target.APIKey, at.Target.Opened)
			if err != nil {
				return nil, err
			}
			e.Own = &options
		}
		if a.State == conf.Mode.State() { // in use first
			endpoints = slices.Insert(endpoints, 0, e)
			continue
		}
		endpoints = append(endpoints, e)
	}
	return chat.NewSwitch(options, endpoints...)
}

// openStore opens the store. Its error includes what to do, unless it names another process.
func openStore(ctx context.Context, conf *config.Config, address string, log *slog.Logger) (*store.Store, error) {
	s, err := store.Open(ctx, store.Options{
		Dir: conf.DataDir, Owner: address, Log: log,
		MaxConversations: conf.Store.MaxConversations, MaxAge: conf.Store.MaxAge, MaxBytes: int64(conf.Store.MaxBytes),
	})
	if err == nil || errors.As(err, new(*store.LockedError)) {
		return s, err
	}
	return nil, fmt.Errorf("data_dir: %s cannot be used: %w; %s, or choose another directory with --data-dir",
		conf.DataDir, err, store.Advice(err))
}

// newWatcher reads the cluster through Prometheus, or from its own metrics pages: those of the address in use, where
// each mode has one. With two lanes on the addresses of the modes, the lane that starts with an address defines the
// source of its metrics.
func (s *side) newWatcher(other *config.Config) (*cluster.Watcher, error) {
	redirected, ok := s.client.(lane.Redirected)
	if !ok || s.conf.Prometheus.URL != "" && other == s.conf {
		source, err := s.sourceOf(s.conf, s.conf.Target.URL)
		if err != nil {
			return nil, err
		}
		return cluster.NewWatcher(source, s.client.Model, s.log), nil
	}
	sources := map[string]cluster.Source{}
	for _, e := range s.conf.Mode.Addresses() {
		of := s.conf
		if e.URL == other.Target.URL {
			of = other
		}
		at, _ := of.At(e)
		source, err := s.sourceOf(at, e.URL)
		if err != nil {
			return nil, err
		}
		sources[e.Key()] = source
	}
	return cluster.NewWatcher(cluster.SelectedSource(func() cluster.Source { return sources[redirected.InUse()] }),
		s.client.Model, s.log), nil
}

// sourceOf returns the source of the metrics of the cluster behind an address.
func (s *side) sourceOf(conf *config.Config, address string) (cluster.Source, error) {
	if conf.Prometheus.URL != "" {
		p := conf.Prometheus
		return cluster.NewPrometheus(p.URL, cluster.Scope{
			Namespace: p.Namespace, Graph: p.Graph,
			ExcludeGraph: p.Beside,
		}, nil)
	}
	client, err := pagesClient(conf, address)
	if err != nil {
		return nil, err
	}
	pages, err := cluster.NewDirect(address, conf.Cluster.MetricsURLs, client)
	if err != nil {
		return nil, err
	}
	pages.Router = func() string { return s.client.Recognized().Router }
	return pages, nil
}

// newDriver makes the mode driver, and reads the mode at the start.
func (s *side) newDriver(ctx context.Context, address string) (workload.Driver, error) {
	s.mode = s.conf.Mode.State()
	client, err := s.conf.Target.Opened.Client()
	if err != nil {
		return nil, err
	}
	switch s.conf.Mode.Driver {
	case "pinned":
		return s.newPinned(ctx, client)
	case "simulated":
		return s.newSimulated(ctx, client)
	case "kubernetes":
		return s.newKubernetes(ctx, address)
	case "endpoints", "command", "http":
		return s.newArms(ctx)
	}
	return cluster.NewManual(s.conf.Mode.States()), nil
}

// newArms returns the driver for arms, and for modes with an endpoint each.
func (s *side) newArms(ctx context.Context) (workload.Driver, error) {
	conf := s.conf
	sender, err := newSender(conf)
	if err != nil {
		return nil, err
	}
	opts := cluster.ArmsOptions{
		Name: conf.Mode.Driver, Arms: conf.Mode.Addresses(), Timeout: conf.Switch.Timeout, Ready: conf.Switch.Ready.URL,
		Answers: conf.Switch.Ready.Turns, InPlace: conf.Switch.InPlace, Cold: conf.Cold.Requests, Workers: conf.Workers(),
		Redirector: s.client.(*chat.Switch), Sender: sender, Log: s.log,
	}
	if words := conf.Switch.Command; len(words) > 0 {
		opts.Action = cluster.Program(words)
	} else if request := conf.Switch.Request; request != nil {
		opts.Action = cluster.Call{Request: *request, Sender: sender}
	}
	return cluster.NewArms(ctx, opts)
}

// newSender returns the sender of switch.http, switch.ready.url and cold.http. Hosts that serve no turns do not get the
// headers of the target.
func newSender(conf *config.Config) (cluster.Sender, error) {
	access := conf.Target.Opened
	access.Headers = nil
	client, err := access.Client()
	targets := []string{conf.Target.URL}
	for _, a := range conf.Mode.Addresses() {
		targets = append(targets, a.URL)
	}
	return cluster.Sender{Client: client, Headers: conf.Target.Opened.Headers, Targets: targets}, err
}

// newPinned returns a driver in the configured mode. The driver starts under kv, where turns name no worker. While the
// target reports no instances, the driver stays there until switchLater.
func (s *side) newPinned(ctx context.Context, client *http.Client) (workload.Driver, error) {
	d, err := cluster.NewPinned(s.conf.Target.URL, s.conf.Mode.Pinned(), client, s.log)
	if err != nil {
		return nil, err
	}
	s.end = d.Close
	if s.mode.Mode == api.ModeKV {
		return d, nil
	}
	wanted, kv := s.mode, api.ModeState{Mode: api.ModeKV, Speculation: s.mode.Speculation}
	_, err = d.Switch(ctx, kv, wanted, func(string, string) {})
	if errors.Is(err, cluster.ErrNoDynamo) {
		d.Close()
		return nil, fmt.Errorf("mode.driver: %w", err)
	}
	if err != nil {
		s.log.Warn("the mode is kv until the target is available", "wanted", wanted.Mode, "error", err)
		s.mode, s.later = kv, &wanted
	}
	return d, nil
}

// clusterPatience is the longest wait for a simulated cluster, which may be starting, too.
const clusterPatience = 10 * time.Second

// newSimulated adopts the mode of the cluster, which outlives the load generator and may have been switched since the
// configuration was written. While the cluster does not answer, the configuration's mode is shown; the lane adopts the
// cluster's mode when it answers.
func (s *side) newSimulated(ctx context.Context, client *http.Client) (workload.Driver, error) {
	d, err := cluster.NewSimulated(s.conf.Target.URL, client, s.log)
	if err != nil {
		return nil, err
	}
	s.end = d.Close
	context.AfterFunc(ctx, d.Close) // so that no roll-back delays the exit
	return d, s.takeMode(ctx, d.Current, "the simulated cluster has not reported its mode")
}

// takeMode adopts the mode that the cluster reports. If the cluster reports none in time, silence is
// logged. The error is returned if the cluster cannot report a mode or ctx has ended.
func (s *side) takeMode(
	ctx context.Context, current func(context.Context) (api.ModeState, error), silence string,
) error {
	mode, err := patiently(ctx, current)
	switch {
	case err == nil:
		s.mode = mode
	case errors.As(err, new(*api.FieldError)) || ctx.Err() != nil:
		return err
	default:
		s.log.Warn(silence+" yet; using the configured mode until it does", "mode", s.mode.Mode, "error", err)
	}
	return nil
}

// newKubernetes adopts the mode of the cluster, as newSimulated does. A switch that the previous process had begun
// continues.
func (s *side) newKubernetes(ctx context.Context, address string) (workload.Driver, error) {
	d, err := openKubernetes(ctx, s.conf, address, s.log)
	if err != nil {
		return nil, err
	}
	if from, to, ok := d.Unfinished(ctx); ok {
		s.mode, s.later, s.goesOn = from, &to, true
		return d, nil
	}
	return d, s.takeMode(ctx, d.Current, "Kubernetes has not reported the mode")
}

// openKubernetes makes the driver for the configured object.
func openKubernetes(ctx context.Context, conf *config.Config, address string,
	log *slog.Logger,
) (*kubernetes.Driver, error) {
	k := conf.Mode.Kubernetes
	client, namespace, err := kubernetes.Connect(k.Kubeconfig, k.Context, k.Namespace)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	pages, err := conf.Target.Opened.Client()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(address) // of a listener
	return kubernetes.New(ctx, client, kubernetes.Options{
		Namespace: namespace, Name: k.Name, Selector: k.Selector, Target: conf.Target.URL,
		FrontendAlone: k.Restart == "frontend", RenewAfter: k.RestartAfter, Timeout: k.Timeout,
		Modes: conf.Mode.States(), Variants: k.Variants,
		By:        net.JoinHostPort(host, port),
		Instances: func(ctx context.Context) ([]string, error) { return cluster.Probe(ctx, conf.Target.URL, pages) },
		Log:       log,
	}), nil
}

// patiently calls ask until it returns a mode, until it returns a permanent error, or until [clusterPatience] is over.
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

// switchLater waits until the targets that must be switched serve, and switches them to the configured modes. It
// returns then, or when ctx ends.
func (g *generator) switchLater(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	wanted := make([]api.ModeState, len(g.sides))
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		waiting := false
		for i, s := range g.sides {
			state := s.lane.State()
			wanted[i] = state.InMode()
			if s.later != nil {
				wanted[i], waiting = *s.later, waiting || s.lane.Problem() != "" && !s.goesOn
			}
		}
		if !waiting {
			if err := g.lane.SetModes("configuration", wanted...); err != nil {
				g.log.Warn("the mode was not changed", "wanted", wanted, "error", err)
			}
			return
		}
	}
}

// build makes the parts that require the store.
func (g *generator) build(ctx context.Context, conf *config.Config, texts *corpus.Corpus) error {
	process := g.process(conf)
	catalog, err := lane.NewCatalog(ctx, process, conf.Settings())
	if err != nil {
		return err
	}
	registry := g.newRegistry()
	if len(g.sides) > 1 {
		g.twins = twin.NewDesk(ctx, g.log)
	}
	for _, s := range g.sides {
		if err := g.newLane(ctx, s, catalog, texts.Sized(conf.OpeningLength())); err != nil {
			return err
		}
		registry.MustRegister(s.lane.Collector())
		if shadow := s.lane.ShadowCollector(); shadow != nil {
			registry.MustRegister(shadow)
		}
	}
	g.lane = g.sides[0].lane
	twins := server.TwinDesk(server.OneLane{})
	if g.twins != nil {
		g.twins.Join(g.lane, g.sides[1].lane)
		twins = g.twins
		registry.MustRegister(stats.NewTwinCollector(g.twins.Twin))
	}
	g.view = lane.NewView(catalog)
	g.viewed.Store(g.view)
	sweeps := sweep.Options{
		Program: api.Program(), Lane: g.lane, Catalog: catalog, Store: g.store,
		Lag: process.Lag, Log: g.log, Name: conf.Name, Labels: runLabels(conf),
	}
	if g.twins != nil {
		sweeps.Twin = g.sides[1].lane
	}
	if conf.Sweep == nil || conf.Sweep.Probe {
		sweeps.Look = lookAtRouters(conf)
	}
	g.sweeps, err = sweep.Open(ctx, sweeps)
	if err != nil {
		return err
	}
	if conf.Sweep != nil {
		g.question, err = g.newQuestion(ctx, conf)
	} else {
		err = g.checkUnfinished(ctx, conf)
	}
	if err != nil {
		return err
	}
	g.exporter.Start(registry)
	return g.newServer(conf, catalog, twins, registry)
}

// newServer makes the server of the API and the pages.
func (g *generator) newServer(conf *config.Config, catalog *lane.Catalog, twins server.TwinDesk,
	registry *prometheus.Registry,
) (err error) {
	certificate, err := serverTLS(conf, g.log)
	if err != nil {
		return err
	}
	g.server, err = server.New(server.Options{
		TLS: certificate,
		Backend: server.Parts{
			View: g.view, Catalog: catalog, Records: g.store, Desk: g.whatif, SweepDesk: g.sweeps,
			TwinDesk: twins,
		},
		Token: string(conf.Token), MetricsToken: string(conf.MetricsToken), Hosts: conf.Hosts,
		PublicPage: conf.PublicPage, MaxConnections: g.files.connections,
		Page: page.Handler(), Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		ParseCSV: baseline.ReadCSV, ParseJSON: report.ReadJSON, Log: g.log,
	})
	return err
}

// newRegistry returns a registry for metrics, with those of the process.
func (g *generator) newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		stats.NewClientCollector(func() api.ClientHealth { return g.view.Snapshot().Client }))
	if g.members != nil {
		r.MustRegister(g.members)
	}
	return r
}

// process returns the parts that all lanes share.
func (g *generator) process(conf *config.Config) lane.Process {
	p := lane.Process{
		Version: api.ProgramVersion(), Config: conf.Shown(), Store: g.store, Health: g.health, Lag: g.check.Lag, Log: g.log,
		CheckConcurrency: g.files.check,
	}
	if g.members != nil {
		p.Members, p.Lag, p.CheckConcurrency = g.members.Members, g.members.Lag, g.members.Check
	}
	return p
}

// newLane makes the lane of a side.
func (g *generator) newLane(ctx context.Context, s *side, catalog *lane.Catalog, texts *corpus.Corpus) error {
	asker, closes, err := newQuestioner(s.conf, s.log)
	if err != nil {
		return err
	}
	s.closes = closes
	step, err := g.store.MaxStep(ctx, s.name)
	if err != nil {
		return err
	}
	l := lane.Options{
		Name: s.name, Client: s.client, Corpus: texts, Questioner: asker,
		Settings: settingsOf(s.conf, g.plan), Seed: s.conf.Seed, Target: api.TargetKind(s.conf.Deployment.Kind),
		Deployment: s.conf.Deployment.API(),
		Driver:     s.driver, Mode: s.mode, LastStep: step, Timeouts: timeouts(s.conf.Target), Request: s.conf.Request.Text(),
		Session:      s.conf.Routing().Session.String(),
		AnswerMemory: int64(s.conf.Target.AnswerMemory),
		ModeChanged:  func(m api.ModeState) { s.watcher.SetSpeculation(m.Speculation) },
		Cluster:      s.watcher.Current, SharesMetrics: s.conf.SharesMetrics, Note: s.conf.Note,
		Shadow: s.conf.Routers.Enabled,
		// A run with an end is one of the protocol of the recorded results, whose conversations begin together.
		RampedStart: !s.conf.Ends() && g.plan == nil,
		Plan:        g.plan, Exact: true,
		Turns: int64(s.conf.Requests), WarmsUp: s.conf.Warmup > 0,
		Steps: s.conf.Rate.Steps(), StepDuration: s.conf.Rate.Each,
		FreshTexts: s.conf.Caches != "kept" && s.conf.Ends(),
	}
	if g.texts != nil {
		l.CorpusStatus = g.texts.Status
	}
	if g.twins != nil {
		l.Ended, l.SharedWorkers = g.twins.TurnEnded, g.twins.SharedWorkers
	}
	if g.exporter.Traces() {
		g.exportTurns(s, &l)
	}
	s.lane = lane.New(ctx, catalog, l)
	return nil
}

func timeouts(t config.Target) *api.Timeouts {
	return &api.Timeouts{
		FirstToken: t.FirstTokenTimeout.Seconds(), Stall: t.StallTimeout.Seconds(),
		Turn: t.TurnTimeout.Seconds(),
	}
}

// openCorpus returns the opening texts: those of the configured place, or the built-in articles.
func (g *generator) openCorpus(ctx context.Context, conf *config.Config) (*corpus.Corpus, error) {
	texts, err := openTexts(ctx, conf, g.log)
	if err != nil {
		return nil, err
	}
	if g.texts = texts; texts == nil {
		return corpus.Builtin()
	}
	return texts.Corpus(), nil
}

// openTexts opens the configured place of texts; it returns nil without one.
func openTexts(ctx context.Context, conf *config.Config, log *slog.Logger) (*source.Reader, error) {
	c := conf.Corpus
	options := source.Options{Path: cmp.Or(c.Dir, c.File), Refresh: c.Refresh, Log: log}
	if c.S3.Bucket != "" {
		options.Bucket = &source.Bucket{
			Endpoint: c.S3.Endpoint, Name: c.S3.Bucket, Prefix: c.S3.Prefix, Region: c.S3.Region, PathStyle: c.S3.PathStyle,
			AccessKey: string(c.S3.AccessKey), SecretKey: string(c.S3.SecretKey), CA: c.S3.CA,
		}
	}
	if options.Path == "" && options.Bucket == nil {
		return nil, nil
	}
	texts, err := source.Open(ctx, options)
	switch {
	case err != nil && options.Path != "" && !errors.As(err, new(*api.FieldError)):
		field := "corpus.file"
		if c.Dir != "" {
			field = "corpus.dir"
		}
		return nil, fmt.Errorf("%s: %w", field, err)
	case err == nil && conf.OpeningLength() > 0 && texts.Corpus().Scripted():
		return nil, api.Refuse("opening_tokens", conf.OpeningLength(),
			"leave it out: the corpus is a question set, whose questions have their own length")
	}
	return texts, err
}

// run serves until ctx ends, and returns when every part has ended. cancel ends ctx, which was also passed to assemble.
func (g *generator) run(ctx context.Context, cancel context.CancelFunc, l net.Listener) error {
	var wg sync.WaitGroup
	wg.Go(func() { g.view.Run(ctx) })
	for _, s := range g.sides {
		wg.Go(func() { s.watcher.Run(ctx) })
	}
	if g.twins != nil {
		wg.Go(func() { g.twins.Run(ctx) })
	}
	wg.Go(func() { g.whatif.Run(ctx) })
	wg.Go(func() { g.sweeps.Run(ctx) })
	wg.Go(func() {
		if err := g.check.Run(ctx); err != nil {
			g.log.Error("the self-check failed to run; the load generator's own error stays unknown", "error", err)
		}
	})
	if g.texts != nil {
		wg.Go(func() {
			g.texts.Run(ctx, func(c *corpus.Corpus) { g.lane.SetCorpus(c.Sized(g.openings)) })
		})
	}
	if slices.ContainsFunc(g.sides, func(s *side) bool { return s.later != nil }) {
		wg.Go(func() { g.switchLater(ctx) })
	}
	err := g.server.Serve(ctx, l)
	cancel()
	wg.Wait()
	return errors.Join(err, g.close())
}
