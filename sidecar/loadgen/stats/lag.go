package stats

import (
	"cmp"
	"encoding/json"
	"math"
	"time"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
)

// Buckets of lags are log-linear: eight to an octave, from 1 µs to 134 s.
const (
	lagParts   = 8
	lagOctaves = 27
)

// Lags counts samples of a probe by their delay. The zero value is empty.
type Lags [lagOctaves * lagParts]uint32

// Add counts a sample.
func (l *Lags) Add(late time.Duration) {
	us := max(1, late.Seconds()*1e6)
	octave := math.Floor(math.Log2(us))
	part := math.Floor((us/math.Exp2(octave) - 1) * lagParts)
	l[min(int(octave)*lagParts+int(part), len(l)-1)]++
}

// lagAt returns the upper end of a bucket in seconds.
func lagAt(i int) float64 {
	return math.Exp2(float64(i/lagParts)) * (1 + float64(i%lagParts+1)/lagParts) * 1e-6
}

func (l *Lags) merge(o *Lags) {
	for i := range l {
		l[i] += o[i]
	}
}

// N returns the number of samples.
func (l *Lags) N() (n int) {
	for _, count := range l {
		n += int(count)
	}
	return n
}

// Quantile returns the p-quantile in seconds, rounded up to the end of its bucket; 0 without samples.
func (l *Lags) Quantile(p float64) float64 {
	rank := p * float64(l.N())
	below := 0.0
	for i, count := range l {
		if below += float64(count); count > 0 && below >= rank {
			return lagAt(i)
		}
	}
	return 0
}

// moments returns the mean and the standard deviation in seconds.
func (l *Lags) moments() (mean, deviation float64) {
	values, weights := make([]float64, len(l)), make([]float64, len(l))
	for i, count := range l {
		values[i] = lagAt(i)
		weights[i] = float64(count)
	}
	mean, variance := stat.PopMeanVariance(values, weights)
	return mean, math.Sqrt(variance)
}

// MarshalJSON writes the non-empty buckets as pairs of index and count.
func (l Lags) MarshalJSON() ([]byte, error) {
	pairs := [][2]uint32{}
	for i, count := range l {
		if count > 0 {
			pairs = append(pairs, [2]uint32{uint32(i), count})
		}
	}
	return json.Marshal(pairs)
}

// UnmarshalJSON reads pairs of index and count. It ignores invalid indices.
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

// Lag is the delay of the load generator over a span, measured by its probes. The error of a time
// stamp is the larger of Timer and Stream. A request is sent later than its stamp by Send.
type Lag struct {
	Timer  Lags `json:"timer"`
	Stream Lags `json:"stream"`
	Send   Lags `json:"send"`
}

// lagSamples is the number of timer and stream samples needed for a result: two seconds' worth.
const lagSamples = 80

// Known reports whether there are enough samples.
func (l *Lag) Known() bool { return l.Timer.N() >= lagSamples && l.Stream.N() >= lagSamples }

// Merge adds the samples of another lag.
func (l *Lag) Merge(o *Lag) {
	l.Timer.merge(&o.Timer)
	l.Stream.merge(&o.Stream)
	l.Send.merge(&o.Send)
}

// Since returns the samples added after an earlier copy of the same count.
func (l Lag) Since(earlier Lag) Lag {
	for i := range l.Timer {
		l.Timer[i] -= earlier.Timer[i]
		l.Stream[i] -= earlier.Stream[i]
		l.Send[i] -= earlier.Send[i]
	}
	return l
}

// Quantile returns the p-quantile of the probe with the larger delay, in seconds.
func (l *Lag) Quantile(p float64) float64 { return max(l.Timer.Quantile(p), l.Stream.Quantile(p)) }

// burstDelay is a delay in seconds during which several tokens of an answer arrive, which then have one time stamp.
const burstDelay = 20e-3

// ExplainsBursts reports whether the load generator read so late so often that a share of answers may have come in
// bursts for that reason alone. Half of the share is enough, since an answer is read many times.
func (l *Lag) ExplainsBursts(share float64) bool { return l.Quantile(1-share/2) >= burstDelay }

const (
	// errorFactor is the number of standard errors in a bound: 95 % on one side, for samples of
	// which about four are late together, as in bursts.
	errorFactor = 1.645 * 2
	// safetyFactor adds a quarter, since turns are not late at the same moments as the probes.
	// Without it, 114 of 120 bounds on a quiet machine held, and missed by up to 18 %.
	safetyFactor = 1.25
	// unseenError is what the probes may miss, in seconds, since their transport is a loopback.
	unseenError = 100e-6
)

// bound returns the most that late stamps add to a value, the p-quantile of n. Where the values
// without late stamps are much alike, late stamps add the p-quantile of the lag; where they are
// spread more widely than the lag, its mean and little more. With a known shape, the lag's share
// of the spread is the ratio of the squared ranges, since late stamps and the target's times are
// independent. That is regression calibration, Carroll et al., "Measurement Error in Nonlinear
// Models" (2006), chapter 4, with ranges in place of deviations, which are sensitive to outliers.
// The earliest stamp is no later than the earliest samples.
func (l *Lags) bound(p, value float64, n int, shape *api.Shape) float64 {
	if l.N() == 0 || n == 0 {
		return 0
	}
	deviates := math.Sqrt(1/float64(n) + 1/float64(l.N()))
	above := func(p, errors float64) float64 {
		return l.Quantile(min(1, p+errors*deviates*math.Sqrt(p*(1-p))))
	}
	mean, deviation := l.moments()
	mean += errorFactor * deviation * deviates
	quantile := above(p, errorFactor)
	if shape == nil {
		return max(mean, quantile)
	}
	late := 1. // share of the spread
	if own := above(.95, errorFactor/2) - l.Quantile(.05); own < shape.Range {
		late = own * own / (shape.Range * shape.Range)
	}
	likely := mean + late*(value-shape.Mean)
	return min(max(likely, min(mean, quantile)), max(mean, quantile), value-shape.Least+l.Quantile(.05))
}

