package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	releases "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// answerWithin is how long an API server may take for one answer.
const answerWithin = 30 * time.Second

// connection is a release in a cluster that answers.
type connection struct {
	release
	context string
	host    string // the API server's address
	helm    *action.Configuration
	caps    *common.Capabilities
	objects dynamic.Interface
	mapper  meta.RESTMapper
	warned  *warnings
	cache   string // folder of what the API server said that it serves
}

// connect reads the kubeconfig and asks the API server what it serves.
func connect(c cluster, r release) (*connection, error) {
	cache, err := os.MkdirTemp("", "kvbooth-chart-")
	if err != nil {
		return nil, err
	}
	con := &connection{release: r, context: c.Context, warned: &warnings{}, cache: cache}
	if err := con.open(c); err != nil {
		con.close()
		return nil, err
	}
	return con, nil
}

func (c *connection) close() { _ = os.RemoveAll(c.cache) }

func (c *connection) open(to cluster) error {
	flags := genericclioptions.NewConfigFlags(true)
	flags.Context, flags.Namespace, flags.CacheDir = &to.Context, &c.Namespace, &c.cache
	if to.Kubeconfig != "" {
		if _, err := os.Stat(to.Kubeconfig); err != nil {
			return badf("kubeconfig %s: there is no such file", to.Kubeconfig)
		}
		flags.KubeConfig = &to.Kubeconfig
	}
	flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.QPS, config.Timeout, config.WarningHandler = -1, answerWithin, c.warned
		return config
	}
	raw, err := flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return badf("kubeconfig: %w", err)
	}
	if raw.Contexts[to.Context] == nil {
		return badf("--context: the kubeconfig has no context %q; it has %s", to.Context, orNone(slices.Sorted(maps.Keys(raw.Contexts))))
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return badf("kubeconfig, context %s: %w", to.Context, err)
	}
	c.host = config.Host
	c.helm = newConfiguration()
	if err := c.helm.Init(flags, c.Namespace, os.Getenv("HELM_DRIVER")); err != nil {
		return err
	}
	discovery, err := flags.ToDiscoveryClient()
	if err != nil {
		return err
	}
	version, err := discovery.ServerVersion()
	if err != nil {
		return c.unreachable(err)
	}
	served, err := action.GetVersionSet(discovery)
	if err != nil {
		return c.unreachable(err)
	}
	c.caps = common.DefaultCapabilities.Copy()
	c.caps.APIVersions, c.caps.KubeVersion = served, common.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor}
	if c.mapper, err = flags.ToRESTMapper(); err != nil {
		return err
	}
	c.objects, err = dynamic.NewForConfig(config)
	return err
}

// unreachable says what is wrong with a cluster that does not answer as one does.
func (c *connection) unreachable(err error) error {
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server %s (context %s) does not know the user of this kubeconfig: fetch fresh credentials, then try again", c.host, c.context)
	case clientcmd.IsConfigurationInvalid(err):
		return badf("kubeconfig, context %s: %w", c.context, err)
	default:
		return fmt.Errorf("the API server %s (context %s) does not answer: %w; is the context the right one, and the network or VPN up?", c.host, c.context, err)
	}
}

// current is the newest revision of the release, nil where it is not installed.
func (c *connection) current() (*releases.Release, error) {
	last, err := c.helm.Releases.Last(c.Release)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read release %s in namespace %s: %w", c.Release, c.Namespace, err)
	}
	return asRelease(last)
}

// resource gives the way to an object of the release, whose namespace is filled in where it has one.
func (c *connection) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	mapping, err := c.mapping(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return c.objects.Resource(mapping.Resource), nil
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(c.Namespace)
	}
	return c.objects.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
}

func (c *connection) mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	return c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
}

// needed says for kinds that are no part of Kubernetes who brings them, and what to set where nobody does.
var needed = map[string]string{
	"gateway.networking.k8s.io": "install Gateway API v1.1 or later (kubectl apply --server-side -f https://github.com/kubernetes-sigs/gateway-api/releases/latest/download/standard-install.yaml) first, or set gateway.enabled=false",
	"monitoring.coreos.com":     "install the Prometheus operator (the chart kube-prometheus-stack brings it) first, or switch off loadgen, dynamo, dcgm and rules of monitoring",
	"nvidia.com":                "install NVIDIA Dynamo's operator 1.2 or later (the chart dynamo-platform) first, or set serving.create=false",
}

