package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/loadgen/cluster/probe"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/sim"
)

// arenaCmd is `booth arena`.
type arenaCmd struct {
	Routers []string `default:"sglang,smg,vllm-router,envoy:hash" placeholder:"ROUTER:POLICY" help:"Routers to compare, with a policy where it is not the default: sglang-router, smg, vllm-router, envoy, litellm, haproxy, nginx; dynamo with the modes of booth dynamo, which has mock workers of its own. Not with --engines: dynamo. A plain round-robin and, with simulated engines, the best placement run in any case."`

	Engines []string `placeholder:"URL" help:"Engines behind the routers, such as http://gpu-1:8000. Default: simulated ones."`
	Profile string   `default:"h200-tp1" help:"Deployment that the simulated engines have: ${profiles}, or a file written by booth calibrate."`
	Workers int      `default:"4" help:"Number of simulated engines."`
	Engine  string   `default:"vllm" enum:"vllm,sglang" help:"Engine that they imitate: ${enum}."`

	Traffic     string   `placeholder:"SHAPE" help:"Shape of the traffic, as loadgen's --shape: recorded, chat, prefix, rag, agent, few-shot, batch, mixed."`
	Trace       string   `placeholder:"FILE" help:"Recorded traffic, as loadgen's --trace. It is repeated."`
	Rate        string   `placeholder:"N/s" help:"Conversations that begin in a second."`
	Concurrency int      `default:"24" help:"Number of concurrent conversations, without a rate."`
	Output      []string `placeholder:"FILE" help:"Files for the ranking, by extension: .html, .md, .json, .csv."`
	Port        int      `default:"8088" help:"Port of the page; if taken, the next free one."`
	CacheDir    string   `placeholder:"DIR" help:"Directory for routers, results and logs. Default: kvbooth in the user's cache directory."`
	Trial       []string `arg:"" optional:"" placeholder:"FLAG" help:"After --: flags of loadgen trial, such as --max-time=2h."`
}

// Help returns the text below the list of flags.
func (c *arenaCmd) Help() string {
	return `The first call installs the routers, each in a virtual environment of its own. The load generator then runs a ` +
		`trial of all of them, whose page it names. Ctrl-C stops everything; the same command resumes the trial. ` +
		`docs/arena.md explains the ranking.

Exit codes: 0 the ranking has its answer; 1 something failed; 2 invalid flags, nothing was started; ` +
		`4 undecided or unfinished.`
}

// contender is an arm of the arena.
type contender struct {
	name    string
	router  *local.Router // nil for our own and for Dynamo
	policy  string
	service *service
	door    probe.Door
	arm     map[string]any // of the load generator's configuration
	note    string         // what it adds to an engine
}

// arena is a running arena.
type arena struct {
	*booth

	flags   *arenaCmd
	dynamo  string // mode of Dynamo; empty: without it
	model   string
	engines []string // host and port
	events  []string // URLs of their KV events; empty: they are not known
	lineup  []*contender

	blockTokens int // of the simulated engines
}

func (c *arenaCmd) run(ctx, killCtx context.Context, stdout, stderr io.Writer) error {
	a := &arena{flags: c, booth: &booth{dir: "arena", out: newScreen(stdout, stderr)}}
	a.ports.say = a.out.say
	if err := a.prepare(ctx); err != nil {
		return err
	}
	unlock, err := a.lock("booth")
	if err != nil {
		return err
	}
	defer unlock()
	programs, err := a.install(ctx)
	if err != nil {
		return err
	}
	defer a.stop(killCtx)
	if err := a.startAll(ctx, programs); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	for _, c := range a.lineup {
		if c.router != nil {
			c.service.optional = true // the trial goes on without a router that keeps failing
		}
	}
	running, end := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		failed <- a.watch(running)
		end()
	}()
	err = a.compare(running, stdout)
	end()
	if failure := <-failed; failure != nil { // a part that keeps failing has ended the trial
		return failure
	}
	return err
}

