package kube

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/source"
	"kvbooth/sidecar/booth/local"
)

// Changed sources and incomplete builds are not found.
func TestFindNeedsCompleteBuildOfSources(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // on other systems, the test's sources have a cache directory of their own
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, "tools", "kube", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("go.mod", "module kube\n\nrequire (\n\tk8s.io/kubernetes v1.99.7\n)\n")
	write("go.sum", "")
	write("cmd/kube/main.go", "package main\n")
	_, err := Find(root)
	require.ErrorIs(t, err, ErrNotBuilt)
	require.ErrorContains(t, err, "v1.99.7")

	cache, err := local.CacheDir()
	require.NoError(t, err)
	before, err := read(root, cache)
	require.NoError(t, err)
	require.Equal(t, []string{"v1.99.7", "1", "99"}, []string{before.version, before.major, before.minor})
	require.NoError(t, os.MkdirAll(before.folder, 0o755))
	require.NoError(t, os.WriteFile(before.program(), nil, 0o600))
	_, err = Find(root)
	require.ErrorIs(t, err, ErrNotBuilt, "an interrupted build must not be found")
	require.NoError(t, os.WriteFile(filepath.Join(before.folder, builtMark), nil, 0o600))
	program, err := Find(root)
	require.NoError(t, err)
	require.Equal(t, before.program(), program)
	var out strings.Builder
	again, err := Build(t.Context(), root, &out)
	require.NoError(t, err)
	require.Equal(t, program, again)
	require.Empty(t, out.String(), "it must not be built twice")

	write("cmd/kube/main.go", "package main // another\n")
	_, err = Find(root)
	require.ErrorIs(t, err, ErrNotBuilt)

	write("go.mod", "module kube\n")
	_, err = Find(root)
	require.ErrorContains(t, err, "requires no k8s.io/kubernetes")
}

// A second build waits for the first one, until its context ends.
func TestLockWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, os.Stderr)
	require.NoError(t, err)
	var out strings.Builder
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = lock(ctx, path, &out)
	require.Error(t, err)
	require.Equal(t, "waiting for another process that is building Kubernetes\n", out.String())
	unlock()
	unlock, err = lock(t.Context(), path, &out)
	require.NoError(t, err)
	unlock()
}

func TestSourcesOfThisModule(t *testing.T) {
	root, err := source.Root()
	require.NoError(t, err)
	s, err := read(root, t.TempDir())
	require.NoError(t, err)
	require.Regexp(t, `^v1\.\d+\.\d+$`, s.version)
}
