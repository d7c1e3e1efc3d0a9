//go:build chart

package chart

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
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

// gateway are values with a route from outside.
var gateway = []string{
	"serving.name=booth", "gateway.enabled=true", "gateway.className=x", "gateway.host=booth.example.com",
}

// render returns the objects of the chart with values, where the cluster has everything.
func render(t *testing.T, set ...string) []*unstructured.Unstructured {
	t.Helper()
	objects, _, err := helm.Render(t.Context(), Options{Set: set, APIVersions: served})
	require.NoError(t, err, set)
	return objects
}

// renderCase returns a case of [Cases] and its objects.
func renderCase(t *testing.T, name string) (Case, []*unstructured.Unstructured) {
	t.Helper()
	cases, err := Cases(root)
	require.NoError(t, err)
	c := cases[slices.IndexFunc(cases, func(c Case) bool { return c.Name == name })]
	c.Options.APIVersions = served
	objects, _, err := helm.Render(t.Context(), c.Options)
	require.NoError(t, err)
	return c, objects
}

func find(objects []*unstructured.Unstructured, kind, name, namespace string) *unstructured.Unstructured {
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == kind && o.GetName() == name && namespaceOf(o, "kvbooth") == namespace
	})
	if i < 0 {
		return nil
	}
	return objects[i]
}

func configMap(t *testing.T, objects []*unstructured.Unstructured, name string) map[string]string {
	t.Helper()
	object := find(objects, "ConfigMap", name, "kvbooth")
	require.NotNil(t, object, name)
	data, _, err := unstructured.NestedStringMap(object.Object, "data")
	require.NoError(t, err)
	return data
}

