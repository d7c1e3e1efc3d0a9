package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

const (
	pollEvery = 200 * time.Millisecond // while the cluster restarts

	// switchTimeout is how long a switch waits beyond the restart that the cluster
	// announces. A roll-back gets less, since its caller already reports a failure.
	switchTimeout   = time.Minute
	rollBackTimeout = 20 * time.Second
	// busyTimeout bounds the requests for the offers of a busy cluster before a switch.
	busyTimeout = 20 * time.Second
)

// Simulated is the driver for the simulated cluster, which switches itself on
// request: it restarts with empty caches, or its router changes in place. It is safe for concurrent use, and
// requires Close.
type Simulated struct {
	base   *url.URL
	client *http.Client
	log    *slog.Logger
	last   atomic.Pointer[simState] // nil before the first answer

	closing context.Context // ends with Close
	stop    context.CancelFunc
}

// NewSimulated makes the driver for a frontend, its URL with or without /v1. It
// makes no request: the offers are known after the first answer to Current or
// Switch. A nil client means one without credentials. An invalid URL gives an
// [api.FieldError].
func NewSimulated(target string, client *http.Client, log *slog.Logger) (*Simulated, error) {
	u, err := targetURL(target)
	if err != nil {
		return nil, err
	}
	s := &Simulated{base: u.JoinPath("sim", "v1"), client: withMaxBody(client), log: log}
	s.closing, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Name returns "simulated".
func (s *Simulated) Name() string { return "simulated" }

// Offers lists the modes that the cluster reported last, each with every speculation
// that it supports; none before its first answer.
func (s *Simulated) Offers() []api.ModeState {
	if st := s.last.Load(); st != nil {
		return slices.Clone(st.Offers)
	}
	return nil
}

// Simulation describes the cluster as last reported; nil before its first answer.
func (s *Simulated) Simulation() *api.Simulation {
	if st := s.last.Load(); st != nil {
		return &api.Simulation{Profile: st.Profile, Calibrated: st.Calibrated, Speed: st.Speed}
	}
	return nil
}

// Abilities returns what the simulated cluster can do. All modes have the same workers.
func (s *Simulated) Abilities() workload.Abilities {
	return workload.Abilities{
		SwitchWarm: s.SwitchWarm, InPlace: s.InPlace, SameWorkers: workload.Always,
		Current: s.Current, Simulation: s.Simulation, Decisions: s.Decisions,
	}
}

// Current returns the cluster's mode, or the mode after a restart in progress. A
// target that is no simulated cluster gives an [api.FieldError] for mode.driver.
// Other errors may be temporary.
func (s *Simulated) Current(ctx context.Context) (api.ModeState, error) {
	st, err := s.state(ctx)
	return st.ModeState, err
}

// Decisions returns the latest decisions of the cluster's router, newest first, at
// most limit. It gives [api.ErrUnavailable] where the cluster does not answer.
func (s *Simulated) Decisions(ctx context.Context, limit int) ([]api.RoutingDecision, error) {
	var list api.DecisionList
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if _, err := s.call(ctx, http.MethodGet, "decisions", query, nil, &list); err != nil {
		// The request was valid, so the error is not a client's.
		return nil, fmt.Errorf("%w: the decisions cannot be read: %s", api.ErrUnavailable, err.Error())
	}
	return list.Decisions, nil
}

// Switch requests a mode and waits until the cluster is ready in it. The caches are
// empty afterwards, unless the cluster was already in that mode, against the
// caller's knowledge, and did not restart. A switch from a mode to itself restarts.
// A mode that is not offered, or that the cluster refuses, gives an
// [api.FieldError]; the end of ctx gives its cause. A switch that fails after the
// cluster may have begun it is rolled back before Switch returns, within seconds
// beyond the restart. Close cuts the roll-back short.
func (s *Simulated) Switch(
	ctx context.Context, from, to api.ModeState, report func(phase, message string),
) (cold bool, err error) {
	query := url.Values{}
	if from == to {
		query.Set("restart", "true")
	}
	return s.switchBy(ctx, query, from, to, report)
}

// InPlace reports whether only the router changes: another speculation restarts the
// workers.
func (s *Simulated) InPlace(from, to api.ModeState) bool { return from.Speculation == to.Speculation }

// SwitchWarm changes the router's mode in place if that is possible. Otherwise it is
// Switch.
func (s *Simulated) SwitchWarm(
	ctx context.Context, from, to api.ModeState, report func(phase, message string),
) (cold bool, err error) {
	query := url.Values{}
	if s.InPlace(from, to) {
		query.Set("in_place", "true")
	}
	return s.switchBy(ctx, query, from, to, report)
}

// switchBy requests a mode with a query, and rolls back a change that fails.
func (s *Simulated) switchBy(
	ctx context.Context, query url.Values, from, to api.ModeState, report func(phase, message string),
) (cold bool, err error) {
	progress := func(message string) { report("switching", message) }
	if err := s.checkReachable(ctx, progress); err != nil {
		return false, err
	}
	if err := offered(s.Offers(), to); err != nil {
		return false, err
	}
	begun, cold, err := s.changeMode(ctx, query, to, switchTimeout, progress)
	if err == nil || !begun {
		return cold, err
	}
	rollBack := func(message string) { report("rolling_back", message) }
	query.Del("restart")
	_, _, rollBackErr := s.changeMode(s.closing, query, from, rollBackTimeout, rollBack)
	if rollBackErr != nil {
		s.log.Warn("the simulated cluster could not be switched back", "to", describe(from), "error", rollBackErr)
		return false, workload.NotSwitchedBack(err, from.Name(), rollBackErr)
	}
	return false, fmt.Errorf("%w; it was switched back to %s", err, from.Name())
}

// checkReachable requests the offers, since the known ones may belong to another
// cluster. It retries a busy cluster; a cluster that is not there fails at once.
func (s *Simulated) checkReachable(ctx context.Context, progress func(string)) error {
	return poll(ctx, busyTimeout, progress, func(ctx context.Context) (string, error) {
		_, err := s.state(ctx)
		if errors.Is(err, api.ErrLate) {
			return transient(err)
		}
		return "", err
	})
}

// Close ends the driver. A roll-back in progress is abandoned.
func (s *Simulated) Close() {
	s.stop()
	s.client.CloseIdleConnections()
}

// changeMode requests a mode and waits until the cluster is ready in it. begun is false
// where the cluster refused.
func (s *Simulated) changeMode(ctx context.Context, query url.Values, to api.ModeState, timeout time.Duration,
	progress func(string),
) (begun, cold bool, err error) {
	progress("asking the simulated cluster for " + to.Name())
	restartTime, cold, err := s.requestMode(ctx, query, to, timeout, progress)
	if err != nil {
		refused := errors.As(err, new(*refusal)) || errors.As(err, new(*api.FieldError))
		return !refused, false, err
	}
	if err := s.waitReady(ctx, to, timeout+restartTime, progress); err != nil {
		return true, false, err
	}
	return true, cold, nil
}

// requestMode requests a mode until the cluster has taken or refused it. The request
// can be repeated safely. It returns the time until the restart ends, and whether
// there is a restart.
func (s *Simulated) requestMode(ctx context.Context, query url.Values, to api.ModeState, timeout time.Duration,
	progress func(string),
) (restartTime time.Duration, cold bool, err error) {
	err = poll(ctx, timeout, progress, func(ctx context.Context) (string, error) {
		var st simState
		status, err := s.call(ctx, http.MethodPut, "mode", query, to, &st)
		if err != nil {
			return transient(err)
		}
		restartTime = time.Duration(st.ReadyIn * float64(time.Second))
		cold = status == http.StatusAccepted || !st.Ready
		return "", nil
	})
	return restartTime, cold, err
}

// waitReady waits until the cluster is ready in a mode.
func (s *Simulated) waitReady(ctx context.Context, mode api.ModeState, timeout time.Duration,
	progress func(string),
) error {
	return poll(ctx, timeout, progress, func(ctx context.Context) (string, error) {
		st, err := s.state(ctx)
		switch {
		case err != nil:
			return transient(err)
		case !st.Ready:
			return fmt.Sprintf("the simulated cluster is restarting: %.0f s left", math.Ceil(st.ReadyIn)), nil
		case st.ModeState != mode:
			return "", fmt.Errorf("the simulated cluster is in %s: it was restarted or switched from elsewhere", st.Name())
		}
		return "", nil
	})
}

// poll calls try until it returns an empty message, and returns its error. progress
// receives each message that differs from the previous one. At the end of timeout or
// ctx the error contains the last message.
func poll(ctx context.Context, timeout time.Duration, progress func(string),
	try func(context.Context) (string, error),
) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %s", timeout))
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for last := "it has not answered"; ; {
		message, err := try(ctx)
		if message == "" {
			return err
		}
		if message != last && ctx.Err() == nil {
			last = message
			progress(message)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%s)", context.Cause(ctx), last)
		case <-tick.C:
		}
	}
}

