package suite

import (
	"context"
	"fmt"
	"io"

	"kvbooth/internal/source"
)

// FuzzTarget is one fuzz test.
type FuzzTarget struct{ Package, Name string }

// FuzzTargets finds the fuzz tests of the module at root.
func FuzzTargets(root string) ([]FuzzTarget, error) {
	files, err := source.Files(root)
	if err != nil {
		return nil, err
	}
	var targets []FuzzTarget
	for _, f := range files {
		if !f.Test {
			continue
		}
		for _, name := range f.Functions("Fuzz") {
			targets = append(targets, FuzzTarget{"./" + f.Dir(), name})
		}
	}
	return targets, nil
}

// Fuzz runs every fuzz test with the given number of inputs. All run, also after
// one has failed; a failure leaves its input in testdata/fuzz. It is no span of
// time, because go test reports the end of a span as a failure ("context
// deadline exceeded") when it falls into the start of an input
// (https://go.dev/issue/75804).
func Fuzz(ctx context.Context, out io.Writer, root string, inputs int) (Count, error) {
	targets, err := FuzzTargets(root)
	if err != nil {
		return Count{}, err
	}
	var total Count
	var first error
	for _, t := range targets {
		fmt.Fprintf(out, "%s in %s: %d inputs\n", t.Name, t.Package, inputs)
		count, err := GoTest(ctx, out, false, "-run=^$", "-fuzz=^"+t.Name+"$", fmt.Sprintf("-fuzztime=%dx", inputs), t.Package)
		total.add(count)
		if err != nil && first == nil {
			first = fmt.Errorf("%s in %s: %w", t.Name, t.Package, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return total, first
}
