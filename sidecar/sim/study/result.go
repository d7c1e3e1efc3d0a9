package study

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
)

// Result is the result of a request as it is written to a file. It does not depend on the time or the place of the
// computation, so that equal requests give equal bytes.
type Result struct {
	Basis       string        `json:"basis"`      // always "simulated"
	Calibrated  bool          `json:"calibrated"` // the profile's times were fitted to measurements under this speculation
	About       string        `json:"about"`      // origin of the times
	Request     Request       `json:"request"`    // complete
	Points      []ResultPoint `json:"points"`     // in the order of levels, then modes
	Explanation []string      `json:"explanation"`

	profile sim.Profile
	points  []Point
}

// ResultPoint is the result of one level in one mode. Figures are named as in [closedloop.Fields]; missing values are
// left out. Times are in seconds, shares from 0 to 1.
type ResultPoint struct {
	Level      api.Level            `json:"concurrency"`
	Mode       api.Mode             `json:"mode"`
	Overloaded bool                 `json:"overloaded,omitempty"` // see [Point.Overloaded]
	Figures    map[string]Estimate  `json:"figures"`
	Runs       []map[string]float64 `json:"runs"` // figures of each seed
}

// Estimate is the mean of a figure over the seeds, with the smallest and the largest value.
type Estimate struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// basis is the mark of all results.
const basis = "simulated"

// NewResult returns the result of a request's points on a profile.
func NewResult(r Request, p sim.Profile, points []Point) Result {
	full := r.Complete(p)
	result := Result{
		Basis: basis, Calibrated: p.CalibratedFor(*full.Speculation), About: p.Speculation[*full.Speculation].Basis,
		Request: full, Explanation: ExplainModes(points), profile: p, points: points,
	}
	if *full.Speculation == api.SpeculationNotRecorded {
		result.About = p.Basis
	}
	for i := range points {
		result.Points = append(result.Points, resultPoint(&points[i]))
	}
	return result
}

func resultPoint(p *Point) ResultPoint {
	r := ResultPoint{Level: p.Level, Mode: p.Mode, Overloaded: p.Overloaded(), Figures: map[string]Estimate{}}
	mean := p.Mean()
	for _, field := range closedloop.Fields {
		if low, high := p.Band(field); !math.IsNaN(low) {
			r.Figures[field.Name] = Estimate{Mean: *field.Of(&mean), Low: low, High: high}
		}
	}
	for run := range p.Runs {
		values := map[string]float64{}
		for _, field := range closedloop.Fields {
			if v := *field.Of(&p.Runs[run]); !math.IsNaN(v) {
				values[field.Name] = v
			}
		}
		r.Runs = append(r.Runs, values)
	}
	return r
}

// ReadResult reads the output of [Result.WriteJSON]. An error is an *[api.FieldError] with the field "result", or the
// error of the reader.
func ReadResult(r io.Reader) (Result, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxResult+1))
	if err != nil {
		return Result{}, err
	}
	var result Result
	d := json.NewDecoder(bytes.NewReader(api.PresentNames(text)))
	d.DisallowUnknownFields()
	err = d.Decode(&result)
	switch {
	case len(text) > maxResult:
		err = fmt.Errorf("more than %d bytes", maxResult)
	case err == nil && result.Basis != basis:
		err = errors.New("it is not marked as simulated")
	}
	for _, p := range result.Points {
		point := Point{Level: p.Level, Mode: p.Mode}
		for _, values := range p.Runs {
			var f closedloop.Figures
			for _, field := range closedloop.Fields {
				v, ok := values[field.Name]
				if !ok {
					v = math.NaN()
				}
				*field.Of(&f) = v
			}
			point.Runs = append(point.Runs, f)
		}
		result.points = append(result.points, point)
	}
	if err != nil {
		allowed := fmt.Sprintf("a result in JSON as booth simulate writes it (%v)", err)
		return Result{}, api.Refuse("result", "this file", allowed)
	}
	return result, nil
}

// maxResult is the maximum size of a result, in bytes.
const maxResult = 64 << 20

// Curves returns the modes of the result as curves. prefix, if not empty, is put in front of their names.
func (r *Result) Curves(prefix string) []Curve {
	curves := Curves(r.points)
	for i := range curves {
		curves[i].Name = strings.TrimSpace(prefix + " " + curves[i].Name)
	}
	return curves
}