// transient turns an error that a retry may resolve into a message, and returns any
// other error. A cluster that restarts may answer every call with 503.
func transient(err error) (message string, lasting error) {
	var refused *refusal
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &refused) && refused.status == http.StatusServiceUnavailable:
		return "the simulated cluster is restarting", nil
	case errors.As(err, &refused), errors.As(err, new(*api.FieldError)):
		return "", err
	}
	return "the simulated cluster does not answer: " + err.Error(), nil
}

// simState is the part of the cluster's reported state that the driver uses.
type simState struct {
	api.ModeState
	Ready      bool            `json:"ready"`
	ReadyIn    float64         `json:"ready_in_seconds"`
	Offers     []api.ModeState `json:"offers"`
	Profile    string          `json:"profile"`
	Calibrated bool            `json:"calibrated"`
	Speed      float64         `json:"speed"`
}

// state requests the cluster's state and keeps it.
func (s *Simulated) state(ctx context.Context) (st simState, err error) {
	if _, err := s.call(ctx, http.MethodGet, "state", nil, nil, &st); err != nil {
		return st, err
	}
	if st.Mode == "" || len(st.Offers) == 0 {
		return st, s.notSimulated("its state has no mode or no offers")
	}
	s.last.Store(&st)
	return st, nil
}

// refusal is an answer that reports a failure, with the cluster's message.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return "the simulated cluster reports: " + r.message }

