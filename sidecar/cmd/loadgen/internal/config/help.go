package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

const description = "Holds many multi-turn conversations against an OpenAI-compatible server and shows what its users feel: " +
	"time to first token, time per output token, latency."

const examples = `
Every field has a flag, an environment variable and a place in the YAML file,
all of one name: --target-url, LOADGEN_TARGET_URL, and url under target.
A flag counts more than a variable, and that more than the file. Secrets have
no flag: LOADGEN_TOKEN, LOADGEN_TARGET_API_KEY, or a file that holds them.

Examples:
  loadgen --target-url http://127.0.0.1:8000
      wait for an operator at http://127.0.0.1:8088
  loadgen --target-url http://127.0.0.1:8000/v1 --concurrency 120 --start
      begin at once with 120 conversations
  loadgen --target-url http://127.0.0.1:8000 --duration 5m --fail-if 'ttft_p95>600ms' --output report.html
      run for five minutes, print a summary, and exit with 3 where TTFT is too high
  LOADGEN_TARGET_API_KEY=… loadgen --config booth.yaml --log-format json
      take the settings from a file and the key from the environment
  loadgen trial --target-url http://127.0.0.1:8000 --mode-driver pinned --concurrency 120
      decide whether kv is better than round_robin with 120 conversations
  loadgen compare h200x3-tp1-llama70b-fp8 h200x3-tp1-llama70b-fp8 --a-mode round_robin --b-mode kv
      print the report on two results
  loadgen shadow requests.jsonl --workers 8 --blocks 4000
      say what other routers would have found in the caches on recorded traffic
  loadgen check --config booth.yaml
      say what is wrong with a file, and start nothing
  loadgen check --cluster --config booth.yaml
      say, too, whether the mode of a Dynamo on Kubernetes can be switched

loadgen help trial, sweep, capacity, compare, shadow and check list the flags that these have besides.

Exit codes: 0 all is well; 1 the load generator itself failed (of health: not
ready); 2 nothing has started, since something must be changed first; 3 a condition
of --fail-if was hit; 4 nothing was measured, or not what a condition is about, or
a trial, sweep or capacity search has not come to its answer.
`

// besides ends the help of a command with flags of its own.
const besides = `
Besides, it takes every flag, variable and file of loadgen (loadgen --help), such
as --target-url, --mode-driver, --concurrency, --seed, --slo-ttft and --data-dir.
API and page are up meanwhile: others can watch, pause and cancel. A data directory
with an unfinished one goes on with it: the same command again, after Ctrl-C, too.

Exit codes: 0 it has come to its answer; 1 the load generator itself failed;
2 nothing has started, since something must be changed first; 4 it has not come to
an answer: undecided, unfinished, cancelled, or nothing was measured.
`

const besidesCompare = `
Besides, it takes --output for files of the report, --data-dir where the baselines
of a load generator are (it may run meanwhile), and --slo-ttft and --slo-tpot.
`

const besidesShadow = `
It reads the request trace of NVIDIA Dynamo (DYN_REQUEST_TRACE=1 DYN_REQUEST_TRACE_SINKS=file) and
JSON lines in the form of Mooncake (timestamp in ms, input_length, output_length, hash_ids), plain
or compressed by gzip. It says what the caches would have held, and how evenly requests would have
been spread; of latency it says nothing.
Besides, it takes --output for files of the report (.json, .csv, .md, .html).

Exit codes: 0 all is well; 1 the file could not be read to its end, or a report not be written;
2 nothing was read, since something must be changed first.
`

const besidesCheck = `
Besides, it takes every flag, variable and file of loadgen (loadgen --help).

Exit codes: 0 all is well; 2 something must be changed first.
`

// printHelp is kong's help of the whole program, whatever the command, with
// examples at its end.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if node := ctx.Selected(); node != nil && Command(node.Name).own() {
		return printOwn(options, ctx, Command(node.Name))
	}
	whole := *ctx
	whole.Path = ctx.Path[:1]
	ctx.Model.HelpFlag = nil // else it offers further help on each command, and there is none
	if err := kong.DefaultHelpPrinter(options, &whole); err != nil {
		return err
	}
	_, err := fmt.Fprint(ctx.Stdout, examples)
	return err
}

// printOwn is the help of a command with flags of its own: these alone.
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
	case Check:
		text = besidesCheck
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
		help += " Also --" + alias + "."
	}
	return help
}

// placeHolder says what a flag takes, where no tag does.
func (f field) placeHolder() string {
	if words := f.words(); len(words) > 0 {
		return strings.Join(words, "|")
	}
	switch f.flag.Target.Interface().(type) {
	case int, uint64, float64:
		return "N"
	case time.Duration:
		return "TIME"
	case []string:
		return "NAME"
	}
	return "TEXT"
}
