//go:build mage

// Targets of KV Booth. Run "go tool mage -l" for the list.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/build"
	"github.com/grafana/grafana-plugin-sdk-go/build/buildinfo"
	"github.com/magefile/mage/mg"

	"kvbooth/internal/browser"
	"kvbooth/internal/chart"
	"kvbooth/internal/frontend"
	"kvbooth/internal/kube"
	"kvbooth/internal/pack"
	"kvbooth/internal/suite"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
)

// lintModule keeps golangci-lint and all that it needs out of our own go.mod.
const lintModule = "tools/golangci-lint/go.mod"

// Test checks and tests everything, and prints how long each part took.
func Test(ctx context.Context) error {
	return run(ctx,
		suite.Check("vet", vet),
		suite.Check("lint", Lint),
		suite.Check("chart", helmProgram),
		suite.Check("NATS server", natsServer),
		suite.Part{Name: "tests", Run: tests},
		suite.Part{Name: "intervals", Run: intervals},
		suite.Part{Name: "fuzz", Run: fuzz(5_000)},
		suite.Part{Name: "front end", Run: frontend.Check},
		suite.Part{Name: "statistics", Run: statistics, Beside: true}, // on one core, which the part before it leaves idle
		suite.Part{Name: "package", Run: packed},
		suite.Part{Name: "plugin validator", Run: validated},
		suite.Part{Name: "whole booths", Run: wholeBooths},
		suite.Part{Name: "torture", Run: torture},
		suite.Part{Name: "members", Run: killedMembers},
		suite.Part{Name: "real Dynamo", Run: realDynamo},
		suite.Part{Name: "Kubernetes", Run: onKubernetes},
		suite.Part{Name: "OpenAI client", Run: peers("-run=^TestOpenAIClient$")},
		suite.Part{Name: "page", Run: onPage()},
		// Not beside the page: beside each other they gained a tenth, and had half the machine each. Grafana withholds what is
		// live from the panels of a page that is behind by 50 ms.
		suite.Part{Name: "Grafana", Run: inGrafana()},
	)
}

// Check vets, lints and runs the unit tests affected by a change, without race detector and browser: run it after each change.
func Check(ctx context.Context) error {
	return run(ctx,
		suite.Check("vet", vet),
		suite.Check("lint", Lint),
		suite.Check("chart", helmProgram),
		suite.Check("NATS server", natsServer),
		suite.Part{Name: "tests", Run: func(ctx context.Context) (suite.Count, error) { return suite.GoTest(ctx, suite.Brief, "./...") }},
		suite.Part{Name: "front end", Run: frontend.CheckChanged, Beside: true},
	)
}

// Lint runs golangci-lint, which is built on first use.
func Lint(ctx context.Context) error {
	fmt.Println("golangci-lint (built on first use, which takes a minute or two)")
	return golangciLint(ctx, "run")
}

// Format formats all Go files as lint requires.
func Format(ctx context.Context) error { return golangciLint(ctx, "fmt") }

// Build builds the Grafana app into dist/ and the load generator's page, if Node.js is installed, and the programs into bin/, including the NATS server for members of a load generator.
func Build(ctx context.Context) error {
	compiler := &suite.Compiler{Out: os.Stderr}
	// The load generator embeds the page, which is built meanwhile: all else that it
	// is made of is compiled now.
	outputs := [][2]string{{program("booth"), "./sidecar/cmd/booth"}, {os.DevNull, "./sidecar/loadgen/..."}}
	steps := []suite.Step{
		{Name: "Go programs", Far: compiler.Far, Run: func(ctx context.Context) error { return compiler.BuildAll(ctx, outputs...) }},
		natsStep(program("nats-server")),
	}
	switch _, err := browser.FindNode(ctx); {
	case err == nil:
		outputs = append(outputs, [2]string{filepath.Join("dist", local.AppBackend()), "./pkg"})
		steps = append(steps, suite.Step{Name: "front end", Far: frontend.Far, Run: frontend.Build})
	case errors.Is(err, browser.ErrNoNode):
		fmt.Printf("not building the Grafana app and the load generator's page: %v or later is required; everything else works without them\n", err)
	default:
		return err
	}
	fmt.Println("building the booth and the load generator (takes some minutes the first time, since it includes Prometheus)")
	if err := suite.Together(ctx, os.Stdout, steps...); err != nil {
		return err
	}
	return compiler.BuildAll(ctx, [2]string{program("loadgen"), "./sidecar/cmd/loadgen"})
}

