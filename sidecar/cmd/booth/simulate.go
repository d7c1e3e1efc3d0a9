package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/renameio/v2/maybe"
	"github.com/schollz/progressbar/v3"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/sim/study"
	"kvbooth/sidecar/trace"
)

// simulateCmd is `booth simulate`. Flags that are not set leave their field of the request to the preset, and then to
// the profile.
type simulateCmd struct {
	Preset    string   `default:"as-recorded" help:"Workload that the other flags modify: ${presets}."`
	Profile   string   `default:"h200-tp1" help:"Deployment to simulate: ${profiles}, or a file written by booth calibrate."`
	Levels    []string `aliases:"concurrency" placeholder:"LEVELS" help:"Concurrent conversations, such as 60,80,100 or 60:180:20 (from, to, step), or conversations that begin in a second, such as 0.5/s,2/s (see --arrivals). Default: 60:180:20."`
	Modes     []string `placeholder:"MODES" help:"Router modes: kv, round_robin, least_loaded. Default: kv,round_robin."`
	Seeds     *int     `placeholder:"N" help:"Runs per level and mode, each with its own seed. Default: 6."`
	FirstSeed *int     `placeholder:"N" help:"First seed. Default: 1."`

	Workers      *int             `group:"Cluster" placeholder:"N" help:"Number of workers."`
	MaxBatchSize *int             `group:"Cluster" placeholder:"N" help:"Maximum sequences per worker iteration."`
	BlockSize    *int             `group:"Cluster" placeholder:"TOKENS" help:"Tokens per KV cache block."`
	KVTokens     *int             `group:"Cluster" name:"kv-tokens" xor:"kv" placeholder:"TOKENS" help:"KV cache size of one worker in tokens."`
	KVBlocks     *int             `group:"Cluster" name:"kv-blocks" xor:"kv" placeholder:"N" help:"KV cache size of one worker in blocks."`
	Speculation  *api.Speculation `group:"Cluster" placeholder:"KIND" help:"Speculative decoding: not_recorded (as in the recorded results), off, draft, eagle3."`

	OverlapWeight                   *float64 `group:"Router" placeholder:"WEIGHT" help:"Weight of prefill in the kv router's cost."`
	Temperature                     *float64 `group:"Router" placeholder:"T" help:"Sampling temperature of the kv router; 0 always picks the lowest cost."`
	RouterDecodeActiveRequestWeight *float64 `group:"Router" placeholder:"BLOCKS" help:"As in Dynamo: extra blocks counted for each request in progress."`
	RouterTrackOutputBlocks         *bool    `group:"Router" negatable:"" help:"As in Dynamo: also count the blocks of answers."`
	RouterAssumeKVReuse             *bool    `group:"Router" name:"router-assume-kv-reuse" negatable:"" help:"As in Dynamo: count a block shared by several requests only once. --no-router-assume-kv-reuse counts it for each."`

	// Their help begins with that of [api.WorkloadSettings].
	Shape api.TrafficShape `embed:"" prefix:"shape-" group:"Workload"`

	Openings           *int           `group:"Workload" placeholder:"N"`
	OpeningTokens      *int           `group:"Workload" placeholder:"TOKENS" help:"0: 3,500 to 4,000, as recorded."`
	TurnsMin           *int           `group:"Workload" placeholder:"N"`
	TurnsMax           *int           `group:"Workload" placeholder:"N"`
	OutputTokensMean   *float64       `group:"Workload" placeholder:"TOKENS"`
	OutputTokensCV     *float64       `group:"Workload" name:"output-tokens-cv" placeholder:"CV"`
	MaxTokens          *int           `group:"Workload" placeholder:"TOKENS"`
	QuestionTokensMean *float64       `group:"Workload" placeholder:"TOKENS"`
	QuestionTokensCV   *float64       `group:"Workload" name:"question-tokens-cv" placeholder:"CV"`
	ThinkTime          *time.Duration `group:"Workload" placeholder:"TIME"`
	StartRate          *float64       `group:"Workload" placeholder:"RATE"`
	Arrivals           *api.Arrivals  `group:"Workload" placeholder:"KIND" help:"Default: poisson."`
	Burstiness         *float64       `group:"Workload" placeholder:"SHAPE"`
	MaxInflight        *int           `group:"Workload" placeholder:"N"`

	Trace          []string      `group:"Trace" sep:"none" placeholder:"FILE" help:"Replay the requests of a trace at their recorded times instead of simulating conversations: Dynamo's request trace, or JSON lines in the format of Mooncake, Bailian, WEKA or AIPerf's sessions, or the CSV of BurstGPT or Azure, whose prompts then share no blocks; may be gzipped, a pattern such as 'trace.*.jsonl.gz', or repeated for several files. The cache uses the trace's block size and, unless --kv-blocks sets its blocks, holds as many tokens as without a trace."`
	TraceBlockSize int           `group:"Trace" placeholder:"TOKENS" help:"Tokens per block in a trace that does not include it. Default: inferred from the trace."`
	TraceTimeUnit  trace.Unit    `group:"Trace" placeholder:"UNIT" help:"Unit of the trace's timestamps: s, ms, us or ns. Default: inferred from the trace."`
	firstRequest   *trace.Record `kong:"-"` // of the trace; nil without a trace
	TraceSpeed     float64       `group:"Trace" default:"1" placeholder:"X" help:"Replay speed as a multiple of the recorded speed."`

	Output   []string `group:"Results" sep:"none" placeholder:"FILE" help:"Write all figures to FILE.csv or FILE.json; the JSON also has each run. May be repeated."`
	Baseline []string `group:"Results" sep:"none" placeholder:"FILE" help:"Write FILE.csv or FILE.json as a baseline that the load generator can import; it is marked as simulated. May be repeated."`
	Compare  string   `group:"Results" placeholder:"NAME" help:"Show recorded results next to the simulated ones: ${baselines}."`
	Explain  bool     `group:"Results" help:"Explain in words where the modes differ, and what correlates with it."`
	Against  string   `group:"Results" placeholder:"FILE.json" help:"Explain this run compared with an earlier one written with --output, mode by mode."`
	Jobs     int      `group:"Results" default:"${cores}" help:"Number of runs to compute in parallel."`
}

