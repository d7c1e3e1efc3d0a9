package suite

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// concurrencyPattern matches code that starts a goroutine, or has a lock or an atomic value.
var concurrencyPattern = regexp.MustCompile(`(?m)^\s*go [\w.]+\(|` +
	`\bgo func\(|\.Go\(|\bsync\.(Mutex|RWMutex|Cond|Map)\b|\batomic\.`)

// heavyDependency matches dependencies that take minutes to compile with the race detector: Prometheus' database and
// Kubernetes' client.
var heavyDependency = regexp.MustCompile(`\bgithub.com/prometheus/prometheus/tsdb\b|\bk8s.io/client-go/rest\b`)

// Concurrent returns the packages of this module that start goroutines or have locks, and that have tests. It leaves
// out packages with heavy dependencies, and programs, whose tests start processes.
func Concurrent(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f",
		"{{.ImportPath}}\t{{.Dir}}\t{{.Name}}\t{{join .GoFiles \" \"}}\t{{join .TestGoFiles \" \"}}"+
			"{{join .XTestGoFiles \" \"}}\t"+
			"{{join .Deps \" \"}}", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		path, dir, name, files, tests, deps := fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]
		if tests == "" || name == "main" || heavyDependency.MatchString(deps) {
			continue
		}
		for file := range strings.FieldsSeq(files) {
			text, err := os.ReadFile(dir + "/" + file)
			if err != nil {
				return nil, err
			}
			if concurrencyPattern.Match(text) {
				found = append(found, path)
				break
			}
		}
	}
	return found, nil
}
