package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/store"
	"kvbooth/sidecar/process"
)

// partStopsWithin is how long a member or the NATS server may take to end.
const partStopsWithin = 10 * time.Second

// oneSignal is the time within which a repeated signal counts as the same: timeout(1), for one, sends it to a process
// and to its group.
const oneSignal = 500 * time.Millisecond

// fleet is a load generator with members on this machine, each part in a process of its own: a NATS server, unless one
// runs already, the coordinator, which is this program again, and the members. The process that the user started only
// keeps them running.
type fleet struct {
	conf *config.Config // with the address of the server
	out  *os.File       // receives the messages about parts that exit and restart

	server      *natsServer // nil: one that runs already
	coordinator *process.Service
	members     []*process.Service
}

// lead runs a load generator with members, and returns the exit code of its coordinator. args are those of this
// process.
func lead(ctx context.Context, conf *config.Config, args []string) (code int, err error) {
	f := &fleet{conf: conf, out: os.Stderr}
	program := ""
	if conf.Members.NATS.URL == "" {
		if program, err = findNATS(); err != nil {
			return 0, notStarted{err}
		}
	}
	unlock, err := f.lock()
	if err != nil {
		return 0, notStarted{err}
	}
	defer unlock()
	ctx, killed, end := f.signals(ctx)
	defer end()
	if program != "" {
		f.server = newNATS(program, filepath.Join(conf.DataDir, "nats"), f.log("nats-server"), rand.Text(), f.say)
		defer f.stop(killed, f.server.service)
		if err := f.server.start(ctx, &conf.Members.NATS); err != nil {
			if ctx.Err() != nil {
				return success, nil
			}
			return 0, notStarted{err}
		}
	}
	if err := f.make(args); err != nil {
		return 0, err
	}
	return f.run(ctx, killed)
}

// lock prevents a second fleet on the data directory: two servers would write into one store.
func (f *fleet) lock() (unlock func(), err error) {
	dir := f.conf.DataDir
	if err := store.Locked(dir); err != nil {
		return nil, err
	}
	if err = os.MkdirAll(dir, 0o700); err == nil {
		var ok bool
		unlock, ok, err = process.TryLock(filepath.Join(dir, "members.lock"))
		if err == nil && !ok {
			return nil, &store.LockedError{Path: dir}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("data_dir: %s cannot be used: %w; make it writable and free some space, or choose "+
			"another directory with --data-dir", dir, err)
	}
	return unlock, nil
}

// signals returns a context that the first signal ends, and one that the second ends.
func (f *fleet) signals(ctx context.Context) (first, second context.Context, end func()) {
	first, stop := context.WithCancel(ctx)
	second, kill := context.WithCancel(context.WithoutCancel(ctx))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	var wg sync.WaitGroup
	wg.Go(func() {
		var began time.Time
		for {
			select {
			case <-signals:
			case <-second.Done():
				return
			}
			switch {
			case began.IsZero():
				began = time.Now()
				stop()
			case time.Since(began) >= oneSignal:
				kill()
			}
		}
	})
	return first, second, func() {
		signal.Stop(signals)
		stop()
		kill()
		wg.Wait()
	}
}

// make configures coordinator and members.
func (f *fleet) make(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	more, env := f.conf.ForCoordinator()
	if os.Getenv("GOTRACEBACK") == "" {
		env = append(env, "GOTRACEBACK=crash") // separates a crash from the exit code for bad input
	}
	f.coordinator = &process.Service{
		Name: "the coordinator", Within: partStopsWithin, Say: f.say,
		// Its exit code is that of a load generator in one process.
		Final: func(code int) bool { return code >= 0 },
		Command: process.Command{
			Name: "the coordinator", Path: self, Args: append(args[:len(args):len(args)], more...),
			Env:   append(os.Environ(), env...),
			Input: os.Stdin, Output: os.Stdout, Errors: os.Stderr,
		},
	}
	for i := range f.conf.Members.Count {
		name := fmt.Sprintf("member-%d", i+1)
		f.members = append(f.members, &process.Service{
			Name: name, Within: partStopsWithin, Say: f.say,
			Command: process.Command{
				Name: name, Path: self, Args: []string{string(config.Joined)}, Env: append(process.Environment(),
					f.conf.ForMember(name)...),
				Log: f.log(name), Brief: true,
			},
		})
	}
	return nil
}

func (f *fleet) log(name string) string { return filepath.Join(f.conf.DataDir, "logs", name+".log") }

// say writes a line to out, above the status line where there is one.
func (f *fleet) say(format string, args ...any) {
	text := "loadgen: " + strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ") + "\n"
	if term.IsTerminal(int(f.out.Fd())) {
		text = clearLine + text
	}
	_, _ = f.out.WriteString(text)
}

// run starts coordinator and members, and keeps all parts running until the coordinator ends by itself or by the end of
// ctx, or until a part cannot be restarted. The coordinator ends before the members, so that its last report is
// complete.
func (f *fleet) run(ctx, killed context.Context) (code int, err error) {
	defer f.stop(killed, f.members...)
	defer f.coordinator.Stop(killed)
	if err := f.start(); err != nil {
		return 0, err
	}
	keeping, cancel := context.WithCancel(context.WithoutCancel(ctx))
	leading, letGo := context.WithCancel(keeping)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	defer letGo()
	over, lost := make(chan error, 1), make(chan error, 2)
	wg.Go(func() { over <- f.coordinator.Watch(leading) })
	wg.Go(func() { f.keepMembers(keeping, lost) })
	if f.server != nil {
		wg.Go(func() {
			if err := f.server.service.Watch(keeping); err != nil {
				lost <- err
			}
		})
	}
	select {
	case <-ctx.Done():
		letGo()
		f.coordinator.Stop(killed)
	case err := <-lost:
		letGo()
		f.coordinator.Stop(killed)
		return 0, err
	case err = <-over:
	}
	if code = f.coordinator.Process().ExitCode(); code >= 0 {
		return code, nil
	}
	if err != nil {
		return 0, err
	}
	return 0, errors.New("the coordinator did not exit cleanly")
}

func (f *fleet) start() error {
	for _, s := range append([]*process.Service{f.coordinator}, f.members...) {
		if err := s.Start(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

// keepMembers continues without a member that cannot be kept running, as long as there is another one.
func (f *fleet) keepMembers(ctx context.Context, lost chan<- error) {
	var wg sync.WaitGroup
	defer wg.Wait()
	var mu sync.Mutex
	left := len(f.members)
	for _, m := range f.members {
		wg.Go(func() {
			err := m.Watch(ctx)
			if err == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				lost <- err
				return
			}
			f.say("%v; the others continue without it", err)
		})
	}
}

// stop stops parts at once.
func (f *fleet) stop(killed context.Context, parts ...*process.Service) {
	ctx, cancel := context.WithTimeout(killed, partStopsWithin)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range parts {
		wg.Go(func() { s.Stop(ctx) })
	}
	wg.Wait()
}
