//go:build pictures

package pictures

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/source"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

const (
	// measured is the number of seconds of a step that a picture's figures need.
	measured = 150
	// within is the time limit for a demo to measure them.
	within = 15 * time.Minute
)

// addresses finds the addresses of Grafana and the load generator in the output of a demo.
var addresses = regexp.MustCompile(`(?s)\n  Grafana +http://([0-9.:]+).*\n  load generator +http://([0-9.:]+)`)

func TestPictures(t *testing.T) {
	tools := boothtest.FindTools(t)
	for lanes, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) { take(t, tools, name, lanes+1) })
	}
}

// take starts a demo, waits until it has measured enough, and runs the journeys of its name.
func take(t *testing.T, tools boothtest.Tools, name string, lanes int) {
	root, err := source.Root()
	require.NoError(t, err)
	args := []string{"demo", "--grafana=installed", "--cache-dir=" + t.TempDir()}
	if lanes > 1 {
		args = append(args, "--twin")
	}
	demo := &boothtest.Part{
		Prints: addresses, Ready: "http://" + boothtest.AnyPort + "/api/health",
		Command: process.Command{
			Name: "the demo", Path: filepath.Join(boothtest.Programs(t), "booth"), Args: args, Env: os.Environ(),
			Log: boothtest.Log(t, "demo"), Parent: true,
		},
	}
	loadgen := "http://" + demo.Run(t)[2]
	await(t, loadgen, lanes)
	b := &boothtest.Booth{Root: root, Loadgen: loadgen}
	b.Journeys(t, tools, "pictures", "GRAFANA_URL="+demo.URL(), "RESULTS="+filepath.Join(root, "docs"), "LANES="+name)
}

// await waits until each lane has measured enough, and the client's verdict is fine.
func await(t *testing.T, loadgen string, lanes int) {
	client, err := api.NewClient(http.DefaultClient, loadgen, "")
	require.NoError(t, err)
	short := func(l api.LaneSnapshot) bool { return l.Baseline.Seconds < measured }
	wait.Within(t, within, "the demo has measured enough", func() (any, bool) {
		s, err := client.Snapshot(t.Context())
		if err != nil {
			return err, false
		}
		return s.Client, s.Client.Verdict == api.VerdictFine && len(s.Lanes) == lanes && !slices.ContainsFunc(s.Lanes, short)
	})
}
