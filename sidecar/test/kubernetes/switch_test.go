//go:build kubernetes

package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

// longest is how long anything of a switch may take here.
const longest = 2 * time.Minute

// stage is a graph that serves, and a load generator that switches it.
type stage struct {
	plane  *ControlPlane
	name   string
	target string // URL of the frontend
	bin    string
	*api.Client
	address string // of the load generator
	part    *boothtest.Part
}

// newStage makes a graph in the mode round-robin, and waits until it serves.
func newStage(t *testing.T, c *ControlPlane, bin, name string) *stage {
	t.Helper()
	c.Deploy(t, name, "round-robin", time.Second)
	return serving(t, c, bin, name)
}

// serving waits until a graph serves.
func serving(t *testing.T, c *ControlPlane, bin, name string) *stage {
	t.Helper()
	s := &stage{plane: c, name: name, bin: bin, target: c.Frontend(t, name)}
	wait.Within(t, longest, "the graph serves", func() (any, bool) {
		workers, err := cluster.Probe(t.Context(), s.target, nil)
		return nil, err == nil && len(workers) == 3
	})
	return s
}

// check runs loadgen check with the cluster.
func (s *stage) check(t *testing.T, kubeconfig string, more ...string) (said string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(s.bin, "loadgen"),
		append([]string{"check", "--cluster"}, s.flags(kubeconfig, more...)...)...)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// flags are those of every load generator of the stage.
func (s *stage) flags(kubeconfig string, more ...string) []string {
	return append([]string{
		"--target-url=" + s.target, "--mode-driver=kubernetes", "--mode-kubernetes-kubeconfig=" + kubeconfig,
		"--mode-kubernetes-name=" + s.name, "--mode-kubernetes-timeout=1m", "--deployment-kind=simulated",
		"--shadow-enabled=false", "--whatif-cpus=0",
		"--concurrency=60", "--start-rate=100", "--target-rps=0", "--think-time=3s", "--opening-tokens=300",
		"--max-tokens=24", "--output-tokens-mean=8",
	}, more...)
}

// run starts a load generator at a port that it keeps.
func (s *stage) run(t *testing.T, label string, more ...string) {
	t.Helper()
	flags := s.flags(s.plane.Kubeconfig(), append([]string{
		"--listen=" + boothtest.AnyPort, "--data-dir=" + t.TempDir(),
	}, more...)...)
	s.part = &boothtest.Part{
		Prints: boothtest.LoadgenPrints, Ready: "http://" + boothtest.AnyPort + "/healthz",
		Command: process.Command{
			Name: "the load generator " + label, Path: filepath.Join(s.bin, "loadgen"), Args: flags,
			Log: boothtest.Log(t, label),
		},
	}
	s.part.Run(t)
	var err error
	s.address = s.part.URL()
	s.Client, err = api.NewClient(http.DefaultClient, s.address, "")
	require.NoError(t, err)
	s.sees(t, "the mode of the cluster", func(st api.State) bool { return st.Mode == api.ModeRoundRobin })
}

// state is that of the lane.
func (s *stage) state(ctx context.Context) (api.State, error) {
	status, err := s.Status(ctx)
	if err != nil {
		return api.State{}, err
	}
	return status.Lanes[0].State, nil
}

// sees waits for a state.
func (s *stage) sees(t *testing.T, what string, ok func(api.State) bool) api.State {
	t.Helper()
	var last api.State
	wait.Within(t, longest, what, func() (any, bool) {
		now, err := s.state(t.Context())
		if err == nil {
			last = now
		}
		return last, err == nil && ok(now)
	})
	return last
}

// switches asks for a mode, and waits until it is there or given up.
func (s *stage) switches(t *testing.T, to api.ModeState) (end api.State, said []string) {
	t.Helper()
	_, err := s.SetMode(t.Context(), api.DefaultLane, api.ModeRequest{Mode: to.Mode, Speculation: to.Speculation})
	require.NoError(t, err)
	end = s.sees(t, "the end of the change", func(st api.State) bool {
		if c := st.ModeChange; c != nil {
			if now := c.Phase + ": " + c.Message; len(said) == 0 || said[len(said)-1] != now {
				said = append(said, now)
			}
		}
		return st.Phase != api.PhaseSwitching && st.Phase != api.PhaseDraining
	})
	return end, said
}

// object reads the graph.
func (s *stage) object(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(s.plane.kind)
	require.NoError(t, s.plane.client.Get(t.Context(), client.ObjectKey{Namespace: Namespace, Name: s.name}, object))
	return object
}

