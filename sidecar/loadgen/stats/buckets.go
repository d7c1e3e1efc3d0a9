package stats

import (
	"cmp"
	"math"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// Log-linear buckets: each octave [2^e, 2^(e+1)) s is divided into equal parts, so
// that no bucket is wider than 1/128 of its lower bound.
const (
	octaveBits = 7
	perOctave  = 1 << octaveBits
	minExp     = -20 // 0.95 µs: shorter gaps count as zero
	octaves    = 30  // up to 1,024 s; longer gaps count as that
)

// buckets is a weighted histogram of inter-token latencies. An octave is allocated
// with its first value and kept: a set has 30 KB at most, 6 KB usually. The zero
// value is empty. It is not safe for concurrent use.
type buckets struct {
	zero      float64 // tokens that arrived together with the previous one
	octave    [octaves]*[perOctave]float64
	total     float64
	estimated bool
}

// bucketOf returns a value's octave and part; octave −1 stands for zero.
func bucketOf(seconds float64) (octave, part int) {
	const fraction = 52 // bits of a float64's significand
	bits := math.Float64bits(seconds)
	octave = int(bits>>fraction) - 1023 - minExp
	if octave < 0 {
		return -1, 0
	}
	if octave >= octaves {
		return octaves - 1, perOctave - 1
	}
	return octave, int(bits>>(fraction-octaveBits)) & (perOctave - 1)
}

// middle returns the middle of a bucket, at most 0.4 % from every value in it.
func middle(octave, part int) float64 {
	return math.Ldexp(1+(float64(part)+.5)/perOctave, octave+minExp)
}

func (b *buckets) add(octave, part int, tokens float64) {
	b.total += tokens
	if octave < 0 {
		b.zero += tokens
		return
	}
	b.parts(octave)[part] += tokens
}

// addAll adds durations, each as one token.
func (b *buckets) addAll(seconds []float64) {
	for _, v := range seconds {
		octave, part := bucketOf(v)
		b.add(octave, part, 1)
	}
}

// addGaps adds the gaps of a turn. estimated: the chunks did not report their tokens.
func (b *buckets) addGaps(gaps []chat.Gap, estimated bool) {
	for _, g := range gaps {
		if possible(g) {
			octave, part := bucketOf(g.Seconds)
			b.add(octave, part, g.Tokens)
		}
	}
	b.estimated = b.estimated || estimated
}

func (b *buckets) parts(octave int) *[perOctave]float64 {
	if b.octave[octave] == nil {
		b.octave[octave] = new([perOctave]float64)
	}
	return b.octave[octave]
}

func (b *buckets) merge(from *buckets) {
	if from.total == 0 {
		return
	}
	b.zero += from.zero
	b.total += from.total
	b.estimated = b.estimated || from.estimated
	for o, parts := range from.octave {
		if parts == nil {
			continue
		}
		sum := b.parts(o)
		for i, tokens := range parts {
			sum[i] += tokens
		}
	}
}

// clear empties the set and keeps its memory.
func (b *buckets) clear() {
	b.zero = 0
	b.total = 0
	b.estimated = false
	for _, parts := range b.octave {
		if parts != nil {
			clear(parts[:])
		}
	}
}

// quantile returns the p-quantile over the tokens by nearest rank: the middle of the
// first bucket at which a share p of them is reached. The set must not be empty.
func (b *buckets) quantile(p float64) float64 {
	below := b.zero
	value := 0.0
	for o, parts := range b.octave {
		if parts == nil {
			continue
		}
		for i, tokens := range parts {
			if below >= p*b.total {
				return value
			}
			if tokens > 0 {
				below += tokens
				value = middle(o, i)
			}
		}
	}
	return value
}

// spread returns the minimum, the mean and the maximum over the tokens. The set must not be empty.
func (b *buckets) spread() (least, mean, most *float64) {
	sum := 0.0
	if most = new(0.0); b.zero > 0 {
		least = new(0.0)
	}
	for o, parts := range b.octave {
		if parts == nil {
			continue
		}
		for i, tokens := range parts {
			if tokens > 0 {
				most = new(middle(o, i))
				least = cmp.Or(least, most)
				sum += tokens * *most
			}
		}
	}
	return least, new(sum / b.total), most
}

// upTo counts the tokens whose gaps are at most that long.
func (b *buckets) upTo(seconds float64) float64 {
	octave, part := bucketOf(seconds)
	below := b.zero
	for o := range min(octave+1, octaves) {
		parts := b.octave[o]
		if parts == nil {
			continue
		}
		last := perOctave - 1
		if o == octave {
			last = part
		}
		for _, tokens := range parts[:last+1] {
			below += tokens
		}
	}
	return below
}

// summarize returns the percentiles over the tokens without intervals; see
// [summarizeGaps].
func (b *buckets) summarize() api.Quantiles {
	q := api.Quantiles{N: int(math.Round(b.total)), Estimated: b.estimated}
	if b.total > 0 {
		q.P50 = new(b.quantile(.5))
		q.P95 = new(b.quantile(.95))
		q.P99 = new(b.quantile(.99))
	}
	return q
}
