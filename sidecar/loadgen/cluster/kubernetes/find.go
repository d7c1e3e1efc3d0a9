package kubernetes

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"kvbooth/sidecar/api"
)

// Connect returns a client of the API server, by the credentials of [Credentials], and the
// namespace to use where none is given. It makes no call. An invalid kubeconfig gives an
// [api.FieldError].
func Connect(kubeconfig, contextName, namespace string) (dynamic.Interface, string, error) {
	config, namespace, err := Credentials(kubeconfig, contextName, namespace)
	if err != nil {
		return nil, "", err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, "", api.Refuse("mode.kubernetes.kubeconfig", kubeconfig, "a usable API server: "+err.Error())
	}
	return client, namespace, nil
}

// Credentials returns the credentials of a kubeconfig (a path, and a context in it, "" for
// its current context). Without a kubeconfig it uses those of the pod, or else kubectl's.
// Their namespace is used where none is given. An invalid kubeconfig gives an
// [api.FieldError].
func Credentials(kubeconfig, contextName, namespace string) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: contextName})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", api.Refuse("mode.kubernetes.kubeconfig", kubeconfig,
			"a kubeconfig with the context, none in a pod, or one in ~/.kube/config: "+err.Error())
	}
	if namespace == "" {
		if namespace, _, err = loader.Namespace(); err != nil {
			return nil, "", api.Refuse("mode.kubernetes.namespace", namespace,
				"the namespace of the DynamoGraphDeployment: "+err.Error())
		}
	}
	config.UserAgent = "kvbooth"
	config.QPS, config.Burst = 20, 40 // a check makes two calls, twice a second
	return config, namespace, nil
}

// find returns the name of the graph: the configured one, the match of the selector, or the
// name in the target's address.
func (d *Driver) find(ctx context.Context) (string, error) {
	d.mu.Lock()
	name := d.name
	d.mu.Unlock()
	if name != "" {
		return name, nil
	}
	name, err := d.search(ctx)
	if err == nil {
		d.mu.Lock()
		d.name = name
		d.mu.Unlock()
	}
	return name, err
}

func (d *Driver) search(ctx context.Context) (string, error) {
	if d.opts.Selector == "" {
		if name := GraphOf(d.opts.Target); name != "" {
			return name, nil
		}
		return "", api.Require("mode.kubernetes.name",
			fmt.Sprintf("the name of the DynamoGraphDeployment in namespace %s, since target.url is not its service",
				d.opts.Namespace))
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := inVersions(func(version schema.GroupVersionResource) (*unstructured.UnstructuredList, error) {
		return d.client.Resource(version).Namespace(d.opts.Namespace).List(ctx,
			metav1.ListOptions{LabelSelector: d.opts.Selector})
	})
	if err != nil {
		return "", d.explain(err, "list", "")
	}
	names := []string{}
	for _, item := range list.Items {
		names = append(names, item.GetName())
	}
	if len(names) != 1 {
		return "", api.Refuse("mode.kubernetes.selector", d.opts.Selector,
			fmt.Sprintf("labels of exactly one DynamoGraphDeployment in namespace %s; they find %d %v", d.opts.Namespace,
				len(names), names))
	}
	return names[0], nil
}

// GraphOf returns the graph whose frontend's service is the host of an address: NAME-frontend,
// alone or followed by its namespace. It returns "" for another host.
func GraphOf(target string) string {
	u, err := url.Parse(target)
	if err != nil || net.ParseIP(u.Hostname()) != nil {
		return ""
	}
	service, _, _ := strings.Cut(u.Hostname(), ".")
	name, ok := strings.CutSuffix(service, "-frontend")
	if !ok {
		return ""
	}
	return name
}

// ruleFor returns the rule of a Role that allows a call.
func ruleFor(verb, name string) string {
	rule := fmt.Sprintf("{apiGroups: [%s], resources: [%s], verbs: [%s]", Graphs.Group, Graphs.Resource, verb)
	if name != "" {
		rule += fmt.Sprintf(", resourceNames: [%s]", name)
	}
	return rule + "}"
}

const podRule = `{apiGroups: [""], resources: [pods], verbs: [get, list]}`

// explainPods adds the remedy to an error of listing pods.
func (d *Driver) explainPods(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the load generator may not list pods in namespace %s; add this rule to its Role: %s: %w",
			d.opts.Namespace, podRule, err)
	}
	return fmt.Errorf("listing pods: %w", err)
}
