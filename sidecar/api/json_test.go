package api_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// Lists and maps without a value are written as the document has them: empty, not null.
func TestEmptyListsAreNotNull(t *testing.T) {
	text, err := json.Marshal(api.SweepList{})
	require.NoError(t, err)
	require.JSONEq(t, `{"sweeps":[],"limits":{},"defaults":[],"modes":[],"metrics":[]}`, string(text))
}
