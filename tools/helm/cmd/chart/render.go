package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	releases "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

type renderCommand struct {
	source
	release
	KubeVersion string   `help:"Version of Kubernetes to render for." placeholder:"v1.33.0"`
	APIVersions []string `name:"api-versions" help:"Additional API versions to assume, such as gateway.networking.k8s.io/v1." placeholder:"GROUP/VERSION"`
	Notes       bool     `help:"Print the release notes instead of the objects."`
}

// Run prints the objects as YAML documents, those of hooks behind the others.
func (c *renderCommand) Run(ctx context.Context, out io.Writer) error {
	loaded, given, err := c.load()
	if err != nil {
		return err
	}
	caps := common.DefaultCapabilities.Copy()
	caps.APIVersions = append(caps.APIVersions, c.APIVersions...)
	if c.KubeVersion != "" {
		version, err := common.ParseKubeVersion(c.KubeVersion)
		if err != nil {
			return badf("--kube-version: %q is no version of Kubernetes: %w", c.KubeVersion, err)
		}
		caps.KubeVersion = *version
	}
	made, err := render(ctx, loaded, given, c.release, caps)
	if err != nil {
		return err
	}
	if c.Notes {
		fmt.Fprint(out, made.Info.Notes)
		return nil
	}
	fmt.Fprint(out, made.Manifest)
	for _, hook := range made.Hooks {
		fmt.Fprintf(out, "---\n# Source: %s\n%s\n", hook.Path, hook.Manifest)
	}
	return nil
}

// render renders without a cluster: templates that look something up find nothing.
func render(ctx context.Context, c *chart.Chart, given map[string]any, r release, caps *common.Capabilities) (*releases.Release, error) {
	install := action.NewInstall(newConfiguration())
	install.DryRunStrategy = action.DryRunClient
	install.ReleaseName, install.Namespace = r.Release, r.Namespace
	install.KubeVersion, install.APIVersions = &caps.KubeVersion, caps.APIVersions
	made, err := install.RunWithContext(ctx, c, given)
	if err != nil {
		return nil, badInput{templateError(err)}
	}
	return asRelease(made)
}

func asRelease(made any) (*releases.Release, error) {
	r, ok := made.(*releases.Release)
	if !ok {
		return nil, fmt.Errorf("helm made a %T, not a release", made)
	}
	return r, nil
}

// failed is how Helm reports that a template calls fail: the place, and what the template says.
var failed = regexp.MustCompile(`(?s)execution error at \(([^)]*)\): (.*)$`)

// templateError leaves of an error what a template says to people, where it does.
func templateError(err error) error {
	if match := failed.FindStringSubmatch(err.Error()); match != nil {
		return errors.New(match[2])
	}
	return err
}

// objects parses YAML documents.
func objects(manifest string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, document := range strings.Split("\n"+manifest, "\n---") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, document)
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
	return all, nil
}

func newConfiguration() *action.Configuration {
	return action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
}

type lintCommand struct {
	source
	release
}

// Run prints what Helm finds, and fails where it is a warning or worse.
func (c *lintCommand) Run(ctx context.Context, out io.Writer) error {
	loaded, given, err := c.load()
	if err != nil {
		return err
	}
	if _, err := render(ctx, loaded, given, c.release, common.DefaultCapabilities.Copy()); err != nil {
		return err
	}
	lint := action.NewLint()
	lint.Strict, lint.Namespace = true, c.Namespace
	result := lint.Run([]string{c.Chart}, given)
	for _, m := range result.Messages {
		if m.Severity > support.InfoSev {
			fmt.Fprintln(out, m)
		}
	}
	if err := errors.Join(result.Errors...); err != nil {
		return badInput{err}
	}
	fmt.Fprintf(out, "%s %s: no problems found\n", loaded.Metadata.Name, loaded.Metadata.Version)
	return nil
}
