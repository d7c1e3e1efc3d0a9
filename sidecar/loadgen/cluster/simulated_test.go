package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

var rrEagle = api.ModeState{Mode: api.ModeRoundRobin, Speculation: api.SpeculationEagle3}

// admin implements the admin calls of a simulated cluster as an http.RoundTripper, for tests in virtual time.
type admin struct {
	t *testing.T

	mu      sync.Mutex
	mode    api.ModeState
	offers  []api.ModeState
	restart time.Duration
	ready   time.Time
	strict  bool                                 // no call is answered during a restart
	fault   func(http.ResponseWriter) (end bool) // called before every answer to a change
	gone    bool
	lossy   bool // a request takes effect, and its answer is lost
	busy    bool // no call is answered before its caller's timeout
	asked   []api.ModeState
}

func newAdmin(t *testing.T) *admin {
	return &admin{t: t, mode: kvOff, offers: []api.ModeState{kvOff, rrOff, rrEagle}, restart: 3 * time.Second}
}

func (a *admin) set(change func(*admin)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

// puts returns the modes requested so far.
func (a *admin) puts() []api.ModeState {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}

func (a *admin) RoundTrip(req *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy {
		a.mu.Unlock()
		<-req.Context().Done()
		a.mu.Lock()
		return nil, req.Context().Err()
	}
	if a.gone || req.Context().Err() != nil {
		return nil, errors.New("connection refused")
	}
	rec := httptest.NewRecorder()
	a.answer(rec, req)
	if a.lossy {
		return nil, errors.New("connection reset")
	}
	return rec.Result(), nil
}

func (a *admin) answer(w http.ResponseWriter, req *http.Request) {
	if left := time.Until(a.ready); a.strict && left > 0 {
		writeProblem(w, http.StatusServiceUnavailable, "restarting")
		return
	}
	switch req.Method + " " + req.URL.Path {
	case "GET /sim/v1/state":
		a.writeState(w, http.StatusOK)
	case "PUT /sim/v1/mode":
		a.change(w, req)
	case "GET /sim/v1/decisions":
		fmt.Fprintf(w, `{"decisions":[{"request_id":"main-1","mode":"kv","chosen":1,`+
			`"candidates":[{"worker":"7"},{"worker":"18446744073709551615"}]},{"request_id":"limit %s"}]}`,
			req.URL.Query().Get("limit"))
	default:
		http.NotFound(w, req)
	}
}

func (a *admin) writeState(w http.ResponseWriter, status int) {
	left := max(0, time.Until(a.ready))
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"mode": a.mode.Mode, "speculation": a.mode.Speculation, "offers": a.offers,
		"ready": left == 0, "ready_in_seconds": left.Seconds(), "profile": "h200-tp1", "workers": []any{},
		"calibrated": a.mode == kvOff, "speed": 2,
	})
}

func (a *admin) change(w http.ResponseWriter, req *http.Request) {
	var to api.ModeState
	body := json.NewDecoder(req.Body)
	body.DisallowUnknownFields()
	if err := body.Decode(&to); err != nil || req.Header.Get("Content-Type") != "application/json" {
		a.t.Errorf("PUT /sim/v1/mode has an invalid body or no JSON content type: %v", err)
	}
	a.asked = append(a.asked, to)
	switch {
	case a.fault != nil && a.fault(w):
	case req.URL.Query().Get("in_place") == "true":
		a.mode = to
		a.writeState(w, http.StatusOK)
	case to == a.mode && req.URL.Query().Get("restart") != "true":
		a.writeState(w, http.StatusOK)
	default:
		a.mode, a.ready = to, time.Now().Add(a.restart)
		a.writeState(w, http.StatusAccepted)
	}
}

