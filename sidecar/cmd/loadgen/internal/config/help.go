package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

const description = "Runs many concurrent multi-turn conversations against an OpenAI-compatible server and measures " +
	"what its users experience: " +
	"time to first token, time per output token, latency."

// topics are the groups of settings, each with the name for `loadgen help`: the part before the first dot of its key.
var topics = []kong.Group{
	{Key: "file", Title: "Configuration file"},
	{Key: "target", Title: "Target: the server under load"},
	{Key: "deployment", Title: "Deployment behind the target, shown and compared (empty or 0: unknown)"},
	{Key: "workload", Title: "Workload"},
	{Key: "end", Title: "End of the run and output files"},
	{Key: "corpus", Title: "Corpus: the opening texts of conversations"},
	{Key: "mode", Title: "Routing mode"},
	{Key: "arms", Title: "Arms: routers or other ways of serving to compare"},
	{Key: "metrics", Title: "Cluster metrics"},
	{Key: "twin", Title: "Twin: a second target with the same conversations"},
	{Key: "twin.deployment", Title: "Twin's deployment, if different (empty or 0: same as deployment.*)"},
	{Key: "screens", Title: "Screens"},
	{Key: "access", Title: "Access"},
	{Key: "members", Title: "Members: several load generators acting as one"},
	{Key: "whatif", Title: "What-if simulations"},
	{Key: "routers", Title: "Shadow: other routers on the same turns"},
	{Key: "data", Title: "Data and log"},
}

// topicOf returns the topic that a setting belongs to.
func topicOf(f *kong.Flag) string {
	topic, _, _ := strings.Cut(f.Group.Key, ".")
	return topic
}

// every is the topic of all settings, and usual that of the most common ones.
const (
	every = "all"
	usual = "basic"
)

const examples = `Usage: loadgen [COMMAND] [flags]

Measures what the users of an OpenAI-compatible server experience: time to first token, time per output
token, latency, under many multi-turn conversations.

  loadgen check --target --target-url http://127.0.0.1:8000     would a run work?
  loadgen --target-url http://127.0.0.1:8000 --start            run; the page is http://127.0.0.1:8088
  loadgen --target-url http://127.0.0.1:8000 --duration 5m --fail-if 'ttft_p95>600ms' --output report.html
  loadgen capacity --target-url http://127.0.0.1:8000 --slo-ttft 600ms
  loadgen trial --config arms.yaml --concurrency 120            which router is better?

Commands (loadgen COMMAND --help, in whole: loadgen help COMMAND):
`

const exitCodes = `
Every setting is a flag, a variable and a field of the YAML file with the same name: --target-url,
LOADGEN_TARGET_URL, and url under target. Secrets have no flag: LOADGEN_TARGET_API_KEY, or a file.
Exit codes: 0 success; 1 the load generator failed; 2 invalid configuration, nothing was started; 3 a
--fail-if condition was met; 4 nothing was measured, a signal cut it short, or there is no result yet.
`

// examplesOf are command lines for each command, without the program's name.
var examplesOf = map[Command][]string{
	Check: {
		"check --target --target-url http://127.0.0.1:8000     would a run work?",
		"check --config booth.yaml",
	},
	Health:  {"health --config booth.yaml"},
	Version: {"version"},
	Joined:  {"member --join nats://127.0.0.1:4222"},
	Trial: {
		"trial --config arms.yaml --concurrency 120                      which of its arms is better?",
		"trial --arms a=http://a:8000,b=http://b:8000 --primary ttft_p95 --output trial.html",
	},
	Levels: {
		"sweep --target-url http://127.0.0.1:8000 --levels 20,40,80 --output sweep.html",
		"sweep --config arms.yaml --levels 2/s,4/s",
	},
	Capacity: {
		"capacity --target-url http://127.0.0.1:8000 --slo-ttft 600ms",
		"capacity --target-url http://127.0.0.1:8000 --by rate --levels 2/s,8/s",
	},
	Churned: {"churn --config arms.yaml --event lose-worker --output churn.md"},
	Compared: {
		"compare before.json after.json",
		"compare before.json after.json --format html > compared.html",
	},
	Probed: {"probe-router --target-url http://127.0.0.1:8000"},
	Asked:  {"why", "why --from http://127.0.0.1:8088"},
	Listed: {
		"history --name nightly                  past runs, and where their figures changed",
		"history accept latest --name nightly    later runs are compared with it (--against accepted)",
	},
	Recorded: {"record recording.kvb"},
	Replayed: {"replay recording.kvb"},
	Traced: {
		"trace 'trace.*.jsonl.gz'",
		"trace sharegpt.json --output json",
	},
	Shadowed: {
		"shadow --blocks 4000 'trace.*.jsonl.gz'                         from a trace",
		"shadow --tokens 400000 --workers 4 --shape agent --rate 2/s     from what a run would send",
	},
}

