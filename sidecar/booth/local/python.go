package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/process"
)

const oldestPython = 10 // minor version; Dynamo's wheels are for 3.10 and later

// pythons are looked up on the PATH in this order: the system's Python first, then the versions with the most wheels.
var pythons = []string{"python3", "python3.12", "python3.13", "python3.11", "python3.10", "python3.14", "python"}

// probe prints the version first, so that it is known even if a module is missing.
const probe = `import sys; print("%d.%d.%d" % sys.version_info[:3]); sys.stdout.flush(); import ensurepip, venv`

const probeTimeout = 20 * time.Second

// FindPython returns the path and the version of the first suitable Python on the PATH: 3.10 or later, able to make
// virtual environments. If there is none, the error lists the interpreters that were tried with their problems, and how
// to install one. If ctx ends first, the error is that of ctx.
func FindPython(ctx context.Context) (path, version string, err error) {
	var tried []string
	for _, name := range pythons {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		version, err := checkPython(ctx, path)
		if err == nil {
			return path, version, nil
		}
		if ctx.Err() != nil {
			return "", "", ctx.Err()
		}
		tried = append(tried, fmt.Sprintf("%s (%v)", path, err))
	}
	found := "there is no python3 in the PATH"
	if len(tried) > 0 {
		found = "none of these is suitable: " + strings.Join(tried, ", ")
	}
	return "", "", fmt.Errorf("no suitable Python for NVIDIA Dynamo: "+
		`it needs Python 3.%d or later with the venv module, and %s.
Install it, for instance with
  apt install python3 python3-venv   (Debian, Ubuntu)
  dnf install python3                (Fedora, RHEL)
or set %s to a virtual environment that has ai-dynamo %s`, oldestPython, found, VenvVariable, DynamoVersion)
}

// checkPython returns the version of an interpreter, or an error if it is unsuitable.
func checkPython(ctx context.Context, path string) (string, error) {
	out, err := runPython(ctx, path, probe)
	version, _, _ := strings.Cut(string(out), "\n")
	version = strings.TrimSpace(version)
	if version == "" {
		return "", fmt.Errorf("cannot be run: %w", err)
	}
	parts := strings.Split(version, ".")
	minor := 0
	if len(parts) > 1 {
		minor, _ = strconv.Atoi(parts[1])
	}
	if parts[0] != "3" || minor < oldestPython {
		return "", fmt.Errorf("version %s is too old", version)
	}
	if err != nil {
		return "", fmt.Errorf("version %s lacks the venv module", version)
	}
	return version, nil
}

// checkDynamo returns an error if a virtual environment cannot run Dynamo.
func checkDynamo(ctx context.Context, venv string) error {
	out, err := runPython(ctx, venvPython(venv),
		`import importlib.metadata as m; print(m.version("ai-dynamo"), m.version("ai-dynamo-runtime"))`)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is not a virtual environment: %w", venv, err)
	}
	if err != nil {
		return fmt.Errorf("%s has no ai-dynamo with its ai-dynamo-runtime: %w", venv, err)
	}
	if got, want := strings.TrimSpace(string(out)), DynamoVersion+" "+DynamoVersion; got != want {
		return fmt.Errorf("%s has ai-dynamo and ai-dynamo-runtime %s, not %s", venv, got, want)
	}
	return nil
}

func venvPython(venv string) string { return filepath.Join(venv, "bin", "python") }

// runPython runs code and returns its output.
func runPython(ctx context.Context, path, code string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-c", code)
	cmd.Env = childEnv()
	return cmd.Output()
}

// childEnv returns the environment of this process without variables that change the behavior of Python or Dynamo,
// plus the given ones.
func childEnv(more ...string) []string {
	var env []string
	for _, variable := range process.Environment() {
		if !strings.HasPrefix(variable, "PYTHON") && !strings.HasPrefix(variable, "DYN_") {
			env = append(env, variable)
		}
	}
	return append(env, more...)
}
