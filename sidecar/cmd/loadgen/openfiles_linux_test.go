package main

import (
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/server"
)

func TestOpenFilesAreDivided(t *testing.T) {
	for _, row := range []struct{ limit, each, connections, conversations int }{
		{0, 1, server.DefaultConnections, math.MaxInt},
		{256, 1, 64, 128},
		{256, 2, 64, 64},
		{80, 1, 20, 0},
		{1 << 20, 1, server.DefaultConnections, 1<<20 - server.DefaultConnections - keptBack},
	} {
		f := divide(row.limit, row.each)
		assert.Equal(t, [2]int{row.connections, row.conversations}, [2]int{f.connections, f.conversations}, "%+v", row)
		require.NoError(t, f.check("concurrency", row.conversations))
	}
	f := divide(256, 1)
	assert.EqualError(
		t, f.check("concurrency", 129),
		"concurrency: 129 is not allowed: at most 128, because this process may open only 256 files (ulimit -n); "+
			"for 129, raise the limit to 705",
	)
}

// limitOpenFiles lets a process open at most n files.
func limitOpenFiles(p *program, n int) *program {
	p.cmd.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, n)}, p.cmd.Args...)
	p.cmd.Path = "/bin/sh"
	return p
}

// A load generator with as many conversations as its limit of open files allows serves an operator besides 900 callers
// without a token that never complete their bodies. More conversations are refused at the start and by the API.
func TestOperatorIsServedAtTheLimitOfOpenFiles(t *testing.T) {
	code, _, stderr := limitOpenFiles(newProcess(t, someTarget, "--concurrency=129"), 256).finish()
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, "loadgen: concurrency: 129 is not allowed: at most 128, because")

	target := startTarget(t)
	target.gap.Store(int64(100 * time.Millisecond))
	target.words.Store(20)
	p := limitOpenFiles(newProcess(t, "--concurrency=128", "--start-rate=1000", "--target-rps=0", "--start",
		"--target-url="+target.URL, "--turns-min=1", "--turns-max=2"), 256)
	p.cmd.Env = append(p.cmd.Env, "LOADGEN_TOKEN="+token)
	p.launch().connect(token)
	p.prints("open_files=256 most_conversations=128")
	p.eventually("every conversation is in a turn", func() bool { return target.inside.Load() >= 128 })
	for range 900 {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.address, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = io.WriteString(c, "POST "+api.Prefix+"/workload/stop HTTP/1.1\r\nHost: localhost\r\n"+
			"Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{")
		require.NoError(t, err)
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	p.http.CloseIdleConnections()
	p.http.Transport = &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	p.connect(token)
	state, err := p.client.Patch(wait.Context(t), "", api.WorkloadPatch{Level: new(api.AtConversations(8))})
	require.NoError(t, err)
	assert.Equal(t, api.AtConversations(8), state.Concurrency.Target)
	_, patch := p.client.Patch(t.Context(), "", api.WorkloadPatch{Level: new(api.AtConversations(129))})
	_, begin := p.client.Start(t.Context(), "", api.StartRequest{Level: new(api.AtConversations(129))})
	_, settings := p.client.PatchSettings(
		t.Context(), api.SettingsPatch{MaxConcurrency: new(129), Slider: &api.Slider{Min: 1, Max: 100, Increment: 1}},
	)
	for _, err := range []error{patch, begin, settings} {
		var field *api.FieldError
		require.ErrorAs(t, err, &field)
		assert.Contains(t, field.Allowed, "at most 128, because this process may open only 256 files")
	}
	p.eventually("turns end", p.serves(128))
	assert.Zero(t, p.lane().Totals.Errors)
	assert.True(t, p.status().Store.OK)
	assert.NotContains(t, p.log.String(), "too many open files")
	p.endsWell()
}
