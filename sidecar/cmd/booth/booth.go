package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
)

const startWithin = 2 * time.Minute

// stopWithin is a variable for the test of a second Ctrl-C.
var stopWithin = 10 * time.Second

// flags are common to both booths.
type flags struct {
	Concurrency  int    `default:"60" help:"Number of concurrent conversations."`
	Start        bool   `default:"true" negatable:"" help:"Start the load immediately. With --no-start, the load generator waits for an operator."`
	Twin         bool   `negatable:"" help:"Start a second cluster in the other mode and send it the same conversations (the load generator's lane twin)."`
	Grafana      string `default:"auto" enum:"auto,installed,off" help:"Start Grafana: auto uses an installed one (GRAFANA_HOME, /usr/share/grafana, or on the PATH) and otherwise downloads ${grafana} once, about 200 MB; installed never downloads; off starts none."`
	Provisioning string `placeholder:"DIR" help:"Grafana provisioning directory. Default: the project's, found next to this program."`

	FrontendPort   int    `default:"8000" help:"Port of the cluster's frontend; if taken, the next free one."`
	WorkerPort     int    `default:"8081" help:"Port of the first worker's metrics, the others follow; if taken, the next free ones."`
	PrometheusPort int    `default:"9090" help:"Port of Prometheus; if taken, the next free one."`
	Port           int    `default:"8088" help:"Port of the load generator; if taken, the next free one."`
	GrafanaPort    int    `default:"3000" help:"Port of Grafana; if taken, the next free one."`
	CacheDir       string `placeholder:"DIR" help:"Directory for results, metrics, logs and downloads. Default: kvbooth in the user's cache directory."`
}

// check refuses ports that no system has, and a folder that does not exist.
func (f *flags) check() error {
	if f.Provisioning != "" {
		if _, err := os.Stat(f.Provisioning); err != nil {
			return &api.FieldError{Field: "provisioning", Value: f.Provisioning, Allowed: fmt.Sprintf("a directory (%v)", err)}
		}
	}
	return checkPorts(map[string]int{
		"frontend-port": f.FrontendPort, "worker-port": f.WorkerPort, "prometheus-port": f.PrometheusPort,
		"port": f.Port, "grafana-port": f.GrafanaPort,
	})
}

const lastPort = 65535

// twinPorts is how far the ports of the second cluster are from those of the first, where
// they are free.
const twinPorts = 100

// otherMode is that of the second cluster, beside the first one's.
func otherMode(m api.Mode) api.Mode {
	if m == api.ModeRoundRobin {
		return api.ModeKV
	}
	return api.ModeRoundRobin
}

func checkPorts(flags map[string]int) error {
	for flag, port := range flags {
		if port < 1 || port > lastPort {
			return &api.FieldError{Field: flag, Value: strconv.Itoa(port), Allowed: fmt.Sprintf("1 to %d", lastPort)}
		}
	}
	return nil
}

// kind is what tells one booth from another.
type kind interface {
	name() string // of its folder
	common() *flags
	check() error // refuses before anything is started; an error that the caller can mend
	// newBackend writes what the backend needs, and starts nothing.
	newBackend(ctx context.Context, b *booth) (backend, error)
	// newTwin is newBackend of a second cluster, in another mode.
	newTwin(ctx context.Context, b *booth) (backend, error)
	loadgenArgs() []string // flags of the load generator that are this kind's own
	twinArgs() []string    // the same of the second cluster
	vendor() api.Vendor    // that the screens are about, unless the environment names another
}

// part is a part of a booth: a process, or several that start as one.
type part interface {
	title() string                   // in the middle of a sentence
	start(ctx context.Context) error // returns when it serves
	watch(ctx context.Context) error // restarts what ends, until ctx ends; an error where that does not help
	stop(ctx context.Context)        // for good; it is killed when ctx ends
}

// backend is the part that serves the model.
type backend interface {
	part
	addresses() addresses // once it serves
	describe() (heading string, rows [][2]string)
}

// addresses are where a backend is reached, each as host:port.
type addresses struct {
	frontend string
	workers  []string // their metrics
	gpus     []string // the DCGM exporters of their nodes, in the same order; none: no GPUs are imitated
}

// booth is what runs on this machine.
type booth struct {
	kind  kind
	flags *flags
	cache string // the folder that all booths share
	out   *screen
	ports ports

	backend    backend
	twin       backend // nil: there is one cluster
	prometheus *service
	grafana    *service // nil: none
	noGrafana  error    // why there is none, though one is wanted; nil where none is
	startPage  string   // path of Grafana's page to open first
	loadgen    *service
	parts      []part // all of them, as they were started
}

// runKind starts a booth, keeps it running until ctx ends, and stops it.
func runKind(ctx, killCtx context.Context, k kind, stdout, stderr io.Writer) error {
	b := &booth{kind: k, flags: k.common(), out: newScreen(stdout, stderr)}
	b.ports.say = b.out.say
	if err := b.prepare(ctx); err != nil {
		return err
	}
	unlock, ok, err := process.TryLock(filepath.Join(b.cache, "booth.lock"))
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: another booth is running in %s; stop it, or use a different --cache-dir", errBadInput, b.cache)
	}
	defer unlock()
	defer b.stop(killCtx)
	if err := b.start(ctx); err != nil {
		if ctx.Err() != nil { // it was stopped before it was up
			return nil
		}
		return err
	}
	b.summary()
	return b.watch(ctx)
}

// prepare finds the folder, and refuses what could not be started before anything
// takes long.
func (b *booth) prepare(ctx context.Context) (err error) {
	if err := errors.Join(b.flags.check(), b.kind.check()); err != nil {
		return err
	}
	b.cache = b.flags.CacheDir
	if b.cache == "" {
		if b.cache, err = local.CacheDir(); err != nil {
			return fmt.Errorf("%w: %w; set a directory with --cache-dir", errBadInput, err)
		}
	}
	if b.cache, err = filepath.Abs(b.cache); err != nil {
		return err
	}
	return b.checkLoadgen(ctx)
}

