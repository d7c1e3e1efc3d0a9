//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/sidecar/local"
	"kvbooth/sidecar/local/localtest"
)

func TestMain(m *testing.M) {
	localtest.Main()
	if filepath.Base(os.Args[0]) == "loadgen" {
		os.Exit(playLoadgen(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// Variables that make the played load generator misbehave.
const (
	refuses = "BOOTHTEST_REFUSES" // `check` fails with this message
	locked  = "BOOTHTEST_LOCKED"  // it ends with 2
)

// playLoadgen stands in for the load generator: it answers /healthz.
func playLoadgen(args []string) int {
	if args[0] == "check" {
		if words := os.Getenv(refuses); words != "" {
			fmt.Fprintln(os.Stderr, words)
			return 2
		}
		return 0
	}
	if os.Getenv(locked) != "" {
		fmt.Fprintln(os.Stderr, "loadgen: the data directory is in use")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var address string
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--listen="); ok {
			address = value
		}
	}
	fmt.Println("pid", os.Getpid(), strings.Join(args, " "))
	server := &http.Server{Addr: address, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	_ = server.ListenAndServe()
	if ctx.Err() == nil {
		return 1
	}
	return 0
}

// buffer is a writer that a test reads while the booth writes.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// running is a booth that runs within the test, against played programs.
type running struct {
	t           *testing.T
	dir         string
	out, err    buffer
	stop, hurry context.CancelFunc
	ended       chan int
}

const soon = 20 * time.Second

// runBooth starts `booth dynamo` with played programs, on free ports.
func runBooth(t *testing.T, more ...string) *running {
	t.Helper()
	t.Setenv(local.VenvVariable, localtest.Venv(t))
	t.Setenv("TMPDIR", t.TempDir())
	r := &running{t: t, dir: t.TempDir(), ended: make(chan int, 1)}
	ctx, stop := context.WithCancel(t.Context())
	hurry, hurryUp := context.WithCancel(context.Background())
	r.stop, r.hurry = stop, hurryUp
	port := 10_000 + rand.IntN(15_000)
	args := append([]string{
		"dynamo", "--cache-dir=" + r.dir, "--frontend-port=" + strconv.Itoa(port),
		"--worker-port=" + strconv.Itoa(port+10), "--port=" + strconv.Itoa(port+20),
	}, more...)
	go func() { r.ended <- run(ctx, hurry, args, &r.out, &r.err) }()
	t.Cleanup(hurryUp)
	return r
}

// says waits until the booth has written what matches, and gives the match.
func (r *running) says(b *buffer, pattern string) []string {
	r.t.Helper()
	expression := regexp.MustCompile(pattern)
	var match []string
	require.Eventually(r.t, func() bool {
		match = expression.FindStringSubmatch(b.String())
		return match != nil
	}, soon, 10*time.Millisecond, "%s\n%s", &r.out, &r.err)
	return match
}

// code waits for the booth's end.
func (r *running) code() int {
	r.t.Helper()
	select {
	case code := <-r.ended:
		return code
	case <-time.After(soon):
		r.t.Fatalf("it does not end: %s\n%s", &r.out, &r.err)
		return 0
	}
}

// log is what a child wrote.
func (r *running) log(name string) string {
	content, _ := os.ReadFile(filepath.Join(r.dir, "dynamo", "logs", name+".log"))
	return string(content)
}

func linkLoadgen(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(filepath.Dir(self), "loadgen")
	require.NoError(t, os.Symlink(self, path))
	t.Cleanup(func() { _ = os.Remove(path) })
}

// It comes up, says where to look, and leaves nothing behind.
func TestBooth(t *testing.T) {
	linkLoadgen(t)
	r := runBooth(t, "--concurrency=120", "--engine=vllm")
	frontend := r.says(&r.out, `frontend +(http://127\.0\.0\.1:\d+), metrics`)[1]
	generator := r.says(&r.out, `load generator +(http://127\.0\.0\.1:\d+)/api/v1/status.*keeps 120 conversations`)[1]
	r.says(&r.out, `worker-3 +http://127\.0\.0\.1:\d+/metrics\n`)
	r.says(&r.out, `logs +`+filepath.Join(r.dir, "dynamo", "logs"))
	r.says(&r.out, `Ctrl-C stops all of it`)

	args := r.log("loadgen")
	for _, arg := range []string{
		"--target-url=" + frontend, "--concurrency=120", "--start=true", "--mode-driver=pinned", "--mode-mode=kv",
		"--output-tokens-mean=830", "--output-tokens-cv=.15", "--deployment-engine=mock of vllm", "--deployment-gpu=mock of H200",
		"--deployment-workers=3", "--baseline-default=h200x3-tp1-llama70b-fp8",
	} {
		assert.Contains(t, args, arg)
	}
	assert.Len(t, regexp.MustCompile(`http://[^,]+/metrics`).FindAllString(args, -1), 3)

	r.stop()
	assert.Equal(t, success, r.code())
	for _, url := range []string{frontend + "/health", generator} {
		_, err := http.Get(url)
		assert.ErrorIs(t, err, syscall.ECONNREFUSED, url)
	}
}

// The router's other modes are the frontend's own, which nothing switches.
func TestBoothInAnotherMode(t *testing.T) {
	linkLoadgen(t)
	r := runBooth(t, "--mode=round_robin", "--no-start")
	r.says(&r.out, `router in mode round_robin(.|\n)*load generator.*waits to be started`)
	for _, arg := range []string{"--mode-driver=manual", "--mode-offers=round_robin", "--mode-mode=round_robin", "--start=false"} {
		assert.Contains(t, r.log("loadgen"), arg)
	}
	r.stop()
	assert.Equal(t, success, r.code())
}

// What is killed comes back, and is named.
func TestBoothRestartsWhatEnds(t *testing.T) {
	linkLoadgen(t)
	r := runBooth(t)
	r.says(&r.out, `Ctrl-C`)
	for log, name := range map[string]string{"loadgen": "the load generator", "worker-2": "worker-2", "frontend": "the frontend"} {
		pid, err := strconv.Atoi(regexp.MustCompile(`(?m)^pid (\d+)`).FindStringSubmatch(r.log(log))[1])
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		r.says(&r.err, strings.TrimPrefix(name, "the ")+` ended: signal: killed(.|\n)*`+name+` is restarted in 1s`)
	}
	for _, name := range []string{"the load generator", "worker-2", "the frontend"} {
		r.says(&r.err, name+` is back`)
	}
	r.stop()
	assert.Equal(t, success, r.code())
}

// What cannot run is given up, with its own words, and the rest is stopped.
func TestBoothGivesUp(t *testing.T) {
	linkLoadgen(t)
	t.Run("a worker that does not start", func(t *testing.T) {
		t.Setenv(localtest.Broken, "dynamo.mocker")
		r := runBooth(t)
		assert.Equal(t, failure, r.code())
		assert.Contains(t, r.err.String(), "dynamo.mocker is broken on purpose")
	})
	t.Run("a load generator whose folder is in use", func(t *testing.T) {
		t.Setenv(locked, "yes")
		r := runBooth(t)
		assert.Equal(t, failure, r.code())
		assert.Contains(t, r.err.String(), "the data directory is in use")
	})
}

// What the caller can mend is said before anything is started: exit code 2.
func TestBoothRefuses(t *testing.T) {
	t.Run("without a load generator", func(t *testing.T) {
		r := runBooth(t)
		assert.Equal(t, badInput, r.code())
		assert.Contains(t, r.err.String(), "go tool mage build")
	})
	linkLoadgen(t)
	t.Run("what the load generator refuses", func(t *testing.T) {
		t.Setenv(refuses, "loadgen: concurrency: 0 is not allowed")
		r := runBooth(t, "--concurrency=0")
		assert.Equal(t, badInput, r.code())
		assert.Contains(t, r.err.String(), "booth: nothing was started: loadgen: concurrency: 0 is not allowed")
	})
	t.Run("what Dynamo refuses", func(t *testing.T) {
		r := runBooth(t, "--workers=65")
		assert.Equal(t, badInput, r.code())
		assert.Contains(t, r.err.String(), "workers: 65 is not allowed: 1 to 64")
	})
	t.Run("a mode that does not exist", func(t *testing.T) {
		r := runBooth(t, "--mode=fast")
		assert.Equal(t, badInput, r.code())
		assert.Contains(t, r.err.String(), `--mode must be one of "kv","round_robin","least_loaded"`)
	})
	t.Run("a second booth in one folder", func(t *testing.T) {
		r := runBooth(t)
		r.says(&r.out, `Ctrl-C`)
		var out, errOut buffer
		assert.Equal(t, badInput, run(t.Context(), t.Context(), []string{"dynamo", "--cache-dir=" + r.dir}, &out, &errOut))
		assert.Contains(t, errOut.String(), "another booth is running in "+r.dir)
		r.stop()
		assert.Equal(t, success, r.code())
	})
}

// Ctrl-C while it starts ends it too, and is no failure.
func TestBoothStoppedEarly(t *testing.T) {
	linkLoadgen(t)
	t.Setenv(localtest.Hangs, "dynamo.frontend")
	r := runBooth(t)
	r.says(&r.err, `starting NVIDIA Dynamo`)
	r.stop()
	assert.Equal(t, success, r.code())
}

// The second Ctrl-C waits for nobody.
func TestBoothHurries(t *testing.T) {
	linkLoadgen(t)
	r := runBooth(t)
	r.says(&r.out, `Ctrl-C`)
	r.hurry()
	r.stop()
	began := time.Now()
	assert.Equal(t, success, r.code())
	assert.Less(t, time.Since(began), stopWithin)
}

func TestHelp(t *testing.T) {
	var out, errOut buffer
	assert.Equal(t, success, run(t.Context(), t.Context(), []string{"dynamo", "--help"}, &out, &errOut))
	for _, words := range []string{"--concurrency=60", "--[no-]start", "KVBOOTH_DYNAMO_VENV", "LOADGEN_TURNS_MAX"} {
		assert.Contains(t, out.String(), words)
	}
	assert.Equal(t, badInput, run(t.Context(), t.Context(), nil, &out, &errOut))
}

// Pauses double; too many restarts within ten minutes are the last; then it begins anew.
func TestRestarts(t *testing.T) {
	var r restarts
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, want := range []time.Duration{1, 2, 4, 8, 16} {
		pause, ok := r.next(now)
		assert.True(t, ok)
		assert.Equal(t, want*time.Second, pause)
		now = now.Add(time.Minute)
	}
	_, ok := r.next(now)
	assert.False(t, ok)
	pause, ok := r.next(now.Add(restartWindow))
	assert.True(t, ok)
	assert.Equal(t, time.Second, pause)
}

// A child that is not mended is tried again; one that cannot be is not.
func TestSupervise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Time
		exits := make(chan error, 1)
		exits <- errors.New("crashed")
		c := child{
			name: "child", exits: exits, running: func() bool { return false }, say: t.Logf,
			restart: func(context.Context) error {
				if tries = append(tries, time.Now()); len(tries) == 1 {
					return errors.New("not ready")
				}
				return fmt.Errorf("%w: bad flag", errFinal)
			},
		}
		began := time.Now()
		err := c.supervise(t.Context())
		assert.ErrorContains(t, err, "child cannot be kept running: it would not run again either: bad flag")
		assert.Equal(t, []time.Time{began.Add(time.Second), began.Add(3 * time.Second)}, tries)
	})
}

// A late word of an end that has been mended wakes nobody, and ctx ends it all.
func TestSuperviseIgnoresOldNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		exits := make(chan error, 1)
		exits <- errors.New("crashed")
		c := child{exits: exits, running: func() bool { return true }}
		ended := make(chan error)
		go func() { ended <- c.supervise(ctx) }()
		synctest.Wait()
		assert.Empty(t, exits)
		cancel()
		assert.NoError(t, <-ended)
	})
}
