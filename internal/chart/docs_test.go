//go:build chart

package chart

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "rewrite the chart's README.md")

// The README of the chart has the values files, and the sections of values.yaml. The comments there that begin with
// "# -- " describe every value.
func TestReadme(t *testing.T) {
	dir := filepath.Join(root, filepath.FromSlash(Dir))
	text, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	require.NoError(t, err)
	var document yaml.Node
	require.NoError(t, yaml.Unmarshal(text, &document))
	requireDescribed(t, document.Content[0], "")
	want := readme(t, dir, document.Content[0])
	path := filepath.Join(dir, "README.md")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(have), "go test -tags chart ./internal/chart -run Readme -update rewrites it")
}

// readme returns the README of the chart in dir with these values.
func readme(t *testing.T, dir string, values *yaml.Node) string {
	var b strings.Builder
	b.WriteString(`# Helm chart of KV Booth

<!-- Written by go test -tags chart ./internal/chart -run Readme -update. -->

The load generator and Grafana with the app, next to an inference cluster; optionally members of the load generator, ` +
		`Prometheus, an NVIDIA Dynamo with its model, Gateway API routes and monitors. [docs/kubernetes.md]` +
		`(../../../docs/kubernetes.md#the-commands) has the commands. Unknown values are rejected.

| values file | what it is for |
|---|---|
`)
	files, err := filepath.Glob(filepath.Join(dir, "values-*.yaml"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var lines []string
		for line := range strings.Lines(string(text)) {
			comment, ok := strings.CutPrefix(line, "#")
			if comment = strings.TrimSpace(comment); !ok || comment == "" {
				break
			}
			lines = append(lines, comment)
		}
		require.NotEmpty(t, lines, "%s says in its first lines what it is for", file)
		fmt.Fprintf(&b, "| [%s](%[1]s) | %s |\n", filepath.Base(file), cell(strings.Join(lines, " ")))
	}
	b.WriteString(`
## Values

[values.yaml](values.yaml) has each value with its default and its meaning; ` +
		"`helm show values deploy/chart/kvbooth`" + ` prints it.

| section | holds |
|---|---|
`)
	for i := 0; i < len(values.Content); i += 2 {
		key := values.Content[i]
		text, _ := comment(key)
		require.NotEmpty(t, text, "%s has no comment", key.Value)
		fmt.Fprintf(&b, "| `%s` | %s |\n", key.Value, cell(text))
	}
	return b.String()
}

// cell is text in a table's cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// comment gives the paragraph that stands above a key, and whether it describes a value.
func comment(key *yaml.Node) (text string, describes bool) {
	var words []string
	for line := range strings.Lines(key.HeadComment) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
		if line == "" { // what stood above belongs to something else
			words, describes = nil, false
			continue
		}
		if rest, ok := strings.CutPrefix(line, "-- "); ok {
			words, describes, line = nil, true, rest
		}
		words = append(words, line)
	}
	return strings.Join(words, " "), describes
}

// requireDescribed fails the test for a value below path that no comment describes.
func requireDescribed(t *testing.T, values *yaml.Node, path string) {
	for i := 0; i < len(values.Content); i += 2 {
		key, value := values.Content[i], values.Content[i+1]
		if _, describes := comment(key); describes {
			continue
		}
		name := strings.TrimPrefix(path+"."+key.Value, ".")
		require.Equal(t, yaml.MappingNode, value.Kind, "%s has no comment that begins with # --", name)
		require.NotEmpty(t, value.Content, "%s has no comment that begins with # --", name)
		requireDescribed(t, value, name)
	}
}

var (
	yamlBlock  = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	valuesFile = regexp.MustCompile("`(values-[a-z0-9-]+\\.yaml)`")
	dotted     = regexp.MustCompile("`([a-z][A-Za-z]+(?:\\.[a-zA-Z_]+)+)(?:: [a-z]+)?`")
)

// documents are those that name values of the chart.
var documents = []string{"kubernetes.md", "event-day.md", "members.md"}

// What the documents say of values is true of the chart: their examples render on the values file that they are for,
// and every value and values file that they name is there.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	values := map[string]any{}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(Dir), "values.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &values))
	examples, named := 0, 0
	for _, document := range documents {
		text, err := os.ReadFile(filepath.Join(root, "docs", document))
		require.NoError(t, err)
		below := "values-existing-dynamo.yaml"
		for _, block := range yamlBlock.FindAllSubmatchIndex(text, -1) {
			if strings.Contains(string(text[:block[0]]), "## From an empty DOKS cluster") {
				below = "values-doks.yaml"
			}
			file := filepath.Join(t.TempDir(), "my-values.yaml")
			require.NoError(t, os.WriteFile(file, text[block[2]:block[3]], 0o600))
			_, _, err := helm.Render(t.Context(), Options{Values: []string{below, file}})
			assert.NoError(t, err, "%s: an example on %s", document, below)
			examples++
		}
		for _, match := range valuesFile.FindAllStringSubmatch(string(text), -1) {
			if match[1] != "my-values.yaml" {
				assert.FileExists(t, filepath.Join(root, filepath.FromSlash(Dir), match[1]), document)
			}
		}
		for _, match := range dotted.FindAllStringSubmatch(string(text), -1) {
			path := strings.Split(match[1], ".")
			if _, ours := values[path[0]]; !ours { // a field of loadgen.yaml, a host or a label
				continue
			}
			named++
			assert.NoError(t, known(t.Context(), match[1], values), document)
		}
	}
	assert.GreaterOrEqual(t, examples, 2)
	assert.GreaterOrEqual(t, named, 8)
}

// known looks a value up in values.yaml. A value below loadgen.config is looked up in the schema, since values.yaml has
// no defaults there.
func known(ctx context.Context, name string, values map[string]any) error {
	if strings.HasPrefix(name, "loadgen.config.") {
		_, _, err := helm.Render(ctx, Options{Set: []string{"serving.name=booth", name + "=something"}})
		if err != nil && strings.Contains(err.Error(), "additional properties") {
			return err
		}
		return nil
	}
	var at any = values
	for part := range strings.SplitSeq(name, ".") {
		within, _ := at.(map[string]any)
		below, ok := within[part]
		if !ok {
			return fmt.Errorf("the chart has no value %s", name)
		}
		at = below
	}
	return nil
}
