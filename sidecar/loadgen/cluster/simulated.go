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

	// How long a switch waits for a cluster beyond the restart that it announced.
	// The way back is the shorter one: whoever waits for it wants to know.
	switchPatience   = time.Minute
	rollBackPatience = 20 * time.Second
	// How long a cluster that is busy is asked for its offers, before a switch begins.
	busyPatience = 20 * time.Second
)

var (
	_ workload.Driver    = (*Simulated)(nil)
	_ workload.Teller    = (*Simulated)(nil)
	_ workload.Decider   = (*Simulated)(nil)
	_ workload.Simulator = (*Simulated)(nil)
)

// Simulated is the driver for the simulated cluster, which switches itself when
// it is asked to: it restarts, with empty caches. It is safe for concurrent use,
// and Close ends it.
type Simulated struct {
	base   *url.URL
	client *http.Client
	log    *slog.Logger
	last   atomic.Pointer[simState] // nil before the first answer

	life context.Context // ends with Close
	end  context.CancelFunc
}

// NewSimulated makes the driver for a frontend, its URL with or without /v1. It
// asks nothing yet: the offers are known from the first answer to Current or
// Switch on. A nil client means one without credentials. What is no URL gives an
// [api.FieldError].
func NewSimulated(target string, client *http.Client, log *slog.Logger) (*Simulated, error) {
	u, err := targetURL(target)
	if err != nil {
		return nil, err
	}
	s := &Simulated{base: u.JoinPath("sim", "v1"), client: bounded(client), log: log}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Name is simulated.
func (s *Simulated) Name() string { return "simulated" }

// Offers are the modes that the cluster told last, each with every speculation
// that it has; none before its first answer.
func (s *Simulated) Offers() []api.ModeState {
	if st := s.last.Load(); st != nil {
		return slices.Clone(st.Offers)
	}
	return nil
}

// Simulation is what the cluster told last; nil before its first answer.
func (s *Simulated) Simulation() *api.Simulation {
	if st := s.last.Load(); st != nil {
		return &api.Simulation{Profile: st.Profile, Calibrated: st.Calibrated, Speed: st.Speed}
	}
	return nil
}

// Instance is empty: the cluster's router decides.
func (s *Simulated) Instance() string { return "" }

// Current asks the cluster which mode it is in, or will be in after the restart
// that is under way. A target that is no simulated cluster gives an
// [api.FieldError] of mode.driver; any other error may pass.
func (s *Simulated) Current(ctx context.Context) (api.ModeState, error) {
	st, err := s.state(ctx)
	return st.ModeState, err
}

// Decisions asks for the newest decisions of the cluster's router, newest first,
// at most limit. Where the cluster cannot be asked it gives [api.ErrUnavailable].
func (s *Simulated) Decisions(ctx context.Context, limit int) ([]api.RoutingDecision, error) {
	var list api.DecisionList
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if _, err := s.call(ctx, http.MethodGet, "decisions", query, nil, &list); err != nil {
		// no fault of who asks
		return nil, fmt.Errorf("%w: the decisions cannot be read: %s", api.ErrUnavailable, err.Error())
	}
	return list.Decisions, nil
}

// Switch asks the cluster for a mode and waits until it is ready in it. The
// caches are empty then, unless the cluster was in that mode already, although the
// caller thought otherwise, and had nothing to restart for; from a mode to itself, it
// restarts. A mode that is not offered, or that the cluster
// refuses, gives an [api.FieldError], and the end of ctx its cause. A switch that
// fails after the cluster may have begun it is rolled back before Switch returns,
// within seconds beyond the cluster's restart; Close cuts that short.
func (s *Simulated) Switch(
	ctx context.Context, from, to api.ModeState, report func(phase, message string),
) (cold bool, err error) {
	if err := s.knock(ctx, func(message string) { report("switching", message) }); err != nil {
		return false, err
	}
	if err := offered(s.Offers(), to); err != nil {
		return false, err
	}
	begun, cold, err := s.bring(ctx, to, from == to, switchPatience, func(message string) { report("switching", message) })
	if err == nil || !begun {
		return cold, err
	}
	_, _, back := s.bring(s.life, from, false, rollBackPatience, func(message string) { report("rolling_back", message) })
	if back != nil {
		s.log.Warn("the simulated cluster could not be switched back", "to", describe(from), "error", back)
		return false, fmt.Errorf("%w; switching it back to %s also failed: %w", err, from.Name(), back)
	}
	return false, fmt.Errorf("%w; it was switched back to %s", err, from.Name())
}

// knock asks for the offers, since those that are known may be another cluster's. One
// that is busy is asked again; one that is not there is said at once.
func (s *Simulated) knock(ctx context.Context, progress func(string)) error {
	return until(ctx, busyPatience, progress, func(ctx context.Context) (string, error) {
		_, err := s.state(ctx)
		if errors.Is(err, api.ErrLate) {
			return silence(err)
		}
		return "", err
	})
}

// Close ends the driver: a roll-back under way is given up.
func (s *Simulated) Close() {
	s.end()
	s.client.CloseIdleConnections()
}

// bring asks for a mode, and for a restart even in that mode if it must be, and waits until
// the cluster is ready in it. Where the cluster has refused, it has not begun to switch.
func (s *Simulated) bring(ctx context.Context, to api.ModeState, anew bool, patience time.Duration,
	progress func(string),
) (begun, cold bool, err error) {
	progress("asking the simulated cluster for " + to.Name())
	restart, cold, err := s.ask(ctx, to, anew, patience, progress)
	if err != nil {
		refused := errors.As(err, new(*refusal)) || errors.As(err, new(*api.FieldError))
		return !refused, false, err
	}
	if err := s.await(ctx, to, patience+restart, progress); err != nil {
		return true, false, err
	}
	return true, cold, nil
}

// ask puts a mode until the cluster has taken or refused it: to ask twice does
// no harm. It gives the length of the restart, and whether there is one.
func (s *Simulated) ask(ctx context.Context, to api.ModeState, anew bool, patience time.Duration,
	progress func(string),
) (restart time.Duration, cold bool, err error) {
	query := url.Values{}
	if anew {
		query.Set("restart", "true")
	}
	err = until(ctx, patience, progress, func(ctx context.Context) (string, error) {
		var st simState
		status, err := s.call(ctx, http.MethodPut, "mode", query, to, &st)
		if err != nil {
			return silence(err)
		}
		restart, cold = time.Duration(st.ReadyIn*float64(time.Second)), status == http.StatusAccepted || !st.Ready
		return "", nil
	})
	return restart, cold, err
}

// await waits until the cluster is ready in a mode.
func (s *Simulated) await(ctx context.Context, mode api.ModeState, patience time.Duration,
	progress func(string),
) error {
	return until(ctx, patience, progress, func(ctx context.Context) (string, error) {
		st, err := s.state(ctx)
		switch {
		case err != nil:
			return silence(err)
		case !st.Ready:
			return fmt.Sprintf("the simulated cluster is restarting: %.0f s left", math.Ceil(st.ReadyIn)), nil
		case st.ModeState != mode:
			return "", fmt.Errorf("the simulated cluster is in %s: it was restarted or switched from elsewhere", st.Name())
		}
		return "", nil
	})
}

// until tries again and again until there is an error or nothing left to say.
// Progress hears of a message that has changed; the last one stands in the error
// where patience or ctx ends.
func until(ctx context.Context, patience time.Duration, progress func(string),
	try func(context.Context) (string, error),
) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("timed out after %s", patience))
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for said := "it has not answered"; ; {
		message, err := try(ctx)
		if message == "" {
			return err
		}
		if message != said && ctx.Err() == nil {
			said = message
			progress(message)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%s)", context.Cause(ctx), said)
		case <-tick.C:
		}
	}
}

