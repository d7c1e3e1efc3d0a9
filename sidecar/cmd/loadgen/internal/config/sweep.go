package config

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/report"
)

// Sweep is the request of the commands trial, sweep and capacity.
type Sweep struct {
	Command Command
	// Request has only the given values. A mode given without a speculation has an empty one.
	Request api.SweepRequest
	Anew    bool // cancel an unfinished sweep of the data directory instead of going on with it
	// CheckOnly ends a trial once its settings are known to be valid.
	CheckOnly bool
	// Probe looks at what the router of each arm does before a trial.
	Probe bool
	// Like is the path of the JSON report of a trial of the same arms on another machine; empty: none.
	Like string
}

// The flags of the commands. They have neither a variable nor a place in the file, which
// are the load generator's. Of the tags, limit names the entry of [api.SweepLimits].
type (
	trialFlags struct {
		Modes    []string      `form:"way" placeholder:"A,B" help:"Two to nine modes or names of arms: of two, B is compared with A, of more, each with each. Default: all arms, else round_robin,kv."`
		Question string        `oneof:"best order" help:"What a trial of more than two arms answers: which one is best (an arm leaves once another is better), or how each two compare. Default: best."`
		Primary  string        `oneof:"ttft_mean ttft_p95 ttft_p50 ttft_p95_turn2+ tpot_p95 output_tokens_per_second kv_hit_ratio goodput" help:"Metric that decides; ttft_p95 takes several times as long, ttft_p95_turn2+ is of the second and later turns. Default: ttft_mean."`
		Smallest float64       `limit:"smallest" help:"Smallest relevant difference: 0.05 is 5 %, or 5 points for shares. Default: 0.05. The trial also ends once the difference is certainly smaller."`
		Span     time.Duration `limit:"span" help:"Minimum length of a measured span. Default: 1m."`
		WarmUp   time.Duration `limit:"warm_up" help:"Minimum time that does not count after a span's initial conversations, or at the beginning of a slot. Default: by the hit rate, or 30s of a slot."`
		MaxTime  time.Duration `limit:"max_time" help:"Time limit, after which the trial ends undecided; two blocks must fit in, or one with earlier trials of the same arms. Default: 1h."`
		Together bool          `negatable:"" help:"Run two arms at the same time, one on each lane; needs a twin. Default: yes if there is a twin."`
		Like     string        `form:"path" placeholder:"FILE" help:"JSON report of a trial of the same arms, concurrency, spans and workload on another machine, whose scatter counts: the first look comes after the first block."`
		Anew     bool          `help:"Cancel the unfinished trial, sweep or search in the data directory instead of resuming it."`

		CheckOnly bool `help:"Check the settings of the trial and end."`
		Probe     bool `default:"true" negatable:"" help:"Before the trial, look at the recognized router of each arm with an address of its own, as probe-router does, and print what has no effect."`
	}
	levelsFlags struct {
		Levels    []api.Level   `limit:"levels" placeholder:"N" help:"Concurrency levels to measure, or rates, such as 2/s,4/s. Default: those of the slider."`
		Modes     []string      `form:"way" placeholder:"MODE" help:"Modes, or names of arms. Default: all arms; without driver, mode and twin the server as it is; else those of round_robin, kv and least_loaded that the driver offers."`
		Repeats   int           `limit:"repeats" help:"Measured spans per level and mode. Default: 3."`
		WarmUp    time.Duration `limit:"warm_up" help:"Minimum warm-up at full concurrency before a measured span. Default: 1m."`
		Span      time.Duration `limit:"span" help:"Minimum length of a measured span. Default: 5m."`
		Snapshots int           `limit:"snapshots" help:"One-minute windows per span whose percentiles are averaged. Default: 3."`
		Order     string        `oneof:"interleaved mode_after_mode" help:"Whether to alternate between the modes, so that drift affects all of them equally. Default: interleaved if switching is cheap."`
		Together  bool          `negatable:"" help:"Run two modes at the same time, one on each lane, swapping lanes on every repeat; needs a twin. Default: one after the other."`
		Anew      bool          `help:"Cancel the unfinished trial, sweep or search in the data directory instead of resuming it."`
	}
	capacityFlags struct {
		By         string        `oneof:"conversations rate" help:"What is searched: conversations in progress, or those that begin in a second. Default: that of the levels, else conversations."`
		Levels     []api.Level   `limit:"levels" placeholder:"N" help:"Concurrency levels to start with, at least two, or rates, such as 2/s,8/s. Default: some across the slider's range; none for rates."`
		Modes      []string      `form:"way" placeholder:"MODE" help:"One or two modes, or names of arms. Default: the first two arms; without driver, mode and twin the server as it is; else round_robin,kv."`
		Resolution float64       `limit:"resolution" help:"Resolution of the result, in conversations or rates. Default: 8, or a twentieth of the range of the rates."`
		Span       time.Duration `limit:"span" help:"Minimum length of a measured span. Default: 1m."`
		MaxTime    time.Duration `limit:"max_time" help:"Time limit, after which the search ends with what it has found. Default: 6h."`
		Anew       bool          `help:"Cancel the unfinished trial, sweep or search in the data directory instead of resuming it."`
	}
)

