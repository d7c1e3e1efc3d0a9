package whatif

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"kvbooth/sidecar/sim/traffic"

	"go.uber.org/goleak"
)

// misbehave is the environment variable that selects the behavior of a process.
const misbehave = "WHATIF_TEST"

// TestMain makes the test binary compute simulations, like the load generator.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Command {
		os.Exit(behave())
	}
	goleak.VerifyTestMain(m)
}

// behave computes like the process of the load generator, at normal priority: beside the tests of other packages, a
// process of the lowest priority may get no core for minutes.
func behave() int {
	switch os.Getenv(misbehave) {
	case "crash":
		panic("the simulated cluster burns")
	case "stands back":
		return Work(os.Stdin, os.Stdout, nil)
	case "silent":
		return 0
	case "hang":
		fmt.Println(`{"point":{"concurrency":20,"mode":"kv","seeds":1,"basis":"simulated","figures":{}}}`)
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent exits
		return 0
	}
	return work(os.Stdin, os.Stdout, repeated)
}

// repeated opens the trace of the tests: single requests of one prompt, ten in a second.
func repeated(json.RawMessage) (*traffic.Timed, error) {
	return &traffic.Timed{Source: single{}, Times: single{}.at, Rate: 10, Speed: 1}, nil
}

type single struct{}

func (single) at(k int64) (time.Duration, bool) { return time.Duration(k) * time.Second / 10, true }

// Conversation implements [traffic.Source].
func (s single) Conversation(k int64) (traffic.Conversation, bool) {
	at, _ := s.at(k)
	prompt := []traffic.Message{{Role: "user", Segments: []traffic.Segment{{ID: 1, Tokens: 640}}}}
	turn := traffic.Turn{Messages: prompt, MaxTokens: 2, Exact: true, Think: -1}
	return traffic.Conversation{At: at, Turns: []traffic.Turn{turn}}, true
}