// Package packs the Grafana app for six systems, into a zip archive and a folder in bin/package.
func Package(ctx context.Context) error {
	if err := frontend.Build(ctx); err != nil {
		return err
	}
	_, err := packApp(ctx, pack.Dir, pack.Platforms...)
	return err
}

// packApp packs what is in dist with backends that the SDK's own build makes.
func packApp(ctx context.Context, dir string, platforms ...pack.Platform) (pack.Archive, error) {
	date, err := pack.Date(ctx, time.Now())
	if err != nil {
		return pack.Archive{}, err
	}
	flags, err := output(ctx, "go", "env", "GOFLAGS")
	if err != nil {
		return pack.Archive{}, err
	}
	return pack.App(pack.Options{
		Dist: "dist", Examples: "provisioning", Dir: dir, Date: date, Platforms: platforms, Out: os.Stdout,
		Build: func(b pack.Backend) error { return buildBackend(b, flags) },
	})
}

// buildBackend builds a backend that is the same wherever it is built: without this
// machine's paths, and with the archive's date instead of the clock's.
func buildBackend(b pack.Backend, flags string) error {
	err := build.SetBeforeBuildCallback(func(c build.Config) (build.Config, error) {
		c.OutputBinaryPath, c.CustomVars = b.Dir, map[string]string{}
		buildinfo.Info{Time: b.Date.UnixMilli(), PluginID: b.ID, Version: b.Version}.AppendFlags(c.CustomVars)
		if c.Env != nil { // it is nil where the list of sources is written
			c.Env["GOFLAGS"] = strings.TrimSpace(flags + " -trimpath -buildvcs=false")
		}
		return c, nil
	})
	if err != nil {
		return err
	}
	return build.Build{}.Custom(b.OS, b.Arch)
}

// Docs regenerates the computed documents, docs/calibration.md and docs/simulation.md with its figures; it takes some minutes.
func Docs(ctx context.Context) error {
	return errors.Join(
		suite.Command(ctx, "go", "run", "./sidecar/test/calibration"),
		suite.Command(ctx, "go", "run", "./sidecar/test/simulation"),
	)
}

// Pictures takes the screenshots for README and docs, from a demo with one lane and one with two: about ten minutes on an idle machine.
func Pictures(ctx context.Context) error {
	return run(ctx, suite.Part{Name: "pictures", Run: func(ctx context.Context) (suite.Count, error) {
		return withBuild(ctx, "-timeout=1h", "-tags=pictures", "./sidecar/test/pictures")
	}})
}

// Bench measures the load generator against a server with known token times, a whole booth, simulations, a trace of a million requests, what its screens cost a browser, and how long a trial takes to decide.
func Bench(ctx context.Context) error {
	if err := buildOnce(ctx); err != nil {
		return err
	}
	if err := suite.Command(ctx, "go", "run", "./sidecar/test/bench"); err != nil {
		return err
	}
	if err := suite.Command(ctx, "go", "test", "-run=^$", "-bench=Mooncake", "-benchtime=1x", "./sidecar/loadgen/shadow"); err != nil {
		return err
	}
	return run(ctx,
		suite.Part{Name: "page", Run: measured("page/first,page/memory", onPage("-run=TestPage$"))},
		suite.Part{Name: "Grafana", Run: measured("browser/cost", inGrafana("-run=TestBooth$"))},
		suite.Part{Name: "time to verdict", Run: measured("", proofs)},
	)
}

