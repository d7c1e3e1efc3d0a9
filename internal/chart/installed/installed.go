// Package installed finds an installed Helm. Unlike package chart, it has no dependencies that take long to compile.
package installed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// ErrNoHelm is in the chain of the error where there is no Helm 4.
var ErrNoHelm = errors.New("no Helm 4 is installed; run go tool mage helm, which builds it")

// Helm returns the path of a Helm 4 on the PATH. Where there is none, or another version, the error is an
// [ErrNoHelm].
func Helm(ctx context.Context) (string, error) {
	path, err := exec.LookPath("helm")
	if err != nil {
		return "", ErrNoHelm
	}
	version, err := exec.CommandContext(ctx, path, "version", "--short").Output()
	if err != nil || !strings.HasPrefix(string(version), "v4.") {
		return "", fmt.Errorf("%w; %s is %s", ErrNoHelm, path, bytes.TrimSpace(version))
	}
	return path, nil
}
