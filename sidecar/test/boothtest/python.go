package boothtest

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/booth/local"
)

// Interpreter returns the Python of an environment with the package, and skips the test if it cannot be installed.
func Interpreter(t *testing.T, p local.PythonPackage) string {
	t.Helper()
	if _, _, err := local.FindPython(t.Context()); err != nil {
		t.Skipf("skipped: no Python 3.10 or later for %s; install it with apt-get install python3", p.Name)
	}
	cache, err := local.CacheDir()
	require.NoError(t, err)
	python, err := p.Install(t.Context(), cache, os.Stderr)
	if errors.Is(err, local.ErrPip) {
		t.Skipf("skipped: no %s; install it with python3 -m pip install %[1]s==%s where the package index can be "+
			"reached (%v)",
			p.Name, p.Version, err)
	}
	require.NoError(t, err)
	return python
}