// containerOf returns the first container of an owner's pod.
func containerOf(t *testing.T, objects []*unstructured.Unstructured, owner string) corev1.Container {
	t.Helper()
	pods, err := Pods(objects, "kvbooth")
	require.NoError(t, err)
	i := slices.IndexFunc(pods, func(p Pod) bool { return p.Owner == owner })
	require.GreaterOrEqual(t, i, 0, owner)
	return pods[i].Template.Spec.Containers[0]
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
	c, objects := renderCase(t, "everything")
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

// What the schema or the templates do not allow is refused with its path, at every depth, and with what to do.
func TestRefused(t *testing.T) {
	serving := []string{"serving.create=true"}
	nats := "members.nats.url=nats://nats.dynamo.svc:4222"
	for _, c := range []struct {
		on        []string // the values that are set before
		set, says string   // values with commas between them
	}{
		{nil, "serving.name=", "serving.name"}, // the defaults alone have nothing to put load on
		{nil, "serving.name=booth,gateway.enabled=true", "gateway.host is empty"},

		{gateway, "servng.create=true", "at '': additional properties 'servng'"},
		{gateway, "serving.creat=true", "at '/serving': additional properties 'creat'"},
		{gateway, "serving.worker.resource.x=1", "at '/serving/worker': additional properties 'resource'"},
		{gateway, "loadgen.config.target.ulr=http://x", "at '/loadgen/config/target': additional properties 'ulr'"},
		{gateway, "loadgen.persistence.sise=1Gi", "at '/loadgen/persistence': additional properties 'sise'"},
		{gateway, "serving.engine=llamacpp", "at '/serving/engine': value must be one of 'trtllm', "},
		{gateway, "serving.mode=random", "at '/serving/mode': value must be one of "},
		{gateway, "serving.workers=many", "at '/serving/workers': got string, want integer"},
		{gateway, "serving.tensorParallel=3", "at '/serving/tensorParallel': value must be one of 1, 2, "},
		{gateway, "serving.create=please", "at '/serving/create': got string, want boolean"},
		{gateway, "image=x", "at '/image': got string, want object"},
		{gateway, "gateway.tls.certificateRefs=x", "at '/gateway/tls/certificateRefs': got string, want array"},

		{serving, "serving.dynamo.version=1.1.1", "allowed is 1.2 or later: older operators"},
		{serving, "serving.dynamo.version=newest", "allowed is a version of Dynamo such as 1.6.1"},
		{serving, "serving.speculation=eagle3", "Add -f values-eagle3.yaml"},
		{serving, "serving.variants={draft}", `serving.variants is [draft] without serving.speculation "off"`},
		{serving, "serving.env[0].name=DYN_ROUTER_MODE", "use serving.mode"},
		{serving, "serving.name=a-graph-whose-name-is-longer-than-all-others", "at most 37 characters"},
		{serving, "model.create=true", "model.volume.nfs.path, or model.volume.storageClass, or model.volume.existingClaim"},
		{serving, "serving.worker.image=example.com/engine:latest", "at '/serving/worker/image'"},
		{serving, "serving.workers=0", "at '/serving/workers'"},
		{serving, "model.repo=Llama", "at '/model/repo'"},
		{serving, "serving.engine=vllm,serving.engineOptions.x=1", "its flags go into serving.extraArgs"},
		{serving, "serving.twin.enabled=true,serving.twin.name=kvbooth", "the name of the first graph"},
		{serving, "serving.grove=false,serving.kaiQueue=booth", "need Grove"},
		{serving, "serving.nodes=2", "allowed is a number by which serving.tensorParallel, 1, can be divided"},
		{gateway, "loadgen.secrets.followup=key", "set loadgen.config.followup.url"},
		{gateway, "loadgen.enabled=false,grafana.enabled=false,serving.name=,run.enabled=true", "run has no target"},
		{gateway, "loadgen.secrets.corpus=key", "set loadgen.config.corpus.s3.endpoint and loadgen.config.corpus.s3.bucket"},

		{gateway, "loadgen.config.token_file=/tmp/none", "loadgen.config.token_file is the chart's"},
		{gateway, "loadgen.config.listen=0.0.0.0:1", "loadgen.config.listen is the chart's"},
		{gateway, "loadgen.config.members.count=4", "members are those of the values below members"},
		{gateway, nats, "set members.nats.existingSecret"},
		{gateway, nats + ",members.nats.existingSecret=x", "a token goes through TLS only"},
		{gateway, "members.replicas=2,members.nats.nkeyKey=seed", "the chart's own asks for a token"},
		{gateway, "members.replicas=2,loadgen.enabled=false,grafana.enabled=false", "set members.nats.url"},
		{gateway, "grafana.env.GF_AUTH_ANONYMOUS_ORG_ROLE=Editor", "set grafana.anonymousViewer"},
		{gateway, "grafana.env.GF_AUTH_ANONYMOUS_ENABLED=true", "set grafana.anonymousViewer"},
		{gateway, "grafana.loadgenUrl=http://loadgen.example.com", "set loadgen.token.existingSecret"},
		{
			gateway, "gateway.exposeTarget=true,serving.name=,loadgen.config.target.url=http://x",
			"set serving.name or serving.create",
		},
		{gateway, "gateway.className=", "gateway.parentRef.name"},
		{gateway, "prometheus.create=true,prometheus.url=http://x", "leave out the URL"},
		{gateway, "grafana.existing.enabled=true", "set grafana.enabled to false"},
		{gateway, "loadgen.enabled=false", "Grafana has no load generator"},
		{gateway, "loadgen.secretEnv[0].name=LOADGEN_TOKEN", "at '/loadgen/secretEnv/0/name'"},
		{gateway, "prometheus.image.tag=latest", "at '/prometheus/image/tag'"},
		{gateway, "loadgen.resources.limits.memory=null", "at '/loadgen/resources/limits': missing property 'memory'"},
		{gateway, "grafana.admin.passwordKey=", "at '/grafana/admin/passwordKey'"},
		{gateway, "gateway.tls.certificateRefs[0].namespace=certs", "at '/gateway/tls/certificateRefs/0'"},
		{gateway, "loadgen.files.loadgen\\.yaml=x", "loadgen.files has loadgen.yaml, which is made of loadgen.config"},
		{gateway, "monitoring.dcgm.namespace=", "at '/monitoring/dcgm/namespace'"},
		{gateway, "prometheus.interval=often", "at '/prometheus/interval'"},
		{gateway, "loadgen.goMemLimit=400MB", "at '/loadgen/goMemLimit'"},
		{gateway, "networkPolicy.clientNamespaces={Not A Namespace}", "at '/networkPolicy/clientNamespaces/0'"},
	} {
		_, _, err := helm.Render(t.Context(), Options{Set: append(slices.Clone(c.on), strings.Split(c.set, ",")...)})
		assert.ErrorContains(t, err, c.says, c.set)
	}
	old := []string{"nvidia.com/v1alpha1", "nvidia.com/v1alpha1/DynamoGraphDeployment"}
	_, _, err := helm.Render(t.Context(), Options{Set: serving, APIVersions: old})
	require.ErrorContains(t, err, "as nvidia.com/v1alpha1 only: install Dynamo's platform 1.2 or later")
}
