package replay

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// began is the start of the tests' recording.
var began = time.Date(2026, 3, 16, 10, 0, 0, 0, time.UTC)

// recording returns a recording of n snapshots, one a second, whose concurrency counts them, with their history.
func recording(t *testing.T, n int) []byte {
	t.Helper()
	var file bytes.Buffer
	z := gzip.NewWriter(&file)
	out := flushed{z, json.NewEncoder(z)}
	require.NoError(t, out.Encode(line{Header: &header{Format: format}}))
	var h api.History
	for i := range n {
		at := began.Add(time.Duration(i) * time.Second)
		lane := api.LaneSnapshot{
			Name:  api.DefaultLane,
			State: api.State{Step: api.Step{Started: began}, Concurrency: api.Concurrency{Target: api.AtConversations(i)}},
		}
		text, err := json.Marshal(api.Snapshot{Time: at, Lanes: []api.LaneSnapshot{lane}})
		require.NoError(t, err)
		require.NoError(t, out.Encode(line{Seconds: float64(i), Snapshot: text}))
		h.Points = append(h.Points, api.HistoryPoint{Time: at})
	}
	r := &recorder{out: out}
	r.answer("/history", url.Values{"lane": {api.DefaultLane}})(h, nil)
	r.answer("/twin", nil)(nil, api.ErrNotFound)
	require.NoError(t, r.err)
	require.NoError(t, z.Close())
	return file.Bytes()
}

func TestPlayerLoops(t *testing.T) {
	opened := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	now := opened
	p, err := open(bytes.NewReader(recording(t, 3)), "run", func() time.Time { return now })
	require.NoError(t, err)
	for _, tc := range []struct {
		played time.Duration
		shown  int
		began  time.Time // the round
	}{
		{0, 0, opened},
		{1500 * time.Millisecond, 1, opened},
		{2 * time.Second, 2, opened},
		{3 * time.Second, 0, opened.Add(3 * time.Second)}, // the next round
		{7 * time.Second, 1, opened.Add(6 * time.Second)},
	} {
		now = opened.Add(tc.played)
		text, err := p.SnapshotJSON()
		require.NoError(t, err)
		var s api.Snapshot
		require.NoError(t, json.Unmarshal(text, &s))
		at := time.Duration(tc.shown) * time.Second
		require.Equal(t, tc.shown, s.Lanes[0].State.Concurrency.Target.Conversations())
		require.Equal(t, tc.began.Add(at), s.Time, "its times are moved into the present")
		require.Equal(t, tc.began, s.Lanes[0].State.Step.Started)
		require.Equal(t, &api.Replay{RecordedAt: began, Position: at.Seconds(), Length: 3}, s.Replay)

		text, err = p.Answer("/history", nil)
		require.NoError(t, err)
		var h api.History
		require.NoError(t, json.Unmarshal(text, &h))
		require.Len(t, h.Points, tc.shown+1, "the history ends at the present snapshot")
		require.Equal(t, s.Time, h.Points[tc.shown].Time)
	}
	for path, query := range map[string]url.Values{
		"/twin": nil, "/history": {"lane": {"twin"}},
		"/comparison": {"baseline": {"x"}},
	} {
		_, err := p.Answer(path, query)
		require.ErrorIs(t, err, api.ErrNotFound, path)
	}
}

func TestOpenRefusesInvalidRecordings(t *testing.T) {
	whole := recording(t, 3)
	for name, tc := range map[string]struct{ file, says string }{
		"no recording": {`{"not": "a recording"}`, "gzip"},
		"cut short":    {string(whole[:30]), "EOF"},
		"no snapshots": {string(recording(t, 0)), "no snapshots"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(strings.NewReader(tc.file), "run")
			require.ErrorContains(t, err, tc.says)
			field := new(api.FieldError)
			require.ErrorAs(t, err, &field)
			require.Equal(t, "file", field.Field)
		})
	}
}

// The recording of a killed recorder is played as far as it is whole, wherever it ends, and so are the lines beside a
// broken one. What is missing is named.
func TestDamagedRecordingIsPlayed(t *testing.T) {
	const snapshots = 20
	whole := recording(t, snapshots)
	played := map[int]bool{}
	for end := range whole {
		p, err := Open(bytes.NewReader(whole[:end]), "run")
		if err != nil {
			require.Empty(t, played, "%d bytes: %v", end, err)
			continue
		}
		require.Regexp(t, `^\d+ lines are whole; what follows is missing, .*: unexpected EOF\)$`, p.Damage())
		_, err = p.SnapshotJSON()
		require.NoError(t, err)
		played[len(p.snapshots)] = true
	}
	require.Len(t, played, snapshots)

	z, err := gzip.NewReader(bytes.NewReader(whole))
	require.NoError(t, err)
	text, err := io.ReadAll(z)
	require.NoError(t, err)
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines[3] = append([]byte("x"), lines[3]...)
	lines[7] = []byte("\x00\n")
	var broken bytes.Buffer
	out := gzip.NewWriter(&broken)
	_, err = out.Write(bytes.Join(lines, nil))
	require.NoError(t, errors.Join(err, out.Close()))
	p, err := Open(&broken, "run")
	require.NoError(t, err)
	require.Regexp(t, `^2 of \d+ lines cannot be read \(line 4: invalid character 'x'`, p.Damage())
	require.Len(t, p.snapshots, snapshots-2)

	p, err = Open(bytes.NewReader(whole), "run")
	require.NoError(t, err)
	require.Empty(t, p.Damage())
}
