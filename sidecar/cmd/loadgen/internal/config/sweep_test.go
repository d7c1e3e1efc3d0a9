package config

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"kvbooth/sidecar/api"

	"github.com/stretchr/testify/require"
)

// A request has exactly the values that a flag, a variable or the file sets.
func TestSweepRequests(t *testing.T) {
	kv, rr := api.ModeState{Mode: api.ModeKV}, api.ModeState{Mode: api.ModeRoundRobin}
	eagle := api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationEagle3}
	for _, row := range []struct {
		args string
		env  []string
		want Sweep
	}{
		{"trial", nil, Sweep{Command: Trial, Request: api.SweepRequest{Kind: api.SweepTrial}}},
		{"trial --concurrency=120 --modes=round_robin,kv --primary=goodput --smallest=0.1 --span=90s --max-time=2h " +
			"--seed=7 --slo-ttft=400ms --anew", nil, Sweep{Command: Trial, Anew: true, Request: api.SweepRequest{
			Kind: api.SweepTrial, Levels: api.LevelsOf(120), Modes: []api.ModeState{rr, kv}, Primary: new("goodput"),
			Smallest: new(.1), Seconds: new(90.), MaxSeconds: new(7200.), Seed: new(uint64(7)),
			SLO: &api.SLO{TTFT: .4, TPOT: .06},
		}}},
		{"trial --modes=round_robin,kv,least_loaded --question=order", nil, Sweep{Command: Trial, Request: api.SweepRequest{
			Kind: api.SweepTrial, Modes: []api.ModeState{rr, kv, {Mode: api.ModeLeastLoaded}},
			Question: new(api.QuestionOrder),
		}}},
		{"trial", []string{"LOADGEN_CONCURRENCY=80", "LOADGEN_SLO_TPOT=50ms"}, Sweep{
			Command: Trial,
			Request: api.SweepRequest{Kind: api.SweepTrial, Levels: api.LevelsOf(80), SLO: &api.SLO{TTFT: .6, TPOT: .05}},
		}},
		{"sweep --levels=60,120 --levels=180 --modes=kv/eagle3 --repeats=2 --warm-up=0s --span=5m " +
			"--snapshots=1 --order=mode_after_mode", nil, Sweep{Command: Levels, Request: api.SweepRequest{
			Kind: api.SweepLevels, Levels: api.LevelsOf(60, 120, 180), Modes: []api.ModeState{eagle},
			Repeats: new(2), WarmUp: new(0.),
			Seconds: new(300.), Snapshots: new(1), Order: new(api.OrderModeAfterMode),
		}}},
		{"sweep --together --modes=round_robin,kv", nil, Sweep{Command: Levels, Request: api.SweepRequest{
			Kind: api.SweepLevels, Modes: []api.ModeState{rr, kv}, Together: new(true),
		}}},
		{"capacity --levels=60,100 --resolution=2 --span=1m --max-time=30m", nil, Sweep{
			Command: Capacity, Request: api.SweepRequest{
				Kind: api.SweepCapacity, Levels: api.LevelsOf(60, 100),
				Resolution: new(2.), Seconds: new(60.), MaxSeconds: new(1800.),
			},
		}},
		{"trial --rate=2/s --arrivals=gamma --burstiness=0.5", nil, Sweep{
			Command: Trial, Request: api.SweepRequest{Kind: api.SweepTrial, Levels: []api.Level{api.AtRate(2)}},
		}},
		{"sweep --levels=2/s,4.5/s", nil, Sweep{
			Command: Levels, Request: api.SweepRequest{
				Kind: api.SweepLevels, Levels: []api.Level{api.AtRate(2), api.AtRate(4.5)},
			},
		}},
		{"capacity --by=rate --levels=2/s,8/s --resolution=0.25", nil, Sweep{
			Command: Capacity, Request: api.SweepRequest{
				Kind: api.SweepCapacity, By: new(api.CapacityByRate), Levels: []api.Level{api.AtRate(2), api.AtRate(8)},
				Resolution: new(.25),
			},
		}},
	} {
		c, command, err := input{args: append(strings.Fields(row.args), target), env: row.env}.load()
		require.NoError(t, err, row.args)
		require.Equal(t, row.want.Command, command)
		row.want.Probe = command == Trial
		require.Equal(t, &row.want, c.Sweep)
		require.Nil(t, c.Compare)
	}
	require.Nil(t, input{args: []string{target}}.must(t).Sweep)
}

