//go:build chart

package chart

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kvbooth/internal/source"
)

// root and helm are of all tests: the module's folder, and Helm with the chart.
var (
	root string
	helm Helm
)

func TestMain(m *testing.M) {
	var err error
	if root, err = source.Root(); err == nil {
		helm, err = FindHelm(context.Background(), root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// served is what clusters with everything in them serve.
var served = []string{
	"gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1beta1", "monitoring.coreos.com/v1",
	"nvidia.com/v1beta1", "nvidia.com/v1beta1/DynamoGraphDeployment",
	"grove.io/v1alpha1",
}

// Every case renders, lints, and has nothing that check finds fault with.
func TestCases(t *testing.T) {
	cases, err := Cases(root)
	require.NoError(t, err)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.Options.APIVersions = served
			objects, text, err := helm.Render(t.Context(), c.Options)
			require.NoError(t, err)
			for _, problem := range check(objects, "kvbooth", c.External, c.Graphs) {
				t.Error(problem)
			}
			printed, err := helm.Run(t.Context(), c.Options, "lint", "--strict")
			require.NoError(t, err, printed)
			t.Logf("%d objects, %d lines", len(objects), strings.Count(text, "\n"))
			if c.Name == "default" {
				require.Less(t, strings.Count(text, "\n"), 1500)
			}
		})
	}
}

// Release and namespace go into names and labels wherever they are needed: two releases share no name.
func TestTwoReleases(t *testing.T) {
	names := map[string]bool{}
	for _, release := range []string{"one", "two"} {
		objects, _, err := helm.Render(t.Context(), Options{
			Release: release, Namespace: "shared", APIVersions: served,
			Set: []string{
				"serving.name=dynamo", "prometheus.create=true", "gateway.enabled=true",
				"gateway.className=x", "gateway.host=" + release + ".example.com", "monitoring.loadgen.enabled=true",
				"monitoring.rules.enabled=true",
			},
		})
		require.NoError(t, err)
		require.Empty(t, check(objects, "shared", nil, []string{"shared/dynamo"}))
		for _, object := range objects {
			key := title(object) + " in " + namespaceOf(object, "shared")
			require.False(t, names[key], "both releases have %s", key)
			names[key] = true
		}
	}
}

// edit changes one object of a rendering: its kind, a part of its name, or the whole name after "=", and the change to
// merge into it. The elements of lists are merged one by one; null removes a field.
type edit struct{ kind, name, change, says string }

func (e edit) is(object *unstructured.Unstructured) bool {
	name, exact := strings.CutPrefix(e.name, "=")
	return object.GetKind() == e.kind && (object.GetName() == name || !exact && strings.Contains(object.GetName(), name))
}

