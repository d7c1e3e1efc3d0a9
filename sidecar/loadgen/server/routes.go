package server

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
)

// route is a call of the API: its method and path, the access that it requires, its action, and its name, group and
// texts in the OpenAPI document.
type route struct {
	pattern string
	access  access
	action
	id, tag, summary, details string
}

// routes returns all calls.
func (s *Server) routes() []route {
	all := slices.Concat(
		s.stateRoutes(), s.resultRoutes(), s.storedRoutes(), s.reportRoutes(),
		s.laneRoutes(), s.requestRoutes(), s.baselineRoutes(), s.serviceRoutes(),
	)
	for i, rt := range all {
		if method, path, _ := strings.Cut(rt.pattern, " "); rt.access != probe && rt.access != scrape {
			all[i].pattern = method + " " + api.Prefix + path
		}
	}
	if s.opts.Playback != nil {
		return s.played(all)
	}
	return all
}

// stateRoutes return live state.
func (s *Server) stateRoutes() []route {
	b := s.opts.Backend
	stream := gives("", s.stream)
	stream.status = http.StatusSwitchingProtocols
	return []route{
		{
			"GET /status", read, encoded[api.Status](b.StatusJSON), "getStatus", "state",
			"State, configuration in force, versions, targets, uptime", "",
		},
		{
			"GET /snapshot", read, encoded[api.Snapshot](b.SnapshotJSON), "getSnapshot", "state",
			"One snapshot, as sent by the stream", "",
		},
		{
			"GET /stream", read, stream, "stream", "state",
			"WebSocket: a snapshot a second, and one at once on every change of state",
			"Each text message is a `Snapshot`. A slow reader loses snapshots, always the older ones; one that " +
				"answers no ping for 10 s is dropped. The server takes no messages. It answers 503 while too many " +
				"streams are open: 256 of all callers, 192 of callers without the token, 16 of one address or " +
				"session, 128 of an address that presents the token or is loopback.",
		},
		{
			"GET /cluster", read, shown(s, Lane.Cluster), "getCluster", "state",
			"Workers, GPUs, queue and KV hit ratio of the serving cluster", "",
		},
		{
			"GET /settings", read, plain(b.Settings), "getSettings", "state",
			"SLOs, slider, limits, default baseline and titles", "",
		},
		{
			"GET /comparison", read, ofLane(s, http.StatusOK, comparison), "getComparison", "state",
			"The live step compared with a baseline; the snapshot holds the comparison with the default baseline", "",
		},
	}
}

// resultRoutes return measured and computed results.
func (s *Server) resultRoutes() []route {
	b := s.opts.Backend
	twin := func(*http.Request, none) (api.Twin, error) { return b.Twin() }
	simulation := gives(api.EventStream, s.simulation)
	simulation.answer = reflect.TypeFor[api.SimulationResult]()
	return []route{
		{
			"GET /history", read, shown(s, Lane.History), "getHistory", "results",
			"History of the last ten minutes' snapshots; oldest first",
			"One point per second, since the load generator's process started; Prometheus has older data.",
		},
		{
			"GET /decisions", read, ofLane(s, http.StatusOK, decisions), "listDecisions", "results",
			"Why the target's router sent the last requests where it did; newest first",
			"Only the simulated cluster reports its decisions. For other targets the list is empty and `message` says why.",
		},
		{
			"GET /shadow", read, shown(s, Lane.Shadow), "getShadow", "results",
			"Cache hits of other routing policies on the same traffic", "",
		},
		{
			"GET /twin", read, answers(http.StatusOK, twin), "getTwin", "results",
			"Two lanes that run the same conversations, compared turn by turn; 404 where there is one lane", "",
		},
		{
			"GET /simulations", read, plain(b.Simulations), "listSimulations", "results",
			"What-if: the deployments that can be simulated, presets, limits, and the simulations that are kept",
			"Profile files are read again on each request. One that cannot be read is listed with its `error`.",
		},
		{
			"GET /simulations/{id}", read, simulation, "getSimulation", "results",
			"A simulation with its results so far; as a stream, the rest as it arrives",
			"With `Accept: text/event-stream` the answer is a stream of server-sent events:\n\n" +
				"| event | data |\n|---|---|\n" +
				"| `point` | a `SimulationPoint`; it replaces the earlier one of its concurrency and mode |\n" +
				"| `progress` | a `SimulationProgress` |\n| `end` | a `SimulationEnd`; nothing follows |\n\n" +
				"The stream begins with the points computed so far. A slow reader loses points that newer ones replace. " +
				"It counts as one of the streams that may be open: 503 beyond them.",
		},
		{
			"GET /sweeps", read, answers(http.StatusOK, s.sweeps), "listSweeps", "results",
			"Trials, sweeps and capacity searches: defaults, and all that have been started", "",
		},
		{
			"GET /sweeps/{id}", read, item("id", b.Sweep), "getSweep", "results",
			"A sweep with what it has measured so far", "",
		},
		{
			"POST /traffic/preview", write, submits(http.StatusOK, s.previewTraffic), "previewTraffic", "results",
			"What traffic would be before anything is sent: arrivals, lengths, hit rates and working set",
			"It changes nothing. It answers 409 while the workload runs, whose measurement it would disturb.",
		},
		{
			"POST /sweeps/outlook", write, submits(http.StatusOK, s.sweepOutlook), "sweepOutlook", "results",
			"Says what a trial can find in its time, without beginning it", "",
		},
	}
}

