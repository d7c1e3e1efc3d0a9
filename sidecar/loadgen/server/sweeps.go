package server

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"

	"kvbooth/sidecar/api"
)

// sweepRoutes are the calls of trials, sweeps and capacity searches, and of reports.
func (s *Server) sweepRoutes() []route {
	b := s.opts.Backend
	all := []route{
		{"GET " + api.Prefix + "/sweeps", read, s.sweeps},
		{"POST " + api.Prefix + "/sweeps", write, s.startSweep},
		{"POST " + api.Prefix + "/sweeps/outlook", write, s.sweepOutlook},
		{"GET " + api.Prefix + "/sweeps/{id}", read, item("id", b.Sweep)},
		{"PATCH " + api.Prefix + "/sweeps/{id}", write, s.patchSweep},
		{"DELETE " + api.Prefix + "/sweeps/{id}", write, s.deleteSweep},
		{"POST " + api.Prefix + "/sweeps/{id}/baseline", write, s.sweepBaseline},
		{"GET " + api.Prefix + "/sweeps/{id}/seconds.csv", read, s.seconds},
	}
	for _, f := range api.ReportFormats {
		all = append(all,
			route{"GET " + api.Prefix + "/sweeps/{id}/report." + string(f), read, s.sweepReport(f)},
			route{"GET " + api.Prefix + "/report." + string(f), read, s.report(f)})
	}
	return all
}

func (s *Server) sweeps(w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	return replyJSON(w, s.opts.Backend.Sweeps(r.Context()), nil)
}

// sweepRequest reads a request and the lane that it is about.
func (s *Server) sweepRequest(w http.ResponseWriter, r *http.Request) (lane string, req api.SweepRequest, err error) {
	v, err := params(r, "lane")
	if err != nil {
		return "", req, err
	}
	lane = laneOf(v)
	if _, err := s.opts.Backend.Lane(lane); err != nil {
		return "", req, err
	}
	if req, err = object[api.SweepRequest](w, r); err != nil {
		return "", req, err
	}
	return lane, req, req.Check()
}

func (s *Server) sweepOutlook(w http.ResponseWriter, r *http.Request) error {
	lane, req, err := s.sweepRequest(w, r)
	if err != nil {
		return err
	}
	outlook, err := s.opts.Backend.SweepOutlook(r.Context(), lane, req)
	return replyJSON(w, outlook, err)
}

func (s *Server) startSweep(w http.ResponseWriter, r *http.Request) error {
	lane, req, err := s.sweepRequest(w, r)
	if err != nil {
		return err
	}
	started, err := s.opts.Backend.StartSweep(r.Context(), caller(r), lane, req)
	if err != nil {
		return err
	}
	w.Header().Set("Location", api.Prefix+"/sweeps/"+url.PathEscape(started.ID))
	return reply(w, http.StatusCreated, "application/json", started)
}

func (s *Server) patchSweep(w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	p, err := object[api.SweepPatch](w, r)
	if err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return err
	}
	sweep, err := s.opts.Backend.PatchSweep(r.Context(), caller(r), r.PathValue("id"), p)
	return replyJSON(w, sweep, err)
}

func (s *Server) deleteSweep(w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	left, err := s.opts.Backend.DeleteSweep(r.Context(), caller(r), r.PathValue("id"))
	return replyJSON(w, left, err)
}

// sweepBaseline makes a baseline, whose name is the backend's to check.
func (s *Server) sweepBaseline(w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	req, err := decode[api.SweepBaselineRequest](w, r)
	if err != nil {
		return err
	}
	made, err := s.opts.Backend.SweepBaseline(r.Context(), caller(r), r.PathValue("id"), req)
	if err != nil {
		return err
	}
	w.Header().Set("Location", api.Prefix+"/baselines/"+url.PathEscape(made.Name))
	return reply(w, http.StatusCreated, "application/json", made)
}

func (s *Server) seconds(w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	id := r.PathValue("id")
	return s.download(w, "sweep-"+id+"-seconds.csv", func(out io.Writer) error {
		return s.opts.Backend.WriteSeconds(r.Context(), out, id)
	})
}

// sweepReport gives the report of a sweep.
func (s *Server) sweepReport(f api.ReportFormat) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := params(r); err != nil {
			return err
		}
		id := r.PathValue("id")
		return giveReport(w, "sweep-"+id, f, func(out io.Writer) error {
			return s.opts.Backend.WriteSweepReport(r.Context(), out, id, f)
		})
	}
}

// report gives the report on any two results.
func (s *Server) report(f api.ReportFormat) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		v, err := params(r, "a", "a_mode", "a_speculation", "b", "b_mode", "b_speculation", "levels")
		if err != nil {
			return err
		}
		a, err := side(v, "a")
		if err != nil {
			return err
		}
		b, err := side(v, "b")
		if err != nil {
			return err
		}
		var levels []api.LevelRange
		if text := v.Get("levels"); text != "" {
			if levels, err = api.ParseLevels(text); err != nil {
				return err
			}
		}
		return giveReport(w, "report", f, func(out io.Writer) error {
			return s.opts.Backend.WriteReport(r.Context(), out, a, b, levels, f)
		})
	}
}

// side reads one of the two results of a report.
func side(v url.Values, name string) (api.ReportSide, error) {
	of := api.ReportSide{Baseline: v.Get(name), Mode: api.Mode(v.Get(name + "_mode")), Speculation: api.Speculation(v.Get(name + "_speculation"))}
	if n := len([]rune(of.Baseline)); n == 0 || n > api.MaxName {
		return of, api.Refuse(name, fmt.Sprintf("%.40q", of.Baseline), fmt.Sprintf("the name of a baseline, at most %d characters", api.MaxName))
	}
	if of.Mode != "" {
		if err := api.OneOf(name+"_mode", of.Mode, api.Modes); err != nil {
			return of, err
		}
	}
	if of.Speculation != "" {
		return of, api.OneOf(name+"_speculation", of.Speculation, api.Speculations)
	}
	return of, nil
}

// giveReport answers with a whole report, or with the reason why there is none. A page
// is shown where it was asked for; its policy keeps it from running a script, whatever
// the names in it hold.
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
	w.Header().Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": name + "." + string(f)}))
	_, _ = w.Write(text.Bytes()) // who does not read the answer has gone
	return nil
}
