//go:build dynamo

package dynamo

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kvbooth/internal/chart"
	"kvbooth/internal/source"
)

// call is a command line and an environment for one of Dynamo's parsers; see testdata/parse.py.
type call struct {
	Name    string            `json:"name"`
	Program string            `json:"program"`
	Env     map[string]string `json:"env"`
	Args    []string          `json:"args"`
}

// understood is a parser's result.
type understood struct {
	Error          string         `json:"error"`
	RouterMode     string         `json:"router_mode"`
	BlockSize      int            `json:"block_size"`
	Events         bool           `json:"events"`
	Metrics        bool           `json:"metrics"`
	Model          string         `json:"model"`
	Served         string         `json:"served"`
	TensorParallel int            `json:"tensor_parallel"`
	MaxTokens      int            `json:"max_tokens"`
	MaxBatch       int            `json:"max_batch"`
	Engine         map[string]any `json:"engine"`
	Speculation    any            `json:"speculation"`
}

func parse(t *testing.T, calls []call) []understood {
	t.Helper()
	in, err := json.Marshal(calls)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), interpreter(t), filepath.Join("testdata", "parse.py"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PYTHONDONTWRITEBYTECODE=1"}
	var problems bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &problems
	out, err := cmd.Output()
	require.NoError(t, err, problems.String())
	var all []understood
	require.NoError(t, json.Unmarshal(out, &all), string(out))
	require.Len(t, all, len(calls))
	return all
}

// graphs are the DynamoGraphDeployments of a rendered chart, and the variants that the load generator can switch to.
type graphs struct {
	byName   map[string]graph
	variants map[string]variant
}

// variant is the workers' configuration with a speculation, in the load generator's format.
type variant struct {
	Args []string
	Env  []struct{ Name, Value string }
}

type graph struct {
	Spec struct {
		BackendFramework string          `json:"backendFramework"`
		Env              []corev1.EnvVar `json:"env"`
		Components       []struct {
			Name        string                 `json:"name"`
			Replicas    int                    `json:"replicas"`
			PodTemplate corev1.PodTemplateSpec `json:"podTemplate"`
		} `json:"components"`
	} `json:"spec"`
}

// calls returns the calls of a graph's frontend and worker.
func (g graph) calls(name string) (all []call) {
	for i, program := range []string{"frontend", g.Spec.BackendFramework} {
		c := g.Spec.Components[i].PodTemplate.Spec.Containers[0]
		all = append(all,
			call{
				Name: name + " " + g.Spec.Components[i].Name, Program: program,
				Env: map[string]string{}, Args: append([]string{}, c.Args...),
			})
		for _, e := range append(append([]corev1.EnvVar{}, g.Spec.Env...), c.Env...) {
			all[i].Env[e.Name] = e.Value
		}
	}
	return all
}

func render(t *testing.T, helm chart.Helm, o chart.Options) graphs {
	t.Helper()
	objects, _, err := helm.Render(t.Context(), o)
	require.NoError(t, err)
	found := graphs{byName: map[string]graph{}}
	for _, object := range objects {
		switch {
		case object.GetKind() == chart.GraphKind:
			var g graph
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &g))
			found.byName[object.GetName()] = g
		case object.GetKind() == "ConfigMap" && object.GetName() == "kvbooth-variants":
			data, _ := object.Object["data"].(map[string]any)
			text, _ := data["variants.yaml"].(string)
			require.NoError(t, yaml.Unmarshal([]byte(text), &found.variants))
		}
	}
	return found
}

