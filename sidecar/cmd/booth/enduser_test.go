//go:build booth && linux

package main

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

// pair is a load generator against one simulated cluster, with another one as its end user, all as real processes.
type pair struct {
	t      *testing.T
	bin    string
	client *api.Client
}

// cluster starts a simulated cluster.
func (p *pair) cluster(name string) *boothtest.Part {
	p.t.Helper()
	cluster := &boothtest.Part{
		Prints: regexp.MustCompile(`cluster frontend +http://([0-9.:]+)`), Ready: "http://" + boothtest.AnyPort + "/v1/models",
		Command: process.Command{
			Name: name, Path: filepath.Join(p.bin, "booth"), Log: boothtest.Log(p.t, name),
			Args: []string{"cluster", "--speed=20", "--port=0", "--worker-port=0", "--gpu-port=0"},
		},
	}
	cluster.Run(p.t)
	return cluster
}

// becomes waits for a state of the lane. A turn that failed ends the test.
func (p *pair) becomes(what string, holds func(api.LaneStatus) bool) (lane api.LaneStatus) {
	p.t.Helper()
	wait.Eventually(p.t, what, func() (any, bool) {
		s, err := p.client.Status(p.t.Context())
		if err != nil {
			return err, false
		}
		lane = s.Lanes[0]
		require.Zero(p.t, lane.Totals.Errors, "%s: %v", what, lane.Totals.ErrorsByClass)
		return lane.Followup, holds(lane)
	})
	return lane
}

// A second server asks the follow-up questions. While it is gone no turn fails, and questions that come from a list
// instead are counted with the cause. Once it is back it asks again.
func TestEndUserIsKilled(t *testing.T) {
	p := &pair{t: t, bin: boothtest.Programs(t)}
	target, endUser := p.cluster("target"), p.cluster("end-user")
	loadgen := &boothtest.Part{
		Prints: boothtest.LoadgenPrints, Ready: "http://" + boothtest.AnyPort + "/readyz",
		Command: process.Command{
			Name: "the load generator", Path: filepath.Join(p.bin, "loadgen"), Log: boothtest.Log(t, "loadgen"),
			Args: []string{
				"--target-url=" + target.URL(), "--followup-url=" + endUser.URL(), "--followup-timeout=2s",
				"--listen=" + boothtest.AnyPort, "--data-dir=" + t.TempDir(), "--concurrency=20", "--target-rps=0", "--start",
			},
		},
	}
	loadgen.Run(t)
	var err error
	p.client, err = api.NewClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, loadgen.URL(), "")
	require.NoError(t, err)

	lane := p.becomes("the model asks", func(l api.LaneStatus) bool { return l.Followup.ByModel >= 60 })
	assert.Equal(t, "model at "+endUser.URL(), lane.Corpus.Followup)
	assert.NotEmpty(t, lane.Followup.Model)
	p.asksAboutAnswers()

	endUser.Kill()
	before := p.becomes("it is gone", func(l api.LaneStatus) bool {
		return l.Followup.Problem != "" && l.Followup.Fallbacks[api.FollowupConnect] > 0
	})
	p.becomes("turns go on without it", func(l api.LaneStatus) bool {
		paused := l.Followup.Fallbacks[api.FollowupPaused] - before.Followup.Fallbacks[api.FollowupPaused]
		return l.Totals.OK >= before.Totals.OK+60 && paused > 0
	})
	endUser.Start(t)
	before = p.becomes("it is back", func(l api.LaneStatus) bool { return l.Followup.Problem == "" })
	p.becomes("the model asks again", func(l api.LaneStatus) bool {
		return l.Followup.ByModel >= before.Followup.ByModel+30
	})
}

// asksAboutAnswers holds most follow-ups against the answer before them, which they quote.
func (p *pair) asksAboutAnswers() {
	p.t.Helper()
	query := api.ConversationQuery{Status: api.ConversationCompleted, Limit: 5}
	list, err := p.client.Conversations(p.t.Context(), query)
	require.NoError(p.t, err)
	require.NotEmpty(p.t, list.Conversations)
	quoting, all := 0, 0
	for _, c := range list.Conversations {
		whole, err := p.client.Conversation(p.t.Context(), c.ID)
		require.NoError(p.t, err)
		for i, turn := range whole.Turns[1:] {
			all++
			_, rest, found := strings.Cut(turn.UserMessage, `"`)
			subject, _, _ := strings.Cut(rest, `"`)
			if found && strings.Contains(whole.Turns[i].AssistantMessage, subject) {
				quoting++
			}
		}
	}
	assert.Greater(p.t, 4*quoting, 3*all, "%d of %d follow-ups quote the answer before them", quoting, all)
}
