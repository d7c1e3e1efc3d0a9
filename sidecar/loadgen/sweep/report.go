package sweep

import (
	"context"
	"io"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/report"
)

// WriteSweepReport writes the report of a sweep, which need not have ended. Errors are
// [api.ErrNotFound], an [api.FieldError] for another format, and those of w.
func (d *Desk) WriteSweepReport(ctx context.Context, w io.Writer, id string, f api.ReportFormat) error {
	v, err := d.Sweep(ctx, id)
	if err != nil {
		return err
	}
	return report.Write(w, report.OfSweep(v), f)
}

// WriteReport writes the report on any two results: b compared with a, at some levels, or at all levels where levels is
// empty. The error is an [api.FieldError] for an invalid side, level or format, [api.ErrNotFound] for an unknown
// baseline, or that of w.
func (d *Desk) WriteReport(
	_ context.Context, w io.Writer, a, b api.ReportSide, levels []api.LevelRange, f api.ReportFormat,
) error {
	first, err := d.opts.Catalog.Baseline(a.Baseline)
	if err != nil {
		return err
	}
	other, err := d.opts.Catalog.Baseline(b.Baseline)
	if err != nil {
		return err
	}
	q := proof.Question{A: a, B: b, Levels: levels, SLO: d.opts.Catalog.Settings().SLO}
	r, err := report.Compare(first, other, q)
	if err != nil {
		return err
	}
	return report.Write(w, r, f)
}