// statistics tests those of trials, runs and capacity searches against the simulated
// cluster, whose truth is known.
func statistics(ctx context.Context) (suite.Count, error) {
	return suite.GoTest(ctx, suite.Brief, "-timeout=20m", "-cpu=1", "-tags=proof", "./sidecar/test/proof")
}

// proofs tests the statistics of trials at length, and prints the minutes to the verdict.
func proofs(ctx context.Context) (suite.Count, error) {
	return suite.GoTest(ctx, suite.Live, "-count=1", "-timeout=2h", "-v", "-tags=proof", "./sidecar/test/proof")
}

// measured has a part in a browser run these journeys alone, for as long as their
// figures need. Each is held against its limit, which asks for a quiet machine.
func measured(journeys string, part func(context.Context) (suite.Count, error)) func(context.Context) (suite.Count, error) {
	return func(ctx context.Context) (suite.Count, error) {
		if err := errors.Join(os.Setenv("BENCH", "1"), os.Setenv("BOOTHTEST_JOURNEYS", journeys)); err != nil {
			return suite.Count{}, err
		}
		return part(ctx)
	}
}

// Torture subjects the load generator to hostile peers, crowds and crashes, and prints the effects: about 15 minutes.
func Torture(ctx context.Context) error {
	if err := os.Setenv("TORTURE", "1"); err != nil {
		return err
	}
	return run(ctx, suite.Part{Name: "torture", Run: torture})
}

// Members kills members, coordinator and NATS server under 4,000 conversations, 20 times each, and prints how long each recovery takes: about 10 minutes.
func Members(ctx context.Context) error {
	if err := errors.Join(os.Setenv("MEMBERS_KILLS", "20"), os.Setenv("MEMBERS_CONVERSATIONS", "4000")); err != nil {
		return err
	}
	return run(ctx, suite.Part{Name: "members", Run: killedMembers})
}

// Compare compares the demo with the core of its simulation, and the core with a real Dynamo: about 30 minutes on an idle machine.
func Compare(ctx context.Context) error {
	return run(ctx, suite.Part{Name: "compare", Run: func(ctx context.Context) (suite.Count, error) {
		return withBuild(ctx, "-timeout=3h", "-parallel=3", "-tags=compare", "./sidecar/test/compare")
	}})
}

// Kube builds a Kubernetes control plane for the Kubernetes tests, once: 5 to 12 minutes, 140 MB in the cache directory.
func Kube(ctx context.Context) error {
	program, err := kube.Build(ctx, ".", os.Stdout)
	if err != nil {
		return err
	}
	fmt.Println("the control plane is", program)
	return nil
}

// Deploy are the targets for the Helm chart. FILE is a values file, as a path or a name in the chart's directory, or several separated by commas; CONTEXT is a context of your kubeconfig.
type Deploy mg.Namespace

// Render prints the objects that the chart creates from the values FILE; it needs no Kubernetes cluster. -release and -namespace set their names (both default to kvbooth).
func (Deploy) Render(ctx context.Context, file string, release, namespace *string) error {
	return deploy(ctx, append([]string{"render"}, append(chart.Files(".", file), where(release, namespace, nil)...)...)...)
}

// Apply shows what installing or upgrading with the values FILE in CONTEXT would create, change and delete, and how many GPUs it requests. With -yes it applies the changes and waits until everything is ready, for half an hour or -timeout. With -takeOver it overwrites fields set by anyone but the load generator.
func (Deploy) Apply(ctx context.Context, file, context string, yes, takeOver *bool, timeout *time.Duration, release, namespace, kubeconfig *string) error {
	args := []string{"plan"}
	if yes != nil && *yes {
		args = []string{"apply"}
		if timeout != nil {
			args = append(args, "--timeout="+timeout.String())
		}
	}
	if takeOver != nil && *takeOver {
		args = append(args, "--take-over")
	}
	args = append(append(args, "--context="+context), chart.Files(".", file)...)
	return deploy(ctx, append(args, where(release, namespace, kubeconfig)...)...)
}

