//go:build unix

package local_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/booth/local/localtest"
	"kvbooth/sidecar/process/processtest"
)

// fakeOptions returns the options of a fake Dynamo on free ports.
func fakeOptions(t *testing.T) local.Options {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	port := processtest.Ports(t, 5) // for the frontend, three workers, and a spare one
	return local.Options{
		Python: filepath.Join(localtest.Venv(t), "bin", "python"), ModelName: "fake", LogDir: t.TempDir(),
		FrontendPort: port, WorkerPort: port + 1, BlockTokens: 32, Blocks: 100, MaxSequences: 4, MaxBatchedTokens: 100,
	}
}

func instances(d *local.Dynamo) (ids []string) {
	for _, w := range d.Workers() {
		ids = append(ids, w.Instance)
	}
	return ids
}

func TestDynamoLifecycle(t *testing.T) {
	o := fakeOptions(t)
	messages := make(chan string, 2)
	o.Suffix, o.Say = "-twin", func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		messages <- text[strings.LastIndexByte(text, '\n')+1:]
	}
	d, err := local.StartDynamo(wait.Context(t), o)
	require.NoError(t, err)
	t.Cleanup(func() { d.Stop(wait.Context(t)) })
	before := instances(d)
	listed, err := d.Instances(wait.Context(t))
	require.NoError(t, err)
	assert.ElementsMatch(t, before, listed, "the frontend lists the three workers by the same ids")

	d.Mockers[1].Process().Kill()
	require.NoError(t, d.Mockers[1].Start(wait.Context(t)))
	after := instances(d)
	assert.Equal(t, before[0], after[0])
	assert.NotEqual(t, before[1], after[1], "the restarted worker has a new instance id")

	url := d.URL()
	d.Frontend.Process().Kill()
	_, err = d.Instances(wait.Context(t))
	require.Error(t, err)
	require.NoError(t, d.Frontend.Start(wait.Context(t)))
	assert.Equal(t, url, d.URL())
	assert.Equal(t, after, instances(d))

	watched, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Watch(watched) }()
	d.Mockers[2].Process().Kill()
	assert.Equal(t, "restarting worker-3-twin in 1s", wait.Receive(t, "the message of a restart", messages))
	assert.Equal(t, "worker-3-twin is running again", wait.Receive(t, "the message after it", messages))
	assert.NotEqual(t, after[2], instances(d)[2])
	end()
	require.NoError(t, wait.Receive(t, "the end of Watch", ended))

	d.Stop(wait.Context(t))
	for _, w := range d.Workers() {
		assert.ErrorIs(t, syscall.Kill(w.PID, 0), syscall.ESRCH, "the process has ended")
	}
	assert.ErrorIs(t, d.Mockers[0].Start(wait.Context(t)), context.Canceled, "nothing can be started")
	assert.FileExists(t, filepath.Join(o.LogDir, "worker-2.log"))
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	assert.Empty(t, left, "temporary files are removed")
}

func TestStartDynamoNamesFailedProcess(t *testing.T) {
	t.Setenv(localtest.Broken, "dynamo.mocker")
	_, err := local.StartDynamo(t.Context(), fakeOptions(t)) // has no deadline: the failed process ends the wait
	require.Error(t, err)
	assert.Regexp(t, `worker-\d is not ready: worker-\d exited before it was ready`, err.Error())
	assert.ErrorContains(t, err, "dynamo.mocker is broken on purpose")
}

func TestStartDynamoRefusesInvalidOptions(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for _, test := range []struct {
		field  string
		change func(*local.Options)
	}{
		{"workers", func(o *local.Options) { o.Workers = -1 }},
		{"workers", func(o *local.Options) { o.Workers = 65 }},
		{"mode", func(o *local.Options) { o.Mode = "round_robin" }},
		{"engine", func(o *local.Options) { o.Engine = "mlx" }},
		{"speedup", func(o *local.Options) { o.Speedup = -1 }},
		{"worker port", func(o *local.Options) { o.WorkerPort = 32_766 }},
		{"frontend port", func(o *local.Options) { o.FrontendPort = taken.Addr().(*net.TCPAddr).Port }},
	} {
		o := fakeOptions(t)
		test.change(&o)
		_, err := local.StartDynamo(wait.Context(t), o)
		var field *api.FieldError
		require.ErrorAs(t, err, &field, test.field)
		assert.Equal(t, test.field, field.Field)
		assert.False(t, strings.HasSuffix(field.Allowed, " "))
	}
}