// storedRoutes return stored data.
func (s *Server) storedRoutes() []route {
	b := s.opts.Backend
	baseline := func(_ context.Context, name string) (api.Baseline, error) { return b.Baseline(name) }
	const truncated = "The Grafana app cannot abort a response. What it passes on of one that is aborted ends with the " +
		"line `# INCOMPLETE: the export was interrupted here; download it again`. It allows two at once and " +
		"rejects others: 429."
	return []route{
		{
			"GET /conversations", read, answers(http.StatusOK, s.conversations), "listConversations", "results",
			"Conversations, newest first, a page at a time", "",
		},
		{
			"GET /conversations/{id}", read, item("id", b.Conversation), "getConversation", "results",
			"A conversation with its transcript", "",
		},
		{
			"GET /starters/{id}", read, ofLane(s, http.StatusOK, starter), "getStarter", "results",
			"The opening text of conversations, by the `starter` of one of them",
			"It comes from the corpus in use now. If the corpus has been reloaded since a conversation began, " +
				"its starter may have a different text, or be gone: 404. A text that was derived from one of the " +
				"corpus is derived again.",
		},
		{
			"GET /turns.csv", read, gives("text/csv", s.turnsCSV), "getTurns", "results",
			"The raw data, one line per turn under a header line; a truncated response has failed", truncated,
		},
		{
			"GET /events", read, answers(http.StatusOK, s.events), "listEvents", "results",
			"Starts, stops, steps, mode and settings changes: what, when, by whom; newest first", "",
		},
		{
			"GET /runs", read, answers(http.StatusOK, s.runs), "listRuns", "results",
			"The history: runs, trials, sweeps and capacity searches that have ended, and where their figures changed",
			"The newest 500. Changes are found by E-Divisive (docs/statistics.md).",
		},
		{
			"GET /baselines", read, answers(http.StatusOK, s.baselines), "listBaselines", "results",
			"Recorded results, with all their rows", "A page ends early before more than 10,000 rows.",
		},
		{
			"GET /baselines/{name}", read, item("name", baseline), "getBaseline", "results",
			"One baseline", "",
		},
		{
			"GET /sweeps/{id}/seconds.csv", read, gives("text/csv", s.seconds), "getSweepSeconds", "results",
			"The cluster's metrics for each second of each span that counts; a truncated response has failed", truncated,
		},
	}
}

// reportRoutes return reports, in each format.
func (s *Server) reportRoutes() (all []route) {
	for f, name := range map[api.ReportFormat][2]string{
		api.ReportJSON: {"JSON", "JSON"}, api.ReportTSV: {"TSV", "TSV"}, api.ReportMarkdown: {"Markdown", "Markdown"},
		api.ReportHTML: {"HTML", "a page that needs no other file and no script"},
	} {
		media, _, _ := mime.ParseMediaType(f.MediaType())
		all = append(all,
			route{
				"GET /sweeps/{id}/report." + string(f), read, gives(media, s.sweepReport(f)), "getSweepReport" + name[0], "results",
				"The report of a sweep, as " + name[1] + "; for an unfinished one, a partial report that says so", "",
			},
			route{
				"GET /report." + string(f), read, gives(media, s.report(f)), "getReport" + name[0], "results",
				"The report on any two results, as " + name[1] + ": b compared with a", "",
			})
	}
	return all
}