// Status shows what is ready and what is missing in the release in CONTEXT.
func (Deploy) Status(ctx context.Context, context string, release, namespace, kubeconfig *string) error {
	return deploy(ctx, append([]string{"status", "--context=" + context}, where(release, namespace, kubeconfig)...)...)
}

// Delete shows what deleting the release in CONTEXT would remove and keep. With -yes it deletes it.
func (Deploy) Delete(ctx context.Context, context string, yes *bool, release, namespace, kubeconfig *string) error {
	args := []string{"delete", "--context=" + context}
	if yes != nil && *yes {
		args = append(args, "--yes")
	}
	return deploy(ctx, append(args, where(release, namespace, kubeconfig)...)...)
}

// where are the flags of what is not given as an argument.
func where(release, namespace, kubeconfig *string) (flags []string) {
	for flag, value := range map[string]*string{"release": release, "namespace": namespace, "kubeconfig": kubeconfig} {
		if value != nil {
			flags = append(flags, "--"+flag+"="+*value)
		}
	}
	return flags
}

// deploy lets the chart's program take the place of this process.
func deploy(ctx context.Context, args ...string) error {
	program, err := chart.Build(ctx, ".", os.Stderr)
	if err != nil {
		return err
	}
	return become(program, args...)
}

// helmProgram builds the chart's program, which tests need, and vets and tests it: two minutes the first time.
func helmProgram(ctx context.Context) error {
	if _, err := chart.Build(ctx, ".", os.Stdout); err != nil {
		return err
	}
	return errors.Join(
		suite.Command(ctx, "go", "vet", "-C=tools/helm", "./..."),
		suite.Command(ctx, "go", "test", "-C=tools/helm", "./..."),
	)
}

// natsStep builds the NATS server that members on one machine meet on.
func natsStep(to string) suite.Step {
	compiler := &suite.Compiler{Out: os.Stderr, Dir: filepath.Join("tools", "nats"), Env: []string{"CGO_ENABLED=0"}, Flags: []string{"-trimpath", "-ldflags=-s -w"}}
	return suite.Step{Name: "NATS server", Far: compiler.Far, Run: func(ctx context.Context) error {
		path, err := filepath.Abs(to)
		if err != nil {
			return err
		}
		return compiler.BuildAll(ctx, [2]string{path, "github.com/nats-io/nats-server/v2"})
	}}
}

// natsServer builds the NATS server, and tells tests where it is.
func natsServer(ctx context.Context) error {
	path, err := filepath.Abs(program("nats-server"))
	if err != nil {
		return err
	}
	return errors.Join(os.Setenv(process.NATSVariable, path), suite.Together(ctx, os.Stdout, natsStep(path)))
}

// Peers measures the simulated cluster with AIPerf, GuideLLM and the OpenAI client; the first time, pip downloads 7 GB for them.
func Peers(ctx context.Context) error {
	return run(ctx, suite.Part{Name: "peers", Run: peers("-timeout=1h")})
}

// Fuzz runs every fuzz test with 200,000 inputs, or as many as FUZZ_INPUTS says.
func Fuzz(ctx context.Context) error {
	inputs := 200_000
	if text := os.Getenv("FUZZ_INPUTS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("FUZZ_INPUTS: %q is not a positive whole number", text)
		}
		inputs = n
	}
	return run(ctx, suite.Part{Name: "fuzz", Run: fuzz(inputs)})
}

// Demo starts the complete booth with a simulated Dynamo cluster; Ctrl-C stops it.
func Demo(ctx context.Context) error {
	if err := Build(ctx); err != nil {
		return err
	}
	return become(program("booth"), "demo")
}

// Dynamo starts the complete booth with a real Dynamo and mock workers; Ctrl-C stops it.
func Dynamo(ctx context.Context) error {
	if err := Build(ctx); err != nil {
		return err
	}
	return become(program("booth"), "dynamo")
}

// run ends the process where the suite fails, since Mage would print the error
// once more, behind the line with the counts.
func run(ctx context.Context, parts ...suite.Part) error {
	if err := suite.Run(ctx, os.Stdout, parts...); err != nil {
		os.Exit(1)
	}
	return nil
}

