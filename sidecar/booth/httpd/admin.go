package httpd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2/maybe"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

const (
	maxAdminBody     = 64 << 10
	maxDecisions     = 1000 // the number that the cluster keeps
	defaultDecisions = 50
	maxAway          = time.Hour
)

// admin returns the endpoints that control the simulation.
func (s *Server) admin() []endpoint {
	return []endpoint{
		{
			"/sim/v1/state",
			methods{http.MethodGet: s.getState},
			s.guarded,
			"Mode, speculation, speed, faults, workers, and the available options.",
		},
		{
			"/sim/v1/mode",
			methods{http.MethodPut: s.answers(s.putMode)},
			s.guarded,
			"Switches mode and speculation; the cluster restarts with cold caches (`?restart=true`: in any case). With " +
				"`?workers=keep` only the frontend restarts, and caches stay. With `?in_place=true` nothing restarts.",
		},
		{
			"/sim/v1/faults",
			methods{http.MethodGet: s.getFaults, http.MethodPut: s.answers(s.putFaults)},
			s.guarded,
			"Fractions of requests that fail: `http_500`, `http_429`, `stall`, `disconnect`.",
		},
		{
			"/sim/v1/workers/{id}/lose",
			methods{http.MethodPost: s.answers(s.loseWorker)},
			s.guarded,
			"Removes a worker for `seconds`. The id `any` is the first one.",
		},
		{
			"/sim/v1/decisions",
			methods{http.MethodGet: s.answers(s.getDecisions)},
			s.guarded,
			"The router's last decisions, with each worker's cost; `?limit=`, 1 to 1,000.",
		},
	}
}

// answers returns the handler of a call that gives a status with a document, or an error.
func (s *Server) answers(call func(http.ResponseWriter, *http.Request) (int, any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, document, err := call(w, r)
		if err != nil {
			s.explain(err).write(w)
			return
		}
		writeJSON(w, status, document)
	}
}

// guarded accepts only requests with one of the server's own host names and its own origin. It rejects browser pages
// of other origins, and of other sites whose name has been rebound to this address.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if p := s.admit(r); p != nil {
			p.write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admit returns the problem with a request to a guarded endpoint, or nil.
func (s *Server) admit(r *http.Request) *problem {
	if !api.KnownHost(r.Host, s.options.Hosts) {
		return newProblem(http.StatusMisdirectedRequest, kindValidation,
			"Host: %.100q is not allowed: use localhost, a loopback address, or add it to --hosts", r.Host)
	}
	if !api.OwnOrigin(r) {
		return newProblem(http.StatusForbidden, kindValidation,
			"Origin: %.100q is not allowed: only this server's own", r.Header.Get("Origin"))
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	if t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); t != "application/json" {
		return newProblem(http.StatusUnsupportedMediaType, kindValidation,
			"Content-Type: %.100q is not allowed: application/json", r.Header.Get("Content-Type"))
	}
	return nil
}

// decode reads a body that is one JSON object without unknown fields.
func decode(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := readBody(w, r, maxAdminBody)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return invalid("invalid request body: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalid("unexpected data after the JSON object")
	}
	return nil
}

// state is the document of /sim/v1/state. Durations are wall-clock time.
type state struct {
	api.ModeState
	Calibrated   bool            `json:"calibrated"`
	Ready        bool            `json:"ready"`
	ReadyIn      float64         `json:"ready_in_seconds"`
	Offers       []api.ModeState `json:"offers"`
	Profile      string          `json:"profile"`
	Engine       string          `json:"engine"`
	Speed        float64         `json:"speed"`
	Inflight     int             `json:"inflight"`
	Faults       Faults          `json:"faults"`
	WorkerStates []workerState   `json:"workers"`
}

type workerState struct {
	ID      string  `json:"id"` // decimal
	Name    string  `json:"name"`
	Ready   bool    `json:"ready"`
	ReadyIn float64 `json:"ready_in_seconds"`
}

// workerName returns the name of a worker's pod.
func workerName(index int) string { return fmt.Sprintf("dynamo-worker-%d", index+1) }

func decimal(id sim.WorkerID) string { return strconv.FormatUint(uint64(id), 10) }

