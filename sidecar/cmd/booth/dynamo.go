package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/local"
	"kvbooth/sidecar/sim"
)

// dynamoCmd is `booth dynamo`.
type dynamoCmd struct {
	Concurrency int    `default:"60" help:"Conversations to keep in progress."`
	Start       bool   `default:"true" negatable:"" help:"Begin at once. Without it, the load generator waits for an operator."`
	Mode        string `default:"kv" enum:"kv,round_robin,least_loaded" help:"Mode of Dynamo's router: ${enum}. Under kv, an operator can switch to round_robin and back."`
	Engine      string `default:"trtllm" enum:"trtllm,vllm" help:"Engine that the mock workers imitate: ${enum}."`
	Workers     int    `default:"3" help:"Number of mock workers, 1 to 64."`

	FrontendPort int    `default:"8000" help:"Port of Dynamo's frontend, or the next free one."`
	WorkerPort   int    `default:"8081" help:"Port of the first worker's metrics, or the next free ones."`
	Port         int    `default:"8088" help:"Port of the load generator, or the next free one."`
	CacheDir     string `placeholder:"DIR" help:"Folder of Dynamo's installation, of logs and results. Without it, kvbooth in the user's cache folder."`
}

// Help is printed below the flags' list.
func (c *dynamoCmd) Help() string {
	return "Everything listens on loopback. The first start installs Dynamo " + local.DynamoVersion + " (about 690 MB); " + local.VenvVariable +
		" names a virtual environment that has it already. Other settings of the load generator come from its environment variables, such as LOADGEN_TURNS_MAX."
}

const (
	startWithin = 2 * time.Minute
	stopWithin  = 10 * time.Second
)

// run starts everything, keeps it running until ctx ends, and stops it.
func (c *dynamoCmd) run(ctx, hurry context.Context, stdout, stderr io.Writer) error {
	dir, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	unlock, ok, err := local.TryLock(filepath.Join(dir, "booth.lock"))
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: another booth is running in %s; give this one another --cache-dir, or stop the other", errBadInput, dir)
	}
	defer unlock()
	b := &booth{cmd: c, dir: dir, profile: sim.H200(), out: newScreen(stdout, stderr)}
	defer b.stop(hurry)
	if err := b.start(ctx); err != nil {
		if ctx.Err() != nil { // it was stopped before it was up
			return nil
		}
		return err
	}
	b.summary()
	return b.watch(ctx)
}

// prepare finds the folder, and refuses what the load generator would refuse
// before anything takes long.
func (c *dynamoCmd) prepare(ctx context.Context) (dir string, err error) {
	if err := c.options().Check(); err != nil {
		return "", err
	}
	dir = c.CacheDir
	if dir == "" {
		if dir, err = local.CacheDir(); err != nil {
			return "", fmt.Errorf("%w: %w; name a folder with --cache-dir", errBadInput, err)
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	program, err := loadgenPath()
	if err != nil {
		return "", err
	}
	trial := &booth{cmd: c, dir: dir, profile: sim.H200(), port: c.Port}
	args := append([]string{"check"}, trial.loadgenArgs("http://"+local.Loopback(c.FrontendPort), nil)...)
	said, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s (%w)", errBadInput, strings.TrimSpace(string(said)), err)
	}
	return dir, nil
}

// loadgenPath is the load generator beside this program.
func loadgenPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), "loadgen")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: the load generator is missing: %w; build both programs with: go tool mage build", errBadInput, err)
	}
	return path, nil
}

// booth is what runs: Dynamo, and the load generator.
type booth struct {
	cmd     *dynamoCmd
	dir     string
	profile sim.Profile
	out     *screen

	port    int // of the load generator
	dynamo  *local.Dynamo
	loadgen *loadgen
}

// start installs, writes and starts what is needed, and returns when it serves.
func (b *booth) start(ctx context.Context) error {
	python, err := local.InstallDynamo(ctx, b.dir, b.out.stderr)
	if err != nil {
		return err
	}
	options, err := b.write(python)
	if err != nil {
		return err
	}
	b.out.say("starting NVIDIA Dynamo %s with %d mock workers", local.DynamoVersion, b.cmd.Workers)
	ready, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if b.dynamo, err = local.StartDynamo(ready, options); err != nil {
		return err
	}
	ports, err := local.FreePorts(b.cmd.Port, 1)
	if err != nil {
		return err
	}
	b.port = ports[0]
	var metrics []string
	for _, w := range b.dynamo.Workers() {
		metrics = append(metrics, w.MetricsURL)
	}
	if b.loadgen, err = newLoadgen(b.loadgenArgs(b.dynamo.URL(), metrics), local.Loopback(b.port), b.logs(), b.out); err != nil {
		return err
	}
	return b.loadgen.start(ready)
}