// Dynamo's own parsers accept the chart's arguments for every engine and variant, with the intended meaning.
func TestChartArgumentsAreParsedByDynamo(t *testing.T) {
	root, err := source.Root()
	require.NoError(t, err)
	helm, err := chart.FindHelm(t.Context(), root)
	require.NoError(t, err)

	const llama31, llama33 = "Llama-3.1-70B-Instruct-FP8", "Llama-3.3-70B-Instruct-FP8"
	var calls []call
	var checks []func(*testing.T, understood)
	expect := func(c call, check func(*testing.T, understood)) {
		calls, checks = append(calls, c), append(checks, check)
	}
	router := func(mode string) func(*testing.T, understood) {
		return func(t *testing.T, u understood) {
			assert.Equal(t, mode, u.RouterMode)
			assert.Equal(t, 32, u.BlockSize, "the router's block size must be the engine's")
			assert.True(t, u.Events, "the router must use events")
		}
	}
	for _, engine := range []string{"trtllm", "vllm", "sglang"} {
		for _, c := range []struct {
			values            []string
			model             string
			parallel, workers int
			speculations      []string
		}{
			{nil, llama31, 1, 3, nil},
			{[]string{"values-h100-tp2.yaml"}, llama31, 2, 4, nil},
			{[]string{"values-h100-tp4.yaml"}, llama31, 4, 2, nil},
			{[]string{"values-draft.yaml"}, llama31, 1, 3, []string{"draft", "off"}},
			{[]string{"values-h100-tp4.yaml", "values-eagle3.yaml"}, llama33, 4, 2, []string{"draft", "eagle3", "off"}},
		} {
			o := chart.Options{Values: c.values, Set: []string{
				"serving.create=true", "serving.twin.enabled=true", "serving.engine=" + engine,
			}}
			g := render(t, helm, o)
			require.Len(t, g.byName, 2)
			require.Len(t, g.variants, len(c.speculations))
			worker := func(speculation string) func(*testing.T, understood) {
				return func(t *testing.T, u understood) {
					assert.Equal(t, "/models/"+c.model, u.Model)
					assert.Equal(t, "nvidia/"+c.model, u.Served)
					assert.Equal(t, c.parallel, u.TensorParallel)
					assert.Equal(t, 16384, u.MaxTokens)
					assert.Equal(t, 64, u.MaxBatch)
					assert.Equal(t, 32, u.BlockSize)
					assert.True(t, u.Events, "the worker must publish events of its blocks")
					assert.True(t, u.Metrics)
					speculates(t, engine, speculation, u)
				}
			}
			first := "off"
			if len(c.values) > 0 && c.speculations != nil {
				first = map[string]string{llama31: "draft", llama33: "eagle3"}[c.model]
			}
			name := engine + " " + filepath.Join(c.values...)
			for graph, mode := range map[string]string{"kvbooth": "kv", "kvbooth-twin": "round-robin"} {
				require.Equal(t, c.workers, g.byName[graph].Spec.Components[1].Replicas)
				gpus := g.byName[graph].Spec.Components[1].PodTemplate.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
				require.EqualValues(t, c.parallel, gpus.Value(), name)
				all := g.byName[graph].calls(name + " " + graph)
				expect(all[0], router(mode))
				expect(all[1], worker(first))
			}
			for speculation, v := range g.variants {
				require.Contains(t, c.speculations, speculation)
				require.Equal(t, []struct{ Name, Value string }{{"KVBOOTH_SPECULATION", speculation}}, v.Env)
				expect(call{name + " variant " + speculation, engine, map[string]string{}, v.Args}, worker(speculation))
			}
		}
		// What is misspelled is refused here, or the rest would show nothing.
		g := render(t, helm, chart.Options{Set: []string{
			"serving.create=true", "serving.engine=" + engine, "serving.extraArgs[0]=--no-such-flag",
		}})
		expect(g.byName["kvbooth"].calls(engine + " misspelled")[1], nil)
	}
	for i, u := range parse(t, calls) {
		t.Run(calls[i].Name, func(t *testing.T) {
			if checks[i] == nil {
				require.NotEmpty(t, u.Error)
				return
			}
			require.Empty(t, u.Error)
			checks[i](t, u)
		})
	}
	t.Logf("%d command lines", len(calls))
}

// speculates checks the parsed speculation.
func speculates(t *testing.T, engine, speculation string, u understood) {
	t.Helper()
	var want any
	switch engine + " " + speculation {
	case "trtllm off":
		assert.Equal(t, false, u.Engine["disable_overlap_scheduler"])
	case "trtllm draft":
		want = map[string]any{
			"decoding_type": "Draft_Target", "max_draft_len": 5., "speculative_model": "/models/Llama-3.1-8B-Instruct-FP8",
		}
		assert.Equal(t, true, u.Engine["disable_overlap_scheduler"])
	case "trtllm eagle3":
		want = map[string]any{
			"decoding_type": "Eagle3", "max_draft_len": 3., "speculative_model": "/models/EAGLE3-LLaMA3.3-Instruct-70B",
		}
	case "vllm draft":
		want = map[string]any{
			"method": "draft_model", "num_speculative_tokens": 5., "model": "/models/Llama-3.1-8B-Instruct-FP8",
		}
	case "vllm eagle3":
		want = map[string]any{
			"method": "eagle3", "num_speculative_tokens": 3., "model": "/models/EAGLE3-LLaMA3.3-Instruct-70B",
		}
	case "sglang draft":
		want = "STANDALONE"
	case "sglang eagle3":
		want = "EAGLE3"
	}
	if engine == "trtllm" {
		assert.Equal(t, want, u.Engine["speculative_config"])
		assert.Equal(t,
			map[string]any{"dtype": "fp8", "enable_block_reuse": true, "free_gpu_memory_fraction": .9, "tokens_per_block": 32.},
			u.Engine["kv_cache_config"])
		assert.Equal(t, true, u.Engine["enable_chunked_prefill"])
		return
	}
	assert.Equal(t, want, u.Speculation)
}