// Help returns the text below the list of flags.
func (c *simulateCmd) Help() string {
	return "Defaults are those of the recorded workload on the profile's deployment. " +
		"The same flags give byte-identical output on any machine and with any --jobs."
}

func (c *simulateCmd) run(ctx, _ context.Context, stdout, stderr io.Writer) error {
	out := newScreen(stdout, stderr)
	if len(c.Trace) > 0 {
		return flagOf(c.replay(ctx, out))
	}
	plan, err := c.plan()
	if err != nil {
		return flagOf(err)
	}
	runs := plan.grid.Runs()
	bar := out.bar(runs, "simulating")
	done := 0
	points, err := plan.grid.Run(ctx, c.Jobs, func(_ study.Point, n int) {
		done = n
		_ = bar.Set(n)
	})
	_ = bar.Clear()
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("interrupted after %d of %d runs; nothing was written", done, runs)
	case err != nil:
		return flagOf(err)
	}
	result := study.NewResult(plan.request, plan.profile, points)
	if err := c.write(&result); err != nil {
		return err
	}
	return c.show(stdout, &result, plan)
}

// plan holds the request of a simulation and the results to compare with.
type plan struct {
	request study.Request
	profile sim.Profile
	grid    study.Grid
	beside  *api.Baseline // recorded results; nil for none
	earlier *study.Result // earlier result; nil for none
}