// Compare is the request of the command compare: B compared with A.
type Compare struct {
	A      string           `arg:"" form:"path" help:"Name of a baseline, or a file: a baseline (CSV or JSON), a JSON report, the JSON summary of a run, or JSON results of AIPerf, GuideLLM, inference-perf or vLLM bench. Several, separated by commas, are averaged: separate sweeps with the same levels and workload."`
	B      string           `arg:"" form:"path" help:"Result to compare with A: also names or files."`
	AMode  string           `name:"a-mode" form:"recorded_way" placeholder:"MODE" help:"Mode of A, or the name of an arm. Default: its only one. Required for results of other tools; with unknown, nothing is called better or worse."`
	BMode  string           `name:"b-mode" form:"recorded_way" placeholder:"MODE" help:"Mode or arm of B to use: as --a-mode."`
	Levels []api.LevelRange `placeholder:"N" help:"Levels that count, of those that both have. Default: all."`
	Format string           `default:"md" oneof:"md tsv json html" help:"Report format on standard output."`
	Gate   bool             `help:"Exit with 3 if any figure of B is certainly worse than that of A; all figures and levels together have an error of 5 %. The mode need not be known."`
}

// Named returns an error about an arm, a mode or a speculation of the API's request with the name of the flag that
// names all three.
func (c *Compare) Named(err error) error {
	bad, ok := err.(*api.FieldError) //nolint:errorlint // the type that the comparison returns
	if !ok {
		return err
	}
	side, what, _ := strings.Cut(bad.Field, "_")
	if what != "arm" && what != "mode" && what != "speculation" {
		return err
	}
	text := c.AMode
	if side == "b" {
		text = c.BMode
	}
	return api.Refuse(side+"_mode", cmp.Or(text, "none"), bad.Allowed)
}

// kinds are the commands that request a sweep.
var kinds = map[Command]api.SweepKind{Trial: api.SweepTrial, Levels: api.SweepLevels, Capacity: api.SweepCapacity}

// own reports whether a command has flags of its own.
func (c Command) own() bool {
	return kinds[c] != "" ||
		slices.Contains([]Command{Compared, Shadowed, Traced, Recorded, Replayed, Check, Probed, Asked, Listed, Churned}, c)
}

// commandOf returns the given command.
func commandOf(ctx *kong.Context) Command {
	name, _, _ := strings.Cut(ctx.Command(), " ") // arguments follow
	return Command(name)
}

// collectOwn makes fields of the flags and arguments of single commands.
func (m *model) collectOwn(k *kong.Kong) {
	for _, command := range k.Model.Children {
		flags := slices.Clone(command.Flags)
		for _, argument := range command.Positional {
			flags = append(flags, &kong.Flag{Value: argument})
		}
		m.own[Command(command.Name)] = map[string]field{}
		for _, flag := range flags {
			f := m.fieldOf(flag)
			m.own[Command(command.Name)][f.name] = f
		}
	}
}

