//go:build unix

package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// refuse answers with a status, and with a message as OpenAI's servers give it.
func refuse(status int, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"message":%q}}`, message)
	}
}

// stream answers with a begun stream and these events.
func stream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		begin(w)
		for _, event := range events {
			send(w, event)
		}
	}
}

// hang waits for the client to go.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

const isTheURLRight = "is target.url the address of an OpenAI-compatible API?"

// fault is a way in which a target can fail.
type fault struct {
	class  api.ErrorClass
	says   []string // what happened, and what to do
	serve  http.HandlerFunc
	begins bool // it answers with a token first, after which pauses begin anew
	atOnce bool // it is there from the beginning, too, and told before any turn
	flags  []string
}

// faults has every class.
var faults = map[string]fault{
	"hangs up": {class: api.ErrorConnect, says: []string{"the server did not answer", "check the server's log"}, serve: hijack("")},
	"accepts and says nothing": {
		class: api.ErrorTimeout, says: []string{"no first token within 2s", "or target.first_token_timeout is too short"}, serve: hang,
		atOnce: true, flags: []string{"--target-first-token-timeout=2s"},
	},
	"stalls in mid-answer": {
		class: api.ErrorStall, says: []string{"fell silent for 2s in mid-answer", "or target.stall_timeout is too short"},
		serve: func(w http.ResponseWriter, r *http.Request) {
			stream(oneWord)(w, r)
			hang(w, r)
		},
		begins: true, flags: []string{"--target-stall-timeout=2s"},
	},
	"limits the rate": {
		class: api.ErrorRateLimited, says: []string{"(429, retry after 1s): slow down; lower concurrency or target_rps"},
		serve: refuse(http.StatusTooManyRequests, "slow down"),
	},
	"wrong key": {
		class: api.ErrorHTTP4xx, says: []string{"rejects the API key (401): bad key; set LOADGEN_TARGET_API_KEY or target.api_key_file"},
		serve: refuse(http.StatusUnauthorized, "bad key"), atOnce: true,
	},
	"model not found": {
		class: api.ErrorHTTP4xx, says: []string{`has no model "llama"`, "set target.model to a model that it serves"},
		serve: refuse(http.StatusNotFound, "no such model"), atOnce: true,
	},
	"no worker": {
		class: api.ErrorHTTP5xx, says: []string{"(503, retry after 1s): no instances; check the server's log"},
		serve: refuse(http.StatusServiceUnavailable, "no instances"),
	},
	"error inside an answer": {
		class: api.ErrorStream, says: []string{"reported an error inside its answer: out of memory"},
		serve: stream(oneWord, `{"error":{"message":"out of memory"}}`), begins: true,
	},
	"ends in mid-answer":  {class: api.ErrorTruncated, says: []string{"ended without [DONE]"}, serve: stream(oneWord), begins: true},
	"garbage":             {class: api.ErrorMalformed, says: []string{isTheURLRight}, serve: hijack("\x15\x03\x01\x00\x02\x02\x16"), atOnce: true},
	"garbage in a stream": {class: api.ErrorMalformed, says: []string{"not a chat completion chunk (<b>)", isTheURLRight}, serve: stream("<b>")},
	"never stops talking": {
		class: api.ErrorOverrun, says: []string{"had not ended after 2s", "or target.turn_timeout is too short"},
		serve: func(w http.ResponseWriter, r *http.Request) {
			begin(w)
			for wait(r, 100*time.Millisecond) {
				send(w, oneWord)
			}
		},
		begins: true, flags: []string{"--target-turn-timeout=2s"},
	},
	"a web page": {
		class: api.ErrorMalformed, says: []string{"the server did not stream: it sent text/html", isTheURLRight},
		serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>Welcome</html>")
		},
	},
}

// A target that begins to fail is told with its class and with what to do, by
// /readyz, status, metrics and the turns; it is not stormed; and when it works
// again, the workload goes on without help. A key or model that is wrong from the
// beginning is told before any turn.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startTarget(t)
			server.gap.Store(int64(200 * time.Millisecond))
			if fault.atOnce {
				server.breaks(fault.serve)
			}
			p := start(t, server.URL, append(fault.flags, "--concurrency=2", "--start-rate=1000", "--turns-max=1")...)
			if fault.atOnce {
				p.until("/readyz says why", func() bool { return mentions(p.unready(), fault.says) })
				assert.Zero(t, p.metric("loadgen_requests_total"))
				server.works()
				p.until("it is ready", p.ready)
			}
			_, err := p.client.Start(t.Context(), "", api.StartRequest{})
			require.NoError(t, err)
			p.until("it serves", func() bool { return p.serves(2)() && p.ready() })

			asked, began := server.asked.Load(), time.Now()
			server.breaks(fault.serve)
			p.until("turns fail", func() bool { return p.metric("loadgen_errors_total", "class", string(fault.class)) > 0 })
			var lane api.LaneStatus
			p.until("/readyz and the status say why", func() bool { // a turn that was under way may yet end well
				lane = p.lane()
				return !lane.Target.Reachable && mentions(lane.Target.Problem, fault.says) && mentions(p.unready(), fault.says)
			})
			seconds, perSecond := int64(time.Since(began).Seconds()), int64(1)
			if fault.begins {
				perSecond = 10
			}
			assert.Less(t, server.asked.Load()-asked, 20+perSecond*seconds, "a target that fails is left in peace")
			assert.True(t, lane.State.Running, "the workload waits")
			p.until("the turns say why", func() bool {
				turns := strings.ReplaceAll(p.turns(), `""`, `"`)
				return mentions(turns, append(fault.says, ",error,"+string(fault.class)+","))
			})

			server.works()
			ok := p.lane().Totals.OK
			p.until("it serves again", func() bool { return p.serves(ok+2)() && p.ready() })
			assert.True(t, p.lane().Target.Reachable)
			p.endsWell()
		})
	}
}