func (s *Server) state() (st state) {
	p := s.options.Cluster.Profile
	s.clock.do(func(c *sim.Cluster) {
		now := c.State()
		st = state{
			ModeState: api.ModeState{Mode: now.Mode, Speculation: now.Speculation}, Calibrated: now.Calibrated,
			Ready: now.Ready, ReadyIn: s.until(c, now.ReadyAt).Seconds(), Offers: offers(p),
			Profile: p.Name, Engine: s.options.Engine, Speed: s.options.Speed,
			Inflight: now.Inflight, Faults: s.faults.get(),
		}
		for _, w := range c.Workers() {
			readyIn := s.until(c, w.ReadyAt).Seconds()
			st.WorkerStates = append(st.WorkerStates, workerState{decimal(w.ID), workerName(w.Index), w.Ready, readyIn})
		}
	})
	return st
}

func (s *Server) getState(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.state())
}

func (s *Server) putMode(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var to api.ModeState
	if err := decode(w, r, &to); err != nil {
		return 0, nil, err
	}
	query := r.URL.Query()
	how := modeChange{
		restart: query.Get("restart") == "true", keep: query.Get("workers") == "keep",
		inPlace: query.Get("in_place") == "true",
	}
	changed, err := s.change(to, how)
	if changed && !how.inPlace {
		return http.StatusAccepted, s.state(), err
	}
	return http.StatusOK, s.state(), err
}

// modeChange is how a change of mode is made.
type modeChange struct {
	restart bool // also to the mode in force
	keep    bool // only the frontend restarts; the workers keep their caches
	inPlace bool // nothing restarts
}

// change makes a change of mode or speculation; an empty speculation means no change. If both are in force already, it
// returns false, unless a restart is required. The speculation cannot change while the workers keep running.
func (s *Server) change(to api.ModeState, how modeChange) (changed bool, err error) {
	s.switching.Lock()
	defer s.switching.Unlock()
	now := s.snapshot().State
	if to.Speculation == "" {
		to.Speculation = now.Speculation
	}
	if err := checkMode(to, s.options.Cluster.Profile); err != nil {
		return false, err
	}
	if to.Mode == now.Mode && to.Speculation == now.Speculation && !how.restart {
		return false, nil
	}
	if (how.keep || how.inPlace) && to.Speculation != now.Speculation {
		return false, api.Refuse("speculation", fmt.Sprintf("%q", to.Speculation),
			fmt.Sprintf("%q; workers=keep and in_place=true cannot change the speculation", now.Speculation))
	}
	if err := saveMode(s.options.StateFile, to); err != nil {
		return false, fmt.Errorf("the mode was not changed: cannot write the state file: %w", err)
	}
	s.clock.do(func(c *sim.Cluster) {
		switch {
		case how.inPlace:
			err = c.Route(to.Mode)
		case how.keep:
			err = c.Reroute(to.Mode)
		default:
			err = c.Switch(to.Mode, to.Speculation)
		}
	})
	if err != nil {
		return false, err
	}
	switch {
	case how.inPlace:
		s.log.Info("the router changes its mode", "mode", to.Mode)
		return true, nil
	case how.keep:
		s.metrics.FrontendRestarted()
	default:
		s.metrics.Restarted()
	}
	s.log.Info("restarting the cluster", "workers", !how.keep, "mode", to.Mode, "speculation", to.Speculation)
	return true, nil
}

func (s *Server) getFaults(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.faults.get())
}

func (s *Server) putFaults(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var f Faults
	if err := decode(w, r, &f); err != nil {
		return 0, nil, err
	}
	if err := f.validate(); err != nil {
		return 0, nil, err
	}
	s.faults.set(f)
	for _, w := range s.workers {
		w.faults.set(f)
	}
	s.log.Info("injecting faults",
		"http_500", f.HTTP500, "http_429", f.HTTP429, "stall", f.Stall, "disconnect", f.Disconnect)
	return http.StatusOK, f, nil
}

func (s *Server) loseWorker(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var body struct {
		Seconds float64 `json:"seconds"` // wall-clock time
	}
	if err := decode(w, r, &body); err != nil {
		return 0, nil, err
	}
	if !(0 < body.Seconds && body.Seconds <= maxAway.Seconds()) {
		return 0, nil, api.Refuse("seconds", body.Seconds, fmt.Sprintf("above 0, up to %v", maxAway.Seconds()))
	}
	err := s.removeWorker(r.PathValue("id"), time.Duration(body.Seconds*s.options.Speed*float64(time.Second)))
	return http.StatusOK, s.state(), err
}