// sweep returns the request of a command, with the given values; nil for other commands.
func (l *loader) sweep(ctx *kong.Context, c *Config) *Sweep {
	command := commandOf(ctx)
	if kinds[command] == "" {
		return nil
	}
	explicit := explicitly(ctx)
	given := func(name string) bool {
		f, ok := l.own[command][name]
		return ok && explicit[f.flag.Value]
	}
	general := func(name string) bool { return explicit[l.byName[name].flag.Value] }
	s := &Sweep{Command: command, Request: api.SweepRequest{Kind: kinds[command]}}
	r := &s.Request
	var modes []string
	switch command {
	case Trial:
		t := &l.Trial
		modes, s.Anew, s.CheckOnly, s.Like, s.Probe = t.Modes, t.Anew, t.CheckOnly, t.Like, t.Probe
		r.Primary, r.Smallest = when(given("primary"), t.Primary), when(given("smallest"), t.Smallest)
		r.Question = when(given("question"), api.TrialQuestion(t.Question))
		r.Seconds, r.MaxSeconds = when(given("span"), t.Span.Seconds()), when(given("max_time"), t.MaxTime.Seconds())
		r.WarmUp, r.Together = when(given("warm_up"), t.WarmUp.Seconds()), when(given("together"), t.Together)
		r.Caches = when(c.Caches != "auto", api.TrialCaches(c.Caches))
		if general("concurrency") || general("rate") {
			r.Levels = []api.Level{c.WorkloadSettings().Level}
		}
	case Levels:
		t := &l.Sweep
		r.Levels, modes, s.Anew = t.Levels, t.Modes, t.Anew
		r.Repeats, r.Snapshots = when(given("repeats"), t.Repeats), when(given("snapshots"), t.Snapshots)
		r.WarmUp, r.Seconds = when(given("warm_up"), t.WarmUp.Seconds()), when(given("span"), t.Span.Seconds())
		r.Order, r.Together = when(given("order"), api.SweepOrder(t.Order)), when(given("together"), t.Together)
	case Capacity:
		t := &l.Capacity
		r.Levels, modes, s.Anew = t.Levels, t.Modes, t.Anew
		r.By = when(given("by"), api.CapacityBy(t.By))
		r.Resolution = when(given("resolution"), t.Resolution)
		r.Seconds, r.MaxSeconds = when(given("span"), t.Span.Seconds()), when(given("max_time"), t.MaxTime.Seconds())
	}
	for _, mode := range modes {
		r.Modes = append(r.Modes, c.way(mode))
	}
	r.Seed = when(general("seed"), c.Seed)
	r.SLO = when(general("slo.ttft") || general("slo.tpot"), c.Settings().SLO)
	return s
}

// when returns a pointer to a value that was given, else nil.
func when[T any](given bool, v T) *T {
	if !given {
		return nil
	}
	return &v
}

// ParseMode parses a mode, with its speculation if there is one.
func ParseMode(text string) api.ModeState {
	mode, speculation, _ := strings.Cut(text, "/")
	return api.ModeState{Mode: api.Mode(mode), Speculation: api.Speculation(speculation)}
}

// way reads what a sweep measures: an arm, where the configuration has arms, else a mode.
func (c *Config) way(text string) api.ModeState {
	if c.Mode.Served != nil {
		return api.ModeState{Arm: text}
	}
	return ParseMode(text)
}

// checkSweep requires a valid sweep, and refuses settings that a sweep controls itself.
func (c *Config) checkSweep() error {
	s := c.Sweep
	if err := c.checkCaches(); s == nil || err != nil {
		return err
	}
	if err := c.checkEndless(s.Command); err != nil {
		return err
	}
	r := s.Request
	r.Modes = slices.Clone(r.Modes)
	for i := range r.Modes {
		if r.Modes[i].Speculation == "" && r.Modes[i].Arm == "" { // the one in force, which only the cluster reports
			r.Modes[i].Speculation = api.SpeculationNotRecorded
		}
	}
	for _, level := range r.Levels {
		if level.Conversations() > c.MaxConcurrency {
			return s.Named(api.Refuse("levels", level, fmt.Sprintf("1 to %d (max_concurrency)", c.MaxConcurrency)))
		}
	}
	return s.Named(r.Check())
}

// checkEndless refuses settings that a command controls itself, which ends on its own.
func (c *Config) checkEndless(command Command) error {
	for _, f := range []struct {
		name, value string
		given       bool
		allowed     string
	}{
		{"rate", c.Rate.String(), len(c.Rate.Levels) > 1, "one rate, such as 12/s, with loadgen %s"},
		{"start", "true", c.Start, "false (--no-start) with loadgen %s, which starts and stops the workload itself"},
		{"duration", c.Duration.String(), c.Duration > 0, "leave it out with loadgen %s, which ends on its own"},
		{"warmup", c.Warmup.String(), c.Warmup > 0, "leave it out with loadgen %s, whose spans have a warm-up of their own"},
		{"requests", strconv.Itoa(c.Requests), c.Requests > 0, "leave it out with loadgen %s, which ends on its own"},
		{
			"fail_if", format(reflect.ValueOf(c.FailIf)), len(c.FailIf) > 0,
			"leave it out with loadgen %s, which exits with 4 if nothing was decided",
		},
		{"against", c.Against, c.Against != "", "leave it out with loadgen %s, which has no conditions"},
	} {
		if f.given {
			return api.Refuse(f.name, f.value, fmt.Sprintf(f.allowed, command))
		}
	}
	return nil
}

