package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/process"
)

// partStopsWithin is how long a member or the NATS server may take to end.
const partStopsWithin = 10 * time.Second

// local are the members on this machine and their NATS server, each in a process of its own. One that exits is
// restarted. They end with this process, however it ends.
type local struct {
	parts  []*process.Service // the server first
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// startLocal starts the members that the configuration asks for. Unless it names a NATS server, it starts one, too, and
// adds its address to the configuration.
func startLocal(ctx context.Context, conf *config.Config, log *slog.Logger) (l *local, err error) {
	keeping, cancel := context.WithCancel(context.Background())
	l = &local{cancel: cancel}
	defer func() {
		if err != nil {
			l.stop()
		}
	}()
	say := func(format string, args ...any) { log.Warn(fmt.Sprintf(format, args...)) }
	file := func(name string) string { return filepath.Join(conf.DataDir, "logs", name+".log") }
	if conf.Members.NATS.URL == "" {
		program, err := findNATS()
		if err != nil {
			return l, err
		}
		server := newNATS(program, filepath.Join(conf.DataDir, "nats"), file("nats-server"), rand.Text(), say)
		l.parts = append(l.parts, server.service)
		if err := server.start(ctx, &conf.Members.NATS); err != nil {
			return l, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return l, err
	}
	for i := range conf.Members.Count {
		name := fmt.Sprintf("member-%d", i+1)
		s := &process.Service{Name: name, Within: partStopsWithin, Say: say, Command: process.Command{
			Name: name, Path: self, Args: []string{string(config.Joined)},
			Env: append(process.Environment(), conf.ForMember(name)...), Log: file(name), Brief: true,
		}}
		l.parts = append(l.parts, s)
		if err := s.Start(ctx); err != nil {
			return l, err
		}
	}
	for _, s := range l.parts {
		l.wg.Go(func() {
			if err := s.Watch(keeping); err != nil {
				log.Error("a part of this load generator is gone", "problem", err)
			}
		})
	}
	return l, nil
}

// stop ends the members, and then their server.
func (l *local) stop() {
	l.cancel()
	l.wg.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), partStopsWithin)
	defer cancel()
	var wg sync.WaitGroup
	for i, s := range l.parts {
		if i > 0 {
			wg.Go(func() { s.Stop(ctx) })
		}
	}
	wg.Wait()
	if len(l.parts) > 0 {
		l.parts[0].Stop(ctx)
	}
}
