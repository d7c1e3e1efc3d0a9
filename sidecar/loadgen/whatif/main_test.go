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
		os.Exit(work())
	}
	goleak.VerifyTestMain(m)
}

func work() int {
	switch os.Getenv(misbehave) {
	case "crash":
		panic("the simulated cluster burns")
	case "silent":
		return 0
	case "hang":
		fmt.Println(`{"point":{"concurrency":20,"mode":"kv","seeds":1,"basis":"simulated","figures":{}}}`)
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent's end
		return 0
	}
	return Work(os.Stdin, os.Stdout)
}
