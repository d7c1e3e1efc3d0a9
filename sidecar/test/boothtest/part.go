package boothtest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
)

// Part is a process of the booth that a journey may kill and start again. Its
// methods are safe for concurrent use.
type Part struct {
	Command process.Command
	Ready   string // the URL that answers once it serves

	mu      sync.Mutex
	process *process.Process // nil: not running
}

// startWithin is what a part may take to serve. Grafana makes its database.
const startWithin = 2 * time.Minute

// start starts the process, unless it runs, and returns when it serves.
func (p *Part) start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil {
		return nil
	}
	started, err := process.Start(p.Command)
	if err != nil {
		return err
	}
	p.process = started
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if err := local.Ready(ctx, p.Ready, started); err != nil {
		return fmt.Errorf("%s is not ready: %w", p.Command.Name, err)
	}
	return nil
}

// kill ends the process as a crash would.
func (p *Part) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil {
		p.process.Kill()
		p.process = nil
	}
}

// stop asks the process to end.
func (p *Part) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil {
		stop(p.process)
		p.process = nil
	}
}

// stop asks a process to end, and kills one that does not.
func stop(p *process.Process) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	p.Stop(ctx)
}

// Run starts a part, which is stopped when the test ends. A test that failed shows
// the end of its log.
func (p *Part) Run(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("%s, from %s:\n%s", p.Command.Name, p.Command.Log, process.Tail(p.Command.Log))
		}
	})
	if err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the process as a crash would.
func (p *Part) Kill() { p.kill() }

// Start starts a part that was killed.
func (p *Part) Start(t *testing.T) {
	t.Helper()
	if err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// control serves what the journeys do to the parts, by name: POST /<part>/kill and
// POST /<part>/start, which answers when the part serves.
func control(t *testing.T, parts map[string]*Part) string {
	t.Helper()
	mux := http.NewServeMux()
	for name, p := range parts {
		mux.HandleFunc("POST /"+name+"/kill", func(http.ResponseWriter, *http.Request) { p.kill() })
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
