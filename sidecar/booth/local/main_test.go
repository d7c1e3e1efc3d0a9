package local_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/sidecar/booth/local/localtest"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/process/processtest"
)

func TestMain(m *testing.M) {
	processtest.Main()
	localtest.Main()
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, c process.Command) *process.Process {
	t.Helper()
	p, err := process.Start(c)
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	return p
}

// within gives a context for something that must not take long.
func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

const soon = 20 * time.Second
