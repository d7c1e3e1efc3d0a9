// Command loadgen holds multi-turn conversations with an OpenAI-compatible server and measures the latencies of its
// users. This file has flags and wiring; the parts are in the packages of sidecar.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/loadgen/store"
	"kvbooth/sidecar/sim/whatif"
)

// Exit codes.
const (
	success    = 0
	broken     = 1 // its API, its store or a file of --output failed; of loadgen health: it is not ready
	badInput   = 2 // nothing has started; the caller must change the input
	failed     = 3 // a condition of --fail-if was met, or --gate found a figure to be worse
	unmeasured = 4 // nothing was measured, a metric of --fail-if was not, or a sweep has no answer yet
)

// gcPercent collects early. The live heap is a few megabytes, so collecting is cheap, and a sidecar should be small.
const gcPercent = 25

func main() {
	if len(os.Args) == 2 && os.Args[1] == whatif.Command { // a child process of its own
		os.Exit(whatif.Work(os.Stdin, os.Stdout, openSpec))
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(run(untilSignal(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// untilSignal returns a context that ends with the first interrupt or SIGTERM. From then on a second one ends the
// process at once, so it can be sent as soon as the program reports that it is shutting down.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		cancel()
	}()
	return ctx
}

// run is the program. It returns the exit code.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	stdout = api.PrintableWriter(stdout)
	conf, command, err := config.Load(args, environ, stdout)
	if err != nil {
		return exitCode(stderr, notStarted{err})
	}
	if conf != nil && conf.Sweep != nil && conf.Sweep.CheckOnly {
		command = config.Check
	}
	switch command {
	case config.Help:
	case config.Version:
		fmt.Fprintln(stdout, "loadgen", api.ProgramVersion())
	case config.Check:
		return exitCode(stderr, check(ctx, conf, stdout))
	case config.Health:
		if err := health(ctx, conf); err != nil {
			fmt.Fprintln(api.PrintableWriter(stderr), "loadgen:", err)
			return broken
		}
	case config.Compared:
		return exitCode(stderr, compare(ctx, conf, stdout))
	case config.Joined:
		return exitCode(stderr, join(ctx, conf, stderr))
	case config.Asked:
		return exitCode(stderr, why(ctx, conf, stdout))
	case config.Listed:
		return exitCode(stderr, showHistory(ctx, conf, stdout))
	case config.Probed:
		return exitCode(stderr, probeRouters(ctx, conf, stdout))
	case config.Recorded:
		return exitCode(stderr, record(ctx, conf, stderr))
	case config.Replayed:
		return exitCode(stderr, playBack(ctx, conf, stderr))
	case config.Traced:
		return exitCode(stderr, describeTrace(ctx, conf, stdout))
	case config.Shadowed:
		return exitCode(stderr, shadowTrace(ctx, conf, stdout, stderr))
	default:
		return exitCode(stderr, serve(ctx, conf, stdout, stderr))
	}
	return success
}

// notStarted marks an error that only another configuration or another state of this machine can resolve. A retry
// returns the same error.
type notStarted struct{ error }

// withoutAnswer are the errors of what worked, and has no answer.
var withoutAnswer = []error{errNothing, errWarmUp, errUnknown, errCutShort, errNotJudged}

// exitCode prints an error and returns its exit code.
func exitCode(w io.Writer, err error) int {
	if err == nil {
		return success
	}
	fmt.Fprintln(api.PrintableWriter(w), "loadgen:", err)
	switch {
	case errors.As(err, new(notStarted)):
		return badInput
	case err == errFailIf, err == errNotCertain, alone[worsened](err): //nolint:errorlint // another error decides
		return failed
	case alone[undecided](err), slices.Contains(withoutAnswer, err): // with another error, the other one decides
		return unmeasured
	}
	return broken
}

// alone reports whether an error is of a type and wraps no other, which would decide.
func alone[T error](err error) bool {
	_, ok := err.(T) //nolint:errorlint // see above
	return ok
}

// worsened is the error of --gate. It names the figures that are worse.
type worsened string

func (w worsened) Error() string { return string(w) }

// writeJSON writes a value as indented JSON.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// startTakes is longer than what only a start does.
const startTakes = 10 * time.Second

// serve runs the load generator until ctx ends, or until the run reaches a limit of its own. It then prints the results
// of the run.
func serve(ctx context.Context, conf *config.Config, stdout, stderr io.Writer) error {
	out := &terminal{w: stderr}
	if conf.Sweep != nil && conf.ByHand && out.file() == nil {
		return notStarted{api.Refuse("mode.driver", "manual", "another driver, since a switch by hand cannot be confirmed "+
			"without a terminal: pinned for a Dynamo, endpoints, kubernetes, or arms with a url each or with switch.command; "+
			"--mode-driver=manual waits until the page confirms it")}
	}
	log := newLog(conf, out)
	files := divide(openFileLimit(), filesEach(conf))
	if err := files.check("concurrency", conf.Concurrency); err != nil && !conf.Members.Coordinates() {
		return notStarted{err}
	}
	l, err := listen(conf)
	if err != nil {
		return notStarted{err}
	}
	defer l.Close()
	outputs, err := report.OpenOutputs(conf.OutputFormats(), conf.Output)
	if err != nil {
		return notStarted{err}
	}
	// Measured data outlives ctx until the end of the run is reported.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	starting := context.AfterFunc(ctx, cancel)
	g, err := assemble(work, conf, l.Addr().String(), files, log)
	switch {
	case err != nil && ctx.Err() != nil: // it was stopped meanwhile
		return nil
	case err != nil:
		return notStarted{err}
	}
	starting()
	log.Info("load generator started", "address", scheme(conf)+"://"+l.Addr().String(), "target", conf.Target.URL,
		"open_files", files.limit, "most_conversations", files.conversations)
	defer time.AfterFunc(startTakes, trimProgram).Stop()
	if err := g.takeAccepted(work, conf); err != nil {
		cancel()
		return errors.Join(notStarted{err}, g.run(work, cancel, l))
	}
	if conf.Start || conf.Ends() {
		g.lane.DetectMode(work)
		_, err := g.lane.Start(work, "command line", api.StartRequest{})
		switch {
		case err != nil && conf.Ends():
			cancel()
			return errors.Join(notStarted{err}, g.run(work, cancel, l))
		case err != nil:
			log.Error("the workload could not be started", "error", err)
		}
	}
	g.sayWhatIsMissing(conf)
	return g.watched(ctx, work, cancel, l, outputs, conf, out, stdout)
}

// sayWhatIsMissing says which settings begin the load, or end the run whose figures are to be judged.
func (g *generator) sayWhatIsMissing(conf *config.Config) {
	if !conf.Start && !conf.Ends() && g.question == nil {
		g.log.Info("the load is started on the page, with --start, or with --duration for a run that ends")
	}
	if len(conf.FailIf) > 0 && !conf.Ends() {
		g.log.Warn("fail_if is evaluated at the end of a run, and this one ends by a signal only; set duration or requests")
	}
}

// watched runs until ctx ends, or until the requested sweep or run ends. Where standard error is a terminal, its last
// line is the state.
func (g *generator) watched(ctx, work context.Context, cancel context.CancelFunc, l net.Listener,
	outputs report.Outputs, conf *config.Config, out *terminal, stdout io.Writer,
) error {
	var wg sync.WaitGroup
	line := describe
	if g.question != nil {
		line = g.question.line
	}
	live, end := context.WithCancel(work)
	defer end()
	if f := out.file(); f != nil {
		wg.Go(func() { statusLine(live, out, width(f), func() string { return line(g.view.Snapshot()) }) })
	}
	over := func() {
		end()
		wg.Wait() // so that the last state of the run stays on the terminal
	}
	if g.question != nil {
		g.question.outputs = outputs
		return g.question.run(ctx, work, cancel, func() error { return g.run(work, cancel, l) }, over, stdout)
	}
	if conf.Churn != nil {
		c, err := newChurn(g, conf, outputs)
		if err != nil {
			cancel()
			return errors.Join(notStarted{err}, g.run(work, cancel, l))
		}
		return answered(ctx, work, cancel, func() error { return g.run(work, cancel, l) }, over, stdout, c.follow)
	}
	e := &endOf{generator: g, conf: conf, outputs: outputs, over: over}
	return e.run(ctx, work, cancel, l, stdout)
}

// listen binds the address before anything else is opened, so that the store can report the address of the first
// process to a second one. The error contains it, too, if both have the same address and the same data directory.
func listen(conf *config.Config) (net.Listener, error) {
	l, err := net.Listen("tcp", conf.Listen)
	if err == nil {
		return l, nil
	}
	if locked := store.Locked(conf.DataDir); locked != nil {
		return nil, locked
	}
	if op := new(net.OpError); errors.As(err, &op) {
		err = op.Err // the message already contains the address
	}
	return nil, fmt.Errorf("listen: %s is unavailable: %w; stop the program that uses it, or choose another address "+
		"with --listen", conf.Listen, err)
}

func width(f *os.File) func() int {
	return func() int {
		w, _, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0
		}
		return w
	}
}

func newLog(conf *config.Config, w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(conf.Log.Level)) // one of four words, checked by config
	opts := &slog.HandlerOptions{Level: level}
	if conf.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