func (b *booth) folder(name ...string) string {
	return filepath.Join(append([]string{b.cache, b.kind.name()}, name...)...)
}

func (b *booth) log(name string) string { return b.folder("logs", name+".log") }

// setLogsAside keeps the logs of the last run, and no older ones.
func (b *booth) setLogsAside() error {
	logs, old := b.folder("logs"), b.folder("logs.old")
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(logs, old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.MkdirAll(logs, 0o700)
}

// start starts everything and returns when it serves: the cluster first, since the
// others must know where it is, and the load generator last, so that nothing that
// still starts disturbs what it measures.
func (b *booth) start(ctx context.Context) (err error) {
	if err := b.setLogsAside(); err != nil {
		return err
	}
	prometheus, err := b.findPrometheus(ctx)
	if err != nil {
		return err
	}
	grafana := b.findGrafana(ctx)
	if b.backend, err = b.kind.newBackend(ctx, b); err != nil {
		return err
	}
	clusters := []part{b.backend}
	if b.flags.Twin {
		if b.twin, err = b.kind.newTwin(ctx, b); err != nil {
			return err
		}
		clusters = append(clusters, b.twin)
	}
	if err := b.bring(ctx, clusters...); err != nil {
		return err
	}
	address, err := b.address("the load generator", b.flags.Port)
	if err != nil {
		return err
	}
	if b.prometheus, err = b.newPrometheus(prometheus, address); err != nil {
		return err
	}
	around := []part{b.prometheus}
	if grafana != nil {
		b.grafana, b.noGrafana = b.newGrafana(*grafana, address)
	}
	if b.grafana != nil {
		around = append(around, b.grafana)
	}
	if err := b.bring(ctx, around...); err != nil {
		return err
	}
	if b.loadgen, err = b.newLoadgen(address); err != nil {
		return err
	}
	return b.bring(ctx, b.loadgen)
}

// address chooses a free one.
func (b *booth) address(who string, port int) (string, error) {
	port, err := b.ports.take(who, port, 1)
	return process.Loopback(port), err
}

// bring starts parts at once and returns when all of them serve.
func (b *booth) bring(ctx context.Context, parts ...part) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	b.parts = append(b.parts, parts...)
	var mu sync.Mutex
	var titles []string // of those that do not serve yet
	for _, p := range parts {
		titles = append(titles, p.title())
	}
	missing := func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(titles, " and ")
	}
	b.out.say("starting %s", missing())
	defer b.out.waiting(missing)()
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range parts {
		group.Go(func() error {
			err := p.start(ctx)
			mu.Lock()
			defer mu.Unlock()
			titles = slices.DeleteFunc(titles, func(title string) bool { return title == p.title() })
			return err
		})
	}
	return group.Wait()
}

// watch supervises all parts until ctx ends, or until one is given up.
func (b *booth) watch(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range b.parts {
		group.Go(func() error { return p.watch(ctx) })
	}
	return group.Wait()
}

// stop stops the load generator, then the rest at once; when killCtx ends, they are
// killed.
func (b *booth) stop(killCtx context.Context) {
	if len(b.parts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(killCtx, stopWithin)
	defer cancel()
	b.out.say("stopping")
	if b.loadgen != nil {
		b.loadgen.stop(ctx)
	}
	var wg sync.WaitGroup
	for _, p := range b.parts {
		wg.Go(func() { p.stop(ctx) })
	}
	wg.Wait()
}

// summary says where to look.
func (b *booth) summary() {
	heading, rows := b.backend.describe()
	if b.twin != nil {
		more, of := b.twin.describe()
		heading += "\n" + more
		for _, row := range of {
			rows = append(rows, [2]string{row[0] + ", twin", row[1]})
		}
	}
	doing := fmt.Sprintf("runs %d concurrent conversations", b.flags.Concurrency)
	if !b.flags.Start {
		doing = "waiting to be started"
	}
	rows = append(rows,
		[2]string{"Prometheus", b.prometheus.url},
		[2]string{"load generator", b.loadgen.url + "/api/v1/status, metrics at /metrics; " + doing},
		[2]string{"logs", b.folder("logs")})
	last, page := "Press Ctrl-C to stop.", [2]string{"page", b.loadgen.url + "/ (the app without Grafana)"}
	rows = slices.Insert(rows, 0, page)
	switch {
	case b.grafana != nil && b.grafana.Up():
		first := [2]string{"Grafana", b.grafana.url + b.startPage + " (start here; operating needs no login, administration is admin/admin)"}
		rows = slices.Insert(rows, 0, first)
	case b.noGrafana != nil:
		last = withoutGrafana(b.noGrafana) + "\n" + last
	}
	b.out.table(heading, rows, last)
}

// ports hands out free ports on loopback, none of them twice.
type ports struct {
	taken []int
	say   func(format string, args ...any)
}

// take gives the first of n free ports in a row, from the wanted one on, and says
// so where that is another one.
func (p *ports) take(who string, wanted, n int) (first int, err error) {
	for from := wanted; ; {
		free, err := process.FreePorts(from, n)
		if err != nil {
			return 0, err
		}
		row := free[n-1]-free[0] == n-1
		if row && !slices.ContainsFunc(free, func(port int) bool { return slices.Contains(p.taken, port) }) {
			if free[0] != wanted {
				p.say("port %d is in use: %s uses %d", wanted, who, free[0])
			}
			p.taken = append(p.taken, free...)
			return free[0], nil
		}
		from = free[0] + 1
	}
}
