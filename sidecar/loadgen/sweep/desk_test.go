package sweep

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

func TestSweepsAreLimited(t *testing.T) {
	d := &Desk{all: make([]*sweep, api.MaxSweeps-1)}
	require.NoError(t, d.room())
	d.all = append(d.all, nil)
	require.ErrorIs(t, d.room(), api.ErrConflict)
}
