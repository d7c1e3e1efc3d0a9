package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

var fuzzTest = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(`)

// Fuzz runs every fuzz test of the module in the working directory with the given number of inputs. All run, even
// after a failure, which leaves its input in testdata/fuzz. There is no limit of time, because go test reports its
// end as a failure ("context deadline exceeded") if it is at the start of an input (https://go.dev/issue/75804).
func Fuzz(ctx context.Context, inputs int) (Count, error) {
	files, err := exec.CommandContext(ctx, "go", "list", "-f",
		`{{range .TestGoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`+
			`{{range .XTestGoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`, "./...").Output()
	if err != nil {
		return Count{}, err
	}
	var total Count
	var failed error
	for file := range strings.FieldsSeq(string(files)) {
		text, err := os.ReadFile(file)
		if err != nil {
			return total, err
		}
		for _, match := range fuzzTest.FindAllSubmatch(text, -1) {
			name := string(match[1])
			count, err := GoTest(ctx, Brief, "-run=^$", "-fuzz=^"+name+"$", fmt.Sprintf("-fuzztime=%dx", inputs),
				"-fuzzminimizetime=100x", filepath.Dir(file))
			total.add(count)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s in %s: %w", name, filepath.Dir(file), err))
			}
		}
	}
	return total, failed
}
