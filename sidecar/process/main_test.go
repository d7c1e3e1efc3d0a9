package process_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvbooth/sidecar/process/processtest"
)

func TestMain(m *testing.M) {
	processtest.Main()
	goleak.VerifyTestMain(m)
}

// within gives a context for something that must not take long.
func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

const soon = time.Minute
