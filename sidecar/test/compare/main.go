// Command compare holds the same seeded conversations against the simulated
// cluster and against a real NVIDIA Dynamo with mock workers, and prints what came
// of it side by side, beside the recorded results.
//
// Both clusters are made from the same profile. What the router decides is
// bounded: hit rate and the share of turns that return to their worker must
// agree. Timing is not, since the mock workers know less of a GPU than the
// simulation does; the recorded results are the truth for it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/alecthomas/kong"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
)

// Exit codes: badInput for what the caller must change, failure for the rest, a
// bound that is not met included.
const (
	success  = 0
	failure  = 1
	badInput = 2
)

// options are the command line.
type options struct {
	Levels   []int      `default:"60,120" help:"Conversations to keep in progress."`
	Modes    []api.Mode `default:"kv,round_robin" enum:"kv,round_robin,least_loaded" help:"Modes of the router: ${enum}."`
	Seconds  int        `default:"180" help:"Seconds that are measured, in each run."`
	WarmUp   int        `default:"120" help:"Seconds before them, once all conversations have begun."`
	Seed     uint64     `default:"1" help:"Seed of the workload."`
	Together bool       `default:"true" negatable:"" help:"Run both clusters at the same time. One after the other takes twice as long, and leaves each the whole machine."`
	CacheDir string     `placeholder:"DIR" help:"Folder of Dynamo's installation. Without it, kvbooth in the user's cache folder."`
	Out      string     `placeholder:"DIR" help:"Folder to keep the logs and the turns of each run in."`
}

// Help is printed below the flags' list.
func (options) Help() string {
	return "Each run takes its cluster from a cold start. The bounds: hit rates within " + points(hitBound) +
		", shares of follow-up turns on the worker of the turn before within " + points(stayBound) +
		". One is broken where the difference is beyond it by more than chance may make up; shorter runs leave more to chance. " +
		"Where one is broken, or turns failed, the exit code is 1. Timing is explained and not bounded. " +
		"With a short warm-up most conversations are at the same turn, and the shares are those of that turn.\n\n" +
		"Needs bin/booth and bin/loadgen (go tool mage build). Other settings of the load generator come from its environment variables, such as LOADGEN_TURNS_MAX. " +
		"The first start installs Dynamo " + local.DynamoVersion + " (about 690 MB); " + local.VenvVariable + " names a virtual environment that has it already."
}

func (o options) check() error {
	for _, level := range o.Levels {
		if level < 1 || level > 1000 {
			return &api.FieldError{Field: "levels", Value: strconv.Itoa(level), Allowed: "1 to 1000"}
		}
	}
	if o.Seconds < 10 || o.Seconds > 3600 {
		return &api.FieldError{Field: "seconds", Value: strconv.Itoa(o.Seconds), Allowed: "10 to 3600"}
	}
	if o.WarmUp < 0 || o.WarmUp > 3600 {
		return &api.FieldError{Field: "warm-up", Value: strconv.Itoa(o.WarmUp), Allowed: "0 to 3600"}
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program; what it returns is its exit code. When ctx ends it stops
// what it has started.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	exit := -1
	parser := kong.Must(&o, kong.Name("compare"), kong.Writers(stdout, stderr), kong.Exit(func(code int) { exit = code }),
		kong.Description("Compares the simulated cluster with a real NVIDIA Dynamo under the same seeded workload."))
	_, err := parser.Parse(args)
	if exit >= 0 { // the help was printed
		return exit
	}
	if err == nil {
		err = o.check()
	}
	if err != nil {
		fmt.Fprintln(stderr, "compare:", err)
		return badInput
	}
	err = compareAll(ctx, o, stdout, stderr)
	switch {
	case err == nil:
		return success
	case ctx.Err() != nil:
		err = errors.New("interrupted")
	}
	fmt.Fprintln(stderr, "compare:", err)
	return failure
}

// compareAll measures and prints one setting after the other. Its error names
// the bounds that are not met.
func compareAll(ctx context.Context, o options, stdout, stderr io.Writer) error {
	clusters, err := prepare(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer clusters.remove()
	settings := plan(o)
	sides := []side{clusters.simulated(), clusters.dynamo()}
	m := newMeasurer(o, clusters, len(settings), len(sides), stderr)
	fmt.Fprint(stdout, preamble(o, clusters.profile))
	var found findings
	for _, s := range settings {
		p, err := m.pair(ctx, s, sides)
		if err != nil {
			return err
		}
		fmt.Fprint(stdout, p.table(recorded(clusters.profile, s)))
		found.add(p)
	}
	return found.close(stdout)
}

// setting is what one pair of runs has in common.
type setting struct {
	level int
	mode  api.Mode
}

func (s setting) String() string { return fmt.Sprintf("%d conversations, %s", s.level, s.mode) }

func plan(o options) (all []setting) {
	for _, level := range o.Levels {
		for _, mode := range o.Modes {
			all = append(all, setting{level, mode})
		}
	}
	return all
}
