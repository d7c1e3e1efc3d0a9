//go:build unix

package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// earlier has what a load generator wrote before a level could be a rate and fields had their present names: a database
// with a run, a sweep that has ended and a trial that is paused, its configuration, reports, a baseline, a recording.
const earlier = "testdata/earlier/"

func TestEarlierDatabaseIsRead(t *testing.T) {
	t.Parallel()
	dump, err := os.ReadFile(earlier + "kvbooth.sql")
	require.NoError(t, err)
	p := newProgram(t)
	require.NoError(t, os.Mkdir(p.dir, 0o700))
	db, err := sql.Open("sqlite", filepath.Join(p.dir, "kvbooth.db"))
	require.NoError(t, err)
	_, err = db.Exec(string(dump))
	require.NoError(t, err)
	require.NoError(t, db.Close())
	p.serve(startTarget(t).URL)

	settings, err := p.client.Settings(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Before", settings.Title)
	b, err := p.client.Baseline(t.Context(), "measured-before")
	require.NoError(t, err)
	assert.Equal(t, new(.2), b.Workload.ThinkTime)
	assert.Equal(t, api.AtConversations(3), b.Rows[1].Level)

	all := p.conversations()
	require.Len(t, all, 7)
	one, err := p.client.Conversation(t.Context(), all[0].ID)
	require.NoError(t, err)
	require.NotEmpty(t, one.Turns)
	assert.Equal(t, api.AtConversations(2), one.Turns[0].Level)
	assert.NotEmpty(t, one.Turns[0].AssistantMessage)
	turns, err := api.ReadTurns(strings.NewReader(p.turns()))
	require.NoError(t, err)
	assert.Equal(t, api.AtConversations(3), turns[0].Level)

	list, err := p.client.Sweeps(t.Context())
	require.NoError(t, err)
	require.Len(t, list.Sweeps, 2)
	trial, sweep := list.Sweeps[0], list.Sweeps[1]
	assert.Equal(t, []any{api.SweepPaused, new(900.), 1},
		[]any{trial.State, trial.Request.MaxSeconds, trial.Progress.Spans})
	assert.Equal(t, []any{api.SweepDone, new(2.), new(0.), api.LevelsOf(2, 3)},
		[]any{sweep.State, sweep.Request.Seconds, sweep.Request.WarmUp, sweep.Request.Levels})
	var report strings.Builder
	require.NoError(t, p.client.SweepReport(t.Context(), &report, sweep.ID, api.ReportMarkdown))
	assert.Contains(t, report.String(), sweep.Words[0])
	assert.Equal(t, success, p.stop(os.Interrupt))
}

func TestEarlierFilesAreRead(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"compare", earlier + "run.json", earlier + "sweep.json"}, "users think for 0.2 s"},
		{[]string{"compare", earlier + "sweep.json", earlier + "baseline.json"}, "users think for 0.2 s"},
		{[]string{"check", "--config=" + earlier + "loadgen.yaml"}, "The configuration is valid."},
	} {
		code, stdout, stderr := command(t, row.args...)
		assert.Equal(t, success, code, "%v\n%s", row.args, stderr)
		assert.Contains(t, stdout, row.want)
	}
}

func TestEarlierRecordingIsPlayed(t *testing.T) {
	t.Parallel()
	player := newProgram(t, "replay", earlier+"recording")
	player.start("--listen=" + player.listen)
	player.connect("")
	shown, err := player.client.Snapshot(t.Context())
	require.NoError(t, err)
	assert.Equal(t, api.AtConversations(3), shown.Lanes[0].State.Concurrency.Target)
	assert.Equal(t, new(.2), shown.Lanes[0].State.Shape.ThinkTime)
	all := player.conversations()
	one, err := player.client.Conversation(t.Context(), all[len(all)-1].ID)
	require.NoError(t, err)
	require.NotEmpty(t, one.Turns)
	assert.Equal(t, api.AtConversations(3), one.Turns[0].Level)
	assert.Equal(t, success, player.stop(os.Interrupt))
}
