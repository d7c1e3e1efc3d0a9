package closedloop

import (
	"math"
	"slices"
	"time"
)

// Figures are what is read of a run, as the recorded tables have it. Times are in
// seconds; NaN: nothing to read it from.
type Figures struct {
	TTFT50, TTFT95       float64
	TPOT50, TPOT95       float64
	Latency50, Latency95 float64
	TokensPerSecond      float64
	RequestsPerSecond    float64
	Hit                  float64 // cached over prompt tokens, 0 to 1
	Causes
}

// Causes are why the figures are as they are.
type Causes struct {
	LargestQueue float64 // longest wait of a turn at its worker, seconds
	Waiting      float64 // mean number of requests in the workers' queues
	Spread       float64 // mean of the busiest worker's requests in flight less the idlest's, over the seconds
	Skew         float64 // mean of the busiest worker's requests in flight over the mean of all
	// Herding is the share of first turns that went to a worker with more requests in
	// flight than the idlest had.
	Herding float64
	// Twice is the share of prompt tokens that were computed although some worker held
	// them when the request was routed.
	Twice float64
}

// Window and snapshots of the recorded results: after a warm-up, three snapshots 100 s
// apart, each of the last 60 s.
const (
	Window    = 60 * time.Second
	Warmup    = 60 * time.Second
	Apart     = 100 * time.Second
	Snapshots = 3
	Length    = Warmup + Snapshots*Apart // of a level
)

// Recorded reads a level that began at a moment as the recorded results were: the mean of the
// three snapshots. The loop must have run for [Length] since.
func (l *Loop) Recorded(from time.Duration) Figures {
	all := make([]Figures, Snapshots)
	for i := range all {
		end := from + Warmup + time.Duration(i+1)*Apart
		all[i] = l.Between(end-Window, end)
	}
	return Mean(all)
}

// Between reads the turns that ended in a span, from excluded and to included, and the
// tokens that came in it. Both are whole seconds.
func (l *Loop) Between(from, to time.Duration) Figures {
	begin, _ := slices.BinarySearchFunc(l.turns, from+1, byEnd)
	end, _ := slices.BinarySearchFunc(l.turns, to+1, byEnd)
	turns := l.turns[begin:end]
	f := Figures{RequestsPerSecond: float64(len(turns)) / (to - from).Seconds()}
	var ttft, tpot, latency []float64
	var prompt, cached int
	for i := range turns {
		t := &turns[i]
		ttft = append(ttft, t.TTFT().Seconds())
		latency = append(latency, t.Latency().Seconds())
		if v, ok := t.TPOT(); ok {
			tpot = append(tpot, v.Seconds())
		}
		prompt += t.PromptTokens
		cached += t.CachedTokens
	}
	f.TTFT50, f.TTFT95 = percentiles(ttft)
	f.TPOT50, f.TPOT95 = percentiles(tpot)
	f.Latency50, f.Latency95 = percentiles(latency)
	f.Hit = float64(cached) / float64(prompt)
	seconds := l.seconds[min(int(from/time.Second), len(l.seconds)):min(int(to/time.Second), len(l.seconds))]
	for _, s := range seconds {
		f.TokensPerSecond += float64(s.Tokens) / (to - from).Seconds()
	}
	f.Causes = causes(turns, seconds, len(l.Cluster.Workers()))
	return f
}

func byEnd(t Turn, at time.Duration) int { return int(t.Ended - at) }

func causes(turns []Turn, seconds []Second, workers int) (c Causes) {
	var first, herding, prompt, twice float64
	for i := range turns {
		t := &turns[i]
		c.LargestQueue = max(c.LargestQueue, t.Queue().Seconds())
		prompt += float64(t.PromptTokens)
		chosen, idlest, most := t.Decision.Worker(), math.MaxInt, 0
		for _, w := range t.Decision.Candidates {
			idlest, most = min(idlest, w.Requests), max(most, w.OverlapBlocks)
		}
		twice += float64((most - chosen.OverlapBlocks) * t.Decision.BlockTokens())
		if t.Number == 1 {
			first++
			if chosen.Requests > idlest {
				herding++
			}
		}
	}
	c.Herding, c.Twice = herding/first, twice/prompt
	for _, s := range seconds {
		n := float64(len(seconds))
		c.Waiting += float64(s.Waiting) / n
		c.Spread += float64(s.Most-s.Least) / n
		c.Skew += float64(s.Most) * float64(workers) / max(float64(s.All), 1) / n
	}
	return c
}

// Mean is the mean of each figure, of those that know it.
func Mean(all []Figures) (mean Figures) {
	for _, of := range Fields {
		sum, n := 0.0, 0.0
		for i := range all {
			if v := *of(&all[i]); !math.IsNaN(v) {
				sum, n = sum+v, n+1
			}
		}
		*of(&mean) = sum / n
	}
	for i := range all {
		mean.LargestQueue = max(mean.LargestQueue, all[i].LargestQueue)
	}
	return mean
}

// Fields are the figures, each by a pointer to it.
var Fields = []func(*Figures) *float64{
	func(f *Figures) *float64 { return &f.TTFT50 }, func(f *Figures) *float64 { return &f.TTFT95 },
	func(f *Figures) *float64 { return &f.TPOT50 }, func(f *Figures) *float64 { return &f.TPOT95 },
	func(f *Figures) *float64 { return &f.Latency50 }, func(f *Figures) *float64 { return &f.Latency95 },
	func(f *Figures) *float64 { return &f.TokensPerSecond }, func(f *Figures) *float64 { return &f.RequestsPerSecond },
	func(f *Figures) *float64 { return &f.Hit },
	func(f *Figures) *float64 { return &f.LargestQueue }, func(f *Figures) *float64 { return &f.Waiting },
	func(f *Figures) *float64 { return &f.Spread }, func(f *Figures) *float64 { return &f.Skew },
	func(f *Figures) *float64 { return &f.Herding }, func(f *Figures) *float64 { return &f.Twice },
}

// percentiles are the median and the 95th percentile, by linear interpolation between
// the two nearest values, as package stats has them; NaN of none.
func percentiles(values []float64) (p50, p95 float64) {
	slices.Sort(values)
	at := func(p float64) float64 {
		if len(values) == 0 {
			return math.NaN()
		}
		h := p * float64(len(values)-1)
		i := min(int(h), max(len(values)-2, 0))
		return values[i] + (h-float64(i))*(values[min(i+1, len(values)-1)]-values[i])
	}
	return at(.5), at(.95)
}
