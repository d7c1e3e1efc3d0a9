package baseline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
)

// attribute is one "# key: value" line of a file.
type attribute struct {
	key     string
	get     func(*api.Baseline) string // empty: not written
	set     func(*api.Baseline, string) bool
	allowed string
}

var attributes = []attribute{
	textAttribute("title", func(b *api.Baseline) *string { return &b.Title }),
	textAttribute("engine", func(b *api.Baseline) *string { return &b.Deployment.Engine }),
	textAttribute("model", func(b *api.Baseline) *string { return &b.Deployment.Model }),
	textAttribute("gpu", func(b *api.Baseline) *string { return &b.Deployment.GPU }),
	countAttribute("workers", func(b *api.Baseline) *int { return &b.Deployment.Workers }),
	countAttribute("tensor_parallel", func(b *api.Baseline) *int { return &b.Deployment.TensorParallel }),
	{"speculation", getSpeculation, setDeploymentSpeculation, oneOf(speculations)},
	textAttribute("dynamo", func(b *api.Baseline) *string { return &b.Deployment.Dynamo }),
	textAttribute("kubernetes", func(b *api.Baseline) *string { return &b.Deployment.Kubernetes }),
	textAttribute("worker_image", func(b *api.Baseline) *string { return &b.Deployment.WorkerImage }),
	textAttribute("serving", func(b *api.Baseline) *string { return &b.Deployment.Serving }),
	countAttribute("block_size", func(b *api.Baseline) *int { return &b.Deployment.BlockSize }),
	countAttribute("max_batch_size", func(b *api.Baseline) *int { return &b.Deployment.MaxBatchSize }),
	countAttribute("max_num_tokens", func(b *api.Baseline) *int { return &b.Deployment.MaxNumTokens }),
	switchAttribute("chunked_prefill", func(b *api.Baseline) **bool { return &b.Deployment.ChunkedPrefill }),
	switchAttribute("overlap_scheduler", func(b *api.Baseline) **bool { return &b.Deployment.OverlapScheduler }),
	textAttribute("kv_cache_dtype", func(b *api.Baseline) *string { return &b.Deployment.KVCacheDtype }),
	{"free_gpu_memory_fraction", getMemoryFraction, setMemoryFraction, "a number above 0, up to 1"},
	{"workload", getWorkload, setWorkload, `JSON such as {"turns":{"min":5,"max":5},"max_tokens":1024}`},
	{runsKey, getRuns, setRuns, `JSON such as [{"file":"sweep.tsv","date":"2026-02-17T12:52:00Z"}]`},
	textAttribute("region", func(b *api.Baseline) *string { return &b.Provenance.Region }),
	textAttribute("interconnect", func(b *api.Baseline) *string { return &b.Provenance.Interconnect }),
	textAttribute("services", func(b *api.Baseline) *string { return &b.Provenance.Services }),
	textAttribute("between_modes", func(b *api.Baseline) *string { return &b.Provenance.BetweenModes }),
}

const runsKey = "runs"

// provenanceKeys are those of the attributes that say where figures come from.
var provenanceKeys = []string{runsKey, "region", "interconnect", "services", "between_modes"}

// path is where an attribute stands in a baseline's JSON.
func (a *attribute) path() string {
	switch {
	case a.key == "title" || a.key == "workload":
		return a.key
	case slices.Contains(provenanceKeys, a.key):
		return "provenance." + a.key
	}
	return "deployment." + a.key
}

// noteKey marks a line of the notes, whatever it looks like.
const noteKey = "note"

func textAttribute(key string, of func(*api.Baseline) *string) attribute {
	return attribute{
		key: key,
		get: func(b *api.Baseline) string { return *of(b) },
		set: func(b *api.Baseline, text string) bool {
			*of(b) = text
			return validateLine(key, text) == nil
		},
		allowed: fmt.Sprintf("one line of at most %d characters", maxText),
	}
}

func countAttribute(key string, of func(*api.Baseline) *int) attribute {
	return attribute{
		key: key,
		get: func(b *api.Baseline) string {
			if *of(b) == 0 {
				return ""
			}
			return strconv.Itoa(*of(b))
		},
		set:     func(b *api.Baseline, text string) bool { return setWhole(of(b), text, 1, maxSetting) },
		allowed: wholeAllowed(1, maxSetting),
	}
}

func switchAttribute(key string, of func(*api.Baseline) **bool) attribute {
	return attribute{
		key: key,
		get: func(b *api.Baseline) string {
			if v := *of(b); v != nil {
				return strconv.FormatBool(*v)
			}
			return ""
		},
		set: func(b *api.Baseline, text string) bool {
			*of(b) = new(text == "true")
			return text == "true" || text == "false"
		},
		allowed: "true or false",
	}
}

func getMemoryFraction(b *api.Baseline) string {
	if b.Deployment.FreeGPUMemoryFraction == 0 {
		return ""
	}
	return formatShifted(b.Deployment.FreeGPUMemoryFraction, 0)
}

func setMemoryFraction(b *api.Baseline, text string) bool {
	v, err := parseShifted(text, 0)
	b.Deployment.FreeGPUMemoryFraction = v
	return err == nil && v > 0 && v <= 1
}

func getSpeculation(b *api.Baseline) string { return string(b.Deployment.Speculation) }

func setDeploymentSpeculation(b *api.Baseline, text string) bool {
	b.Deployment.Speculation = api.Speculation(text)
	return slices.Contains(speculations, b.Deployment.Speculation)
}

func getWorkload(b *api.Baseline) string {
	if b.Workload == nil {
		return ""
	}
	text, _ := json.Marshal(b.Workload) // cannot fail: Validate refused infinities and NaN
	return string(text)
}

func setWorkload(b *api.Baseline, text string) bool {
	b.Workload = new(api.WorkloadShape)
	return decodeStrictly([]byte(text), b.Workload) == nil && validateWorkload(*b.Workload) == nil
}

func getRuns(b *api.Baseline) string {
	if len(b.Provenance.Runs) == 0 {
		return ""
	}
	text, _ := json.Marshal(b.Provenance.Runs) // cannot fail: Validate refused times without an RFC 3339 form
	return string(text)
}

func setRuns(b *api.Baseline, text string) bool {
	return decodeStrictly([]byte(text), &b.Provenance.Runs) == nil && validateRuns(b.Provenance.Runs) == nil
}

// readMetadata reads the comment lines in front of the header.
func readMetadata(text []byte, b *api.Baseline) error {
	var notes []string
	seen := make(map[string]bool)
	line := 0
	for raw := range strings.Lines(string(text)) {
		line++
		comment, isComment := strings.CutPrefix(strings.TrimRight(raw, "\r\n"), "#")
		if !isComment && strings.TrimSpace(raw) != "" {
			break
		}
		key, value, a := splitComment(comment)
		if a == nil {
			notes = append(notes, value)
			continue
		}
		if seen[key] || !a.set(b, value) {
			return api.Refuse(fmt.Sprintf("line %d, %s", line, key), quote(value), a.allowed+", once")
		}
		seen[key] = true
	}
	b.Notes = strings.Trim(strings.Join(notes, "\n"), "\n")
	return nil
}

// splitComment gives the attribute that a comment sets, or nil and its text.
func splitComment(comment string) (key, value string, a *attribute) {
	key, value, _ = strings.Cut(comment, ":")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if key == noteKey {
		return key, value, nil
	}
	at := slices.IndexFunc(attributes, func(a attribute) bool { return a.key == key })
	if at < 0 {
		return "", strings.TrimSpace(comment), nil
	}
	return key, value, &attributes[at]
}