// plan checks all flags before the computation.
func (c *simulateCmd) plan() (plan, error) {
	p, err := sim.OpenProfile(c.Profile)
	if err != nil {
		return plan{}, err
	}
	preset, err := study.FindPreset(c.Preset, p)
	if err != nil {
		return plan{}, err
	}
	r, err := c.request(p, preset.Request)
	if err != nil {
		return plan{}, err
	}
	g, err := r.GridOn(p)
	if err != nil {
		return plan{}, err
	}
	if c.Jobs < 1 {
		return plan{}, api.Refuse("jobs", c.Jobs, "at least 1")
	}
	made := plan{request: r, profile: p, grid: g}
	return made, errors.Join(c.checkFiles(&made), made.compareWith(c.Compare), made.against(c.Against))
}

// request returns the request of the flags, based on a preset.
func (c *simulateCmd) request(p sim.Profile, preset study.Request) (study.Request, error) {
	levels, err := c.levels()
	if err != nil {
		return study.Request{}, err
	}
	base := preset.Complete(p)
	r := study.Request{
		Levels: levels, Seeds: c.Seeds, FirstSeed: c.FirstSeed,
		Shape: &c.Shape, Openings: c.Openings, OpeningTokens: c.OpeningTokens, MaxTokens: c.MaxTokens, StartRate: c.StartRate,
		Arrivals: c.Arrivals, Burstiness: c.Burstiness, MaxInflight: c.MaxInflight,
		Workers: c.Workers, MaxBatchSize: c.MaxBatchSize, BlockSize: c.BlockSize, KVTokens: c.KVTokens,
		Speculation: c.Speculation, OverlapWeight: c.OverlapWeight, Temperature: c.Temperature,
		RouterDecodeActiveRequestWeight: c.RouterDecodeActiveRequestWeight,
		RouterTrackOutputBlocks:         c.RouterTrackOutputBlocks,
		RouterAssumeKVReuse:             c.RouterAssumeKVReuse,
	}
	if c.TurnsMin != nil || c.TurnsMax != nil {
		r.Turns = &api.Range{Min: or(c.TurnsMin, base.Turns.Min), Max: or(c.TurnsMax, base.Turns.Max)}
	}
	r.OutputTokens = distribution(c.OutputTokensMean, c.OutputTokensCV, base.OutputTokens)
	r.QuestionTokens = distribution(c.QuestionTokensMean, c.QuestionTokensCV, base.QuestionTokens)
	if err := r.CheckTraffic(c.firstRequest != nil); err != nil {
		return r, err
	}
	blockSize := or(c.BlockSize, *base.BlockSize)
	if c.firstRequest != nil { // a trace has no conversations that would have to fit into a cache
		r.Turns, r.OpeningTokens, r.MaxTokens = &api.Range{Min: 1, Max: 1}, new(1), new(1)
		r.OutputTokens, r.QuestionTokens = &api.Distribution{}, &api.Distribution{Mean: 1}
		blockSize = c.firstRequest.BlockTokens
	}
	for _, m := range c.Modes {
		r.Modes = append(r.Modes, api.Mode(m))
	}
	if c.ThinkTime != nil {
		r.ThinkTime = new(c.ThinkTime.Seconds())
	}
	if c.KVBlocks != nil {
		r.KVTokens = new(*c.KVBlocks * blockSize)
	}
	return r.Over(base), nil
}

// distribution returns that of two flags, nil where neither is given. The other one is that of base.
func distribution(mean, cv *float64, base *api.Distribution) *api.Distribution {
	if mean == nil && cv == nil {
		return nil
	}
	return &api.Distribution{Mean: or(mean, base.Mean), CV: or(cv, base.CV)}
}

func or[T any](flag *T, other T) T {
	if flag != nil {
		return *flag
	}
	return other
}

// mostLevels limits the number of levels of a span. It is above the limit of a request.
const mostLevels = 1000

