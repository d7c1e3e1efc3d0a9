package stats

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A turn of 800 tokens, counted.
func BenchmarkAdd(b *testing.B) {
	r, x := NewRecorder(t0, slo), rand.New(rand.NewPCG(1, 1))
	s := whole(0)
	for range 800 {
		s.ITL = append(s.ITL, Gap{Seconds: .02 + .01*x.Float64(), Tokens: 1})
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		s.Ended, s.Counted, s.Step = at(float64(i)/200), true, 1
		r.Add(s)
		i++
	}
}

// full is a recorder with 60,000 counted turns in its window, 1,000 a second.
func full() *Recorder {
	r, x := NewRecorder(t0, slo), rand.New(rand.NewPCG(1, 1))
	for i := range 60_000 {
		s := counted(whole(float64(i)/1000), 1)
		s.Turn, s.TTFT, s.TPOT, s.Latency = 1+i%5, x.ExpFloat64(), .02+.01*x.Float64(), 20+x.NormFloat64()
		for range 4 {
			s.ITL = append(s.ITL, Gap{Seconds: x.ExpFloat64() * .03, Tokens: 1})
		}
		r.Add(s)
	}
	return r
}

func BenchmarkReport(b *testing.B) {
	r := full()
	b.ReportAllocs()
	for b.Loop() {
		r.Report(at(60))
	}
}

func BenchmarkTTFT(b *testing.B) {
	r := full()
	b.ReportAllocs()
	for b.Loop() {
		r.TTFT(at(60))
	}
}

func BenchmarkCounted(b *testing.B) {
	r := full()
	b.ReportAllocs()
	for b.Loop() {
		r.Counted(at(60), 1)
	}
}

func BenchmarkScrape(b *testing.B) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(newCollector("main", full(), fullGauges, func() time.Time { return at(60) }))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reg.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMeterAdd(b *testing.B) {
	m := NewMeter(t0)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Add(at(5), 1)
		}
	})
}
