package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/sim"
)

// enginesCmd is `booth engines`.
type enginesCmd struct {
	Count    int    `default:"2" help:"Number of engines, 1 to ${most_engines}."`
	Port     int    `default:"9001" help:"Port of the first engine, the others follow; if taken, the next free ones."`
	CacheDir string `placeholder:"DIR" help:"Directory for vLLM, the model and logs. Default: kvbooth in the user's cache directory."`
}

// Help returns the text below the list of flags.
func (c *enginesCmd) Help() string {
	return fmt.Sprintf("The first call installs vLLM %s, which takes %.1f GB of disk and about six minutes. "+
		"Each engine takes %.1f GB of memory and about a minute to start. The model has 32 million random parameters, "+
		"so that its answers are words without meaning. docs/arena.md shows how to compare routers in front of them.",
		local.VLLMVersion, local.VLLMDiskMB/1000., local.VLLMMemoryMB/1000.)
}

// mostEngines bounds the engines of one machine: each has a thread of its own.
const mostEngines = 16

// randomModel is the name of the engines' model.
const randomModel = "random-32m"

// engineTimeout is the time until all engines must be ready. On two cores, two of them took 110 s.
const engineTimeout = 10 * time.Minute

func (c *enginesCmd) run(ctx, killCtx context.Context, stdout, stderr io.Writer) error {
	b := &booth{dir: "engines", out: newScreen(stdout, stderr), patience: engineTimeout}
	b.ports.say = b.out.say
	if c.Count < 1 || c.Count > mostEngines {
		return api.Refuse("count", c.Count, fmt.Sprintf("1 to %d", mostEngines))
	}
	if err := errors.Join(checkPorts(map[string]int{"port": c.Port}), b.useCache(c.CacheDir)); err != nil {
		return err
	}
	unlock, err := b.lock("engines")
	if err != nil {
		return err
	}
	defer unlock()
	python, err := c.install(ctx, b)
	if err != nil {
		return err
	}
	defer b.stop(killCtx)
	engines, err := c.describe(b, python)
	if err != nil {
		return err
	}
	parts := make([]part, len(engines))
	for i, e := range engines {
		parts[i] = e
	}
	if err := b.bring(ctx, parts...); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	c.announce(b, engines)
	return b.watch(ctx)
}

// install installs vLLM and writes the model, once the disk and the memory are known to suffice.
func (c *enginesCmd) install(ctx context.Context, b *booth) (python string, err error) {
	errs := []error{process.CheckMemory(c.Count * local.VLLMMemoryMB)}
	if !local.VLLMInstalled(b.cache) {
		errs = append(errs, process.CheckRoom(b.cache, local.VLLMDiskMB))
	}
	if err := errors.Join(errs...); err != nil {
		return "", fmt.Errorf("%w: %w", errBadInput, err)
	}
	b.out.say("each engine takes about %.1f GB of memory, and a minute to start", local.VLLMMemoryMB/1000.)
	if python, err = local.InstallVLLM(ctx, b.cache, b.out.stderr); err != nil {
		return "", err
	}
	return python, sim.WriteRandomModel(b.folder("model"))
}

// describe describes the engines.
func (c *enginesCmd) describe(b *booth, python string) (engines []*service, err error) {
	if err := b.setLogsAside(); err != nil {
		return nil, err
	}
	first, err := b.ports.take("the first engine", c.Port, c.Count)
	if err != nil {
		return nil, err
	}
	for i := range c.Count {
		name := "engine-" + strconv.Itoa(i+1)
		engine := local.VLLM{
			Python: python, ModelDir: b.folder("model"), Model: randomModel, Port: first + i,
			Events: "ipc://" + b.folder(name+".events"), Log: b.log(name),
		}
		command, err := engine.Command()
		if err != nil {
			return nil, err
		}
		s := b.newService(name, "http://"+process.Loopback(first+i), "", engineTimeout, command)
		s.Ready = engine.Ready
		engines = append(engines, s)
	}
	return engines, nil
}

// announce prints the addresses of the engines.
func (c *enginesCmd) announce(b *booth, engines []*service) {
	var rows [][2]string
	all := ""
	for _, e := range engines {
		rows = append(rows, [2]string{e.Name, e.url + ", metrics at /metrics, KV events at ipc://" +
			b.folder(e.Name+".events")})
		all += "," + e.url
	}
	rows = append(rows, [2]string{"model", randomModel}, [2]string{"logs", b.folder("logs")},
		[2]string{"compare routers", "booth arena --engines " + all[1:]})
	b.out.table(fmt.Sprintf("vLLM %s is up, on the CPU, with a random model.", local.VLLMVersion), rows,
		"Press Ctrl-C to stop.")
}
