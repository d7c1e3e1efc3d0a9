//go:build mage

// Targets of KV Booth. Run "go tool mage -l" for the list.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/build"
	"github.com/grafana/grafana-plugin-sdk-go/build/buildinfo"
	"github.com/magefile/mage/mg"

	"kvbooth/internal/browser"
	"kvbooth/internal/chart/installed"
	"kvbooth/internal/frontend"
	"kvbooth/internal/kube"
	"kvbooth/internal/pack"
	"kvbooth/internal/suite"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
)

// lintModule keeps golangci-lint and all that it needs out of our own go.mod.
const lintModule = "tools/golangci-lint/go.mod"

// Test is the gate: linters, unit tests, a whole booth, and its pages in a browser, with a table of their times. It
// takes about ten minutes.
func Test(ctx context.Context) error {
	return run(ctx,
		throughout(suite.Check("lint", lintBuilt)),
		throughout(suite.Part{Name: "front-end lint", Run: frontend.Lint}),
		suite.Check("build", buildOnce),
		suite.Part{Name: "unit", Run: unitTests},
		suite.Part{Name: "race", Run: raceTests},
		suite.Part{Name: "front end", Run: frontend.Test},
		suite.Part{Name: "booth", Run: wholeBooths("^TestWholeBooth$", "./sidecar/cmd/booth")},
		suite.Part{Name: "page", Run: onPage("-run=^TestGate$")},
		suite.Part{Name: "Grafana", Run: inGrafana("grafana", "-run=^TestGate$", "./sidecar/test/grafana")},
	)
}

// withoutSymbols has the linker leave out the symbol table and what debuggers need: a quarter of the load generator.
// Stack traces and profiles have their names without it.
const withoutSymbols = "-s -w"

// throughout runs a part beside all others, with what they leave of the processors.
func throughout(p suite.Part) suite.Part {
	p.Throughout = true
	return p
}

// Verify checks all that the gate leaves out, or the parts that are named after it, and writes docs/verification.md.
// Parts that are interrupted leave no row there.
func Verify(ctx context.Context) error {
	all := verification()
	chosen, err := named(all, os.Args)
	if err != nil {
		return err
	}
	results, failed := suite.Run(ctx, os.Stdout, chosen...)
	if ctx.Err() != nil {
		os.Exit(1) // what was interrupted shows nothing
	}
	page := filepath.Join("docs", "verification.md")
	if err := suite.WriteVerification(page, all, results, time.Now(), versions(ctx)); err != nil {
		return err
	}
	if failed != nil {
		os.Exit(1)
	}
	os.Exit(0) // Mage would take the names of the parts for targets
	return nil
}

// verification are the parts of [Verify].
func verification() []suite.Part {
	return slices.Concat(statisticalParts(), processParts(), externalParts())
}

// statisticalParts run in this process, most of them in virtual time.
func statisticalParts() []suite.Part {
	return []suite.Part{
		{
			Name: "race", Run: raceOfAll,
			Checks: "all unit tests under the race detector, in random order",
		},
		{
			Name: "fuzz", Run: fuzz,
			Checks: "fuzz tests of all input from other programs",
		},
		{
			Name: "statistics", Run: verified("-timeout=40m", "./sidecar/test/proof", "./sidecar/test/intervals"),
			Checks: "errors, power and coverage of trials and searches on a simulated cluster of known truth",
		},
		{
			Name: "decisions", Run: verified("-timeout=60m", "./sidecar/test/decisions"),
			Checks: "the same of trials of two arms and more on simulated spans",
		},
		{
			Name: "sweeps", Run: verified("./sidecar/test/sweeps"),
			Checks: "trials and sweeps over kills, pauses and a full disk, in virtual time",
		},
		{
			Name: "twin", Run: verified("./sidecar/test/pairs"),
			Checks: "pairs of turns against each lane's own figures; neither lane disturbs the other",
		},
		{
			Name: "shadow", Run: verified("./sidecar/test/shadow"),
			Checks: "the shadow's hit rates against those of the model of a cluster",
		},
		{
			Name: "simulation", Run: verified("-timeout=40m", "./sidecar/test/openings", "./sidecar/test/compare",
				"./sidecar/test/calibration", "./sidecar/test/simulation", "./sidecar/sim/..."),
			Checks: "the model over HTTP against its core, profiles against recorded tables; documents are as " +
				"computed",
		},
	}
}

// processParts start the product's own programs.
func processParts() []suite.Part {
	return []suite.Part{
		{
			Name: "nights", Run: verified("-timeout=40m", "./sidecar/test/nights"),
			Checks: "twenty nightly gates; from night 12 on the cluster is 8 % slower",
		},
		{
			Name: "booths",
			Run: wholeBooths("^(TestBoothRecovers|TestQueriesReturnData|"+
				"TestKilledProcessContinuesSweep|TestSweepOnTheCommandLine)$",
				"./sidecar/cmd/booth", "./sidecar/cmd/loadgen", "./dashboards", "./sidecar/test/sweeps"),
			Checks: "a booth's processes killed, dashboards' queries, a sweep over a kill",
		},
		{
			Name: "torture", Run: torture,
			Checks: "hostile peers, crowds, full disks and crashes; TORTURE=1 lengthens it to 15 minutes",
		},
		{
			Name: "soak", Run: soak,
			Checks: "heap, memory, descriptors, goroutines and database stay flat for an hour (SOAK)",
		},
		{
			Name: "client", Run: verified("./sidecar/test/clienterror"),
			Checks: "the bound of the load generator's own error against the true error",
		},
		{
			Name: "members", Run: killedMembers,
			Checks: "members, coordinator and NATS killed under load: requests received against turns stored",
		},
	}
}

