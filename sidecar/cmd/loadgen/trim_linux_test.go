package main

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTrimProgramRemovesPages(t *testing.T) {
	before := programPages(t)
	trimProgram()
	assert.Less(t, programPages(t), before)
}

// programPages returns the resident memory of files in kB.
func programPages(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	found := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(text)
	require.NotNil(t, found)
	n, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return n
}
