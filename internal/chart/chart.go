// Package chart finds Helm, and gives tests what the Helm chart makes of values. Rendering needs no cluster.
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
	// Dir is the chart's folder below the module's.
	Dir = "deploy/chart/kvbooth"

	release = "kvbooth" // and namespace, where options name none
)

// Helm is a Helm with this module's chart.
type Helm struct {
	path, root string
}

// FindHelm finds an installed Helm 4, else the one in bin below root, the folder of this module, which mage builds.
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

// Options say what is rendered of the chart. The zero value is the defaults in a cluster with nothing of its own.
type Options struct {
	Release, Namespace string   // both "kvbooth" where they are empty
	Values             []string // values files: below the chart's folder, or absolute; later ones win
	Set                []string // "path=value" each, as --set takes it
	APIVersions        []string // that the cluster serves beside Kubernetes' own, "group/version" or "group/version/Kind"
}

// Render returns the objects that the chart makes, those of hooks at the end, and the text that they are parsed from.
// Where the chart refuses the values, the error has Helm's message.
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

// Run runs one of Helm's commands on the release, the chart and its values, as far as the command takes them, and
// returns what it prints. Where it fails, the error has what it printed as errors.
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

// chart are the arguments for the chart and its values.
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
