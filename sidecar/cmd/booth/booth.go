package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
)

const startTimeout = 2 * time.Minute

// stopTimeout is a variable so that a test of a second Ctrl-C can change it.
var stopTimeout = 10 * time.Second

// flags are the common flags of demo and dynamo.
type flags struct {
	Concurrency  int    `default:"60" help:"Number of concurrent conversations."`
	Start        bool   `default:"true" negatable:"" help:"Start the load immediately. With --no-start, the load generator waits for an operator."`
	Twin         bool   `negatable:"" help:"Start a second cluster in the other mode and send it the same conversations (the load generator's lane twin)."`
	Grafana      string `default:"auto" enum:"auto,installed,off" help:"Start Grafana: auto uses an installed one (GRAFANA_HOME, /usr/share/grafana, or on the PATH) and otherwise downloads ${grafana} once, about 200 MB; installed never downloads; off starts none."`
	Provisioning string `placeholder:"DIR" help:"Grafana provisioning directory. Default: the project's, found next to this program."`
	Build        string `placeholder:"COMMAND" help:"Start with the cluster and the load generator, run this command, such as 'go tool mage build', and then start Prometheus and Grafana. The page shows the last line that the command has printed."`

	FrontendPort   int    `default:"8000" help:"Port of the cluster's frontend; if taken, the next free one."`
	WorkerPort     int    `default:"8081" help:"Port of the first worker's metrics, the others follow; if taken, the next free ones."`
	PrometheusPort int    `default:"9090" help:"Port of Prometheus; if taken, the next free one."`
	Port           int    `default:"8088" help:"Port of the load generator; if taken, the next free one."`
	GrafanaPort    int    `default:"3000" help:"Port of Grafana; if taken, the next free one."`
	CacheDir       string `placeholder:"DIR" help:"Directory for results, metrics, logs and downloads. Default: kvbooth in the user's cache directory."`
}

// check returns an error for ports out of range and for a provisioning folder that does not exist.
func (f *flags) check() error {
	if f.Provisioning != "" {
		if _, err := os.Stat(f.Provisioning); err != nil {
			allowed := fmt.Sprintf("a directory (%v)", err)
			return api.Refuse("provisioning", f.Provisioning, allowed)
		}
	}
	return checkPorts(map[string]int{
		"frontend-port": f.FrontendPort, "worker-port": f.WorkerPort, "prometheus-port": f.PrometheusPort,
		"port": f.Port, "grafana-port": f.GrafanaPort,
	})
}

const lastPort = 65535

// twinPorts is the preferred distance of the second cluster's ports from those of the first.
const twinPorts = 100

// otherMode returns the mode of the second cluster for a mode of the first one.
func otherMode(m api.Mode) api.Mode {
	if m == api.ModeRoundRobin {
		return api.ModeKV
	}
	return api.ModeRoundRobin
}

func checkPorts(flags map[string]int) error {
	for flag, port := range flags {
		if port < 1 || port > lastPort {
			return api.Refuse(flag, port, fmt.Sprintf("1 to %d", lastPort))
		}
	}
	return nil
}

// kind is a kind of booth: with a simulated cluster, or with Dynamo.
type kind interface {
	name() string // of its folder
	common() *flags
	check() error // returns an error for invalid flags, before anything is started
	// newBackend writes the files of the backend and describes it, without starting it.
	newBackend(ctx context.Context, b *booth) (backend, error)
	// newTwin is newBackend for a second cluster in another mode.
	newTwin(ctx context.Context, b *booth) (backend, error)
	loadgenArgs() []string // further flags of the load generator
	twinArgs() []string    // further flags of the load generator for the second cluster
	vendor() api.Vendor    // default vendor on the screens
}

// part is a part of a booth: one or several processes that start together.
type part interface {
	title() string                   // for use within a sentence
	start(ctx context.Context) error // returns when the part is ready
	watch(ctx context.Context) error // restarts processes that end, until ctx ends; returns an error to give up
	stop(ctx context.Context)        // without restart; kills when ctx ends
}

// backend is the part that serves the model.
type backend interface {
	part
	addresses() addresses // valid after start
	describe() (heading string, rows [][2]string)
}

// addresses are the addresses of a backend, as host:port.
type addresses struct {
	frontend string
	workers  []string // metrics of the workers
	gpus     []string // DCGM exporters of the workers, in the same order; empty without simulated GPUs
}

