package study

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim/closedloop"
)

// Curve is one side of a comparison: one mode of a result.
type Curve struct {
	Name   string
	Points []Point // one per level
}

// Curves returns the modes of a result as curves, in the order of the result.
func Curves(points []Point) (curves []Curve) {
	for _, p := range points {
		i := slices.IndexFunc(curves, func(c Curve) bool { return c.Points[0].Mode == p.Mode })
		if i < 0 {
			i, curves = len(curves), append(curves, Curve{Name: p.Mode.Name()})
		}
		curves[i].Points = append(curves[i].Points, p)
	}
	return curves
}

// ExplainModes compares the first mode of a result with each of the others, by [Explain]. It returns nothing for a
// single mode.
func ExplainModes(points []Point) (sentences []string) {
	curves := Curves(points)
	for _, other := range curves[min(1, len(curves)):] {
		sentences = append(sentences, Explain(curves[0], other)...)
	}
	return sentences
}

// Reasons describes, for the first mode of a result and each of the others, where their curves of TTFT p95 cross and
// why each side is behind at its largest difference. It returns at most three sentences per pair, and nothing for a
// single mode.
func Reasons(points []Point) (sentences []string) {
	curves := Curves(points)
	for _, other := range curves[min(1, len(curves)):] {
		c := compare(curves[0], other)
		if crossings := c.crossingsOf(ttft95.Field); len(crossings) == 1 {
			sentences = append(sentences, fmt.Sprintf("%s and %s cross in TTFT p95 at about %s, "+
				"interpolated between levels; above that, %s has the higher one.",
				c.a.Name, c.b.Name, crossings[0].inWords(crossings[0].At), c.higher(crossings[0])))
		} else {
			sentences = append(sentences, c.verdict(ttft95))
		}
		sentences = append(sentences, c.overloads()...)
		for _, e := range c.extremes() {
			sentences = append(sentences, e.reason)
		}
	}
	return sentences
}

// Explain describes in sentences where two curves differ, where they cross, and which causes differ with them: the
// time in queues, the distribution of requests over the workers, the destination of first turns, and recomputed
// tokens. Every number is computed from the points. A level shows a difference if the ranges of the two curves over
// the seeds do not overlap; only then is one side called better. No side is called better by latency where the queue of
// one of them grows without end.
func Explain(a, b Curve) []string {
	c := compare(a, b)
	if len(c.levels) == 0 {
		return []string{fmt.Sprintf("%s and %s share no level, so nothing can be compared.", a.Name, b.Name)}
	}
	sentences := append([]string{c.opening()}, c.overloads()...)
	sentences = append(sentences, c.meanTTFT()...)
	for _, f := range []figure{ttft50, ttft95} {
		sentences = append(sentences, c.verdict(f))
		sentences = append(sentences, c.crossings(f)...)
	}
	for _, f := range []figure{tpot50, throughput, hit} {
		sentences = append(sentences, c.verdict(f))
	}
	for _, e := range c.extremes() {
		sentences = append(sentences, e.reason+e.figures)
	}
	for i := range c.levels {
		if !c.overloaded(i) {
			sentences = append(sentences, c.atLevel(i))
		}
	}
	return sentences
}

// figure is one of [closedloop.Fields] with its name in sentences.
type figure struct {
	closedloop.Field
	name string
	low  bool // lower values are better
}

var (
	ttft50     = figure{closedloop.TTFT50, "TTFT p50", true}
	ttft95     = figure{closedloop.TTFT95, "TTFT p95", true}
	tpot50     = figure{closedloop.TPOT50, "TPOT p50", true}
	throughput = figure{closedloop.Tokens, "Output tokens per second", false}
	hit        = figure{closedloop.Hit, "The KV hit rate", false}
)

// comparison holds two curves at their common levels, ascending.
type comparison struct {
	a, b   Curve // their points are those at levels
	levels []api.Level
	means  [2][]closedloop.Figures
}

func compare(a, b Curve) comparison {
	c := comparison{a: Curve{Name: a.Name}, b: Curve{Name: b.Name}}
	for _, p := range a.Points {
		i := slices.IndexFunc(b.Points, func(q Point) bool { return q.Level == p.Level })
		if i >= 0 && len(p.Runs) > 0 && len(b.Points[i].Runs) > 0 {
			c.a.Points = append(c.a.Points, p)
			c.b.Points = append(c.b.Points, b.Points[i])
		}
	}
	byLevel := func(p, q Point) int { return p.Level.Compare(q.Level) }
	slices.SortFunc(c.a.Points, byLevel)
	slices.SortFunc(c.b.Points, byLevel)
	for i := range c.a.Points {
		c.levels = append(c.levels, c.a.Points[i].Level)
		c.means[0] = append(c.means[0], c.a.Points[i].Mean())
		c.means[1] = append(c.means[1], c.b.Points[i].Mean())
	}
	return c
}

