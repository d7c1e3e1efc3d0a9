package sweep

import (
	"io"

	"kvbooth/sidecar/api"
)

func proofWords(s *api.Sweep) []string { return []string{} }

func writeSweepReport(w io.Writer, v api.Sweep, f api.ReportFormat) error {
	return api.Refuse("format", f, "none yet")
}

func writeReport(w io.Writer, c Catalogue, a, b api.ReportSide, f api.ReportFormat) error {
	return api.Refuse("format", f, "none yet")
}