// externalParts need programs of others: Dynamo, a control plane, Helm, Grafana, a browser, Python, a collector.
func externalParts() []suite.Part {
	return []suite.Part{
		{
			Name: "dynamo", Run: realDynamo,
			Checks: "a real Dynamo with mock workers: tokens, modes, trial, shadow, doctor",
		},
		{
			Name: "kubernetes", Run: onKubernetes,
			Checks: "a real control plane: twenty switches, roll-back, rights, the chart",
		},
		{
			Name: "chart", Run: chartTests,
			Checks: "every values file rendered, linted and held against the configuration",
		},
		{
			Name: "package", Run: packed,
			Checks: "a release for one system made twice, byte for byte; one version in all that it has; images on two bases",
		},
		{
			Name: "validator", Run: validated, Checks: "Grafana's plugin validator on the app",
		},
		{
			Name: "peers", Run: peers,
			Checks: "figures and starts of requests against the OpenAI client, AIPerf and GuideLLM",
		},
		{
			Name: "otlp", Run: verified("-run=^TestRealCollector$", "./sidecar/cmd/loadgen"),
			Checks: "metrics and traces through a real OpenTelemetry collector",
		},
		{
			Name: "engines", Run: onEngines,
			Checks: "figures, trials and replays on two real vLLM engines, directly and through seven routers; " +
				"arenas, cheating arms and proxies on simulated ones (ENGINES_MINUTES)",
		},
		{
			Name: "page", Run: onPage("-skip=^TestGate$"),
			Checks: "the load generator's pages in a real Chromium, beyond the gate",
		},
		{
			Name: "react19", Run: onReact19,
			Checks: "the same pages with Grafana's packages of " + laterVersion + " and React 19",
		},
		{
			Name: "imports", Run: comparedImports,
			Checks: "what the app imports of Grafana's packages, by levitate, in " + strings.Join(laterVersions, ", "),
		},
		{
			Name: "grafana",
			Run: inGrafana("grafana,kubernetes", "-skip=^TestGate$", "./sidecar/test/grafana",
				"./sidecar/booth/local"),
			Checks: "the app in a real Grafana: on Kubernetes, on Dynamo, in an existing one",
		},
	}
}