func writeProblem(w http.ResponseWriter, status int, message string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"message":%q,"type":"t","code":%d}`, message, status)
}

// simulated makes a driver on a transport, without a network.
func simulated(t *testing.T, transport http.RoundTripper) *Simulated {
	t.Helper()
	s, err := NewSimulated("http://127.0.0.1:8000/v1", &http.Client{Transport: transport}, discard)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// reportRecorder collects the reports of a switch, each as "phase: message".
type reportRecorder struct {
	mu  sync.Mutex
	all []string
}

func (h *reportRecorder) report(phase, message string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, phase+": "+message)
}

func (h *reportRecorder) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.all, "\n")
}

func TestSimulatedReportsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmin(t)
		s := simulated(t, a)
		require.Nil(t, s.Abilities().Instance)
		require.Empty(t, s.Offers(), "nothing is known before the cluster has answered")
		require.Nil(t, s.Simulation())

		mode, err := s.Current(t.Context())
		require.NoError(t, err)
		require.Equal(t, kvOff, mode)
		require.Equal(t, a.offers, s.Offers())
		require.Equal(t, &api.Simulation{Profile: "h200-tp1", Calibrated: true, Speed: 2}, s.Simulation())

		a.set(func(a *admin) { a.mode = rrEagle })
		cold, err := s.Switch(t.Context(), rrEagle, rrEagle, ignoreReport)
		require.NoError(t, err)
		require.True(t, cold, "from a mode to itself, it restarts")
		require.False(t, s.Simulation().Calibrated, "the calibration is that of the mode in force")

		decisions, err := s.Decisions(t.Context(), 20)
		require.NoError(t, err)
		require.Len(t, decisions, 2)
		require.Equal(t, "18446744073709551615", decisions[0].Candidates[decisions[0].Chosen].Worker)
		require.Equal(t, "limit 20", decisions[1].RequestID)
	})
	for name, do := range map[string]func(*http.Request) (*http.Response, error){
		"refused": refused, "another server": scene{}.RoundTrip,
	} {
		_, err := simulated(t, &fakeTransport{do: do}).Decisions(t.Context(), 5)
		require.ErrorIs(t, err, api.ErrUnavailable, name)
		require.NotErrorAs(t, err, new(*api.FieldError), name)
	}
}

func TestSimulatedSwitchWaitsForRestart(t *testing.T) {
	for name, strict := range map[string]bool{
		"reports its state during the restart": false,
		"answers nothing during the restart":   true,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAdmin(t)
				a.strict = strict
				s, h, begun := simulated(t, a), new(reportRecorder), time.Now()
				cold, err := s.Switch(t.Context(), kvOff, rrEagle, h.report)
				require.NoError(t, err)
				require.True(t, cold)
				require.InDelta(t, 3, time.Since(begun).Seconds(), pollEvery.Seconds())
				const asking = "switching: asking the simulated cluster for Round-robin with EAGLE-3"
				const restarting = "\nswitching: the simulated cluster is restarting"
				want := asking + restarting + ": 3 s left" + restarting + ": 2 s left" + restarting + ": 1 s left"
				if strict {
					want = asking + restarting
				}
				require.Equal(t, want, h.text(), "each message is reported once")
				require.Equal(t, []api.ModeState{rrEagle}, a.puts())

				begun = time.Now()
				cold, err = s.Switch(t.Context(), kvOff, rrEagle, ignoreReport)
				require.NoError(t, err)
				require.False(t, cold, "the cluster was in that mode already, with warm caches")
				require.Zero(t, time.Since(begun))
			})
		})
	}
}

// With another speculation the workers restart; else the router changes in place.
func TestSimulatedSwitchWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmin(t)
		s, begun := simulated(t, a), time.Now()
		require.True(t, s.InPlace(kvOff, rrOff))
		cold, err := s.SwitchWarm(t.Context(), kvOff, rrOff, ignoreReport)
		require.NoError(t, err)
		require.False(t, cold)
		require.Zero(t, time.Since(begun))
		require.False(t, s.InPlace(rrOff, rrEagle))
		cold, err = s.SwitchWarm(t.Context(), rrOff, rrEagle, ignoreReport)
		require.NoError(t, err)
		require.True(t, cold)
		require.InDelta(t, 3, time.Since(begun).Seconds(), pollEvery.Seconds())
		require.Equal(t, []api.ModeState{rrOff, rrEagle}, a.puts())
	})
}

// A refusal returns at once, with the cluster's message, and changes nothing.
func TestSimulatedSwitchRefused(t *testing.T) {
	answer := func(status int, words string) func(*admin) {
		return func(a *admin) {
			a.fault = func(w http.ResponseWriter) bool { writeProblem(w, status, words); return true }
		}
	}
	page := func(status int, text string) http.RoundTripper { return &fakeTransport{do: answers(status, text)} }
	for name, row := range map[string]struct {
		prepare func(*admin)
		other   http.RoundTripper // replaces the cluster
		to      api.ModeState     // the zero value means rrOff
		field   string            // of the api.FieldError; empty for another error
		want    string
		puts    int
	}{
		"not offered": {
			to: api.ModeState{Mode: "random"}, field: "mode", want: "kv with speculation off, round_robin with speculation off",
		},
		"no longer offered": {
			prepare: func(a *admin) { a.offers = a.offers[:2] }, to: rrEagle, field: "mode", want: "kv with speculation off",
		},
		"a mode it cannot take": {
			prepare: answer(http.StatusBadRequest, "no draft model"), field: "mode", want: "no draft model", puts: 1,
		},
		"an internal error": {
			prepare: answer(http.StatusInternalServerError, "disk full"), puts: 1,
			want: "the simulated cluster reports: disk full",
		},
		"a host it is not": {other: page(http.StatusForbidden, `{"message":"loopback only"}`), want: "loopback only"},
		"no words":         {other: page(http.StatusBadGateway, "<html>"), want: "502 Bad Gateway"},
		"another server": {
			other: scene{}, field: "mode.driver", want: "http://127.0.0.1:8000/sim/v1/state: answered 404 Not Found",
		},
		"another program": {other: page(http.StatusOK, "<html>"), field: "mode.driver", want: "no simulated cluster"},
		"another API":     {other: page(http.StatusOK, "{}"), field: "mode.driver", want: "no mode or no offers"},
		"refused":         {other: &fakeTransport{do: refused}, want: "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAdmin(t)
				s := simulated(t, a)
				_, err := s.Current(t.Context())
				require.NoError(t, err)
				if row.prepare != nil {
					row.prepare(a)
				}
				if row.other != nil {
					s = simulated(t, row.other)
				}
				h, begun := new(reportRecorder), time.Now()
				cold, err := s.Switch(t.Context(), kvOff, cmp.Or(row.to, rrOff), h.report)
				require.ErrorContains(t, err, row.want)
				require.False(t, cold)
				require.Zero(t, time.Since(begun))
				require.NotContains(t, h.text(), "rolling_back")
				require.Len(t, a.puts(), row.puts)
				var field *api.FieldError
				if require.Equal(t, row.field != "", errors.As(err, &field), "%v", err); field != nil {
					require.Equal(t, row.field, field.Field)
				}
			})
		})
	}
}

// A switch survives a cluster that does not answer for a while. A switch that fails half way is rolled back before it
// returns, except after Close.
func TestSimulatedSwitchInterrupted(t *testing.T) {
	gone := errors.New("stopped by the operator")
	type action func(a *admin, s *Simulated, cancel context.CancelCauseFunc)
	onPut := func(trouble func(a *admin)) func(*admin) { // the lock of a is held
		return func(a *admin) { a.fault = func(http.ResponseWriter) bool { trouble(a); return false } }
	}
	heal := func(a *admin, _ *Simulated, _ context.CancelCauseFunc) {
		a.gone, a.lossy, a.busy, a.fault = false, false, false, nil
	}
	giveUp := func(_ *admin, _ *Simulated, cancel context.CancelCauseFunc) { cancel(gone) }
	const silent = "the simulated cluster does not answer: http://127.0.0.1:8000/sim/v1/"
	const back, asking = "it was switched back to KV-aware", "\nrolling_back: asking the simulated cluster for KV-aware"
	there, thereAndBack := []api.ModeState{rrOff}, []api.ModeState{rrOff, kvOff}
	for name, row := range map[string]struct {
		begin       func(*admin)
		after       time.Duration
		then        action
		fails, says []string
		puts        []api.ModeState
		took        time.Duration // within 7 s
	}{
		"lost in the restart": {
			begin: onPut(func(a *admin) { a.gone = true }), after: 10 * time.Second, then: heal,
			says: []string{silent}, took: 10 * time.Second, puts: there,
		},
		"the answer to the request lost": {
			begin: onPut(func(a *admin) { a.lossy = true }), after: 10 * time.Second, then: heal,
			says: []string{silent}, took: 10 * time.Second,
		},
		"busy at first": {
			begin: func(a *admin) { a.busy = true }, after: 5 * time.Second, then: heal,
			says: []string{"no answer in time"}, took: 8 * time.Second, puts: there,
		},
		"never back": {
			begin: onPut(func(a *admin) { a.gone = true }),
			fails: []string{"timed out after 1m", "connection refused", "switching it back to KV-aware also failed"},
			says:  []string{asking},
			took:  switchTimeout + 3*time.Second + rollBackTimeout, puts: there,
		},
		"given up in a restart": {
			after: time.Second, then: giveUp, fails: []string{gone.Error(), back},
			says: []string{"\nrolling_back: the simulated cluster is restarting"}, took: 4 * time.Second, puts: thereAndBack,
		},
		"given up in a restart that takes no calls": {
			begin: func(a *admin) { a.strict = true }, after: time.Second, then: giveUp, fails: []string{gone.Error(), back},
			says: []string{"\nrolling_back: the simulated cluster is restarting"}, took: 6 * time.Second, puts: thereAndBack,
		},
		"restarted in another mode": {
			after: time.Second,
			then:  func(a *admin, _ *Simulated, _ context.CancelCauseFunc) { a.mode, a.ready = rrEagle, time.Now() },
			fails: []string{"is in Round-robin with EAGLE-3: it was restarted or switched from elsewhere", back},
			says:  []string{asking}, took: 4 * time.Second, puts: thereAndBack,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, h := newAdmin(t), new(reportRecorder)
				s := simulated(t, a)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if row.begin != nil {
					row.begin(a)
				}
				if row.then != nil {
					time.AfterFunc(row.after, func() { a.set(func(a *admin) { row.then(a, s, cancel) }) })
				}
				begun := time.Now()
				cold, err := s.Switch(ctx, kvOff, rrOff, h.report)
				require.InDelta(t, row.took.Seconds(), time.Since(begun).Seconds(), 7)
				for _, words := range row.fails {
					require.ErrorContains(t, err, words)
					require.False(t, cold)
				}
				for _, words := range row.says {
					require.Contains(t, h.text(), words)
				}
				if row.puts != nil {
					require.Equal(t, row.puts, a.puts())
				}
				want := kvOff
				if row.fails == nil {
					require.NoError(t, err)
					require.NotContains(t, h.text(), "rolling_back")
					want = rrOff
				}
				if mode, err := s.Current(t.Context()); err == nil {
					require.Equal(t, want, mode)
					require.False(t, time.Now().Before(a.ready), "turns may be sent again")
				}
			})
		})
	}
}

func TestSimulatedCloseSkipsRollBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmin(t)
		s := simulated(t, a)
		ctx, cancel := context.WithCancel(t.Context())
		context.AfterFunc(ctx, s.Close)
		time.AfterFunc(time.Second, cancel)
		begun := time.Now()
		_, err := s.Switch(ctx, kvOff, rrOff, ignoreReport)
		require.ErrorIs(t, err, context.Canceled)
		require.InDelta(t, 1, time.Since(begun).Seconds(), pollEvery.Seconds())
	})
}
