package proof

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
)

// OpenWarmUp is the number of conversations, from the beginning of a span at a rate on, that must have ended before it
// counts. A span begins without conversations in progress. They are as many as at any later time once the longest of
// them may have ended: with ten, the time is about the longest of ten conversations.
const OpenWarmUp = 10

// Overloaded is the verdict of a trial at a rate that some arm does not keep up with.
const Overloaded Verdict = "overloaded"

// How far an arm keeps up with a rate, besides [Open].
const (
	KeepsUp       = "keeps_up"
	DoesNotKeepUp = "does_not_keep_up"
)

// warmUp returns how many conversations must have ended before a span at a level counts, and how many of them start in
// their middle.
func warmUp(level api.Level) (conversations, midway int) {
	if level.Kind == api.Rate {
		return OpenWarmUp, 0
	}
	n := level.Conversations()
	return n, n
}

// Dropped is a block in which the queue of some arm grew without end. Its latencies are not compared: they say how long
// the spans took. It ends once all arms have run, in a switchback at once, since the queue of an arm would be that of
// the next slot.
type Dropped struct {
	After int   `json:"after"` // number of whole blocks before it
	Spans int   `json:"spans"` // number of its spans
	Ran   []int `json:"ran"`   // arms of these spans
	Arms  []int `json:"arms"`  // that did not keep up
}

// How often the queue of an arm seems to grow without end in a block by chance, the error with which it is said that an
// arm does not keep up, and the one with which it must be shown that all do before an arm is called better.
const (
	seldom    = .05
	tolerated = .01
	suspected = .15
)

// atLimit is how far a queue grows in the mean under a load that its arm only just serves, in standard deviations: a
// random walk from 0 on that does not fall below 0 grows by √(2/π). With a warm-up of half as long as counts, half of
// that is in the counted time. The queue of an arm that keeps up fills by less.
const atLimit = .8

// drop takes in the spans of the block under way if one of them was overloaded and all arms have run. The trial is over
// once the queue of an arm has grown without end in more blocks than chance explains, such as the first two.
func (t *Trial) drop() {
	d := Dropped{After: len(t.Blocks), Spans: len(t.Runs)}
	for i, run := range t.order()[:len(t.Runs)] {
		if !slices.Contains(d.Ran, run.Arm) {
			d.Ran = append(d.Ran, run.Arm)
		}
		if t.Runs[i].Overloaded && !slices.Contains(d.Arms, run.Arm) {
			d.Arms = append(d.Arms, run.Arm)
		}
	}
	if len(d.Arms) == 0 || len(d.Ran) < len(t.left()) && !t.Plan.Switchback {
		return
	}
	for i := range t.Runs {
		t.Lost += t.Runs[i].Elapsed
	}
	t.Dropped = append(t.Dropped, d)
	t.Runs, t.Attempt = []Measured{}, 1
	if t.Over = t.beyond(); len(t.Over) > 0 {
		t.Shown.Verdict = string(Overloaded)
		t.withdraw()
	}
	t.Shown.Overload = t.overload()
}

// beyond returns the arms that certainly do not keep up: those left out in more blocks than chance explains, and those
// whose queue was longer at the ends of spans than at their beginnings by more than a load at its limit explains.
func (t *Trial) beyond() []int {
	return slices.DeleteFunc(t.serving(t.Plan.all()), func(arm int) bool {
		return t.byChance(arm) >= tolerated && t.growth(arm, tolerated) <= atLimit/2
	})
}

// doubtful reports whether some arm is not shown to keep up.
func (t *Trial) doubtful() bool {
	return slices.ContainsFunc(t.serving(t.Plan.all()), func(arm int) bool {
		return t.byChance(arm) < suspected || t.growth(arm, 1-suspected) > atLimit
	})
}

// byChance returns the probability that an arm that keeps up is left out in as many blocks.
func (t *Trial) byChance(arm int) float64 {
	blocks := distuv.Binomial{N: float64(len(t.Blocks) + len(t.Dropped)), P: seldom}
	return 1 - blocks.CDF(float64(t.overloads(arm)-1))
}

