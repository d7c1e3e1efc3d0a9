// Package kube builds the control plane of tools/kube into the product's cache directory, and finds it there.
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

// ErrNotBuilt is the error of [Find] if there is no control plane of the current sources.
var ErrNotBuilt = errors.New("run go tool mage kube")

const (
	lockPoll  = 500 * time.Millisecond
	builtMark = "built" // file that marks a complete build
)

// release matches the version of Kubernetes in the module's requirements.
var release = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)$`)

// sources identify the sources of a control plane.
type sources struct {
	dir                   string // folder of tools/kube
	version, major, minor string // version of Kubernetes, and its first two numbers
	folder                string // folder of the build in the cache; it depends on the sources
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
	_, err := os.Stat(filepath.Join(s.folder, builtMark))
	return err == nil
}

// sourcesOf returns the sources in a module's root, with their directory in the user's cache.
func sourcesOf(root string) (s sources, err error) {
	cache, err := local.CacheDir()
	if err != nil {
		return s, err
	}
	return read(root, cache)
}

// Find returns the program that was built from the sources in the module's root, or an [ErrNotBuilt].
func Find(root string) (program string, err error) {
	s, err := sourcesOf(root)
	if err != nil {
		return "", err
	}
	if !s.built() {
		return "", fmt.Errorf("%w to build Kubernetes %s", ErrNotBuilt, s.version)
	}
	return s.program(), nil
}

// Build is like Find, but builds the program if necessary: 5 to 12 minutes on two cores, 140 MB. It writes its
// progress to out. If several processes call it, one builds and the others wait. If ctx ends the build, the next one
// continues with Go's build cache.
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
	fmt.Fprintf(out,
		"building Kubernetes %s with etcd and KWOK (once; 5 to 12 minutes on two cores, 140 MB in %s and 3 GB in Go's "+
			"build cache)\n",
		s.version, s.folder)
	if err := os.MkdirAll(s.folder, 0o755); err != nil {
		return "", err
	}
	version := "k8s.io/component-base/version."
	compiler := &suite.Compiler{
		Out: out, Dir: s.dir, Env: []string{"CGO_ENABLED=0"},
		Flags: []string{
			"-trimpath", "-ldflags",
			fmt.Sprintf("-s -w -X %sgitVersion=%s -X %[1]sgitMajor=%s -X %[1]sgitMinor=%s", version, s.version, s.major,
				s.minor),
		},
	}
	err = suite.Together(ctx, out, suite.Step{
		Name: "Kubernetes", Progress: compiler.Progress,
		Run: func(ctx context.Context) error {
			return compiler.BuildAll(ctx, [2]string{s.program(), "./cmd/kube"})
		},
	})
	if err != nil {
		return "", err
	}
	return s.program(), os.WriteFile(filepath.Join(s.folder, builtMark), []byte(s.version+"\n"), 0o644)
}

// lock waits for a lock between processes, and writes to out if it has to wait.
func lock(ctx context.Context, path string, out io.Writer) (unlock func(), err error) {
	for reported := false; ; reported = true {
		unlock, ok, err := process.TryLock(path)
		if err != nil || ok {
			return unlock, err
		}
		if !reported {
			fmt.Fprintln(out, "waiting for another process that is building Kubernetes")
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}
