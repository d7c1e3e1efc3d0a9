// Package chart builds the program of tools/helm, which renders, checks and applies the Helm chart, and gives tests what
// the chart makes of values. Rendering needs no cluster.
package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kvbooth/internal/source"
	"kvbooth/internal/suite"
	"kvbooth/sidecar/booth/local"
)

// Dir is the chart's folder below the module's.
const Dir = "deploy/chart/kvbooth"

// Build gives the program, built from the sources below root, the folder of this module: once, in two minutes at most,
// with the progress on out. Processes that build at the same time do not disturb each other.
func Build(ctx context.Context, root string, out io.Writer) (program string, err error) {
	cache, err := local.CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "tools", "helm")
	name, err := fileName(dir)
	if err != nil {
		return "", err
	}
	program = filepath.Join(cache, name)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	half, err := os.MkdirTemp(cache, "chart-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(half)
	fmt.Fprintln(out, "building the program for the Helm chart, once: two minutes at most")
	compiler := &suite.Compiler{Out: out, Dir: dir, Flags: []string{"-ldflags=-s -w"}}
	built := filepath.Join(half, name)
	err = suite.Together(ctx, out, suite.Step{Name: "chart", Far: compiler.Far, Run: func(ctx context.Context) error {
		return compiler.BuildAll(ctx, [2]string{built, "./cmd/chart"})
	}})
	if err != nil {
		return "", err
	}
	forget(cache, time.Now().Add(-kept))
	return program, os.Rename(built, program)
}

// kept is how long a program of other sources stays: another checkout may use it.
const kept = 24 * time.Hour

// forget removes programs that were built before a moment. One that is in use stays where the system does not let go of it.
func forget(cache string, before time.Time) {
	old, err := filepath.Glob(filepath.Join(cache, "chart-*"))
	if err != nil {
		return
	}
	for _, path := range old {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			_ = os.Remove(path)
		}
	}
}

// fileName is another one for other sources.
func fileName(dir string) (string, error) {
	sum, err := source.Sum(dir)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("chart-%.6x", sum)
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return name, nil
}

// Options say what is rendered of the chart. The zero value is the defaults in a cluster with nothing of its own.
type Options struct {
	Release, Namespace string   // both "kvbooth" where they are empty
	Values             []string // values files: below the chart's folder, or absolute; later ones win
	Set                []string // "path=value" each, as --set takes it
	APIVersions        []string // what the cluster serves beside Kubernetes' own, "group/version" or "group/version/Kind" each
}

// Files are the flags for values files with commas between them: each by its path, or as it is called in the folder of the
// chart below root.
func Files(root, names string) (flags []string) {
	for name := range strings.SplitSeq(names, ",") {
		if _, err := os.Stat(name); err != nil {
			inChart := filepath.Join(root, filepath.FromSlash(Dir), name)
			if _, err := os.Stat(inChart); err == nil {
				name = inChart
			}
		}
		flags = append(flags, "--values="+name)
	}
	return flags
}

// ErrBadInput is that of values which the chart does not allow, and of templates that refuse them.
var ErrBadInput = errors.New("bad input")

// Args are the command line of a subcommand for the options, on the chart below root.
func (o Options) Args(root, command string) []string {
	dir := filepath.Join(root, filepath.FromSlash(Dir))
	args := []string{command, "--chart=" + dir}
	if o.Release != "" {
		args = append(args, "--release="+o.Release)
	}
	if o.Namespace != "" {
		args = append(args, "--namespace="+o.Namespace)
	}
	for _, file := range o.Values {
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		args = append(args, "--values="+file)
	}
	for _, set := range o.Set {
		args = append(args, "--set="+set)
	}
	for _, version := range o.APIVersions {
		args = append(args, "--api-versions="+version)
	}
	return args
}

// Render gives the objects that the chart below root makes, those of hooks at the end, and the text that they are parsed
// from. program is [Build]'s. Where the chart refuses, the error is an [ErrBadInput] with the program's words.
func Render(ctx context.Context, program, root string, o Options) (objects []*unstructured.Unstructured, text string, err error) {
	text, err = Run(ctx, program, o.Args(root, "render")...)
	if err != nil {
		return nil, "", err
	}
	objects, err = Parse(text)
	return objects, text, err
}

// Run runs the program and gives what it prints. Where it ends with another code than 0, what it says is in the error.
func Run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.String(), nil
	case errors.As(err, &exit) && exit.ExitCode() == 2:
		return out.String(), fmt.Errorf("%w: %s", ErrBadInput, bytes.TrimSpace(said.Bytes()))
	default:
		return out.String(), fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
}

// Parse parses YAML documents; empty ones are left out.
func Parse(text string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, document := range strings.Split("\n"+text, "\n---") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, document)
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
	return all, nil
}
