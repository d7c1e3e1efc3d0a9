package sweep

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

func TestSweepsAreLimited(t *testing.T) {
	d := &Desk{all: make([]*sweep, api.MaxSweeps-1)}
	require.NoError(t, d.checkRoom())
	d.all = append(d.all, nil)
	require.ErrorIs(t, d.checkRoom(), api.ErrConflict)
}

// A trial continues after failures of the target, until it answers no turn in both modes, or a span fails twice for
// another reason.
func TestTrialPauses(t *testing.T) {
	none, some, spoiled := api.SweepSpan{Arm: "a", Attempt: 1}, api.SweepSpan{
		Arm: "b", Attempt: 1, Turns: 9, Failed: 30,
	}, api.SweepSpan{Arm: "b", Attempt: 2, Spoiled: "it was late"}
	alsoNone := none
	alsoNone.Arm = "b"
	for name, row := range map[string]struct {
		spans []api.SweepSpan
		want  api.SweepCause
	}{
		"some turns":             {[]api.SweepSpan{none, some}, ""},
		"none in one mode":       {[]api.SweepSpan{some, none, none}, ""},
		"none in either":         {[]api.SweepSpan{some, none, alsoNone}, api.CauseTarget},
		"spoiled twice":          {[]api.SweepSpan{some, spoiled}, api.CauseInternal},
		"another span was so":    {[]api.SweepSpan{spoiled, some}, ""},
		"the first of the trial": {[]api.SweepSpan{none}, ""},
	} {
		s := &sweep{}
		s.doc.Sweep.Request.Kind, s.doc.Sweep.Spans = api.SweepTrial, row.spans
		err := s.pauseReason([]*outcome{{span: row.spans[len(row.spans)-1]}})
		if row.want == "" {
			require.NoError(t, err, name)
		} else {
			require.Error(t, err, name)
			require.Equal(t, row.want, causeOf(err), name)
		}
	}
}