// booth holds the parts of a running booth.
type booth struct {
	kind  kind
	flags *flags
	cache string // folder of all booths
	dir   string // name of this one's folder
	out   *screen
	ports ports
	// patience is the time until all parts that start together must be ready. 0 means two minutes.
	patience time.Duration

	loadgenAt    string // host:port of these three
	prometheusAt string
	grafanaAt    string // "" if no Grafana is requested

	backend    backend
	twin       backend // nil without a second cluster
	build      *build  // nil if the booth builds nothing
	prometheus *service
	grafana    *service // nil without Grafana
	noGrafana  error    // reason for a missing Grafana; nil if none is requested
	startPage  string   // path of the first page in Grafana
	loadgen    *service
	parts      []part // in the order of their start
}

// runKind starts a booth, keeps it running until ctx ends, and stops it.
func runKind(ctx, killCtx context.Context, k kind, stdout, stderr io.Writer) error {
	b := &booth{kind: k, flags: k.common(), dir: k.name(), out: newScreen(stdout, stderr)}
	b.ports.say = b.out.say
	if err := b.prepare(ctx); err != nil {
		return err
	}
	unlock, err := b.lock("booth")
	if err != nil {
		return err
	}
	defer unlock()
	defer b.stop(killCtx)
	if err := b.start(ctx); err != nil {
		if ctx.Err() != nil { // interrupted during the start
			return nil
		}
		return err
	}
	b.summary()
	return b.watch(ctx)
}

// prepare determines the folder and checks the settings, before any step that takes long.
func (b *booth) prepare(ctx context.Context) (err error) {
	if err := errors.Join(b.flags.check(), b.kind.check()); err != nil {
		return err
	}
	if err := b.useCache(b.flags.CacheDir); err != nil {
		return err
	}
	return b.checkLoadgen(ctx)
}

// useCache determines the folder of all booths: dir, or by default one of the user's cache.
func (b *booth) useCache(dir string) (err error) {
	if dir == "" {
		if dir, err = local.CacheDir(); err != nil {
			return fmt.Errorf("%w: %w; set a directory with --cache-dir", errBadInput, err)
		}
	}
	b.cache, err = filepath.Abs(dir)
	return err
}

// lock keeps others with the same lock out of the folder until unlock is called. Real engines, whose lock is another
// one, run beside a booth.
func (b *booth) lock(name string) (unlock func(), err error) {
	unlock, ok, err := process.TryLock(filepath.Join(b.cache, name+".lock"))
	if err == nil && !ok {
		err = fmt.Errorf("%w: another booth is running in %s; stop it, or use a different --cache-dir", errBadInput, b.cache)
	}
	return unlock, err
}

func (b *booth) folder(name ...string) string {
	return filepath.Join(append([]string{b.cache, b.dir}, name...)...)
}

func (b *booth) log(name string) string { return b.folder("logs", name+".log") }

// setLogsAside renames the logs of the last run and removes older ones.
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

// start starts all parts and returns when they are ready. The clusters come first, because the other parts need their
// addresses. The load generator comes last, so that its measurements are not disturbed by other starts. With a build,
// start leaves Prometheus and Grafana to [booth.startBuilt].
func (b *booth) start(ctx context.Context) (err error) {
	if err := b.setLogsAside(); err != nil {
		return err
	}
	var found programs
	if b.flags.Build == "" {
		if found, err = b.findPrograms(ctx); err != nil {
			return err
		}
	}
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
	if err := b.takeAddresses(); err != nil {
		return err
	}
	if b.flags.Build == "" {
		err = b.startPrograms(ctx, found)
	} else {
		b.build, err = b.startBuild()
	}
	if err != nil {
		return err
	}
	if b.loadgen, err = b.newLoadgen(b.loadgenAt); err != nil {
		return err
	}
	return b.bring(ctx, b.loadgen)
}

// takeAddresses reserves the addresses of the load generator, Prometheus and Grafana.
func (b *booth) takeAddresses() (err error) {
	if b.loadgenAt, err = b.address("the load generator", b.flags.Port); err != nil {
		return err
	}
	if b.prometheusAt, err = b.address("Prometheus", b.flags.PrometheusPort); err != nil {
		return err
	}
	if b.flags.Grafana != "off" {
		b.grafanaAt, err = b.address("Grafana", b.flags.GrafanaPort)
	}
	return err
}

// programs are the programs of others that a booth starts.
type programs struct {
	prometheus string         // its path
	grafana    *local.Grafana // nil if there is none
}

// findPrograms finds or downloads Prometheus and Grafana.
func (b *booth) findPrograms(ctx context.Context) (found programs, err error) {
	if found.prometheus, err = b.findPrometheus(ctx); err != nil {
		return programs{}, err
	}
	found.grafana = b.findGrafana(ctx)
	return found, nil
}

