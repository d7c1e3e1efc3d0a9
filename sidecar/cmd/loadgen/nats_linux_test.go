package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/process"
)

// A NATS server that has exited is not ready, whether it has left its file behind or the start is canceled at the same
// time.
func TestNATSIsNotReadyAfterItsExit(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx   context.Context
		ports bool
	}{
		"it has listened":     {t.Context(), true},
		"it never listened":   {t.Context(), false},
		"the start is ending": {canceled, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := natsServer{dir: t.TempDir()}
			require.NoError(t, os.Mkdir(s.ports(), 0o700))
			p, err := process.Start(process.Command{
				Name: "server", Path: "/bin/sh", Args: []string{"-c", "exit 3"}, Log: filepath.Join(s.dir, "log"),
			})
			require.NoError(t, err)
			<-p.Done()
			if tt.ports {
				file := filepath.Join(s.ports(), fmt.Sprintf("nats-server_%d.ports", p.PID()))
				require.NoError(t, os.WriteFile(file, nil, 0o600))
			}
			for range 20 { // select chooses at random between two ready cases
				require.Error(t, s.ready(tt.ctx, p))
			}
		})
	}
}
