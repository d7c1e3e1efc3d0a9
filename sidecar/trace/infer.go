package trace

import (
	"math"
	"math/bits"
	"strings"

	"kvbooth/sidecar/api"
)

// Unit is the unit of a trace's timestamps and delays.
type Unit string

// The units.
const (
	Seconds      Unit = "s"
	Milliseconds Unit = "ms"
	Microseconds Unit = "us"
	Nanoseconds  Unit = "ns"
)

// Units are all units, as flags and errors name them.
var Units = []string{string(Seconds), string(Milliseconds), string(Microseconds), string(Nanoseconds)}

var inMilliseconds = map[Unit]float64{Seconds: 1000, Milliseconds: 1, Microseconds: 1e-3, Nanoseconds: 1e-6}

// scale holds values that lines in Mooncake's form omit.
type scale struct {
	blockTokens  int     // 0 if the lines have no block hashes
	milliseconds float64 // per unit of time
	timed        bool    // the first requests have times
	outputs      bool    // the lines have lengths of answers
}

// Block sizes that the forms define.
const (
	mooncakeBlockTokens = 512
	bailianBlockTokens  = 16
)

const (
	mostBlockTokens = 1 << 16
	// fastest is the largest rate, in requests per second, at which whole numbers are taken as milliseconds. Taken as
	// seconds, they are a rate of 1/1000 of it.
	fastest = 250
	// fewest is the minimum number of requests for a rate.
	fewest = 10
)

// inferScale infers the scale of a trace from its first lines. The error names the option to set.
func inferScale(lines []*object, o Options) (s scale, err *api.FieldError) {
	hashed := false
	for _, line := range lines {
		hashed = hashed || line.HashIDs != nil
		s.timed = s.timed || line.Timestamp != nil
		s.outputs = s.outputs || line.OutputLength != nil
	}
	if s.blockTokens = o.BlockTokens; !hashed {
		s.blockTokens = 0
	} else if s.blockTokens == 0 {
		if s.blockTokens = inferBlockTokens(lines); s.blockTokens == 0 {
			return s, &api.FieldError{
				Field:   "block_tokens",
				Allowed: "the tokens of a block: several sizes fit the lengths and hash_ids of the trace's lines",
			}
		}
	}
	unit := o.Unit
	if unit == "" {
		if unit = inferUnit(lines); unit == "" {
			return s, &api.FieldError{Field: "time_unit", Allowed: "the unit of the trace's timestamps, one of " +
				strings.Join(Units, ", ") + ": the trace does not show it"}
		}
	}
	s.milliseconds = inMilliseconds[unit]
	return s, nil
}

// inferUnit returns seconds for Bailian's form with decimals, and milliseconds for whole numbers in Mooncake's form,
// unless they look like a time of day in another unit or give an absurd rate. Otherwise it returns "".
func inferUnit(lines []*object) Unit {
	least, most := math.Inf(1), 0.0
	n, fractions, bailian := 0, false, false
	for _, o := range lines {
		if o.Timestamp == nil || *o.Timestamp < 0 {
			continue
		}
		at := *o.Timestamp
		n++
		least, most = min(least, at), max(most, at)
		fractions = fractions || at != math.Trunc(at)
		bailian = bailian || given(o.Chat)
	}
	span := most - least
	switch {
	case n == 0 || span == 0 && least < longestTime: // all units give the same times
		return Milliseconds
	case bailian && fractions:
		return Seconds
	case bailian, fractions:
		return ""
	case least >= 1e9 && least < 1e11, least >= 1e14: // a time of day in seconds, or in less than milliseconds
		return ""
	case n >= fewest && float64(n-1) > fastest*span/1000:
		return ""
	}
	return Milliseconds
}

// inferBlockTokens returns the block size that fits the numbers of hashes and tokens of most lines: the usual size of
// the form if it is among the best, otherwise the only power of two, otherwise the only size. It returns 0 if several
// remain.
func inferBlockTokens(lines []*object) int {
	usual := mooncakeBlockTokens
	var steps [mostBlockTokens + 2]int // changes of the number of lines that a size fits
	n := 0
	for _, o := range lines {
		if o.InputLength == nil || *o.InputLength < 1 {
			continue
		}
		if given(o.Chat) {
			usual = bailianBlockTokens
		}
		// With blocks of b tokens, all full blocks are hashed, and possibly one more:
		// floor(length/b) <= hashes <= ceil(length/b).
		length, hashes := *o.InputLength, int64(len(o.HashIDs))
		low, high := length/(hashes+1)+1, int64(mostBlockTokens)
		if hashes > 1 {
			high = min(high, (length-1)/(hashes-1))
		}
		n++
		if low <= high {
			steps[low]++
			steps[high+1]--
		}
	}
	fits, best := 0, 0
	var all, powers []int
	count := make([]int, mostBlockTokens+1)
	for b := 1; b <= mostBlockTokens; b++ {
		fits += steps[b]
		count[b] = fits
		if fits > best {
			best, all, powers = fits, nil, nil
		}
		if fits == best {
			all = append(all, b)
			if bits.OnesCount(uint(b)) == 1 {
				powers = append(powers, b)
			}
		}
	}
	switch {
	case count[usual] == best, 2*best <= n: // lines that do not fit are reported one by one
		return usual
	case len(powers) == 1:
		return powers[0]
	case len(all) == 1:
		return all[0]
	}
	return 0
}
