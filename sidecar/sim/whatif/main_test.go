package whatif

import (
	"fmt"
	"io"
	"os"
	"testing"

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
		return Work(os.Stdin, os.Stdout)
	case "silent":
		return 0
	case "hang":
		fmt.Println(`{"point":{"concurrency":20,"mode":"kv","seeds":1,"basis":"simulated","figures":{}}}`)
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent exits
		return 0
	}
	return work(os.Stdin, os.Stdout)
}