// opening returns a sentence on the origin of the numbers.
func (c *comparison) opening() string {
	fewest, most := math.MaxInt, 0
	for i := range c.levels {
		for _, p := range []Point{c.a.Points[i], c.b.Points[i]} {
			fewest, most = min(fewest, len(p.Runs)), max(most, len(p.Runs))
		}
	}
	runs := strconv.Itoa(most)
	if fewest < most {
		runs = fmt.Sprintf("%d to %d", fewest, most)
	}
	text := fmt.Sprintf("Simulated, not measured: %s against %s", c.a.Name, c.b.Name)
	if most == 1 {
		return text + ", one run at each level, so chance cannot be separated from a real difference."
	}
	return fmt.Sprintf("%s, means over %s runs at each level; of the longest waits, the longest of all runs.", text, runs)
}

// overloads describes the levels at which a queue grows without end.
func (c *comparison) overloads() (sentences []string) {
	for i, level := range c.levels {
		var names []string
		for _, curve := range []*Curve{&c.a, &c.b} {
			if curve.Points[i].Overloaded() {
				names = append(names, curve.Name)
			}
		}
		if len(names) > 0 {
			sentences = append(sentences, fmt.Sprintf("At %v, the queue grows without end under %s, "+
				"so that latencies are not compared.", level, list(names)))
		}
	}
	return sentences
}

// overloaded reports whether the queue of one of the curves grows without end at a level, given by its index.
func (c *comparison) overloaded(level int) bool {
	return c.a.Points[level].Overloaded() || c.b.Points[level].Overloaded()
}

// sides returns for each level which curve has the lower value of a figure: -1 the first, 1 the second, 0 where the
// ranges overlap or a value is missing.
func (c *comparison) sides(f closedloop.Field) []int {
	sides := make([]int, len(c.levels))
	for i := range sides {
		lowA, highA := c.a.Points[i].Band(f)
		lowB, highB := c.b.Points[i].Band(f)
		switch {
		case highA < lowB:
			sides[i] = -1
		case highB < lowA:
			sides[i] = 1
		}
	}
	return sides
}

// verdict describes at which levels a figure differs, and in which direction.
func (c *comparison) verdict(f figure) string {
	sides := c.sides(f.Field)
	var parts []string
	word := "higher"
	if f.low {
		word = "lower"
	}
	for _, side := range []struct {
		name   string
		lowest int
	}{{c.a.Name, -1}, {c.b.Name, 1}} {
		which := side.lowest
		if !f.low {
			which = -which
		}
		if at := c.where(sides, which); at != "" {
			parts = append(parts, fmt.Sprintf("%s under %s at %s", word, side.name, at))
		}
	}
	for i := range sides { // where nothing is compared, nothing is said of overlaps either
		if c.overloaded(i) && f.low {
			sides[i] = notCompared
		}
	}
	same := c.where(sides, 0)
	switch {
	case len(parts) == 0 && same == "":
		return fmt.Sprintf("%s: at no level is it compared.", f.name)
	case len(parts) == 0:
		return fmt.Sprintf("%s: at no level is there a difference beyond the spread of the runs.", f.name)
	case same == "":
		return fmt.Sprintf("%s: %s.", f.name, strings.Join(parts, ", "))
	}
	return fmt.Sprintf("%s: %s; at %s the ranges of the runs overlap, and no difference is shown.",
		f.name, strings.Join(parts, ", "), same)
}

// notCompared is a side of a level at which a figure is not compared.
const notCompared = 2

// where lists the levels of one side; adjacent levels are written as a span.
func (c *comparison) where(sides []int, side int) string {
	var spans []string
	for i := 0; i < len(sides); i++ {
		if sides[i] != side {
			continue
		}
		first := i
		for i+1 < len(sides) && sides[i+1] == side {
			i++
		}
		switch i - first {
		case 0:
			spans = append(spans, c.levels[i].String())
		case 1:
			spans = append(spans, c.levels[first].String(), c.levels[i].String())
		default:
			spans = append(spans, fmt.Sprintf("%v to %v", c.levels[first], c.levels[i]))
		}
	}
	return list(spans)
}

// list joins words with commas and "and".
func list(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}

// meanTTFT describes the mean TTFT of the first curve as a multiple of that of the second at each level.
func (c *comparison) meanTTFT() (sentences []string) {
	var parts []string
	for i, level := range c.levels {
		ratio, low, high := c.ratio(i, closedloop.TTFTMean)
		if !math.IsNaN(low) {
			parts = append(parts, fmt.Sprintf("%.3f (%.3f to %.3f) at %v", ratio, low, high, level))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Mean TTFT under %s over that under %s, with 95 %% intervals over pairs of runs: %s.",
		c.a.Name, c.b.Name, list(parts))}
}

