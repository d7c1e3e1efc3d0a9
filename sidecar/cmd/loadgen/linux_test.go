package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbooth/sidecar/api"
)

// bulk is an event with half a megabyte of text.
func bulk() string {
	return `{"choices":[{"delta":{"content":"` + strings.Repeat("word ", 100_000) + `"}}]}`
}

// limitFiles lets a process write no file beyond so many bytes, which to its
// store is a full disk.
func limitFiles(t *testing.T, p *program, bytes uint64) {
	t.Helper()
	var limit unix.Rlimit
	require.NoError(t, unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &limit))
	limit.Cur = bytes
	require.NoError(t, unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil))
}

// While the disk is full the workload goes on, and status and a metric say that
// turns are lost.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	p := start(t, server.URL, "--concurrency=8", "--start-rate=1000", "--target-rps=0", "--turns-max=1", "--start")
	p.until("turns are stored", func() bool { return len(p.conversations()) > 8 })
	assert.True(t, p.status().Store.OK)

	limitFiles(t, p, 1)
	long := bulk() // fills what the store keeps in memory for a while
	server.word.Store(&long)
	p.until("turns are lost", func() bool { return p.metric("loadgen_store_lost_turns_total") > 0 })
	short := oneWord
	server.word.Store(&short)
	server.gap.Store(int64(50 * time.Millisecond))
	ok := p.lane().Totals.OK
	p.until("the workload goes on", p.serves(ok+20))
	s := p.status()
	assert.False(t, s.Store.OK)
	assert.Contains(t, s.Store.Problem, "kvbooth.db cannot be written")
	assert.Contains(t, s.Store.Problem, "free space on the disk or make it writable")
	assert.Positive(t, s.Store.LostTurns)
	assert.Positive(t, s.Lanes[0].Totals.LostTurns)
	assert.Zero(t, s.Lanes[0].Totals.Errors)
	assert.True(t, p.ready(), "the target serves")
	title := "not kept"
	_, err := p.client.PatchSettings(t.Context(), api.SettingsPatch{Title: &title})
	assert.ErrorIs(t, err, api.ErrUnavailable, "what cannot be stored is not promised")
	assert.NotEmpty(t, p.conversations(), "what was stored can be read")
	assert.Equal(t, 1, strings.Count(p.log.String(), "the store cannot be written"), "said once, not once per turn")
}

// A disk that is full for a while costs nothing, and one that is full at the end
// is told by the exit code.
func TestFullDiskForAWhile(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	p := start(t, server.URL, "--start")
	refused := func() bool { return !p.status().Store.OK }
	limitFiles(t, p, 1)
	p.until("the store is refused", refused)
	limitFiles(t, p, unix.RLIM_INFINITY)
	p.until("it can be written again", func() bool { return !refused() })
	n := p.lane().Totals.OK
	p.until("every turn is stored", func() bool { return int64(strings.Count(p.turns(), ",ok,")) >= n })
	assert.Zero(t, p.metric("loadgen_store_lost_turns_total"))

	limitFiles(t, p, 1)
	p.until("the store is refused again", refused)
	assert.Equal(t, failure, p.stop(os.Interrupt))
	assert.Contains(t, p.log.String(), "loadgen: "+p.dir+"/kvbooth.db cannot be written")
}

// openTerminal gives both ends of a terminal of so many columns.
func openTerminal(t *testing.T, columns uint16) (screenEnd, programEnd *os.File) {
	t.Helper()
	screenEnd, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = screenEnd.Close() })
	var number int
	control, err := screenEnd.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, control.Control(func(fd uintptr) {
		require.NoError(t, unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0))
		number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		require.NoError(t, err)
		require.NoError(t, unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	}))
	programEnd, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = programEnd.Close() })
	return screenEnd, programEnd
}

// On a terminal the state stands in the last line, which log lines do not tear
// and which is no longer than the terminal is wide.
func TestOnATerminal(t *testing.T) {
	t.Parallel()
	const columns = 60
	server := startTarget(t)
	server.gap.Store(int64(200 * time.Millisecond))
	p := newProgram(t)
	screenEnd, programEnd := openTerminal(t, columns)
	p.cmd.Stderr = programEnd
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&p.log, screenEnd) // until nobody holds the other end
	}()
	p.start(server.URL, "--start", "--concurrency=3")
	require.NoError(t, programEnd.Close())
	status := func() string {
		lines := screen(p.log.String(), columns)
		return lines[len(lines)-1]
	}
	shows := func(pattern string) {
		expression := regexp.MustCompile(pattern)
		p.until("the last line shows "+pattern, func() bool { return expression.MatchString(status()) })
	}
	shows(`^running 3/3 kv settling · TTFT \d+/\d+ ms · `)
	for _, n := range []int{5, 4} { // each is logged
		_, err := p.client.Patch(t.Context(), "", api.WorkloadPatch{Concurrency: &n})
		require.NoError(t, err)
		shows(fmt.Sprintf(`^running %d/%d kv`, n, n))
		assert.Len(t, []rune(status()), columns-1)
		assert.True(t, strings.HasSuffix(status(), "…"))
	}
	p.endsWell()
	<-read
	state := 0
	for _, line := range screen(p.log.String(), 10_000) { // no log line is wrapped
		if !regexp.MustCompile(`^time=\S+ level=\w+ msg=.*$`).MatchString(line) && line != "" {
			state++
		}
		assert.Equal(t, strings.HasPrefix(line, "time="), strings.Contains(line, "level="), "torn: %s", line)
	}
	assert.Equal(t, 1, state, "only the last state stays: %q", screen(p.log.String(), 10_000))
}
