//go:build unix

package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/internal/output"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/sim/whatif"
)

// childVariable makes the test binary the load generator itself.
const childVariable = "KVBOOTH_LOADGEN_TEST_CHILD"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == whatif.Command { // a child of a load generator of these tests
		main()
	}
	if os.Getenv(childVariable) != "" {
		if len(os.Args) < 2 || os.Args[1] != string(config.Joined) { // a member ends with its load generator
			go endWithParent()
		}
		main()
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // these tests mostly wait for turns and processes
	goleak.VerifyTestMain(m)
}

// endWithParent ends a load generator whose test was killed.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(99)
}

// program is a load generator: in this process, or in one of its own where a test sends a signal or sets a limit of the
// system.
type program struct {
	t       *testing.T
	cmd     *exec.Cmd // nil: in this process
	environ []string  // in this process
	args    []string
	out     output.Buffer // its standard output
	log     output.Buffer // its standard error
	errors  io.Writer     // the destination of standard error
	listen  string
	dir     string // of its data
	address string
	http    *http.Client
	client  *api.Client

	cancel context.CancelFunc // as a signal; nil: not started
	exit   int
	ended  chan struct{}
}

// newProgram returns a load generator in this process that is not started yet.
func newProgram(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{
		t: t, environ: []string{"HOME=" + t.TempDir()}, args: args, listen: "127.0.0.1:0",
		dir:  filepath.Join(t.TempDir(), "data"),
		http: &http.Client{Transport: new(http.Transport)}, ended: make(chan struct{}),
	}
	p.errors = &p.log
	return p
}

// newProcess returns a load generator in a process of its own that is not started yet.
func newProcess(t *testing.T, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := newProgram(t, args...)
	p.cmd = exec.Command(self)
	p.cmd.Env = []string{childVariable + "=1", p.environ[0], "GORACE=atexit_sleep_ms=0"}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.log
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p.cmd.Stdin = r
	t.Cleanup(func() {
		_ = w.Close()
		_ = r.Close()
	})
	return p
}

// launch starts the load generator with the data directory of the test. It ends with the test.
func (p *program) launch() *program {
	p.t.Helper()
	return p.start("--listen="+p.listen, "--data-dir="+p.dir)
}

// start starts the program with further arguments. It ends with the test.
func (p *program) start(further ...string) *program {
	p.t.Helper()
	args := append(p.args[:len(p.args):len(p.args)], further...)
	if p.cmd != nil {
		p.cmd.Args = append(p.cmd.Args, args...)
		require.NoError(p.t, p.cmd.Start())
		p.cancel = func() { _ = p.cmd.Process.Kill() }
		go func() {
			defer close(p.ended)
			_ = p.cmd.Wait()
			p.exit = p.cmd.ProcessState.ExitCode()
		}()
	} else {
		var ctx context.Context
		ctx, p.cancel = context.WithCancel(context.Background())
		go func() {
			defer close(p.ended)
			p.exit = run(ctx, args, p.environ, &p.out, p.errors)
		}()
	}
	p.t.Cleanup(p.kill)
	return p
}

// serve launches the load generator against a target, with conversations of one or two turns, and returns when its API
// is reachable.
func (p *program) serve(target string) *program {
	p.t.Helper()
	p.args = append(p.args, "--target-url="+target, "--turns-min=1", "--turns-max=2")
	p.launch()
	p.connect("")
	return p
}

// connect reads the address from the log and makes a client with a token.
func (p *program) connect(token string) {
	p.t.Helper()
	p.address = p.prints(`(?:load generator|replay) started" address=(https?://\S+)`)
	var err error
	p.client, err = api.NewClient(p.http, p.address, token)
	require.NoError(p.t, err)
}

// start starts a load generator in this process.
func start(t *testing.T, target string, args ...string) *program {
	t.Helper()
	return newProgram(t, args...).serve(target)
}

// finish runs the load generator to its end.
func (p *program) finish() (code int, stdout, stderr string) {
	p.t.Helper()
	code = p.launch().code()
	return code, p.out.String(), p.log.String()
}

// kill ends it at once, and waits for its exit.
func (p *program) kill() {
	p.cancel()
	<-p.ended
	p.http.CloseIdleConnections()
}

// stop ends it as a signal does, and returns its exit code.
func (p *program) stop(s os.Signal) int {
	p.t.Helper()
	if p.cmd == nil {
		p.cancel()
	} else {
		require.NoError(p.t, p.cmd.Process.Signal(s))
	}
	return p.code()
}

// code waits for its end.
func (p *program) code() int {
	p.t.Helper()
	p.eventually("the load generator ends", func() bool {
		select {
		case <-p.ended:
			return true
		default:
			return false
		}
	})
	return p.exit
}

func (p *program) endsWell() {
	p.t.Helper()
	require.Equal(p.t, success, p.stop(os.Interrupt), "%s", &p.log)
}

// eventually waits for a condition. The last state of a failure is the log with the status.
func (p *program) eventually(what string, holds func() bool) {
	p.t.Helper()
	wait.Eventually(p.t, what, func() (any, bool) { return p, holds() })
}

func (p *program) String() string {
	text := p.log.String()
	if p.client == nil {
		return text
	}
	s, err := p.client.Status(context.Background())
	return fmt.Sprintf("%s\n%+v %v", text, s.Lanes, err)
}

// prints waits for the log to match, and returns the first group of the last match.
func (p *program) prints(pattern string) (match string) {
	p.t.Helper()
	expression := regexp.MustCompile(pattern)
	p.eventually("the log matches "+pattern, func() bool {
		found := expression.FindAllStringSubmatch(p.log.String(), -1)
		if len(found) == 0 {
			return false
		}
		last := found[len(found)-1]
		match = last[len(last)-1]
		return true
	})
	return match
}

func (p *program) status() api.Status {
	p.t.Helper()
	s, err := p.client.Status(p.t.Context())
	require.NoError(p.t, err, "%s", &p.log)
	return s
}

func (p *program) lane() api.LaneStatus { return p.status().Lanes[0] }

// serves reports whether at least n turns have ended well since the last start.
func (p *program) serves(n int64) func() bool {
	return func() bool { return p.lane().Totals.OK >= n }
}

// unready returns the reason in the answer of /readyz, "" where the target can serve.
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

// families returns the parsed page of metrics.
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

// metric returns the sum of the series of a counter or gauge with a label's value, or of all series.
func (p *program) metric(name string, label ...string) (sum float64) {
	p.t.Helper()
	for _, m := range p.families()[name].GetMetric() {
		matches := len(label) == 0
		for _, l := range m.GetLabel() {
			matches = matches || l.GetName() == label[0] && l.GetValue() == label[1]
		}
		if matches {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

// turns returns the raw data of all turns.
func (p *program) turns() string {
	p.t.Helper()
	var csv bytes.Buffer
	require.NoError(p.t, p.client.TurnsCSV(p.t.Context(), &csv, "", 0))
	return csv.String()
}

// conversations returns all listed conversations, newest first.
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
