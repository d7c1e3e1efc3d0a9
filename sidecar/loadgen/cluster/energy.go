package cluster

import (
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat/plausible"
)

// longestGap is the longest time between two readings of a power gauge over which it is integrated.
const longestGap = 5 * time.Second

// energyMeter sums the energy of the GPUs of a cluster's workers. The zero value is ready to use. It is not safe for
// concurrent use.
//
// The energy of a GPU is read from its counter, which also covers what happens between two readings. An exporter
// updates all fields at its own interval, 30 s by default, so that the counter is extrapolated by the power gauge since
// it last moved. Where there is no counter, or it was reset, the gauge is integrated by the trapezoidal rule. The
// energy of a time is unknown if a GPU reports neither, comes or goes in it, or has no reading of its gauge for more
// than [longestGap].
type energyMeter struct {
	gpus  map[string]*gpuMeter
	total api.EnergyTotals
	last  time.Time
}

// gpuMeter is the latest reading of a GPU.
type gpuMeter struct {
	api.GPUReading
	seen  time.Time
	moved time.Time // when the counter last moved; zero: it has not moved since it was first read or reset
}

// add adds the readings of all GPUs at a time, and returns the totals since the first reading with a GPU; nil before.
// While a GPU is not read, the totals are those of the latest reading of all, so that energy and time are of the same
// GPUs.
func (m *energyMeter) add(now time.Time, readings []api.GPUReading) *api.EnergyTotals {
	begins := m.gpus == nil
	switch {
	case begins && len(readings) == 0:
		return nil
	case begins:
		m.gpus = map[string]*gpuMeter{}
	case m.lacks(readings) && now.Sub(m.last) <= longestGap:
		return new(m.total)
	default:
		m.total.Seconds += now.Sub(m.last).Seconds()
	}
	m.last = now
	for _, r := range readings {
		m.total.Simulated = m.total.Simulated || r.Simulated
		next := &gpuMeter{GPUReading: r, seen: now}
		before := m.gpus[r.ID]
		m.gpus[r.ID] = next
		if before == nil {
			if !begins {
				m.total.Breaks++
			}
			continue
		}
		if joules, known := next.since(before); known {
			m.total.Joules += joules
		} else {
			m.total.Breaks++
		}
	}
	for id, g := range m.gpus {
		if g.seen.Before(now) {
			delete(m.gpus, id)
			m.total.Breaks++
		}
	}
	m.total.GPUs = len(m.gpus)
	for _, g := range m.gpus {
		if g.Divided {
			m.total.GPUs = 0
		}
	}
	return new(m.total)
}

// lacks reports whether a GPU of the latest readings is not among others.
func (m *energyMeter) lacks(readings []api.GPUReading) bool {
	for id := range m.gpus {
		if !slices.ContainsFunc(readings, func(r api.GPUReading) bool { return r.ID == id }) {
			return true
		}
	}
	return false
}

// since returns the joules since an earlier reading, and sets when the counter last moved.
func (g *gpuMeter) since(before *gpuMeter) (joules float64, known bool) {
	elapsed := g.seen.Sub(before.seen)
	if g.Joules != nil && before.Joules != nil && *g.Joules >= *before.Joules {
		g.moved = before.moved
		if *g.Joules > *before.Joules {
			g.moved = g.seen
		}
		most := plausible.Watts.Max * g.seen.Sub(before.moved).Seconds()
		if !before.moved.IsZero() && *g.Joules-*before.Joules <= most {
			return g.level() - before.level(), true
		}
	}
	if g.Watts == nil || before.Watts == nil || elapsed > longestGap {
		return 0, false
	}
	return (*g.Watts + *before.Watts) / 2 * elapsed.Seconds(), true
}

// level returns the counter, extrapolated to the time of the reading.
func (g *gpuMeter) level() float64 {
	if g.Watts == nil {
		return *g.Joules
	}
	return *g.Joules + *g.Watts*g.seen.Sub(g.moved).Seconds()
}
