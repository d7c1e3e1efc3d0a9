package whatif

import (
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// misbehave, in a worker's environment, says how it is to end.
const misbehave = "WHATIF_TEST"

// The test's own program is the one that computes simulations, as the load generator's
// is.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Command {
		os.Exit(behave())
	}
	goleak.VerifyTestMain(m)
}

// behave computes as the load generator's process does, but not at the lowest priority:
// beside the tests of other packages that gets nothing for minutes.
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
