package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The command check asks the server of a run, or that of each arm, for an answer, and fails where a run would.
func TestCheckAsksTheServer(t *testing.T) {
	good, bad := startTarget(t), startTarget(t)
	good.gap.Store(int64(20 * time.Millisecond))
	code, stdout, stderr := command(t, "check", "--target", "--target-url="+good.URL)
	assert.Equal(t, success, code, stderr)
	for _, line := range []string{
		"  ok       it serves the model llama\n", "  ok       an answer of 3 tokens: the first after ",
		"  ok       the router is NVIDIA Dynamo\n",
	} {
		assert.Contains(t, stdout, line)
	}
	assert.NotContains(t, stdout, "cached tokens")
	bad.breaks(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no key", http.StatusUnauthorized) })
	code, stdout, stderr = command(t, "check", "--target", "--mode-driver=endpoints", "--mode-endpoints=kv="+good.URL+
		",round_robin="+bad.URL)
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, "a run would fail")
	assert.Regexp(t, `kv, http://\S+\n  ok `, stdout)
	assert.Regexp(t, `round_robin, http://\S+\n  problem .*401`, stdout)
}

// A sweep of a server needs no driver and no arm: it measures the server as it is.
func TestSweepOfOneServer(t *testing.T) {
	server := startTarget(t)
	server.cached.Store(0) // a span that is not cold does not count
	server.words.Store(1)
	server.gap.Store(int64(2 * time.Second))
	p := newProgram(t, "sweep", "--target-url="+server.URL, "--levels=2", "--repeats=1", "--warm-up=0s", "--span=1s",
		"--snapshots=1", "--turns-min=1", "--turns-max=1", "--start-rate=1000", "--target-rps=0")
	code, stdout, stderr := p.finish()
	assert.Equal(t, success, code, stderr)
	assert.Contains(t, stderr, "server at 2: mean TTFT ")
	assert.Contains(t, stdout, "| server |")
}

// Without a terminal, no sweep waits for a person who switches the mode.
func TestSwitchByHandNeedsTerminal(t *testing.T) {
	for _, args := range [][]string{{"trial"}, {"sweep", "--modes=kv"}, {"capacity", "--mode-mode=kv"}} {
		code, _, stderr := command(t, append(args, "--target-url=http://127.0.0.1:1")...)
		assert.Equal(t, badInput, code)
		assert.Contains(t, stderr, "mode.driver: manual is not allowed: another driver, since a switch by hand cannot be "+
			"confirmed without a terminal")
	}
}