// growth returns the lower bound of the mean growth of an arm's queue in a span, in standard deviations, by Student's t
// with an error on one side. It is -Inf where that is not known, and in a switchback, in which the queue of a slower
// arm grows in each of its slots.
func (t *Trial) growth(arm int, err float64) float64 {
	n := float64(len(t.Growth[arm]))
	mean, deviation := stat.MeanStdDev(t.Growth[arm], nil)
	if t.Plan.Switchback || !(deviation > 0) {
		return math.Inf(-1)
	}
	return mean/deviation - student(2*err, n-1)/math.Sqrt(n)
}

// decidable returns the verdict of a trial in which an arm is better: [Overloaded] where an arm certainly does not keep
// up. Until all are shown to keep up, more blocks follow. The same holds for an arm that was left out in more blocks
// than another, which are those in which it was slow.
func (t *Trial) decidable(better int, verdict Verdict) Verdict {
	if t.Plan.Level.Kind != api.Rate {
		return verdict
	}
	favored := slices.ContainsFunc(t.serving(t.Plan.all()), func(other int) bool {
		return t.overloads(better) > t.overloads(other)
	})
	if t.Over = t.beyond(); len(t.Over) > 0 {
		verdict = Overloaded
	} else if favored || t.doubtful() {
		used := t.BlockSeconds() // with the next block
		for i := range t.Blocks {
			used += t.Blocks[i].Seconds
		}
		if verdict = Running; used > t.Plan.MaxTime {
			verdict = TimeOver
		}
	}
	t.Shown.Overload = t.overload()
	t.held = slices.Contains([]Verdict{Overloaded, Running, TimeOver}, verdict)
	return verdict
}

// grow keeps the growth in the spans of a block, of two spans that ran as one as of one.
func (t *Trial) grow(order []decide.Run) {
	if t.Plan.Level.Kind != api.Rate {
		return
	}
	if t.Growth == nil {
		t.Growth = map[int][]float64{}
	}
	for i, run := range order {
		t.Growth[run.Arm] = append(t.Growth[run.Arm], t.Runs[i].Growth)
	}
}

// overload returns how far each arm keeps up with the rate; nil where all did in all blocks.
func (t *Trial) overload() (all []api.TrialOverload) {
	if len(t.Dropped)+len(t.Over) == 0 {
		return nil
	}
	for _, arm := range t.Plan.all() {
		o := api.TrialOverload{Arm: api.TrialArms[arm], State: string(Open), Blocks: t.overloads(arm)}
		ran := len(t.Blocks)
		for _, d := range t.Dropped {
			if slices.Contains(d.Ran, arm) {
				ran++
			}
		}
		switch {
		case slices.Contains(t.Over, arm):
			o.State = DoesNotKeepUp
		case len(t.Over) > 0 && o.Blocks == 0 && ran > 1:
			o.State = KeepsUp
		}
		all = append(all, o)
	}
	return all
}

// overloads returns the number of blocks in which an arm did not keep up.
func (t *Trial) overloads(arm int) (blocks int) {
	for _, d := range t.Dropped {
		if slices.Contains(d.Arms, arm) {
			blocks++
		}
	}
	return blocks
}

// withdraw takes back what latencies show, where some arm does not keep up.
func (t *Trial) withdraw() {
	t.Shown.Final = nil
	if t.Shown.Primary != nil {
		t.Shown.Primary = withdrawn(*t.Shown.Primary)
	}
	for i, d := range t.Shown.Others {
		t.Shown.Others[i] = *withdrawn(d)
	}
}

func withdrawn(d api.TrialDifference) *api.TrialDifference {
	if Metric(d.Metric).LessIsBetter() && (d.Outcome == string(ABetter) || d.Outcome == string(BBetter)) {
		d.Outcome = string(Running)
	}
	return &d
}
