package sweep

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
)

// second is the state that the cluster reports at a moment. Unreported figures are absent.
type second struct {
	Time         time.Time `json:"time"`
	QueueSeconds *float64  `json:"queue,omitempty"`         // mean over the workers
	QueueLargest *float64  `json:"queue_largest,omitempty"` // of any worker
	// by worker id; empty where not all workers are listed
	Queues          map[string]float64 `json:"-"`
	Waiting         *float64           `json:"waiting,omitempty"` // over all workers
	InflightLargest *float64           `json:"inflight_largest,omitempty"`
	InflightMean    *float64           `json:"inflight_mean,omitempty"` // over the workers
	InflightSpread  *float64           `json:"spread,omitempty"`
	InflightSkew    *float64           `json:"skew,omitempty"`
}

func readCluster(now time.Time, c api.Cluster) second {
	s := second{
		Time: now, InflightLargest: c.InflightMax, InflightSpread: c.Spread, InflightSkew: c.Skew,
		Queues: map[string]float64{},
	}
	var queues, inflight []float64
	for _, w := range c.Workers {
		if w.Inflight != nil {
			inflight = append(inflight, *w.Inflight)
		}
		if w.QueueSeconds != nil {
			queues = append(queues, *w.QueueSeconds)
			s.QueueLargest = largest(s.QueueLargest, w.QueueSeconds)
			if c.AllWorkers == nil {
				s.Queues[w.ID] = *w.QueueSeconds
			}
		}
		if w.Waiting != nil {
			s.Waiting = add(s.Waiting, *w.Waiting)
		}
	}
	if len(queues) > 0 {
		s.QueueSeconds = new(stat.Mean(queues, nil))
	}
	if len(inflight) > 0 {
		s.InflightMean = new(stat.Mean(inflight, nil))
	}
	return s
}

func largest(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

func add(sum *float64, v float64) *float64 {
	if sum != nil {
		v += *sum
	}
	return &v
}

func sum(all []second) *api.SweepCauses {
	c := &api.SweepCauses{Seconds: len(all)}
	c.QueueSeconds = mean(all, func(s *second) *float64 { return s.QueueSeconds })
	c.Waiting = mean(all, func(s *second) *float64 { return s.Waiting })
	c.InflightMean = mean(all, func(s *second) *float64 { return s.InflightMean })
	c.InflightSpread = mean(all, func(s *second) *float64 { return s.InflightSpread })
	c.InflightSkew = mean(all, func(s *second) *float64 { return s.InflightSkew })
	c.QueueSkew = mean(all, func(s *second) *float64 {
		if s.QueueSeconds == nil || *s.QueueSeconds <= 0 {
			return nil
		}
		return new(*s.QueueLargest / *s.QueueSeconds)
	})
	peaks := map[string]float64{}
	for i := range all {
		c.QueueLargest = largest(c.QueueLargest, all[i].QueueLargest)
		c.InflightLargest = largest(c.InflightLargest, all[i].InflightLargest)
		for id, queue := range all[i].Queues {
			peaks[id] = max(peaks[id], queue)
		}
	}
	if sorted := slices.Sorted(maps.Values(peaks)); len(sorted) > 1 {
		c.QueueSecond = &sorted[len(sorted)-2]
		c.QueueLeast = &sorted[0]
	}
	return c
}

// mean returns the mean over the seconds that have a figure, nil where none has.
func mean(all []second, figure func(*second) *float64) *float64 {
	var values []float64
	for i := range all {
		if v := figure(&all[i]); v != nil {
			values = append(values, *v)
		}
	}
	if len(values) == 0 {
		return nil
	}
	return new(stat.Mean(values, nil))
}

// spanSeconds holds the seconds of a span as they are stored.
type spanSeconds struct {
	Number  int           `json:"number"`
	Attempt int           `json:"attempt"`
	Mode    api.ModeState `json:"mode"`
	Level   api.Level     `json:"concurrency"`
	Seconds []second      `json:"seconds"`
}

var secondsHeader = []string{
	"span", "attempt", "mode", "speculation", "concurrency", "time",
	"queue_seconds_mean", "queue_seconds_largest", "waiting", "inflight_spread", "inflight_skew",
}

// writeSeconds writes spans as CSV (RFC 4180). An empty field was not reported.
func writeSeconds(w io.Writer, spans []json.RawMessage) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write(secondsHeader); err != nil {
		return err
	}
	for _, data := range spans {
		var s spanSeconds
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		for i := range s.Seconds {
			second := &s.Seconds[i]
			row := []string{
				strconv.Itoa(s.Number), strconv.Itoa(s.Attempt), string(s.Mode.Mode), string(s.Mode.Speculation),
				s.Level.String(), second.Time.UTC().Format(time.RFC3339Nano),
			}
			for _, v := range []*float64{
				second.QueueSeconds, second.QueueLargest, second.Waiting, second.InflightSpread, second.InflightSkew,
			} {
				text := ""
				if v != nil {
					text = strconv.FormatFloat(*v, 'g', -1, 64)
				}
				row = append(row, text)
			}
			if err := out.Write(row); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}
