package proof

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// model gives turns of lanes whose times have a part of the conversation's own in common.
type model struct {
	r              *rand.Rand
	common, own    float64 // standard deviations
	faster, shifts float64 // B is longer by the first; B is longer by the second, in both arrangements
	sameHits       bool    // else the hit rate of B is 10 points lower
}

func (m *model) fill(p *Pairs, from, conversations int64) {
	for k := from; k < from+conversations; k++ {
		for turn := 1; turn <= 3; turn++ {
			common := m.common * m.r.NormFloat64()
			t := PairedTurn{Conversation: k, Number: turn, Ended: noon.Add(time.Duration(k) * time.Second)}
			for i := range t.Sides {
				cached := 90
				if i == 1 && !m.sameHits {
					cached = 80
				}
				v := 10 + common + m.own*m.r.NormFloat64() + float64(i)*(m.faster+m.shifts)
				t.Sides[i] = workload.Outcome{
					TTFT: v / 20, TPOT: v / 400, Latency: v, PromptTokens: 100, CachedTokens: cached, HasCached: true,
				}
			}
			p.Add(t)
		}
	}
}

func latency(t *testing.T, all []Paired) api.PairedMetric {
	t.Helper()
	for i := range all {
		if all[i].Metric == LatencyMean {
			return all[i].API()
		}
	}
	require.Fail(t, "no latency")
	return api.PairedMetric{}
}

// What the lanes have in common does not blur the difference: the ratio of variances is that
// of the model, and the interval holds the truth.
func TestPairingTakesOutWhatIsCommon(t *testing.T) {
	p := NewPairs(20, 3)
	(&model{r: rand.New(rand.NewPCG(1, 2)), common: 2, own: .5, faster: .3}).fill(p, 0, 2000)
	d := latency(t, p.Differences())
	assert.Equal(t, 6000, d.N)
	assert.InDelta(t, .3, *d.Difference, .05)
	assert.Less(t, d.Interval[0], .3)
	assert.Greater(t, d.Interval[1], .3)
	assert.InDelta(t, .25/4.25, *d.VarianceRatio, .06)

	p = NewPairs(20, 3)
	(&model{r: rand.New(rand.NewPCG(1, 2)), own: 2}).fill(p, 0, 2000)
	assert.InDelta(t, 1, *latency(t, p.Differences()).VarianceRatio, .7, "nothing in common")

	for _, d := range p.Differences() {
		if d.Metric == HitRate {
			assert.InDelta(t, -.1, d.B-d.A, 1e-9)
			assert.Nil(t, d.API().VarianceRatio, "0 over 0")
		}
	}
}

// Few batches have means and no interval, unless there is one of the mean TTFT by an assumed variance; nothing has
// neither.
func TestFewPairs(t *testing.T) {
	p := NewPairs(20, 3)
	for _, d := range p.Differences() {
		m := d.API()
		assert.Zero(t, m.N)
		assert.Nil(t, m.A)
		assert.Nil(t, m.Interval)
	}
	m := &model{r: rand.New(rand.NewPCG(1, 2)), own: 1, faster: 1}
	m.fill(p, 5, 60)
	d := latency(t, p.Differences())
	assert.NotNil(t, d.Difference)
	assert.Nil(t, d.Interval)
	assert.Equal(t, 180, d.N)
	mean := p.Differences()[0].API()
	require.NotNil(t, mean.Interval)
	due, ok := p.Due(p.Differences())
	assert.True(t, ok, "certain if the difference stays")
	assert.Positive(t, due)
	m.fill(p, 65, 1000)
	assert.NotNil(t, latency(t, p.Differences()).Interval)
}

// Two halves: what lane B is slower by in both modes cancels out.
func TestHalfAndHalf(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	apart, swapped := NewPairs(20, 3), NewPairs(20, 3)
	(&model{r: r, common: 2, own: .2, faster: .3, shifts: 1}).fill(apart, 0, 800)
	(&model{r: r, common: 2, own: .2, faster: -.3, shifts: 1}).fill(swapped, 5000, 400)
	assert.InDelta(t, 1.3, *latency(t, apart.Differences()).Difference, .05, "mode and cluster")
	d := latency(t, HalfAndHalf(apart.Differences(), swapped.Differences()))
	assert.InDelta(t, .3, *d.Difference, .05, "the mode alone")
	assert.Equal(t, 3600, d.N)
	assert.InDelta(t, *d.Difference, *d.B-*d.A, 1e-9)
	assert.Less(t, d.Interval[0], .3)
	assert.Greater(t, d.Interval[1], .3)
	back := latency(t, HalfAndHalf(swapped.Differences(), apart.Differences()))
	assert.InDelta(t, -*d.Difference, *back.Difference, 1e-9, "as A has it now")

	none := NewPairs(20, 3).Differences()
	assert.Nil(t, latency(t, HalfAndHalf(apart.Differences(), none)).Interval)
}

// Memory is bounded in turns, in time and in cells, whatever the conversations are like.
func TestPairsAreBounded(t *testing.T) {
	p := NewPairs(1, 1)
	turn := PairedTurn{Number: 1, Sides: [2]workload.Outcome{{TTFT: 1, TPOT: math.NaN(), Latency: 1}, {
		TTFT: 2, TPOT: 1, Latency: 3,
	}}}
	for k := range int64(5000) {
		turn.Conversation, turn.Ended = k, noon.Add(time.Duration(k)*time.Second)
		p.Add(turn)
	}
	assert.LessOrEqual(t, len(p.cells), maxCells)
	assert.InDelta(t, 3600, p.N(), float64(p.size)*2, "of an hour")
	for _, d := range p.Differences() {
		switch d.Metric {
		case TPOTMean:
			assert.Zero(t, d.N, "known on one side only")
		case TTFTMean:
			assert.InDelta(t, 1, d.B-d.A, 1e-9)
		}
	}
	for k := range int64(2 * mostPairs) {
		turn.Conversation = 5000 + k/100
		p.Add(turn)
	}
	assert.LessOrEqual(t, p.N(), mostPairs+int(100*p.size))
}

// Lanes in one mode are alike, or differ, or it is not known yet.
func TestLikeness(t *testing.T) {
	for name, test := range map[string]struct {
		model model
		want  api.TwinEvidence
	}{
		"the hit rates differ": {model{own: .3, common: 1}, api.EvidenceDiffer},
		"alike":                {model{own: .5, sameHits: true}, api.EvidenceAlike},
		"too variable":         {model{own: 200, sameHits: true}, api.EvidenceNone},
	} {
		t.Run(name, func(t *testing.T) {
			p, l := NewPairs(20, 3), new(Likeness)
			test.model.r = rand.New(rand.NewPCG(1, 2))
			evidence, largest := api.EvidenceNone, Paired{}
			for k := int64(0); k < 1000 && evidence == api.EvidenceNone; k++ {
				test.model.fill(p, k, 1)
				evidence, largest = l.Look(p)
			}
			assert.Equal(t, test.want, evidence)
			if evidence == api.EvidenceDiffer {
				assert.Equal(t, HitRate, largest.Metric)
			}
		})
	}
}