// checkCaches refuses caches that the command cannot have.
func (c *Config) checkCaches() error {
	allowed, of := []string{"auto", "fresh", "kept"}, "a run; cold and warm are for loadgen trial"
	switch {
	case c.Sweep != nil && c.Sweep.Command == Trial:
		allowed, of = []string{"auto", "cold", "warm"}, "a trial; fresh and kept are for a run"
	case c.Churn != nil:
		allowed, of = []string{"auto"}, "loadgen churn"
	case c.Sweep != nil:
		allowed, of = []string{"auto"}, fmt.Sprintf("loadgen %s, whose spans begin on cold caches", c.Sweep.Command)
	}
	if slices.Contains(allowed, c.Caches) {
		return nil
	}
	return api.Refuse("caches", c.Caches, enumerate(allowed)+" for "+of)
}

// OutputJSON is the value of --output that makes the command trace print JSON.
const OutputJSON = "json"

// IsStandardOutput reports whether a value of --output is a format of what the command trace prints, not a file.
func IsStandardOutput(s string) bool { return s == OutputJSON || s == "text" }

// OutputFormats returns the formats of the files that the command can write.
func (c *Config) OutputFormats() report.Formats {
	switch {
	case c.Churn != nil:
		return report.ChurnFormats
	case c.Shadow != nil:
		return report.ShadowFormats
	case c.Trace != nil:
		return report.TraceFormats
	case c.Record != nil:
		return report.RecordFormats
	case c.Compare != nil:
		return report.CompareFormats
	case c.Sweep != nil:
		return report.ResultFormats
	}
	return report.RunFormats
}

// checkAgainst requires a result for relative conditions, and refuses what a run at several levels cannot have.
func (c *Config) checkAgainst() error {
	i := slices.IndexFunc(c.FailIf, func(f report.Condition) bool { return f.Relative })
	switch {
	case i < 0:
		return nil
	case c.Against == "":
		return api.Require("against", fmt.Sprintf("fail_if has the relative condition %s; give the result that it compares "+
			"with: --against FILE, such as the JSON summary of an earlier run (--output accepted.json), or the name of a "+
			"baseline", c.FailIf[i]))
	case len(c.Rate.Levels) > 1:
		return api.Refuse("rate", c.Rate, fmt.Sprintf("one rate with the relative condition %s", c.FailIf[i]))
	}
	return nil
}

// NotCertainFails is the value of not_certain that makes a condition that is not certain fail a run.
const NotCertainFails = "fail"

// checkOutput requires files that the command can write.
func (c *Config) checkOutput() error {
	formats := c.OutputFormats()
	for _, path := range c.Output {
		if _, ok := formats.Of(path); !ok && !(c.Trace != nil && IsStandardOutput(path)) {
			return api.Refuse("output", path, formats.Allowed())
		}
	}
	return c.Record.check(c.Output)
}

// Flag returns the name of a request's field on the command line.
func (s *Sweep) Flag(field string) string {
	if r := s.Request; field == "levels" && s.Command == Trial {
		if len(r.Levels) > 0 && r.Levels[0].Kind == api.Rate {
			return "rate"
		}
		return "concurrency"
	}
	if strings.HasPrefix(field, "modes.") {
		return "modes"
	}
	return field // like.levels is the field levels of the report of like
}

// Named returns an error about a request's field with the name of the flag.
func (s *Sweep) Named(err error) error {
	if bad, ok := err.(*api.FieldError); ok { //nolint:errorlint // the type that the request's own check returns
		return &api.FieldError{
			Field: s.Flag(bad.Field), Value: s.Text(bad.Field, bad.Value), Allowed: s.Text(bad.Field, bad.Allowed),
		}
	}
	return err
}

var inSeconds = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// Text returns a text on the values of a request's field as the command line has them: seconds are durations there.
func (s *Sweep) Text(field, text string) string {
	if api.SweepLimits[strings.TrimPrefix(field, "like.")].Unit != "seconds" {
		return text
	}
	values, _, _ := strings.Cut(text, ":")
	reason := text[len(values):] // it names units
	values = inSeconds.ReplaceAllStringFunc(values, func(text string) string {
		seconds, _ := strconv.ParseFloat(text, 64) // the pattern matches numbers only
		return duration(seconds)
	})
	return values + reason
}
