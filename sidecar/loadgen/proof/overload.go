package proof

import (
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
// arm does not keep up, and the one up to which it is suspected, so that no arm is called better yet.
const (
	seldom    = .05
	tolerated = .01
	suspected = .15
)

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
	if t.Over = t.beyond(tolerated); len(t.Over) > 0 {
		t.Shown.Verdict = string(Overloaded)
		t.withdraw()
	}
	t.Shown.Overload = t.overload()
}

// beyond returns the arms that do not keep up, with an error: whose queue grew without end in more blocks than chance
// explains, or was longer at the ends of spans than at their beginnings, by Student's t over all spans. In a
// switchback, the queue of a slower arm grows in each of its slots.
func (t *Trial) beyond(err float64) (arms []int) {
	for _, arm := range t.Plan.all() {
		n, k := float64(len(t.Blocks)+len(t.Dropped)), float64(t.overloads(arm))
		growth := t.Growth[arm]
		grows := false
		if spans := float64(len(growth)); spans > 1 && !t.Plan.Switchback {
			mean, deviation := stat.MeanStdDev(growth, nil)
			grows = mean > student(2*err, spans-1)*stat.StdErr(deviation, spans)
		}
		byChance := distuv.Binomial{N: n, P: seldom}
		if grows || k > 0 && 1-byChance.CDF(k-1) < err {
			arms = append(arms, arm)
		}
	}
	return arms
}

// decidable returns the verdict of a trial in which an arm is better: [Overloaded] where an arm certainly does not keep
// up. While that is suspected, more blocks show it. The same holds for an arm that was left out in more blocks than
// another, which are those in which it was slow.
func (t *Trial) decidable(better int, verdict Verdict) Verdict {
	if t.Plan.Level.Kind != api.Rate {
		return verdict
	}
	favored := slices.ContainsFunc(t.Plan.all(), func(other int) bool {
		return t.overloads(better) > t.overloads(other)
	})
	if t.Over = t.beyond(tolerated); len(t.Over) > 0 {
		verdict = Overloaded
	} else if favored || len(t.beyond(suspected)) > 0 {
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
