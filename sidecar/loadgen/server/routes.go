package server

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
)

// route is a call: a pattern of http.ServeMux, what it asks of its caller, and
// what answers it. An error that handle returns has not been answered yet.
type route struct {
	pattern string
	access  access
	handle  func(http.ResponseWriter, *http.Request) error
}

// routes are all calls. A test holds them against the OpenAPI document.
func (s *Server) routes() []route {
	b := s.opts.Backend
	all := append([]route{
		{"GET " + api.Prefix + "/status", read, encoded(b.StatusJSON)},
		{"GET " + api.Prefix + "/snapshot", read, encoded(b.SnapshotJSON)},
		{"GET " + api.Prefix + "/stream", read, s.stream},
		{"GET " + api.Prefix + "/cluster", read, s.cluster},
		{"GET " + api.Prefix + "/history", read, s.history},
		{"GET " + api.Prefix + "/decisions", read, s.decisions},
		{"GET " + api.Prefix + "/shadow", read, s.shadow},
		{"GET " + api.Prefix + "/twin", read, s.twin},
		{"PATCH " + api.Prefix + "/twin", write, steerTwin(http.StatusAccepted, b.ArrangeTwin)},
		{"POST " + api.Prefix + "/twin/showcase", write, steerTwin(http.StatusAccepted, b.StartShowcase)},
		{"DELETE " + api.Prefix + "/twin/showcase", write, s.stopShowcase},
		{"POST " + api.Prefix + "/workload/start", write, control(s, Lane.Start, http.StatusOK)},
		{"POST " + api.Prefix + "/workload/stop", write, control(s, Lane.Stop, http.StatusOK)},
		{"PATCH " + api.Prefix + "/workload", write, control(s, Lane.Patch, http.StatusOK)},
		{"PUT " + api.Prefix + "/cluster/mode", write, control(s, Lane.SetMode, http.StatusAccepted)},
		{"DELETE " + api.Prefix + "/cluster/mode", write, s.cancelMode},
		{"GET " + api.Prefix + "/settings", read, give(b.Settings)},
		{"PATCH " + api.Prefix + "/settings", write, s.patchSettings},
		{"GET " + api.Prefix + "/conversations", read, s.conversations},
		{"GET " + api.Prefix + "/conversations/{id}", read, item("id", b.Conversation)},
		{"GET " + api.Prefix + "/starters/{id}", read, s.starter},
		{"GET " + api.Prefix + "/turns.csv", read, s.turnsCSV},
		{"GET " + api.Prefix + "/events", read, s.events},
		{"GET " + api.Prefix + "/baselines", read, s.baselines},
		{"POST " + api.Prefix + "/baselines", write, s.importBaseline},
		{"DELETE " + api.Prefix + "/baselines/{name}", write, s.deleteBaseline},
		{"GET " + api.Prefix + "/baselines/{name}", read, item("name", func(_ context.Context, name string) (api.Baseline, error) { return b.Baseline(name) })},
		{"GET " + api.Prefix + "/comparison", read, s.comparison},
		{"GET " + api.Prefix + "/simulations", read, give(b.Simulations)},
		{"POST " + api.Prefix + "/simulations", write, s.startSimulation},
		{"GET " + api.Prefix + "/simulations/{id}", read, s.simulation},
		{"DELETE " + api.Prefix + "/simulations/{id}", write, item("id", func(_ context.Context, id string) (api.SimulationResult, error) { return b.CancelSimulation(id) })},
		{"GET " + api.Prefix + "/session", public, s.readSession},
		{"POST " + api.Prefix + "/session", public, s.createSession},
		{"DELETE " + api.Prefix + "/session", public, s.endSession},
		{"GET " + api.Prefix + "/openapi.yaml", read, document},
		{"GET /healthz", probe, healthz},
		{"GET /readyz", probe, s.readyz},
		{"GET /metrics", scrape, s.metrics},
	}, s.sweepRoutes()...)
	if s.opts.Playback != nil {
		return s.played(all)
	}
	return all
}

// give answers with what a call without parameters returns.
func give[T any](get func() T) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := params(r); err != nil {
			return err
		}
		return replyJSON(w, get(), nil)
	}
}

// encoded answers with what is JSON already.
func encoded(get func() ([]byte, error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := params(r); err != nil {
			return err
		}
		text, err := get()
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text) // who does not read the answer has gone
		return nil
	}
}

// item answers with the thing that a segment of the path names.
func item[T any](segment string, get func(context.Context, string) (T, error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := params(r); err != nil {
			return err
		}
		v, err := get(r.Context(), r.PathValue(segment))
		return replyJSON(w, v, err)
	}
}