// ratio returns a figure of the first curve over that of the second at a level, given by its index: the geometric mean
// over pairs of runs, with its 95 % interval by Student's t. Runs of equal seeds have the same conversations. All are
// NaN for fewer than two pairs, and where a run has no value.
func (c *comparison) ratio(level int, field closedloop.Field) (ratio, low, high float64) {
	a, b := c.a.Points[level].Runs, c.b.Points[level].Runs
	logs := make([]float64, min(len(a), len(b)))
	if len(logs) < 2 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	for i := range logs {
		logs[i] = math.Log(*field.Of(&a[i]) / *field.Of(&b[i]))
	}
	mean, deviation := stat.MeanStdDev(logs, nil)
	n := float64(len(logs))
	half := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(.975) * deviation / math.Sqrt(n)
	return math.Exp(mean), math.Exp(mean - half), math.Exp(mean + half)
}

// crossings describes where a figure's curves cross.
func (c *comparison) crossings(f figure) (sentences []string) {
	for _, x := range c.crossingsOf(f.Field) {
		runs := ""
		if x.Runs > 1 {
			runs = fmt.Sprintf(", those of single runs between %s and %s", x.number(x.Low), x.number(x.High))
		}
		sentences = append(sentences, fmt.Sprintf("The mean curves of %s cross at about %s%s, "+
			"all interpolated between levels; above that, %s is the higher one.", f.name, x.inWords(x.At), runs, c.higher(x)))
	}
	return sentences
}

// higher returns the name of the curve with the higher values above a crossing.
func (c *comparison) higher(x Crossing) string {
	if x.Above < 0 {
		return c.b.Name
	}
	return c.a.Name
}

// Crossing is a crossing of two curves of a figure.
type Crossing struct {
	Kind      api.LevelKind
	At        float64 // level at which the means cross, interpolated between levels
	Low, High float64 // range of the crossings of single runs, each with its counterpart on the other side
	Runs      int     // pairs of runs behind Low and High; 0 means that Low and High are unknown
	Above     int     // above the crossing, -1 means that the first curve is the lower one, 1 the second
}

// number formats a level of the crossing. Interpolation is worth three digits of a rate.
func (x Crossing) number(level float64) string {
	if x.Kind == api.Rate {
		return api.ThreeDigits(level)
	}
	return strconv.FormatFloat(level, 'f', 0, 64)
}

func (x Crossing) inWords(level float64) string {
	text := x.number(level) + " conversations"
	if x.Kind == api.Rate {
		text += "/s"
	}
	return text
}

// Crossings returns the crossings of two curves in one figure, from low levels to high ones. A crossing lies between
// two levels of one kind that show differences in opposite directions, without a level between them that shows one.
// Curves with overlapping ranges do not cross.
func Crossings(a, b Curve, field closedloop.Field) []Crossing {
	c := compare(a, b)
	return c.crossingsOf(field)
}

func (c *comparison) crossingsOf(field closedloop.Field) (crossings []Crossing) {
	last, sides := -1, c.sides(field)
	for i, side := range sides {
		if side == 0 {
			continue
		}
		if last >= 0 && sides[last] == -side && c.levels[last].Kind == c.levels[i].Kind {
			crossings = append(crossings, c.crossing(last, i, side, field))
		}
		last = i
	}
	return crossings
}

// crossing computes the crossing between two levels, for the means and for each pair of runs. from and to are indices
// of levels. side says which curve is lower at the level to, as in [comparison.sides].
func (c *comparison) crossing(from, to, side int, field closedloop.Field) Crossing {
	x := Crossing{Kind: c.levels[to].Kind, Above: side, Low: math.Inf(1), High: math.Inf(-1)}
	x.At = c.cross(from, to, func(at int) float64 { return *field.Of(&c.means[0][at]) - *field.Of(&c.means[1][at]) })
	runs := math.MaxInt
	for at := from; at <= to; at++ {
		runs = min(runs, len(c.a.Points[at].Runs), len(c.b.Points[at].Runs))
	}
	for run := range runs {
		at := c.cross(from, to, func(at int) float64 {
			return *field.Of(&c.a.Points[at].Runs[run]) - *field.Of(&c.b.Points[at].Runs[run])
		})
		if !math.IsNaN(at) {
			x.Runs, x.Low, x.High = x.Runs+1, min(x.Low, at), max(x.High, at)
		}
	}
	return x
}

