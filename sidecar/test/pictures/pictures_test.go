//go:build pictures

package pictures

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kvbooth/internal/source"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

const (
	// firstPort is where the search for free ports begins.
	firstPort = 27000
	// measured is how much of a step the figures of a picture stand on, in seconds.
	measured = 150
	// patience is how long a demo may take to have measured that.
	patience = 15 * time.Minute
)

func TestPictures(t *testing.T) {
	tools, ports := boothtest.FindTools(t), boothtest.NewPorts(firstPort)
	for lanes, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) { take(t, tools, ports, name, lanes+1) })
	}
}

// take starts a demo, waits until its figures stand on enough, and runs the journeys of its name.
func take(t *testing.T, tools boothtest.Tools, ports *boothtest.Ports, name string, lanes int) {
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"demo", "--grafana=installed", "--cache-dir=" + t.TempDir()}
	if lanes > 1 {
		args = append(args, "--twin")
	}
	addresses := map[string]string{}
	for _, flag := range []string{"frontend-port", "worker-port", "gpu-port", "prometheus-port", "port", "grafana-port"} {
		port := ports.Take(t, 8)
		args = append(args, fmt.Sprintf("--%s=%d", flag, port))
		addresses[flag] = "http://" + process.Loopback(port)
	}
	demo := &boothtest.Part{Ready: addresses["grafana-port"] + "/api/health", Command: process.Command{
		Name: "the demo", Path: filepath.Join(boothtest.Programs(t), "booth"), Args: args, Env: os.Environ(), Log: boothtest.Log(t, "demo"), Parent: true,
	}}
	demo.Run(t)
	await(t, addresses["port"], lanes)
	b := &boothtest.Booth{Root: root, Loadgen: addresses["port"]}
	b.Journeys(t, tools, "pictures", "GRAFANA_URL="+addresses["grafana-port"], "RESULTS="+filepath.Join(root, "docs"), "LANES="+name)
}

// await waits until every lane has measured enough, and the load generator keeps up.
func await(t *testing.T, loadgen string, lanes int) {
	client, err := api.NewClient(http.DefaultClient, loadgen, "")
	if err != nil {
		t.Fatal(err)
	}
	deadline, tick := time.After(patience), time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		s, err := client.Snapshot(t.Context())
		if err == nil && s.Client.Verdict == api.VerdictFine && len(s.Lanes) == lanes && !slices.ContainsFunc(s.Lanes, func(l api.LaneSnapshot) bool { return l.Baseline.Seconds < measured }) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the demo has not measured %d s: %v", measured, err)
		}
	}
}
