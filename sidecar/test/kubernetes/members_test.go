//go:build kubernetes

package kubernetes

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kvbooth/internal/chart"
	"kvbooth/internal/output"
	"kvbooth/internal/source"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/test/boothtest"
)

// What the chart makes works together: the load generator takes its file and a member its arguments, NATS starts with
// its own, and a member joins by token and certificate. One with another token is refused.
func TestMembersMeet(t *testing.T) {
	root, err := source.Root()
	require.NoError(t, err)
	helm, err := chart.FindHelm(t.Context(), root)
	require.NoError(t, err)
	objects, _, err := helm.Render(t.Context(),
		chart.Options{Set: []string{"loadgen.config.target.url=http://127.0.0.1:9", "members.replicas=2"}})
	require.NoError(t, err)
	pods, err := chart.Pods(objects, "kvbooth")
	require.NoError(t, err)
	container := func(owner string) corev1.Container {
		i := slices.IndexFunc(pods, func(p chart.Pod) bool { return strings.HasSuffix(p.Owner, " "+owner) })
		require.GreaterOrEqual(t, i, 0, owner)
		return pods[i].Template.Spec.Containers[0]
	}
	dir := t.TempDir()
	files := func(folder string, content map[string]string) string {
		path := filepath.Join(dir, folder)
		require.NoError(t, os.MkdirAll(path, 0o700))
		for name, text := range content {
			require.NoError(t, os.WriteFile(filepath.Join(path, name), []byte(text), 0o600))
		}
		return path
	}
	nats, coordinator, listens := free(t), free(t), free(t)
	here := strings.NewReplacer(
		"/run/secrets/nats", files("nats", secretOf(t, objects, "kvbooth-nats")),
		"/run/secrets/kvbooth", files("token", secretOf(t, objects, "kvbooth-loadgen-token")),
		"/data", filepath.Join(dir, "data"),
		"kvbooth-nats.kvbooth.svc:4222", "localhost:"+nats, "0.0.0.0:4222", "127.0.0.1:"+nats,
	)
	conf := files("conf", map[string]string{
		"nats.conf": here.Replace(dataOf(t, objects, "ConfigMap", "kvbooth-nats")["nats.conf"]),
		"loadgen.yaml": strings.ReplaceAll(here.Replace(dataOf(t, objects, "ConfigMap",
			"kvbooth-loadgen")["loadgen.yaml"]), "0.0.0.0:8088", "127.0.0.1:"+coordinator),
	})
	member := container("kvbooth-member")
	var args []string
	for _, arg := range member.Args {
		args = append(args, strings.ReplaceAll(here.Replace(arg), "0.0.0.0:8088", "127.0.0.1:"+listens))
	}
	loadgen := filepath.Join(boothtest.Programs(t), "loadgen")
	for _, check := range [][]string{
		{"check", "--config=" + filepath.Join(conf, "loadgen.yaml")},
		append([]string{"check", "--target-url=http://127.0.0.1:9"}, args[1:]...),
	} {
		said, err := exec.CommandContext(t.Context(), loadgen, check...).CombinedOutput()
		require.NoError(t, err, "%s", said)
	}

	server := os.Getenv("NATS_SERVER")
	if server == "" {
		t.Skip("no nats-server")
	}
	launch(t, environment(t, objects, container("kvbooth-nats"), ""), server, "--config="+filepath.Join(conf, "nats.conf"))
	running := launch(t, nil, loadgen, "--config="+filepath.Join(conf, "loadgen.yaml"))
	launch(t, environment(t, objects, member, "kvbooth-member-1"), loadgen, args...)
	wait.Eventually(t, "the member is present", func() (any, bool) {
		return nil, strings.Contains(running.String(), "kvbooth-member-1")
	})

	files("nats", map[string]string{"token": strings.Repeat("x", 40)})
	for i, arg := range args { // the first one still listens
		args[i] = strings.ReplaceAll(arg, "127.0.0.1:"+listens, "127.0.0.1:"+free(t))
	}
	said, err := exec.CommandContext(t.Context(), loadgen, args...).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "rejects")
}

// dataOf is the content of a ConfigMap, or of a Secret as it stands there.
func dataOf(t *testing.T, objects []*unstructured.Unstructured, kind, name string) map[string]string {
	t.Helper()
	i := slices.IndexFunc(objects,
		func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	require.GreaterOrEqual(t, i, 0, "%s %s", kind, name)
	data, _, err := unstructured.NestedStringMap(objects[i].Object, "data")
	require.NoError(t, err)
	return data
}

// secretOf is the content of a Secret.
func secretOf(t *testing.T, objects []*unstructured.Unstructured, name string) map[string]string {
	t.Helper()
	data := dataOf(t, objects, "Secret", name)
	for key, value := range data {
		text, err := base64.StdEncoding.DecodeString(value)
		require.NoError(t, err)
		data[key] = string(text)
	}
	return data
}

// environment is that of a container in a pod of a name.
func environment(t *testing.T, objects []*unstructured.Unstructured, c corev1.Container, pod string) (all []string) {
	t.Helper()
	values := map[string]string{}
	for _, env := range c.Env {
		value := os.Expand(strings.NewReplacer("$(", "${", ")", "}").Replace(env.Value),
			func(name string) string { return values[name] })
		switch from := env.ValueFrom; {
		case from == nil:
		case from.SecretKeyRef != nil:
			value = secretOf(t, objects, from.SecretKeyRef.Name)[from.SecretKeyRef.Key]
		case from.FieldRef != nil:
			require.Equal(t, "metadata.name", from.FieldRef.FieldPath)
			value = pod
		case from.ResourceFieldRef != nil:
			limit := c.Resources.Limits[corev1.ResourceMemory]
			value = fmt.Sprint(limit.Value())
		}
		values[env.Name] = value
		all = append(all, env.Name+"="+value)
	}
	return all
}

// free returns a port without a listener.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// launch starts a program that ends with the test.
func launch(t *testing.T, env []string, path string, args ...string) *output.Buffer {
	t.Helper()
	said := &output.Buffer{}
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), said, said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", path, said)
		}
	})
	return said
}
