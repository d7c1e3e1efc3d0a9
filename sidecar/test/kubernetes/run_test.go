//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kvbooth/internal/chart"
	"kvbooth/internal/source"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

// The chart's Job runs its command with the rights of its ServiceAccount, and its report is in the ConfigMap then.
// There is no kubelet: the command runs here.
func TestJobLeavesReportInConfigMap(t *testing.T) {
	c := Start(t)
	root, err := source.Root()
	require.NoError(t, err)
	helm, err := chart.FindHelm(t.Context(), root)
	require.NoError(t, err)
	bin := boothtest.Programs(t)
	printed, err := helm.Run(t.Context(), chart.Options{Release: "gate", Namespace: Namespace, Set: []string{
		"loadgen.enabled=false", "grafana.enabled=false", "doctor.enabled=false", "run.enabled=true",
		"run.target=http://" + boothtest.Simulated(t, bin).Frontend, "run.args={--requests=20,--max-tokens=8}",
	}}, "upgrade", "--install", "--kubeconfig="+c.Kubeconfig(), "--kube-context=booth")
	require.NoError(t, err, printed)

	const name = "gate-kvbooth-run"
	var job batchv1.Job
	require.NoError(t, c.Client().Get(t.Context(), client.ObjectKey{Namespace: Namespace, Name: name + "-1"}, &job))
	pod := job.Spec.Template.Spec
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: Namespace, Name: pod.ServiceAccountName,
	}}
	hour := int64(time.Hour / time.Second)
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}
	require.NoError(t, c.Client().SubResource("token").Create(t.Context(), account, token))
	require.NoError(t, c.writeKubeconfig("run.kubeconfig", c.Config().Host, token.Status.Token))

	config := filepath.Join(t.TempDir(), "loadgen.yaml")
	require.NoError(t, os.WriteFile(config, nil, 0o600))
	var args []string
	for _, arg := range pod.Containers[0].Args {
		args = append(args, strings.Replace(arg, "/etc/kvbooth/loadgen.yaml", config, 1))
	}
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "loadgen"), args...)
		cmd.Env = append(process.Environment(), "KUBECONFIG="+c.path("run.kubeconfig"), "LOADGEN_DATA_DIR="+t.TempDir(),
			"LOADGEN_LISTEN="+boothtest.AnyPort)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run(args...)
	require.NoError(t, err, out)
	var reports corev1.ConfigMap
	require.NoError(t, c.Client().Get(t.Context(), client.ObjectKey{Namespace: Namespace, Name: name}, &reports))
	var report struct{ Program string }
	require.NoError(t, json.Unmarshal([]byte(reports.Data["run.json"]), &report))
	assert.Contains(t, report.Program, "KV Booth loadgen ")

	out, err = run(append(args, "--output=configmap:other/run.json")...)
	require.Error(t, err)
	assert.Contains(t, out, `cannot patch resource "configmaps"`)
}