// control answers a call that changes a lane, with its new state.
func control[T any](s *Server, do func(l Lane, ctx context.Context, by string, req T) (api.State, error), status int) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		lane, err := s.onlyLane(r)
		if err != nil {
			return err
		}
		req, err := decode[T](w, r)
		if err != nil {
			return err
		}
		state, err := do(lane, r.Context(), caller(r), req)
		if err != nil {
			return err
		}
		return reply(w, status, "application/json", state)
	}
}

func (s *Server) cancelMode(w http.ResponseWriter, r *http.Request) error {
	lane, err := s.onlyLane(r)
	if err != nil {
		return err
	}
	state, err := lane.CancelMode(r.Context(), caller(r))
	if err != nil {
		return err
	}
	return reply(w, http.StatusAccepted, "application/json", state)
}

func (s *Server) cluster(w http.ResponseWriter, r *http.Request) error {
	lane, err := s.onlyLane(r)
	if err != nil {
		return err
	}
	return replyJSON(w, lane.Cluster(), nil)
}

func (s *Server) history(w http.ResponseWriter, r *http.Request) error {
	lane, err := s.onlyLane(r)
	if err != nil {
		return err
	}
	return replyJSON(w, lane.History(), nil)
}

func (s *Server) decisions(w http.ResponseWriter, r *http.Request) error {
	v, err := params(r, "lane", "limit")
	if err != nil {
		return err
	}
	n, err := limit(v, "decisions")
	if err != nil {
		return err
	}
	lane, err := s.opts.Backend.Lane(laneOf(v))
	if err != nil {
		return err
	}
	list, err := lane.Decisions(r.Context(), n)
	return replyJSON(w, list, err)
}

func (s *Server) patchSettings(w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	p, err := decode[api.SettingsPatch](w, r)
	if err != nil {
		return err
	}
	settings, err := s.opts.Backend.PatchSettings(r.Context(), caller(r), p)
	return replyJSON(w, settings, err)
}

func (s *Server) conversations(w http.ResponseWriter, r *http.Request) error {
	v, err := params(r, "lane", "status", "topic", "cursor", "limit")
	if err != nil {
		return err
	}
	n, err := limit(v, "conversations")
	if err != nil {
		return err
	}
	q := api.ConversationQuery{
		Lane: laneOf(v), Status: api.ConversationStatus(v.Get("status")),
		Topic: v.Get("topic"), Cursor: v.Get("cursor"), Limit: n,
	}
	if q.Status != "" {
		if err := api.OneOf("status", q.Status, api.ConversationStatuses); err != nil {
			return err
		}
	}
	list, err := s.opts.Backend.Conversations(r.Context(), q)
	return replyJSON(w, list, err)
}

func (s *Server) starter(w http.ResponseWriter, r *http.Request) error {
	lane, err := s.onlyLane(r)
	if err != nil {
		return err
	}
	starter, err := lane.Starter(r.PathValue("id"))
	return replyJSON(w, starter, err)
}

func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	v, err := params(r, "lane", "limit")
	if err != nil {
		return err
	}
	n, err := limit(v, "events")
	if err != nil {
		return err
	}
	list, err := s.opts.Backend.Events(r.Context(), v.Get("lane"), n)
	return replyJSON(w, api.EventList{Events: list}, err)
}

func (s *Server) comparison(w http.ResponseWriter, r *http.Request) error {
	v, err := params(r, "lane", "baseline")
	if err != nil {
		return err
	}
	lane, err := s.opts.Backend.Lane(laneOf(v))
	if err != nil {
		return err
	}
	c, err := lane.Comparison(v.Get("baseline"))
	return replyJSON(w, c, err)
}

func (s *Server) baselines(w http.ResponseWriter, r *http.Request) error {
	v, err := params(r, "limit", "cursor")
	if err != nil {
		return err
	}
	n, err := limit(v, "baselines")
	if err != nil {
		return err
	}
	list, err := pageOf(s.opts.Backend.Baselines(), v.Get("cursor"), n)
	return replyJSON(w, list, err)
}

// pageOf gives up to n baselines after the one whose name the cursor is, and no more than [api.MaxPageRows] rows
// where it is more than one.
func pageOf(all []api.Baseline, cursor string, n int) (api.BaselineList, error) {
	if cursor != "" {
		at := slices.IndexFunc(all, func(b api.Baseline) bool { return b.Name == cursor })
		if at < 0 {
			return api.BaselineList{}, api.Refuse("cursor", strconv.Quote(cursor),
				"the next_cursor of an earlier answer, whose baseline is still there")
		}
		all = all[at+1:]
	}
	rows := 0
	for i, b := range all {
		if rows += len(b.Rows); i == n || i > 0 && rows > api.MaxPageRows {
			return api.BaselineList{Baselines: all[:i], NextCursor: all[i-1].Name}, nil
		}
	}
	return api.BaselineList{Baselines: all}, nil
}

