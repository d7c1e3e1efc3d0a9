package prometheus

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// child is what the test binary is as a Prometheus of its own. It prints its
// address, and ends with the test that started it.
func child(dir string) {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(99)
	}()
	err := Run(context.Background(), Options{
		ConfigFile: filepath.Join(dir, "prometheus.yml"), DataDir: filepath.Join(dir, "data"),
		Listen: "127.0.0.1:0", Retention: MinRetention, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Ready: func(a net.Addr) { fmt.Println(a) },
	})
	fmt.Println(err)
	os.Exit(1)
}

// startChild runs a Prometheus in another process, which kill kills.
func startChild(t *testing.T, dir string) (s *server, kill func()) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childVariable+"="+dir)
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	kill = func() {
		if cmd.ProcessState == nil {
			require.NoError(t, cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
			_ = stdin.Close()
		}
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	s = &server{t: t}
	s.connect(strings.TrimSpace(line))
	return s, kill
}

// After kill -9 the next one has every sample that a query had shown. Where the log
// ends in the middle of a record, as after a loss of power, it has what came before,
// and the one after that finds nothing to mend.
func TestKilled(t *testing.T) {
	t.Parallel()
	const scrapes = "count_over_time(up[1m])"
	for name, lost := range map[string]float64{"clean": 0, "cut": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, Target{Job: "frontend", Address: page(t, text(metrics))})
			first, kill := startChild(t, filepath.Dir(o.ConfigFile))
			first.has(scrapes + " >= 3")
			seen, at := first.value(scrapes), time.Now()
			kill()
			if lost > 0 {
				cutTail(t, lastSegment(t, o.DataDir))
			}
			require.NoError(t, WriteConfig(o.ConfigFile, interval, nil))
			second := start(t, o)
			kept := second.valueAt(scrapes, at)
			assert.GreaterOrEqual(t, kept, seen-lost)
			second.stop()
			o.Log = silent(t)
			assert.InDelta(t, kept, start(t, o).valueAt(scrapes, at), 0)
		})
	}
}

func lastSegment(t *testing.T, dir string) string {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "wal", "0*"))
	require.NoError(t, err)
	require.NotEmpty(t, segments)
	return segments[len(segments)-1]
}

func cutTail(t *testing.T, segment string) {
	t.Helper()
	info, err := os.Stat(segment)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(segment, info.Size()-7))
}