// prepare reads the flags, before anything is installed or started.
func (a *arena) prepare(ctx context.Context) error {
	c := a.flags
	if err := checkPorts(map[string]int{"port": c.Port}); err != nil {
		return err
	}
	for _, text := range c.Routers {
		if err := a.enter(text); err != nil {
			return err
		}
	}
	n := len(a.lineup)
	if a.dynamo != "" {
		n++
	}
	if n < 1 || n > mostRouters {
		return api.Refuse("routers", strings.Join(c.Routers, ","), fmt.Sprintf("1 to %d routers", mostRouters))
	}
	if err := a.useCache(c.CacheDir); err != nil {
		return err
	}
	if err := a.findEngines(ctx); err != nil {
		return err
	}
	return a.checkTrial(ctx)
}

// checkTrial lets the load generator check the trial's flags.
func (a *arena) checkTrial(ctx context.Context) error {
	program, err := loadgenPath()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kvbooth-arena-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	later := process.Loopback(a.flags.Port) // addresses are not known yet
	config := filepath.Join(dir, "loadgen.yaml")
	if err := writeTrial(config, []map[string]any{
		{"name": "a", "url": "http://" + later}, {"name": "b", "url": "http://" + later + "/b"},
	}, nil, a.model); err != nil {
		return err
	}
	check := exec.CommandContext(ctx, program, append(a.trialArgs(config, later), "--check-only")...)
	check.Env = trialEnvironment()
	if printed, err := check.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s (%w)", errBadInput, strings.TrimSpace(string(printed)), err)
	}
	return nil
}

// enter adds a router of the flags.
func (a *arena) enter(text string) error {
	mode, isDynamo := strings.CutPrefix(text, "dynamo")
	if !isDynamo {
		r, policy, err := local.FindRouter("routers", text)
		if err != nil {
			return err
		}
		if r.NeedsEvents(policy) && len(a.flags.Engines) > 0 {
			return api.Refuse("routers", text, "a policy that needs no KV events, with --engines")
		}
		name := r.ID + " " + policy
		if slices.ContainsFunc(a.lineup, func(c *contender) bool { return c.name == name }) {
			return api.Refuse("routers", text, "each router once with the same policy")
		}
		a.lineup = append(a.lineup, &contender{name: name, router: r, policy: policy})
		return nil
	}
	switch {
	case len(a.flags.Engines) > 0:
		return api.Refuse("routers", text, "no dynamo with --engines: its mock workers are its own")
	case a.dynamo != "":
		return api.Refuse("routers", text, "one dynamo")
	case a.flags.Profile != sim.H200().Name:
		return api.Refuse("routers", text, "no dynamo with --profile: its mock workers have the timing of "+sim.H200().Name)
	}
	a.dynamo = strings.ReplaceAll(cmp.Or(strings.TrimPrefix(mode, ":"), "kv"), "_", "-")
	return (local.Options{Mode: a.dynamo}).Check()
}

// mostRouters leaves two of the nine arms of a trial to our own.
const mostRouters = 7

// findEngines asks the user's engines for their model, or takes that of the profile.
func (a *arena) findEngines(ctx context.Context) error {
	if len(a.flags.Engines) == 0 {
		f := a.simulated()
		o, err := f.simulation()
		a.model, a.blockTokens = o.Profile.Model, o.Profile.KV.BlockTokens
		return err
	}
	for _, text := range a.flags.Engines {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" || u.Host == "" {
			return api.Refuse("engines", text, "URLs of engines, such as http://gpu-1:8000")
		}
		model, err := servedModel(ctx, u)
		switch {
		case err != nil:
			return api.Refuse("engines", text, fmt.Sprintf("an engine that answers (%v)", err))
		case a.model != "" && model != a.model:
			return api.Refuse("engines", text, fmt.Sprintf("engines of one model: it serves %s, and %s serves %s", model,
				a.engines[0], a.model))
		}
		a.model, a.engines = model, append(a.engines, u.Host)
	}
	return nil
}

// servedModel returns the first model that an engine lists.
func servedModel(ctx context.Context, engine *url.URL) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, engine.JoinPath("v1/models").String(), nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var list struct {
		Data []struct{ ID string }
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil || len(list.Data) == 0 {
		return "", fmt.Errorf("%s lists no model: %s", r.URL, response.Status)
	}
	return list.Data[0].ID, nil
}

