package main

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/corpus/enduser"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/members"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/stats/selfcheck"
	"kvbooth/sidecar/loadgen/workload"
)

// openMembers connects to the members that send the turns, where the configuration has some, and starts those on this
// machine.
func (g *generator) openMembers(ctx context.Context, conf *config.Config, address string) (err error) {
	if !conf.Members.Coordinates() {
		return nil
	}
	if g.local, err = startLocal(ctx, conf, g.log); err != nil {
		return err
	}
	g.members, err = members.Open(ctx, members.Options{
		Access: conf.Members.Access(), Name: address, Version: api.ProgramVersion(), FilesEach: filesEach(conf), Log: g.log,
		Noticeable: func(lag *stats.Lag) bool { // members may answer before there is a view
			view := g.viewed.Load()
			return view != nil && view.Noticeable(lag)
		},
	})
	return err
}

// targetOptions returns the settings of a target, without its key, headers and client certificate.
func targetOptions(conf *config.Config) members.TargetOptions {
	t := conf.Target
	return members.TargetOptions{
		URL: t.URL, Model: t.Model, CA: t.Opened.CA, Fields: conf.Request.Fields(), MinTokens: conf.Request.MinTokens,
		Priority: conf.Request.PriorityText(), Routing: conf.Routing(),
		TokenIDs: conf.Routers.Enabled && conf.Routers.TokenIDs,
		Planned:  conf.Planned(),
		Settings: t.Settings,
	}
}

// chatOptions returns the options of a client for a target. The CA is that of the target options.
func chatOptions(o members.TargetOptions, key config.Secret, opened chat.Access) (chat.Options, error) {
	opened.CA = o.CA
	options := chat.Options{
		URL: o.URL, Model: o.Model, APIKey: string(key), Access: opened, TokenIDs: o.TokenIDs, Fields: o.Fields,
		MinTokens: o.MinTokens, Planned: o.Planned, Priority: o.Priority, Settings: o.Settings,
	}
	return options, setRouting(&options, o.Routing)
}

// lags returns the lags since the start of the processes that hold streams.
func (g *generator) lags() stats.Lag {
	if g.members != nil {
		return g.members.Total()
	}
	return g.check.Total()
}

// health returns the health of the processes that hold streams.
func (g *generator) health(now time.Time) api.ClientHealth {
	own := g.check.Health(now)
	if g.members != nil {
		return g.members.Health(own)
	}
	return own
}

// probed is a target that is probed before it is sent turns.
type probed struct {
	workload.Sender
	client *chat.Client
}

// Probes returns the number of probes of the client.
func (p probed) Probes() int64 { return p.client.Probes() }

// Close closes its connections.
func (p probed) Close() { p.client.Close() }

// join sends turns for a coordinator until ctx ends.
func join(ctx context.Context, conf *config.Config, stderr io.Writer) error {
	out := &terminal{w: stderr}
	log := newLog(conf, out)
	check := &selfcheck.Watch{}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		stats.NewClientCollector(func() api.ClientHealth { return check.Health(time.Now()) }))
	l, err := listenMember(conf)
	if err != nil {
		return notStarted{err}
	}
	beside, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		if err := check.Run(beside); err != nil {
			log.Error("the self-check failed to run; this member's own error stays unknown", "error", err)
		}
	})
	if l != nil {
		wg.Go(func() { serveMember(beside, l, conf, registry, log) })
	}
	k := keys{conf}
	files := openFileLimit()
	if files > 0 {
		files = max(1, files-keptBack)
	}
	err = members.RunMember(ctx, members.MemberOptions{
		Access: conf.Members.Access(), Name: conf.Members.Name, Version: api.ProgramVersion(), Health: check.Health,
		Lag: check.Take, Files: files,
		Target: k.target, Registry: registry, Log: log,
	})
	if errors.Is(err, members.ErrRefused) || errors.As(err, new(*api.FieldError)) {
		return notStarted{err}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// keys makes targets from the coordinator's options, with the keys, headers and client certificates of this process.
type keys struct{ conf *config.Config }

// target makes the client of the server under load.
func (k keys) target(o members.TargetOptions) (members.Target, error) {
	key, opened := k.conf.Target.APIKey, k.conf.Target.Opened
	if o.Twin {
		key, opened = k.conf.Twin.Target.APIKey, k.conf.Twin.Target.Opened
	}
	options, err := chatOptions(o, key, opened)
	if err != nil {
		return nil, err
	}
	c, err := chat.New(options)
	if err != nil {
		return nil, err
	}
	return probed{lane.NewSender(c), c}, nil
}

// newQuestioner makes the source of the follow-up questions. closes is nil where there is nothing to close.
func newQuestioner(conf *config.Config, log *slog.Logger) (q corpus.Questioner, closes func(), err error) {
	f := conf.Followup
	switch {
	case f.Text != "":
		return corpus.FixedQuestioner{Text: f.Text}, nil, nil
	case f.URL == "":
		return corpus.BuiltinQuestioner{}, nil, nil
	}
	m, err := enduser.New(enduser.Options{
		URL: f.URL, Model: f.Model, APIKey: string(f.APIKey), Access: f.Opened, Timeout: f.Timeout, Log: log,
	})
	if err != nil {
		return nil, nil, err
	}
	return m, m.Close, nil
}

// listenMember binds the address of a member's metrics; nil where it has none.
func listenMember(conf *config.Config) (net.Listener, error) {
	at := conf.Members.Listen
	if at == "" {
		return nil, nil //nolint:nilnil // no address is no error
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, api.Refuse("members.listen", at, "a free address of this machine: "+err.Error())
	}
	return l, nil
}

// serveMember answers /metrics and /healthz until ctx ends.
func serveMember(ctx context.Context, l net.Listener, conf *config.Config, registry *prometheus.Registry,
	log *slog.Logger,
) {
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		given := "Bearer " + string(conf.MetricsToken)
		if conf.MetricsToken != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(given)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a token is required: Authorization: Bearer …", http.StatusUnauthorized)
			return
		}
		metrics.ServeHTTP(w, r)
	})
	s := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
	}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	if err := s.Serve(l); ctx.Err() == nil {
		log.Error("metrics are no longer served", "error", err)
	}
}
