// Package chart finds Helm and renders the Helm chart for tests. Rendering needs no cluster.
package chart

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kvbooth/internal/chart/installed"
)

const (
	// Dir is the path of the chart from the module's root.
	Dir = "deploy/chart/kvbooth"

	release = "kvbooth" // default release and namespace
)

// Helm is an installed Helm 4, used with this module's chart.
type Helm struct {
	path, root string
}

// FindHelm returns the Helm 4 on the PATH, or else the one in bin, which mage builds. root is the module's root. The
// error is [installed.ErrNoHelm] if there is none.
func FindHelm(ctx context.Context, root string) (Helm, error) {
	if path, err := installed.Helm(ctx); err == nil {
		return Helm{path, root}, nil
	}
	name := "helm"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	path, err := exec.LookPath(filepath.Join(root, "bin", name))
	if err != nil {
		return Helm{}, installed.ErrNoHelm
	}
	return Helm{path, root}, nil
}

// Options configure a rendering. The zero value uses the chart's defaults, in a cluster without further APIs.
type Options struct {
	Release, Namespace string   // empty means "kvbooth"
	Values             []string // paths of values files, absolute or from the chart's folder; later ones override
	Set                []string // "path=value", as in --set
	APIVersions        []string // APIs besides Kubernetes' own: "group/version" or "group/version/Kind"
}

// Render returns the chart's objects, hooks last, and their YAML. If the chart refuses the values, the error contains
// Helm's message.
func (h Helm) Render(ctx context.Context, o Options) (objects []*unstructured.Unstructured, text string, err error) {
	var more []string
	for _, version := range o.APIVersions {
		more = append(more, "--api-versions="+version)
	}
	text, err = h.Run(ctx, o, "template", more...)
	if err != nil {
		return nil, "", err
	}
	objects, err = Parse(text)
	return objects, text, err
}

// Run runs a Helm command and returns its standard output. It passes the namespace, and the release, the chart and the
// values if the command accepts them. The error contains the standard error.
func (h Helm) Run(ctx context.Context, o Options, command string, more ...string) (string, error) {
	args := append(strings.Fields(command), "--namespace="+cmp.Or(o.Namespace, release))
	if command != "lint" {
		args = append(args, cmp.Or(o.Release, release))
	}
	if slices.Contains([]string{"lint", "template", "upgrade"}, command) {
		args = append(args, h.chart(o)...)
	}
	cmd := exec.CommandContext(ctx, h.path, append(args, more...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("helm %s: %w: %s", command, err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.String(), nil
}

// chart returns the arguments that name the chart and its values.
func (h Helm) chart(o Options) []string {
	dir := filepath.Join(h.root, filepath.FromSlash(Dir))
	args := []string{dir}
	for _, file := range o.Values {
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		args = append(args, "--values="+file)
	}
	for _, set := range o.Set {
		args = append(args, "--set="+set)
	}
	return args
}

// Parse parses YAML documents and omits empty ones.
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
