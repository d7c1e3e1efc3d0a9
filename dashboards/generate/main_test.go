package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFilesAreGenerated(t *testing.T) {
	for name, d := range files {
		have, err := os.ReadFile(filepath.Join("..", name))
		require.NoError(t, err)
		assert.True(t, string(encode(d)) == string(have), "%s is stale: go generate ./dashboards", name)
	}
}