func golangciLint(ctx context.Context, command string) error {
	return suite.Command(ctx, "go", "tool", "-modfile="+lintModule, "golangci-lint", command)
}

// vet covers the files behind our build tags, too.
func vet(ctx context.Context) error {
	return suite.Command(ctx, "go", "vet", "-tags=mage,booth,compare,dynamo,grafana,kubernetes,members,page,peers,pictures,proof,torture", "./...")
}

// tests runs the tests of every package, with the race detector where there is
// the C compiler that it needs.
func tests(ctx context.Context) (suite.Count, error) {
	args := []string{"./..."}
	cgo, err := output(ctx, "go", "env", "CGO_ENABLED")
	if err != nil {
		return suite.Count{}, err
	}
	if cgo == "1" {
		args = append(args, "-race")
	} else {
		fmt.Println("race detector disabled: no C compiler")
	}
	return suite.GoTest(ctx, suite.Brief, args...)
}

func fuzz(inputs int) func(context.Context) (suite.Count, error) {
	return func(ctx context.Context) (suite.Count, error) { return suite.Fuzz(ctx, inputs) }
}

// intervals tests the statistics, the workload and the live cluster against the simulated one: hours of virtual time
// on one goroutine each, which the race detector would only make slow.
func intervals(ctx context.Context) (suite.Count, error) {
	return suite.GoTest(ctx, suite.Brief, "./sidecar/test/intervals", "./sidecar/test/openings", "./sidecar/test/compare", "./sidecar/test/sweeps", "./sidecar/test/pairs", "./sidecar/test/shadow", "./sidecar/test/twins")
}

// realDynamo tests against a real Dynamo, which it installs first if need be.
func realDynamo(ctx context.Context) (suite.Count, error) {
	if _, _, err := local.FindPython(ctx); err != nil {
		fmt.Println(err)
		return suite.Count{}, suite.Skipped("no Python 3.10 or later")
	}
	return suite.GoTest(ctx, suite.Live, "-timeout=20m", "-tags=dynamo", "./sidecar/test/dynamo")
}

// onKubernetes tests against a Kubernetes control plane, where [Kube] has built one.
func onKubernetes(ctx context.Context) (suite.Count, error) {
	if _, err := kube.Find("."); errors.Is(err, kube.ErrNotBuilt) {
		return suite.Count{}, suite.Skipped("run go tool mage kube")
	}
	return suite.GoTest(ctx, suite.Live, "-count=1", "-timeout=10m", "-tags=kubernetes", "./sidecar/test/kubernetes/...")
}

// peers holds the simulated cluster against clients that others wrote, where there
// is a Python and what they need is installed or can be.
func peers(flags ...string) func(context.Context) (suite.Count, error) {
	return func(ctx context.Context) (suite.Count, error) {
		return suite.GoTest(ctx, suite.Live, append(flags, "-tags=peers", "./sidecar/test/peers")...)
	}
}

// everywhere is the system that Grafana's catalogue asks a backend for.
var everywhere = pack.Platform{OS: "linux", Arch: "amd64"}

// packed packs the app with one backend, which has to do for a test: six take minutes.
func packed(ctx context.Context) (suite.Count, error) {
	_, err := packOne(ctx)
	if err != nil {
		return suite.Count{}, err
	}
	return suite.Count{Passed: 1}, nil
}

// packOne packs the app with one backend.
func packOne(ctx context.Context) (pack.Archive, error) {
	err := frontend.Build(ctx)
	if errors.Is(err, browser.ErrNoNode) {
		return pack.Archive{}, suite.Skipped(err.Error())
	}
	if err != nil {
		return pack.Archive{}, err
	}
	return packApp(ctx, filepath.Join(pack.Dir, "test"), everywhere)
}

