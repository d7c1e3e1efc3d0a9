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

// The README of the chart has every value, from the comments that begin with "# -- " in values.yaml.
func TestReadme(t *testing.T) {
	dir := filepath.Join(root, filepath.FromSlash(Dir))
	text, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	require.NoError(t, err)
	var document yaml.Node
	require.NoError(t, yaml.Unmarshal(text, &document))
	r := &readme{t: t}
	r.mapping(document.Content[0], "")
	want := r.head(dir) + r.text.String()
	path := filepath.Join(dir, "README.md")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(have), "go test ./internal/chart -run Readme -update rewrites it")
}

// readme is the README while it is written.
type readme struct {
	t     *testing.T
	text  strings.Builder
	table bool // a table is open
}

// head is what stands above the values.
func (r *readme) head(dir string) string {
	var b strings.Builder
	b.WriteString(`# Helm chart of KV Booth

<!-- Written by go test ./internal/chart -run Readme -update, from values.yaml. -->

The load generator and Grafana with the app, next to an inference cluster; optionally members of the load generator, Prometheus, an NVIDIA Dynamo with its model, Gateway API routes and monitors. [docs/kubernetes.md](../../../docs/kubernetes.md#the-commands) has the commands. Unknown values are rejected.

| values file | what it is for |
|---|---|
`)
	files, err := filepath.Glob(filepath.Join(dir, "values-*.yaml"))
	require.NoError(r.t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(r.t, err)
		var lines []string
		for line := range strings.Lines(string(text)) {
			comment, ok := strings.CutPrefix(line, "#")
			if comment = strings.TrimSpace(comment); !ok || comment == "" {
				break
			}
			lines = append(lines, comment)
		}
		require.NotEmpty(r.t, lines, "%s says in its first lines what it is for", file)
		fmt.Fprintf(&b, "| [%s](%[1]s) | %s |\n", filepath.Base(file), cell(strings.Join(lines, " ")))
	}
	return b.String() + "\n## Values\n"
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

// mapping writes the values of a mapping: those that are described as lines of the table, the others as what they hold.
// Each at the top level is a section.
func (r *readme) mapping(node *yaml.Node, path string) {
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		text, describes := comment(key)
		name := strings.TrimPrefix(path+"."+key.Value, ".")
		if describes {
			r.value(name, value, text)
			continue
		}
		require.Equal(r.t, yaml.MappingNode, value.Kind, "%s has no comment that begins with # --", name)
		require.NotEmpty(r.t, value.Content, "%s has no comment that begins with # --", name)
		if path == "" {
			fmt.Fprintf(&r.text, "\n### %s\n", name)
			r.table = false
			if text != "" {
				fmt.Fprintf(&r.text, "\n%s\n", text)
			}
		} else if text != "" {
			r.begin()
			fmt.Fprintf(&r.text, "| `%s` | | %s |\n", name, cell(text))
		}
		r.mapping(value, name)
	}
}

// begin opens a table.
func (r *readme) begin() {
	if !r.table {
		r.text.WriteString("\n| value | default | meaning |\n|---|---|---|\n")
		r.table = true
	}
}

func (r *readme) value(name string, value *yaml.Node, meaning string) {
	r.begin()
	shown := *value
	shown.HeadComment, shown.LineComment, shown.FootComment = "", "", ""
	flow(&shown)
	text, err := yaml.Marshal(&shown)
	require.NoError(r.t, err)
	fmt.Fprintf(&r.text, "| `%s` | `%s` | %s |\n", name, cell(strings.Join(strings.Fields(string(text)), " ")),
		cell(meaning))
}

// flow writes a value in one line, without comments.
func flow(node *yaml.Node) {
	if node.Kind == yaml.MappingNode || node.Kind == yaml.SequenceNode {
		node.Style = yaml.FlowStyle
	}
	for _, child := range node.Content {
		child.HeadComment, child.LineComment, child.FootComment = "", "", ""
		flow(child)
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
