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

// A damaged turn is named in /readyz, in the log and for the pages. The others are listed, and exported with a last
// line that says how many are missing.
func TestDamagedTurn(t *testing.T) {
	t.Parallel()
	target := startTarget(t)
	p := start(t, target.URL, "--concurrency=2", "--start-rate=100")
	_, err := p.client.Start(t.Context(), "", api.StartRequest{})
	require.NoError(t, err)
	p.eventually("turns end", p.serves(20))
	p.endsWell()
	dir := p.dir
	db, err := sql.Open("sqlite", filepath.Join(dir, "kvbooth.db"))
	require.NoError(t, err)
	_, err = db.Exec("UPDATE turns SET data = substr(data, 1, 60) WHERE seq = 5")
	require.NoError(t, err)
	require.NoError(t, db.Close())

	p = newProgram(t)
	p.dir = dir
	p.serve(target.URL)
	lines := strings.Split(strings.TrimSpace(p.turns()), "\r\n")
	assert.Contains(t, lines[len(lines)-1], "# missing turns: 1; the database is damaged,")
	assert.Greater(t, len(lines), 20)
	assert.NotEmpty(t, p.conversations())
	p.eventually("/readyz names it", func() bool { return strings.Contains(p.unready(), "the database is damaged") })
	p.prints(`the database is (damaged); what can be read is used" path=\S+ unreadable=turns first=5`)
	p.eventually("the pages receive it", func() bool {
		shown, err := p.client.Snapshot(t.Context())
		require.NoError(t, err)
		return strings.Contains(shown.StoreProblem, "unreadable turns (1)")
	})
	assert.Equal(t, success, p.stop(os.Interrupt))
}
