package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/sim"
)

// dynamoCmd is `booth dynamo`.
type dynamoCmd struct {
	flags
	Mode    string `default:"kv" enum:"${router_modes}" help:"Dynamo's router mode: ${enum}. With kv, an operator can switch to round_robin and back. With direct, the load generator distributes the turns to the workers (round_robin)."`
	Engine  string `default:"trtllm" enum:"trtllm,vllm,sglang" help:"Engine the mock workers simulate: ${enum}."`
	Workers int    `default:"3" help:"Number of mock workers, 1 to 64."`

	FrontendArgs []string `name:"frontend-arg" sep:"none" placeholder:"ARG" help:"Further argument of Dynamo's frontend, such as --frontend-arg=--router-session-affinity-ttl-secs=60. May be repeated."`
}

// Help returns the text below the list of flags.
func (c *dynamoCmd) Help() string {
	return "Everything listens on loopback. The first start installs Dynamo " + local.DynamoVersion + " (about 690 MB); " +
		local.VenvVariable + " can point to a virtual environment that already has it. " +
		"Set other load generator settings with its environment variables, such as LOADGEN_TURNS_MAX."
}

func (c *dynamoCmd) run(ctx, killCtx context.Context, stdout, stderr io.Writer) error {
	return runKind(ctx, killCtx, c, stdout, stderr)
}

func (c *dynamoCmd) name() string { return "dynamo" }

func (c *dynamoCmd) common() *flags { return &c.flags }

func (c *dynamoCmd) check() error { return c.options().Check() }

// options returns the options that the flags set. Dynamo spells its modes with dashes.
func (c *dynamoCmd) options() local.Options {
	mode := strings.ReplaceAll(c.Mode, "_", "-")
	return local.Options{
		Workers: c.Workers, Mode: mode, Engine: c.Engine, WorkerPort: c.WorkerPort, FrontendArgs: c.FrontendArgs,
	}
}

// loadgenArgs mark engine and GPU as mocks. The recorded results of the profile are still the default baseline; the
// comparison names these differences.
func (c *dynamoCmd) loadgenArgs() []string {
	p := sim.H200()
	args := append(deployment(api.TargetMocked, "mock of", c.Engine, p, c.Workers), "--default-baseline="+p.Baseline)
	switch {
	case c.Mode == string(api.ModeKV):
		return append(args, "--mode-driver=pinned", "--mode-mode=kv")
	case c.Mode == "direct": // each request must name its worker
		return append(args, "--mode-driver=pinned", "--mode-mode=round_robin", "--mode-offers=round_robin")
	case slices.Contains(api.Modes, api.Mode(c.Mode)): // the frontend's only one, which cannot be switched
		return append(args, "--mode-driver=manual", "--mode-mode="+c.Mode, "--mode-offers="+c.Mode)
	}
	return append(args, "--arms="+c.Mode) // recorded results have no such mode
}

func (c *dynamoCmd) vendor() api.Vendor { return api.VendorNeutral }

// twinArgs describe a second Dynamo under kv, which the load generator can switch. Its mode differs from the first
// one's.
func (c *dynamoCmd) twinArgs() []string {
	return []string{
		"--twin-mode-driver=pinned", "--twin-mode-mode=" + string(c.twinMode()), "--twin-mode-offers=kv,round_robin",
	}
}

func (c *dynamoCmd) twinMode() api.Mode {
	if c.Mode == string(api.ModeKV) {
		return api.ModeRoundRobin
	}
	return api.ModeKV
}

// newBackend installs Dynamo and writes the model folder and the profile.
func (c *dynamoCmd) newBackend(ctx context.Context, b *booth) (backend, error) {
	return c.newDynamo(ctx, b, c.options(), "")
}

// newTwin describes a second frontend with its own mock workers. The two deployments use different discovery folders.
func (c *dynamoCmd) newTwin(ctx context.Context, b *booth) (backend, error) {
	o := c.options()
	o.Mode = "kv"
	o.WorkerPort += twinPorts
	return c.newDynamo(ctx, b, o, "-twin")
}

func (c *dynamoCmd) newDynamo(ctx context.Context, b *booth, o local.Options, suffix string) (backend, error) {
	python, err := local.InstallDynamo(ctx, b.cache, b.out.stderr)
	if err != nil {
		return nil, err
	}
	p := sim.H200()
	npz, model := b.folder(p.Name+".npz"), b.folder("model")
	if err := errors.Join(sim.WriteModel(model), writeProfile(npz, p)); err != nil {
		return nil, err
	}
	port, logs, ordinal := c.FrontendPort, b.folder("logs"), ""
	if suffix != "" {
		port, logs, ordinal = port+twinPorts, b.folder("logs", "twin"), "A second "
	}
	if o.FrontendPort, err = b.ports.take("the frontend", port, 1); err != nil {
		return nil, err
	}
	o.Python, o.ModelDir, o.ModelName, o.ProfilePath, o.LogDir = python, model, p.Model, npz, logs
	o.BlockTokens, o.Blocks = p.KV.BlockTokens, p.KV.Blocks
	o.MaxSequences, o.MaxBatchedTokens = p.MaxSequences, p.MaxBatchedTokens
	heading := fmt.Sprintf("%sNVIDIA Dynamo %s is up, router mode %s, with mock workers simulating %s on %s: "+
		"real routing, no model, timing fitted to %s.",
		ordinal, local.DynamoVersion, strings.ReplaceAll(o.Mode, "-", "_"), c.Engine, p.GPU, p.Baseline)
	if suffix != "" && c.twinMode() == api.ModeRoundRobin {
		heading += " The load generator itself distributes the turns of its lane twin to the workers (round-robin)."
	}
	o.Suffix, o.Say = suffix, b.out.say
	return &realDynamo{options: o, heading: heading}, nil
}

func writeProfile(path string, p sim.Profile) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(sim.WriteNPZ(file, p), file.Close())
}

// realDynamo is a Dynamo with mock workers as a part of a booth.
type realDynamo struct {
	options local.Options
	heading string
	dynamo  *local.Dynamo // nil before start
}

func (d *realDynamo) title() string {
	if d.options.Suffix != "" {
		return fmt.Sprintf("a second NVIDIA Dynamo with %d mock workers", d.options.Workers)
	}
	return fmt.Sprintf("NVIDIA Dynamo %s with %d mock workers", local.DynamoVersion, d.options.Workers)
}

func (d *realDynamo) start(ctx context.Context) (err error) {
	d.dynamo, err = local.StartDynamo(ctx, d.options)
	return err
}

func (d *realDynamo) stop(ctx context.Context) {
	if d.dynamo != nil {
		d.dynamo.Stop(ctx)
	}
}

func (d *realDynamo) addresses() addresses {
	a := addresses{frontend: host(d.dynamo.URL())}
	for _, w := range d.dynamo.Workers() {
		a.workers = append(a.workers, host(w.MetricsURL))
	}
	return a
}

// host returns host and port of a valid URL.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	return u.Host
}

func (d *realDynamo) describe() (heading string, rows [][2]string) {
	rows = append(rows, [2]string{"frontend", d.dynamo.URL() + ", metrics at /metrics"})
	for _, w := range d.dynamo.Workers() {
		rows = append(rows, [2]string{w.Name, w.MetricsURL})
	}
	return d.heading, rows
}

func (d *realDynamo) watch(ctx context.Context) error { return d.dynamo.Watch(ctx) }
