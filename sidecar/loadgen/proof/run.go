package proof

import (
	"math"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
)

// runSections is how many sections a single run is cut into: few, so that each is much
// longer than a conversation, in which busy and quiet times make up for each other. More
// of them say too much or too little: the test in sidecar/test/proof judges that.
const runSections = 4

// Estimate is one metric of a setting, with its 95 % interval. Times are in seconds.
type Estimate struct {
	Metric   Metric     `json:"metric"`
	Value    float64    `json:"value"`
	Interval [2]float64 `json:"interval"`
	N        int        `json:"n"` // sections or repeats that the interval rests on
}

// Describe gives the metrics of one run, as far as they are known, with intervals for that
// many seconds, fixed before the start: to look at them again and again and stop when they
// please is what [Trial] is for. Sections that follow their neighbours widen them. An error
// is an *[api.FieldError]: the run is too short, or none.
func Describe(r Recording, slo api.SLO) ([]Estimate, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	found := r.section(runSections, slo, Metrics...)
	all := []Estimate{}
	for _, m := range Metrics {
		if s, ok := found[m]; ok {
			h := student(alpha, s.df()) * math.Sqrt(s.variance()*inflation([]Sectioned{s}))
			all = append(all, m.estimate(s.Whole, h, runSections))
		}
	}
	return all, nil
}

// Repeats gives the metrics that all of several runs of one setting know: the mean of their
// values (the geometric one of times and rates) with Student's t over the runs, which needs
// no word about what goes on inside them. An error is an *[api.FieldError]: fewer than two
// runs, or one that is too short.
func Repeats(runs []Recording, slo api.SLO) ([]Estimate, error) {
	if len(runs) < 2 {
		return nil, api.Refuse("repeats", len(runs), "2 or more")
	}
	values := map[Metric][]float64{}
	for i := range runs {
		if err := runs[i].validate(); err != nil {
			return nil, err
		}
		for m, s := range runs[i].section(1, slo, Metrics...) {
			values[m] = append(values[m], s.Whole)
		}
	}
	all := []Estimate{}
	for _, m := range Metrics {
		if n := len(values[m]); n == len(runs) {
			mean, deviation := stat.MeanStdDev(values[m], nil)
			all = append(all, m.estimate(mean, student(alpha, float64(n-1))*stat.StdErr(deviation, float64(n)), n))
		}
	}
	return all, nil
}

// estimate brings a value and half the width of its interval from the scale.
func (m Metric) estimate(value, half float64, n int) Estimate {
	return Estimate{Metric: m, Value: m.unscaled(value), Interval: [2]float64{m.unscaled(value - half), m.unscaled(value + half)}, N: n}
}
