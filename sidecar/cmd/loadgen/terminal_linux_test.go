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

// openTerminal returns both ends of a terminal with this number of columns.
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

// On a terminal the state of the run or the progress of the trial is the last line. It is shorter than the terminal is
// wide, log lines do not tear it, and it stays at the end.
func TestTerminalShowsTheState(t *testing.T) {
	t.Parallel()
	const columns = 60
	kv, rr := startTarget(t), startTarget(t)
	kv.gap.Store(int64(200 * time.Millisecond))
	for name, row := range map[string]struct {
		args  []string
		shows string
		code  int
		last  string
	}{
		"run": {
			[]string{"--mode-mode=kv", "--start", "--concurrency=3"}, `^running 3/3 KV-aware .*…$`, success, `^running `,
		},
		"trial": {
			append([]string{"trial", "--concurrency=3", "--no-probe"}, twoRouters(kv, rr)...),
			`^trial · .*first look in about .*…$`, unmeasured,
			`^trial · `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t, row.args...)
			screenEnd, programEnd := openTerminal(t, columns)
			p.errors = programEnd
			read := make(chan struct{})
			go func() {
				defer close(read)
				_, _ = io.Copy(&p.log, screenEnd) // until the other end is closed
			}()
			p.serve(kv.URL)
			p.eventually("the last line shows the state", func() bool {
				lines := screen(p.log.String(), columns)
				line := lines[len(lines)-1]
				return regexp.MustCompile(row.shows).MatchString(line) && len([]rune(line)) == columns-1
			})
			_, err := p.client.PatchSettings(t.Context(), api.SettingsPatch{Title: new("a line of the log")})
			require.NoError(t, err)
			require.Equal(t, row.code, p.stop(os.Interrupt))
			require.NoError(t, programEnd.Close())
			<-read
			states := 0
			for _, line := range screen(p.log.String(), 10_000) {
				if regexp.MustCompile(row.last).MatchString(line) {
					states++
				}
				assert.Equal(t, strings.HasPrefix(line, "time="), strings.Contains(line, "level="), "torn: %s", line)
			}
			assert.Equal(t, 1, states, "only the last state stays: %q", screen(p.log.String(), 10_000))
		})
	}
}
