//go:build linux

// Command bench measures the load generator: against a server with known token times, it shows the errors of the load
// generator's figures, the cost per chunk, whether its error bound holds, and the cost of a second lane and of
// members. It also measures the cost of the whole booth on the simulated cluster, with the booth's figures, and of
// simulations.
//
// The load generator is bin/loadgen in a process of its own; the server is another process. In starved rows, further
// processes compete with the load generator for one core.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"kvbooth/sidecar/test/known"
)

// tokens is the server's timing.
var tokens = known.Timing{First: 200 * time.Millisecond, Gap: 25 * time.Millisecond}

// meanTokens is the mean length of an answer. Lengths vary as those of the booth do: with equal lengths, all
// conversations would send their requests at the same times.
const meanTokens = 400

// window is the measured time of a row, equal to the load generator's own window.
const window = 60 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// tables are the tables that can be measured alone, by argument.
var tables = map[string]func(context.Context) error{
	"shadow": func(ctx context.Context) error {
		return table(ctx, slices.DeleteFunc(rows(), func(r row) bool { return !r.dynamo }))
	},
	"streams":    func(ctx context.Context) error { return table(ctx, rows()[:4]) },
	"booth":      boothTable,
	"long":       longTable,
	"members":    membersTable,
	"simulation": simulationTable,
	"twin":       func(ctx context.Context) error { return twinTable(ctx, laneStreams) },
}

// run runs a table, or the program's part in one as a child process.
func run(ctx context.Context, args []string) error {
	switch {
	case len(args) >= 1 && args[0] == "serve":
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		fmt.Println(l.Addr())
		server := known.New(tokens)
		server.Dynamo = len(args) == 2
		return server.Serve(ctx, l)
	case len(args) == 2 && args[0] == "burn":
		return withNumber(args[1], func(cpu int) error { return burn(ctx, cpu) })
	case len(args) == 3 && args[0] == "loop":
		return withNumber(args[2], func(n int) error { return plainLoop(ctx, args[1], n) })
	case len(args) == 2 && args[0] == "simulate":
		return simulate(ctx, args[1])
	case len(args) == 1 && tables[args[0]] != nil:
		return tables[args[0]](ctx)
	case len(args) == 2 && args[0] == "streams":
		return withNumber(args[1], func(n int) error { return table(ctx, []row{{streams: n}}) })
	case len(args) == 2 && args[0] == "twin":
		return withNumber(args[1], func(n int) error { return twinTable(ctx, n) })
	case len(args) == 0:
		return errors.Join(table(ctx, rows()), twinTable(ctx, laneStreams), membersTable(ctx), boothTable(ctx),
			simulationTable(ctx))
	}
	return fmt.Errorf("bench takes no arguments, or \"streams\" for reading streams beside the plain loop alone (or how " +
		"many, without the loop), \"booth\" for the whole booth alone, \"shadow\" for the cost of the shadow alone, " +
		"\"twin\" for two lanes alone (and how many streams each), \"long\" for the memory of long conversations alone, " +
		"\"members\" for members alone, or \"simulation\" for simulations alone")
}

// withNumber parses text as a number and calls f with it.
func withNumber(text string, f func(n int) error) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	return f(n)
}

// table runs rows and prints each as it ends.
func table(ctx context.Context, rows []row) error {
	loadgen, err := filepath.Abs("bin/loadgen")
	if err != nil {
		return err
	}
	if _, err := os.Stat(loadgen); err != nil {
		return fmt.Errorf("%w; build it first: go tool mage build", err)
	}
	fmt.Printf("Server: first token after %v, then one every %v, one a chunk; %d cores, %s.\n", tokens.First, tokens.Gap,
		runtime.NumCPU(), runtime.Version())
	fmt.Printf(
		"Each row: %v after all conversations have begun. "+
			"Errors are the load generator's figure minus what the server sent.\n",
		window)
	fmt.Print("The plain loop over go-openai keeps no history, stores nothing and measures nothing: what reading " +
		"the chunks costs in any case.\n\n")
	fmt.Printf("%-24s %9s %9s %9s %12s %8s %8s  %s\n", "streams", "TTFT p50", "TTFT p95", "ITL p95", "chunks/CPU-s",
		"memory", "lag p95", "verdict")
	wrong := 0
	for _, r := range rows {
		m, err := measure(ctx, loadgen, r)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name(), err)
		}
		fmt.Println(m.line(r))
		if m.misjudged() {
			wrong++
		}
	}
	printPeers()
	if wrong > 0 {
		return fmt.Errorf("%d rows where an error is beyond its bound", wrong)
	}
	return nil
}

func rows() []row {
	return []row{
		{streams: 180},
		{streams: 180, plain: true},
		{streams: 1000},
		{streams: 1000, plain: true},
		{streams: 180, dynamo: true},
		{streams: 180, dynamo: true, shadow: true},
		{streams: 1000, dynamo: true},
		{streams: 1000, dynamo: true, shadow: true},
		{streams: 180, simulates: true},
		{streams: 180, burners: 1},
		{streams: 1000, burners: 2},
		{streams: 180, burners: 6},
	}
}

// printPeers prints what other load generators reached with the same server, as measured earlier.
func printPeers() {
	fmt.Print(`
To reach: 180 streams: p95 error ≤ 1 ms, ≤ 40 MB; 1,000 streams: ≤ 3 ms, ≤ 100 MB.
Measured earlier with the same server (180 / 1,000 streams): AIPerf 0.13: p95 error 338 / 379 ms,
5,200 / 15,000 chunks per CPU-second;
GuideLLM 0.8: 36 ms / never reached; a JavaScript generator: 26 / 356 ms, 15,400 / 28,400.
`)
}