// removeWorker removes a worker for a duration of virtual time. The id any is that of the first. An unknown id gives a
// [problem] with status 404.
func (s *Server) removeWorker(id string, duration time.Duration) error {
	workers := s.snapshot().Workers
	index := slices.IndexFunc(workers, func(w sim.WorkerStats) bool { return decimal(w.ID) == id || id == "any" })
	if index < 0 {
		return newProblem(http.StatusNotFound, kindNotFound, "no worker %.40q; see /sim/v1/state", id)
	}
	var err error
	s.clock.do(func(c *sim.Cluster) { err = c.LoseWorker(workers[index].ID, duration) })
	if err != nil {
		return err
	}
	s.metrics.WorkerRestarted(index)
	s.log.Info("worker lost", "worker", workerName(index), "for", duration)
	return nil
}

func (s *Server) getDecisions(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	limit := defaultDecisions
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxDecisions {
			return 0, nil, api.Refuse("limit", fmt.Sprintf("%.40q", text), fmt.Sprintf("1 to %d", maxDecisions))
		}
		limit = n
	}
	return http.StatusOK, map[string][]api.RoutingDecision{"decisions": s.decisions(limit)}, nil
}

// decisions returns the router's last decisions, the newest first.
func (s *Server) decisions(limit int) []api.RoutingDecision {
	var kept []*sim.Decision
	names := map[sim.WorkerID]string{}
	s.clock.do(func(c *sim.Cluster) {
		kept = c.Decisions()
		for _, w := range c.Workers() {
			names[w.ID] = workerName(w.Index)
		}
	})
	list := []api.RoutingDecision{}
	for _, d := range slices.Backward(kept[max(0, len(kept)-limit):]) {
		out := api.RoutingDecision{
			Seconds: d.At.Seconds(), RequestID: d.RequestID, Mode: d.Mode, Pinned: d.Pinned,
			PromptTokens: d.PromptTokens, BlockTokens: s.options.Cluster.Profile.KV.BlockTokens, Chosen: d.Chosen,
		}
		for _, c := range d.Candidates {
			out.Candidates = append(out.Candidates, api.RoutingCandidate{
				Worker: decimal(c.Worker), Name: names[c.Worker], OverlapBlocks: c.OverlapBlocks,
				PrefillTokens: c.PrefillTokens, DecodeBlocks: c.DecodeBlocks, Requests: c.Requests, Cost: c.Cost,
			})
		}
		list = append(list, out)
	}
	return list
}

// offers returns all modes and kinds of speculation that the cluster can switch to.
func offers(p sim.Profile) (all []api.ModeState) {
	kinds := []api.Speculation{
		api.SpeculationNotRecorded, api.SpeculationOff, api.SpeculationDraft, api.SpeculationEagle3,
	}
	for _, kind := range kinds {
		if _, ok := p.Speculation[kind]; !ok {
			continue
		}
		for _, mode := range []api.Mode{api.ModeKV, api.ModeRoundRobin, api.ModeLeastLoaded} {
			all = append(all, api.ModeState{Mode: mode, Speculation: kind})
		}
	}
	return all
}

// checkMode returns an *[api.FieldError] for a mode or speculation that the cluster does not offer.
func checkMode(m api.ModeState, p sim.Profile) error {
	all := offers(p)
	if slices.Contains(all, m) {
		return nil
	}
	if !slices.ContainsFunc(all, func(o api.ModeState) bool { return o.Mode == m.Mode }) {
		allowed := distinct(all, func(o api.ModeState) string { return string(o.Mode) })
		return api.Refuse("mode", fmt.Sprintf("%.40q", m.Mode), allowed)
	}
	allowed := distinct(all, func(o api.ModeState) string { return string(o.Speculation) })
	return api.Refuse("speculation", fmt.Sprintf("%.40q", m.Speculation), allowed)
}

// distinct lists the distinct values of a field of the offers.
func distinct(all []api.ModeState, field func(api.ModeState) string) string {
	var list []string
	for _, o := range all {
		if v := field(o); !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return strings.Join(list, ", ")
}

// restore reads mode and speculation from the state file, if it exists.
func (o *Options) restore() error {
	if o.StateFile == "" {
		return nil
	}
	data, err := os.ReadFile(o.StateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var m api.ModeState
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err = d.Decode(&m); err == nil {
			err = checkMode(m, o.Cluster.Profile)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot use the state file %s (delete it to start as configured): %w", o.StateFile, err)
	}
	o.Cluster.Mode, o.Cluster.Speculation = m.Mode, m.Speculation
	return nil
}

// saveMode replaces the state file atomically.
func saveMode(path string, m api.ModeState) error {
	if path == "" {
		return nil
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return maybe.WriteFile(path, append(data, '\n'), 0o600)
}
