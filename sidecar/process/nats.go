package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// NATSVariable names the environment variable with the path of a nats-server.
const NATSVariable = "NATS_SERVER"

// ErrNoNATS means that there is no nats-server on this machine.
var ErrNoNATS = errors.New("nats-server not found: build it with go tool mage build, " +
	"put it next to loadgen or in the PATH, or set " + NATSVariable)

// FindNATS finds a nats-server: the one in [NATSVariable], otherwise the one in a folder, otherwise the one on the
// PATH.
func FindNATS(dir string) (string, error) {
	if path := os.Getenv(NATSVariable); path != "" {
		return path, nil
	}
	if path, err := exec.LookPath(filepath.Join(dir, "nats-server")); err == nil {
		return path, nil
	}
	path, err := exec.LookPath("nats-server")
	if err != nil {
		return "", ErrNoNATS
	}
	return path, nil
}