// simulated are the flags of the simulated engines.
func (a *arena) simulated() simFlags {
	c := a.flags
	return simFlags{
		Profile: c.Profile, Workers: c.Workers, Mode: api.ModeKV, Speculation: api.SpeculationOff, Engine: c.Engine,
		Speed: 1, Seed: 1,
	}
}

// install installs the routers, and returns their programs.
func (a *arena) install(ctx context.Context) (programs map[*contender]string, err error) {
	missing := 0
	for _, r := range a.lineup {
		if !r.router.Installed(a.cache) {
			missing += r.router.Package.MB
		}
	}
	if err := process.CheckRoom(a.cache, missing); err != nil {
		return nil, fmt.Errorf("%w: %w", errBadInput, err)
	}
	programs = map[*contender]string{}
	for _, r := range a.lineup {
		if programs[r], err = r.router.Install(ctx, a.cache, a.out.stderr); err != nil {
			return nil, fmt.Errorf("%w; leave it out of --routers to compare the others", err)
		}
	}
	return programs, nil
}

// startAll starts the engines, and then everything in front of them.
func (a *arena) startAll(ctx context.Context, programs map[*contender]string) error {
	if err := a.setLogsAside(); err != nil {
		return err
	}
	if len(a.engines) == 0 {
		if err := a.startEngines(ctx); err != nil {
			return err
		}
	}
	var parts []part
	for _, r := range a.lineup {
		if r.router == nil {
			continue
		}
		if err := a.describe(r, programs[r]); err != nil {
			return err
		}
		parts = append(parts, r.service)
	}
	inTurn, err := a.plain()
	if err != nil {
		return err
	}
	a.lineup = append(a.lineup, inTurn)
	parts = append(parts, inTurn.service)
	if a.dynamo == "" {
		return a.bring(ctx, parts...)
	}
	dynamo, made, err := a.newDynamo(ctx)
	if err != nil {
		return err
	}
	if err := a.bring(ctx, append(parts, made)...); err != nil {
		return err
	}
	at := made.addresses()
	dynamo.door = probe.Door{URL: "http://" + at.frontend, Model: a.model}
	dynamo.arm["metrics_urls"] = strings.Fields(urls("http://", at.workers))
	a.lineup = append(a.lineup, dynamo)
	return nil
}

// The ports from which the arena's servers take theirs.
const (
	enginePort  = 18100
	eventPort   = 18150
	routerPort  = 18200
	metricsPort = 18300
	dynamoPort  = 18400
)

// startEngines starts the simulated engines with the best placement, which knows their caches exactly.
func (a *arena) startEngines(ctx context.Context) error {
	f := a.simulated()
	frontend, errFrontend := a.ports.take("the best placement", enginePort, 1)
	worker, errWorker := a.ports.take("the first engine", enginePort+1, f.Workers)
	event, errEvent := a.ports.take("the first engine's events", eventPort, f.Workers)
	replay, errReplay := a.ports.take("the first engine's replay", eventPort+f.Workers, f.Workers)
	if err := errors.Join(errFrontend, errWorker, errEvent, errReplay); err != nil {
		return err
	}
	engines, err := a.ownService("the simulated engines", process.Loopback(frontend), "/health", append([]string{
		"cluster", "--workers-only", "--best-placement", "--port=" + strconv.Itoa(frontend),
		"--worker-port=" + strconv.Itoa(worker), "--event-port=" + strconv.Itoa(event),
		"--replay-port=" + strconv.Itoa(replay),
	}, f.args()...)...)
	if err != nil {
		return err
	}
	if err := a.bring(ctx, engines); err != nil {
		return err
	}
	for i := range f.Workers {
		a.engines = append(a.engines, process.Loopback(worker+i))
		a.events = append(a.events, "tcp://"+process.Loopback(event+i))
	}
	door := probe.Door{URL: "http://" + process.Loopback(frontend), Model: a.model}
	a.lineup = append(a.lineup, &contender{name: "best placement", door: door, arm: map[string]any{}})
	return nil
}