func (b *booth) folder(name ...string) string {
	return filepath.Join(append([]string{b.dir, "dynamo"}, name...)...)
}

func (b *booth) logs() string { return b.folder("logs") }

// write writes the model folder and the profile, and puts the logs of the last
// start aside.
func (b *booth) write(python string) (local.Options, error) {
	p := b.profile
	npz := b.folder(p.Name + ".npz")
	old := b.folder("logs.old")
	if err := errors.Join(sim.WriteModel(b.folder("model")), writeProfile(npz, p), os.RemoveAll(old)); err != nil {
		return local.Options{}, err
	}
	if err := os.Rename(b.logs(), old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return local.Options{}, err
	}
	ports, err := local.FreePorts(b.cmd.FrontendPort, 1)
	if err != nil {
		return local.Options{}, err
	}
	o := b.cmd.options()
	o.Python, o.ModelDir, o.ModelName, o.ProfilePath, o.LogDir = python, b.folder("model"), p.Model, npz, b.logs()
	o.BlockTokens, o.Blocks, o.MaxSequences, o.MaxBatchedTokens = p.KV.BlockTokens, p.KV.Blocks, p.MaxSequences, p.MaxBatchedTokens
	o.FrontendPort = ports[0]
	return o, nil
}

// options are those that the command line decides; Dynamo spells its modes with dashes.
func (c *dynamoCmd) options() local.Options {
	return local.Options{Workers: c.Workers, Mode: strings.ReplaceAll(c.Mode, "_", "-"), Engine: c.Engine, WorkerPort: c.WorkerPort}
}

func writeProfile(path string, p sim.Profile) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(sim.WriteNPZ(file, p), file.Close())
}

// loadgenArgs are the load generator's flags. The deployment says that engine and
// GPU are imitated; the results that the profile was fitted to stand beside it all
// the same, with those differences named.
func (b *booth) loadgenArgs(target string, metrics []string) []string {
	c, p := b.cmd, b.profile
	args := []string{
		"--target-url=" + target, "--target-model=" + p.Model,
		"--listen=" + local.Loopback(b.port), "--data-dir=" + b.folder("data"),
		"--concurrency=" + strconv.Itoa(c.Concurrency), "--start=" + strconv.FormatBool(c.Start),
		"--output-tokens-mean=830", "--output-tokens-cv=.15", // mock answers end nowhere by themselves
		"--deployment-engine=mock of " + c.Engine, "--deployment-gpu=mock of " + p.GPU,
		"--deployment-model=" + p.Model + "-" + p.Precision, "--deployment-workers=" + strconv.Itoa(c.Workers),
		"--deployment-tensor-parallel=" + strconv.Itoa(p.TensorParallel), "--baseline-default=" + p.Baseline,
		"--mode-mode=" + c.Mode,
	}
	if c.Mode == "kv" {
		args = append(args, "--mode-driver=pinned")
	} else { // the frontend's own mode, which nothing switches
		args = append(args, "--mode-driver=manual", "--mode-offers="+c.Mode)
	}
	if len(metrics) > 0 {
		args = append(args, "--cluster-metrics-urls="+strings.Join(metrics, ","))
	}
	return args
}

// stop stops the load generator, then Dynamo; when hurry ends, they are killed.
func (b *booth) stop(hurry context.Context) {
	ctx, cancel := context.WithTimeout(hurry, stopWithin)
	defer cancel()
	if b.loadgen != nil || b.dynamo != nil {
		b.out.say("stopping")
	}
	if b.loadgen != nil {
		b.loadgen.stop(ctx)
	}
	if b.dynamo != nil {
		b.dynamo.Stop(ctx)
	}
}

// summary says where to look.
func (b *booth) summary() {
	address := "http://" + local.Loopback(b.port)
	rows := [][2]string{{"frontend", b.dynamo.URL() + ", metrics at /metrics"}}
	for _, w := range b.dynamo.Workers() {
		rows = append(rows, [2]string{w.Name, w.MetricsURL})
	}
	doing := fmt.Sprintf("keeps %d conversations in progress", b.cmd.Concurrency)
	if !b.cmd.Start {
		doing = "waits to be started"
	}
	b.out.table(fmt.Sprintf("NVIDIA Dynamo %s is up, its router in mode %s, its workers mocks of %s on %s: real routing, no model, timing as fitted to %s.",
		local.DynamoVersion, b.cmd.Mode, b.cmd.Engine, b.profile.GPU, b.profile.Baseline),
		append(rows,
			[2]string{"load generator", address + "/api/v1/status, metrics at /metrics; " + doing},
			[2]string{"logs", b.logs()}),
		"Ctrl-C stops all of it.")
}
