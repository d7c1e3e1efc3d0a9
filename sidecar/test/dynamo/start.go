//go:build compare || dynamo || grafana

package dynamo

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/test/boothtest"
)

// Model is the name of the model of the mock workers of [Start].
const Model = "meta-llama/Llama-3.1-70B-Instruct"

// Start starts a real Dynamo with three mock workers on free ports of loopback, its frontend on the given port or the
// next free one, and ends it with the test. It installs Dynamo first if necessary. Changes modify the options.
func Start(t *testing.T, frontendPort int, changes ...func(*local.Options)) *local.Dynamo {
	t.Helper()
	cache, err := local.CacheDir()
	require.NoError(t, err)
	python, err := local.InstallDynamo(t.Context(), cache, os.Stderr)
	require.NoError(t, err)
	dir, profile := t.TempDir(), sim.H200()
	require.NoError(t, sim.WriteModel(dir))
	var npz bytes.Buffer
	require.NoError(t, sim.WriteNPZ(&npz, profile))
	path := filepath.Join(dir, "profile.npz")
	require.NoError(t, os.WriteFile(path, npz.Bytes(), 0o600))
	o := local.Options{
		Python: python, ModelDir: dir, ModelName: Model, ProfilePath: path, LogDir: t.TempDir(),
		BlockTokens: profile.KV.BlockTokens, Blocks: profile.KV.Blocks, MaxSequences: profile.MaxSequences,
		MaxBatchedTokens: profile.MaxBatchedTokens,
		FrontendPort:     boothtest.FreePort(t, frontendPort), WorkerPort: frontendPort + 81,
	}
	for _, change := range changes {
		change(&o)
	}
	d, err := local.StartDynamo(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		d.Stop(ctx)
	})
	return d
}
