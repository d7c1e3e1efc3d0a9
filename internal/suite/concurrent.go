package suite

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// concurrent matches code that starts a goroutine, or holds a lock or an atomic value.
var concurrent = regexp.MustCompile(`(?m)^\s*go [\w.]+\(|\bgo func\(|\.Go\(|"sync"|"sync/atomic"|errgroup`)

// server is the package of Prometheus' database. To compile the packages that depend on it for the race detector takes
// minutes.
const server = "github.com/prometheus/prometheus/tsdb"

// Concurrent returns the packages of this module that start goroutines or hold locks and have tests. It leaves out
// packages that depend on Prometheus' server, and programs, whose tests start processes.
func Concurrent(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f",
		"{{.ImportPath}}\t{{.Dir}}\t{{.Name}}\t{{join .GoFiles \" \"}}\t{{join .TestGoFiles \" \"}}{{join .XTestGoFiles \" \"}}\t"+
			"{{join .Deps \" \"}}", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		path, dir, name, files, tests, deps := fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]
		if tests == "" || name == "main" || strings.Contains(deps, server) {
			continue
		}
		for file := range strings.FieldsSeq(files) {
			text, err := os.ReadFile(dir + "/" + file)
			if err != nil {
				return nil, err
			}
			if concurrent.Match(text) {
				found = append(found, path)
				break
			}
		}
	}
	return found, nil
}
