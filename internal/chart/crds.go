package chart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// crdFolders maps the modules of tools/crds to their folders with CustomResourceDefinitions.
var crdFolders = map[string]string{
	"sigs.k8s.io/gateway-api":                            "config/crd/standard",
	"github.com/prometheus-operator/prometheus-operator": "example/prometheus-operator-crd",
	"github.com/ai-dynamo/grove/operator/api":            "core/v1alpha1/crds",
}

// Definitions returns the CustomResourceDefinitions of kinds, from the modules that tools/crds requires. It downloads
// missing modules. A kind without a definition is an error. root is the module's root.
func Definitions(ctx context.Context, root string, kinds ...string) (found []*unstructured.Unstructured, err error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json")
	var errs bytes.Buffer
	cmd.Dir, cmd.Stderr = filepath.Join(root, "tools", "crds"), &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go mod download: %w: %s", err, errs.String())
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var module struct{ Path, Dir string }
		if err := decoder.Decode(&module); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		folder := crdFolders[module.Path]
		if folder == "" {
			continue
		}
		all, err := parseFolder(filepath.Join(module.Dir, filepath.FromSlash(folder)))
		if err != nil {
			return nil, err
		}
		found = append(found, all...)
	}
	found = slices.DeleteFunc(found, func(object *unstructured.Unstructured) bool {
		return !slices.Contains(kinds, definedKind(object))
	})
	for _, kind := range kinds {
		if !slices.ContainsFunc(found, func(object *unstructured.Unstructured) bool { return definedKind(object) == kind }) {
			return nil, fmt.Errorf("no module of tools/crds defines %s", kind)
		}
	}
	return found, nil
}

// definedKind returns the kind that a CustomResourceDefinition defines, or "" for another object.
func definedKind(object *unstructured.Unstructured) string {
	if object.GetKind() != "CustomResourceDefinition" {
		return ""
	}
	kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
	return kind
}

// parseFolder parses the YAML files of a folder.
func parseFolder(dir string) (all []*unstructured.Unstructured, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		objects, err := Parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}
