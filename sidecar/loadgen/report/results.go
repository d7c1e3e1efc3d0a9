package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/proof"
)

// Results is the report on two results or on a sweep. None of its numbers is NaN or infinite.
type Results struct{ proof.Comparison }

// Compare returns the report that compares b with a. q selects the modes and levels. The errors come from
// [proof.Compare].
func Compare(a, b api.Baseline, q proof.Question) (*Results, error) {
	c, err := proof.Compare(a, b, q)
	if err != nil {
		return nil, err
	}
	r := &Results{c}
	r.Program = api.Program()
	modes := [2]string{c.Sides[0].Mode.Short(), c.Sides[1].Mode.Short()}
	switch {
	case a.Name == b.Name:
		r.Title = c.Sides[1].Name + " against " + c.Sides[0].Name + ": " + a.Title
	case c.Sides[0].Mode == c.Sides[1].Mode:
		r.Title = modes[0] + ": " + b.Title + " against " + a.Title
	default:
		r.Title = modes[1] + " against " + modes[0] + ": " + b.Title + " against " + a.Title
	}
	r.Words = append(r.kindWords(), r.sideWords()...)
	return r, nil
}

// OfSweep returns the report of a sweep of any kind. The report of an unfinished sweep states how far it is.
func OfSweep(s api.Sweep) *Results {
	r := &Results{proof.CompareSweep(&s, sweepTitle(&s))}
	r.Program, r.Sweep.Unfinished = api.Program(), unfinished(&s)
	if onPairs(s.Trial) {
		r.Words = append([]string{}, s.Words...)
	} else {
		r.Words = append(kindSentences(s.Deployment.Kind), r.words()...)
	}
	return r
}

// sweepTitle returns the title of the request, or one that names kind, modes and levels.
func sweepTitle(s *api.Sweep) string {
	if t := s.Request.Title; t != nil && *t != "" {
		return *t
	}
	names := proof.ModeNames(s.Request.Modes)
	switch {
	case s.Request.Kind == api.SweepTrial && len(names) == 2:
		return fmt.Sprintf("Trial: %s against %s at %s", names[1], names[0], api.LevelsInWords(s.Request.Levels))
	case s.Request.Kind == api.SweepTrial && len(names) > 2:
		return fmt.Sprintf("Trial: %s at %s", join(names), api.LevelsInWords(s.Request.Levels))
	case s.Request.Kind == api.SweepCapacity:
		return "Capacity within the SLOs: " + strings.Join(names, ", ")
	}
	return "Sweep of " + plural(len(s.Request.Levels), "level") + ": " + strings.Join(names, ", ")
}

// unfinished returns the number of measured spans. It is empty for a sweep that is done.
func unfinished(s *api.Sweep) string {
	if s.State == api.SweepDone {
		return ""
	}
	if of := s.Progress.Of; of != nil {
		return fmt.Sprintf("%d of %s", s.Progress.Spans, plural(*of, "span"))
	}
	return plural(s.Progress.Spans, "span")
}

// Formats implements [Readable].
func (r *Results) Formats() Formats {
	if r.Sweep == nil {
		return CompareFormats
	}
	return ResultFormats
}

// Document implements [Readable].
func (r *Results) Document() Document { return Document{Title: r.Title, Sections: r.sections()} }

// Records returns a row for each level of each side. Times are in seconds, shares from 0 to 1, and an unknown value is
// empty. Measured values have all digits, computed ones six. The columns _low and _high bound an interval. Advantages
// compare with the first side at the same level. The column arm is there if any side is an arm.
func (r *Results) Records() [][]string {
	named := slices.ContainsFunc(r.Sides, func(s proof.Side) bool { return s.Mode.Arm != "" })
	head := []string{"side", "baseline", "concurrency", "mode", "speculation"}
	if named {
		head = append(head, "arm")
	}
	head = append(head, "n", "seconds")
	all := r.Quantities()
	for _, q := range all {
		for _, name := range []string{
			"%s", "%s_low", "%s_high", "advantage_%s", "advantage_%s_low", "advantage_%s_high", "outcome_%s",
		} {
			head = append(head, fmt.Sprintf(name, q.Name))
		}
	}
	head = append(head, "error_ratio")
	for _, q := range baseline.OfCluster {
		head = append(head, q.Name)
	}
	ranking := r.ranking()
	if ranking != nil {
		head = append(head, "place_from", "place_to", "may_be_best")
	}
	records := [][]string{head}
	for i := range r.Sides {
		s := &r.Sides[i]
		for j := range s.Rows {
			row := &s.Rows[j]
			fields := []string{
				api.CSVText(oneLine(s.Name)), api.CSVText(oneLine(s.Baseline)), row.Level.String(),
				string(row.Mode), string(row.Speculation),
			}
			if named {
				fields = append(fields, row.Arm)
			}
			fields = append(fields, strconv.Itoa(row.N), digits(&row.Seconds, -1))
			for _, q := range all {
				f := r.overFirst(i, row.Level)[q]
				fields = append(fields, digits(*q.In(row), -1))
				fields = append(fields, ends(q.IntervalOf(row), -1)...)
				fields = append(fields, digits(f.Advantage, 6))
				fields = append(append(fields, ends(f.Interval, 6)...), string(f.Outcome))
			}
			fields = append(fields, digits(row.ErrorRatio, -1))
			for _, q := range baseline.OfCluster {
				fields = append(fields, digits(*q.In(row), -1))
			}
			if ranking != nil {
				fields = append(fields, placeFields(ranking, s.Mode)...)
			}
			records = append(records, fields)
		}
	}
	return records
}

// placeFields returns the first and last place that a mode may have, and whether it may be the best.
func placeFields(k *api.TrialRanking, mode api.ModeState) []string {
	for _, p := range k.Places {
		if p.Mode == mode {
			return []string{strconv.Itoa(p.Place[0]), strconv.Itoa(p.Place[1]), strconv.FormatBool(p.MayBeBest)}
		}
	}
	return []string{"", "", ""}
}

// overFirst returns the comparison of a side with the first side at a level. It is nil for a level that one of them
// lacks.
func (r *Results) overFirst(side int, level api.Level) map[proof.Quantity]proof.Figure {
	for i := range r.Pairs {
		if p := &r.Pairs[i]; p.A == 0 && p.B == side {
			for _, l := range p.Levels {
				if l.Level == level {
					return l.Figures
				}
			}
		}
	}
	return nil
}

func ends(v *[2]float64, n int) []string {
	if v == nil {
		return []string{"", ""}
	}
	return []string{digits(&v[0], n), digits(&v[1], n)}
}

func digits(v *float64, n int) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', n, 64)
}