// levels reads the flag of that name: levels, and spans of numbers (from:to:step).
func (c *simulateCmd) levels() (levels []api.Level, err error) {
	for _, text := range c.Levels {
		if level, ok := api.ParseLevel(strings.TrimSpace(text)); ok {
			levels = append(levels, level)
			continue
		}
		var numbers []int
		for part := range strings.SplitSeq(text, ":") {
			n, err := strconv.Atoi(strings.TrimSpace(part))
			if err != nil {
				numbers = nil
				break
			}
			numbers = append(numbers, n)
		}
		if len(numbers) != 3 || numbers[2] < 1 || numbers[1] < numbers[0] {
			return nil, api.Refuse("levels", strconv.Quote(text),
				"a number such as 60, a rate such as 2/s, or from:to:step such as 60:180:20")
		}
		for level := numbers[0]; level <= numbers[1] && len(levels) < mostLevels; level += numbers[2] {
			levels = append(levels, api.AtConversations(level))
		}
	}
	return levels, nil
}

// flagOf replaces the field of an error by the name of its flag.
func flagOf(err error) error {
	var field *api.FieldError
	if !errors.As(err, &field) {
		return err
	}
	name, named := map[string]string{
		"block_tokens": "trace-block-size", "time_unit": "trace-time-unit", "kv.block_tokens": "block-size",
	}[field.Field]
	if !named {
		name = strings.NewReplacer("_", "-", ".", "-").Replace(field.Field)
		if strings.ContainsAny(field.Field, "/: ") { // in a file
			name = field.Field
		}
	}
	return api.Refuse(name, field.Value, field.Allowed)
}

// checkFiles returns an error for files that cannot be written.
func (c *simulateCmd) checkFiles(p *plan) error {
	for _, files := range []struct {
		flag  string
		paths []string
	}{{"output", c.Output}, {"baseline", c.Baseline}} {
		for _, path := range files.paths {
			if extension := filepath.Ext(path); extension != ".csv" && extension != ".json" {
				return api.Refuse(files.flag, path, "a file name ending in .csv or .json")
			}
			if at, err := os.Stat(filepath.Dir(path)); err != nil || !at.IsDir() {
				return api.Refuse(files.flag, path, "a file in an existing directory")
			}
		}
	}
	for _, path := range c.Baseline { // checked without values
		var points []study.Point
		for _, level := range p.grid.Levels {
			points = append(points, study.Point{Level: level, Mode: p.grid.Modes[0]})
		}
		empty := study.NewResult(p.request, p.profile, points)
		if err := baseline.Validate(empty.Baseline(baselineName(path))); err != nil {
			return api.Refuse("baseline", path, fmt.Sprintf("a baseline that the load generator can import (%v)", err))
		}
	}
	return nil
}

