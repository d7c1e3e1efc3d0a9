// Package browser finds what the tests in a browser need besides a Grafana.
package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// OldestNode is the first major version of Node.js that runs the tests and builds
// the front end.
const OldestNode = 20

// ChromiumVariable names the environment variable that points to a Chromium, where
// it is not found by itself.
const ChromiumVariable = "CHROMIUM_PATH"

// Errors of [FindNode] and [FindChromium].
var (
	ErrNoNode     = errors.New("no Node.js " + strconv.Itoa(OldestNode))
	ErrNoChromium = errors.New("no Chromium")
)

// FindNode gives the path of a Node.js on the PATH. One that is missing or older
// than [OldestNode] gives [ErrNoNode].
func FindNode(ctx context.Context) (string, error) {
	path, err := exec.LookPath("node")
	if err != nil {
		return "", ErrNoNode
	}
	said, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", path, err)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(said)), "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < OldestNode {
		return "", fmt.Errorf("%w: %s is %s", ErrNoNode, path, strings.TrimSpace(string(said)))
	}
	return path, nil
}

// packaged is where Debian's package puts it.
const packaged = "/usr/bin/chromium"

// FindChromium gives the path of a Chromium: the one that [ChromiumVariable] names,
// otherwise Debian's or one on the PATH. Where there is none, it installs Debian's
// package if it may, and says so on out. Otherwise it gives [ErrNoChromium].
func FindChromium(ctx context.Context, out io.Writer) (string, error) {
	if path := os.Getenv(ChromiumVariable); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", ChromiumVariable, err)
		}
		return path, nil
	}
	if path, ok := lookChromium(); ok {
		return path, nil
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Getuid() != 0 {
		return "", ErrNoChromium
	}
	fmt.Fprintln(out, "installing Chromium (about 100 MB)")
	install := exec.CommandContext(ctx, apt, "install", "--yes", "--no-install-recommends", "chromium")
	install.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if said, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: apt-get install chromium: %w: %s", ErrNoChromium, err, last(said))
	}
	if path, ok := lookChromium(); ok {
		return path, nil
	}
	return "", ErrNoChromium
}

func lookChromium() (string, bool) {
	if _, err := os.Stat(packaged); err == nil {
		return packaged, true
	}
	path, err := exec.LookPath("chromium")
	return path, err == nil
}

// last is the last line of what a program said.
func last(said []byte) string {
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	return lines[len(lines)-1]
}
