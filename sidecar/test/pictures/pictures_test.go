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

// TestPictures starts a demo with two lanes, waits until its figures stand on enough, and takes the pictures.
func TestPictures(t *testing.T) {
	tools := boothtest.FindTools(t)
	root, err := source.Root()
	require.NoError(t, err)
	demo := &boothtest.Part{
		Prints: addresses, Ready: "http://" + boothtest.AnyPort + "/api/health",
		Command: process.Command{
			Name: "the demo", Path: filepath.Join(boothtest.Programs(t), "booth"), Env: os.Environ(),
			Args: []string{"demo", "--twin", "--grafana=installed", "--cache-dir=" + t.TempDir()},
			Log:  boothtest.Log(t, "demo"), Parent: true,
		},
	}
	loadgen := "http://" + demo.Run(t)[2]
	await(t, loadgen)
	b := &boothtest.Booth{Root: root, Loadgen: loadgen}
	b.Journeys(t, tools, "pictures", "GRAFANA_URL="+demo.URL(), "RESULTS="+filepath.Join(root, "docs", "pictures"))
}

// await waits until both lanes have measured enough.
func await(t *testing.T, loadgen string) {
	client, err := api.NewClient(http.DefaultClient, loadgen, "")
	require.NoError(t, err)
	short := func(l api.LaneSnapshot) bool { return l.Baseline.Seconds < measured }
	wait.Within(t, within, "the demo has measured enough", func() (any, bool) {
		s, err := client.Snapshot(t.Context())
		if err != nil {
			return err, false
		}
		return s.Client, len(s.Lanes) == 2 && !slices.ContainsFunc(s.Lanes, short)
	})
}