// call makes one call of the cluster's API. It gives a *refusal where the cluster
// refuses, an [api.FieldError] for a mode that it does not support or where the
// target is no simulated cluster, and the transport's error otherwise.
func (s *Simulated) call(
	ctx context.Context, method, path string, query url.Values, in, out any,
) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	u := s.base.JoinPath(path)
	u.RawQuery = query.Encode()
	req, err := newRequest(ctx, method, u, in)
	if err != nil {
		return 0, err
	}
	res, err := s.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", u.Redacted(), readable(err))
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", u.Redacted(), readable(err))
	}
	if res.StatusCode/100 != 2 {
		return res.StatusCode, s.refused(res, text, in)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return res.StatusCode, s.notSimulated(err.Error())
	}
	return res.StatusCode, nil
}

// newRequest makes a request, with a JSON body unless in is nil.
func newRequest(ctx context.Context, method string, u *url.URL, in any) (*http.Request, error) {
	if in == nil {
		return http.NewRequestWithContext(ctx, method, u.String(), http.NoBody)
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

// refused makes an error of an answer that reports a failure.
func (s *Simulated) refused(res *http.Response, text []byte, in any) error {
	var problem struct {
		Message string `json:"message"`
	}
	known := json.Unmarshal(text, &problem) == nil && problem.Message != ""
	mode, asked := in.(api.ModeState)
	switch {
	case res.StatusCode == http.StatusNotFound, res.StatusCode == http.StatusMethodNotAllowed:
		return s.notSimulated("answered " + res.Status)
	case !known:
		return &refusal{res.StatusCode, res.Status}
	case asked && (res.StatusCode == http.StatusBadRequest || res.StatusCode == http.StatusUnprocessableEntity):
		return api.Refuse("mode", describe(mode), problem.Message)
	}
	return &refusal{res.StatusCode, problem.Message}
}

// notSimulated returns the error for a target that is no simulated cluster. Retries do not help.
func (s *Simulated) notSimulated(why string) error {
	return api.Refuse("mode.driver", s.Name(),
		fmt.Sprintf("manual or pinned, since the target is no simulated cluster; %s: %s",
			s.base.JoinPath("state").Redacted(), why))
}
