//go:build booth && linux

package main

import (
	"context"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

// pair is a load generator against one simulated cluster, with another one as its
// end user: real processes, all of them.
type pair struct {
	t       *testing.T
	bin     string
	logs    string
	ports   []int // of the end user: frontend, three workers, three GPU pages
	endUser *process.Process
	client  *api.Client
}

func (p *pair) start(name, program string, args ...string) *process.Process {
	p.t.Helper()
	started, err := process.Start(process.Command{Name: name, Path: filepath.Join(p.bin, program), Args: args, Log: filepath.Join(p.logs, name+".log")})
	require.NoError(p.t, err)
	p.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		started.Stop(ctx)
		if p.t.Failed() {
			p.t.Logf("%s:\n%s", name, process.Tail(filepath.Join(p.logs, name+".log")))
		}
	})
	return started
}

// cluster starts a simulated cluster, and waits until it serves.
func (p *pair) cluster(name string, ports []int) *process.Process {
	p.t.Helper()
	started := p.start(name, "booth", "cluster", "--speed=20", "--port="+strconv.Itoa(ports[0]),
		"--worker-port="+strconv.Itoa(ports[1]), "--gpu-port="+strconv.Itoa(ports[4]))
	ctx, cancel := context.WithTimeout(p.t.Context(), realSoon)
	defer cancel()
	require.NoError(p.t, local.Ready(ctx, "http://"+process.Loopback(ports[0])+"/v1/models", started))
	return started
}

func startPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t: t, bin: boothtest.Programs(t), logs: t.TempDir()}
	ports, err := process.FreePorts(31000, 15)
	require.NoError(t, err)
	p.ports = ports[7:14]
	p.cluster("target", ports[:7])
	p.endUser = p.cluster("end user", p.ports)
	listen := process.Loopback(ports[14])
	p.start("loadgen", "loadgen", "--target-url=http://"+process.Loopback(ports[0]), "--followup-url=http://"+process.Loopback(p.ports[0]),
		"--followup-timeout=2s", "--listen="+listen, "--data-dir="+t.TempDir(), "--concurrency=20", "--target-rps=0", "--start")
	transport := &http.Transport{DisableKeepAlives: true}
	p.client, err = api.NewClient(&http.Client{Transport: transport}, "http://"+listen, "")
	require.NoError(t, err)
	return p
}

// becomes waits for a state of the lane, in which no turn may have failed.
func (p *pair) becomes(what string, holds func(api.LaneStatus) bool) (lane api.LaneStatus) {
	p.t.Helper()
	deadline := time.Now().Add(realSoon)
	for tick := time.NewTicker(100 * time.Millisecond); ; <-tick.C {
		s, err := p.client.Status(p.t.Context())
		if err == nil {
			lane = s.Lanes[0]
			require.Zero(p.t, lane.Totals.Errors, "%s: %v", what, lane.Totals.ErrorsByClass)
			if holds(lane) {
				tick.Stop()
				return lane
			}
		}
		require.True(p.t, time.Now().Before(deadline), "it did not come true: %s; last %+v, %v", what, lane, err)
	}
}

// A second server plays the end user. It hangs, dies in the middle of the run, and
// comes back: no turn fails, and what was asked without it is counted by its cause.
func TestEndUserDies(t *testing.T) {
	p := startPair(t)
	lane := p.becomes("the model asks", func(l api.LaneStatus) bool { return l.Followup.ByModel >= 60 })
	t.Logf("by the model %d, fallbacks %v", lane.Followup.ByModel, lane.Followup.Fallbacks)
	assert.Equal(t, "model at http://"+process.Loopback(p.ports[0]), lane.Corpus.Followup)
	assert.NotEmpty(t, lane.Followup.Model)
	assert.Zero(t, lane.Followup.Fallbacks[api.FollowupConnect]+lane.Followup.Fallbacks[api.FollowupTimeout]+lane.Followup.Fallbacks[api.FollowupMalformed])
	assert.Less(t, lane.Followup.Fallbacks[api.FollowupRepeated], lane.Followup.ByModel/5)
	p.asksAboutAnswers()

	require.NoError(t, syscall.Kill(p.endUser.PID(), syscall.SIGSTOP))
	p.goesOn("it hangs", api.FollowupTimeout)
	p.endUser.Kill()
	p.goesOn("it is dead", api.FollowupConnect)

	p.endUser = p.cluster("end user", p.ports)
	before := p.becomes("it is back", func(l api.LaneStatus) bool { return l.Followup.Problem == "" })
	after := p.becomes("the model asks again", func(l api.LaneStatus) bool { return l.Followup.ByModel >= before.Followup.ByModel+30 })
	t.Logf("by the model %d, fallbacks %v, turns %d", after.Followup.ByModel, after.Followup.Fallbacks, after.Totals.OK)
}

// goesOn waits for 60 turns without the model, some of them for this cause, and
// the others because it is left alone.
func (p *pair) goesOn(what string, cause api.FollowupCause) {
	p.t.Helper()
	before := p.becomes(what, func(l api.LaneStatus) bool { return l.Followup.Problem != "" && l.Followup.Fallbacks[cause] > 0 })
	after := p.becomes(what+", and turns go on", func(l api.LaneStatus) bool {
		return l.Totals.OK >= before.Totals.OK+60 && l.Followup.Fallbacks[api.FollowupPaused] > before.Followup.Fallbacks[api.FollowupPaused]
	})
	p.t.Logf("%s: %s; fallbacks %v, turns %d", what, after.Followup.Problem, after.Followup.Fallbacks, after.Totals.OK)
}

// asksAboutAnswers looks at transcripts: a follow-up quotes the answer before it.
func (p *pair) asksAboutAnswers() {
	p.t.Helper()
	list, err := p.client.Conversations(p.t.Context(), api.ConversationQuery{Status: api.ConversationCompleted, Limit: 5})
	require.NoError(p.t, err)
	require.NotEmpty(p.t, list.Conversations)
	quoting, all := 0, 0
	for _, c := range list.Conversations {
		whole, err := p.client.Conversation(p.t.Context(), c.ID)
		require.NoError(p.t, err)
		for i, turn := range whole.Turns[1:] {
			all++
			if _, rest, found := strings.Cut(turn.UserMessage, `"`); found {
				subject, _, _ := strings.Cut(rest, `"`)
				if strings.Contains(whole.Turns[i].AssistantMessage, subject) {
					quoting++
				}
			}
		}
	}
	p.t.Logf("%d of %d follow-ups quote the answer before them", quoting, all)
	assert.Greater(p.t, 4*quoting, 3*all)
}
