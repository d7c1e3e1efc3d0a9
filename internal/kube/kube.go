// Package kube builds the control plane of tools/kube into the product's cache folder, and finds it there.
package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"kvbooth/internal/source"
	"kvbooth/internal/suite"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
)

// ErrNotBuilt is what [Find] gives where there is no control plane of the present sources.
var ErrNotBuilt = errors.New("run go tool mage kube")

const (
	lockPoll = 500 * time.Millisecond
	built    = "built" // the file that says that a build is whole
)

// release is that of Kubernetes in the module's requirements.
var release = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)$`)

// sources are what a control plane is built from.
type sources struct {
	dir                   string // of the module
	version, major, minor string // of Kubernetes
	folder                string // in the cache, another one for other sources
}

// read reads the module tools/kube of the module at root.
func read(root, cache string) (sources, error) {
	s := sources{dir: filepath.Join(root, "tools", "kube")}
	name := filepath.Join(s.dir, "go.mod")
	requirements, err := os.ReadFile(name)
	if err != nil {
		return sources{}, err
	}
	match := release.FindSubmatch(requirements)
	if match == nil {
		return sources{}, fmt.Errorf("%s requires no k8s.io/kubernetes", name)
	}
	s.version, s.major, s.minor = string(match[1]), string(match[2]), string(match[3])
	sum, err := source.Sum(s.dir)
	if err != nil {
		return sources{}, err
	}
	s.folder = filepath.Join(cache, fmt.Sprintf("kube-%s-%.4x", strings.TrimPrefix(s.version, "v"), sum))
	return s, nil
}

func (s sources) program() string { return filepath.Join(s.folder, "kube") }

func (s sources) built() bool {
	_, err := os.Stat(filepath.Join(s.folder, built))
	return err == nil
}

// sourcesOf are those below the folder of this module, with their folder in the user's cache.
func sourcesOf(root string) (s sources, err error) {
	cache, err := local.CacheDir()
	if err != nil {
		return s, err
	}
	return read(root, cache)
}

// Find gives the program that was built from the sources below root, the folder of this module. Where there is none,
// the error is an [ErrNotBuilt].
func Find(root string) (program string, err error) {
	s, err := sourcesOf(root)
	if err != nil {
		return "", err
	}
	if !s.built() {
		return "", fmt.Errorf("%w to build Kubernetes %s into %s", ErrNotBuilt, s.version, s.folder)
	}
	return s.program(), nil
}

// Build gives the same program, and builds it where it is not there yet: 5 to 12 minutes on two cores, 140 MB, with the
// progress on out. Of several processes one builds and the others wait. A build that ctx ends leaves what was compiled
// in Go's own cache, so that the next one goes on from there.
func Build(ctx context.Context, root string, out io.Writer) (program string, err error) {
	s, err := sourcesOf(root)
	if err != nil {
		return "", err
	}
	unlock, err := lock(ctx, s.folder+".lock", out)
	if err != nil {
		return "", err
	}
	defer unlock()
	if s.built() {
		return s.program(), nil
	}
	fmt.Fprintf(out, "building Kubernetes %s with etcd and KWOK (once; 5 to 12 minutes on two cores, 140 MB in %s and 3 GB in Go's build cache)\n", s.version, s.folder)
	if err := os.MkdirAll(s.folder, 0o755); err != nil {
		return "", err
	}
	version := "k8s.io/component-base/version."
	compiler := &suite.Compiler{
		Out: out, Dir: s.dir, Env: []string{"CGO_ENABLED=0"},
		Flags: []string{"-trimpath", "-ldflags", fmt.Sprintf("-s -w -X %sgitVersion=%s -X %[1]sgitMajor=%s -X %[1]sgitMinor=%s", version, s.version, s.major, s.minor)},
	}
	err = suite.Together(ctx, out, suite.Step{Name: "Kubernetes", Far: compiler.Far, Run: func(ctx context.Context) error {
		return compiler.BuildAll(ctx, [2]string{s.program(), "./cmd/kube"})
	}})
	if err != nil {
		return "", err
	}
	return s.program(), os.WriteFile(filepath.Join(s.folder, built), []byte(s.version+"\n"), 0o644)
}

// lock waits for a lock between processes.
func lock(ctx context.Context, path string, out io.Writer) (unlock func(), err error) {
	for said := false; ; said = true {
		unlock, ok, err := process.TryLock(path)
		if err != nil || ok {
			return unlock, err
		}
		if !said {
			fmt.Fprintln(out, "waiting for another process that is building Kubernetes")
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}
