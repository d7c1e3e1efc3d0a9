package stats

import (
	"cmp"
	"encoding/json"
	"math"
	"time"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
)

// Lag buckets are log-linear: eight to an octave, from 1 µs to 134 s.
const (
	lagParts   = 8
	lagOctaves = 27
)

// Lags counts samples of a probe by how late they were. The zero value is empty.
type Lags [lagOctaves * lagParts]uint32

// Add counts a sample.
func (l *Lags) Add(late time.Duration) {
	us := max(1, late.Seconds()*1e6)
	octave := math.Floor(math.Log2(us))
	part := math.Floor((us/math.Exp2(octave) - 1) * lagParts)
	l[min(int(octave)*lagParts+int(part), len(l)-1)]++
}

// lagAt is the upper end of a bucket in seconds.
func lagAt(i int) float64 {
	return math.Exp2(float64(i/lagParts)) * (1 + float64(i%lagParts+1)/lagParts) * 1e-6
}

func (l *Lags) merge(o *Lags) {
	for i := range l {
		l[i] += o[i]
	}
}

// N is the number of samples.
func (l *Lags) N() (n int) {
	for _, count := range l {
		n += int(count)
	}
	return n
}

// Quantile is the p-quantile in seconds, rounded up to the end of its bucket; 0 without samples.
func (l *Lags) Quantile(p float64) float64 {
	rank, below := p*float64(l.N()), 0.0
	for i, count := range l {
		if below += float64(count); count > 0 && below >= rank {
			return lagAt(i)
		}
	}
	return 0
}

// moments are the mean and the standard deviation in seconds.
func (l *Lags) moments() (mean, deviation float64) {
	values, weights := make([]float64, len(l)), make([]float64, len(l))
	for i, count := range l {
		values[i], weights[i] = lagAt(i), float64(count)
	}
	mean, variance := stat.PopMeanVariance(values, weights)
	return mean, math.Sqrt(variance)
}

// MarshalJSON writes the buckets that are not empty, as pairs of place and count.
func (l Lags) MarshalJSON() ([]byte, error) {
	pairs := [][2]uint32{}
	for i, count := range l {
		if count > 0 {
			pairs = append(pairs, [2]uint32{uint32(i), count})
		}
	}
	return json.Marshal(pairs)
}

// UnmarshalJSON ignores places that do not exist.
func (l *Lags) UnmarshalJSON(data []byte) error {
	var pairs [][2]uint32
	if err := json.Unmarshal(data, &pairs); err != nil {
		return err
	}
	*l = Lags{}
	for _, p := range pairs {
		if int64(p[0]) < int64(len(l)) {
			l[p[0]] = p[1]
		}
	}
	return nil
}

// Lag is how late the load generator was over a span, by its probes: a time stamp is as wrong
// as the later of Timer and Stream, and a request goes out later than its stamp by Send.
type Lag struct {
	Timer  Lags `json:"timer"`
	Stream Lags `json:"stream"`
	Send   Lags `json:"send"`
}

// lagSamples of timer and stream are needed before anything is said: two seconds' worth.
const lagSamples = 80

// Known says whether there are enough samples.
func (l *Lag) Known() bool { return l.Timer.N() >= lagSamples && l.Stream.N() >= lagSamples }

// Merge adds the samples of another lag.
func (l *Lag) Merge(o *Lag) {
	l.Timer.merge(&o.Timer)
	l.Stream.merge(&o.Stream)
	l.Send.merge(&o.Send)
}

// Since leaves out the samples that an earlier value of the same count has.
func (l Lag) Since(earlier Lag) Lag {
	for i := range l.Timer {
		l.Timer[i] -= earlier.Timer[i]
		l.Stream[i] -= earlier.Stream[i]
		l.Send[i] -= earlier.Send[i]
	}
	return l
}

