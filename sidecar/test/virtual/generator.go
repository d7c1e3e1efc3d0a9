package virtual

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/store"
	"kvbooth/sidecar/loadgen/workload"
)

// Generator is a load generator without its API: store, catalog, texts, lanes and view are the real ones. Lanes are
// added before it runs. After it has ended, another generator can use its directory, as after a kill.
type Generator struct {
	Context context.Context // of everything that runs in it
	Log     *slog.Logger    // writes warnings into the test's output
	Store   *store.Store
	Catalog *lane.Catalog
	Lanes   []*lane.Lane // main, and twin if there are two
	View    *lane.View   // while it runs

	t      testing.TB
	texts  *corpus.Corpus
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// NewGenerator returns a generator without lanes, which stores its data in a directory. [Generator.End] ends it.
func NewGenerator(t testing.TB, dir string) *Generator {
	t.Helper()
	g := &Generator{t: t, Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))}
	g.Context, g.cancel = context.WithCancel(context.Background())
	var err error
	g.Store, err = store.Open(g.Context, store.Options{Dir: dir, Owner: "127.0.0.1:1", Log: g.Log})
	g.must(err)
	g.texts, err = corpus.Builtin()
	g.must(err)
	g.Catalog, err = lane.NewCatalog(g.Context, lane.Process{
		Version: "test", Store: g.Store, Log: g.Log,
		Health: func(time.Time) api.ClientHealth { return api.ClientHealth{Verdict: api.VerdictFine} },
	}, api.Settings{
		SLO: api.SLO{TTFT: .6, TPOT: .06}, Slider: api.Slider{
			Min: 20, Max: 180, Increment: 20,
		}, MaxConcurrency: 200, Vendor: api.VendorNeutral,
	})
	g.must(err)
	return g
}

// Folder returns a temporary directory for the data of a [Generator]. It is in memory if the machine has such a file
// system, since the time of a disk is not virtual.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "kvbooth-test-") //nolint:usetesting // t.TempDir is on the disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Cluster returns a new cluster that ends with the generator.
func (g *Generator) Cluster(o Options) *Cluster {
	g.t.Helper()
	c, err := New(o)
	g.must(err)
	g.Go(c.Run)
	return c
}

// Lane adds a lane with a cluster: first main, then twin. Changes modify the lane's options.
func (g *Generator) Lane(c *Cluster, settings workload.Settings, changes ...func(*lane.Options)) *lane.Lane {
	g.t.Helper()
	name := []string{api.DefaultLane, api.TwinLane}[len(g.Lanes)]
	last, err := g.Store.MaxStep(g.Context, name)
	g.must(err)
	o := lane.Options{
		Name: name, Client: c, Corpus: g.texts, Questioner: corpus.BuiltinQuestioner{}, Settings: settings, Seed: 7,
		Driver: c, Mode: c.Mode(), LastStep: last, Cluster: func() api.Cluster { return api.Cluster{Engines: c.Engines()} },
	}
	for _, change := range changes {
		change(&o)
	}
	l := lane.New(g.Context, g.Catalog, o)
	g.Lanes = append(g.Lanes, l)
	return l
}

func (g *Generator) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// Run runs the view of all lanes until the generator ends.
func (g *Generator) Run() {
	g.View = lane.NewView(g.Catalog)
	g.Go(g.View.Run)
}

// Go runs a function until the generator ends, which waits for it.
func (g *Generator) Go(run func(context.Context)) { g.wg.Go(func() { run(g.Context) }) }

// End ends the generator; data that is not stored is lost.
func (g *Generator) End() {
	g.t.Helper()
	g.cancel()
	g.wg.Wait()
	g.must(g.Store.Close())
}
