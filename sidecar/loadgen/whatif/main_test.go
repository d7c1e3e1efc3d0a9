package whatif

import (
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// misbehave is the variable of a process's environment with its behavior.
const misbehave = "WHATIF_TEST"

// The program of the test computes simulations, as the load generator does.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Command {
		os.Exit(behave())
	}
	goleak.VerifyTestMain(m)
}

// behave computes as the process of the load generator does, at a normal priority: the lowest one gets no core for
// minutes beside the tests of other packages.
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
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent's end
		return 0
	}
	return work(os.Stdin, os.Stdout)
}
