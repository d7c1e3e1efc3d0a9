package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"

	"kvbooth/sidecar/process"
)

// build is the build of Prometheus and the Grafana app, beside a running load generator. Until they start, it responds
// at their addresses with its progress.
type build struct {
	process *process.Process
	log     string
	servers []*http.Server
	serving sync.WaitGroup
}

// startBuild starts the command of the flag, and the servers at the addresses of Prometheus and Grafana.
func (b *booth) startBuild() (*build, error) {
	command := strings.Fields(b.flags.Build)
	path, err := exec.LookPath(command[0])
	if err != nil {
		return nil, fmt.Errorf("%w: build: %w", errBadInput, err)
	}
	started := &build{log: b.log("build")}
	started.process, err = process.Start(process.Command{
		Name: "the build", Path: path, Args: command[1:], Log: started.log, Parent: true,
	})
	if err != nil {
		return nil, err
	}
	for _, address := range []string{b.prometheusAt, b.grafanaAt} {
		if address == "" {
			continue
		}
		if err := started.serve(address); err != nil {
			started.stop(atOnce)
			return nil, err
		}
	}
	return started, nil
}

// serve responds at an address until close.
func (c *build) serve(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: c, ReadHeaderTimeout: readyTimeout}
	c.servers = append(c.servers, server)
	c.serving.Go(func() { _ = server.Serve(listener) })
	return nil
}

// ServeHTTP responds with the progress of the build: to a query in the form of Prometheus' API, otherwise as a page
// that reloads itself.
func (c *build) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		w.Header().Set("Refresh", "2")
		http.Error(w, c.progress(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusServiceUnavailable)
	answer := map[string]string{"status": "error", "errorType": "unavailable", "error": c.progress()}
	_ = json.NewEncoder(w).Encode(answer)
}

// progress returns the state of the build with the last line that it printed.
func (c *build) progress() string {
	state := "Prometheus and Grafana start when they are built"
	if c.process.Exited() {
		state = "the build has ended"
	}
	lines := strings.Split(process.Tail(c.log), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		state += ": " + last
	}
	return state
}

// close frees the addresses.
func (c *build) close() {
	for _, server := range c.servers {
		_ = server.Close()
	}
	c.serving.Wait()
}

// stop stops the build, or kills it if ctx ends first.
func (c *build) stop(ctx context.Context) {
	c.process.Stop(ctx)
	c.close()
}

// startBuilt waits for the end of the build and starts Prometheus and Grafana. Grafana is found or downloaded
// meanwhile. Without Prometheus, the booth continues as it is.
func (b *booth) startBuilt(ctx context.Context) error {
	var found programs
	var search sync.WaitGroup
	search.Go(func() { found.grafana = b.findGrafana(ctx) })
	defer search.Wait()
	select {
	case <-ctx.Done():
		return nil
	case <-b.build.process.Done():
	}
	if err := b.build.process.Wait(); err != nil {
		b.out.say("%v", err)
	}
	path, err := b.findPrometheus(ctx)
	if err != nil {
		b.out.say("%v\ncontinuing without Prometheus and Grafana", err)
	} else {
		found.prometheus = path
	}
	search.Wait()
	if found.prometheus == "" {
		return nil
	}
	b.build.close()
	err = b.startPrograms(ctx, found)
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		b.summary()
	}
	return err
}
