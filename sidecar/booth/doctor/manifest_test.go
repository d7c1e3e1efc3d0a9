package doctor_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/booth/doctor"
)

// found returns the report on objects, with one line per finding.
func found(t *testing.T, objects string, o doctor.Options) string {
	t.Helper()
	r, err := doctor.Manifest(t.Context(), strings.NewReader(objects), o)
	require.NoError(t, err)
	return text(r)
}

// graph has workers with GPUs, each on some nodes.
func graph(name string, replicas, nodes, gpus int) string {
	return fmt.Sprintf(`
---
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: %s, namespace: dynamo}
spec:
  components:
  - {name: Frontend, type: frontend, podTemplate: {spec: {containers: [{name: main}]}}}
  - name: Worker
    type: worker
    replicas: %d
    multinode: {nodeCount: %d}
    podTemplate: {spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: %d}}}]}}
`, name, replicas, nodes, gpus)
}

func TestManifestCountsGPUs(t *testing.T) {
	const pods = `
---
kind: %s
metadata: {name: %s}
spec: {replicas: %d, template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: "%d"}}}]}}}
`
	report := found(t, "---\n# Source: nothing\n"+graph("booth", 3, 1, 2)+graph("two-nodes", 1, 2, 8)+
		fmt.Sprintf(pods, "Deployment", "one", 1, 1)+fmt.Sprintf(pods, "StatefulSet", "none", 0, 8)+
		"---\n{kind: DynamoGraphDeployment, metadata: {name: broken}}", doctor.Options{})
	assert.Contains(t, report, "ok: 5 objects: 1 Deployment, 3 DynamoGraphDeployment, 1 StatefulSet")
	assert.Contains(t, report, "ok: the pods request 23 GPUs: "+
		"DynamoGraphDeployment booth 6, DynamoGraphDeployment two-nodes 16, Deployment one 1")
	assert.Contains(t, report, "problem: DynamoGraphDeployment broken: ")
	assert.Contains(t, report, "has no component of type frontend")
	assert.Contains(t, found(t, "kind: Service", doctor.Options{}), "ok: the pods request no GPUs")
	for _, bad := range []string{"", "---\n", "a: {", "- a"} {
		_, err := doctor.Manifest(t.Context(), strings.NewReader(bad), doctor.Options{})
		assert.Error(t, err, bad)
	}
}

const notFound = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
	"message": "there is nothing"}`

// apiServer is one with a node of eight GPUs and a graph, "" where it is not there, that answers its dry run.
func apiServer(t *testing.T, graph string, code int, dryRun string) doctor.Options {
	t.Helper()
	answer := func(w http.ResponseWriter, code int, body string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
	const graphs = "/apis/nvidia.com/v1beta1/namespaces/dynamo/dynamographdeployments/booth"
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusNotFound, notFound) })
	for path, body := range map[string]string{
		"/version":                 `{"gitVersion": "v1.36.0"}`,
		"/apis/nvidia.com":         `{"versions": [{"version": "v1beta1"}]}`,
		"/apis/nvidia.com/v1beta1": `{"resources": [{"name": "dynamographdeployments"}]}`,
		"/api/v1/nodes": `{"kind": "NodeList", "apiVersion": "v1", "items": [
			{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a"}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}}]}`,
		"/api/v1/pods":                   `{"kind": "PodList", "apiVersion": "v1", "items": []}`,
		"/api/v1/namespaces/dynamo/pods": `{"kind": "PodList", "apiVersion": "v1", "items": []}`,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, body) })
	}
	mux.HandleFunc(graphs, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPatch:
			assert.Equal(t, "All", r.URL.Query().Get("dryRun"), "nothing is changed")
			answer(w, code, dryRun)
		case graph == "":
			answer(w, http.StatusNotFound, notFound)
		default:
			answer(w, http.StatusOK, graph)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}]
users: [{name: u}]
contexts: [{name: here, context: {cluster: c, user: u}}]
`, server.URL)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return doctor.Options{Kubernetes: true, Kubeconfig: file, Context: "here"}
}

func TestManifestTriesGraphs(t *testing.T) {
	const live = `{"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "metadata": {"name": "booth"},
		"spec": {"a": %d}}`
	const failure = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": %d, "message": %q,
		"details": {"causes": [{"reason": %q}]}}`
	old, changed := fmt.Sprintf(live, 1), fmt.Sprintf(live, 2)
	const name = "DynamoGraphDeployment dynamo/booth"
	for _, c := range []struct {
		name, graph string
		code        int
		dryRun      string
		says        string
	}{
		{"new", "", http.StatusCreated, old, "ok: " + name + " is accepted, and would be created -> "},
		{"the same", old, http.StatusOK, old, "ok: " + name + " is accepted, and would stay as it is -> "},
		{
			"changed", old, http.StatusOK, changed, "warning: " + name + " is accepted, and its specification would change: " +
				"pods are replaced, and what they had cached is lost -> apply it",
		},
		{
			"no namespace", "", http.StatusNotFound, notFound,
			"not checked: " + name + ": there is nothing -> create its namespace first: kubectl create namespace dynamo",
		},
		{
			"refused", old, http.StatusBadRequest, fmt.Sprintf(failure, 400, `unknown field "spec.x"`, ""),
			"problem: " + name + `: unknown field "spec.x" -> change the values`,
		},
		{
			"set by others", old, http.StatusConflict,
			fmt.Sprintf(failure, 409, `conflict with "kvbooth"`, "FieldManagerConflict"),
			"problem: " + name + `: conflict with "kvbooth" -> keep what has been set there ` +
				"(kvbooth is the load generator), or add --force-conflicts",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			report := found(t, graph("booth", 3, 1, 2), apiServer(t, c.graph, c.code, c.dryRun))
			assert.Contains(t, report, c.says)
			assert.Contains(t, report, "ok: 6 GPUs are requested, 8 are free")
		})
	}
	o := apiServer(t, "", http.StatusCreated, old)
	report := found(t, graph("booth", 5, 1, 2), o)
	assert.Contains(t, report, "problem: 10 GPUs are requested, 8 are free: 2 too few")
	o.Context = "there"
	assert.Contains(t, found(t, graph("booth", 3, 1, 2), o), "problem: no credentials for Kubernetes here")
}
