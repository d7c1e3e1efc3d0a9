package lane

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
)

// What the levels of an error stand on.
const (
	negligibleOfP50        = .02
	negligibleOfDifference = .1
	tooLargeOfP50          = .5
	remedy                 = "run fewer conversations, give it more cores, or add members"
)

// tooLarge says whether a figure is as likely the load generator's as the target's.
func tooLarge(p50, e *float64) bool { return p50 != nil && e != nil && *e > tooLargeOfP50**p50 }

// latency is one latency of a set of turns.
type latency struct {
	name, key string
	of        func(*api.Metrics) *api.Quantiles
	column    func(*api.Column) *api.LookedUpPair
	threshold func(api.SLO) float64 // 0: it has none
}

var latencies = []latency{
	{
		"TTFT", "ttft", func(m *api.Metrics) *api.Quantiles { return &m.TTFT },
		func(c *api.Column) *api.LookedUpPair { return &c.TTFT }, func(s api.SLO) float64 { return s.TTFT },
	},
	{
		"TPOT", "tpot", func(m *api.Metrics) *api.Quantiles { return &m.TPOT },
		func(c *api.Column) *api.LookedUpPair { return &c.TPOT }, func(s api.SLO) float64 { return s.TPOT },
	},
	{
		"ITL", "itl", func(m *api.Metrics) *api.Quantiles { return &m.ITL },
		func(c *api.Column) *api.LookedUpPair { return &c.ITL }, func(api.SLO) float64 { return 0 },
	},
	{
		"latency", "latency", func(m *api.Metrics) *api.Quantiles { return &m.Latency },
		func(c *api.Column) *api.LookedUpPair { return &c.Latency }, func(api.SLO) float64 { return 0 },
	},
}

// Judge says how large the load generator's own error is in figures and in what is made of
// them: nothing of a metric without an error.
func Judge(lane string, m *api.Metrics, c *api.Comparison, slo api.SLO) (all []api.ClientError) {
	for _, l := range latencies {
		q := l.of(m)
		if q.P50 == nil || q.P50Error == nil || q.P95Error == nil {
			continue
		}
		e := api.ClientError{
			Lane: lane, Metric: l.key, Level: api.VerdictFine, P50Seconds: *q.P50,
			ErrorSeconds: max(*q.P50Error, *q.P95Error), Of: api.OfP50, OfSeconds: *q.P50,
		}
		switch share := e.ErrorSeconds / e.OfSeconds; {
		case share > tooLargeOfP50:
			e.Level = api.VerdictBottleneck
		case share >= negligibleOfP50:
			e.Level = api.VerdictNoticeable
		}
		if t := l.threshold(slo); t > 0 {
			for _, v := range []*api.Quantiles{q, l.live(c)} {
				if v != nil && v.P95 != nil && v.P95Error != nil && !api.Decidable(*v.P95, *v.P95Error, t, l.key == "tpot") {
					e = against(e, api.VerdictBottleneck, *v.P95Error, api.OfThreshold, math.Abs(*v.P95-t))
				}
			}
		}
		if c != nil {
			e = l.differences(c, e)
		}
		all = append(all, e)
	}
	return all
}

// live is what a comparison has of the live step; nil while it settles.
func (l latency) live(c *api.Comparison) *api.Quantiles {
	if c == nil || c.Settling {
		return nil
	}
	return l.of(&c.Live)
}

// differences holds the error against what is shown of a comparison.
func (l latency) differences(c *api.Comparison, e api.ClientError) api.ClientError {
	live := l.of(&c.Live)
	for i := range c.Columns {
		pair := l.column(&c.Columns[i])
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
				e = against(e, api.VerdictBottleneck, both, api.OfDifference, difference)
			case (o == api.OutcomeBetter || o == api.OutcomeWorse) && both >= negligibleOfDifference*difference:
				e = against(e, api.VerdictNoticeable, both, api.OfDifference, difference)
			}
		}
	}
	return e
}

// against is the worse of an error and the same metric's held against something else.
func against(e api.ClientError, level api.Verdict, seconds float64, of api.ErrorBasis,
	ofSeconds float64,
) api.ClientError {
	if rank(level) > rank(e.Level) || level == e.Level && e.Of != api.OfP50 &&
		seconds*e.OfSeconds > e.ErrorSeconds*ofSeconds {
		e.Level, e.ErrorSeconds, e.Of, e.OfSeconds = level, seconds, of, ofSeconds
	}
	return e
}

// rank orders verdicts by how large the error is.
func rank(v api.Verdict) int {
	return slices.Index([]api.Verdict{api.VerdictUnknown, api.VerdictFine, api.VerdictNoticeable, api.VerdictBottleneck},
		v)
}

// Verdict adds to the health of a process what its lag means for the figures of its lanes.
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
		for _, l := range latencies {
			if slices.ContainsFunc(metrics, func(e api.ClientError) bool {
				return e.Metric == l.key &&
					e.Level == worst.Level
			}) {
				names = append(names, l.name)
			}
		}
		advice := remedy
		if h.Simulating {
			advice = "cancel the what-if simulation that runs on the same machine; if that is not enough, " + remedy
		}
		h.Reason = fmt.Sprintf("%s cannot be judged: the load generator's own error is %s; %s", listed(names), words(worst),
			advice)
	case api.VerdictNoticeable:
		h.Reason = fmt.Sprintf("the load generator's own error is %s; the intervals include it", words(worst))
	default:
		h.Reason = fmt.Sprintf("the load generator's own error is %s", words(worst))
	}
	return h
}

// words are the two numbers that a level stands on.
func words(e api.ClientError) string {
	l := latencies[slices.IndexFunc(latencies, func(l latency) bool { return l.key == e.Metric })]
	of := map[api.ErrorBasis]string{
		api.OfP50: "%s %s (p50)", api.OfDifference: "%s difference in %s", api.OfThreshold: "%s distance of %s from its SLO",
	}[e.Of]
	return fmt.Sprintf("at most %s of "+of, inMS(e.ErrorSeconds), inMS(e.OfSeconds), l.name)
}

// inMS writes seconds to two digits or to the millisecond.
func inMS(seconds float64) string {
	ms := 1000 * seconds
	digits := 0
	for at := 10.; ms < at && digits < 2; at /= 10 {
		digits++
	}
	return strconv.FormatFloat(ms, 'f', digits, 64) + " ms"
}

// listed joins names as a sentence does.
func listed(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
