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

// ErrNoHelm is the error of [Helm] if no Helm 4 is installed.
var ErrNoHelm = errors.New("no Helm 4 is installed; run go tool mage helm, which builds it")

// Helm returns the path of the Helm 4 on the PATH. If Helm is missing or has another version, the error wraps
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
