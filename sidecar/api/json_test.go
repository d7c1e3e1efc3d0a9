package api_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// What is not filled is written as the document has it: lists and maps empty, not null.
func TestEmptyListsAreNotNull(t *testing.T) {
	text, err := json.Marshal(api.SweepList{})
	require.NoError(t, err)
	require.JSONEq(t, `{"sweeps":[],"limits":{},"defaults":[],"modes":[],"metrics":[]}`, string(text))
}
