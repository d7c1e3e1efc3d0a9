package main

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbooth/internal/output"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

// screen returns what a terminal with this number of columns shows after text: its lines, the one of the cursor last.
// It supports the sequences that the program uses.
func screen(text string, columns int) []string {
	lines, column, wraps := [][]rune{nil}, 0, true
	for text != "" {
		line := &lines[len(lines)-1]
		switch {
		case strings.HasPrefix(text, "\x1b[K"):
			*line = (*line)[:min(column, len(*line))]
			text = text[3:]
			continue
		case strings.HasPrefix(text, "\x1b[?7l"), strings.HasPrefix(text, "\x1b[?7h"):
			wraps = text[4] == 'h'
			text = text[5:]
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch {
		case r == '\r':
			column = 0
			continue
		case r == '\n':
			lines, column = append(lines, nil), 0 // as on a terminal
			continue
		case column == columns && wraps:
			lines = append(lines, nil)
			line, column = &lines[len(lines)-1], 0
		case column == columns:
			column--
		}
		for len(*line) <= column {
			*line = append(*line, ' ')
		}
		(*line)[column] = r
		column++
	}
	shown := make([]string, len(lines))
	for i, line := range lines {
		shown[i] = strings.TrimRight(string(line), " ")
	}
	return shown
}

func TestDescribe(t *testing.T) {
	stopped := api.LaneSnapshot{State: api.State{
		Phase: api.PhaseStopped, Concurrency: api.Concurrency{Target: api.AtConversations(60)}, Mode: api.ModeKV,
	}}
	running := stopped
	running.State.Running, running.State.Phase, running.State.Concurrency.Actual = true, api.PhaseRunning, 58
	running.Totals.Errors = 2
	held := running
	held.State.Concurrency = api.Concurrency{Target: api.AtConversations(1000), Actual: 52}
	held.State.Step.Held = &api.Held{By: api.LimitedByTargetRPS, At: 53}
	measured := running
	measured.State.Settling = true
	measured.Window = api.Window{
		OutputTokensPerSecond: 1234.5, RequestsPerSecond: 1.25,
		Metrics: api.Metrics{
			TTFT: api.Quantiles{P50: new(.1501), P95: new(1.2)}, TPOT: api.Quantiles{P50: new(.0204), P95: new(.0306)},
		},
	}
	measured.KV.HitRatio = new(.6789)
	unreachable := running
	unreachable.Target.Problem = "cannot connect to x: connection refused"
	switching := stopped
	switching.State.Phase = api.PhaseSwitching
	robin := api.ModeState{Mode: api.ModeRoundRobin}
	switching.State.ModeChange = &api.ModeChange{To: robin, Message: "restart the frontend"}
	const figures = " · TTFT – ms · TPOT – ms · 0 tok/s · 0.00 req/s · KV hit – · errors 2"
	for _, row := range []struct {
		lane    api.LaneSnapshot
		verdict api.Verdict
		want    string
	}{
		{stopped, api.VerdictUnknown, "stopped"},
		{running, api.VerdictFine, "running 58/60 KV-aware" + figures},
		{measured, api.VerdictBottleneck, "running 58/60 KV-aware settling · TTFT 150/1,200 ms · TPOT 20.4/30.6 ms · 1,234 " +
			"tok/s · 1.25 req/s · KV hit 67.9 % · errors 2 · LOAD GENERATOR'S OWN TIMING ERROR TOO LARGE"},
		{unreachable, api.VerdictFine, "running 58/60 KV-aware · target: cannot connect to x: connection refused" + figures},
		{held, api.VerdictFine, "running 52/1000 KV-aware limited by target_rps" + figures},
		{switching, api.VerdictFine, "switching → Round-robin: restart the frontend"},
	} {
		s := api.Snapshot{Lanes: []api.LaneSnapshot{row.lane}, Client: api.ClientHealth{Verdict: row.verdict}}
		assert.Equal(t, row.want, describe(s))
	}
}

func TestFit(t *testing.T) {
	for _, row := range []struct {
		text string
		n    int
		want string
	}{
		{"TTFT – ms", 9, "TTFT – ms"},
		{"TTFT – ms", 8, "TTFT – …"},
		{"TTFT", 1, "…"},
		{"TTFT", 0, "TTFT"}, // the width is not known
		{"TTFT", -1, "TTFT"},
		{"a\x1b[2J\r\n\tb\u202ec\x9b", 80, `a\u001b[2J\u000d\n\tb\u202ec\x9b`}, // a target's message cannot control the terminal
	} {
		assert.Equal(t, row.want, fit(row.text, row.n), "%q", row.text)
	}
}

// Log lines are written before the state, which stays the last line.
func TestTerminal(t *testing.T) {
	var out strings.Builder
	term := &terminal{w: &out}
	log := func(line string) {
		_, err := term.Write([]byte(line + "\n"))
		assert.NoError(t, err)
	}
	log("first")
	term.show("a long state")
	term.show("state")
	assert.Equal(t, []string{"first", "state"}, screen(out.String(), 80))
	log("second")
	log("third")
	assert.Equal(t, []string{"first", "second", "third", ""}, screen(out.String(), 80))
	term.show("state 2")
	assert.Equal(t, []string{"first", "second", "third", "state 2"}, screen(out.String(), 80))
	assert.Equal(t, []string{"first", "second", "third", "state2"}, screen(out.String(), 6),
		"one line even on a narrower terminal")
	term.end()
	term.end()
	log("fourth")
	assert.Equal(t, []string{"first", "second", "third", "state 2", "fourth", ""}, screen(out.String(), 80))
}

// The state is written at once and every second, at the current width of the terminal, and stays at the end.
func TestStatusLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output.Buffer
		var columns atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			statusLine(ctx, &terminal{w: &out}, func() int { return int(columns.Load()) }, func() string {
				return describe(api.Snapshot{Lanes: []api.LaneSnapshot{{State: api.State{Phase: api.PhaseDraining}}}})
			})
		}()
		synctest.Wait()
		assert.Equal(t, []string{"draining"}, screen(out.String(), 80))
		columns.Store(6)
		wait.Advance(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"drai…"}, screen(out.String(), 6))
		cancel()
		<-ended
		assert.Equal(t, []string{"drai…", ""}, screen(out.String(), 6))
	})
}
