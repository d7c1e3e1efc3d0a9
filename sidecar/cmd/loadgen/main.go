// Command loadgen holds multi-turn conversations in progress against an
// OpenAI-compatible server and says what the users of that server feel. This
// file is flags and wiring; what it wires is in the packages of sidecar.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"

	"golang.org/x/term"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/server"
	"kvbooth/sidecar/store"
)

// Exit codes: badInput for what the caller must change, failure for the rest.
const (
	success  = 0
	failure  = 1
	badInput = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// run is the program; what it returns is its exit code.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	conf, command, err := config.Load(args, environ, stdout)
	if err != nil {
		return report(stderr, err)
	}
	switch command {
	case config.Help:
	case config.Version:
		fmt.Fprintln(stdout, "loadgen", version())
	case config.Check:
		fmt.Fprintln(stdout, "The configuration is good.")
	default:
		return report(stderr, serve(ctx, conf, stderr))
	}
	return success
}

// report prints an error and says which exit code it deserves.
func report(w io.Writer, err error) int {
	var field *api.FieldError
	var locked *store.LockedError
	switch {
	case err == nil:
		return success
	case errors.As(err, &field), errors.As(err, &locked), errors.Is(err, syscall.EADDRINUSE):
		fmt.Fprintln(w, "loadgen:", err)
		return badInput
	}
	fmt.Fprintln(w, "loadgen:", err)
	return failure
}

// version is that of the module, or the commit that it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) > 12 && info.Main.Version == "(devel)" {
			return "devel-" + s.Value[:12]
		}
	}
	return info.Main.Version
}

// serve runs the load generator until ctx ends.
func serve(ctx context.Context, conf *config.Config, stderr io.Writer) error {
	out := &terminal{w: stderr}
	log := newLog(conf, out)
	if err := server.CheckListen(conf.Listen, string(conf.Token)); err != nil {
		return err
	}
	l, err := net.Listen("tcp", conf.Listen)
	if err != nil {
		return fmt.Errorf("listen: %s is not free: %w; choose another address with --listen", conf.Listen, err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, err := assemble(ctx, conf, log)
	if err != nil {
		return err
	}
	log.Info("the load generator is up", "address", "http://"+l.Addr().String(), "target", conf.Target.URL)
	var wg sync.WaitGroup
	if conf.Start {
		if _, err := g.hub.Start(ctx, api.DefaultLane, "command line", api.StartRequest{}); err != nil {
			log.Error("the workload was not started", "error", err)
		}
	}
	if f, ok := stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		wg.Go(func() { statusLine(ctx, out, width(f), g.hub.Snapshot) })
	}
	err = g.run(ctx, cancel, l)
	wg.Wait()
	return err
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
