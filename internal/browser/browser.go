// Package browser finds the programs that browser tests need besides Grafana.
package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"kvbooth/internal/debian"
)

// OldestNode is the first major version of Node.js that can run the tests and build the front end, from its minor
// version oldestMinor on.
const (
	OldestNode  = 20
	oldestMinor = 19
)

// ChromiumVariable names the environment variable with the path of Chromium, if it is not in a usual place.
const ChromiumVariable = "CHROMIUM_PATH"

// Errors of [FindNode] and [FindChromium].
var (
	ErrNoNode     = fmt.Errorf("no Node.js %d.%d", OldestNode, oldestMinor)
	ErrNoChromium = errors.New("no Chromium")
)

// FindNode returns the path of Node.js on the PATH, or [ErrNoNode] if it is missing or older than [OldestNode].
func FindNode(ctx context.Context) (string, error) {
	path, err := exec.LookPath("node")
	if err != nil {
		return "", ErrNoNode
	}
	output, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", path, err)
	}
	var major, minor int
	_, err = fmt.Sscanf(string(output), "v%d.%d", &major, &minor)
	if err != nil || major < OldestNode || major == OldestNode && minor < oldestMinor {
		return "", fmt.Errorf("%w: %s is %s", ErrNoNode, path, strings.TrimSpace(string(output)))
	}
	return path, nil
}

// FindChromium returns the path of Chromium: that of [ChromiumVariable], otherwise Debian's or one on the PATH.
// Without one, it installs Debian's package if it has the permission, and writes that to out. Otherwise it returns
// [ErrNoChromium].
func FindChromium(ctx context.Context, out io.Writer) (string, error) {
	if path := os.Getenv(ChromiumVariable); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", ChromiumVariable, err)
		}
		return path, nil
	}
	path, err := debian.Find(ctx, "chromium", out)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoChromium, err)
	}
	return path, nil
}