// validated has Grafana's plugin validator look at the app, where it is installed.
func validated(ctx context.Context) (suite.Count, error) {
	validator, err := pack.FindValidator()
	if errors.Is(err, pack.ErrNoValidator) {
		return suite.Count{}, suite.Skipped(err.Error())
	}
	if err != nil {
		return suite.Count{}, err
	}
	archive, err := packOne(ctx)
	if err != nil {
		return suite.Count{}, err
	}
	analyzers, err := pack.Validate(ctx, os.Stdout, validator, pack.ValidatorConfig, archive.Path)
	if err != nil {
		return suite.Count{}, err
	}
	return suite.Count{Passed: analyzers}, nil
}

// wholeBooths tests booths of real processes, with the dashboards' queries on one of them. The other tests
// of these packages have run before.
func wholeBooths(ctx context.Context) (suite.Count, error) {
	return withBuild(ctx, "-tags=booth", "-run=^(TestEndUserDies|TestEndToEnd|TestTwinEndToEnd|TestQueriesReturnData|TestKilledProcess|TestSimulation|TestSimulationLeavesNoProcess)$", "./sidecar/cmd/booth", "./sidecar/cmd/loadgen", "./dashboards", "./sidecar/test/sweeps")
}

// torture tests the load generator under faults: under a selection of them, for
// seconds, unless [Torture] asks for more.
func torture(ctx context.Context) (suite.Count, error) {
	return withBuild(ctx, "-timeout=30m", "-tags=torture", "./sidecar/test/torture")
}

// killedMembers kills the processes of a load generator with members: a few times, unless
// [Members] asks for more.
func killedMembers(ctx context.Context) (suite.Count, error) {
	if err := buildOnce(ctx); err != nil {
		return suite.Count{}, err
	}
	if _, err := process.FindNATS("bin"); errors.Is(err, process.ErrNoNATS) {
		return suite.Count{}, suite.Skipped("no nats-server")
	}
	return suite.GoTest(ctx, suite.Live, "-count=1", "-timeout=1h", "-tags=members", "./sidecar/test/members")
}

// onPage tests the load generator's own page in a real browser, where one is found.
func onPage(flags ...string) func(context.Context) (suite.Count, error) {
	return func(ctx context.Context) (suite.Count, error) {
		return withBuild(ctx, append(flags, "-timeout=30m", "-tags=page", "./sidecar/test/page")...)
	}
}

// inGrafana tests the app in a real Grafana with a real browser, where both are found.
func inGrafana(flags ...string) func(context.Context) (suite.Count, error) {
	return func(ctx context.Context) (suite.Count, error) {
		if _, err := local.FindGrafana(ctx); errors.Is(err, local.ErrNoGrafana) {
			return suite.Count{}, suite.Skipped("no Grafana")
		}
		return withBuild(ctx, append(flags, "-timeout=40m", "-tags=grafana,kubernetes", "./sidecar/test/grafana")...)
	}
}

// built is the build that parts beside each other share.
var built struct {
	once sync.Once
	err  error
}

// buildOnce builds for the tests in a browser, and tells them where.
func buildOnce(ctx context.Context) error {
	built.once.Do(func() {
		bin, err := filepath.Abs("bin")
		built.err = errors.Join(err, os.Setenv("BOOTHTEST_BIN", bin), Build(ctx))
	})
	return built.err
}

// withBuild runs go test with the arguments against what is built.
func withBuild(ctx context.Context, args ...string) (suite.Count, error) {
	if err := buildOnce(ctx); err != nil {
		return suite.Count{}, err
	}
	return suite.GoTest(ctx, suite.Live, append([]string{"-count=1"}, args...)...)
}

// program is where a program is built to.
func program(name string) string {
	path := filepath.Join("bin", name)
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	return path
}

// become lets a program take the place of this process, so that Ctrl-C reaches
// it once and nobody but itself decides how long it takes to end. Mage would
// give it five seconds. Where the system cannot do that, it runs as a child.
func become(program string, args ...string) error {
	err := syscall.Exec(program, append([]string{program}, args...), os.Environ())
	if !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%s: %w", program, err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
