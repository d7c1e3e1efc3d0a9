package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbooth/sidecar/api"
)

// limitFiles limits the size of every file of a process, which its store sees as a full disk.
func limitFiles(t *testing.T, p *program, bytes uint64) {
	t.Helper()
	var limit unix.Rlimit
	require.NoError(t, unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &limit))
	limit.Cur = bytes
	require.NoError(t, unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil))
}

// A disk that is full for a while loses no turn. While it stays full the workload continues, status and metric report
// the lost turns, and so does the exit code. The test floods the store, so it does not run in parallel with others.
func TestFullDisk(t *testing.T) {
	server := startTarget(t)
	p := newProcess(t, "--concurrency=8", "--start-rate=1000", "--target-rps=0", "--max-tokens=32000",
		"--start").serve(server.URL)
	p.eventually("turns are stored", func() bool { return p.status().Store.OK && len(p.conversations()) > 8 })
	fails := func() bool { return !p.status().Store.OK }
	limitFiles(t, p, 1)
	p.eventually("the store fails", fails)
	limitFiles(t, p, unix.RLIM_INFINITY)
	p.eventually("the store works again", func() bool { return !fails() })
	n := p.lane().Totals.OK
	p.eventually("every turn is stored", func() bool { return p.status().Store.StoredTurns >= n })
	assert.GreaterOrEqual(t, int64(strings.Count(p.turns(), ",ok,")), n)
	assert.Zero(t, p.metric("loadgen_store_lost_turns_total"))

	limitFiles(t, p, 1)
	// fills the queue of the store
	long := `{"choices":[{"delta":{"content":"` + strings.Repeat("word ", 100_000) + `"}}]}`
	server.word.Store(&long)
	p.eventually("turns are lost", func() bool { return p.metric("loadgen_store_lost_turns_total") > 0 })
	short := oneWord
	server.word.Store(&short)
	server.gap.Store(int64(50 * time.Millisecond))
	ok := p.lane().Totals.OK
	p.eventually("the workload goes on", p.serves(ok+20))
	s := p.status()
	assert.False(t, s.Store.OK)
	assert.Contains(t, s.Store.Problem, "turns are not stored, since "+p.dir+"/kvbooth.db cannot be written")
	assert.Contains(t, s.Store.Problem, "free space on the disk or make it writable")
	assert.Positive(t, s.Store.LostTurns)
	assert.Positive(t, s.Lanes[0].Totals.LostTurns)
	assert.Zero(t, s.Lanes[0].Totals.Errors)
	assert.Contains(t, p.unready(), "turns are not stored")
	_, err := p.client.PatchSettings(t.Context(), api.SettingsPatch{Title: new("not stored")})
	require.ErrorIs(t, err, api.ErrUnavailable)
	assert.NotEmpty(t, p.conversations(), "what was stored can be read")
	assert.Equal(t, 2, strings.Count(p.log.String(), "the store cannot be written"), "once per failure, not per turn")
	assert.Equal(t, broken, p.stop(os.Interrupt))
	assert.Contains(t, p.log.String(), "loadgen: turns are not stored, since "+p.dir+"/kvbooth.db cannot be written")
}