// silence turns an error that may pass into words. A cluster that restarts may
// refuse every call meanwhile, with 503.
func silence(err error) (message string, lasting error) {
	var no *refusal
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &no) && no.status == http.StatusServiceUnavailable:
		return "the simulated cluster is restarting", nil
	case errors.As(err, &no), errors.As(err, new(*api.FieldError)):
		return "", err
	}
	return "the simulated cluster does not answer: " + err.Error(), nil
}

// simState is what the cluster tells of itself, as far as it matters here.
type simState struct {
	api.ModeState
	Ready      bool            `json:"ready"`
	ReadyIn    float64         `json:"ready_in_seconds"`
	Offers     []api.ModeState `json:"offers"`
	Profile    string          `json:"profile"`
	Calibrated bool            `json:"calibrated"`
	Speed      float64         `json:"speed"`
}

// state asks for the state, and keeps it.
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

// refusal is an answer that is no success, in the cluster's own words.
type refusal struct {
	status int
	words  string
}

func (r *refusal) Error() string { return "the simulated cluster reports: " + r.words }

// call makes one call of the cluster. It gives a *refusal where the cluster
// answers but refuses, an [api.FieldError] for a mode that it does not take or
// where it is no simulated cluster, and what went wrong on the way otherwise.
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
		return 0, fmt.Errorf("%s: %w", u.Redacted(), plain(err))
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", u.Redacted(), plain(err))
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

// refused makes an error of an answer that is no success.
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
		return &api.FieldError{Field: "mode", Value: describe(mode), Allowed: problem.Message}
	}
	return &refusal{res.StatusCode, problem.Message}
}

// notSimulated says that no other answer can be hoped for.
func (s *Simulated) notSimulated(why string) error {
	return &api.FieldError{
		Field: "mode.driver", Value: s.Name(),
		Allowed: fmt.Sprintf("manual or pinned, since the target is no simulated cluster; %s: %s",
			s.base.JoinPath("state").Redacted(), why),
	}
}
