package main

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
)

// The help and bad input start nothing.
func TestCommandLine(t *testing.T) {
	for _, row := range []struct {
		intent string
		args   []string
		code   int
		says   string
	}{
		{"the help", []string{"--help"}, success, "--levels=60,120"},
		{"what the bounds are", []string{"--help"}, success, "hit rates within 3 points, shares"},
		{"a level of none", []string{"--levels=0"}, badInput, "levels: 0 is not allowed: 1 to 1000"},
		{"too short a span", []string{"--seconds=5"}, badInput, "seconds: 5 is not allowed: 10 to 3600"},
		{"a negative warm-up", []string{"--warm-up=-1"}, badInput, "warm-up: -1 is not allowed"},
		{"an unknown mode", []string{"--modes=kv,random"}, badInput, "--modes"},
		{"an unknown flag", []string{"--fast"}, badInput, "--fast"},
	} {
		t.Run(row.intent, func(t *testing.T) {
			var out bytes.Buffer
			assert.Equal(t, row.code, run(t.Context(), row.args, &out, &out))
			assert.Contains(t, strings.Join(strings.Fields(out.String()), " "), row.says, "lines are broken anywhere")
		})
	}
}

func TestMissingPrograms(t *testing.T) {
	t.Chdir(t.TempDir())
	var out bytes.Buffer
	assert.Equal(t, failure, run(t.Context(), nil, &out, &out))
	assert.Contains(t, out.String(), "build it first: go tool mage build")
}

func TestPlan(t *testing.T) {
	got := plan(options{Levels: []int{60, 120}, Modes: []api.Mode{api.ModeKV, api.ModeRoundRobin}})
	assert.Equal(t, []setting{{60, api.ModeKV}, {60, api.ModeRoundRobin}, {120, api.ModeKV}, {120, api.ModeRoundRobin}}, got)
	assert.Equal(t, "60 conversations, kv", got[0].String())
}

// Ports in a row: one that is taken moves the whole row behind it.
func TestConsecutive(t *testing.T) {
	first, err := consecutive(firstPort, 4)
	require.NoError(t, err)
	l := listen(t, local.Loopback(first+2))
	defer l.Close()
	moved, err := consecutive(first, 4)
	require.NoError(t, err)
	assert.Greater(t, moved, first+2)
}

// Without a terminal there is a line now and then, and one for each start.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, 8)
	p.next("simulated, 60 conversations, kv")
	for left := 100 * time.Second; left > 0; left -= time.Second {
		p.left(left)
	}
	p.done()
	p.next("real Dynamo, 60 conversations, kv")
	assert.Equal(t, `1 of 8: simulated, 60 conversations, kv: starting
1 of 8: simulated, 60 conversations, kv: 100 s left
1 of 8: simulated, 60 conversations, kv: 70 s left
1 of 8: simulated, 60 conversations, kv: 40 s left
1 of 8: simulated, 60 conversations, kv: 10 s left
2 of 8: real Dynamo, 60 conversations, kv: starting
`, out.String())
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	return l
}
