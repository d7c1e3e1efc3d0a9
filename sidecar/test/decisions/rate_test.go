//go:build verify

package decisions

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/workload"
	open "kvbooth/sidecar/sim/arrival"
	"kvbooth/sidecar/test/montecarlo"
)

// queues are three workers, each of which prefills one prompt after the other and then streams answers without limit.
// Turns go to them in turn. Conversations of three to five turns come at a rate.
type queues struct {
	load     float64 // share of what the workers of arm A sustain
	arrivals open.Schedule
	faster   float64 // share by which prefill is faster under B
	more     int     // arms besides A and B, all like A
}

const (
	prefill = .25 // seconds, mean
	workers = 3
)

// rate returns the conversations that begin in a second.
func (q queues) rate() float64 { return q.load * workers / prefill / 4 }

// arriving is a turn that arrives at a worker.
type arriving struct {
	at           float64
	conversation int
	number, of   int
}

type turnQueue []arriving

func (q turnQueue) Len() int           { return len(q) }
func (q turnQueue) Less(i, j int) bool { return q[i].at < q[j].at }
func (q turnQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *turnQueue) Push(x any)        { *q = append(*q, x.(arriving)) }
func (q *turnQueue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

// run runs a span. Its arrivals and the lengths of its conversations follow from the seed of the span, and all times
// from that of the trial.
func (q queues) run(s proof.Span, trial, number int) proof.Result {
	schedule := q.arrivals
	schedule.Seed = s.Seed
	arrivals, lengths := open.NewOpen(0, 0, open.Ramp{To: q.rate()}, schedule), rand.New(rand.NewPCG(s.Seed, 5))
	chance := rand.New(rand.NewPCG(uint64(trial), uint64(number)))
	mean := prefill
	if s.Arm == proof.ArmB {
		mean *= 1 - q.faster
	}
	var free [workers]float64
	var waiting turnQueue
	r := proof.Recording{BySent: true}
	next, conversations, sent, left, warm := arrivals.Begin(open.State{}).Seconds(), 0, 0, s.WarmUp, s.From
	ended := 0.     // of the turns that count
	var steps []int // changes of the number in progress, by second
	change := func(at float64, by int) {
		for len(steps) <= int(at) {
			steps = append(steps, 0)
		}
		steps[int(at)] += by
	}
	for until := math.Inf(1); ; {
		for len(waiting) == 0 || next < waiting[0].at {
			heap.Push(&waiting, arriving{next, conversations, 1, 3 + lengths.IntN(3)})
			change(next, 1)
			conversations++
			next = arrivals.Begin(open.State{}).Seconds()
		}
		t := heap.Pop(&waiting).(arriving)
		if left == 0 {
			r.CountedFrom = math.Ceil(warm) + s.RunIn*s.Seconds
			r.Until = r.CountedFrom + s.Seconds
			until = r.Until
		}
		if t.at >= until {
			break
		}
		w := sent % workers
		sent++
		first := max(t.at, free[w]) + mean*math.Exp(.5*chance.NormFloat64()-.125)
		free[w] = first
		ends := first + 5*math.Exp(.1*chance.NormFloat64())
		ended = max(ended, ends)
		r.Turns = append(r.Turns, workload.Outcome{
			Number: t.number, Status: api.TurnOK, Sent: seconds(t.at), TTFT: first - t.at, Latency: ends - t.at,
			TPOT: (ends - first) / 200, OutputTokens: 201, Usage: true, FinishReason: "length",
		})
		if t.number < t.of {
			heap.Push(&waiting, arriving{ends, t.conversation, t.number + 1, t.of})
			continue
		}
		change(ends, -1)
		if t.conversation < s.WarmUp {
			left--
			warm = max(warm, ends)
		}
	}
	r.Tokens = make([]float64, int(r.Until)+1)
	for i := range r.Turns {
		if end, _ := r.Turns[i].End(); end < r.Until {
			r.Tokens[int(end)] += 201
		}
	}
	active, now := []float64{}, 0
	for _, by := range steps[:int(r.Until)] {
		now += by
		active = append(active, float64(now))
	}
	return proof.Result{
		Elapsed: min(max(r.Until, ended), r.Until+s.Seconds) + switching, Before: math.Ceil(warm), Recording: r,
		Growth:     active[int(r.Until)-1] - active[int(r.CountedFrom)],
		Overloaded: open.Grows(active[max(0, 2*int(warm)-len(active)):]),
	}
}

// switching is the time of a change of arm in seconds.
const switching = 5.

// rarely returns the largest plausible number of errors in n trials with an error rate of 1 %: three standard errors
// above.
func rarely(n int) int { return int(math.Ceil(.01*float64(n) + 3*math.Sqrt(.01*.99*float64(n)))) }

// Trials at a rate, on queues: equal arms are called different in at most 5 % of trials, with poisson arrivals and with
// bursts, far below and close to what the workers sustain. Above that, the trial says which arms do not keep up, and
// seldom calls one better.
func TestTrialsAtRate(t *testing.T) {
	t.Parallel()
	poisson, bursty := open.Schedule{Gaps: api.ArrivalsPoisson}, open.Schedule{Gaps: api.ArrivalsGamma, Burstiness: .5}
	montecarlo.Run(t, "trials at a rate", map[string]queues{
		"equal, load 70 %, poisson":              {.7, poisson, 0, 0},
		"equal, load 90 %, poisson":              {.9, poisson, 0, 0},
		"equal, load 70 %, bursty":               {.7, bursty, 0, 0},
		"equal, load 90 %, bursty":               {.9, bursty, 0, 0},
		"equal, three arms, 70 %, poisson":       {.7, poisson, 0, 1},
		"equal, three arms, 90 %, bursty":        {.9, bursty, 0, 1},
		"5 % faster prefill, load 70 %, poisson": {.7, poisson, .05, 0},
		"5 % faster prefill, load 70 %, bursty":  {.7, bursty, .05, 0},
		"5 % faster prefill, load 90 %, poisson": {.9, poisson, .05, 0},
		"5 % faster prefill, load 90 %, bursty":  {.9, bursty, .05, 0},
		"A sustains 91 %, B all, poisson":        {1.1, poisson, .25, 0},
		"A sustains 91 %, B all, bursty":         {1.1, bursty, .25, 0},
		"A sustains 80 %, B all, poisson":        {1.25, poisson, .35, 0},
		"A sustains 80 %, B all, bursty":         {1.25, bursty, .35, 0},
	}, func(t *testing.T, q queues, r *montecarlo.Results) {
		c, n := r.Cell("mean TTFT"), several()
		for i := range n {
			trial, err := proof.New(proof.Plan{
				A: api.ModeState{Mode: api.ModeRoundRobin}, B: api.ModeState{Mode: api.ModeKV},
				More: make([]api.ModeState, q.more), Level: api.AtRate(q.rate()),
				Primary: proof.MeanTTFT, Smallest: .05, Seconds: 60, MaxTime: hour, SLO: slo, Seed: uint64(i),
			})
			require.NoError(t, err)
			minutes := 0.
			for number := 0; ; number++ {
				s, ok := trial.Next()
				if !ok {
					break
				}
				result := q.run(s, i, number)
				minutes += result.Elapsed / 60
				require.Empty(t, trial.Add(result))
			}
			s := trial.State()
			verdict := proof.Verdict(s.Verdict)
			c.Count("called different", verdict == proof.ABetter || verdict == proof.BBetter ||
				trial.Arms != nil && len(trial.Arms) < 2+q.more)
			c.Count("A better", verdict == proof.ABetter)
			c.Count("B better", verdict == proof.BBetter)
			c.Count("overloaded", verdict == proof.Overloaded)
			c.Count("some block left out", len(trial.Dropped) > 0)
			over := verdict == proof.Overloaded && s.Overload[0].State == "does_not_keep_up"
			c.Count("A does not keep up", over)
			c.Count("and B does", over && s.Overload[1].State == "keeps_up")
			c.Count("B does not keep up", verdict == proof.Overloaded && s.Overload[1].State == "does_not_keep_up")
			c.Sample("minutes", minutes)
		}
		if q.faster == 0 {
			c.AtMost(t, "called different", montecarlo.Most(n))
		}
		if q.load < 1 {
			c.AtMost(t, "A better", montecarlo.Most(n)/2)
			c.AtMost(t, "overloaded", rarely(n))
		} else {
			c.AtMost(t, "A better", 0)
			c.AtMost(t, "B better", n/20)
			c.AtMost(t, "B does not keep up", montecarlo.Most(n)/2)
		}
		if q.load < 1 && q.faster > 0 {
			c.AtLeast(t, "B better", n*2/3)
		}
		if q.load > 1.2 {
			c.AtMost(t, "called different", montecarlo.Most(n))
			c.AtLeast(t, "A does not keep up", n*9/10)
		}
	})
}
