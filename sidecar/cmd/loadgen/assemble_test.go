//go:build unix

package main

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/natstest"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
)

// A start that fails after the coordinator and the store were opened leaves neither open: at the corpus and at the
// follow-up model.
func TestFailedStartLeavesNothingOpen(t *testing.T) {
	nats := natstest.Start(t)
	for name, spoil := range map[string]func(*config.Config){
		"corpus":           func(c *config.Config) { c.Corpus.Dir = filepath.Join(t.TempDir(), "none") },
		"follow-up server": func(c *config.Config) { c.Followup.URL = "://" },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			conf, _, err := config.Load([]string{
				someTarget, "--data-dir=" + dir, "--members-nats-url=" + nats.URL(), "--members-fleet=" + filepath.Base(dir),
			}, nil, t.Output())
			require.NoError(t, err)
			working := *conf
			spoil(conf)
			_, err = assemble(t.Context(), conf, "127.0.0.1:1", openFiles{}, slog.New(slog.DiscardHandler))
			require.Error(t, err)
			wait.Eventually(t, "no connection is open", func() (any, bool) { return nats.Open(), nats.Open() == 0 })
			g, err := assemble(t.Context(), &working, "127.0.0.1:1", openFiles{}, slog.New(slog.DiscardHandler))
			require.NoError(t, err, "the data directory is free")
			require.NoError(t, g.close())
		})
	}
}