func TestBadSweeps(t *testing.T) {
	const once = api.EachModeOnce
	for _, row := range []struct{ args, want string }{
		{"trial --question=worst", "question: worst is not allowed: best or order"},
		{"trial --modes=kv,round_robin,kv", "modes: kv with speculation not_recorded is not allowed: " + once},
		{"trial --together --modes=kv,round_robin,least_loaded", "modes: a list of 3 is not allowed: 2 when they run " +
			"together, one on each lane"},
		{"trial --smallest=2", "smallest: 2 is not allowed: a number, 0.001 to 0.5"},
		{"trial --smallest=5%", "smallest: 5% is not allowed: a number, 0.001 to 0.5"},
		{"trial --primary=ttft", "primary: ttft is not allowed: ttft_mean, ttft_p95, ttft_p50, ttft_p95_turn2+, " +
			"tpot_p95, output_tokens_per_second, kv_hit_ratio or goodput"},
		{"trial --modes=kv", "modes: a list of 1 is not allowed: 2 to 9 for a trial"},
		{"trial --modes=kv,unknown", "modes: kv,unknown is not allowed: a list, each a mode or mode/speculation, such as " +
			"kv or kv/eagle3, or the name of an arm"},
		{"trial --span=0s", "span: 0s is not allowed: a duration, 1s to 24h"},
		{"trial --max-time=8000h", "max_time: 8000h is not allowed: a duration, 1s to 168h"},
		{"trial --concurrency=1001", "concurrency: 1001 is not allowed: 1 to 1000 (max_concurrency)"},
		{"trial --start", "start: true is not allowed: false (--no-start) with loadgen trial, which starts and stops the " +
			"workload itself"},
		{"trial --duration=5m", "duration: 5m0s is not allowed: leave it out with loadgen trial, which ends on its own"},
		{"sweep --requests=5", "requests: 5 is not allowed: leave it out with loadgen sweep, which ends on its own"},
		{"sweep --fail-if=slo=missed", "fail_if: slo=missed is not allowed: leave it out with loadgen sweep, which exits " +
			"with 4 if nothing was decided"},
		{"sweep --output=run.csv", "output: run.csv is not allowed: a file whose name ends in .json, .tsv, .md or .html"},
		{
			"run --output=report.md",
			"output: report.md is not allowed: a file whose name ends in .json, .csv, .html, .xml, .prom or .series.csv",
		},
		{"sweep --levels=60,0", "levels: 0 is not allowed: 1 to 100000"},
		{"sweep --levels=60,60", "levels: 60 is not allowed: each level once"},
		{"sweep --levels=1001", "levels: 1001 is not allowed: 1 to 1000 (max_concurrency)"},
		{"sweep --modes=kv,kv", "modes: kv with speculation not_recorded is not allowed: " + once},
		{"sweep --order=random", "order: random is not allowed: interleaved or mode_after_mode"},
		{"sweep --levels=", `levels: "" is not allowed: a list, each a number of conversations, such as 60, or a rate, such as 12/s`},
		{"capacity --levels=", `levels: "" is not allowed: a list, each a number of conversations, such as 60, or a rate, such as 12/s`},
		{"sweep --warmup=5s", "warmup: 5s is not allowed: leave it out with loadgen sweep, whose spans have a warm-up of " +
			"their own"},
		{"sweep --repeats", "repeats: an empty value is not allowed: a whole number, 1 to 100"},
		{"capacity --levels=60", "levels: a list of 1 is not allowed: 2 to 40 for a capacity search"},
		{"capacity --resolution=0", "resolution: 0 is not allowed: a number, more than 0, up to 1000"},
		{"compare a b --format=pdf", "format: pdf is not allowed: md, tsv, json or html"},
		{"compare a b --b-mode=kv/fast", "b_mode: kv/fast is not allowed: a mode or mode/speculation, such as kv or " +
			"kv/eagle3; unknown; or the name of an arm"},
	} {
		args := strings.Fields(row.args)
		source, _, _ := strings.Cut(args[len(args)-1], "=")
		input{args: append([]string{args[0], target}, args[1:]...)}.refused(t, row.want+" (from "+source+")")
	}
	for args, want := range map[string]string{
		"trial --levels=60 " + target: "unknown flag --levels (see loadgen help trial)",
		"compare h200":                `expected "<b>" (see loadgen help compare)`,
		"help nothing":                "unexpected argument nothing (see loadgen --help)",
		"check --target":              "target.url is required: " + urlAllowed + " (--target-url)",
		"trial":                       "target.url is required: " + urlAllowed + " (--target-url)",
	} {
		_, _, err := input{args: strings.Fields(args)}.load()
		require.EqualError(t, err, want, args)
	}
	in := input{args: []string{"trial", target}, env: []string{"LOADGEN_SPAN=1m"}}
	_, _, err := in.load()
	require.ErrorContains(t, err, "LOADGEN_SPAN: unknown variable")
}