// WriteJSON writes the result in the form that [ReadResult] reads.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteCSV writes comment lines that describe the simulation, and a row for each level and mode: of each figure the
// mean over the seeds, the smallest and the largest value. Times are in seconds, shares from 0 to 1. Missing values
// are empty.
func (r *Result) WriteCSV(w io.Writer) error {
	request, err := json.Marshal(r.Request)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "# %s\n# request: %s\n", r.Heading(), request)
	out := csv.NewWriter(w)
	header := []string{"concurrency", "mode", "runs"}
	for _, f := range closedloop.Fields {
		header = append(header, f.Name, f.Name+"_low", f.Name+"_high")
	}
	_ = out.Write(header) // out.Error reports the error below
	for _, p := range r.Points {
		row := []string{p.Level.String(), string(p.Mode), strconv.Itoa(len(p.Runs))}
		for _, f := range closedloop.Fields {
			e, ok := p.Figures[f.Name]
			if !ok {
				row = append(row, "", "", "")
				continue
			}
			for _, v := range []float64{e.Mean, e.Low, e.High} {
				row = append(row, strconv.FormatFloat(v, 'g', -1, 64))
			}
		}
		_ = out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// Heading returns one line that describes the simulation.
func (r *Result) Heading() string {
	calibrated := "times fitted to " + r.profile.Baseline
	if !r.Calibrated {
		calibrated = "not calibrated"
	}
	runs := fmt.Sprintf("%d seeds", *r.Request.Seeds)
	if *r.Request.Seeds == 1 {
		runs = "one seed"
	}
	return fmt.Sprintf("Simulated, not measured: %s (%s), %d × %s, %s.",
		*r.Request.Profile, calibrated, *r.Request.Workers, r.profile.GPU, runs)
}

// Baseline converts the result to a baseline that the load generator can compare with. Title, GPU, engine and notes
// mark it as simulated. A row has the means over the seeds.
func (r *Result) Baseline(name string) api.Baseline {
	q := r.Request
	request, _ := json.Marshal(q) // cannot fail: it was checked
	b := api.Baseline{
		Name: name, Title: fmt.Sprintf("Simulated: %d × %s", *q.Workers, r.profile.GPU), Kind: "imported",
		Notes: strings.Join([]string{
			r.Heading(),
			"Each value is the mean over the seeds of the mean of three windows of 60 s, as the recorded results are read.",
			fmt.Sprintf("About the times: %.1000s", r.About), "Request: " + string(request),
		}, "\n"),
		Deployment: api.Deployment{
			Engine: basis, Model: r.profile.DeployedModel(), GPU: basis + " " + r.profile.GPU,
			Workers: *q.Workers, TensorParallel: r.profile.TensorParallel, Speculation: *q.Speculation,
			Serving: "aggregated", BlockSize: *q.BlockSize, MaxBatchSize: *q.MaxBatchSize,
			MaxNumTokens: r.profile.MaxBatchedTokens, ChunkedPrefill: new(true),
			KVCacheDtype: strings.ToLower(r.profile.Precision),
		},
		Workload: &api.WorkloadShape{
			Turns: *q.Turns, MaxTokens: *q.MaxTokens, Openings: q.Openings, OpeningTokens: *q.OpeningTokens,
			OutputTokens: q.OutputTokens, Followup: fmt.Sprintf("questions of %g tokens", q.QuestionTokens.Mean),
			ThinkTime: q.ThinkTime,
		},
	}
	if !q.Shape.Recorded() {
		b.Workload = &api.WorkloadShape{MaxTokens: *q.MaxTokens, ThinkTime: q.ThinkTime, Traffic: "shape " + q.Shape.String()}
	}
	if q.OutputTokens.Mean == 0 {
		b.Workload.OutputTokens = nil // answers always reach the limit
	}
	for i := range r.points {
		m := r.points[i].Mean()
		b.Rows = append(b.Rows, api.BaselineRow{
			Level: r.points[i].Level, Mode: r.points[i].Mode, Speculation: *q.Speculation,
			TTFT:    api.Percentiles{P50: known(m.TTFT50), P95: known(m.TTFT95)},
			TPOT:    api.Percentiles{P50: known(m.TPOT50), P95: known(m.TPOT95)},
			Latency: api.Percentiles{P50: known(m.Latency50), P95: known(m.Latency95)},

			OutputTokensPerSecond: known(m.TokensPerSecond), RequestsPerSecond: known(m.RequestsPerSecond),
			KVHitRatio: known(m.Hit),
		})
	}
	slices.SortStableFunc(b.Rows, func(a, b api.BaselineRow) int { return a.Level.Compare(b.Level) })
	return b
}

// known returns a pointer to a value, or nil for NaN.
func known(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}
