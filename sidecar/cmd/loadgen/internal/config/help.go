package config

import (
	"fmt"
	"reflect"
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
	{Key: "deployment", Title: "Deployment behind the target (shown, and compared with the baseline's)"},
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

// every is the topic of all settings.
const every = "all"

// topicOf returns the topic that a setting belongs to.
func topicOf(f *kong.Flag) string {
	topic, _, _ := strings.Cut(f.Group.Key, ".")
	return topic
}

const examples = `
Every setting is a flag, an environment variable and a field of the YAML file
with the same name: --target-url, LOADGEN_TARGET_URL, and url under target.
Precedence: flag, environment, file, preset, default. Secrets have no flag:
use LOADGEN_TOKEN, LOADGEN_TARGET_API_KEY etc., or files (--token-file).

Examples:
  loadgen --target-url http://127.0.0.1:8000
      wait for an operator at http://127.0.0.1:8088
  loadgen --target-url http://127.0.0.1:8000/v1 --concurrency 120 --start
      start immediately with 120 conversations
  loadgen --target-url http://127.0.0.1:8000 --duration 5m --fail-if 'ttft_p95>600ms' --output report.html
      run for five minutes, print a summary, and exit with 3 if TTFT is too high
  LOADGEN_TARGET_API_KEY=… loadgen --config booth.yaml --log-format json
      read settings from a file and the key from the environment
  loadgen trial --target-url http://127.0.0.1:8000 --mode-driver pinned --concurrency 120
      test whether kv is better than round_robin with 120 conversations
  loadgen compare h200x3-tp1-llama70b-fp8 h200x3-tp1-llama70b-fp8 --a-mode round_robin --b-mode kv
      print a report comparing two results
  loadgen trace requests.jsonl
      print what recorded traffic holds: rate, lengths, hit rate, and what is missing
  loadgen shadow requests.jsonl --workers 8 --blocks 4000
      calculate what other routers would have found in the caches for recorded traffic
  loadgen check --config booth.yaml
      check a configuration file without starting anything
  loadgen check --cluster --config booth.yaml
      also check whether the mode of a Dynamo on Kubernetes can be switched

loadgen help COMMAND lists the additional flags of trial, sweep, capacity, compare,
trace, shadow, churn and check.
loadgen help TOPIC lists all settings of a topic:
`

const exitCodes = `
Exit codes: 0 success; 1 the load generator itself failed (health: not ready);
2 invalid configuration or environment, nothing was started; 3 a --fail-if condition
was met; 4 nothing was measured, or not what a condition refers to, or a trial,
sweep or capacity search ended without a result.
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

const besidesRecord = `
The token of the load generator comes from LOADGEN_TOKEN or LOADGEN_TOKEN_FILE.

Exit codes: 0 success; 1 the load generator was lost or the file could not be written completely;
2 invalid configuration, nothing was recorded.
`

const besidesReplay = `
It also takes --listen, --token-file, --hosts, --public-page and the TLS settings of loadgen (loadgen help access).
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

// printHelp prints the help of the whole program, whatever the command: the settings of the requested topic, else the
// most common ones, with examples and the topics.
func (m *model) printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if node := ctx.Selected(); node != nil && Command(node.Name).own() {
		return printOwn(options, ctx, Command(node.Name))
	}
	whole := *ctx
	whole.Path = ctx.Path[:1]
	for _, f := range m.fields {
		f.flag.Hidden = m.topic != every && m.topic != topicOf(f.flag)
		if m.topic == "" {
			f.flag.Hidden = !f.flag.Tag.Has("basic")
		}
	}
	if m.topic != "" {
		for _, command := range ctx.Model.Children {
			command.Hidden = true
		}
		ctx.Model.Help = ""
		return kong.DefaultHelpPrinter(options, &whole)
	}
	ctx.Model.HelpFlag = nil // otherwise it would offer further help on each command
	if err := kong.DefaultHelpPrinter(options, &whole); err != nil {
		return err
	}
	text := examples
	for _, topic := range topics {
		if !strings.Contains(topic.Key, ".") {
			text += fmt.Sprintf("  %-12s%s\n", topic.Key, topic.Title)
		}
	}
	text += fmt.Sprintf("  %-12s%s\n", every, "All settings")
	_, err := fmt.Fprint(ctx.Stdout, text+exitCodes)
	return err
}

// printOwn prints only the flags of a command that has its own.
func printOwn(options kong.HelpOptions, ctx *kong.Context, c Command) error {
	for _, flag := range ctx.Model.Flags {
		flag.Hidden = flag != ctx.Model.HelpFlag
	}
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
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
	case Probed:
		text = besidesProbe
	case Churned:
		text = besidesChurn
	}
	_, err := fmt.Fprint(ctx.Stdout, text)
	return err
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
