//go:build chart

package chart

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

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
