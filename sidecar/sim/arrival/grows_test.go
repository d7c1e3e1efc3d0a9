package arrival

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
)

// queue samples the number in progress at servers that need a second on average, exponentially distributed, at a load
// in shares of what they sustain. It begins empty.
func queue(servers int, load float64, s Schedule, warmup, span, samples int) (inProgress []float64) {
	o := NewOpen(0, 0, Ramp{To: load * float64(servers)}, s)
	service := rand.New(rand.NewPCG(s.Seed, 1))
	free := make([]float64, servers)
	var began, ended []float64
	for at := 0.; at <= float64(warmup+span); {
		at = o.Begin(State{}).Seconds()
		first := slices.Index(free, slices.Min(free))
		free[first] = max(at, free[first]) + service.ExpFloat64()
		began, ended = append(began, at), append(ended, free[first])
	}
	slices.Sort(ended)
	for i := range samples {
		at := float64(warmup) + float64(span*(i+1))/float64(samples)
		arrived, _ := slices.BinarySearch(began, at)
		left, _ := slices.BinarySearch(ended, at)
		inProgress = append(inProgress, float64(arrived-left))
	}
	return inProgress
}

// At most one in a hundred loads of up to 98 % of what the servers sustain is reported, and nearly all at twice that.
// How many are found at a fifth more depends on the length of the span and on the arrivals.
func TestGrows(t *testing.T) {
	const trials = 200
	share := func(servers, span int, load float64, s Schedule) float64 {
		grows := 0.
		for seed := range uint64(trials) {
			s.Seed = seed
			if Grows(queue(servers, load, s, 3, span, 100)) {
				grows++
			}
		}
		return grows / trials
	}
	poisson, constant, bursty := Schedule{Gaps: api.ArrivalsPoisson}, Schedule{Gaps: api.ArrivalsConstant}, Schedule{
		Gaps:       api.ArrivalsGamma,
		Burstiness: .5,
	}
	for name, row := range map[string]struct {
		servers, span int
		schedule      Schedule
		least         float64 // of a fifth above
	}{
		"one server": {1, 400, poisson, .2},
		"poisson":    {20, 30, poisson, .4},
		"constant":   {20, 30, constant, .6},
		"bursty":     {20, 30, bursty, .2},
		"short":      {20, 10, poisson, .1},
	} {
		for _, load := range []float64{.9, .98} {
			// three standard errors of a share of 0.01
			assert.LessOrEqual(t, share(row.servers, row.span, load, row.schedule), .01+3*math.Sqrt(.01/trials), "%s at %v",
				name, load)
		}
		assert.GreaterOrEqual(t, share(row.servers, row.span, 1.2, row.schedule), row.least, "%s at 1.2", name)
		assert.GreaterOrEqual(t, share(row.servers, row.span, 2, row.schedule), .99, "%s at 2", name)
	}
}

// Filling up in the first half of a span is no growth. Without chance, growth is certain; a single step is not growth.
func TestGrowsWithoutChance(t *testing.T) {
	numbers := func(at func(share float64) float64) (all []float64) {
		for i := range 200 {
			all = append(all, math.Floor(at(float64(i)/200)))
		}
		return all
	}
	assert.False(t, Grows(numbers(func(share float64) float64 { return 60 * min(1, 2*share) })), "fills up")
	assert.False(t, Grows(numbers(func(share float64) float64 { return 60 + math.Floor(share/.8) })), "a step")
	assert.True(t, Grows(numbers(func(share float64) float64 { return 1000 * share })), "grows")
	assert.False(t, Grows(numbers(func(share float64) float64 { return 60 - 50*share })), "falls")
	assert.False(t, Grows([]float64{1, 2, 3, 4, 5, 6, 7}), "too few to say")
	assert.False(t, Grows(nil))
}
