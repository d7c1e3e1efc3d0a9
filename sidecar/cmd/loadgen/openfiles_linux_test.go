package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// limitOpenFiles lets a load generator open no more than n files.
func limitOpenFiles(cmd *exec.Cmd, n int) {
	cmd.Path = "/bin/sh"
	cmd.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, n)}, cmd.Args...)
}

// connect opens a connection to the API from an address of this machine.
func (p *program) connect(from string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return d.DialContext(p.t.Context(), "tcp", strings.TrimPrefix(p.address, "http://"))
}

// A concurrency that the limit of open files does not allow is refused, however it
// is asked for, in words that name the limit.
func TestOpenFiles(t *testing.T) {
	t.Parallel()
	const allowed = "at most 128, because this process may open only 256 files (ulimit -n); for 129, raise the limit to 705"
	cmd := command(t, someTarget, "--listen=127.0.0.1:0", "--data-dir="+t.TempDir(), "--concurrency=129")
	limitOpenFiles(cmd, 256)
	code, _, stderr := finish(t, cmd)
	assert.Equal(t, badInput, code)
	assert.Equal(t, "loadgen: concurrency: 129 is not allowed: "+allowed+"\n", stderr)

	p := newProgram(t)
	limitOpenFiles(p.cmd, 256)
	p.start("http://127.0.0.1:1", "--concurrency=60")
	p.says("open_files=256 most_conversations=128")
	_, patch := p.client.Patch(t.Context(), "", api.WorkloadPatch{Concurrency: new(129)})
	_, start := p.client.Start(t.Context(), "", api.StartRequest{Concurrency: new(129)})
	_, settings := p.client.PatchSettings(t.Context(), api.SettingsPatch{MaxConcurrency: new(129), Slider: &api.Slider{Min: 1, Max: 100, Increment: 1}})
	for _, err := range []error{patch, start, settings} {
		var field *api.FieldError
		require.ErrorAs(t, err, &field)
		assert.Equal(t, allowed, field.Allowed)
	}
	assert.Equal(t, 60, p.lane().State.Concurrency.Target)
	_, err := p.client.PatchSettings(t.Context(), api.SettingsPatch{Title: new("max_concurrency is 1000, as it was")})
	require.NoError(t, err)
	p.endsWell()
}

// With as many conversations as the limit of open files allows, and 900 callers
// without a token that never send the rest of their bodies, an operator gets an
// answer at once and can lower the load. The crowd would take from other tests what
// they wait for.
func TestOperatorsGetIn(t *testing.T) {
	server := startTarget(t)
	server.gap.Store(int64(100 * time.Millisecond))
	server.words.Store(20)
	p := newProgram(t)
	limitOpenFiles(p.cmd, 256)
	p.cmd.Env = append(p.cmd.Env, "LOADGEN_TOKEN="+token)
	p.start(server.URL, "--concurrency=128", "--start-rate=1000", "--target-rps=0", "--start")
	p.client = p.as(token)
	p.until("every conversation is in a turn", func() bool { return server.inside.Load() >= 128 })
	for range 900 {
		c, err := p.connect("127.0.0.1")
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = io.WriteString(c, "POST "+api.Prefix+"/workload/stop HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{")
		require.NoError(t, err)
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	operator, err := api.NewClient(&http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}, p.address, token)
	require.NoError(t, err)
	began := time.Now()
	state, err := operator.Patch(t.Context(), "", api.WorkloadPatch{Concurrency: new(8)})
	require.NoError(t, err)
	assert.Less(t, time.Since(began), 3*time.Second, "three times what is wanted")
	assert.Equal(t, 8, state.Concurrency.Target)
	p.until("turns end", p.serves(128))
	assert.Zero(t, p.lane().Totals.Errors)
	assert.True(t, p.status().Store.OK)
	assert.NotContains(t, p.log.String(), "too many open files")
	p.endsWell()
}
