//go:build unix

package local_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/booth/local/localtest"
)

// onPath sets the PATH to a folder with these fake interpreters.
func onPath(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		localtest.Program(t, dir, name)
	}
	t.Setenv("PATH", dir)
	t.Setenv(local.VenvVariable, "")
	return dir
}

func TestFindPythonOnPath(t *testing.T) {
	for _, test := range []struct {
		intent  string
		version string
		lacks   string
		names   []string
		want    string   // name of the interpreter found
		wrong   []string // otherwise, parts of the error
	}{
		{intent: "the system's Python first", names: []string{"python3", "python3.14"}, want: "python3"},
		{intent: "the oldest supported version", version: "3.10.0", names: []string{"python3.10"}, want: "python3.10"},
		{intent: "none", wrong: []string{
			"it needs Python 3.10 or later with the venv module, and there is no python3 in the PATH",
			"apt install python3 python3-venv", local.VenvVariable, "ai-dynamo 1.6.1",
		}},
		{intent: "too old", version: "3.9.21", names: []string{"python3", "python"}, wrong: []string{
			"none of these is suitable: ", "python3 (version 3.9.21 is too old), ", "python (version 3.9.21 is too old)",
		}},
		{intent: "Python 2", version: "2.7.18", names: []string{"python"}, wrong: []string{"version 2.7.18 is too old"}},
		{
			intent: "Debian without python3-venv", lacks: "yes", names: []string{"python3"},
			wrong: []string{"python3 (version 3.12.1 lacks the venv module)"},
		},
	} {
		t.Run(test.intent, func(t *testing.T) {
			dir := onPath(t, test.names...)
			t.Setenv(localtest.Version, test.version)
			t.Setenv(localtest.Lacks, test.lacks)
			path, version, err := local.FindPython(wait.Context(t))
			if test.want != "" {
				require.NoError(t, err)
				assert.Equal(t, filepath.Join(dir, test.want), path)
				assert.True(t, strings.HasPrefix(version, "3."), version)
			}
			for _, words := range test.wrong {
				assert.ErrorContains(t, err, words)
			}
		})
	}
}

func TestInstallDynamoInCache(t *testing.T) {
	onPath(t, "python3")
	cache := filepath.Join(t.TempDir(), "cache")
	var progress bytes.Buffer
	python, err := local.InstallDynamo(wait.Context(t), cache, &progress)
	require.NoError(t, err)
	assert.FileExists(t, python)
	venv := filepath.Dir(filepath.Dir(python))
	assert.Equal(t, cache, filepath.Dir(venv))
	assert.Contains(t, filepath.Base(venv), "dynamo-1.6.1-")
	assert.Contains(t, progress.String(), "installing NVIDIA Dynamo 1.6.1 with Python 3.12.1 in "+venv)
	assert.NoDirExists(t, filepath.Join(venv, "tmp"), "temporary files are removed")

	progress.Reset()
	again, err := local.InstallDynamo(wait.Context(t), cache, &progress)
	require.NoError(t, err)
	assert.Equal(t, python, again)
	assert.Empty(t, progress.String(), "the second call finds it installed")
}

func TestInstallDynamoNamesCause(t *testing.T) {
	onPath(t, "python3")
	t.Setenv(localtest.Broken, "pip")
	_, err := local.InstallDynamo(wait.Context(t), t.TempDir(), &bytes.Buffer{})
	assert.ErrorContains(t, err, "install NVIDIA Dynamo 1.6.1: pip exited: exit status 3")
	assert.ErrorContains(t, err, "fake Python: pip is broken on purpose")
	assert.ErrorContains(t, err, "check that this machine is online")
	assert.ErrorIs(t, err, local.ErrPip)
}

// TestInstallDynamoAfterInterruption cancels an installation while pip runs, as Ctrl-C does, and installs again.
func TestInstallDynamoAfterInterruption(t *testing.T) {
	onPath(t, "python3")
	t.Setenv(localtest.Hangs, "pip")
	cache := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := local.InstallDynamo(ctx, cache, &bytes.Buffer{})
		ended <- err
	}()
	var temp []string
	wait.Eventually(t, "the folder for pip's temporary files exists", func() (any, bool) {
		temp, _ = filepath.Glob(filepath.Join(cache, "dynamo-*", "tmp"))
		return temp, len(temp) == 1
	})
	cancel()
	require.ErrorIs(t, wait.Receive(t, "the installation ends", ended), context.Canceled)
	left := filepath.Join(filepath.Dir(temp[0]), "left")
	require.NoError(t, os.WriteFile(left, nil, 0o600))

	t.Setenv(localtest.Hangs, "")
	_, err := local.InstallDynamo(wait.Context(t), cache, &bytes.Buffer{})
	require.NoError(t, err)
	assert.NoFileExists(t, left)
}

func TestConcurrentInstallDynamoInstallsOnce(t *testing.T) {
	onPath(t, "python3")
	cache := t.TempDir()
	var wg sync.WaitGroup
	var progress [3]bytes.Buffer
	for i := range progress {
		wg.Go(func() {
			_, err := local.InstallDynamo(wait.Context(t), cache, &progress[i])
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	all := progress[0].String() + progress[1].String() + progress[2].String()
	assert.Equal(t, 1, strings.Count(all, "installing NVIDIA Dynamo 1.6.1 with"))
}

func TestVenvVariableReplacesInstallation(t *testing.T) {
	venv := localtest.Venv(t)
	t.Setenv(local.VenvVariable, venv)
	python, err := local.InstallDynamo(wait.Context(t), "/nowhere", &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(venv, "bin", "python"), python)

	t.Setenv(local.VenvVariable, filepath.Join(venv, "missing"))
	_, err = local.InstallDynamo(wait.Context(t), "/nowhere", &bytes.Buffer{})
	missing := filepath.Join(venv, "missing")
	assert.ErrorContains(t, err, local.VenvVariable+": "+missing+" is not a virtual environment")
}

func TestInstallPackageChecksVersion(t *testing.T) {
	onPath(t, "python3")
	cache := t.TempDir()
	var progress bytes.Buffer
	p := local.PythonPackage{Name: "fake", Version: "3.12.1", MB: 7} // version that the fake reports for any package
	python, err := p.Install(wait.Context(t), cache, &progress)
	require.NoError(t, err)
	assert.FileExists(t, python)
	assert.Contains(t, progress.String(), "installing fake 3.12.1 with Python 3.12.1 in "+cache)
	assert.Contains(t, progress.String(), "about 7 MB, once")

	p.Version = "3.13"
	_, err = p.Install(wait.Context(t), cache, &progress)
	assert.ErrorContains(t, err, "has fake 3.12.1, not 3.13")
}
