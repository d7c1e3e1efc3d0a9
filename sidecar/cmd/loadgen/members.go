package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
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

// onMembers lets members hold the conversations of a lane, where the configuration requires it, and takes over those
// that they hold already.
func (g *generator) onMembers(ctx context.Context, s *side, o *lane.Options) error {
	if g.members == nil {
		return nil
	}
	target, asker := targetOptions(s.conf), followupOptions(s.conf)
	target.Twin = s.name == api.TwinLane && s.conf.Target.APIKey != g.sides[0].conf.Target.APIKey
	if c, ok := s.client.(lane.Redirected); ok {
		target.Endpoint = c.Endpoint
	}
	o.Engine = g.members.Engine(target, asker, s.driver.Abilities().Instances)
	found, ok := g.members.Found(s.name, target, asker)
	mode := found.Step.InMode()
	// Where the driver knows no mode by itself, the run knows better what it is in.
	if ok && found.Seed == s.conf.Seed && (mode == s.mode || s.conf.Mode.Driver == "manual") {
		s.mode, o.Mode, o.Resumed = mode, mode, &found
		s.watcher.SetSpeculation(mode.Speculation)
		return nil
	}
	return g.members.Discard(ctx, s.name)
}

// targetOptions returns the settings of a target, without its key, headers and client certificate.
func targetOptions(conf *config.Config) members.TargetOptions {
	t := conf.Target
	return members.TargetOptions{
		URL: t.URL, Model: t.Model, CA: t.Opened.CA, Fields: conf.Request.Fields(), MinTokens: conf.Request.MinTokens,
		Priority: conf.Request.Priority, Routing: conf.Routing(), TokenIDs: conf.Routers.Enabled && conf.Routers.TokenIDs,
		ConnectTimeout: t.ConnectTimeout, FirstTokenTimeout: t.FirstTokenTimeout, StallTimeout: t.StallTimeout,
		TurnTimeout: t.TurnTimeout, AnswerMemory: int64(t.AnswerMemory),
	}
}

// followupOptions returns the settings of the follow-up questions, without key, headers and client certificate.
func followupOptions(conf *config.Config) members.FollowupOptions {
	f := conf.Followup
	return members.FollowupOptions{Text: f.Text, URL: f.URL, Model: f.Model, CA: f.Opened.CA, Timeout: f.Timeout}
}

// chatOptions returns the options of a client for a target. The CA is that of the target options.
func chatOptions(o members.TargetOptions, key config.Secret, opened chat.Access) (chat.Options, error) {
	opened.CA = o.CA
	options := chat.Options{
		URL: o.URL, Model: o.Model, APIKey: string(key), Access: opened, TokenIDs: o.TokenIDs, Fields: o.Fields,
		MinTokens: o.MinTokens, Priority: o.Priority,
		ConnectTimeout: o.ConnectTimeout, FirstTokenTimeout: o.FirstTokenTimeout, StallTimeout: o.StallTimeout,
		TurnTimeout: o.TurnTimeout,
	}
	return options, setRouting(&options, o.Routing)
}

// runMembers accepts members until leave is called, which is when every run has ended. Where another load generator
// takes over the members, it calls cancel, and leave returns the error.
func (g *generator) runMembers(cancel context.CancelFunc) (leave func() error) {
	if g.members == nil {
		return func() error { return nil }
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		err := g.members.Run(ctx)
		if err != nil {
			cancel()
		}
		done <- err
	}()
	return func() error {
		stop()
		return <-done
	}
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

// ownerOf identifies the data directory, which one process at a time uses.
func ownerOf(dir string) string {
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(host + "\x00" + dir))
	return hex.EncodeToString(sum[:8])
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

// join holds conversations for a coordinator until ctx ends.
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
	k := keys{conf, log}
	files := openFileLimit()
	if files > 0 {
		files = max(1, files-keptBack)
	}
	err = members.RunMember(ctx, members.MemberOptions{
		Access: conf.Members.Access(), Name: conf.Members.Name, Version: api.ProgramVersion(), Health: check.Health,
		Lag: check.Take, Files: files,
		Target: k.target, Questioner: k.questioner, Registry: registry, Log: log,
	})
	if errors.Is(err, members.ErrRefused) || errors.As(err, new(*api.FieldError)) {
		return notStarted{err}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// keys makes targets and questioners from options, which may be the coordinator's, with the keys, headers and client
// certificates of this process.
type keys struct {
	conf *config.Config
	log  *slog.Logger
}

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

// questioner makes the source of the follow-up questions.
func (k keys) questioner(o members.FollowupOptions) (corpus.Questioner, func(), error) {
	switch {
	case o.Text != "":
		return corpus.FixedQuestioner{Text: o.Text}, nil, nil
	case o.URL == "":
		return corpus.BuiltinQuestioner{}, nil, nil
	}
	opened := k.conf.Followup.Opened
	opened.CA = o.CA
	q, err := enduser.New(enduser.Options{
		URL: o.URL, Model: o.Model, APIKey: string(k.conf.Followup.APIKey),
		Access: opened, Timeout: o.Timeout, Log: k.log,
	})
	if err != nil {
		return nil, nil, err
	}
	return q, q.Close, nil
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