// missing says which kinds of objects the cluster does not serve.
func (c *connection) missing(made []*unstructured.Unstructured) error {
	said := map[string]bool{}
	for _, object := range made {
		kind := object.GroupVersionKind()
		_, err := c.mapping(kind)
		switch {
		case err == nil:
		case !meta.IsNoMatchError(err):
			return err
		default:
			said[c.explain(kind)] = true
		}
	}
	if len(said) == 0 {
		return nil
	}
	return fmt.Errorf("the Kubernetes cluster lacks resource kinds that these values need:\n  %s", strings.Join(slices.Sorted(maps.Keys(said)), "\n  "))
}

func (c *connection) explain(kind schema.GroupVersionKind) string {
	what := fmt.Sprintf("no kind %s of %s", kind.Kind, kind.GroupVersion())
	if other, err := c.mapper.RESTMappings(kind.GroupKind()); err == nil && len(other) > 0 {
		var versions []string
		for _, mapping := range other {
			versions = append(versions, mapping.GroupVersionKind.Version)
		}
		what += " (it has " + strings.Join(versions, ", ") + ")"
	}
	if advice := needed[kind.Group]; advice != "" {
		return what + ": " + advice
	}
	return what
}

// made is what the values make of the chart in this cluster, templates' look-ups answered; nothing is changed.
func (c *connection) made(ctx context.Context, loaded *chart.Chart, given map[string]any, current *releases.Release) (*releases.Release, error) {
	// First without look-ups: Helm would stop at the first kind that is missing.
	alone, err := render(ctx, loaded, given, c.release, c.caps)
	if err != nil {
		return nil, err
	}
	all, err := objects(alone.Manifest)
	if err != nil {
		return nil, err
	}
	if err := c.missing(all); err != nil {
		return nil, err
	}
	made, err := c.run(ctx, loaded, given, current, false, action.DryRunServer)
	if err != nil {
		return nil, c.inWords(err)
	}
	return made, nil
}

// run installs or upgrades. Helm itself does not wait: apply does, and says what for.
func (c *connection) run(ctx context.Context, loaded *chart.Chart, given map[string]any, current *releases.Release, takeOver bool, dry action.DryRunStrategy) (*releases.Release, error) {
	if current == nil {
		install := action.NewInstall(c.helm)
		install.ReleaseName, install.Namespace, install.CreateNamespace = c.Release, c.Namespace, true
		install.DryRunStrategy, install.WaitStrategy, install.Timeout = dry, noWait, hooksWithin
		made, err := install.RunWithContext(ctx, loaded, given)
		if err != nil {
			return nil, err
		}
		return asRelease(made)
	}
	upgrade := action.NewUpgrade(c.helm)
	upgrade.Namespace, upgrade.ResetValues, upgrade.MaxHistory = c.Namespace, true, historyKept
	upgrade.ServerSideApply, upgrade.ForceConflicts = "true", takeOver
	upgrade.DryRunStrategy, upgrade.WaitStrategy, upgrade.Timeout = dry, noWait, hooksWithin
	made, err := upgrade.RunWithContext(ctx, c.Release, loaded, given)
	if err != nil {
		return nil, err
	}
	return asRelease(made)
}

// inWords explains errors of Helm and of the API server.
func (c *connection) inWords(err error) error {
	switch said := err.Error(); {
	case failed.MatchString(said):
		return badInput{templateError(err)}
	case strings.Contains(said, "invalid ownership metadata"), strings.Contains(said, "cannot be imported into the current release"):
		return fmt.Errorf("an object with this name already exists and is not part of this release: %w", err)
	case strings.Contains(said, "another operation (install/upgrade/rollback) is in progress"):
		return fmt.Errorf("another operation on release %s is in progress or was interrupted: wait, or run helm rollback: %w", c.Release, err)
	case apierrors.IsNotFound(err) && strings.Contains(said, "namespaces "):
		return fmt.Errorf("%w: install the component that uses this namespace first, or disable in the values what goes there", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the user of context %s lacks a right: %w", c.context, err)
	case apierrors.IsConflict(err), strings.Contains(said, "conflict with"):
		return fmt.Errorf("another client has set a field to a different value; use that value, or override it with --take-over (mage: -takeOver): %w", err)
	default:
		return err
	}
}

// namespaceThere says whether the release's namespace exists.
func (c *connection) namespaceThere(ctx context.Context) (bool, error) {
	_, err := c.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(ctx, c.Namespace, metav1.GetOptions{})
	switch {
	case err == nil, apierrors.IsForbidden(err): // one who may not look at namespaces has been given one
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil
	default:
		return false, c.unreachable(err)
	}
}

// warnings keep what API servers warn of, once each. They are safe for concurrent use.
type warnings struct {
	mu   sync.Mutex
	said []string
}

// HandleWarningHeader is called by the client.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code == 299 && text != "" && !slices.Contains(w.said, text) {
		w.said = append(w.said, text)
	}
}

// take gives them, and forgets them.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := w.said
	w.said = nil
	return said
}

func orNone(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}