func mentions(text string, all []string) bool {
	for _, s := range all {
		if !strings.Contains(text, s) {
			return false
		}
	}
	return true
}

// A target that is down at the start is waited for, without a storm of attempts,
// in whatever mode the workload is to run.
func TestTargetDownAtStart(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		args []string
		mode api.Mode
	}{
		"a mode that nobody told": {nil, api.ModeUnknown},
		"round-robin by pinning":  {[]string{"--mode-driver=pinned", "--mode-mode=round_robin"}, api.ModeRoundRobin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := holdPort(t)
			p := start(t, "http://"+port.address(), append(row.args, "--concurrency=8", "--start-rate=100", "--start")...)
			if row.mode == api.ModeUnknown {
				p.says("8 conversations, Mode unknown")
			}
			says := []string{"cannot connect to " + port.address() + ": connection refused; is the server running, and is target.url right?"}
			p.until("/readyz says why", func() bool { return mentions(p.unready(), says) })
			p.until("turns fail", func() bool { return p.metric("loadgen_errors_total", "class", string(api.ErrorConnect)) > 2 })
			p.until("a few seconds have passed", func() bool { return p.status().UptimeSeconds > 3 })
			s := p.status()
			limit := 20 + 2*int64(s.UptimeSeconds)
			assert.Less(t, s.Lanes[0].Totals.Errors, limit, "pauses grow")
			assert.Equal(t, s.Lanes[0].Totals.Errors, s.Lanes[0].Totals.ErrorsByClass[api.ErrorConnect])
			assert.True(t, s.Lanes[0].State.Running)

			server := newTarget(t)
			require.NoError(t, server.Listener.Close())
			server.Config.Handler, server.Listener = server, port.listen()
			server.Start()
			p.until("it runs as it was meant to", func() bool {
				l := p.lane()
				return l.State.Running && l.State.Mode == row.mode && l.State.Step.Settled != nil && l.Totals.OK > 8
			})
			assert.True(t, p.ready())
			assert.Equal(t, "llama", p.lane().Target.Model)
			if row.mode == api.ModeRoundRobin {
				assert.Positive(t, server.pinned.Load())
			}
			p.endsWell()
		})
	}
}
