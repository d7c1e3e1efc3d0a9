// Package arch holds the imports of the module against its architecture: the
// table below says which package may know of which, and ARCHITECTURE.md tells
// the same to people.
package arch

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/source"
)

const module = "kvbooth/"

// room is what one place may import of this module.
type room struct {
	all    bool     // everything but what is named, instead of nothing else
	sparse []string // the places named
}

func only(places ...string) room   { return room{sparse: places} }
func allBut(places ...string) room { return room{all: true, sparse: places} }

// rooms are the places. A folder below one belongs to it. Places without a
// slash in a room's list are of sidecar.
var rooms = map[string]room{
	".":                   allBut(), // the Magefile
	"internal":            allBut(),
	"dashboards":          only("api"),
	"pkg":                 only("api"),
	"pkg/plugintest":      allBut(),
	"sidecar/cmd/loadgen": allBut("sim", "local"),
	"sidecar/cmd/booth":   allBut(),
	"sidecar/chat":        only(),
	"sidecar/corpus":      only("chat"),
	"sidecar/workload":    only("chat", "corpus"),
	"sidecar/stats":       only(),
	"sidecar/baseline":    only(),
	"sidecar/cluster":     only("workload"),
	"sidecar/store":       only("api"),
	"sidecar/lane":        allBut("server", "sim", "local"),
	"sidecar/selfcheck":   only("chat"),
	"sidecar/sweep":       only("lane", "stats", "baseline", "store"),
	"sidecar/api":         only(),
	"sidecar/server":      allBut("sim", "local"),
	"sidecar/page":        only(),
	"sidecar/sim":         only(),
	"sidecar/local":       only(),
	"sidecar/bench":       allBut(),
	"sidecar/compare":     allBut(),
	"sidecar/dynamotest":  allBut(),
	"sidecar/grafanatest": allBut(),
	"sidecar/pagetest":    allBut(),
}

// roomOf finds the place that a folder belongs to, "" if none.
func roomOf(dir string) string {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, ok := rooms[dir]; ok {
			return dir
		}
	}
	return ""
}

// mayImport says whether a place may know of another.
func mayImport(from, to string) bool {
	switch {
	case from == to:
		return true
	case strings.HasPrefix(to, "sidecar/cmd/"):
		return false // a program is no library
	case strings.HasPrefix(from, "sidecar/") && to == "sidecar/api":
		return true
	}
	r := rooms[from]
	named := slices.Contains(r.sparse, strings.TrimPrefix(to, "sidecar/"))
	return named != r.all
}

func files(t *testing.T) []source.File {
	t.Helper()
	root, err := source.Root()
	require.NoError(t, err)
	files, err := source.Files(root)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func TestImports(t *testing.T) {
	for _, f := range files(t) {
		from := "."
		if f.Dir() != "." {
			from = roomOf(f.Dir())
		}
		if from == "" {
			t.Errorf("%s: %s is no place of the architecture; add it to the table in internal/arch and to ARCHITECTURE.md", f.Path, f.Dir())
			continue
		}
		for _, spec := range f.AST.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			dir, ours := strings.CutPrefix(imported, module)
			if !ours || mayImport(from, roomOf(dir)) || mayTestWith(f, dir) {
				continue
			}
			t.Errorf("%s imports %s; %s may import %s", f.Path, dir, from, rooms[from])
		}
	}
}

// mayTestWith lets an external test use a package that is there for tests, one
// against a real Dynamo all that it takes to have a Dynamo, and those of the
// simulation the texts and questions that it is made to answer.
func mayTestWith(f source.File, dir string) bool {
	external := f.Test && strings.HasSuffix(f.AST.Name.Name, "_test")
	corpus := roomOf(f.Dir()) == "sidecar/sim" && roomOf(dir) == "sidecar/corpus"
	return external && (strings.HasSuffix(dir, "test") || f.Needs("dynamo") || f.Needs("grafana") || corpus)
}

// String is the cell of the table in ARCHITECTURE.md.
func (r room) String() string {
	var names []string
	for _, place := range r.sparse {
		names = append(names, "`"+place+"`")
	}
	list := strings.Join(names, ", ")
	switch {
	case r.all && list == "":
		return "all"
	case r.all:
		return "all but " + list
	}
	return list
}

// The table of ARCHITECTURE.md names every place that exists, with the same rule.
func TestDocument(t *testing.T) {
	root, err := source.Root()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	require.NoError(t, err)
	told := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 && strings.HasPrefix(cells[1], " `") {
			told[strings.Trim(cells[1], " `")] = strings.TrimSpace(cells[3])
		}
	}
	exist := map[string]bool{}
	for _, f := range files(t) {
		if f.Dir() != "." {
			exist[roomOf(f.Dir())] = true
		}
	}
	for place := range exist {
		require.Contains(t, told, place, "ARCHITECTURE.md has no row for it")
		require.Equal(t, rooms[place].String(), told[place], "what ARCHITECTURE.md lets %s import", place)
	}
	for place := range maps.Keys(told) {
		require.Contains(t, rooms, place, "ARCHITECTURE.md has a row of its own for it")
	}
}

// The table itself, on a few pairs whose answer the design gives.
func TestMayImport(t *testing.T) {
	for _, row := range []struct {
		from, to string
		may      bool
	}{
		{"sidecar/chat", "sidecar/api", true},
		{"sidecar/chat", "sidecar/stats", false},
		{"sidecar/lane", "sidecar/store", true},
		{"sidecar/lane", "sidecar/server", false},
		{"sidecar/server", "sidecar/lane", true},
		{"sidecar/cmd/loadgen", "sidecar/sim", false},
		{"sidecar/cmd/booth", "sidecar/cmd/loadgen", false},
		{"sidecar/cmd/booth", "sidecar/sim", true},
		{"sidecar/api", "sidecar/chat", false},
		{"pkg", "sidecar/api", true},
		{"pkg", "sidecar/lane", false},
		{"sidecar/stats", "internal", false},
	} {
		require.Equal(t, row.may, mayImport(row.from, row.to), "%s imports %s", row.from, row.to)
	}
	require.Equal(t, "sidecar/cmd/loadgen", roomOf("sidecar/cmd/loadgen/internal/config"))
	require.Empty(t, roomOf("sidecar"))
}