// laneRoutes change a lane.
func (s *Server) laneRoutes() []route {
	return []route{
		{
			"POST /workload/start", write, control(s, http.StatusOK, Lane.Start), "startWorkload", "control",
			"Starts the workload, or sets the concurrency of a running one", "",
		},
		{
			"POST /workload/stop", write, control(s, http.StatusOK, Lane.Stop), "stopWorkload", "control",
			"Stops the workload, at once or by draining it", "",
		},
		{
			"PATCH /workload", write, control(s, http.StatusOK, Lane.Patch), "patchWorkload", "control",
			"Changes the workload, running or not; what is left out stays", "",
		},
		{
			"POST /workload/measure", write, control(s, http.StatusOK, Lane.MeasureAnew), "measureAnew", "control",
			"Begins a new step with unchanged settings, so that earlier turns no longer count; 409 unless it runs", "",
		},
		{
			"PUT /cluster/mode", write, control(s, http.StatusAccepted, Lane.SetMode), "setMode", "control",
			"Changes the routing mode; the snapshot shows the progress",
			"Another change meanwhile gets 409. With `confirm`, the operator confirms that a pending manual change is done.",
		},
		{
			"DELETE /cluster/mode", write, ofLane(s, http.StatusAccepted, cancelMode), "cancelMode", "control",
			"Cancels the mode change in progress; the previous mode stays", "",
		},
	}
}

// requestRoutes change anything other than a lane.
func (s *Server) requestRoutes() []route {
	b := s.opts.Backend
	stopShowcase := func(r *http.Request, _ none) (api.Twin, error) { return b.StopShowcase(r.Context(), caller(r)) }
	cancel := func(_ context.Context, id string) (api.SimulationResult, error) { return b.CancelSimulation(id) }
	return []route{
		{
			"PATCH /settings", write, change(http.StatusOK, b.PatchSettings), "patchSettings", "control",
			"Changes settings; they are stored before the answer", "",
		},
		{
			"PATCH /twin", write, change(http.StatusAccepted, b.ArrangeTwin), "arrangeTwin", "control",
			"Assigns the modes to the two lanes differently; pairs are counted from zero", "",
		},
		{
			"POST /twin/showcase", write, change(http.StatusAccepted, b.StartShowcase), "startShowcase", "control",
			"Sends one conversation to both lanes, turn by turn and outside all statistics; it replaces the previous one", "",
		},
		{
			"DELETE /twin/showcase", write, answers(http.StatusOK, stopShowcase), "stopShowcase", "control",
			"Ends the showcase under way; 409 where there is none", "",
		},
		{
			"POST /simulations", write, creates(simulationPath, s.startSimulation), "startSimulation", "control",
			"Starts a what-if simulation; omitted fields are as recorded",
			"One simulation computes at a time, in a process of its own at the lowest priority; others wait for " +
				"it in the order in which they were asked. A new one of the same caller cancels the one before, if " +
				"that has not ended. A simulation that no client has followed or fetched for 15 s is cancelled. The " +
				"last eight are kept. It answers 503 if simulations are disabled in the configuration, and while " +
				"four are queued.",
		},
		{
			"DELETE /simulations/{id}", write, item("id", cancel), "cancelSimulation", "control",
			"Cancels a simulation; what it has computed stays, and one that has ended stays as it is", "",
		},
		{
			"POST /sweeps", write, creates(sweepPath, s.startSweep), "startSweep", "control",
			"Begins a trial, a sweep or a capacity search; 409 while another one is in progress",
			"Until it ends it owns the lane: no other call can start, change or switch the workload. Then mode " +
				"and workload are restored. It resumes with its next unfinished span even if the load generator was " +
				"restarted.",
		},
		{
			"PATCH /sweeps/{id}", write, submits(http.StatusOK, s.patchSweep), "patchSweep", "control",
			"Pauses, resumes or cancels a sweep; 409 where it has ended",
			"A span in progress when a sweep is paused does not count, and is run again when it is resumed. " +
				"What a cancelled sweep has measured stays.",
		},
		{
			"DELETE /sweeps/{id}", write, answers(http.StatusOK, s.deleteSweep), "deleteSweep", "control",
			"Deletes a sweep, and answers with what is left; 409 while it has not ended", "A baseline made from it is kept.",
		},
	}
}