// named are the parts that the command line names after the target, or all of them.
func named(all []suite.Part, args []string) ([]suite.Part, error) {
	at := slices.IndexFunc(args, func(arg string) bool { return strings.EqualFold(arg, "verify") })
	if at < 0 || at == len(args)-1 {
		return all, nil
	}
	var chosen []suite.Part
	for _, name := range args[at+1:] {
		i := slices.IndexFunc(all, func(p suite.Part) bool { return p.Name == name })
		if i < 0 {
			var names []string
			for _, p := range all {
				names = append(names, p.Name)
			}
			return nil, fmt.Errorf("verify: there is no part %q; the parts are %s", name, strings.Join(names, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// versions names the installed programs that parts run against, with their versions.
func versions(ctx context.Context) string {
	found := []string{"Go " + strings.TrimPrefix(runtime.Version(), "go"), "Dynamo " + local.DynamoVersion}
	if node, err := output(ctx, "node", "--version"); err == nil {
		found = append(found, "Node.js "+strings.TrimPrefix(node, "v"))
	}
	if chromium, err := output(ctx, "chromium", "--version"); err == nil { // it is not installed for its version alone
		found = append(found, strings.Join(strings.Fields(chromium)[:2], " "))
	}
	if grafana, err := local.FindGrafana(ctx); err == nil {
		found = append(found, "Grafana "+grafana.Version)
	}
	return strings.Join(found, ", ")
}

// Check lints and runs the unit tests affected by a change: run it after each change.
func Check(ctx context.Context) error {
	return run(ctx,
		suite.Check("lint", Lint),
		suite.Part{Name: "unit", Run: func(ctx context.Context) (suite.Count, error) {
			return suite.GoTest(ctx,
				suite.Brief, "./...")
		}},
		suite.Part{Name: "front end", Run: frontend.CheckChanged, WithPrevious: true},
	)
}

// Lint runs golangci-lint, which is built on first use, and actionlint on the example for GitHub Actions.
func Lint(ctx context.Context) error {
	fmt.Println("golangci-lint (built on first use, which takes a minute or two)")
	return errors.Join(golangciLint(ctx, "run"), suite.Command(ctx, "go", "tool",
		"-modfile=tools/actionlint/go.mod", "actionlint", "deploy/ci/github-actions.yaml"))
}

// Format formats all Go files as lint requires.
func Format(ctx context.Context) error { return golangciLint(ctx, "fmt") }

// Build builds the Grafana app into dist/ and the load generator's page, if Node.js is installed, and the programs into
// bin/, including the NATS server for members of a load generator and, where none is installed, Prometheus.
func Build(ctx context.Context) error {
	return buildParts(ctx, []frontend.Bundle{frontend.Page, frontend.App}, natsStep(), prometheusStep())
}

// buildParts builds the booth, the load generator and the bundles, beside other steps.
func buildParts(ctx context.Context, bundles []frontend.Bundle, steps ...suite.Step) error {
	compiler := &suite.Compiler{Out: os.Stderr, Flags: []string{"-ldflags=" + withoutSymbols}}
	// The load generator embeds the page, whose files are replaced meanwhile: what sweeps import, which is nearly all
	// that it is made of, is compiled now.
	outputs := [][2]string{{program("booth"), "./sidecar/cmd/booth"}, {os.DevNull, "./sidecar/loadgen/sweep"}}
	switch _, err := browser.FindNode(ctx); {
	case err == nil:
		if slices.Contains(bundles, frontend.App) {
			outputs = append(outputs, [2]string{filepath.Join("dist", local.AppBackend()), "./pkg"})
		}
		steps = append(steps, suite.Step{
			Name: "front end", Progress: frontend.Progress,
			Run: func(ctx context.Context) error { return frontend.Build(ctx, bundles...) },
		})
	case errors.Is(err, browser.ErrNoNode):
		fmt.Printf("not building the Grafana app and the load generator's page: %v or later is required; everything "+
			"else works without them\n", err)
	default:
		return err
	}
	steps = append(steps, suite.Step{
		Name: "Go programs", Progress: compiler.Progress,
		Run: func(ctx context.Context) error { return compiler.BuildAll(ctx, outputs...) },
	})
	fmt.Println("building the booth and the load generator (takes some minutes the first time)")
	if err := suite.Together(ctx, os.Stdout, steps...); err != nil {
		return err
	}
	return compiler.BuildAll(ctx, [2]string{program("loadgen"), "./sidecar/cmd/loadgen"})
}

// Package makes a release in bin/package: the Grafana app for six systems, the programs for four and their images, the
// chart, CycloneDX documents and SHA256SUMS. The same commit gives the same bytes. IMAGE_BASE names another base of the
// images than that of distroless: scratch needs no registry.
func Package(ctx context.Context) error {
	if err := frontend.Build(ctx, frontend.App, frontend.Page); err != nil {
		return err
	}
	return packRelease(ctx, pack.Dir, os.Getenv("IMAGE_BASE"), pack.Platforms...)
}

// release is what a run of [Package] makes.
type release struct {
	dir       string // absolute
	imageBase string // "" is that of distroless
	version   string
	date      time.Time
	archives  []pack.Archive
}

// packRelease packs what is built for these platforms into a folder, with SHA256SUMS.
func packRelease(ctx context.Context, dir, imageBase string, platforms ...pack.Platform) error {
	text, err := os.ReadFile(filepath.Join("sidecar", "api", "VERSION"))
	if err != nil {
		return err
	}
	r := release{imageBase: imageBase, version: strings.TrimSpace(string(text))}
	if r.date, err = pack.Date(ctx, time.Now()); err != nil {
		return err
	}
	if r.dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := r.add(packApp(ctx, r.dir, platforms...)); err != nil {
		return err
	}
	for _, name := range []string{"loadgen", "booth"} {
		for _, p := range platforms {
			if p.OS == "windows" {
				continue
			}
			if err := r.packProgram(ctx, p, name); err != nil {
				return fmt.Errorf("%s for %s: %w", name, p, err)
			}
		}
	}
	chart := filepath.Join(r.dir, "kvbooth-"+r.version+".tgz")
	if err := r.add(pack.Chart(chart, r.date, filepath.Join("deploy", "chart", "kvbooth"))); err != nil {
		return err
	}
	if err := r.packBills(ctx); err != nil {
		return err
	}
	return pack.WriteSums(r.dir, r.archives, os.Stdout)
}

// add appends an archive, unless it could not be made.
func (r *release) add(a pack.Archive, err error) error {
	if err == nil {
		r.archives = append(r.archives, a)
	}
	return err
}

// folder is where a program for a platform is built, and the start of the names of its archives.
func (r *release) folder(name string, p pack.Platform) string {
	return filepath.Join(r.dir, strings.Join([]string{name, r.version, p.OS, p.Arch}, "-"))
}

// packProgram builds a program for a platform and packs it, for Linux also into an image as the Dockerfile makes it.
func (r *release) packProgram(ctx context.Context, p pack.Platform, name string) error {
	fmt.Println("building", name, "for", p)
	to := r.folder(name, p)
	program := filepath.Join(to, name)
	flags := "-ldflags=" + withoutSymbols + " -X kvbooth/sidecar/api.release=" + r.version
	if err := buildFor(ctx, p, program, "./sidecar/cmd/"+name, flags); err != nil {
		return err
	}
	err := r.add(pack.Program(to+".tar.gz", r.date, program, "LICENSE", "README.md"))
	if err != nil || p.OS != "linux" {
		return err
	}
	args := []string{
		"run", "-C", "tools/image", ".", "-arch=" + p.Arch, "-name=kvbooth/" + name + ":" + r.version,
		"-date=" + strconv.FormatInt(r.date.Unix(), 10), "-out=" + to + "-image.tar",
	}
	if r.imageBase != "" {
		args = append(args, "-base="+r.imageBase)
	}
	args = append(args, program)
	if name == "loadgen" { // members in one container connect to it
		server := filepath.Join(to, natsServer)
		err := buildFor(ctx, p, server, "github.com/nats-io/nats-server/v2", "-ldflags="+withoutSymbols,
			"-modfile=tools/nats/go.mod")
		if err != nil {
			return err
		}
		args = append(args, server)
	}
	if err := suite.Command(ctx, "go", args...); err != nil {
		return fmt.Errorf("image: %w; IMAGE_BASE=scratch needs no registry", err)
	}
	return r.add(pack.Describe(to + "-image.tar"))
}

// natsServer is the name of the NATS server in the image of the load generator.
const natsServer = "nats-server"

// packBills writes what the programs and the front end are made of, in one document for each program: other systems
// link nearly the same modules. The front end's is that of the app and of the page that the load generator embeds.
func (r *release) packBills(ctx context.Context) error {
	loadgen := r.folder("loadgen", everywhere)
	for name, program := range map[string]string{
		"loadgen": filepath.Join(loadgen, "loadgen"),
		"booth":   filepath.Join(r.folder("booth", everywhere), "booth"),
		"app":     filepath.Join(r.dir, local.AppID, local.AppBackend()),
	} {
		if err := r.add(pack.ProgramBill(ctx, r.bill(name), program, r.version, r.date)); err != nil {
			return err
		}
	}
	server := filepath.Join(loadgen, natsServer) // has a version of its own
	if err := r.add(pack.ProgramBill(ctx, r.bill(natsServer), server, "", r.date)); err != nil {
		return err
	}
	return r.add(pack.FrontEndBill(ctx, r.bill("front-end"), local.AppID, r.date))
}

// bill returns the path of a CycloneDX document.
func (r *release) bill(name string) string {
	return filepath.Join(r.dir, name+"-"+r.version+".cdx.json")
}

// buildFor builds a program that is the same wherever it is built.
func buildFor(ctx context.Context, p pack.Platform, to, path string, flags ...string) error {
	args := slices.Concat([]string{"build", "-trimpath", "-buildvcs=false", "-o", to}, flags, []string{path})
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Arch)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
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

// Docs regenerates the computed documents, docs/calibration.md and docs/simulation.md with its figures; it takes some
// minutes.
func Docs(ctx context.Context) error {
	return errors.Join(
		suite.Command(ctx, "go", "run", "./sidecar/test/calibration"),
		suite.Command(ctx, "go", "run", "./sidecar/test/simulation"),
	)
}

// Pictures takes the screenshots for README and docs, from a demo with two lanes: about 40 minutes on an idle machine,
// most of them for a trial.
func Pictures(ctx context.Context) error {
	return run(ctx, suite.Part{Name: "pictures", Run: func(ctx context.Context) (suite.Count, error) {
		return withBuild(ctx, "-timeout=2h", "-tags=pictures", "./sidecar/test/pictures")
	}})
}

// Bench measures the load generator against a server with known token times, a whole booth, simulations, a trace of a
// million requests, what its screens cost a browser, and how long a trial takes to decide.
func Bench(ctx context.Context) error {
	if err := buildOnce(ctx); err != nil {
		return err
	}
	if err := suite.Command(ctx, "go", "run", "./sidecar/test/bench"); err != nil {
		return err
	}
	if err := suite.Command(ctx, "go", "test", "-run=^$", "-bench=Mooncake", "-benchtime=1x",
		"./sidecar/loadgen/shadow"); err != nil {
		return err
	}
	return run(ctx,
		suite.Part{Name: "page", Run: measured("page/first,page/memory", onPage("-run=TestPage$"))},
		suite.Part{Name: "Grafana", Run: measured("browser/cost", inGrafana("grafana", "-run=TestBooth$",
			"./sidecar/test/grafana"))},
		suite.Part{Name: "time to verdict", Run: measured("", proofs)},
	)
}

// proofs tests the statistics of trials at length, and prints the minutes to the verdict.
func proofs(ctx context.Context) (suite.Count, error) {
	return suite.GoTest(ctx, suite.Live, "-count=1", "-timeout=2h", "-v", "-tags=verify", "./sidecar/test/proof")
}

// measured has a part in a browser run these journeys alone, for as long as their
// figures need. Each is held against its limit, which asks for a quiet machine.
func measured(
	journeys string, part func(context.Context) (suite.Count, error),
) func(context.Context) (suite.Count, error) {
	return func(ctx context.Context) (suite.Count, error) {
		if err := errors.Join(os.Setenv("BENCH", "1"), os.Setenv("BOOTHTEST_JOURNEYS", journeys)); err != nil {
			return suite.Count{}, err
		}
		return part(ctx)
	}
}

// Compare compares the demo with the core of its simulation, and the core with a real Dynamo: about 30 minutes on an
// idle machine.
func Compare(ctx context.Context) error {
	return run(ctx, suite.Part{Name: "compare", Run: func(ctx context.Context) (suite.Count, error) {
		return withBuild(ctx, "-timeout=3h", "-parallel=3", "-tags=compare,verify", "./sidecar/test/compare")
	}})
}

// Kube builds a Kubernetes control plane for the Kubernetes tests, once: 5 to 12 minutes, 140 MB in the cache
// directory.
func Kube(ctx context.Context) error {
	program, err := kube.Build(ctx, ".", os.Stdout)
	if err != nil {
		return err
	}
	fmt.Println("the control plane is", program)
	return nil
}

// Helm builds Helm 4 for the chart into bin/, for machines without an installed one: some minutes the first time.
func Helm(ctx context.Context) error {
	return suite.Together(ctx, os.Stdout, serverStep("helm", "Helm", program("helm"), "helm.sh/helm/v4/cmd/helm"))
}

// Deploy are targets that Helm and kubectl have replaced. Each fails with the command that does the same.
type Deploy mg.Namespace

const helmChart = " kvbooth deploy/chart/kvbooth --namespace kvbooth --values FILE"

// Render is replaced by helm template.
func (Deploy) Render() error { return replaced("helm template" + helmChart) }

// Apply is replaced by helm upgrade, and what it printed without -yes by booth manifest and kubectl diff.
func (Deploy) Apply() error {
	return replaced("helm upgrade --install" + helmChart +
		" --create-namespace --wait --wait-for-jobs --timeout 30m --kube-context CONTEXT")
}

// Status is replaced by helm status.
func (Deploy) Status() error {
	return replaced("helm status kvbooth --namespace kvbooth --kube-context CONTEXT")
}

// Delete is replaced by helm uninstall.
func (Deploy) Delete() error {
	return replaced("helm uninstall kvbooth --namespace kvbooth --wait --kube-context CONTEXT")
}

// replaced is the error of a target that a command replaces.
func replaced(command string) error {
	return fmt.Errorf("the deploy targets were removed; run %s; docs/kubernetes.md explains it", command)
}

// withHelm builds helm, where no Helm 4 is installed, for tests that need it.
func withHelm(ctx context.Context) error {
	if _, err := installed.Helm(ctx); err == nil {
		return nil
	}
	return Helm(ctx)
}

// chartTests tests what the chart makes of values files.
func chartTests(ctx context.Context) (suite.Count, error) {
	if err := withHelm(ctx); err != nil {
		return suite.Count{}, err
	}
	return suite.GoTest(ctx, suite.Brief, "-count=1", "-tags=chart", "./internal/chart",
		"./sidecar/cmd/loadgen/internal/config")
}

// natsStep builds the NATS server that members on one machine meet on.
func natsStep() suite.Step {
	return serverStep("nats", "NATS server", program("nats-server"), "github.com/nats-io/nats-server/v2")
}

// prometheusStep builds Prometheus for the booth, unless it is installed or its release can be downloaded.
func prometheusStep() suite.Step {
	step := serverStep("prometheus", "Prometheus", program("prometheus"),
		"github.com/prometheus/prometheus/cmd/prometheus",
		"-tags=remove_all_sd",
		"-ldflags="+withoutSymbols+" -X github.com/prometheus/common/version.Version="+local.PrometheusRelease)
	build := step.Run
	step.Run = func(ctx context.Context) error {
		if _, err := findPrometheus(ctx); !errors.Is(err, local.ErrNoPrometheus) {
			return err
		}
		return build(ctx)
	}
	return step
}

// findPrometheus returns the path of an installed Prometheus, or of its release, which it downloads.
func findPrometheus(ctx context.Context) (string, error) {
	bin, err := filepath.Abs("bin")
	if err != nil {
		return "", err
	}
	path, err := local.FindPrometheus(ctx, bin)
	if !errors.Is(err, local.ErrNoPrometheus) {
		return path, err
	}
	cache, err := local.CacheDir()
	if err != nil {
		return "", err
	}
	path, err = local.InstallPrometheus(ctx, cache, os.Stdout)
	if err != nil && ctx.Err() == nil {
		return "", errors.Join(local.ErrNoPrometheus, err)
	}
	return path, err
}

// serverStep builds the program of another project from the module in tools/folder. Packages of which this module has
// the same version are compiled once, since the flags of the compiler are the same.
func serverStep(folder, name, to, path string, flags ...string) suite.Step {
	if len(flags) == 0 {
		flags = []string{"-ldflags=" + withoutSymbols}
	}
	compiler := &suite.Compiler{
		Out: os.Stderr, Dir: filepath.Join("tools", folder), Flags: flags,
	}
	return suite.Step{Name: name, Progress: compiler.Progress, Run: func(ctx context.Context) error {
		output, err := filepath.Abs(to)
		if err != nil {
			return err
		}
		return compiler.BuildAll(ctx, [2]string{output, path})
	}}
}

// Demo starts the complete booth with a simulated Dynamo cluster; Ctrl-C stops it.
func Demo(ctx context.Context) error { return startBooth(ctx, "demo") }

// Dynamo starts the complete booth with a real Dynamo and mock workers; Ctrl-C stops it.
func Dynamo(ctx context.Context) error { return startBooth(ctx, "dynamo") }

// startBooth builds what the load generator's page needs and starts a booth, which builds the rest at the lowest
// priority.
func startBooth(ctx context.Context, kind string) error {
	if err := buildParts(ctx, []frontend.Bundle{frontend.Page}); err != nil {
		return err
	}
	rest := "go tool mage build"
	if _, err := exec.LookPath("nice"); err == nil {
		rest = "nice -n 19 " + rest
	}
	return become(program("booth"), kind, "--build="+rest)
}

// Record makes a WebM of pages side by side: the dashboard and the stage view of a running demo for a minute, in
// kvbooth.webm, unless RECORD_PAGES (addresses, separated by commas), RECORD_FOR and RECORD_FILE say otherwise.
func Record(ctx context.Context) error {
	pages := cmp.Or(os.Getenv("RECORD_PAGES"), strings.Join([]string{
		"http://127.0.0.1:3000/d/gtc-demo?kiosk&refresh=5s", "http://127.0.0.1:8088/stage",
	}, ","))
	length, err := time.ParseDuration(cmp.Or(os.Getenv("RECORD_FOR"), "1m"))
	if err != nil || length < time.Second || length > time.Hour {
		return fmt.Errorf("RECORD_FOR: %q is not allowed: 1s to 1h", os.Getenv("RECORD_FOR"))
	}
	chromium, err := browser.FindChromium(ctx, os.Stdout)
	if err != nil {
		return err
	}
	node, err := browser.FindNode(ctx)
	if err != nil {
		return err
	}
	if err := frontend.Install(ctx); err != nil {
		return err
	}
	for name, value := range map[string]string{
		browser.ChromiumVariable: chromium,
		"RECORD_PAGES":           pages,
		"RECORD_FILE":            cmp.Or(os.Getenv("RECORD_FILE"), "kvbooth.webm"),
		"RECORD_SECONDS":         strconv.Itoa(int(length.Seconds())),
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return suite.Command(ctx, node, "tools/record/record.mjs")
}

// run ends the process where the suite fails, since Mage would print the error
// once more, behind the line with the counts.
func run(ctx context.Context, parts ...suite.Part) error {
	if _, err := suite.Run(ctx, os.Stdout, parts...); err != nil {
		os.Exit(1)
	}
	return nil
}

func golangciLint(ctx context.Context, command string) error {
	return suite.Command(ctx, "go", "tool", "-modfile="+lintModule, "golangci-lint", command)
}

// unitTests tests every package without the race detector.
func unitTests(ctx context.Context) (suite.Count, error) {
	if err := buildOnce(ctx); err != nil {
		return suite.Count{}, err
	}
	return suite.GoTest(ctx, suite.Brief, "-count=1", "./...")
}

// raceTests tests the packages that start goroutines or hold locks, where there is the C compiler that the race
// detector needs.
func raceTests(ctx context.Context) (suite.Count, error) {
	packages, err := suite.Concurrent(ctx)
	if err != nil {
		return suite.Count{}, err
	}
	return underRace(ctx, packages...)
}

// raceOfAll tests every package under the race detector, in random order.
func raceOfAll(ctx context.Context) (suite.Count, error) {
	return underRace(ctx, "-shuffle=on", "./...")
}

func underRace(ctx context.Context, args ...string) (suite.Count, error) {
	cgo, err := output(ctx, "go", "env", "CGO_ENABLED")
	if err != nil {
		return suite.Count{}, err
	}
	if cgo != "1" {
		return suite.Count{}, suite.Skipped("no C compiler; run apt-get install gcc")
	}
	if err := buildOnce(ctx); err != nil {
		return suite.Count{}, err
	}
	return suite.GoTest(ctx, suite.Brief, append([]string{"-race", "-count=1"}, args...)...)
}

// fuzzInputs is how many inputs each fuzz test gets, unless FUZZ_INPUTS says otherwise.
const fuzzInputs = 20_000

// fuzz runs every fuzz test.
func fuzz(ctx context.Context) (suite.Count, error) {
	inputs := fuzzInputs
	if text := os.Getenv("FUZZ_INPUTS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return suite.Count{}, fmt.Errorf("FUZZ_INPUTS: %q is not a positive whole number", text)
		}
		inputs = n
	}
	return suite.Fuzz(ctx, inputs)
}

// verified runs the tests behind the tag verify: hours of virtual time, which the race detector would only make slow.
func verified(args ...string) func(context.Context) (suite.Count, error) {
	return func(ctx context.Context) (suite.Count, error) {
		return suite.GoTest(ctx, suite.Brief, append([]string{"-count=1", "-tags=verify"}, args...)...)
	}
}

// realDynamo tests against a real Dynamo, which it installs first if need be.
func realDynamo(ctx context.Context) (suite.Count, error) {
	if _, _, err := local.FindPython(ctx); err != nil {
		fmt.Println(err)
		return suite.Count{}, suite.Skipped("no Python 3.10 or later; run apt-get install python3 python3-venv")
	}
	if err := errors.Join(buildOnce(ctx), withHelm(ctx)); err != nil { // the doctor asks a Prometheus
		return suite.Count{}, err
	}
	return suite.GoTest(ctx, suite.Live, "-count=1", "-timeout=20m", "-tags=dynamo", "./sidecar/test/dynamo")
}

// onKubernetes tests against a Kubernetes control plane, where [Kube] has built one.
func onKubernetes(ctx context.Context) (suite.Count, error) {
	if _, err := kube.Find("."); errors.Is(err, kube.ErrNotBuilt) {
		return suite.Count{}, suite.Skipped("run go tool mage kube")
	}
	if err := errors.Join(buildOnce(ctx), withHelm(ctx)); err != nil {
		return suite.Count{}, err
	}
	return suite.GoTest(ctx, suite.Live, "-count=1", "-timeout=40m", "-tags=kubernetes", "./sidecar/test/kubernetes/...")
}

// peers holds the simulated cluster against clients that others wrote; the first time, pip downloads 7 GB for them.
func peers(ctx context.Context) (suite.Count, error) {
	return suite.GoTest(ctx, suite.Live, "-count=1", "-timeout=1h", "-tags=peers", "./sidecar/test/peers")
}

// onEngines runs trials over real routers, which it installs, and on real engines, where they are installed.
func onEngines(ctx context.Context) (suite.Count, error) {
	return suite.GoTest(ctx, suite.Live, "-count=1", "-timeout=60m", "-tags=engines", "./sidecar/test/engines")
}

// everywhere is the system that Grafana's catalog asks a backend for.
var everywhere = pack.Platform{OS: "linux", Arch: "amd64"}

// packed makes a release for one system twice, which have to be equal, and tests what is in it. Six systems take
// minutes.
func packed(ctx context.Context) (suite.Count, error) {
	var sums [2][]byte
	var dir string
	for i := range sums {
		if err := frontend.Rebuild(ctx, frontend.App, frontend.Page); errors.Is(err, browser.ErrNoNode) {
			return suite.Count{}, suite.Skipped(err.Error())
		} else if err != nil {
			return suite.Count{}, err
		}
		dir = filepath.Join(pack.Dir, "test", strconv.Itoa(i))
		if err := packRelease(ctx, dir, "scratch", everywhere); err != nil {
			return suite.Count{}, err
		}
		var err error
		if sums[i], err = os.ReadFile(filepath.Join(dir, pack.SumsFile)); err != nil {
			return suite.Count{}, err
		}
	}
	if !bytes.Equal(sums[0], sums[1]) {
		return suite.Count{}, fmt.Errorf("two runs of one commit differ:\n%s\n%s", sums[0], sums[1])
	}
	if err := suite.Command(ctx, "go", "test", "-C", filepath.Join("tools", "image"), "./..."); err != nil {
		return suite.Count{}, err
	}
	dir, err := filepath.Abs(dir)
	if err := errors.Join(err, os.Setenv(pack.DirVariable, dir)); err != nil {
		return suite.Count{}, err
	}
	return suite.GoTest(ctx, suite.Brief, "-count=1", "-tags=release", "./internal/pack")
}

// packOne packs the app with one backend.
func packOne(ctx context.Context) (pack.Archive, error) {
	err := frontend.Build(ctx, frontend.App)
	if errors.Is(err, browser.ErrNoNode) {
		return pack.Archive{}, suite.Skipped(err.Error())
	}
	if err != nil {
		return pack.Archive{}, err
	}
	return packApp(ctx, filepath.Join(pack.Dir, "test"), everywhere)
}

// validated has Grafana's plugin validator look at the app, after building the validator where none is installed.
func validated(ctx context.Context) (suite.Count, error) {
	validator, err := findValidator(ctx)
	if errors.Is(err, pack.ErrNoValidator) && ctx.Err() == nil {
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

// findValidator returns the path of the plugin validator, which it builds once into the cache directory.
func findValidator(ctx context.Context) (string, error) {
	cache, err := local.CacheDir()
	if err != nil {
		return "", err
	}
	built := filepath.Join(cache, "plugincheck2")
	path, err := pack.FindValidator(built)
	if !errors.Is(err, pack.ErrNoValidator) {
		return path, err
	}
	return built, pack.BuildValidator(ctx, os.Stdout, built)
}

// wholeBooths runs these tests of booths of real processes.
func wholeBooths(tests string, packages ...string) func(context.Context) (suite.Count, error) {
	return func(ctx context.Context) (suite.Count, error) {
		return withBuild(ctx, append([]string{"-tags=booth", "-run=" + tests}, packages...)...)
	}
}

// torture tests the load generator under a selection of faults, or with TORTURE=1 under all of them.
func torture(ctx context.Context) (suite.Count, error) {
	return withBuild(ctx, "-timeout=30m", "-tags=torture", "./sidecar/test/torture")
}

// soak runs a load generator for an hour, or as long as SOAK says.
func soak(ctx context.Context) (suite.Count, error) {
	return withBuild(ctx, "-timeout=12h", "-tags=soak", "./sidecar/test/soak")
}

// killedMembers kills the processes of a load generator with members.
func killedMembers(ctx context.Context) (suite.Count, error) {
	if err := buildOnce(ctx); err != nil {
		return suite.Count{}, err
	}
	return suite.GoTest(ctx, suite.Live, "-count=1", "-timeout=1h", "-tags=members", "./sidecar/test/members")
}

// onPage tests the load generator's own page in a real browser, where one is found.
func onPage(flags ...string) func(context.Context) (suite.Count, error) {
	return func(ctx context.Context) (suite.Count, error) {
		return withBuild(ctx, append(flags, "-timeout=30m", "-tags=page", "./sidecar/test/page")...)
	}
}

// laterVersions are the versions of Grafana whose packages the app's imports are compared with, beside the one that it
// is built with. The last one is that of tools/grafana13, with which the pages run.
var laterVersions = []string{"12.2.1", "12.4.10", "13.0.2", "13.1.3", laterVersion}

const laterVersion = "13.2.2"

// onReact19 tests the load generator's own page, built with the packages of [laterVersion].
func onReact19(ctx context.Context) (suite.Count, error) {
	packages, err := frontend.InstallLater(ctx)
	if err != nil {
		return suite.Count{}, err
	}
	if err := buildOnce(ctx); err != nil {
		return suite.Count{}, err
	}
	before := os.Getenv("BOOTHTEST_BIN")
	bin := filepath.Join(before, "react19")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return suite.Count{}, err
	}
	overlay, err := frontend.BuildPageWith(ctx, packages, bin)
	if err != nil {
		return suite.Count{}, err
	}
	for name, flags := range map[string][]string{"booth": nil, "loadgen": {"-overlay=" + overlay}} {
		args := slices.Concat([]string{"build", "-o", filepath.Join(bin, name)}, flags, []string{"./sidecar/cmd/" + name})
		if err := suite.Command(ctx, "go", args...); err != nil {
			return suite.Count{}, err
		}
	}
	if err := os.Setenv("BOOTHTEST_BIN", bin); err != nil {
		return suite.Count{}, err
	}
	count, err := onPage()(ctx)
	return count, errors.Join(err, os.Setenv("BOOTHTEST_BIN", before))
}

// comparedImports compares the app's imports with the packages of [laterVersions].
func comparedImports(ctx context.Context) (suite.Count, error) {
	packages, err := frontend.InstallLater(ctx)
	if err != nil {
		return suite.Count{}, err
	}
	return frontend.CompareLater(ctx, packages, laterVersions...)
}

// inGrafana tests the app in a real Grafana with a real browser, where both are found.
func inGrafana(tags string, args ...string) func(context.Context) (suite.Count, error) {
	return func(ctx context.Context) (suite.Count, error) {
		if _, err := local.FindGrafana(ctx); errors.Is(err, local.ErrNoGrafana) {
			return suite.Count{}, suite.Skipped("no Grafana; bin/booth demo downloads one, or set GRAFANA_HOME")
		}
		return withBuild(ctx, append([]string{"-timeout=40m", "-tags=" + tags}, args...)...)
	}
}

// built is the build that parts beside each other share; done is closed at its end.
var built = struct {
	once sync.Once
	done chan struct{}
	err  error
}{done: make(chan struct{})}

// buildOnce builds for tests of whole programs, and names in the environment where the programs are.
func buildOnce(ctx context.Context) error {
	built.once.Do(func() {
		defer close(built.done)
		built.err = buildForTests(ctx)
	})
	return built.err
}

// lintBuilt compiles the linter and runs it after the build of another part. The bundler replaces files of the page
// that the load generator embeds, which the linter reads.
func lintBuilt(ctx context.Context) error {
	if err := suite.Compile(ctx, "tool", "-modfile="+lintModule, "golangci-lint", "version"); err != nil {
		return err
	}
	select {
	case <-built.done:
		return Lint(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func buildForTests(ctx context.Context) error {
	if err := Build(ctx); err != nil {
		return err
	}
	bin, err := filepath.Abs("bin")
	if err != nil {
		return err
	}
	prometheus, err := findPrometheus(ctx)
	if err != nil {
		return err
	}
	nats, err := filepath.Abs(program("nats-server"))
	return errors.Join(err, os.Setenv("BOOTHTEST_BIN", bin),
		os.Setenv(process.NATSVariable, nats), os.Setenv(local.PrometheusVariable, prometheus))
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
// it once and it alone decides how long it takes to end. Mage would
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
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(exit.Stderr))
	}
	return strings.TrimSpace(string(out)), err
}
