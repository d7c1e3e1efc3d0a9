package stats

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var t0 = time.Date(2025, 3, 18, 9, 0, 0, 0, time.UTC)

// at returns the time some seconds after t0.
func at(seconds float64) time.Time { return t0.Add(time.Duration(seconds * float64(time.Second))) }

func TestMeterRate(t *testing.T) {
	type tokens struct {
		at float64
		n  int
	}
	for name, c := range map[string]struct {
		adds []tokens
		now  float64
		want float64
	}{
		"nothing yet": {nil, 0, 0},
		"less than a second does not make a rate of 250": {[]tokens{{.1, 50}}, .2, 50},
		"over the five seconds there were":               {[]tokens{{.1, 50}}, 5, 10},
		"usage corrects what the chunks said":            {[]tokens{{1, 100}, {9, -40}}, 10, 6},
		"no rate is negative":                            {[]tokens{{1, 100}, {9, -40}, {10, -100}}, 10, 0},
		"59 whole seconds and the one under way":         {[]tokens{{40.9, 1000}, {41, 595}}, 100.5, 10},
		"half of the window is silent":                   {[]tokens{{1, 7000}, {35, 1190}}, 94.5, 20},
		"all of the window is silent":                    {[]tokens{{1, 7000}}, 61, 0},
		"late, before the start":                         {[]tokens{{100, 595}, {-1, 1000}}, 100.5, 10},
		"late, its slot is taken by a later second":      {[]tokens{{304, 595}, {0, 1000}}, 304.5, 10},
	} {
		m := NewMeter(t0)
		for _, a := range c.adds {
			m.Add(at(a.at), a.n)
		}
		assert.Equal(t, c.want, m.Rate(at(c.now)), name)
	}
}

// Over counts whole seconds only, and its interval reflects the differences of the batches.
func TestMeterOver(t *testing.T) {
	m := NewMeter(t0)
	for second := range 400 {
		m.Add(at(float64(second)+.5), 40+second/100) // a little more every 100 s
	}
	rate, interval := m.Over(at(299.5), at(399.7))
	assert.InDelta(t, (99*43+42*0)/99.0, *rate, 1e-9, "from 300 to 399")
	assert.Equal(t, &[2]float64{43, 43}, interval, "all batches agree")
	rate, interval = m.Over(at(200), at(400))
	assert.Equal(t, 42.5, *rate)
	// Batches of 42, 42, 43 and 43: their mean has a standard deviation of √(1/3)/2.
	assert.InDelta(t, 42.5-3.182*.288675, interval[0], 1e-4)
	assert.InDelta(t, 42.5+3.182*.288675, interval[1], 1e-4)
	for _, c := range []struct{ from, now float64 }{{390, 393.9}, {50, 400}, {-1, 20}, {400, 400}} {
		rate, interval = m.Over(at(c.from), at(c.now))
		assert.Nil(t, rate, "%+v", c)
		assert.Nil(t, interval, "%+v", c)
	}
}

func TestMeterReset(t *testing.T) {
	m := NewMeter(t0)
	m.Add(at(7.2), 100)
	m.Reset(at(7.5))
	m.Add(at(7.4), 100) // a chunk of the previous run
	m.Add(at(8), 30)
	assert.Equal(t, 10.0, m.Rate(at(10.5)))
}

// Concurrent calls of Add lose no tokens while the seconds pass.
func TestMeterConcurrent(t *testing.T) {
	m := NewMeter(t0)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 0))
			for range 5000 {
				when := at(r.Float64() * 50)
				m.Add(when, 5)
				m.Add(when, -2)
				m.Rate(when)
			}
		})
	}
	wg.Wait()
	assert.Equal(t, 8*5000*3/50.0, m.Rate(at(50)))
}

func TestMeterAllocatesNothing(t *testing.T) {
	m := NewMeter(t0)
	assert.Zero(t, testing.AllocsPerRun(100, func() { m.Add(at(3), 1) }))
}
