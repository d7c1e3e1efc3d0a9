package closedloop

import (
	"math"
	"slices"
	"time"

	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/arrival"
)

// Figures are the figures of a run, defined as in the recorded tables. Times are in seconds. NaN means that no data
// are available.
type Figures struct {
	TTFT50, TTFT95       float64
	TTFTMean             float64
	TPOT50, TPOT95       float64
	Latency50, Latency95 float64
	TokensPerSecond      float64
	RequestsPerSecond    float64
	Hit                  float64 // cached over prompt tokens, 0 to 1
	InProgress           float64 // conversations in progress, averaged over the ends of the seconds
	// Dropped is the number of arrivals and further turns dropped per second. Overloaded is 1 where the queue grows
	// without end: the conversations in progress grow over the level, by [arrival.Grows], or arrivals are dropped.
	// Latencies then say how long the level took. Both are 0 for levels that are no rates.
	Dropped, Overloaded float64
	// Active holds the conversations in progress at the ends of the seconds of a level that is a rate.
	Active []float64
	Causes
}

// Causes explain the figures. NaN means that no data are available.
type Causes struct {
	// LargestQueue is the longest wait of a turn at its worker, from its arrival to the beginning of its first
	// iteration, in seconds. It includes the wait for the current iteration, on an idle worker too.
	LargestQueue float64
	// Waiting is the total number of requests in the workers' queues, averaged over the ends of the seconds.
	Waiting float64
	// Spread is the difference in requests in flight between the busiest worker and the idlest. Skew is the ratio
	// of the busiest worker to the mean. Both are averaged over the ends of the seconds; for Skew, only those
	// with a request in flight count.
	Spread, Skew float64
	// Full is the share of seconds at whose end some worker has more requests in flight than fit into its batch.
	Full float64
	// Herding is the share of first turns that the router gave to a worker with more than [CrowdedFactor] times
	// the workers' mean number of requests in flight at that moment.
	Herding float64
	// Twice is the share of prompt tokens that were prefilled twice: computed by the turn's worker, although some
	// worker, possibly the same, held their blocks when the turn was routed:
	//
	//	Σ max(0, min(most, last) · block size − cached) / Σ prompt
	//
	// most is the largest overlap of the prompt with a worker's cache, in blocks. last is the number of blocks that
	// can be reused at all, because a prompt's last token is always computed.
	Twice float64
	// Queued, Prefill and Decode are the parts of a turn: from the request to the first iteration that computes
	// its prompt, from there to its first token, and from there to its last token. They are means in seconds and
	// add up to the mean latency.
	Queued, Prefill, Decode float64
}

// CrowdedFactor is the ratio to the mean number of requests in flight above which a worker counts as crowded. Under
// round-robin, workers hardly ever exceed it.
const CrowdedFactor = 1.1

// The evaluation of the recorded results: after a warm-up, three snapshots 100 s apart, each over the last 60 s.
const (
	Window           = 60 * time.Second
	Warmup           = 60 * time.Second
	SnapshotInterval = 100 * time.Second
	Snapshots        = 3
	LevelDuration    = Warmup + Snapshots*SnapshotInterval
)

// Recorded evaluates a level that began at the given moment as the recorded results were evaluated: the mean of three
// snapshots. The loop must have run for [LevelDuration] since.
func (l *Loop) Recorded(from time.Duration) Figures {
	all := make([]Figures, Snapshots)
	for i := range all {
		end := from + Warmup + time.Duration(i+1)*SnapshotInterval
		all[i] = l.Between(end-Window, end)
	}
	f := Mean(all)
	if !l.load.Waits() {
		f.overload(l.seconds[from/time.Second:])
	}
	return f
}

// overload sets what says whether the load was more than the cluster sustains.
func (f *Figures) overload(seconds []Second) {
	for _, s := range seconds {
		f.Active = append(f.Active, float64(s.Active))
		f.Dropped += float64(s.Dropped) / float64(len(seconds))
	}
	if f.Dropped > 0 || arrival.Grows(f.Active) {
		f.Overloaded = 1
	}
}

// Between evaluates the turns that ended and the tokens that were delivered between two moments, from excluded and to
// included. Both are whole seconds.
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
		f.TTFTMean += t.TTFT().Seconds() / float64(len(turns))
		latency = append(latency, t.Latency().Seconds())
		if v, ok := t.TPOT(); ok {
			tpot = append(tpot, v.Seconds())
		}
		prompt += t.PromptTokens
		cached += t.CachedTokens
	}
	if len(turns) == 0 {
		f.TTFTMean = math.NaN()
	}
	f.TTFT50, f.TTFT95 = Percentiles(ttft)
	f.TPOT50, f.TPOT95 = Percentiles(tpot)
	f.Latency50, f.Latency95 = Percentiles(latency)
	f.Hit = float64(cached) / float64(prompt)
	seconds := l.seconds[min(int(from/time.Second), len(l.seconds)):min(int(to/time.Second), len(l.seconds))]
	for _, s := range seconds {
		f.TokensPerSecond += float64(s.Tokens) / (to - from).Seconds()
		f.InProgress += float64(s.Active) / float64(len(seconds))
	}
	f.Causes = causes(turns, seconds, l.profile)
	return f
}

func byEnd(t Turn, at time.Duration) int { return int(t.Ended - at) }

// decided derives from a decision what the causes need.
func (t *Turn) decided(d *sim.Decision) {
	requests := 0
	for _, w := range d.Candidates {
		requests += w.Requests
		t.held = max(t.held, w.OverlapBlocks)
	}
	t.crowded = float64(d.Worker().Requests*len(d.Candidates)) > CrowdedFactor*float64(requests)
	if len(d.Candidates) <= maxDecided {
		t.Decision = d
	}
}

