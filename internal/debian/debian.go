// Package debian finds programs that tests need from Debian's packages, and installs the packages.
package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrMissing reports that a program is missing and that its package cannot be installed.
var ErrMissing = errors.New("not installed")

// system are the folders of packaged programs. Those of servers are not on every user's PATH.
var system = []string{"/usr/bin", "/usr/sbin"}

// Find returns the path of the program that a package of the same name has: the packaged one, or else one on the PATH.
// Without one, it installs the package if it has the permission, and writes that to out. Otherwise the error is an
// [ErrMissing] that names the command.
func Find(ctx context.Context, name string, out io.Writer) (string, error) {
	if path, ok := look(name); ok {
		return path, nil
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Getuid() != 0 {
		return "", missing(name, errors.New("it needs apt-get and the rights of root"))
	}
	fmt.Fprintf(out, "installing Debian's package %s\n", name)
	install := exec.CommandContext(ctx, apt, "install", "--yes", "--no-install-recommends", name)
	install.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if output, err := install.CombinedOutput(); err != nil {
		return "", missing(name, fmt.Errorf("%w: %s", err, last(output)))
	}
	if path, ok := look(name); ok {
		return path, nil
	}
	return "", missing(name, errors.New("its package has no program of that name"))
}

func missing(name string, cause error) error {
	return fmt.Errorf("%s is %w; run apt-get install %[1]s (%w)", name, ErrMissing, cause)
}

func look(name string) (string, bool) {
	for _, dir := range system {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, true
		}
	}
	path, err := exec.LookPath(name)
	return path, err == nil
}

// last returns the last line of a program's output.
func last(output []byte) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	return lines[len(lines)-1]
}
