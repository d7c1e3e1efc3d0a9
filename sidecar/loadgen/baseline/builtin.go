package baseline

import (
	"bytes"
	"embed"
	"fmt"

	"kvbooth/sidecar/api"
)

//go:embed data/*.csv
var data embed.FS

// RecordedFollowup is what [api.WorkloadShape] names as the asker of follow-ups
// in the recorded runs: one short sentence, the same at every turn.
const RecordedFollowup = "the same short sentence"

// builtin describes the recorded tables; their figures are in data/.
var builtin = []api.Baseline{
	{
		Name:       "h200x3-tp1-llama70b-fp8",
		Title:      "3× H200, Llama 3.1 70B FP8, recorded",
		Deployment: recordedOn("H200", 3, 1),
		Workload:   recordedWorkload("10 Wikipedia articles"),
	},
	{
		Name:       "h100x8-tp2-llama70b-fp8",
		Title:      "8× H100, Llama 3.1 70B FP8, recorded",
		Deployment: recordedOn("H100", 4, 2),
		Workload:   recordedWorkload(""),
	},
}

func recordedOn(gpu string, workers, tensorParallel int) api.Deployment {
	return api.Deployment{
		Engine: "trtllm", Model: "Llama 3.1 70B Instruct FP8", GPU: gpu,
		Workers: workers, TensorParallel: tensorParallel, Speculation: api.SpeculationNotRecorded,
	}
}

func recordedWorkload(corpus string) *api.WorkloadShape {
	return &api.WorkloadShape{
		Turns: api.Range{Min: 5, Max: 5}, MaxTokens: 1024, Corpus: corpus, Followup: RecordedFollowup,
	}
}

// Builtin gives the recorded tables that come with the product. Each call reads
// them anew, so that a caller may change what it got. It panics if an embedded
// table is broken, which a test rules out.
func Builtin() []api.Baseline {
	all := make([]api.Baseline, len(builtin))
	for i, b := range builtin {
		all[i] = readBuiltin(b)
	}
	return all
}

func readBuiltin(b api.Baseline) api.Baseline {
	file, err := data.ReadFile("data/" + b.Name + ".csv")
	if err != nil {
		panic(fmt.Sprintf("baseline: embedded table: %v", err))
	}
	read, err := ReadCSV(bytes.NewReader(file), b.Name)
	if err != nil {
		panic(fmt.Sprintf("baseline: embedded table %s: %v", b.Name, err))
	}
	workload := *b.Workload
	read.Title, read.Kind, read.Deployment, read.Workload = b.Title, KindRecorded, b.Deployment, &workload
	return read
}
