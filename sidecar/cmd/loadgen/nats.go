package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/process"
)

// natsServer is a NATS server for members on this machine only.
type natsServer struct {
	service *process.Service
	dir     string // of its configuration
	token   string
}

const (
	natsPort   = 4222 // and up: below the ephemeral ports, which might be in use at a restart
	natsTries  = 10
	natsWithin = 10 * time.Second
	natsPoll   = 20 * time.Millisecond
)

// findNATS returns the server beside this program, or else the one in PATH.
func findNATS() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	program, err := process.FindNATS(filepath.Dir(self))
	if err != nil {
		return "", fmt.Errorf("members.count: members need a NATS server: %w; or use a running one with "+
			"--members-nats-url", err)
	}
	return program, nil
}

// newNATS configures the server. Its token is in a file that only this user can read.
func newNATS(program, dir, log, token string, say func(string, ...any)) *natsServer {
	s := &natsServer{dir: dir, token: token}
	s.service = &process.Service{
		Name: "the NATS server", Within: natsWithin, Say: say, Ready: s.ready,
		Command: process.Command{
			Name: "the NATS server", Path: program, Args: []string{"--config", s.config()}, Env: process.Environment(),
			Log: log, Brief: true,
		},
	}
	return s
}

func (s *natsServer) config() string { return filepath.Join(s.dir, "nats-server.conf") }

// ports is the folder of the file by which the server reports that it listens.
func (s *natsServer) ports() string { return filepath.Join(s.dir, "ports") }

// start starts the server on a free port, which it keeps, and returns its address.
func (s *natsServer) start(ctx context.Context, to *config.NATS) error {
	if to.Token != "" { // the user's own token, which other programs may use, too
		s.token = string(to.Token)
	}
	from := natsPort
	var err error
	for range natsTries {
		var free []int
		if free, err = process.FreePorts(from, 1); err != nil {
			return err
		}
		if err = s.configure(free[0]); err != nil {
			return fmt.Errorf("data_dir: %w", err)
		}
		if err = s.service.Start(ctx); err == nil {
			to.URL, to.Token = "nats://"+process.Loopback(free[0]), config.Secret(s.token)
			return nil
		}
		if ctx.Err() != nil {
			break
		}
		from = free[0] + 1 // another program may have taken the port
	}
	return err
}

// configure writes the server's configuration: its listener, its token, and the largest message that there is, since
// each turn is one with its whole history.
func (s *natsServer) configure(port int) error {
	if err := errors.Join(os.RemoveAll(s.ports()), os.MkdirAll(s.ports(), 0o700)); err != nil {
		return err
	}
	text := fmt.Sprintf("listen: %q\nauthorization { token: %q }\nmax_payload: 64MB\nmax_pending: 256MB\n"+
		"ports_file_dir: %q\n", process.Loopback(port), s.token, s.ports())
	if err := os.Remove(s.config()); err != nil && !os.IsNotExist(err) { // other users may have access to an old one
		return err
	}
	return os.WriteFile(s.config(), []byte(text), 0o600)
}

// ready waits until the server reports that it listens. It may exit right afterwards.
func (s *natsServer) ready(ctx context.Context, p *process.Process) error {
	tick := time.NewTicker(natsPoll)
	defer tick.Stop()
	for {
		if found, err := filepath.Glob(filepath.Join(s.ports(),
			"*_"+strconv.Itoa(p.PID())+".ports")); err == nil && len(found) > 0 && !p.Exited() {
			return nil
		}
		select {
		case <-p.Done():
			return p.Ended(context.WithoutCancel(ctx)) // Ended returns nil where ctx has ended
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
