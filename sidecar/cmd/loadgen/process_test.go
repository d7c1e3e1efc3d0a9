//go:build unix

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/internal/output"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/whatif"
)

// childVariable makes the test binary the load generator itself.
const childVariable = "KVBOOTH_LOADGEN_TEST_CHILD"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == whatif.Command { // a child of a load generator of these tests
		main()
	}
	if os.Getenv(childVariable) != "" {
		if len(os.Args) < 2 || os.Args[1] != string(config.Joined) { // which a load generator started, whose end is its own
			go endWithParent()
		}
		main()
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "16") // what these tests do is wait for other processes
	goleak.VerifyTestMain(m)
}

// endWithParent ends a load generator whose test was killed.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(99)
}

// soon is when every condition has come true even on a machine that is busy.
const soon = time.Minute

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool, tell ...func() string) {
	t.Helper()
	deadline := time.After(soon)
	tick := time.NewTicker(100 * time.Millisecond) // each look costs the other process something
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			for _, more := range tell {
				what += "\n" + more()
			}
			t.Fatalf("it did not come true: %s", what)
		}
	}
}

// command is a load generator that is not started yet, with an environment of its
// own: what the variables of whoever runs the tests are does not matter.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, args...)
	cmd.Env = []string{childVariable + "=1", "HOME=" + t.TempDir(), "GORACE=atexit_sleep_ms=0"}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdin = r
	t.Cleanup(func() {
		_ = w.Close()
		_ = r.Close()
	})
	return cmd
}

// finish runs a load generator that ends by itself.
func finish(t *testing.T, cmd *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, log output.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	require.NoError(t, cmd.Start())
	timer := time.AfterFunc(soon, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), out.String(), log.String()
}

// program is a load generator that runs.
type program struct {
	t       *testing.T
	cmd     *exec.Cmd
	log     output.Buffer // its standard error
	dir     string        // of its data
	address string
	http    *http.Client
	client  *api.Client
	ended   chan struct{}
}

// newProgram makes one that is not started yet.
func newProgram(t *testing.T) *program {
	t.Helper()
	p := &program{
		t: t, cmd: command(t), dir: filepath.Join(t.TempDir(), "data"),
		http: &http.Client{Transport: new(http.Transport)}, ended: make(chan struct{}),
	}
	p.cmd.Stderr = &p.log
	return p
}

// start starts a load generator on a free port and returns when it is up. It ends
// with the test.
func start(t *testing.T, target string, args ...string) *program {
	t.Helper()
	return newProgram(t).start(target, args...)
}

// start is given what is not to be as it is for most tests: a data directory of
// its own, and conversations that are short.
func (p *program) start(target string, args ...string) *program {
	p.t.Helper()
	for _, arg := range args {
		if dir, ok := strings.CutPrefix(arg, "--data-dir="); ok {
			p.dir = dir
		}
	}
	p.cmd.Args = append(p.cmd.Args, "--target-url="+target, "--listen=127.0.0.1:0", "--data-dir="+p.dir, "--turns-min=1", "--turns-max=2")
	p.cmd.Args = append(p.cmd.Args, args...)
	require.NoError(p.t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	p.t.Cleanup(p.kill)
	p.address = p.says(`load generator started" address=(https?://\S+)`)
	p.client = p.as("")
	return p
}

// as is a client with a token.
func (p *program) as(token string) *api.Client {
	c, err := api.NewClient(p.http, p.address, token)
	require.NoError(p.t, err)
	return c
}

// says waits for a line of the log, and gives its first submatch.
func (p *program) says(pattern string) (match string) {
	p.t.Helper()
	expression := regexp.MustCompile(pattern)
	p.until("it says "+pattern, func() bool {
		found := expression.FindStringSubmatch(p.log.String())
		if found != nil {
			match = found[len(found)-1]
		}
		return found != nil
	})
	return match
}

func (p *program) until(what string, holds func() bool) {
	p.t.Helper()
	until(p.t, what, holds, p.log.String, func() string {
		if p.client == nil {
			return ""
		}
		s, err := p.client.Status(p.t.Context())
		return fmt.Sprintf("%+v %v", s.Lanes, err)
	})
}

// kill kills it, and waits for its end. It may have ended.
func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
	p.http.CloseIdleConnections()
}

// stop asks it to end, and gives its exit code.
func (p *program) stop(s os.Signal) int {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
	return p.code()
}

// code waits for its end.
func (p *program) code() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(soon):
		p.t.Fatalf("it does not end\n%s", &p.log)
	}
	return p.cmd.ProcessState.ExitCode()
}

// endsWell stops it as an operator does.
func (p *program) endsWell() {
	p.t.Helper()
	require.Equal(p.t, success, p.stop(syscall.SIGTERM), "%s", &p.log)
}

func (p *program) status() api.Status {
	p.t.Helper()
	s, err := p.client.Status(p.t.Context())
	require.NoError(p.t, err, "%s", &p.log)
	return s
}

func (p *program) lane() api.LaneStatus { return p.status().Lanes[0] }

// serves says whether at least n turns went well since the last start.
func (p *program) serves(n int64) func() bool {
	return func() bool { return p.lane().Totals.OK >= n }
}

// unready is why /readyz says that the target cannot serve, "" where it can.
func (p *program) unready() string {
	p.t.Helper()
	err := p.client.Ready(p.t.Context())
	if err == nil {
		return ""
	}
	var problem *api.ProblemError
	require.ErrorAs(p.t, err, &problem)
	require.Equal(p.t, http.StatusServiceUnavailable, problem.Status)
	return problem.Detail
}

func (p *program) ready() bool { return p.unready() == "" }

// families is the page of metrics.
func (p *program) families() map[string]*dto.MetricFamily {
	p.t.Helper()
	res, err := p.http.Get(p.address + "/metrics")
	require.NoError(p.t, err)
	defer res.Body.Close()
	require.Equal(p.t, http.StatusOK, res.StatusCode)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(res.Body)
	require.NoError(p.t, err)
	return families
}

// metric is a counter or gauge: the sum of its series with the label's value, or
// of all of them without a label.
func (p *program) metric(name string, label ...string) (sum float64) {
	p.t.Helper()
	for _, m := range p.families()[name].GetMetric() {
		if len(label) == 0 || hasLabel(m, label[0], label[1]) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

func hasLabel(m *dto.Metric, name, value string) bool {
	for _, l := range m.GetLabel() {
		if l.GetName() == name && l.GetValue() == value {
			return true
		}
	}
	return false
}

// turns is the raw data of all turns.
func (p *program) turns() string {
	p.t.Helper()
	var csv bytes.Buffer
	require.NoError(p.t, p.client.TurnsCSV(p.t.Context(), &csv, "", 0))
	return csv.String()
}

// conversations are all that are listed, newest first.
func (p *program) conversations() (all []api.Conversation) {
	p.t.Helper()
	for q := (api.ConversationQuery{Limit: 200}); ; {
		page, err := p.client.Conversations(p.t.Context(), q)
		require.NoError(p.t, err)
		all = append(all, page.Conversations...)
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return all
		}
	}
}

// exists says whether there is such a file.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}