func simulationPath(v api.SimulationResult) string { return "/simulations/" + v.ID }

func sweepPath(v api.Sweep) string { return "/sweeps/" + url.PathEscape(v.ID) }

func baselinePath(v api.Baseline) string { return "/baselines/" + url.PathEscape(v.Name) }

// baselineRoutes change the baselines.
func (s *Server) baselineRoutes() []route {
	imported := gives("", s.importBaseline)
	imported.body, imported.answer = reflect.TypeFor[api.Baseline](), reflect.TypeFor[api.Baseline]()
	imported.status = http.StatusCreated
	return []route{
		{
			"POST /baselines", write, imported, "importBaseline", "control",
			"Imports a baseline, replacing an earlier import of that name; stored before the response",
			"JSON is a `Baseline`, the JSON that a run or a report of this program writes, or what AIPerf " +
				"(`profile_export_aiperf.json`), GuideLLM (its report in " +
				"JSON), inference-perf (`stage_N_lifecycle_metrics.json`) or `vllm bench serve --save-result` " +
				"writes; the format is detected from its fields. None of them records how requests were routed: " +
				"`mode` is required then, and 422 with the field `mode` says so. Values are imported where their " +
				"definition matches; the baseline's notes say which are not, and why. The answer is the baseline as " +
				"it was stored, or with `dry_run` as it would be stored: 200.",
		},
		{
			"PATCH /runs/{id}", write, submits(http.StatusOK, s.acceptRun), "acceptRun", "control",
			"Accepts a run of the history, so that later runs are compared with it, or withdraws that", "",
		},
		{
			"DELETE /baselines/{name}", write, answers(http.StatusOK, s.deleteBaseline), "deleteBaseline", "control",
			"Deletes an imported baseline, and answers with the first page of what is left; 409 for any other, " +
				"and for the default one of the settings",
			"",
		},
		{
			"POST /sweeps/{id}/baseline", write, creates(baselinePath, s.sweepBaseline), "makeBaseline", "control",
			"Makes a baseline from a sweep's results, replacing an earlier import of that name; stored before the response", "",
		},
	}
}

func (s *Server) runs(r *http.Request, q api.RunQuery) (api.RunHistory, error) {
	return s.opts.Backend.RunHistory(r.Context(), q.Name)
}

func (s *Server) acceptRun(r *http.Request, _ none, p api.RunPatch) (api.RunRecord, error) {
	return s.opts.Backend.AcceptRun(r.Context(), r.PathValue("id"), p.Accepted)
}

// serviceRoutes are for sessions, programs and operators.
func (s *Server) serviceRoutes() []route {
	ended := gives("", s.endSession)
	ended.status = http.StatusNoContent
	return []route{
		{
			"GET /session", public, answers(http.StatusOK, s.readSession), "getSession", "service",
			"What the caller may do, according to its session cookie", "",
		},
		{
			"POST /session", public,
			action{handle: s.createSession, body: reflect.TypeFor[api.SessionRequest](), status: http.StatusNoContent},
			"createSession", "service",
			"Exchanges the token for an HttpOnly, SameSite=Strict cookie",
			"It answers 409 if no token is configured, since none is needed.",
		},
		{
			"DELETE /session", public, ended, "endSession", "service",
			"Ends the session that the caller's cookie carries, if any, and removes the cookie", "",
		},
		{"GET /openapi.yaml", read, gives("application/yaml", document), "getOpenAPI", "service", "This document", ""},
		{
			"GET /healthz", probe,
			action{handle: healthz, status: http.StatusOK, media: "text/plain"},
			"getHealth", "service",
			"Liveness of the process", "",
		},
		{
			"GET /readyz", probe,
			action{handle: s.readyz, status: http.StatusOK, media: "text/plain"},
			"getReadiness", "service",
			"Readiness of the targets; a 503 says why one cannot serve", "",
		},
		{
			"GET /metrics", scrape,
			action{handle: s.metrics, status: http.StatusOK, media: "*/*"},
			"getMetrics", "service",
			"Metrics for Prometheus, in the format that was asked for",
			"Open, unless a token for the metrics is configured (`metrics_token`).",
		},
	}
}