// cross returns the level of the last change of a difference's sign between two levels at which the signs
// differ. Levels where the difference is NaN are skipped.
func (c *comparison) cross(from, to int, difference func(int) float64) float64 {
	above := to
	for i := to - 1; i >= from; i-- {
		high, low := difference(above), difference(i)
		switch {
		case math.IsNaN(low):
			continue
		case high*low <= 0 && high != 0:
			x, y := c.levels[i].Value, c.levels[above].Value
			return x + (y-x)*low/(low-high)
		}
		above = i
	}
	return math.NaN() // the difference is NaN at one of the two levels
}

// extreme describes the level with the largest difference in TTFT p95 for one side.
type extreme struct {
	reason  string // one sentence
	figures string // further sentences, each with a space in front
}

// extremes describes the largest differences in TTFT p95, one for each side.
func (c *comparison) extremes() (found []extreme) {
	sides := c.sides(closedloop.TTFT95)
	for _, side := range []int{-1, 1} {
		furthest, most := -1, 1.
		for i := range sides {
			ratio := math.Pow(c.means[1][i].TTFT95/c.means[0][i].TTFT95, float64(-side))
			if sides[i] == side && ratio > most {
				furthest, most = i, ratio
			}
		}
		if furthest >= 0 {
			found = append(found, c.causesAt(furthest, side))
		}
	}
	return found
}

// causesAt describes the causes that differ at a level where one side is behind, which means a higher TTFT p95. A
// cause counts if it shows a difference, as for a figure.
func (c *comparison) causesAt(level, side int) extreme {
	better, worse := c.a.Name, c.b.Name
	low, high := &c.means[0][level], &c.means[1][level]
	if side > 0 {
		better, worse, low, high = worse, better, high, low
	}
	more := func(field closedloop.Field) bool { return c.sides(field)[level] == side }
	waits, computes := more(closedloop.LargestQueue), more(closedloop.Twice)
	var reason string
	switch {
	case waits && computes:
		reason = "it recomputes more tokens, and waits longer in queues"
	case waits:
		reason = "it waits longer in queues and does not recompute more tokens"
	case computes:
		reason = "it recomputes more tokens; its queues are not shown to be longer"
	default:
		reason = "neither longer queues nor more tokens recomputed are shown"
	}
	sentence := fmt.Sprintf("At %v, %s is furthest behind %s, with a TTFT p95 of %s against %s: %s.",
		c.levels[level], worse, better, seconds(high.TTFT95), seconds(low.TTFT95), reason)
	text := fmt.Sprintf(" The longest wait in a queue is %s against %s, "+
		"and %s of the prompt tokens are recomputed against %s.",
		seconds(high.LargestQueue), seconds(low.LargestQueue), percent(high.Twice), percent(low.Twice))
	var uneven []string
	for _, cause := range []struct {
		field closedloop.Field
		text  string
	}{
		{closedloop.Spread, fmt.Sprintf("its busiest worker has %.1f more requests in flight than its least busy (%s: %.1f)",
			high.Spread, better, low.Spread)},
		{closedloop.Full, fmt.Sprintf("in %s of the seconds some worker has more in flight than its batch holds (%s: %s)",
			percent(high.Full), better, percent(low.Full))},
		{closedloop.Herding, fmt.Sprintf("%s of the first turns go to a worker more than %s busier than the average (%s: %s)",
			percent(high.Herding), api.Plain(100*(closedloop.CrowdedFactor-1))+" %", better, percent(low.Herding))},
	} {
		if more(cause.field) {
			uneven = append(uneven, cause.text)
		}
	}
	if len(uneven) > 0 {
		text += fmt.Sprintf(" Its load is less even: %s.", list(uneven))
	}
	return extreme{sentence, text}
}

// atLevel lists the figures of both curves at one level.
func (c *comparison) atLevel(i int) string {
	a, b := &c.means[0][i], &c.means[1][i]
	return fmt.Sprintf("At %v, %s against %s: TTFT p50 %s against %s, p95 %s against %s; "+
		"longest wait in a queue %s against %s; in-flight skew %.2f against %.2f, spread %.1f against %.1f; "+
		"first turns sent to the busiest worker %s against %s; prompt tokens recomputed %s against %s.",
		c.levels[i], c.a.Name, c.b.Name, seconds(a.TTFT50), seconds(b.TTFT50),
		seconds(a.TTFT95), seconds(b.TTFT95), seconds(a.LargestQueue), seconds(b.LargestQueue),
		a.Skew, b.Skew, a.Spread, b.Spread, percent(a.Herding), percent(b.Herding), percent(a.Twice), percent(b.Twice))
}

func seconds(v float64) string {
	if math.IsNaN(v) {
		return "unknown"
	}
	return api.Milliseconds(v)
}

func percent(v float64) string {
	if math.IsNaN(v) {
		return "unknown"
	}
	return api.Percent(v)
}
