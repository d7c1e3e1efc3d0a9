package baseline

import (
	"bytes"
	"embed"
	"fmt"

	"kvbooth/sidecar/api"
)

//go:embed data/*.csv
var data embed.FS

// builtin names the recorded tables. All that is known of them is in data/.
var builtin = []string{"h200x3-tp1-llama70b-fp8", "h100x8-tp2-llama70b-fp8"}

// Builtin returns the recorded tables that come with the product. Each call reads them anew, so a caller may change the
// result. It panics if an embedded table is invalid, which a test rules out.
func Builtin() []api.Baseline {
	all := make([]api.Baseline, len(builtin))
	for i, name := range builtin {
		all[i] = readBuiltin(name)
	}
	return all
}

func readBuiltin(name string) api.Baseline {
	file, err := data.ReadFile("data/" + name + ".csv")
	if err != nil {
		panic(fmt.Sprintf("baseline: embedded table: %v", err))
	}
	read, err := ReadCSV(bytes.NewReader(file), name)
	if err != nil {
		panic(fmt.Sprintf("baseline: embedded table %s: %v", name, err))
	}
	read.Kind = KindRecorded
	return read
}