const besidesRun = `
It takes all settings of loadgen (loadgen help all).
`

// besides ends the help of a command with flags of its own.
const besides = `
It also takes all settings of loadgen (loadgen help all), such as --target-url,
--mode-driver, --concurrency, --seed, --slo-ttft and --data-dir. The API and the web
page are available while it runs, to watch, pause and cancel. To resume an unfinished
one from the data directory, even after Ctrl-C, run the same command again.

Exit codes: 0 it ended with a result; 1 the load generator itself failed;
2 invalid configuration or environment, nothing was started; 4 it ended without a
result: undecided, unfinished, cancelled, or nothing was measured.
`

const besidesCompare = `
It also takes --output for report files, --data-dir of a load generator with
baselines (which may be running), and --slo-ttft and --slo-tpot.

Exit codes: 0 success; 1 a report could not be written; 2 a result that cannot be read or
compared; with --gate, 3 a figure of B is certainly worse, 4 nothing could be compared.
`

const besidesShadow = `
Reads NVIDIA Dynamo's request trace (DYN_REQUEST_TRACE=1 DYN_REQUEST_TRACE_SINKS=file) or JSON lines
in Mooncake's format (timestamp in ms, input_length, output_length, hash_ids), plain or gzipped. Reports
what the caches would have held and how evenly requests would have been spread; it does not predict
latency. It also takes --output for report files (.json, .csv, .md, .html), and in place of files the
flags of a run that say what it sends.

Exit codes: 0 success; 1 the file could not be read completely or a report could not be written;
2 invalid configuration, nothing was read.
`

const besidesTrace = `
It also takes --output json, or files of that name's ending, --trace-from, --trace-to, --trace-sessions,
--trace-speed, --trace-skip-invalid and --seed, as a run of the trace.

Exit codes: 0 success; 1 a report could not be written; 2 invalid configuration, or a file that is not
usable as a trace.
`

const besidesWhy = `
The token of the load generator comes from LOADGEN_TOKEN or LOADGEN_TOKEN_FILE.

Exit codes: 0 success; 2 it is not known why, or the load generator cannot be asked.
`

const besidesHistory = `
It also takes --data-dir (of a load generator that may be running, to list it) and --name, for one name alone.

Exit codes: 0 success; 2 there is no such run, or the data directory cannot be used.
`

const besidesRecord = `
The token of the load generator comes from LOADGEN_TOKEN or LOADGEN_TOKEN_FILE.

Exit codes: 0 success; 1 the load generator was lost or the file could not be written completely;
2 invalid configuration, nothing was recorded.
`

const besidesReplay = `
It also takes --listen, --token-file, --hosts, --public-page and the TLS settings of loadgen (loadgen
help access).
Grafana's core panels stay empty: they read Prometheus, which is not recorded.
`

const besidesCheck = `
It also takes all settings of loadgen (loadgen help all).

Exit codes: 0 no problem found; 2 something must be fixed first.
`

const besidesProbe = `
It also takes the settings of the target and of arms (loadgen help target), and looks at each arm.

Exit codes: 0 the router was looked at, whatever was found; 2 it could not be.
`

const besidesChurn = `
It also takes all settings of loadgen (loadgen help all), such as --target-url, --concurrency, --seed
and --data-dir, and --output for report files (.json, .md). Ctrl-C undoes the event in progress, and
reports those before it.

Exit codes: 0 all events were observed; 1 the load generator itself failed; 2 invalid configuration
or environment, nothing was started; 4 it was stopped, or an event or its undoing failed.
`

// printHelp prints the settings of the requested topic, or what fits a screen: examples, commands and topics.
func (m *model) printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if node := ctx.Selected(); node != nil && node.Name != string(Run) {
		return m.printOwn(options, ctx, node)
	}
	if m.topic == "" {
		_, err := fmt.Fprint(ctx.Stdout, firstScreen(ctx.Model.Children))
		return err
	}
	whole := *ctx
	whole.Path = ctx.Path[:1]
	for _, f := range m.fields {
		f.flag.Hidden = m.topic != every && m.topic != topicOf(f.flag)
		if m.topic == usual {
			f.flag.Hidden = !f.flag.Tag.Has("basic")
		}
	}
	for _, command := range ctx.Model.Children {
		command.Hidden = true
	}
	ctx.Model.Help = ""
	return kong.DefaultHelpPrinter(options, &whole)
}