func (s *Server) importBaseline(w http.ResponseWriter, r *http.Request) error {
	v, err := params(r, "name", "title", "mode", "speculation", "merge", "dry_run")
	if err != nil {
		return err
	}
	for _, name := range []string{"merge", "dry_run"} {
		if value := v.Get(name); value != "" {
			if err := api.OneOf(name, value, []string{"true", "false"}); err != nil {
				return err
			}
		}
	}
	run := api.ModeState{Mode: api.Mode(v.Get("mode")), Speculation: api.Speculation(v.Get("speculation"))}
	b, err := s.readBaseline(w, r, v.Get("name"), run)
	if err != nil {
		return err
	}
	b.Title = cmp.Or(v.Get("title"), b.Title)
	saved, err := s.importInto(r, b, v.Get("merge") == "true", v.Get("dry_run") == "true")
	if v.Get("dry_run") == "true" {
		return replyJSON(w, saved, err)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Location", api.Prefix+"/baselines/"+url.PathEscape(saved.Name))
	return reply(w, http.StatusCreated, "application/json", saved)
}

// importInto stores a baseline, or with dry only checks it; merge adds its rows to those
// of the one that it would replace.
func (s *Server) importInto(r *http.Request, b api.Baseline, merge, dry bool) (api.Baseline, error) {
	switch {
	case merge:
		return s.opts.Backend.MergeBaseline(r.Context(), caller(r), b, dry)
	case dry:
		return s.opts.Backend.CheckBaseline(b)
	default:
		return s.opts.Backend.SaveBaseline(r.Context(), caller(r), b)
	}
}

// readBaseline reads the body; run says what a file of another program does not.
func (s *Server) readBaseline(w http.ResponseWriter, r *http.Request, name string, run api.ModeState) (api.Baseline, error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case kind != "application/json" && kind != "text/csv":
		return api.Baseline{}, wrongType(r, "application/json or text/csv")
	case kind == "text/csv" && run != (api.ModeState{}):
		return api.Baseline{}, api.Refuse("mode, speculation", strings.TrimSpace(string(run.Mode)+" "+string(run.Speculation)), "neither with a CSV table: its columns contain them")
	}
	body, err := wholeBody(w, r, api.MaxBaseline)
	switch {
	case err != nil:
		return api.Baseline{}, err
	case kind == "text/csv":
		return s.opts.ParseCSV(bytes.NewReader(body), name)
	}
	return s.opts.ParseJSON(bytes.NewReader(body), name, run)
}

func (s *Server) deleteBaseline(w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	left, err := s.opts.Backend.DeleteBaseline(r.Context(), caller(r), r.PathValue("name"))
	if err != nil {
		return err
	}
	list, err := pageOf(left, "", int(api.Limits["baselines.limit"].Default))
	return replyJSON(w, list, err)
}

func (s *Server) turnsCSV(w http.ResponseWriter, r *http.Request) error {
	v, err := params(r, "lane", "step")
	if err != nil {
		return err
	}
	step, err := number(v, "step", 0, math.MaxInt64, 0)
	if err != nil {
		return err
	}
	name := laneOf(v)
	if _, err := s.opts.Backend.Lane(name); err != nil {
		return err
	}
	return s.download(w, "turns.csv", func(out io.Writer) error {
		return s.opts.Backend.TurnsCSV(r.Context(), out, name, step)
	})
}

// download sends a file of CSV as it comes. An answer that has begun cannot become an
// error any more; it breaks off.
func (s *Server) download(w http.ResponseWriter, file string, write func(io.Writer) error) error {
	out := &progress{w: w, file: file}
	err := write(out)
	if err != nil && out.begun {
		s.opts.Log.Error("a download was interrupted", "file", file, "error", err)
		panic(http.ErrAbortHandler)
	}
	if err == nil {
		_, err = out.Write(nil) // no lines are an answer, too
	}
	return err
}

// progress is an answer of any length: as long as it goes on, it may.
type progress struct {
	w     http.ResponseWriter
	file  string
	begun bool
}

func (p *progress) Write(b []byte) (int, error) {
	if !p.begun {
		p.begun = true
		p.w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		p.w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": p.file}))
	}
	_ = http.NewResponseController(p.w).SetWriteDeadline(deadline(writeTimeout)) // or the server's own holds
	return p.w.Write(b)
}

func document(w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(api.OpenAPI)
	return nil
}

func healthz(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
	return nil
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) error {
	if err := s.opts.Backend.Ready(); err != nil {
		return &refused{status: http.StatusServiceUnavailable, detail: err.Error()}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ready\n")
	return nil
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	s.opts.Metrics.ServeHTTP(w, r)
	return nil
}
