package local_test

import (
	"testing"

	"go.uber.org/goleak"

	"kvbooth/sidecar/booth/local/localtest"
	"kvbooth/sidecar/process/processtest"
)

func TestMain(m *testing.M) {
	processtest.Main()
	localtest.Main()
	goleak.VerifyTestMain(m)
}