// describe describes a router.
func (a *arena) describe(c *contender, program string) error {
	i := slices.Index(a.lineup, c)
	port, errPort := a.ports.take(c.name, routerPort+i, 1)
	metrics, errMetrics := a.ports.take("the metrics of "+c.name, metricsPort+i, 1)
	if err := errors.Join(errPort, errMetrics); err != nil {
		return err
	}
	command, err := c.router.Command(program, local.RouterStart{
		Policy: c.policy, Port: port, Metrics: metrics, Model: a.model, Workers: a.engines,
		Events: a.events, BlockTokens: a.blockTokens,
		Folder: a.folder("logs", strings.ReplaceAll(c.name, " ", "-")),
	})
	if err != nil {
		return err
	}
	url := "http://" + process.Loopback(port)
	c.service = a.newService(c.name, url, c.router.Ready, readyTimeout, command)
	c.door = probe.Door{URL: url, Model: a.model, Key: c.router.Key}
	c.arm = map[string]any{"worker_header": a.workerHeader(c.router.Worker)}
	if header := c.router.Session(c.policy); header != "" {
		c.arm["session"] = "header:" + header
	}
	if c.router.Key != "" {
		file := filepath.Join(filepath.Dir(command.Log), "key")
		c.arm["api_key_file"] = file
		return os.WriteFile(file, []byte(c.router.Key), 0o600)
	}
	return nil
}

// workerHeader returns the header of a router, or else that of the simulated engines.
func (a *arena) workerHeader(own string) string {
	if own == "" && len(a.flags.Engines) == 0 {
		return httpd.WorkerHeader
	}
	return own
}

// plain is our own round-robin.
func (a *arena) plain() (*contender, error) {
	port, err := a.ports.take("the plain round-robin", routerPort+len(a.lineup), 1)
	if err != nil {
		return nil, err
	}
	args := []string{"route", "--port=" + strconv.Itoa(port)}
	for _, e := range a.engines {
		args = append(args, "--workers=http://"+e)
	}
	c := &contender{name: "plain round-robin", arm: map[string]any{"worker_header": a.workerHeader("")}}
	c.service, err = a.ownService(c.name, process.Loopback(port), "/v1/models", args...)
	c.door = probe.Door{URL: "http://" + process.Loopback(port), Model: a.model}
	return c, err
}

// newDynamo describes the Dynamo, whose mock workers have the timing of the simulated engines.
func (a *arena) newDynamo(ctx context.Context) (*contender, backend, error) {
	f := a.flags
	d := &dynamoCmd{flags: flags{FrontendPort: dynamoPort}, Engine: f.Engine}
	made, err := d.newDynamo(ctx, a.booth, local.Options{
		Workers: f.Workers, Mode: a.dynamo, Engine: f.Engine, WorkerPort: dynamoPort + 1,
	}, "")
	return &contender{name: "dynamo " + a.dynamo, arm: map[string]any{}}, made, err
}

// compare measures what each router adds to an idle engine, and then runs the trial.
func (a *arena) compare(ctx context.Context, stdout io.Writer) error {
	if err := a.weighAll(ctx); err != nil {
		if ctx.Err() != nil {
			return a.stopped()
		}
		return err
	}
	config, err := a.configure()
	if err != nil {
		return err
	}
	program, err := loadgenPath()
	if err != nil {
		return err
	}
	page, err := a.address("the page", a.flags.Port)
	if err != nil {
		return err
	}
	a.out.say("the ranking so far: http://%s/benchmarks", page)
	command := process.Command{
		Name: "the trial", Path: program, Args: a.trialArgs(config, page), Env: trialEnvironment(),
	}
	err = process.Run(ctx, command, func(line string) { fmt.Fprintln(stdout, line) })
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return a.stopped()
	case errors.As(err, &exit):
		return exitCode{exit.ExitCode(), err}
	}
	return err
}

// unfinished is the exit code of the load generator's trials without an answer.
const unfinished = 4

// exitCode is an error with the exit code of this program.
type exitCode struct {
	code int
	error
}

// stopped says what to do after a stop.
func (a *arena) stopped() error {
	a.out.say("stopped; the same command resumes the trial")
	return exitCode{unfinished, context.Canceled}
}