// Quantile is the p-quantile of the later probe in seconds.
func (l *Lag) Quantile(p float64) float64 { return max(l.Timer.Quantile(p), l.Stream.Quantile(p)) }

const (
	// certain is how many standard errors a bound allows for: 95 % on one side, for samples of
	// which about four are late together, as bursts are.
	certain = 1.645 * 2
	// more is a quarter on top, since turns are not late at the moments at which the probes are:
	// without it, 114 of 120 bounds on a quiet machine held, and missed by up to 18 %.
	more = 1.25
	// unseen is what the probes may miss, in seconds: their own transport is a loopback.
	unseen = 100e-6
)

// bound is the most that late stamps add to a value, the p-quantile of n. Where the values
// are much alike without them, they add the p-quantile of the lag; where the values are spread
// more widely than the lag, its mean and little more. Of a known shape, the lag's share of the
// spread is that of the squares of the ranges, since late stamps and the target's times are
// independent: that is regression calibration, Carroll et al., "Measurement Error in Nonlinear
// Models" (2006), chapter 4, with ranges in place of deviations, which outliers spoil. And the
// earliest stamp is no later than the earliest samples are.
func (l *Lags) bound(p, value float64, n int, shape *api.Shape) float64 {
	if l.N() == 0 || n == 0 {
		return 0
	}
	deviates := math.Sqrt(1/float64(n) + 1/float64(l.N()))
	above := func(p, errors float64) float64 { return l.Quantile(min(1, p+errors*deviates*math.Sqrt(p*(1-p)))) }
	mean, deviation := l.moments()
	mean += certain * deviation * deviates
	quantile := above(p, certain)
	if shape == nil {
		return max(mean, quantile)
	}
	late := 1. // of the spread, as a share
	if own := above(.95, certain/2) - l.Quantile(.05); own < shape.Range {
		late = own * own / (shape.Range * shape.Range)
	}
	likely := mean + late*(value-shape.Mean)
	return min(max(likely, min(mean, quantile)), max(mean, quantile), value-shape.Least+l.Quantile(.05))
}

// MeanError is the most that late stamps add to the mean of n TTFTs, in seconds.
func (l *Lag) MeanError(n int) float64 {
	bound := func(of *Lags) float64 {
		if of.N() == 0 || n == 0 {
			return 0
		}
		mean, deviation := of.moments()
		return mean + certain*deviation*math.Sqrt(1/float64(n)+1/float64(of.N()))
	}
	return more*max(bound(&l.Timer), bound(&l.Stream)) + unseen + bound(&l.Send)
}

// LagHistory remembers lags: by the second, and all of them in one count. It is not safe for
// concurrent use.
type LagHistory struct {
	Kept    int // seconds that are remembered; 0: five minutes and a few more
	seconds []lagSecond
	total   Lag
}

type lagSecond struct {
	second int64
	lag    Lag
}

// Add takes in samples of one moment.
func (h *LagHistory) Add(at time.Time, lag *Lag) {
	h.at(at).Merge(lag)
	h.total.Merge(lag)
}

// AddTimer takes in a sample of the timer.
func (h *LagHistory) AddTimer(at time.Time, late time.Duration) {
	h.at(at).Timer.Add(late)
	h.total.Timer.Add(late)
}

// AddStream takes in a sample of the stream.
func (h *LagHistory) AddStream(at time.Time, late time.Duration) {
	h.at(at).Stream.Add(late)
	h.total.Stream.Add(late)
}

// AddSend takes in by how much a request was late.
func (h *LagHistory) AddSend(at time.Time, late time.Duration) {
	h.at(at).Send.Add(late)
	h.total.Send.Add(late)
}

func (h *LagHistory) at(t time.Time) *Lag {
	second := t.Unix()
	if h.seconds == nil {
		h.seconds = make([]lagSecond, cmp.Or(h.Kept, 304))
	}
	slot := &h.seconds[second%int64(len(h.seconds))]
	if slot.second != second {
		*slot = lagSecond{second: second}
	}
	return &slot.lag
}

