package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"kvbooth/internal/source"
)

// The CI files keep to the schema of their program. That for GitHub is linted by actionlint.
func TestCIFilesKeepToSchemas(t *testing.T) {
	root, err := source.Root()
	require.NoError(t, err)
	for name, c := range map[string]struct{ schema, fault, broken string }{
		"gitlab-ci.yaml":      {"gitlab-ci.json", "when: always", "when: sometimes"},
		"argo-workflows.yaml": {"argo-workflow.json", "entrypoint:", "entrypont:"},
	} {
		schema, err := jsonschema.NewCompiler().Compile(filepath.Join("testdata", c.schema))
		require.NoError(t, err)
		text, err := os.ReadFile(filepath.Join(root, "deploy", "ci", name))
		require.NoError(t, err)
		valid := func(text string) error {
			var document any
			require.NoError(t, yaml.Unmarshal([]byte(text), &document), name)
			return schema.Validate(document)
		}
		require.NoError(t, valid(string(text)), name)
		require.Error(t, valid(strings.Replace(string(text), c.fault, c.broken, 1)), name)
	}
}