// baselineName returns the name of a baseline in a file.
func baselineName(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// write writes all files, each atomically.
func (c *simulateCmd) write(r *study.Result) error {
	for _, path := range c.Output {
		write := r.WriteCSV
		if filepath.Ext(path) == ".json" {
			write = r.WriteJSON
		}
		if err := writeFile(path, write); err != nil {
			return err
		}
	}
	for _, path := range c.Baseline {
		b := r.Baseline(baselineName(path))
		write := func(w io.Writer) error { return baseline.WriteCSV(w, b) }
		if filepath.Ext(path) == ".json" {
			write = func(w io.Writer) error { return writeJSON(w, b) }
		}
		if err := writeFile(path, write); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(path string, write func(io.Writer) error) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return maybe.WriteFile(path, text.Bytes(), 0o644)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// compareWith sets the recorded results with a name, "" for none.
func (p *plan) compareWith(name string) error {
	if name == "" {
		return nil
	}
	all := baseline.Builtin()
	i := slices.IndexFunc(all, func(b api.Baseline) bool { return b.Name == name })
	if i < 0 {
		return api.Refuse("compare", strconv.Quote(name), "one of "+strings.Join(builtinBaselines(), ", "))
	}
	p.beside = &all[i]
	return nil
}

// builtinBaselines returns the names of the built-in recorded results.
func builtinBaselines() (names []string) {
	for _, b := range baseline.Builtin() {
		names = append(names, b.Name)
	}
	return names
}

// against reads an earlier result, "" for none.
func (p *plan) against(path string) error {
	if path == "" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return api.Refuse("against", path, fmt.Sprintf("a readable file (%v)", err))
	}
	defer file.Close()
	earlier, err := study.ReadResult(file)
	var field *api.FieldError
	if errors.As(err, &field) {
		return api.Refuse("against", path, field.Allowed)
	}
	p.earlier = &earlier
	return err
}

// show prints the table and the requested explanations.
func (c *simulateCmd) show(to io.Writer, r *study.Result, p plan) error {
	fmt.Fprintln(to, r.Heading())
	fmt.Fprintln(to, "Each figure is the mean over the seeds, with minimum and maximum; "+
		"the longest wait is the maximum over all seeds.")
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nlevel\tmode\tmean TTFT, ms\tTTFT p50, ms\tTTFT p95, ms\tTPOT p50, ms\ttokens/s\tKV hits, %"+
		"\tqueued requests\tlongest wait, s")
	for _, point := range r.Points {
		mode := string(point.Mode)
		if point.Overloaded {
			mode += overloadMark
		}
		fmt.Fprintf(w, "%v\t%s", point.Level, mode)
		for _, column := range columns {
			fmt.Fprintf(w, "\t%s", column.simulated(point.Figures))
		}
		fmt.Fprintln(w)
		if p.beside != nil {
			fmt.Fprintf(w, "\t  recorded\t%s\n", strings.Join(recordedRow(*p.beside, point), "\t"))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	showOverload(to, r)
	showHeld(to, r)
	if p.beside != nil {
		showDifferences(to, r, *p.beside)
	}
	var sentences []string
	if c.Explain {
		sentences = r.Explanation
	}
	if p.earlier != nil {
		sentences = append(sentences, againstEarlier(r, p.earlier, filepath.Base(c.Against))...)
	}
	for _, sentence := range sentences {
		fmt.Fprintf(to, "\n%s\n", sentence)
	}
	return nil
}

// overloadMark follows the modes of rows that showOverload explains.
const overloadMark = ", overloaded"

// showOverload explains the rows of rates that are more than the cluster sustains.
func showOverload(to io.Writer, r *study.Result) {
	if !slices.ContainsFunc(r.Points, func(p study.ResultPoint) bool { return p.Overloaded }) {
		return
	}
	fmt.Fprintln(to, "\nOverloaded: the queue grows without end. Latencies would say how long the simulation took, "+
		"and are left out.")
	dropped := 0.
	for _, p := range r.Points {
		dropped = max(dropped, p.Figures[closedloop.Dropped.Name].Mean)
	}
	if dropped > 0 {
		fmt.Fprintf(to, "Up to %.3g arrivals and further turns a second were dropped, "+
			"since --max-inflight turns were in flight.\n", dropped)
	}
}

// showHeld names the levels that the start rate holds back, and the conversations that were in progress.
func showHeld(to io.Writer, r *study.Result) {
	for _, p := range r.Points {
		n := p.Figures[closedloop.InProgress.Name].Mean
		if p.Level.Kind == api.Conversations && n < .95*p.Level.Value {
			fmt.Fprintf(to, "\nOnly %.0f of %v conversations were in progress under %s: no more than --start-rate=%v begin "+
				"in a second.\n", n, p.Level, p.Mode, *r.Request.StartRate)
		}
	}
}

// column is a column of the table.
type column struct {
	name     string  // of the figure
	factor   float64 // from the figure's unit to the column's
	decimals int
	single   bool // without a range
	recorded func(api.Column) api.LookedUp
}

var columns = []column{
	{"ttft_mean", 1000, 0, false, func(c api.Column) api.LookedUp { return c.TTFTMean }},
	{"ttft_p50", 1000, 0, false, func(c api.Column) api.LookedUp { return c.TTFT.P50 }},
	{"ttft_p95", 1000, 0, false, func(c api.Column) api.LookedUp { return c.TTFT.P95 }},
	{"tpot_p50", 1000, 1, false, func(c api.Column) api.LookedUp { return c.TPOT.P50 }},
	{"tokens_per_second", 1, 0, false, func(c api.Column) api.LookedUp { return c.OutputTokensPerSecond }},
	{"hit_ratio", 100, 1, false, func(c api.Column) api.LookedUp { return c.KVHitRatio }},
	{"queue", 1, 1, false, nil},
	{"largest_queue_seconds", 1, 2, true, nil},
}

// notKnown stands for a missing value.
const notKnown = "—"

func (c column) number(v float64) string {
	if c.factor == 1000 { // in milliseconds
		return api.InMS(v)
	}
	return api.Number(c.factor*v, c.decimals)
}

func (c column) simulated(figures map[string]study.Estimate) string {
	e, known := figures[c.name]
	switch {
	case !known:
		return notKnown
	case c.single:
		return c.number(e.High)
	}
	return fmt.Sprintf("%s (%s–%s)", c.number(e.Mean), c.number(e.Low), c.number(e.High))
}

// recordedRow returns the recorded values for a point's level and mode.
func recordedRow(b api.Baseline, at study.ResultPoint) (cells []string) {
	kind := b.Deployment.Speculation
	found, _ := baseline.At(b, api.ModeState{Mode: at.Mode, Speculation: kind}, at.Level)
	for _, c := range columns {
		cell := notKnown
		if c.recorded != nil {
			if v := c.recorded(found); v.Value != nil {
				cell = c.number(*v.Value)
				if v.Lookup == api.LookupInterpolated {
					cell += " interpolated"
				}
			}
		}
		cells = append(cells, cell)
	}
	return cells
}

// showDifferences prints how the deployment and the workload differ from the recorded ones, besides being simulated.
func showDifferences(to io.Writer, r *study.Result, b api.Baseline) {
	simulated := r.Baseline("this run")
	live := baseline.Live{
		Deployment: simulated.Deployment, Shape: *simulated.Workload, Settling: true,
		Mode: api.ModeState{Speculation: simulated.Deployment.Speculation},
	}
	compared := baseline.Compare(live, b, r.Request.Levels[0])
	fmt.Fprintf(to, "\nRecorded: %s.\n", b.Title)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, d := range compared.Differences {
		fmt.Fprintf(w, "  %s\tsimulated: %s\trecorded: %s\n", d.Field, d.Live, d.Baseline)
	}
	_ = w.Flush()
}

// againstEarlier explains this run compared with an earlier one, in their common modes.
func againstEarlier(r, earlier *study.Result, name string) (sentences []string) {
	before := earlier.Curves(name)
	for _, now := range r.Curves("this run") {
		for _, was := range before {
			if now.Points[0].Mode == was.Points[0].Mode {
				sentences = append(sentences, study.Explain(now, was)...)
			}
		}
	}
	if len(sentences) == 0 {
		sentences = []string{name + " has no mode in common with this run, so nothing can be compared."}
	}
	return sentences
}

// cores returns the default number of concurrent runs.
func cores() string { return strconv.Itoa(runtime.GOMAXPROCS(0)) }

// bar returns a progress bar with the remaining time on standard error. It is visible only on a terminal.
func (s *screen) bar(total int, text string) *progressbar.ProgressBar {
	return progressbar.NewOptions(total,
		progressbar.OptionSetWriter(s.stderr), progressbar.OptionSetVisibility(s.terminal != nil),
		progressbar.OptionSetDescription(text), progressbar.OptionSetWidth(24), progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true), progressbar.OptionSetElapsedTime(true))
}