// weighAll measures what the routers add, and keeps it for the next call with the same engines.
func (a *arena) weighAll(ctx context.Context) error {
	file, kept := a.folder("added.json"), map[string]string{}
	if text, err := os.ReadFile(file); err == nil {
		_ = json.Unmarshal(text, &kept) // what cannot be read is measured again
	}
	for _, c := range a.lineup {
		if c.service == nil { // it is no router in front of the engines
			continue
		}
		key := fmt.Sprint(c.name, a.model, a.flags.Engines, a.flags.Profile, a.flags.Engine)
		if c.router != nil {
			key += c.router.Version()
		}
		if c.note = kept[key]; c.note != "" {
			a.out.say("%s: %s (measured before)", c.name, c.note)
			continue
		}
		if err := a.weigh(ctx, c); err != nil {
			return err
		}
		kept[key] = c.note
		text, err := json.Marshal(kept)
		if err := errors.Join(err, os.WriteFile(file, text, 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// addedPairs is the number of pairs of requests that measure what a router adds.
const addedPairs = 40

// weigh measures by how much later the first token comes through a router, and the processor time that it takes for a
// request.
func (a *arena) weigh(ctx context.Context, c *contender) error {
	a.out.say("measuring what %s adds to an engine", c.name)
	used := func() time.Duration {
		d, _ := c.service.Process().CPUTime() // 0 where this system does not report it
		return d
	}
	before := used()
	added, err := probe.AddedLatency(ctx, c.door, probe.Door{URL: "http://" + a.engines[0], Model: a.model}, addedPairs)
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	ms := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds()*1000, 'f', 1, 64) }
	c.note = fmt.Sprintf("TTFT %s ms later than from an idle engine (95 %%: %s to %s)", ms(added.Median),
		ms(added.Interval[0]), ms(added.Interval[1]))
	if cpu := used() - before; cpu > 0 {
		c.note += fmt.Sprintf(", %s ms of CPU a request", ms(cpu/time.Duration(added.Requests)))
	}
	a.out.say("%s: %s", c.name, c.note)
	return nil
}

// configure writes the configuration of the load generator, and returns its path.
func (a *arena) configure() (file string, err error) {
	var arms []map[string]any
	for _, c := range a.lineup {
		c.arm["name"], c.arm["url"], c.arm["note"] = c.name, c.door.URL, c.note
		arms = append(arms, c.arm)
	}
	file = a.folder("loadgen.yaml")
	return file, writeTrial(file, arms, a.engines, a.model)
}

// writeTrial writes a configuration of the load generator.
func writeTrial(file string, arms []map[string]any, engines []string, model string) error {
	pages := []string{"no-target"}
	for _, e := range engines {
		pages = append(pages, "http://"+e)
	}
	text, err := json.Marshal(map[string]any{
		"arms": arms, "cluster": map[string]any{"metrics_urls": pages},
		"target": map[string]any{"url": arms[0]["url"], "model": model},
	})
	return errors.Join(err, os.WriteFile(file, text, 0o600)) // JSON is YAML, too
}

// trialEnvironment is the environment of the load generator.
func trialEnvironment() []string { return environment("LOADGEN_PRESET=demo") }

// trialArgs are the arguments of the load generator.
func (a *arena) trialArgs(config, page string) []string {
	c := a.flags
	args := []string{
		"trial", "--config=" + config, "--listen=" + page, "--data-dir=" + a.folder("data"), "--question=order",
	}
	if len(c.Engines) == 0 {
		f := a.simulated()
		o, _ := f.simulation() // prepare has parsed the flags
		args = append(args, deployment(api.TargetSimulated, "simulated", c.Engine, o.Profile, c.Workers)...)
	}
	if c.Traffic != "" {
		args = append(args, "--shape="+c.Traffic)
	}
	if c.Trace != "" {
		args = append(args, "--trace="+c.Trace, "--trace-loop")
	}
	if c.Rate != "" {
		args = append(args, "--rate="+c.Rate)
	} else {
		// Conversations of one turn begin as often as turns do. None is to wait for its start, and no turn for another.
		args = append(args, "--concurrency="+strconv.Itoa(c.Concurrency), "--start-rate="+strconv.Itoa(10*c.Concurrency),
			"--target-rps=0")
	}
	for _, file := range c.Output {
		args = append(args, "--output="+file)
	}
	return append(args, c.Trial...)
}
