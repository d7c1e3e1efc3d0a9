package prometheus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/grafana/regexp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/util/features"
	"github.com/prometheus/prometheus/util/notifications"
	v1 "github.com/prometheus/prometheus/web/api/v1"

	"kvbooth/sidecar/api"
)

const (
	apiPrefix   = "/api/v1"
	bodyLimit   = 1 << 20 // bytes; a query is far below
	endWithin   = time.Second
	readTimeout = 10 * time.Second
	idleTimeout = 2 * time.Minute
)

// web answers over HTTP.
type web struct {
	handler  http.Handler
	log      *slog.Logger
	requests sync.RWMutex // held for reading by every request in progress, and for good by the end
}

func newWeb(o Options, cfg *config.Config, s *store, targets *scrape.Manager, address net.Addr, reg *prometheus.Registry) *web {
	calls := route.New()
	newAPI(o, cfg, s, targets, address, reg).Register(calls)

	mux := http.NewServeMux()
	mux.Handle(apiPrefix+"/", http.StripPrefix(apiPrefix, calls))
	mux.Handle(apiPrefix+"/read", http.NotFoundHandler()) // the remote read that the API always brings
	mux.Handle(apiPrefix+"/openapi.yaml", http.NotFoundHandler())
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.Handle("GET /-/healthy", says("Prometheus Server is Healthy.\n"))
	mux.Handle("GET /-/ready", says("Prometheus Server is Ready.\n")) // nothing is accepted before
	mux.Handle("GET /{$}", says("This is Prometheus "+Version+" without its web UI: view its data in Grafana, or use its API at "+apiPrefix+"/.\n"))

	w := &web{log: o.Log}
	w.handler = w.counted(http.MaxBytesHandler(mux, bodyLimit))
	if ip, err := netip.ParseAddrPort(address.String()); err == nil && ip.Addr().Unmap().IsLoopback() {
		w.handler = onlyLoopback(w.handler)
	}
	return w
}

func says(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, text)
	})
}

// onlyLoopback refuses a Host that is no loopback one: another site's name that was
// rebound to this address.
func onlyLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !api.KnownHost(r.Host, nil) {
			http.Error(w, fmt.Sprintf("Host %q is not allowed; use a loopback address", r.Host), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// counted refuses requests once the storage is about to be closed.
func (w *web) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !w.requests.TryRLock() {
			http.Error(rw, "this Prometheus is shutting down", http.StatusServiceUnavailable)
			return
		}
		defer w.requests.RUnlock()
		next.ServeHTTP(rw, r)
	})
}

// serve answers on the listener, which it closes, until ctx ends. Then it cuts off
// the queries in progress, and returns when no request is left.
func (w *web) serve(ctx context.Context, l net.Listener, ready func(net.Addr)) error {
	server := &http.Server{
		Handler: w.handler, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		WriteTimeout: readTimeout + 2*queryTimeout,
		BaseContext:  func(net.Listener) context.Context { return ctx },
		ErrorLog:     slog.NewLogLogger(w.log.Handler(), slog.LevelDebug),
	}
	if ready != nil {
		ready(l.Addr())
	}
	err := api.Serve(ctx, server, l, endWithin)
	w.requests.Lock()
	return err
}

// newAPI is Prometheus' own API, with everything that would write disabled.
func newAPI(o Options, cfg *config.Config, s *store, targets *scrape.Manager, address net.Addr, reg *prometheus.Registry) *v1.API {
	return v1.NewAPI(
		s.engine, s.db, nil, nil, s.db,
		func(context.Context) v1.ScrapePoolsRetriever { return targets },
		func(context.Context) v1.TargetRetriever { return targets },
		func(context.Context) v1.AlertmanagerRetriever { return nothing{} },
		func() config.Config { return *cfg },
		map[string]string{}, // the flags
		v1.GlobalURLOptions{ListenAddress: address.String(), Host: address.String(), Scheme: "http"},
		func(next http.HandlerFunc) http.HandlerFunc { return next }, // ready whenever it is asked
		status{s.db, s.stats}, o.DataDir,
		false,    // admin calls
		false, 0, // search calls and their limit
		o.Log.With("component", "api"),
		func(context.Context) v1.RulesRetriever { return nothing{} },
		0, 0, 0, // limits of remote read
		false,                    // an agent
		regexp.MustCompile(`^$`), // the origins of other sites' pages that may read
		runtimeInfo(o, reg), &v1.PrometheusVersion{Version: Version, GoVersion: runtime.Version()},
		func() []notifications.Notification { return nil },
		func() (<-chan notifications.Notification, func(), bool) { return nil, nil, false },
		reg, reg, nil,
		false, nil, // remote write
		false, false, false, // OTLP
		false, 0, false, false, // what they would store
		nil, features.NewRegistry(),
		v1.OpenAPIOptions{Version: Version, IncludePaths: []string{apiPrefix}}, // of none: it takes most of the start, and memory
		s.parser,
	)
}

// nothing is what there is of rules and alerts.
type nothing struct{}

func (nothing) Alertmanagers() []*url.URL            { return nil }
func (nothing) DroppedAlertmanagers() []*url.URL     { return nil }
func (nothing) RuleGroups() []*rules.Group           { return nil }
func (nothing) AlertingRules() []*rules.AlertingRule { return nil }

// runtimeInfo tells of the process.
func runtimeInfo(o Options, reg prometheus.Gatherer) func() (v1.RuntimeInfo, error) {
	begun := time.Now().UTC()
	retention := o.Retention.String()
	if o.RetentionSize > 0 {
		retention += fmt.Sprintf(" or %d bytes", o.RetentionSize)
	}
	return func() (v1.RuntimeInfo, error) {
		dir, dirErr := os.Getwd()
		host, hostErr := os.Hostname()
		corruptions, countErr := walCorruptions(reg)
		return v1.RuntimeInfo{
			StartTime: begun, ServerTime: time.Now().UTC(), CWD: dir, Hostname: host,
			ReloadConfigSuccess: true, LastConfigTime: begun, CorruptionCount: corruptions,
			GoroutineCount: runtime.NumGoroutine(), GOMAXPROCS: runtime.GOMAXPROCS(0), GOMEMLIMIT: debug.SetMemoryLimit(-1),
			GOGC: os.Getenv("GOGC"), GODEBUG: os.Getenv("GODEBUG"), StorageRetention: retention,
		}, errors.Join(dirErr, hostErr, countErr)
	}
}

// walCorruptions counts the repairs of the log since the start.
func walCorruptions(reg prometheus.Gatherer) (int64, error) {
	families, err := reg.Gather()
	for _, f := range families {
		if f.GetName() == "prometheus_tsdb_wal_corruptions_total" {
			return int64(f.GetMetric()[0].GetCounter().GetValue()), err
		}
	}
	return 0, err
}