// The API counts seconds, of which an error on the command line makes durations.
func TestErrorsHaveDurations(t *testing.T) {
	for allowed, want := range map[string]string{
		"542 to 604800: a span counts for 60 s at least": "9m2s to 168h: a span counts for 60 s at least",
		"span to 604800": "span to 168h",
	} {
		s := Sweep{Command: Trial}
		require.EqualError(t, s.Named(api.Refuse("max_time", 10., allowed)), "max_time: 10s is not allowed: "+want)
	}
}

// Two results are compared without a target, and without a data directory.
func TestCompareRequest(t *testing.T) {
	c, command, err := load([]string{"compare", "old", "new.csv", "--a-mode=round_robin", "--b-mode=kv/eagle3"}, nil,
		io.Discard, readFile)
	require.NoError(t, err)
	require.Equal(t, Compared, command)
	require.Equal(t, &Compare{
		A: "old", B: "new.csv", AMode: "round_robin", BMode: "kv/eagle3", Format: "md",
	}, c.Compare)
	require.Empty(t, c.DataDir)
	c = input{args: []string{"compare", "a", "b", "--format=html"}}.must(t)
	require.Equal(t, "html", c.Compare.Format)
	require.Empty(t, c.Compare.Levels)
}

// The help of a command lists only its own flags, and the general help all commands.
func TestHelpOfCommands(t *testing.T) {
	m := newModel(Config{}, io.Discard)
	for _, command := range []Command{Trial, Levels, Capacity, Compared, Shadowed} {
		require.True(t, command.own())
		var out bytes.Buffer
		_, got, err := Load([]string{"help", string(command)}, nil, &out)
		require.NoError(t, err)
		require.Equal(t, Help, got)
		require.NotEmpty(t, m.own[command])
		for _, f := range m.own[command] {
			name := "  --" + f.flag.Name
			switch {
			case f.flag.Value.Flag == nil: // an argument
				name = "<" + f.flag.Name + ">"
			case f.flag.Negated || f.flag.Tag.Negatable != "":
				name = "  --[no-]" + f.flag.Name
			}
			require.Contains(t, out.String(), name)
		}
		require.NotContains(t, out.String(), "--followup-text")
	}
	var out bytes.Buffer
	_, _, err := Load([]string{"help"}, nil, &out)
	require.NoError(t, err)
	for _, want := range []string{"\n  trial ", "\n  sweep ", "\n  capacity ", "\n  compare ", "\n  shadow "} {
		require.Contains(t, out.String(), want)
	}
}

// The words and ranges of the commands' flags are those of the API.
func TestOwnTagsAreSound(t *testing.T) {
	m := newModel(Config{}, io.Discard)
	for command, fields := range m.own {
		for name, f := range fields {
			require.Regexp(t, `^[A-Z].*\.$`, f.flag.Help, "%s %s", command, name)
			require.NotContains(t, m.byName, name, "%s would hide a field of the load generator", command)
			if form := f.flag.Tag.Get("form"); form != "" {
				require.Contains(t, forms, form)
			}
			if f.flag.Tag.Has("limit") {
				_, ok := f.limit()
				require.True(t, ok, "%s %s", command, name)
			}
		}
	}
	require.Equal(t, api.SweepMetrics, m.own[Trial]["primary"].words())
	require.Equal(t, alternatives(api.SweepOrders), strings.Join(m.own[Levels]["order"].words(), "|"))
	require.ElementsMatch(t, strings.Split(alternatives(api.ReportFormats), "|"), m.own[Compared]["format"].words())
	for _, k := range api.SweepKinds {
		require.True(t, slices.ContainsFunc([]Command{Trial, Levels, Capacity},
			func(c Command) bool { return kinds[c] == k }), k)
	}
}
