//go:build chart

package chart

import (
	"cmp"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// The chart's own Prometheus accepts its configuration and its rules. It scrapes each pod with metrics once, in the
// namespaces that its Roles are for, with the labels that the dashboards use.
func TestPrometheus(t *testing.T) {
	objects := render(t, "serving.create=true", "serving.namespace=dynamo", "serving.twin.enabled=true",
		"prometheus.create=true", "members.replicas=2")
	text := configMap(t, objects, "kvbooth-prometheus")
	promtool(t, text["prometheus.yaml"], "config", "--syntax-only")
	promtool(t, text["rules.yaml"], "rules")
	var conf scrapeConfig
	require.NoError(t, yaml.Unmarshal([]byte(text["prometheus.yaml"]), &conf))

	pods, err := Pods(objects, "kvbooth")
	require.NoError(t, err)
	pods = append(pods, exporter(), Pod{Owner: "another release's", Namespace: "kvbooth", Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			"app.kubernetes.io/part-of": "kvbooth", "app.kubernetes.io/component": "loadgen",
			"app.kubernetes.io/instance": "other",
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "http"}}}}},
	}})
	read := map[string][]string{}
	for _, job := range conf.Jobs {
		for _, rule := range job.Relabel {
			require.NoError(t, rule.Validate(model.UTF8Validation), job.Name)
		}
		for _, discovery := range job.Kubernetes {
			require.False(t, job.HonorLabels, "%s: exported_namespace", job.Name)
			for _, namespace := range discovery.Namespaces.Names {
				require.NotNil(t, find(objects, "Role", "kvbooth-prometheus", namespace), "%s may not look into %s",
					job.Name, namespace)
			}
			for _, pod := range pods {
				if slices.Contains(discovery.Namespaces.Names, pod.Namespace) {
					read[job.Name] = append(read[job.Name], targets(t, job, pod)...)
				}
			}
		}
		want := 2 * time.Second
		if job.Name == "loadgen" {
			want = time.Second
		}
		require.Equal(t, model.Duration(want), cmp.Or(job.Interval, conf.Global.Interval), job.Name)
	}
	require.Equal(t, map[string][]string{
		"loadgen": {"StatefulSet kvbooth-loadgen:8088"},
		"members": {"StatefulSet kvbooth-member:8088"},
		"dynamo-frontend": {
			"DynamoGraphDeployment kvbooth, component Frontend:8000",
			"DynamoGraphDeployment kvbooth-twin, component Frontend:8000",
		},
		"dynamo-worker": {
			"DynamoGraphDeployment kvbooth, component Worker:9090",
			"DynamoGraphDeployment kvbooth-twin, component Worker:9090",
		},
		"dcgm-exporter": {"DaemonSet dcgm-exporter:9400"},
	}, read)
}

// scrapeConfig is what the test reads of prometheus.yaml.
type scrapeConfig struct {
	Global struct {
		Interval model.Duration `yaml:"scrape_interval"`
	} `yaml:"global"`
	Jobs []scrapeJob `yaml:"scrape_configs"`
}

type scrapeJob struct {
	Name        string            `yaml:"job_name"`
	Interval    model.Duration    `yaml:"scrape_interval"`
	HonorLabels bool              `yaml:"honor_labels"`
	Relabel     []*relabel.Config `yaml:"relabel_configs"`
	Kubernetes  []struct {
		Namespaces struct {
			Names []string `yaml:"names"`
		} `yaml:"namespaces"`
	} `yaml:"kubernetes_sd_configs"`
}

// promtool has Prometheus' own checker read a file. Its module has the versions that Prometheus names, unlike
// tools/prometheus, whose raised ones do not compile with it.
func promtool(t *testing.T, content, check string, flags ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), check+".yaml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	args := append([]string{"tool", "-C", filepath.Join(root, "tools", "promtool"), "promtool", "check", check}, flags...)
	printed, err := exec.CommandContext(t.Context(), "go", append(args, path)...).CombinedOutput()
	require.NoError(t, err, string(printed))
}

// exporter is the GPU operator's pod with a DCGM exporter.
func exporter() Pod {
	return Pod{Owner: "DaemonSet dcgm-exporter", Namespace: "gpu-operator", Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "nvidia-dcgm-exporter"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "nvidia-dcgm-exporter", Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9400}}},
		}},
	}}
}

