package process_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/process"
)

// Too little disk or memory is named with what there is.
func TestTooLittleIsNamed(t *testing.T) {
	const petabyte = 1_000_000_000 // in megabytes
	assert.NoError(t, process.CheckMemory(1))
	assert.ErrorContains(t, process.CheckMemory(petabyte), "MB of memory are available, and 1000000000 MB are needed")
	assert.NoError(t, process.CheckRoom(t.TempDir()+"/not/yet", 1))
	assert.ErrorContains(t, process.CheckRoom(t.TempDir(), petabyte), "MB free, and 1000000000 MB are needed")
}
