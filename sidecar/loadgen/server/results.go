package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"kvbooth/sidecar/api"
)

// startSimulation starts a simulation of a what-if question.
func (s *Server) startSimulation(r *http.Request, _ none, req api.SimulationRequest) (api.SimulationResult, error) {
	by := caller(r)
	return s.opts.Backend.StartSimulation(by, s.reader(r).share+" "+by, req)
}

// simulation returns the results so far, or streams the rest.
func (s *Server) simulation(w http.ResponseWriter, r *http.Request, _ none) error {
	id := r.PathValue("id")
	if api.WantsEvents(r) {
		return s.followSimulation(w, r, id)
	}
	v, err := s.opts.Backend.Simulation(id)
	if err != nil {
		return err
	}
	return reply(w, r, http.StatusOK, "application/json", v)
}

// followSimulation sends a simulation's events until it ends, the reader disconnects, or the server stops.
func (s *Server) followSimulation(w http.ResponseWriter, r *http.Request, id string) error {
	open, err := s.streams.begin(r.Context(), s.reader(r))
	if err != nil {
		return err
	}
	defer s.streams.done(open)
	out := &events{w: w}
	err = s.opts.Backend.FollowSimulation(open, id, func(name string, data any) error {
		s.streams.reads(open)
		return out.send(name, data)
	})
	if err != nil && !errors.Is(err, errGone) {
		return err
	}
	return nil
}

// errGone is the error of a disconnected reader.
var errGone = errors.New("the client disconnected")

// events is an answer of server-sent events. It continues as long as it is read.
type events struct {
	w     http.ResponseWriter
	begun bool
}

func (e *events) send(name string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	control := http.NewResponseController(e.w)
	_ = control.SetWriteDeadline(deadline(frameTimeout)) // a failure leaves the server's deadline
	if !e.begun {
		e.begun = true
		e.w.Header().Set("Content-Type", api.EventStream)
		e.w.Header().Set("X-Accel-Buffering", "no") // disables buffering in proxies
	}
	if _, err := fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", name, text); err != nil {
		return errGone
	}
	if control.Flush() != nil {
		return errGone
	}
	return nil
}

func (s *Server) sweeps(r *http.Request, _ none) (api.SweepList, error) {
	return s.opts.Backend.Sweeps(r.Context()), nil
}

func (s *Server) sweepOutlook(r *http.Request, q api.LaneQuery, req api.SweepRequest) (api.SweepOutlook, error) {
	if _, err := s.opts.Backend.Lane(q.Lane); err != nil {
		return api.SweepOutlook{}, err
	}
	return s.opts.Backend.SweepOutlook(r.Context(), q.Lane, req)
}

func (s *Server) previewTraffic(
	r *http.Request, q api.LaneQuery, req api.TrafficPreviewRequest,
) (p api.TrafficPreview, err error) {
	lane, err := s.opts.Backend.Lane(q.Lane)
	if err != nil {
		return p, err
	}
	return lane.PreviewTraffic(r.Context(), req)
}

func (s *Server) startSweep(r *http.Request, q api.LaneQuery, req api.SweepRequest) (api.Sweep, error) {
	if _, err := s.opts.Backend.Lane(q.Lane); err != nil {
		return api.Sweep{}, err
	}
	return s.opts.Backend.StartSweep(r.Context(), caller(r), q.Lane, req)
}

func (s *Server) patchSweep(r *http.Request, _ none, p api.SweepPatch) (api.Sweep, error) {
	return s.opts.Backend.PatchSweep(r.Context(), caller(r), r.PathValue("id"), p)
}

func (s *Server) deleteSweep(r *http.Request, _ none) (api.SweepList, error) {
	return s.opts.Backend.DeleteSweep(r.Context(), caller(r), r.PathValue("id"))
}

// sweepBaseline makes a baseline. The backend checks its name.
func (s *Server) sweepBaseline(r *http.Request, _ none, req api.SweepBaselineRequest) (api.Baseline, error) {
	return s.opts.Backend.SweepBaseline(r.Context(), caller(r), r.PathValue("id"), req)
}

func (s *Server) seconds(w http.ResponseWriter, r *http.Request, _ none) error {
	id := r.PathValue("id")
	return s.download(w, "sweep-"+id+"-seconds.csv", func(out io.Writer) error {
		return s.opts.Backend.WriteSeconds(r.Context(), out, id)
	})
}

// sweepReport returns the report of a sweep.
func (s *Server) sweepReport(f api.ReportFormat) func(http.ResponseWriter, *http.Request, none) error {
	return func(w http.ResponseWriter, r *http.Request, _ none) error {
		id := r.PathValue("id")
		return giveReport(w, "sweep-"+id, f, func(out io.Writer) error {
			return s.opts.Backend.WriteSweepReport(r.Context(), out, id, f)
		})
	}
}

// report returns the report on any two results.
func (s *Server) report(f api.ReportFormat) func(http.ResponseWriter, *http.Request, api.ReportQuery) error {
	return func(w http.ResponseWriter, r *http.Request, q api.ReportQuery) (err error) {
		var levels []api.LevelRange
		if q.Levels != "" {
			if levels, err = api.ParseLevels(q.Levels); err != nil {
				return err
			}
		}
		a := api.ReportSide{Baseline: q.A, Arm: q.AArm, Mode: q.AMode, Speculation: q.ASpeculation}
		b := api.ReportSide{Baseline: q.B, Arm: q.BArm, Mode: q.BMode, Speculation: q.BSpeculation}
		return giveReport(w, "report", f, func(out io.Writer) error {
			return s.opts.Backend.WriteReport(r.Context(), out, a, b, levels, f)
		})
	}
}

// giveReport answers with a whole report, or with the reason why there is none. A page is shown where it was requested.
// Its policy forbids scripts, whatever the names in it contain.
func giveReport(w http.ResponseWriter, name string, f api.ReportFormat, write func(io.Writer) error) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	disposition := "attachment"
	if f == api.ReportHTML {
		disposition = "inline"
		w.Header().Set("Content-Security-Policy", api.ReportPolicy)
	}
	w.Header().Set("Content-Type", f.MediaType())
	w.Header().Set("Content-Disposition", mime.FormatMediaType(disposition,
		map[string]string{"filename": name + "." + string(f)}))
	_, _ = w.Write(text.Bytes()) // a reader that does not read has disconnected
	return nil
}