// firstScreen is the help that fits a screen.
func firstScreen(commands []*kong.Node) string {
	text := examples
	for _, c := range commands {
		short, _, _ := strings.Cut(strings.TrimSuffix(c.Help, "."), ":")
		text += fmt.Sprintf("  %-13s %s\n", c.Name, short)
	}
	text += "\nTopics (loadgen help TOPIC):\n "
	names := []string{usual}
	for _, topic := range topics {
		if !strings.Contains(topic.Key, ".") {
			names = append(names, topic.Key)
		}
	}
	for i, name := range append(names, every) {
		if i > 0 && i%11 == 0 {
			text += "\n "
		}
		text += " " + name
	}
	return text + "\n" + exitCodes
}

// printOwn prints only the flags of a command that has its own: on one screen, or in whole where the command follows
// "help".
func (m *model) printOwn(options kong.HelpOptions, ctx *kong.Context, node *kong.Node) error {
	c := Command(node.Name)
	if !m.whole {
		_, err := fmt.Fprint(ctx.Stdout, ownScreen(node)+besidesOf(c))
		return err
	}
	for _, flag := range ctx.Model.Flags {
		flag.Hidden = flag != ctx.Model.HelpFlag
	}
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	_, err := fmt.Fprint(ctx.Stdout, besidesOf(c))
	return err
}

// ownScreen is the help of a command that fits a screen: examples, and its arguments and flags in a line or two each.
func ownScreen(node *kong.Node) string {
	text := fmt.Sprintf("Usage: loadgen %s\n\n", node.Summary())
	for _, example := range examplesOf[Command(node.Name)] {
		text += "  loadgen " + example + "\n"
	}
	text += "\n" + firstClause(node.Help) + ".\n\n"
	for _, argument := range node.Positional {
		text += ownLine(argument.Summary(), argument.Help)
	}
	for _, flag := range node.Flags {
		name := "--" + flag.Name
		switch {
		case flag.Tag.Negatable != "":
			name = "--[no-]" + flag.Name
		case !flag.IsBool():
			name += "=" + flag.FormatPlaceHolder()
		}
		text += ownLine(name, helpOf(flag.Value))
	}
	if len(node.Positional)+len(node.Flags) > 0 {
		text += fmt.Sprintf("\nMore on each: loadgen help %s\n", node.Name)
	}
	return text
}

// screenWidth is the largest number of columns of a line of help.
const screenWidth = 110

var (
	clauseEnd   = regexp.MustCompile(`[.:;]( |$)`)
	defaultText = regexp.MustCompile(`Default: (.*?)\.( |$)`)
)

// firstClause returns the beginning of a help up to the end of a clause.
func firstClause(help string) string {
	if end := clauseEnd.FindStringIndex(help); end != nil {
		return help[:end[0]]
	}
	return help
}

// ownLine describes a flag by the first clause of its help, up to a comma where it is too long, and its default where
// there is space.
func ownLine(name, help string) string {
	const column = 30
	short := firstClause(help)
	for column+len(short) > screenWidth && strings.Contains(short, ", ") {
		short = short[:strings.LastIndex(short, ", ")]
	}
	line := fmt.Sprintf("  %-*s%s", column-2, name+"  ", short)
	if len(line) > screenWidth {
		line = fmt.Sprintf("  %s\n      %s", name, short)
	}
	if found := defaultText.FindStringSubmatch(help); found != nil && len(line)+len(found[1]) < screenWidth-12 {
		line += " (default: " + found[1] + ")"
	}
	return line + "\n"
}

// besidesOf returns what follows the flags of a command.
func besidesOf(c Command) string {
	text := besides
	switch c {
	case Compared:
		text = besidesCompare
	case Shadowed:
		text = besidesShadow
	case Traced:
		text = besidesTrace
	case Recorded:
		text = besidesRecord
	case Replayed:
		text = besidesReplay
	case Check:
		text = besidesCheck
	case Health, Joined, Version:
		text = besidesRun
	case Probed:
		text = besidesProbe
	case Churned:
		text = besidesChurn
	case Asked:
		text = besidesWhy
	case Listed:
		text = besidesHistory
	}
	return text
}

// helpOf adds the default and other names to the help of a flag.
func helpOf(v *kong.Value) string {
	help := v.Help
	if v.Flag == nil {
		return help
	}
	if v.HasDefault {
		help += " Default: " + v.Default + "."
	}
	for _, alias := range v.Flag.Aliases {
		help += " Alias: --" + alias + "."
	}
	return help
}

// placeHolder describes the value of a flag, where no tag does.
func (f field) placeHolder() string {
	if words := f.words(); len(words) > 0 {
		return strings.Join(words, "|")
	}
	switch t := f.valueType(); {
	case t == reflect.TypeFor[time.Duration]():
		return "TIME"
	case t.Kind() == reflect.Int || t.Kind() == reflect.Uint64 || t.Kind() == reflect.Float64:
		return "N"
	case f.flag.Target.Kind() == reflect.Slice:
		return "NAME"
	}
	return "TEXT"
}
