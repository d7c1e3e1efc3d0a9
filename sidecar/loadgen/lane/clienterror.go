package lane

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
)

// The limits between the levels of an error, as shares of the p50 that the error is compared with. The limit of a
// difference is [baseline.LeastOwnError].
const (
	negligibleOfP50 = .02
	tooLargeOfP50   = .5
	remedy          = "run fewer conversations, give it more cores, or add members"
)

// tooLarge reports whether an error exceeds half of a figure: then the load generator may have
// caused as much of the figure as the target.
func tooLarge(p50, e *float64) bool { return p50 != nil && e != nil && *e > tooLargeOfP50**p50 }

// Unjudgeable returns the reason why a time of a row cannot be judged: more than half of its p50 may be the load
// generator's own error. It is empty where it can be judged.
func Unjudgeable(f *api.Figure, row *api.BaselineRow) string {
	if row.Errors == nil {
		return ""
	}
	p50, e := f.Row(row).P50, f.Errors(row.Errors).P95
	if !tooLarge(p50, e) {
		return ""
	}
	return fmt.Sprintf("%s cannot be judged: up to %s of its %s (p50) may be the load generator's own; %s",
		f.Short(), api.Milliseconds(*e), api.Milliseconds(*p50), remedy)
}

// Judge compares the load generator's own error in each metric with the metric, with its distance
// from the SLO, and with its differences from a baseline. A nil c means that there is no baseline.
// Metrics without an error are left out.
func Judge(lane string, m *api.Metrics, c *api.Comparison, slo api.SLO) (all []api.ClientError) {
	for _, f := range api.Times {
		q := f.Quantiles(m)
		if q.P50 == nil || q.P50Error == nil || q.P95Error == nil {
			continue
		}
		e := api.ClientError{
			Lane: lane, Metric: f.Key, Level: api.VerdictFine, P50Seconds: *q.P50,
			ErrorSeconds: max(*q.P50Error, *q.P95Error), Of: api.OfP50, OfSeconds: *q.P50,
		}
		switch share := e.ErrorSeconds / e.OfSeconds; {
		case share > tooLargeOfP50:
			e.Level = api.VerdictBottleneck
		case share >= negligibleOfP50:
			e.Level = api.VerdictNoticeable
		}
		if f.Objective != nil && f.Objective(slo) > 0 {
			t := f.Objective(slo)
			for _, v := range []*api.Quantiles{q, liveOf(f, c)} {
				if v != nil && v.P95 != nil && v.P95Error != nil && !api.Decidable(*v.P95, *v.P95Error, t, f.BothWays) {
					e = worse(e, api.VerdictBottleneck, *v.P95Error, api.OfThreshold, math.Abs(*v.P95-t))
				}
			}
		}
		if c != nil {
			e = differences(f, c, e)
		}
		all = append(all, e)
	}
	return all
}

// liveOf returns the live step's quantiles of a time in a comparison; nil while the step settles.
func liveOf(f *api.Figure, c *api.Comparison) *api.Quantiles {
	if c == nil || c.Settling {
		return nil
	}
	return f.Quantiles(&c.Live)
}

// differences compares the error with the differences of a time that a comparison shows, and returns
// the worst result.
func differences(f *api.Figure, c *api.Comparison, e api.ClientError) api.ClientError {
	live := f.Quantiles(&c.Live)
	for i := range c.Columns {
		pair := f.Column(&c.Columns[i])
		for _, d := range []struct {
			live, error *float64
			was         *api.LookedUp
		}{{live.P50, live.P50Error, &pair.P50}, {live.P95, live.P95Error, &pair.P95}} {
			if d.was.Improvement == nil || d.error == nil {
				continue
			}
			both := *d.error
			if d.was.Error != nil {
				both += *d.was.Error
			}
			difference := math.Abs(*d.live - *d.was.Value)
			switch o := d.was.Improvement.Outcome; {
			case o == api.OutcomeWithheld:
				e = worse(e, api.VerdictBottleneck, both, api.OfDifference, difference)
			case (o == api.OutcomeBetter || o == api.OutcomeWorse) && both >= baseline.LeastOwnError*difference:
				e = worse(e, api.VerdictNoticeable, both, api.OfDifference, difference)
			}
		}
	}
	return e
}

// worse returns the worse of two results of one metric: e, and an error of errorSeconds that is
// compared with basisSeconds.
func worse(e api.ClientError, level api.Verdict, errorSeconds float64, basis api.ErrorBasis,
	basisSeconds float64,
) api.ClientError {
	largerShare := errorSeconds*e.OfSeconds > e.ErrorSeconds*basisSeconds
	if rank(level) > rank(e.Level) || level == e.Level && e.Of != api.OfP50 && largerShare {
		e.Level, e.ErrorSeconds = level, errorSeconds
		e.Of, e.OfSeconds = basis, basisSeconds
	}
	return e
}

// rank orders verdicts by the size of the error.
func rank(v api.Verdict) int {
	return slices.Index([]api.Verdict{api.VerdictUnknown, api.VerdictFine, api.VerdictNoticeable, api.VerdictBottleneck},
		v)
}

// Verdict sets a process's verdict and reason from the errors in the figures of its lanes. Without
// errors, or while the lag is not known, it returns h unchanged.
func Verdict(h api.ClientHealth, metrics []api.ClientError) api.ClientHealth {
	if h.Verdict == api.VerdictUnknown || len(metrics) == 0 {
		return h
	}
	h.Metrics = metrics
	worst := slices.MaxFunc(metrics, func(a, b api.ClientError) int {
		return cmp.Or(rank(a.Level)-rank(b.Level), cmp.Compare(a.ErrorSeconds*b.OfSeconds, b.ErrorSeconds*a.OfSeconds))
	})
	h.Verdict = worst.Level
	switch h.Verdict {
	case api.VerdictBottleneck:
		var names []string
		for _, f := range api.Times {
			if slices.ContainsFunc(metrics, func(e api.ClientError) bool {
				return e.Metric == f.Key && e.Level == worst.Level
			}) {
				names = append(names, f.InSentence())
			}
		}
		advice := remedy
		if h.Simulating {
			advice = "cancel the what-if simulation that runs on the same machine; if that is not enough, " + remedy
		}
		h.Reason = fmt.Sprintf("%s cannot be judged: the load generator's own error is %s; %s",
			joinNames(names), describeError(worst), advice)
	case api.VerdictNoticeable:
		h.Reason = fmt.Sprintf("the load generator's own error is %s; the intervals include it", describeError(worst))
	default:
		h.Reason = fmt.Sprintf("the load generator's own error is %s", describeError(worst))
	}
	return h
}

// describeError writes an error and what it is compared with.
func describeError(e api.ClientError) string {
	name := api.FigureOf(e.Metric).InSentence()
	basis := ""
	switch e.Of {
	case api.OfP50:
		basis = fmt.Sprintf("%s %s (p50)", api.Milliseconds(e.OfSeconds), name)
	case api.OfDifference:
		basis = fmt.Sprintf("%s difference in %s", api.Milliseconds(e.OfSeconds), name)
	case api.OfThreshold:
		basis = fmt.Sprintf("%s distance of %s from its SLO", api.Milliseconds(e.OfSeconds), name)
	}
	return fmt.Sprintf("at most %s of %s", api.Milliseconds(e.ErrorSeconds), basis)
}

// joinNames joins names with commas and "and".
func joinNames(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