// causes computes the causes from turns and seconds.
func causes(turns []Turn, seconds []Second, p sim.Profile) Causes {
	block := p.KV.BlockTokens
	c := Causes{LargestQueue: math.NaN()}
	var first, herding, prompt, twice, busy float64
	n := float64(len(turns))
	for i := range turns {
		t := &turns[i]
		if q := t.Queue().Seconds(); !(q <= c.LargestQueue) {
			c.LargestQueue = q
		}
		c.Queued += (t.Started - t.Submitted).Seconds()
		c.Prefill += (t.FirstToken - t.Started).Seconds()
		c.Decode += (t.Ended - t.FirstToken).Seconds()
		prompt += float64(t.PromptTokens)
		twice += float64(max(min(t.held, (t.PromptTokens-1)/block)*block-t.CachedTokens, 0))
		if t.Number == 1 {
			first++
			if t.crowded {
				herding++
			}
		}
	}
	c.Herding, c.Twice = herding/first, twice/prompt
	c.Queued, c.Prefill, c.Decode = c.Queued/n, c.Prefill/n, c.Decode/n
	for _, s := range seconds {
		c.Waiting += float64(s.Waiting) / float64(len(seconds))
		c.Spread += float64(s.Most-s.Least) / float64(len(seconds))
		if s.All > 0 {
			busy++
			c.Skew += float64(s.Most*p.Workers) / float64(s.All)
		}
		if s.Most > p.MaxSequences {
			c.Full += 1 / float64(len(seconds))
		}
	}
	c.Skew /= busy
	return c
}

// Mean returns the mean of each figure over the runs in which it is not NaN. For LargestQueue it returns the largest.
func Mean(all []Figures) (mean Figures) {
	for _, field := range Fields {
		sum, n := 0.0, 0.0
		for i := range all {
			if v := *field.Of(&all[i]); !math.IsNaN(v) {
				sum, n = sum+v, n+1
			}
		}
		*field.Of(&mean) = sum / n
	}
	for i := range all {
		if q := all[i].LargestQueue; q > mean.LargestQueue {
			mean.LargestQueue = q
		}
	}
	return mean
}

// Field is one of the [Figures].
type Field struct {
	Name string // in files and in the API
	Of   func(*Figures) *float64
}

// The fields.
var (
	TTFT50       = Field{"ttft_p50", func(f *Figures) *float64 { return &f.TTFT50 }}
	TTFTMean     = Field{"ttft_mean", func(f *Figures) *float64 { return &f.TTFTMean }}
	TTFT95       = Field{"ttft_p95", func(f *Figures) *float64 { return &f.TTFT95 }}
	TPOT50       = Field{"tpot_p50", func(f *Figures) *float64 { return &f.TPOT50 }}
	TPOT95       = Field{"tpot_p95", func(f *Figures) *float64 { return &f.TPOT95 }}
	Latency50    = Field{"latency_p50", func(f *Figures) *float64 { return &f.Latency50 }}
	Latency95    = Field{"latency_p95", func(f *Figures) *float64 { return &f.Latency95 }}
	Tokens       = Field{"tokens_per_second", func(f *Figures) *float64 { return &f.TokensPerSecond }}
	Requests     = Field{"requests_per_second", func(f *Figures) *float64 { return &f.RequestsPerSecond }}
	Hit          = Field{"hit_ratio", func(f *Figures) *float64 { return &f.Hit }}
	InProgress   = Field{"conversations_in_progress", func(f *Figures) *float64 { return &f.InProgress }}
	LargestQueue = Field{"largest_queue_seconds", func(f *Figures) *float64 { return &f.LargestQueue }}
	Waiting      = Field{"queue", func(f *Figures) *float64 { return &f.Waiting }}
	Spread       = Field{"inflight_spread", func(f *Figures) *float64 { return &f.Spread }}
	Skew         = Field{"inflight_skew", func(f *Figures) *float64 { return &f.Skew }}
	Herding      = Field{"herding_share", func(f *Figures) *float64 { return &f.Herding }}
	Twice        = Field{"prefilled_twice_share", func(f *Figures) *float64 { return &f.Twice }}
	Full         = Field{"full_batch_share", func(f *Figures) *float64 { return &f.Full }}
	Queued       = Field{"queued_seconds", func(f *Figures) *float64 { return &f.Queued }}
	Prefill      = Field{"prefill_seconds", func(f *Figures) *float64 { return &f.Prefill }}
	Decode       = Field{"decode_seconds", func(f *Figures) *float64 { return &f.Decode }}
	Dropped      = Field{"dropped_per_second", func(f *Figures) *float64 { return &f.Dropped }}
	Overloaded   = Field{"overloaded_share", func(f *Figures) *float64 { return &f.Overloaded }}
)

// Fields lists all fields in a fixed order.
var Fields = []Field{
	TTFT50, TTFT95, TTFTMean, TPOT50, TPOT95, Latency50, Latency95, Tokens, Requests, Hit, InProgress, LargestQueue,
	Waiting, Spread, Skew, Herding, Twice, Full, Queued, Prefill, Decode, Dropped, Overloaded,
}

// Percentiles returns the median and the 95th percentile by linear interpolation between the two nearest values, as
// package stats defines them; NaN for no values. It sorts the slice.
func Percentiles(values []float64) (p50, p95 float64) {
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
