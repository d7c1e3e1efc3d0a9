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

// Generator is a load generator without its API: store, catalogue, texts, lanes and view are the
// real ones. Lanes are added, then it is run. What it has stored when it ends is there for another
// one in the same folder, as after a kill.
type Generator struct {
	Context   context.Context // of all that runs in it
	Log       *slog.Logger    // warnings, into the test's output
	Store     *store.Store
	Catalogue *lane.Catalogue
	Lanes     []*lane.Lane // main, and twin where there are two
	View      *lane.View   // once it runs

	t      testing.TB
	texts  *corpus.Corpus
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// NewGenerator makes one without lanes, which keeps what it stores in a folder. [Generator.End]
// ends it.
func NewGenerator(t testing.TB, dir string) *Generator {
	t.Helper()
	g := &Generator{t: t, Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))}
	g.Context, g.cancel = context.WithCancel(context.Background())
	var err error
	g.Store, err = store.Open(g.Context, store.Options{Dir: dir, Owner: "127.0.0.1:1", Log: g.Log})
	g.must(err)
	g.texts, err = corpus.Builtin()
	g.must(err)
	g.Catalogue, err = lane.NewCatalogue(g.Context, lane.Process{
		Version: "test", Store: g.Store, Log: g.Log,
		Health: func(time.Time) api.ClientHealth { return api.ClientHealth{Verdict: api.VerdictFine} },
	}, api.Settings{
		SLO: api.SLO{TTFT: .6, TPOT: .06}, Slider: api.Slider{Min: 20, Max: 180, Increment: 20}, MaxConcurrency: 200, Vendor: api.VendorNeutral,
	})
	g.must(err)
	return g
}

// Folder is one for what a [Generator] stores, which goes with the test. It is in memory where the
// machine has a file system for that: no such test is about a disk, whose time is not virtual.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "kvbooth-test-") //nolint:usetesting // which is on the disk
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

// Cluster makes a cluster that ends with the generator.
func (g *Generator) Cluster(o Options) *Cluster {
	g.t.Helper()
	c, err := New(o)
	g.must(err)
	g.Go(c.Run)
	return c
}

// Lane adds a lane against a cluster: main, and then twin. What the lane is made of can be
// changed before.
func (g *Generator) Lane(c *Cluster, settings workload.Settings, changes ...func(*lane.Options)) *lane.Lane {
	g.t.Helper()
	name := []string{api.DefaultLane, api.TwinLane}[len(g.Lanes)]
	last, err := g.Store.MaxStep(g.Context, name)
	g.must(err)
	o := lane.Options{
		Name: name, Client: c, Corpus: g.texts, Questioner: corpus.BuiltinQuestioner{}, Settings: settings, Seed: 7,
		Driver: c, Mode: c.Mode(), LastStep: last,
		Cluster: func() api.Cluster { return api.Cluster{Engines: c.Engines()} },
	}
	for _, change := range changes {
		change(&o)
	}
	l := lane.New(g.Context, g.Catalogue, o)
	g.Lanes = append(g.Lanes, l)
	return l
}

func (g *Generator) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// Run lets the view of all lanes live until the end.
func (g *Generator) Run() {
	g.View = lane.NewView(g.Catalogue)
	g.Go(g.View.Run)
}

// Go lets something more live until the end, which waits for it.
func (g *Generator) Go(run func(context.Context)) { g.wg.Go(func() { run(g.Context) }) }

// End ends all of it; what has not been stored is lost.
func (g *Generator) End() {
	g.t.Helper()
	g.cancel()
	g.wg.Wait()
	g.must(g.Store.Close())
}
