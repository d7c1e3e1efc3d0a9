package suite

import (
	"maps"
	"slices"
	"strings"

	"kvbooth/internal/source"
)

// Tagged gives the arguments of go test that run the tests which a build tag
// keeps out otherwise, and those alone. There are none where no test has it.
func Tagged(root, tag string) ([]string, error) {
	files, err := source.Files(root)
	if err != nil {
		return nil, err
	}
	packages, names := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		if !f.Test || !f.Needs(tag) {
			continue
		}
		for _, name := range f.Functions("Test") {
			if name != "TestMain" {
				packages["./"+f.Dir()], names[name] = true, true
			}
		}
	}
	if len(packages) == 0 {
		return nil, nil
	}
	args := []string{"-tags=" + tag, "-run=^(" + strings.Join(slices.Sorted(maps.Keys(names)), "|") + ")$"}
	return append(args, slices.Sorted(maps.Keys(packages))...), nil
}
