//go:build chart

package config

import (
	"encoding/base64"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kvbooth/internal/chart"
	"kvbooth/internal/source"
	"kvbooth/sidecar/api"
)

// The load generator accepts the configuration that the Helm chart generates from every values file: arguments,
// environment and files as in its container.
func TestChart(t *testing.T) {
	root, err := source.Root()
	require.NoError(t, err)
	helm, err := chart.FindHelm(t.Context(), root)
	require.NoError(t, err)
	cases, err := chart.Cases(root)
	require.NoError(t, err)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			c.Options.APIVersions = []string{
				"gateway.networking.k8s.io/v1", "monitoring.coreos.com/v1",
				"nvidia.com/v1beta1/DynamoGraphDeployment",
			}
			objects, _, err := helm.Render(t.Context(), c.Options)
			require.NoError(t, err)
			pods, err := chart.Pods(objects, "kvbooth")
			require.NoError(t, err)
			taken := func(owner string, command ...string) (*Config, Command, bool) {
				i := slices.IndexFunc(pods, func(p chart.Pod) bool { return p.Owner == "StatefulSet kvbooth-"+owner })
				if i < 0 {
					return nil, "", false
				}
				files := mounted(t, &pods[i].Template.Spec, objects)
				container := pods[i].Template.Spec.Containers[0]
				var environ []string
				for _, env := range container.Env {
					if env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil {
						env.Value = strings.Repeat("t", 40)
					}
					environ = append(environ, env.Name+"="+env.Value)
				}
				conf, is, err := load(append(command, container.Args...), environ, io.Discard, func(field, name,
					what string,
				) ([]byte, error) {
					if text, ok := files[name]; ok {
						return []byte(text), nil
					}
					return nil, api.Refuse(field, name, what)
				})
				require.NoError(t, err)
				return conf, is, true
			}
			if conf, command, ok := taken("member"); ok {
				require.Equal(t, Joined, command)
				require.NotEmpty(t, conf.Members.Listen)
				require.NotEmpty(t, conf.MetricsToken)
			} else {
				require.NotContains(t, strings.Join(c.Options.Set, " "), "members.replicas")
			}
			conf, command, ok := taken("loadgen", "check")
			if !ok {
				require.Contains(t, c.Name, "members alone")
				return
			}
			require.Equal(t, Check, command)
			require.NotEmpty(t, conf.Target.URL)
			if len(c.Graphs) > 0 || slices.Contains(c.Options.Set, "serving.create=true") {
				require.Equal(t, "kubernetes", conf.Mode.Driver)
				require.NotEmpty(t, conf.Mode.Kubernetes.Name)
			}
			if twin := conf.ForTwin(); twin != nil {
				require.Equal(t, "kvbooth", conf.Prometheus.Graph)
				require.Equal(t, Prometheus{
					URL: conf.Prometheus.URL, Namespace: "kvbooth", Graph: "kvbooth-twin",
					Beside: "kvbooth",
				}, twin.Prometheus)
			}
			offered := slices.ContainsFunc(c.Options.Set, func(set string) bool {
				return strings.HasPrefix(set,
					"serving.variants=")
			})
			if offered || slices.ContainsFunc(c.Options.Values,
				func(file string) bool { return file == "values-draft.yaml" || file == "values-eagle3.yaml" }) {
				require.Contains(t, conf.Mode.Kubernetes.Variants, api.SpeculationDraft)
				require.Contains(t, conf.Mode.Kubernetes.Variants, api.SpeculationOff)
			}
		})
	}
}

// mounted returns the files in a pod's first container. A Secret that the chart does not create has a token for each
// requested key.
func mounted(t *testing.T, pod *corev1.PodSpec, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, mount := range pod.Containers[0].VolumeMounts {
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if i < 0 { // a volume claim of the StatefulSet
			continue
		}
		add := func(kind, name string, items []corev1.KeyToPath) {
			content := content(objects, kind, name)
			for key, text := range content {
				if len(items) == 0 {
					files[path.Join(mount.MountPath, key)] = text
				}
			}
			for _, item := range items {
				text, ok := content[item.Key]
				if !ok && kind == "Secret" {
					text = strings.Repeat("t", 40)
				}
				files[path.Join(mount.MountPath, item.Path)] = text
			}
		}
		v := pod.Volumes[i]
		switch {
		case v.ConfigMap != nil:
			add("ConfigMap", v.ConfigMap.Name, v.ConfigMap.Items)
		case v.Secret != nil:
			add("Secret", v.Secret.SecretName, v.Secret.Items)
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				if s.ConfigMap != nil {
					add("ConfigMap", s.ConfigMap.Name, s.ConfigMap.Items)
				}
				if s.Secret != nil {
					add("Secret", s.Secret.Name, s.Secret.Items)
				}
			}
		}
	}
	return files
}

// content returns the data of an object.
func content(objects []*unstructured.Unstructured, kind, name string) map[string]string {
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			text := map[string]string{}
			data, _ := object.Object["data"].(map[string]any)
			for key, value := range data {
				text[key] = fmt.Sprint(value)
				if decoded, err := base64.StdEncoding.DecodeString(text[key]); err == nil && kind == "Secret" {
					text[key] = string(decoded)
				}
			}
			return text
		}
	}
	return nil
}