// serves asks the frontend itself in which mode it routes; "" where it does not answer.
func (s *stage) serves(ctx context.Context) api.Mode {
	var state struct {
		Mode  api.Mode `json:"mode"`
		Ready bool     `json:"ready"`
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.target+"/sim/v1/state", http.NoBody)
	if err != nil {
		return ""
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	if json.NewDecoder(response.Body).Decode(&state) != nil || !state.Ready {
		return ""
	}
	return state.Mode
}

var (
	kvMode         = api.ModeState{Mode: api.ModeKV}
	roundRobinMode = api.ModeState{Mode: api.ModeRoundRobin}
)

// TestDriver holds the driver against a real API server, scheduler and controllers, with an
// operator as Dynamo's was seen to behave.
func TestDriver(t *testing.T) {
	c := Start(t)
	c.Node(t, "gpu-0", 3)
	c.Operator(t)
	bin := boothtest.Programs(t)
	t.Run("twenty switches under load", func(t *testing.T) { testSwitches(t, newStage(t, c, bin, "twenty"), 20) })
	t.Run("killed in mid-switch", func(t *testing.T) { testKilled(t, newStage(t, c, bin, "killed")) })
	t.Run("two load generators, another manager", func(t *testing.T) { testOthers(t, newStage(t, c, bin, "others")) })
	t.Run("too few rights", func(t *testing.T) { testRights(t, newStage(t, c, bin, "rights")) })
	t.Run("Dynamo 0.9's definitions", func(t *testing.T) {
		c := startWith(t, earlierKind)
		c.Node(t, "gpu-0", 3)
		c.Operator(t)
		testSwitches(t, newStage(t, c, bin, "earlier"), 4)
	})
}

// kv to round-robin and back under 60 conversations: no turn fails, and the screen never says
// a mode that the frontend is not in.
func testSwitches(t *testing.T, s *stage, switches int) {
	s.run(t, "loadgen")
	_, err := s.Start(t.Context(), api.DefaultLane, api.StartRequest{})
	require.NoError(t, err)
	stop := s.watch(t)
	began := time.Now()
	for i := range switches {
		to := kvMode
		if i%2 == 1 {
			to = roundRobinMode
		}
		before := s.turns(t, "ok")
		wait.Within(t, longest, "turns between two switches", func() (any, bool) {
			return nil, s.turns(t, "ok") >= before+20
		})
		end, said := s.switches(t, to)
		t.Logf("%s: in %s", time.Now().UTC().Format("05.000"), to.Mode)
		require.Equal(t, to.Mode, end.Mode, "switch %d: %v", i, end.ModeChange)
		assert.Contains(t, strings.Join(said, "\n"), "of 3 workers ready")
	}
	t.Logf("%d switches in %.1f s", switches, time.Since(began).Seconds())
	stop()
	list, err := s.Conversations(t.Context(), api.ConversationQuery{Status: api.ConversationError})
	require.NoError(t, err)
	for _, each := range list.Conversations {
		conversation, err := s.Conversation(t.Context(), each.ID)
		require.NoError(t, err)
		last := conversation.Turns[len(conversation.Turns)-1]
		t.Logf("turn of %s failed at %s: %s %s", last.Mode, last.Started, last.ErrorClass, last.ErrorMessage)
	}
	ok, cancelled, failed := s.turns(t, "ok"), s.turns(t, "cancelled"), s.turns(t, "error")
	assert.Zero(t, failed)
	assert.Positive(t, ok)
	assert.Positive(t, cancelled)
	t.Logf("%.0f turns ended well, %.0f were cancelled by switches, %.0f failed", ok, cancelled, failed)
}

// turns counts the turns that ended in a way since the load generator began.
func (s *stage) turns(t *testing.T, how string) (n float64) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.address+"/metrics", http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	require.NoError(t, err)
	require.Contains(t, families, "loadgen_requests_total")
	for _, m := range families["loadgen_requests_total"].Metric {
		for _, label := range m.Label {
			if label.GetName() == "status" && label.GetValue() == how {
				n += m.Counter.GetValue()
			}
		}
	}
	return n
}

// watch holds the screen against the frontend until stop is called.
func (s *stage) watch(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done, looks := make(chan struct{}), 0
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			before := s.serves(ctx)
			state, err := s.state(ctx)
			after := s.serves(ctx)
			if err != nil || before == "" || after == "" {
				continue
			}
			looks++
			if state.Phase != api.PhaseSwitching && state.Mode != before && state.Mode != after {
				t.Errorf("the screen says %s (%s) while the frontend serves %s", state.Mode, state.Phase, before)
			}
		}
	}()
	return func() {
		cancel()
		<-done
		assert.Greater(t, looks, 20, "looks at screen and frontend")
	}
}