func cancelMode(l Lane, r *http.Request, _ api.LaneQuery) (api.State, error) {
	return l.CancelMode(r.Context(), caller(r))
}

func decisions(l Lane, r *http.Request, q api.DecisionQuery) (api.DecisionList, error) {
	return l.Decisions(r.Context(), q.Limit)
}

func (s *Server) conversations(r *http.Request, q api.ConversationQuery) (api.ConversationList, error) {
	return s.opts.Backend.Conversations(r.Context(), q)
}

func starter(l Lane, r *http.Request, _ api.LaneQuery) (api.Starter, error) {
	return l.Starter(r.PathValue("id"))
}

func (s *Server) events(r *http.Request, q api.EventQuery) (api.EventList, error) {
	list, err := s.opts.Backend.Events(r.Context(), q.Lane, q.Limit)
	return api.EventList{Events: list}, err
}

func comparison(l Lane, _ *http.Request, q api.ComparisonQuery) (api.Comparison, error) {
	return l.Comparison(q.Baseline)
}

func (s *Server) baselines(_ *http.Request, q api.BaselineQuery) (api.BaselineList, error) {
	return pageOf(s.opts.Backend.Baselines(), q.Cursor, q.Limit)
}

// pageOf returns up to n baselines after the one that the cursor names. The page has at most [api.MaxPageRows] rows,
// unless a single baseline has more.
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

func (s *Server) importBaseline(w http.ResponseWriter, r *http.Request, q api.ImportQuery) error {
	b, err := s.readBaseline(w, r, q.Name, api.ModeState{Mode: q.Mode, Speculation: q.Speculation})
	if err != nil {
		return err
	}
	b.Title = cmp.Or(q.Title, b.Title)
	saved, err := s.importInto(r, b, q.Merge, q.DryRun)
	if err != nil {
		return err
	}
	if q.DryRun {
		return reply(w, r, http.StatusOK, "application/json", saved)
	}
	w.Header().Set("Location", api.Prefix+baselinePath(saved))
	return reply(w, r, http.StatusCreated, "application/json", saved)
}

// importInto stores a baseline, or with dry only checks it. merge adds its rows to those of the baseline that it would
// replace.
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

// readBaseline reads the body. run is the mode of a file that does not contain it.
func (s *Server) readBaseline(w http.ResponseWriter, r *http.Request, name string,
	run api.ModeState,
) (api.Baseline, error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case kind != "application/json" && kind != "text/csv":
		return api.Baseline{}, wrongType(r, "application/json or text/csv")
	case kind == "text/csv" && run != (api.ModeState{}):
		return api.Baseline{}, api.Refuse("mode, speculation",
			strings.TrimSpace(string(run.Mode)+" "+string(run.Speculation)),
			"neither with a CSV table: its columns contain them")
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

func (s *Server) deleteBaseline(r *http.Request, _ none) (api.BaselineList, error) {
	left, err := s.opts.Backend.DeleteBaseline(r.Context(), caller(r), r.PathValue("name"))
	if err != nil {
		return api.BaselineList{}, err
	}
	return pageOf(left, "", int(api.Limits["baselines.limit"].Default))
}

func (s *Server) turnsCSV(w http.ResponseWriter, r *http.Request, q api.TurnQuery) error {
	if _, err := s.opts.Backend.Lane(q.Lane); err != nil {
		return err
	}
	return s.download(w, "turns.csv", func(out io.Writer) error {
		return s.opts.Backend.TurnsCSV(r.Context(), out, q.Lane, q.Step)
	})
}

// download sends a CSV file as it is written. An answer that has begun cannot become an error any more, so it is
// truncated.
func (s *Server) download(w http.ResponseWriter, file string, write func(io.Writer) error) error {
	out := &progress{w: w, file: file}
	err := write(out)
	if err != nil && out.begun {
		s.opts.Log.Error("a download was interrupted", "file", file, "error", err)
		panic(http.ErrAbortHandler)
	}
	if err == nil {
		_, err = out.Write(nil) // an empty file is an answer, too
	}
	return err
}

// progress extends the deadline of an answer of any length, as long as it makes progress.
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
	_ = http.NewResponseController(p.w).SetWriteDeadline(deadline(writeTimeout)) // a failure leaves the server's deadline
	return p.w.Write(b)
}

func document(w http.ResponseWriter, _ *http.Request, _ none) error {
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