// startPrograms starts Prometheus, and Grafana where it was found, and returns when they are ready.
func (b *booth) startPrograms(ctx context.Context, found programs) (err error) {
	if b.prometheus, err = b.newPrometheus(found.prometheus); err != nil {
		return err
	}
	parts := []part{b.prometheus}
	if found.grafana != nil {
		b.grafana, b.noGrafana = b.newGrafana(*found.grafana)
	}
	if b.grafana != nil {
		parts = append(parts, b.grafana)
	}
	if err := b.bring(ctx, parts...); err != nil {
		return err
	}
	if b.startPage != "" && b.grafana.Up() {
		if err := addPlaylist(ctx, b.grafana.url); err != nil {
			b.out.say("Grafana has no playlist of the booth: %v", err)
		}
	}
	return nil
}

// address reserves a free port and returns its address. user names the part in messages.
func (b *booth) address(user string, port int) (string, error) {
	port, err := b.ports.take(user, port, 1)
	return process.Loopback(port), err
}

// bring starts parts concurrently and returns when all of them are ready.
func (b *booth) bring(ctx context.Context, parts ...part) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(b.patience, startTimeout))
	defer cancel()
	b.parts = append(b.parts, parts...)
	var mu sync.Mutex
	var titles []string // of parts that are not ready yet
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

// watch supervises all parts until ctx ends, or until one of them keeps failing. With a build, it starts the built
// parts after it.
func (b *booth) watch(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	supervise := func(parts []part) {
		for _, p := range parts {
			group.Go(func() error { return p.watch(ctx) })
		}
	}
	running := len(b.parts)
	supervise(b.parts)
	if b.build != nil {
		group.Go(func() error {
			err := b.startBuilt(ctx)
			if err == nil {
				supervise(b.parts[running:])
			}
			return err
		})
	}
	return group.Wait()
}

// stop stops the load generator, then the other parts concurrently. When killCtx ends, they are killed.
func (b *booth) stop(killCtx context.Context) {
	if len(b.parts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(killCtx, stopTimeout)
	defer cancel()
	b.out.say("stopping")
	if b.loadgen != nil {
		b.loadgen.stop(ctx)
	}
	var wg sync.WaitGroup
	if b.build != nil {
		wg.Go(func() { b.build.stop(ctx) })
	}
	for _, p := range b.parts {
		wg.Go(func() { p.stop(ctx) })
	}
	wg.Wait()
}

// summary prints the addresses of all parts.
func (b *booth) summary() {
	heading, rows := b.backend.describe()
	if b.twin != nil {
		twinHeading, twinRows := b.twin.describe()
		heading += "\n" + twinHeading
		for _, row := range twinRows {
			rows = append(rows, [2]string{row[0] + ", twin", row[1]})
		}
	}
	load := fmt.Sprintf("runs %d concurrent conversations", b.flags.Concurrency)
	if !b.flags.Start {
		load = "waiting to be started"
	}
	prometheus := "http://" + b.prometheusAt
	if b.prometheus == nil {
		prometheus += " (being built)"
	}
	rows = append(rows,
		[2]string{"Prometheus", prometheus},
		[2]string{"load generator", b.loadgen.url + "/api/v1/status, metrics at /metrics; " + load},
		[2]string{"logs", b.folder("logs")})
	last := "Press Ctrl-C to stop."
	page := [2]string{"page", b.loadgen.url + "/ (the app without Grafana)"}
	rows = slices.Insert(rows, 0, page)
	switch {
	case b.prometheus == nil:
		last = "Prometheus and Grafana start when they are built; " + b.log("build") + " has the progress.\n" + last
	case b.grafana != nil && b.grafana.Up():
		text := b.grafana.url + b.startPage +
			" (start here; operating needs no login, administration is admin/admin)"
		first := [2]string{"Grafana", text}
		rows = slices.Insert(rows, 0, first)
	case b.noGrafana != nil:
		last = withoutGrafana(b.noGrafana) + "\n" + last
	}
	b.out.table(heading, rows, last)
}

// ports reserves free ports on loopback, each at most once.
type ports struct {
	taken []int
	say   func(format string, args ...any)
}

// take returns the first of n consecutive free ports at or above the wanted one, and reports a different port. user
// names the part in the message.
func (p *ports) take(user string, wanted, n int) (first int, err error) {
	for from := wanted; ; {
		free, err := process.FreePorts(from, n)
		if err != nil {
			return 0, err
		}
		consecutive := free[n-1]-free[0] == n-1
		isTaken := func(port int) bool { return slices.Contains(p.taken, port) }
		if consecutive && !slices.ContainsFunc(free, isTaken) {
			if free[0] != wanted {
				p.say("port %d is in use: %s uses %d", wanted, user, free[0])
			}
			p.taken = append(p.taken, free...)
			return free[0], nil
		}
		from = free[0] + 1
	}
}
