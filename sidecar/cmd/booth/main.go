// Command booth starts a complete booth on this machine: a cluster (simulated, or a real Dynamo with mock workers),
// Prometheus, the load generator and Grafana, each in its own processes, so that the cost of one is not measured as the
// delay of another. Some of them are this program with another command. A child that ends is restarted; this process
// ends all of its children. With --build, the cluster and the load generator start before the build of the rest.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/study"
)

// Exit codes: badInput for errors that the caller can correct, failure for others.
const (
	success  = 0
	failure  = 1
	badInput = 2
)

type commands struct {
	Demo       demoCmd       `cmd:"" help:"Run the complete booth with a simulated Dynamo cluster: cluster, Prometheus, load generator and Grafana."`
	Dynamo     dynamoCmd     `cmd:"" help:"Run the complete booth with a real NVIDIA Dynamo and mock workers. Needs Python 3.10 or later."`
	Cluster    clusterCmd    `cmd:"" help:"Run only the simulated cluster."`
	Arena      arenaCmd      `cmd:"" help:"Compare routers in front of the same engines, simulated or your own: installs and starts each, runs a trial of all of them, and writes their ranking."`
	Engines    enginesCmd    `cmd:"" help:"Run real vLLM engines on the CPU, with a random model: something to try routers on without a GPU."`
	Route      routeCmd      `cmd:"" help:"Pass requests on to engines in turn: the plain round-robin that an arena compares routers with."`
	Simulate   simulateCmd   `cmd:"" help:"Simulate a workload on the simulated cluster, for several concurrency levels, router modes and seeds, faster than real time."`
	Calibrate  calibrateCmd  `cmd:"" help:"Fit the simulated cluster's constants to recorded results, for example from your own cluster."`
	Prometheus prometheusCmd `cmd:"" hidden:"" help:"Removed."`
	Doctor     doctorCmd     `cmd:"" help:"Check a booth and its cluster before an event: reports problems and how to fix them. Changes nothing."`
	Manifest   manifestCmd   `cmd:"" help:"Check the objects that helm template prints: how many GPUs they request, and whether a Kubernetes cluster accepts their DynamoGraphDeployments. Changes nothing."`
	Health     healthCmd     `cmd:"" help:"Check a health URL, for use as a container health check."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
}

type versionCmd struct{}

func (versionCmd) run(_, _ context.Context, stdout, _ io.Writer) error {
	_, err := fmt.Fprintln(stdout, "booth", api.ProgramVersion())
	return err
}

// command is a command of the command line. It runs until ctx ends and then stops its processes. When killCtx ends
// too, it kills them.
type command interface {
	run(ctx, killCtx context.Context, stdout, stderr io.Writer) error
}

// gcPercent lets the heap grow by half between two collections. A booth shares the machine with its other parts, so
// memory matters more than the small extra time.
const gcPercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, killCtx := signaled()
	os.Exit(run(ctx, killCtx, os.Args[1:], os.Stdout, os.Stderr))
}

// signaled returns a context that ends at the first stop signal, and one that ends at the second.
func signaled() (ctx, killCtx context.Context) {
	ctx, cancel := context.WithCancel(context.Background())
	killCtx, kill := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-signals
		cancel()
		<-signals
		kill()
	}()
	return ctx, killCtx
}

// run runs the program and returns its exit code. When ctx ends it stops its processes, and when killCtx ends too it
// kills them.
func run(ctx, killCtx context.Context, args []string, stdout, stderr io.Writer) int {
	stdout = api.PrintableWriter(stdout)
	var c commands
	exit := -1
	exitTo := func(code int) { exit = code }
	parser := kong.Must(&c, kong.Name("booth"), kong.Writers(stdout, stderr), kong.Exit(exitTo),
		variables(), kong.PostBuild(explainWorkload), kong.WithHyphenPrefixedParameters(true),
		kong.Description("Starts a complete booth on this machine. Ctrl-C stops it; a second Ctrl-C kills it."))
	if len(args) > 0 && args[0] == "help" { // as of loadgen
		args = append(slices.Clone(args[1:]), "--help")
	}
	parsed, err := parser.Parse(args)
	if exit >= 0 { // the help was printed
		return exit
	}
	if err != nil {
		fmt.Fprintln(api.PrintableWriter(stderr), "booth:", err)
		return badInput
	}
	err = parsed.Selected().Target.Addr().Interface().(command).run(ctx, killCtx, stdout, stderr)
	var field *api.FieldError
	var child exitCode
	switch {
	case err == nil:
		return success
	case errors.As(err, &child):
		return child.code
	case errors.As(err, &field), errors.Is(err, errBadInput):
		fmt.Fprintln(api.PrintableWriter(stderr), "booth:", err)
		return badInput
	}
	fmt.Fprintln(api.PrintableWriter(stderr), "booth:", err)
	return failure
}

// variables are used in the help of flags.
func variables() kong.Vars {
	return kong.Vars{
		"profiles": strings.Join(sim.ProfileNames(), ", "), "grafana": local.GrafanaRelease,
		"namespace": namespace, "pod": workerPod, "presets": strings.Join(study.PresetNames, ", "),
		"baselines": strings.Join(builtinBaselines(), ", "), "cores": cores(),
		"most_engines": strconv.Itoa(mostEngines),
		"router_modes": strings.ReplaceAll(strings.Join(local.RouterModes, ","), "-", "_"),
	}
}

// explainWorkload begins the help of the flags that are settings of a workload with the setting's own.
func explainWorkload(k *kong.Kong) error {
	helps := map[string]string{}
	for _, s := range api.WorkloadSettings {
		helps[strings.NewReplacer("_", "-", ".", "-").Replace(s.Key)] = s.Help
	}
	for _, command := range k.Model.Children {
		for _, flag := range command.Flags {
			if flag.Group != nil && flag.Group.Key == "Workload" {
				flag.Help = strings.TrimSpace(helps[flag.Name] + " " + flag.Help)
			}
			if alias := flag.Tag.Get("alias"); alias != "" {
				flag.Aliases = append(flag.Aliases, alias)
			}
		}
	}
	return nil
}

// errBadInput is in the chain of errors that the caller can correct.
var errBadInput = errors.New("nothing was started")
