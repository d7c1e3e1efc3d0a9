package process_test

import (
	"testing"

	"go.uber.org/goleak"

	"kvbooth/sidecar/process/processtest"
)

func TestMain(m *testing.M) {
	processtest.Main()
	goleak.VerifyTestMain(m)
}