// targets are what a job reads of a pod, as owner:port, once its relabeling has been held against what Prometheus
// discovers of it.
func targets(t *testing.T, job scrapeJob, pod Pod) (all []string) {
	t.Helper()
	for _, container := range pod.Template.Spec.Containers {
		for _, port := range container.Ports {
			found := map[string]string{
				model.AddressLabel:                            "10.0.0.1:" + strconv.Itoa(int(port.ContainerPort)),
				"__meta_kubernetes_namespace":                 pod.Namespace,
				"__meta_kubernetes_pod_name":                  pod.Owner,
				"__meta_kubernetes_pod_phase":                 "Running",
				"__meta_kubernetes_pod_container_name":        container.Name,
				"__meta_kubernetes_pod_container_port_name":   port.Name,
				"__meta_kubernetes_pod_container_port_number": strconv.Itoa(int(port.ContainerPort)),
			}
			for name, value := range pod.Template.Labels {
				found["__meta_kubernetes_pod_label_"+notInLabels.ReplaceAllString(name, "_")] = value
			}
			builder := labels.NewBuilder(labels.FromMap(found))
			if !relabel.ProcessBuilder(builder, job.Relabel...) {
				continue
			}
			require.Equal(t, []string{pod.Namespace, pod.Owner, container.Name},
				[]string{builder.Get("namespace"), builder.Get("pod"), builder.Get("container")}, job.Name)
			all = append(all, pod.Owner+":"+strconv.Itoa(int(port.ContainerPort)))
		}
	}
	return all
}

var notInLabels = regexp.MustCompile(`[^a-zA-Z0-9_]`)

// No request from outside changes anything without a token or a login, whatever the values say.
func TestWayInIsClosed(t *testing.T) {
	for _, viewer := range []string{"true", "false"} {
		objects := render(t, append(slices.Clone(gateway), "grafana.anonymousViewer="+viewer)...)
		env := map[string]string{}
		for _, e := range containerOf(t, objects, "Deployment kvbooth-grafana").Env {
			require.NotContains(t, env, e.Name, "twice")
			env[e.Name] = e.Value
		}
		require.Equal(t, "Viewer", env["GF_AUTH_ANONYMOUS_ORG_ROLE"])
		require.Equal(t, viewer, env["GF_AUTH_ANONYMOUS_ENABLED"])
		require.Equal(t, "http://booth.example.com/grafana/", env["GF_SERVER_ROOT_URL"])
		require.Contains(t, configMap(t, objects, "kvbooth-loadgen")["loadgen.yaml"],
			"token_file: /run/secrets/kvbooth/token")
		secret := find(objects, "Secret", "kvbooth-loadgen-token", "kvbooth")
		require.NotNil(t, secret)
		data, _, err := unstructured.NestedStringMap(secret.Object, "data")
		require.NoError(t, err)
		require.Equal(t, []string{"token"}, slices.Collect(maps.Keys(data)))
	}
}

// The load generator's policy lets it out to what its configuration names and no further: to Services by their
// namespace, whatever the ports of their pods, and elsewhere by the port.
func TestEgress(t *testing.T) {
	for _, c := range []struct {
		set               []string
		namespaces, ports []string
	}{
		{[]string{"loadgen.config.target.url=http://llm:8000"}, []string{"kvbooth"}, nil},
		{[]string{"serving.name=booth", "serving.namespace=dynamo"}, []string{"dynamo"}, []string{"443", "6443"}},
		{[]string{
			"loadgen.config.target.url=http://llm.models.svc.cluster.local",
			"prometheus.url=http://prometheus.monitoring:9090",
		}, []string{"models", "monitoring"}, []string{"9090"}},
		{[]string{
			"loadgen.config.target.url=https://10.0.0.7",
			"loadgen.config.followup.url=http://models.example.com/api",
		}, nil, []string{"443", "80"}},
		{[]string{"loadgen.config.target.url=http://[fd00::7]:8000"}, nil, []string{"8000"}},
		{[]string{
			"loadgen.config.target.url=http://10.0.0.7:8000",
			"loadgen.config.cluster.metrics_urls={no-target,http://10.0.0.8:8123}",
		}, nil, []string{"8000", "8123"}},
		{[]string{
			"loadgen.config.mode.driver=endpoints",
			"loadgen.config.mode.endpoints={kv=http://kv.a.svc:8000,round_robin=http://rr.b.svc:8000}",
			"prometheus.create=true",
		}, []string{"a", "b", "kvbooth"}, nil},
	} {
		namespaces, ports := egress(t, render(t, c.set...), "kvbooth-loadgen")
		require.Equal(t, c.namespaces, namespaces, c.set)
		require.Equal(t, c.ports, ports, c.set)
	}
}

// egress is what a policy lets pods call beside names: namespaces, and ports anywhere.
func egress(t *testing.T, objects []*unstructured.Unstructured, name string) (namespaces, ports []string) {
	t.Helper()
	object := find(objects, "NetworkPolicy", name, "kvbooth")
	require.NotNil(t, object)
	var policy networkingv1.NetworkPolicy
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &policy))
	require.Contains(t, policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
	for i, rule := range policy.Spec.Egress {
		for _, to := range rule.To {
			namespaces = append(namespaces, to.NamespaceSelector.MatchLabels[corev1.LabelMetadataName])
		}
		for _, port := range rule.Ports {
			if i == 0 {
				require.Equal(t, "53", port.Port.String(), "names")
				continue
			}
			ports = append(ports, port.Port.String())
		}
	}
	return namespaces, ports
}
