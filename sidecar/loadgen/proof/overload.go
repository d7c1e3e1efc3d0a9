package proof

import (
	"slices"

	"kvbooth/sidecar/api"
)

// OpenWarmUp is the number of conversations, from the beginning of a span at a rate on, that must have ended before it
// counts. A span begins without conversations in progress. They are as many as at any later time once the longest of
// them may have ended: with ten, the time is about the longest of ten conversations.
const OpenWarmUp = 10

// Overloaded is the verdict of a trial at a rate that some arm does not keep up with.
const Overloaded Verdict = "overloaded"

// How far an arm keeps up with a rate, by the two blocks that end a trial.
const (
	keepsUp       = "keeps_up"
	doesNotKeepUp = "does_not_keep_up"
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
// the spans took. It ends once all arms have run, in
// a switchback at once, since the queue of an arm would be that of the next slot.
type Dropped struct {
	After int   `json:"after"` // number of whole blocks before it
	Spans int   `json:"spans"` // number of its spans
	Ran   []int `json:"ran"`   // arms of these spans
	Arms  []int `json:"arms"`  // that did not keep up
}

// drop takes in the spans of the block under way if one of them was overloaded and all arms have run. A second one in a
// row ends the trial: that the queue of an arm seems to grow without end by chance is rare in one block of other
// arrivals, and far rarer in two.
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
	if n := len(t.Dropped); n > 1 && t.Dropped[n-2].After == len(t.Blocks) {
		t.Shown.Verdict = string(Overloaded)
		t.withdraw()
	}
	t.Shown.Overload = t.overload()
}

// keptUp reports whether an arm ran and kept up.
func (d *Dropped) keptUp(arm int) bool {
	return slices.Contains(d.Ran, arm) && !slices.Contains(d.Arms, arm)
}

// overload returns how far each arm keeps up with the rate; nil where all did in all blocks.
func (t *Trial) overload() (all []api.TrialOverload) {
	if len(t.Dropped) == 0 {
		return nil
	}
	n := len(t.Dropped)
	confirmed := n > 1 && t.Dropped[n-2].After == t.Dropped[n-1].After
	for _, arm := range t.Plan.all() {
		o := api.TrialOverload{Arm: api.TrialArms[arm], State: string(Open), Blocks: t.overloads(arm)}
		if confirmed {
			switch first, second := &t.Dropped[n-2], &t.Dropped[n-1]; {
			case slices.Contains(first.Arms, arm) && slices.Contains(second.Arms, arm):
				o.State = doesNotKeepUp
			case first.keptUp(arm) && second.keptUp(arm):
				o.State = keepsUp
			}
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

// favored reports whether an arm was left out of the comparison in more blocks than another, which are those in which
// it was slow: latencies do not show that it is better.
func (t *Trial) favored(arm, other int) bool { return t.overloads(arm) > t.overloads(other) }
