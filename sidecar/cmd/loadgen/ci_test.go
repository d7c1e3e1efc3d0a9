//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"kvbooth/internal/source"
)

// ciCommands returns the command of each file in deploy/ci as a line for a shell.
func ciCommands(t *testing.T) map[string]string {
	t.Helper()
	root, err := source.Root()
	require.NoError(t, err)
	read := func(name string, to any) {
		text, err := os.ReadFile(filepath.Join(root, "deploy", "ci", name))
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, to), name)
	}
	var github struct {
		Jobs map[string]struct{ Steps []struct{ Name, Run string } }
	}
	read("github-actions.yaml", &github)
	steps := github.Jobs["gate"].Steps
	var gitlab map[string]struct{ Script []string }
	read("gitlab-ci.yaml", &gitlab)
	var argo struct {
		Spec struct {
			Templates []struct {
				Container struct{ Command, Args []string }
			}
		}
	}
	read("argo-workflows.yaml", &argo)
	container := argo.Spec.Templates[0].Container
	require.Equal(t, []string{"/loadgen"}, container.Command)
	line := "loadgen '" + strings.Join(container.Args, "' '") + "'"
	line = strings.NewReplacer("'--target-url={{workflow.parameters.target-url}}'", `--target-url "$TARGET_URL"`,
		"/last/", "", "/data/", "").Replace(line)
	return map[string]string{
		"github": steps[len(steps)-2].Run, "gitlab": strings.Join(gitlab["load-test"].Script, "\n"), "argo": line,
	}
}

// The commands of the CI files run as they are, but for their durations: first without a comparison, then against the
// report of that run. Whether a change is found depends on the noise of this machine.
func TestCommandsOfCIFiles(t *testing.T) {
	commands := ciCommands(t)
	bin := t.TempDir()
	executable, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(executable, filepath.Join(bin, "loadgen")))
	for name, line := range commands {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, dir := startTarget(t), t.TempDir()
			line := strings.NewReplacer("30s", "1s", "5m", "2s").Replace(line)
			first := regexp.MustCompile(`'?--(against|fail-if|warmup|output)[= ]\S*`).ReplaceAllString(line, "")
			code, out := shell(t, bin, dir, target.URL, first+" --output last.json --fail-if 'error_rate>1%'")
			require.Equal(t, success, code, out)
			require.FileExists(t, filepath.Join(dir, "last.json"))
			code, out = shell(t, bin, dir, target.URL, line)
			require.Contains(t, []int{success, failed, unmeasured}, code, out)
			require.FileExists(t, filepath.Join(dir, "junit.xml"))
			require.FileExists(t, filepath.Join(dir, "run.json"))
		})
	}
}

// shell runs a command line in a folder with the load generator of these tests.
func shell(t *testing.T, bin, dir, target, line string) (code int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-e", "-c", line)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + bin, "HOME=" + dir, childVariable + "=1", "TARGET_URL=" + target, "LOADGEN_LISTEN=127.0.0.1:0",
		"LOADGEN_DATA_DIR=" + filepath.Join(dir, "data"),
	}
	stdin, err := cmd.StdinPipe() // the load generator ends with it
	require.NoError(t, err)
	defer stdin.Close()
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return exit.ExitCode(), string(out)
	}
	require.NoError(t, err)
	return success, string(out)
}