// MeanError returns the most that late stamps add to the mean of n TTFTs, in seconds.
func (l *Lag) MeanError(n int) float64 {
	bound := func(lags *Lags) float64 {
		if lags.N() == 0 || n == 0 {
			return 0
		}
		mean, deviation := lags.moments()
		return mean + errorFactor*deviation*math.Sqrt(1/float64(n)+1/float64(lags.N()))
	}
	return safetyFactor*max(bound(&l.Timer), bound(&l.Stream)) + unseenError + bound(&l.Send)
}

// LagHistory keeps lags by the second, and the sum of all. It is not safe for concurrent use.
type LagHistory struct {
	Kept    int // seconds to keep; 0: five minutes and a few more
	seconds []lagSecond
	total   Lag
}

type lagSecond struct {
	second int64
	lag    Lag
}

// Add adds samples of one moment.
func (h *LagHistory) Add(at time.Time, lag *Lag) {
	h.at(at).Merge(lag)
	h.total.Merge(lag)
}

// AddTimer adds a sample of the timer.
func (h *LagHistory) AddTimer(at time.Time, late time.Duration) {
	h.at(at).Timer.Add(late)
	h.total.Timer.Add(late)
}

// AddStream adds a sample of the stream.
func (h *LagHistory) AddStream(at time.Time, late time.Duration) {
	h.at(at).Stream.Add(late)
	h.total.Stream.Add(late)
}

// AddSend adds the delay of a request.
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

// Between returns the samples of all seconds from that of from to that of to.
func (h *LagHistory) Between(from, to time.Time) (lag Lag) {
	for i := range h.seconds {
		if s := &h.seconds[i]; from.Unix() <= s.second && s.second <= to.Unix() {
			lag.Merge(&s.lag)
		}
	}
	return lag
}

// Total returns all samples so far.
func (h *LagHistory) Total() Lag { return h.total }

// Allow sets for each latency of a set of turns the most that the load generator's own error may
// be, and widens the intervals by it. A late stamp makes TTFT and latency longer, never shorter. So does a turn that is
// sent after its intended moment.
// Each end of a gap may be late, so that the error of a gap may have either sign. tokens is the
// number of a mean turn's tokens, whose gaps share the error of its TPOT.
func (l *Lag) Allow(m *api.Metrics, tokens float64) {
	for i, time := range times {
		q, share, late := time.Quantiles(m), 1., api.LateShare{}
		if of := time.Quantiles(m).Late; of != nil {
			late = *of
		}
		if i == api.TimeTPOT {
			share = 1 / max(1, tokens-1)
		}
		allow := func(p, late float64, value *float64, in *[2]float64) (*float64, *[2]float64) {
			if value == nil {
				return nil, in
			}
			shape, send := q.Shape, l.Send.Quantile(max(.75, p))
			if time.BothWays {
				shape, send = nil, 0
			}
			e := max(l.Timer.bound(p, *value, q.N, shape), l.Stream.bound(p, *value, q.N, shape))
			e = (safetyFactor*e+unseenError)*share + send + late
			return &e, Widen(in, &e, time.BothWays)
		}
		q.P50Error, q.P50Interval = allow(.5, late.P50, q.P50, q.P50Interval)
		q.P95Error, q.P95Interval = allow(.95, late.P95, q.P95, q.P95Interval)
		if i == api.TimeTTFT && q.Mean != nil {
			q.MeanError = new(l.MeanError(q.N) + late.Mean)
			q.MeanInterval = Widen(q.MeanInterval, q.MeanError, false)
		}
	}
}

// AllowRow is Allow for a row of N turns.
func (l *Lag) AllowRow(row *api.BaselineRow, tokens float64) {
	if row.Intervals == nil {
		row.Intervals = &api.RowIntervals{}
	}
	var m api.Metrics
	for _, f := range api.Times {
		p, in := f.Row(row), f.Intervals(row.Intervals)
		*f.Quantiles(&m) = api.Quantiles{P50: p.P50, P95: p.P95, P50Interval: in.P50, P95Interval: in.P95, N: row.N}
	}
	l.Allow(&m, tokens)
	for _, f := range api.Times {
		*f.Intervals(row.Intervals) = intervals(f.Quantiles(&m))
	}
	row.LagSeconds = new(l.Quantile(.95))
	row.Errors = errorsOf(&m)
}

func errorsOf(m *api.Metrics) *api.RowErrors {
	var e api.RowErrors
	for _, f := range api.Times {
		q := f.Quantiles(m)
		*f.Errors(&e) = api.Percentiles{P50: q.P50Error, P95: q.P95Error}
	}
	if e == (api.RowErrors{}) {
		return nil
	}
	return &e
}

// Widen extends an interval of a latency by an error. The value may be too large by the error, or,
// with bothWays, too large or too small. Either pointer may be nil.
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
