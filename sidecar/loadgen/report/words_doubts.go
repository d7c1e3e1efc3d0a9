package report

import (
	"fmt"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

// FewestDoubted is the number of turns from which all of them on one worker are no chance.
const FewestDoubted = 20

// OneWorker is the doubt about a span whose turns all went to one of several workers.
func OneWorker(workers int) string { return fmt.Sprintf("all turns went to one worker of %d", workers) }

// spanDoubts returns the doubts of a span. all are the turns of its arm by worker, with the workers that other arms
// show: they count where the cluster's metrics show no worker.
func spanDoubts(s *api.SweepSpan, all map[string]int) []string {
	used, turns := 0, 0
	for _, n := range s.TurnsByWorker {
		turns += n
		if n > 0 {
			used++
		}
	}
	if s.Workers == 0 && used == 1 && turns >= FewestDoubted && len(all) > 1 {
		return append(slices.Clone(s.Doubts), OneWorker(len(all)))
	}
	return s.Doubts
}

// remark is a text on spans, and the number of spans that it holds for.
type remark struct {
	text  string
	spans int
}

// addRemark adds a text on one more span. Texts that are equal up to their first colon are one remark, since what
// follows may be an error's detail, such as a port.
func addRemark(all []remark, text string) []remark {
	kind := func(text string) string { before, _, _ := strings.Cut(text, ": "); return before }
	i := slices.IndexFunc(all, func(r remark) bool { return kind(r.text) == kind(text) })
	if i < 0 {
		return append(all, remark{text, 1})
	}
	all[i].spans++
	return all
}

// ownWorkersWords says that the arms of a switchback have no worker in common.
func (r *Results) ownWorkersWords() []string {
	served := r.turnsByWorker()
	if !r.Sweep.Request.Warm() || len(served) != 2 || len(served[0]) == 0 || len(served[1]) == 0 ||
		haveCommon(served[0], served[1]) {
		return nil
	}
	return []string{"The arms have no worker in common, so each found warm what it had left itself, and had rested in " +
		"the other's slots; --caches cold asks another question."}
}

// afterEffectWords says that the arms differ otherwise in the first part of what counts.
func (r *Results) afterEffectWords() []string {
	t := r.Sweep.Trial
	if t == nil || t.AfterEffect == nil || t.Primary == nil {
		return nil
	}
	_, b := r.trialNames()
	e, m, what := t.AfterEffect, proof.Metric(t.Primary.Metric), "span"
	if r.Sweep.Request.Warm() {
		what = "slot"
	}
	return []string{fmt.Sprintf("In the first third of what counts of each %s, %s of %s is %s, in the rest %s, and that "+
		"change is certain (%s): a change of arm has after-effects on what was measured. Ask again with a longer warm-up "+
		"(warm_up).", what, m.Name(), b, directed(e.First, m), directed(e.Rest, m),
		intervalText(&e.Interval, m.Share()))}
}

// doubtWords reports workers that both lanes have in common, arms whose spans contradict their configuration, what
// went wrong in switches, and different numbers of workers between arms.
func (r *Results) doubtWords() (all []string) {
	all = slices.Concat(r.goneWords(), r.sharedWords(), r.ownWorkersWords(), r.afterEffectWords())
	modes := r.Sweep.Request.Modes
	names, served := proof.ModeNames(modes), r.turnsByWorker()
	workers := make([]int, len(modes))
	var warnings []*warning
	for i, m := range modes {
		if slices.Contains(modes[:i], m) { // a mode against itself
			continue
		}
		spans := 0
		var doubted, warned []remark
		for k := range r.Sweep.Spans {
			s := &r.Sweep.Spans[k]
			if s.Mode != m || s.Spoiled != "" {
				continue
			}
			spans++
			workers[i] = max(workers[i], s.Workers)
			for _, d := range spanDoubts(s, served[i]) {
				doubted = addRemark(doubted, d)
			}
			for _, w := range s.Warnings {
				warned = addRemark(warned, w)
			}
		}
		for _, d := range doubted {
			all = append(all, fmt.Sprintf("%s is not what it claims: in %d of %s %s.", names[i], d.spans,
				plural(spans, "span"), d.text))
		}
		for _, w := range warned {
			k := slices.IndexFunc(warnings, func(x *warning) bool { return x.text == w.text })
			if k < 0 {
				k, warnings = len(warnings), append(warnings, &warning{text: w.text})
			}
			warnings[k].arms = append(warnings[k].arms, names[i])
			warnings[k].spans += w.spans
			warnings[k].of += spans
		}
	}
	for _, w := range warnings {
		all = append(all, fmt.Sprintf("In %d of %s of %s: %s.", w.spans, plural(w.of, "span"), join(w.arms), w.text))
	}
	known := slices.DeleteFunc(slices.Clone(workers), func(n int) bool { return n == 0 })
	if len(known) < 2 || slices.Min(known) == slices.Max(known) {
		return all
	}
	var each []string
	for i, n := range workers {
		if n > 0 {
			each = append(each, fmt.Sprintf("%s %d", names[i], n))
		}
	}
	return append(all, "The arms did not have the same number of workers: "+strings.Join(each, ", ")+".")
}

// warning is a remark on spans, with the arms that have some of them.
type warning struct {
	text      string
	arms      []string
	spans, of int
}

// sharedWords reports the workers or GPUs that served both lanes at the same time.
func (r *Results) sharedWords() []string {
	var shared []string
	for i := range r.Sweep.Spans {
		if s := &r.Sweep.Spans[i]; s.Spoiled == "" {
			shared = append(shared, s.SharedWorkers...)
		}
	}
	if len(shared) == 0 {
		return nil
	}
	slices.Sort(shared)
	shared = slices.Compact(shared)
	return []string{fmt.Sprintf("The two lanes have workers or GPUs in common (%s), so their arms affect each other and "+
		"are not independent: the result does not show what either could do alone.", listed(shared))}
}

// listed joins names, at most four of them.
func listed(names []string) string {
	if n := len(names) - 4; n > 0 {
		return strings.Join(names[:4], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ")
}
