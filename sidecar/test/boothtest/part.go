package boothtest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
)

// AnyPort is the address that a part listens on when it starts for the first time: a free port of loopback.
const AnyPort = "127.0.0.1:0"

// Part is a process of the booth, which a journey can kill and start again. Its methods are safe for concurrent use.
type Part struct {
	// Command listens on AnyPort. A restart replaces AnyPort in its arguments with the address of the first start.
	Command process.Command
	// Prints finds the address, host:port, in the program's output, as the first submatch. nil: it is Listens.
	Prints  *regexp.Regexp
	Listens string
	// Ready is the URL that answers when the part serves, with AnyPort in place of the address. If empty, the part is
	// ready when it prints its address.
	Ready string

	mu      sync.Mutex
	address string
	process *process.Process // nil: not running
}

// startTimeout is the time for a part to start. Grafana creates its database in it, and an engine loads PyTorch.
const startTimeout = 5 * time.Minute

// Run starts a part, which is stopped when the test ends, and returns the submatches of Prints. A failed test logs the
// end of the part's log.
func (p *Part) Run(t *testing.T) (printed []string) {
	t.Helper()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("%s, from %s:\n%s", p.Command.Name, p.Command.Log, process.Tail(p.Command.Log))
		}
	})
	older := size(p.Command.Log)
	require.NoError(t, p.launch())
	if p.Prints == nil {
		p.address = p.Listens
		require.NoError(t, p.ready(t.Context()))
		return nil
	}
	wait.Within(t, startTimeout, p.Command.Name+" prints its address", func() (any, bool) {
		text, err := os.ReadFile(p.Command.Log)
		if err != nil {
			return err, false
		}
		printed = p.Prints.FindStringSubmatch(string(text[older:]))
		return string(text[older:]), printed != nil || p.ended()
	})
	if printed == nil {
		t.Fatalf("%s exited: %v", p.Command.Name, p.process.Wait())
	}
	p.address = printed[1]
	require.NoError(t, p.ready(t.Context()))
	return printed
}

// size returns the size of a file, 0 if there is none.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// URL returns the part's URL.
func (p *Part) URL() string { return "http://" + p.Address() }

// Address returns the part's address, host:port.
func (p *Part) Address() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.address
}

// PID returns the process ID, 0 while the part is not running.
func (p *Part) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		return 0
	}
	return p.process.PID()
}

// launch starts the process.
func (p *Part) launch() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	command := p.Command
	command.Args = nil
	for _, arg := range p.Command.Args {
		command.Args = append(command.Args, p.addressed(arg))
	}
	p.process, err = process.Start(command)
	return err
}

// addressed replaces AnyPort with the part's address, if it has one.
func (p *Part) addressed(text string) string {
	if p.address == "" {
		return text
	}
	return strings.ReplaceAll(text, AnyPort, p.address)
}

// ready waits until the part serves.
func (p *Part) ready(ctx context.Context) error {
	p.mu.Lock()
	url, running := p.addressed(p.Ready), p.process
	p.mu.Unlock()
	if url == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := local.Ready(ctx, url, running); err != nil {
		return fmt.Errorf("%s is not ready: %w", p.Command.Name, err)
	}
	return nil
}

// running reports whether the part was started, and not killed or stopped since.
func (p *Part) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process != nil
}

// ended reports whether the process has ended.
func (p *Part) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.process.Done():
		return true
	default:
		return false
	}
}

// start starts a part that was killed, and waits until it serves.
func (p *Part) start(ctx context.Context) error {
	if p.running() {
		return nil
	}
	if err := p.launch(); err != nil {
		return err
	}
	return p.ready(ctx)
}

// Start starts a part that was killed, and waits until it serves.
func (p *Part) Start(t *testing.T) {
	t.Helper()
	require.NoError(t, p.start(t.Context()))
}

// Kill kills the process.
func (p *Part) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil {
		p.process.Kill()
		p.process = nil
	}
}

// stop stops the process.
func (p *Part) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil {
		stop(p.process)
		p.process = nil
	}
}

// stop stops a process, and kills it after 10 s.
func stop(p *process.Process) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	p.Stop(ctx)
}

// Control serves POST /<part>/kill and POST /<part>/start for journeys and events. The latter answers when the part
// serves.
func Control(t *testing.T, parts map[string]*Part) string {
	t.Helper()
	mux := http.NewServeMux()
	for name, p := range parts {
		mux.HandleFunc("POST /"+name+"/kill", func(http.ResponseWriter, *http.Request) { p.Kill() })
		mux.HandleFunc("POST /"+name+"/start", func(w http.ResponseWriter, r *http.Request) {
			if err := p.start(r.Context()); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}