// Between are the samples of the seconds that two times lie in, and of those between.
func (h *LagHistory) Between(from, to time.Time) (lag Lag) {
	for i := range h.seconds {
		if s := &h.seconds[i]; from.Unix() <= s.second && s.second <= to.Unix() {
			lag.Merge(&s.lag)
		}
	}
	return lag
}

// Total are all samples so far.
func (h *LagHistory) Total() Lag { return h.total }

// Allow notes with each latency of a set of turns the most that the load generator itself may be
// wrong by, and widens the intervals by it. A late stamp makes TTFT and latency longer, never
// shorter, while each end of a gap may be late: its error may have either sign. Tokens are those of
// a mean turn, whose TPOT shares the error among its gaps.
func (l *Lag) Allow(m *api.Metrics, tokens float64) {
	for _, of := range []struct {
		q        *api.Quantiles
		share    float64
		bothWays bool
	}{
		{&m.TTFT, 1, false},
		{&m.TPOT, 1 / max(1, tokens-1), true},
		{&m.ITL, 1, true},
		{&m.Latency, 1, false},
	} {
		allow := func(p float64, value *float64, in *[2]float64) (*float64, *[2]float64) {
			if value == nil {
				return nil, in
			}
			shape, send := of.q.Shape, l.Send.Quantile(max(.75, p))
			if of.bothWays {
				shape, send = nil, 0
			}
			e := max(l.Timer.bound(p, *value, of.q.N, shape), l.Stream.bound(p, *value, of.q.N, shape))
			e = (more*e+unseen)*of.share + send
			return &e, Widen(in, &e, of.bothWays)
		}
		of.q.P50Error, of.q.P50Interval = allow(.5, of.q.P50, of.q.P50Interval)
		of.q.P95Error, of.q.P95Interval = allow(.95, of.q.P95, of.q.P95Interval)
	}
}

// AllowRow does the same for a row of N turns.
func (l *Lag) AllowRow(row *api.BaselineRow, tokens float64) {
	if row.Intervals == nil {
		row.Intervals = &api.RowIntervals{}
	}
	in := row.Intervals
	quantiles := func(p api.Percentiles, in api.PercentileIntervals) api.Quantiles {
		return api.Quantiles{P50: p.P50, P95: p.P95, P50Interval: in.P50, P95Interval: in.P95, N: row.N}
	}
	m := api.Metrics{
		TTFT: quantiles(row.TTFT, in.TTFT), TPOT: quantiles(row.TPOT, in.TPOT),
		ITL: quantiles(row.ITL, in.ITL), Latency: quantiles(row.Latency, in.Latency),
	}
	l.Allow(&m, tokens)
	in.TTFT, in.TPOT, in.ITL, in.Latency = intervals(m.TTFT), intervals(m.TPOT), intervals(m.ITL), intervals(m.Latency)
	row.LagSeconds, row.Errors = new(l.Quantile(.95)), errorsOf(&m)
}

func errorsOf(m *api.Metrics) *api.RowErrors {
	of := func(q api.Quantiles) api.Percentiles { return api.Percentiles{P50: q.P50Error, P95: q.P95Error} }
	e := api.RowErrors{TTFT: of(m.TTFT), TPOT: of(m.TPOT), ITL: of(m.ITL), Latency: of(m.Latency)}
	if e == (api.RowErrors{}) {
		return nil
	}
	return &e
}

// Widen gives an interval of a latency that contains an error, too: of a value that is too
// large by so much at most, or, both ways, too small. Either may be nil.
func Widen(in *[2]float64, e *float64, bothWays bool) *[2]float64 {
	if in == nil || e == nil {
		return in
	}
	wide := [2]float64{max(0, in[0]-*e), in[1]}
	if bothWays {
		wide[1] += *e
	}
	return &wide
}