// Each check finds what it is for: one object of a faultless rendering is broken, and the report names the fault.
func TestChecksFindFaults(t *testing.T) {
	cases, err := Cases(root)
	require.NoError(t, err)
	c := cases[slices.IndexFunc(cases, func(c Case) bool { return c.Name == "everything" })]
	c.Options.APIVersions = served
	objects, _, err := helm.Render(t.Context(), c.Options)
	require.NoError(t, err)
	require.Empty(t, check(objects, "kvbooth", c.External, c.Graphs))
	const pod, container = `spec: {template: {spec: {%s}}}`, `spec: {template: {spec: {containers: [{%s}]}}}`
	const component = `spec: {components: [{podTemplate: {spec: {%s}}}]}`
	other := `{app.kubernetes.io/component: other}`
	for _, e := range []edit{
		{"StatefulSet", "loadgen", `spec: {replica: 2}`, `unknown field "spec.replica"`},
		{"StatefulSet", "loadgen", fmt.Sprintf(container, `resources: {limits: {memory: null}}`), "no request of memory"},
		{"StatefulSet", "loadgen", fmt.Sprintf(container, `resources: {requests: {cpu: null}}`), "no request of cpu"},
		{"StatefulSet", "loadgen", fmt.Sprintf(container, `image: "kvbooth/loadgen:latest"`), "has no version"},
		{"StatefulSet", "loadgen", fmt.Sprintf(container, `image: "localhost:5000/loadgen"`), "has no version"},
		{"StatefulSet", "loadgen", fmt.Sprintf(container, `readinessProbe: {httpGet: {port: other}}`), "a probe asks port other"},
		{"StatefulSet", "loadgen", fmt.Sprintf(container, `volumeMounts: [{name: other}]`), "mounts other"},
		{"StatefulSet", "loadgen", fmt.Sprintf(pod, `securityContext: {runAsUser: null}`), "set runAsUser"},
		{"StatefulSet", "loadgen", fmt.Sprintf(pod, `securityContext: {runAsNonRoot: false}`), "runAsNonRoot"},
		{"StatefulSet", "loadgen", fmt.Sprintf(pod, `serviceAccountName: other`), "names ServiceAccount other"},
		{"StatefulSet", "loadgen", fmt.Sprintf(pod, `volumes: [{configMap: {name: other}}]`), "names ConfigMap other"},
		{"StatefulSet", "loadgen", fmt.Sprintf(pod, `imagePullSecrets: [{name: other}]`), "names Secret other"},
		{"StatefulSet", "loadgen", `spec: {template: {metadata: {labels: ` + other + `}}}`, "matches no pod"},
		{"StatefulSet", "loadgen", `spec: {serviceName: other}`, "names Service other"},
		{"Service", "loadgen", `spec: {selector: {app.kubernetes.io/component: null}}`, "selects pods of"},
		{"Service", "loadgen", `spec: {ports: [{targetPort: other}]}`, "leads to port other"},
		{"Service", "loadgen", `metadata: {labels: {app.kubernetes.io/part-of: other}}`, "has not the labels"},
		{"PodDisruptionBudget", "loadgen", `spec: {selector: {matchLabels: ` + other + `}}`, "matches no pod"},
		{"NetworkPolicy", "loadgen", `spec: {ingress: [{ports: [{port: other}]}]}`, "lets in to port other"},
		{"RoleBinding", "loadgen", `roleRef: {name: other}`, "names Role other"},
		{"RoleBinding", "loadgen", `subjects: [{name: other}]`, "names ServiceAccount other"},
		{"ServiceMonitor", "loadgen", `spec: {selector: {matchExpressions: null}}`, "must match one"},
		{"ServiceMonitor", "loadgen", `spec: {endpoints: [{port: other}]}`, `a port "other"`},
		{"ServiceMonitor", "dcgm", `spec: {endpoints: [{honorLabels: true}]}`, "exported_namespace"},
		{"PodMonitor", "worker", `spec: {podMetricsEndpoints: [{port: http}]}`, `no port "http"`},
		{"PodMonitor", "worker", `spec: {namespaceSelector: {matchNames: [other]}}`, "matches no pod"},
		{"HTTPRoute", "=kvbooth", `spec: {rules: [{backendRefs: [{name: other}]}]}`, "names Service other"},
		{"HTTPRoute", "=kvbooth", `spec: {rules: [{backendRefs: [{port: 1}]}]}`, "with port 1"},
		{"HTTPRoute", "=kvbooth", `spec: {parentRefs: [{name: other}]}`, "names Gateway other"},
		{"HTTPRoute", "=kvbooth", `spec: {parentRefs: [{sectionName: other}]}`, "has no listener other"},
		{GraphKind, "", fmt.Sprintf(component, `containers: [{resources: {limits: {cpu: null}}}]`), "no request of cpu"},
		{GraphKind, "", fmt.Sprintf(component, `containers: [{img: x}]`), `unknown field "spec.containers[0].img"`},
	} {
		var broken []*unstructured.Unstructured
		hit := false
		for _, object := range objects {
			object = object.DeepCopy()
			if !hit && e.is(object) {
				hit = true
				var change map[string]any
				require.NoError(t, yaml.Unmarshal([]byte(e.change), &change))
				object.Object = merged(object.Object, change).(map[string]any)
			}
			broken = append(broken, object)
		}
		require.True(t, hit, "there is no %s with %q in its name", e.kind, e.name)
		require.Contains(t, strings.Join(check(broken, "kvbooth", c.External, c.Graphs), "\n"), e.says, "%s %s: %s",
			e.kind, e.name, e.change)
	}
	require.Contains(t, strings.Join(check(append(objects, objects[0]), "kvbooth", c.External, c.Graphs), "\n"),
		"is there twice")
}

// merged merges a change into a value.
func merged(value, change any) any {
	switch change := change.(type) {
	case map[string]any:
		object, _ := value.(map[string]any)
		if object == nil {
			object = map[string]any{}
		}
		for key, c := range change {
			if c == nil {
				delete(object, key)
				continue
			}
			object[key] = merged(object[key], c)
		}
		return object
	case []any:
		list, _ := value.([]any)
		for i, c := range change {
			if i < len(list) {
				list[i] = merged(list[i], c)
			} else {
				list = append(list, c)
			}
		}
		return list
	case float64:
		return int64(change)
	default:
		return change
	}
}
