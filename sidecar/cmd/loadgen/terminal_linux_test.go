package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbooth/sidecar/api"
)

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

// On a terminal a trial's progress stands in the last line.
func TestTrialOnATerminal(t *testing.T) {
	t.Parallel()
	const columns = 80
	kv, rr := startTarget(t), startTarget(t)
	p := newProgram(t)
	screenEnd, programEnd := openTerminal(t, columns)
	p.cmd.Stderr = programEnd
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&p.log, screenEnd)
	}()
	p.cmd.Args = append(p.cmd.Args, "trial", "--concurrency=3")
	p.start(kv.URL, "--mode-driver=endpoints", "--mode-endpoints=kv="+kv.URL+",round_robin="+rr.URL)
	require.NoError(t, programEnd.Close())
	expression := regexp.MustCompile(`^trial · .*0 spans · (preview, )?(KV-aware|Round-robin) at 3 measuring \d+/60 s`)
	p.until("the last line shows the span", func() bool {
		lines := screen(p.log.String(), columns)
		line := lines[len(lines)-1]
		return expression.MatchString(line) && len([]rune(line)) < columns
	})
	require.Equal(t, unmeasured, p.stop(syscall.SIGINT))
	<-read
	lines := screen(p.log.String(), 10_000)
	assert.Regexp(t, `^loadgen: the trial is unfinished\. `, lines[len(lines)-2], "%q", lines)
	assert.Regexp(t, `^trial · `, lines[len(lines)-3], "the last state stays above it")
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
	p.start(server.URL, "--mode-mode=kv", "--start", "--concurrency=3")
	require.NoError(t, programEnd.Close())
	shows := func(pattern string) (line string) {
		expression := regexp.MustCompile(pattern)
		p.until("the last line shows "+pattern, func() bool {
			lines := screen(p.log.String(), columns)
			line = lines[len(lines)-1]
			return expression.MatchString(line)
		})
		return line
	}
	shows(`^running 3/3 KV-aware settling · TTFT \d+/\d+ ms · `)
	for _, n := range []int{5, 4} { // each is logged
		_, err := p.client.Patch(t.Context(), "", api.WorkloadPatch{Concurrency: &n})
		require.NoError(t, err)
		line := shows(fmt.Sprintf(`^running %d/%d KV-aware .*…$`, n, n))
		assert.Len(t, []rune(line), columns-1)
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