// A load generator that is killed in the middle of a switch goes on with it.
func testKilled(t *testing.T, s *stage) {
	s.run(t, "loadgen")
	_, err := s.SetMode(t.Context(), api.DefaultLane, api.ModeRequest{Mode: api.ModeKV})
	require.NoError(t, err)
	wait.Within(t, longest, "a switch is noted", func() (any, bool) {
		return nil, s.object(t).GetAnnotations()["kvbooth.io/switch"] != ""
	})
	s.part.Kill()
	s.part.Start(t)
	s.sees(t, "the new mode", func(st api.State) bool { return st.Mode == api.ModeKV && st.Phase != api.PhaseSwitching })
	assert.Equal(t, api.ModeKV, s.serves(t.Context()))
	wait.Within(t, longest, "the note is taken off", func() (any, bool) {
		return nil, s.object(t).GetAnnotations()["kvbooth.io/switch"] == ""
	})
	events, err := s.Events(t.Context(), api.DefaultLane, 20)
	require.NoError(t, err)
	assert.Contains(t, fmt.Sprint(events.Events), "Round-robin to KV-aware")
}

// A second load generator waits while the first switches. A mode that another field manager sets is kept and
// reported, with the name of that manager.
func testOthers(t *testing.T, s *stage) {
	s.run(t, "first")
	second := *s
	second.run(t, "second")
	_, err := s.SetMode(t.Context(), api.DefaultLane, api.ModeRequest{Mode: api.ModeKV})
	require.NoError(t, err)
	wait.Within(t, longest, "a switch is noted", func() (any, bool) {
		return nil, s.object(t).GetAnnotations()["kvbooth.io/switch"] != ""
	})
	end, _ := second.switches(t, kvMode)
	require.NotNil(t, end.ModeChange, "the second one's switch")
	assert.Contains(t, end.ModeChange.Message, "switches default/others to KV-aware until")
	s.sees(t, "the first one's switch", func(st api.State) bool { return st.Mode == api.ModeKV })
	second.sees(t, "the second one follows", func(st api.State) bool { return st.Mode == api.ModeKV })

	patch := []byte(`[{"op": "replace", "path": "/spec/env", "value": [{"name": "DYN_ROUTER_MODE", "value": "least-loaded"}]}]`)
	require.NoError(t, s.plane.client.Patch(t.Context(), s.object(t), client.RawPatch(types.JSONPatchType, patch),
		client.FieldOwner("argocd-controller")))
	for _, each := range []*stage{s, &second} {
		each.sees(t, "another manager's mode", func(st api.State) bool { return st.Mode == api.ModeLeastLoaded })
		wait.Eventually(t, "an event that names who changed the mode", func() (any, bool) {
			events, err := each.Events(t.Context(), api.DefaultLane, 20)
			return events.Events, err == nil && strings.Contains(fmt.Sprint(events.Events), "last changed by argocd-controller")
		})
	}
}

// Without the right to patch, the missing rule is reported, before and during a switch.
func testRights(t *testing.T, s *stage) {
	kubeconfig := func(name string, verbs ...string) string {
		return s.plane.KubeconfigFor(t, name,
			rbacv1.PolicyRule{
				APIGroups: []string{"nvidia.com"}, Resources: []string{"dynamographdeployments"},
				ResourceNames: []string{s.name}, Verbs: verbs,
			},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}})
	}
	looks := kubeconfig("looker", "get")
	rule := "{apiGroups: [nvidia.com], resources: [dynamographdeployments], verbs: [patch], resourceNames: [rights]}"
	said, code := s.check(t, looks)
	assert.Equal(t, 2, code, said)
	assert.Contains(t, said, rule)

	s.run(t, "loadgen", "--mode-kubernetes-kubeconfig="+looks)
	end, _ := s.switches(t, kvMode)
	require.NotNil(t, end.ModeChange)
	assert.Contains(t, end.ModeChange.Message, rule)
	assert.Equal(t, api.ModeRoundRobin, end.Mode)

	enough := kubeconfig("switcher", "get", "patch")
	said, code = s.check(t, enough)
	assert.Zero(t, code, said)
	assert.Contains(t, said, "all permissions that a switch needs")
	assert.Contains(t, said, "is rolled out without extra GPUs")
	other := *s
	other.run(t, "enough", "--mode-kubernetes-kubeconfig="+enough)
	end, _ = other.switches(t, kvMode)
	assert.Equal(t, api.ModeKV, end.Mode, "%v", end.ModeChange)
}
