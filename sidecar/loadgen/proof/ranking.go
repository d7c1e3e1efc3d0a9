package proof

import (
	"cmp"
	"maps"
	"slices"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
)

// ranking is what the blocks show of more than two arms.
func (t *Trial) ranking(d *decide.Decision) *api.TrialRanking {
	r := &api.TrialRanking{
		Question: cmp.Or(t.Plan.Question, api.QuestionBest), Places: []api.TrialPlace{}, Pairs: []api.TrialPair{},
		Groups: []api.TrialGroup{},
	}
	arms := t.ranked(d)
	for _, arm := range arms {
		r.Places = append(r.Places, t.place(d, arm))
	}
	for _, arm := range slices.Sorted(maps.Keys(t.Gone)) {
		r.Places = append(r.Places, t.lastPlace(arm))
	}
	for i, b := range arms {
		for _, a := range arms[i+1:] {
			if p, ok := t.pair(d, a, b); ok {
				r.Pairs = append(r.Pairs, p)
			}
		}
	}
	alike := func(i, j int) bool {
		found := between(d.Primary, arms[i], arms[j])
		return len(found) > 0 && found[0].Within(t.Plan.Smallest)
	}
	for _, group := range groups(len(arms), alike) {
		g := api.TrialGroup{}
		for _, i := range group {
			g.Arms = append(g.Arms, api.TrialArms[arms[i]])
		}
		r.Groups = append(r.Groups, g)
	}
	return r
}

// ranked are all arms that serve, the best first, and the others by their estimates; before the first look in their own
// order.
func (t *Trial) ranked(d *decide.Decision) []int {
	arms := t.serving(t.Plan.all())
	if d.Means == nil {
		return arms
	}
	slices.SortStableFunc(arms, func(a, b int) int {
		switch {
		case a == d.Best:
			return -1
		case b == d.Best:
			return 1
		case t.Plan.Primary.LessIsBetter():
			return cmp.Compare(d.Means[a], d.Means[b])
		}
		return cmp.Compare(d.Means[b], d.Means[a])
	})
	return arms
}

// lastPlace is what is shown of an arm that is gone.
func (t *Trial) lastPlace(arm int) api.TrialPlace {
	n := len(t.Plan.modes())
	p := api.TrialPlace{
		Arm: api.TrialArms[arm], Mode: t.Plan.modes()[arm], Place: [2]int{n - len(t.Gone) + 1, n}, Failures: t.failed(arm),
		Gone: t.Gone[arm], LeftAfter: new(int),
	}
	for i := range t.Blocks {
		if slices.ContainsFunc(t.Blocks[i].Spans, func(s decide.Span) bool { return s.Arm == arm }) {
			*p.LeftAfter++
		}
	}
	return p
}

// place is what is shown of an arm that serves.
func (t *Trial) place(d *decide.Decision, arm int) api.TrialPlace {
	p := api.TrialPlace{
		Arm: api.TrialArms[arm], Mode: t.Plan.modes()[arm], Place: [2]int{1, len(t.Plan.modes()) - len(t.Gone)},
		MayBeBest: d.Means == nil || slices.Contains(d.MayBeBest, arm), Failures: t.failed(arm),
	}
	for i := range d.Primary {
		winner, loser, ok := d.Primary[i].Better()
		ok = ok && !d.TradesOff(&d.Primary[i]) && !d.Suspects(&d.Primary[i])
		switch {
		case ok && loser == arm:
			p.Place[0]++
		case ok && winner == arm:
			p.Place[1]--
		}
	}
	if n := d.LeftAfter[arm]; n > 0 {
		p.LeftAfter = &n
	}
	if d.Means != nil {
		p.Mean = new(t.Plan.Primary.unscaled(d.Means[arm]))
	}
	return p
}

// pair is the comparison of two arms, B with A; false before the first look.
func (t *Trial) pair(d *decide.Decision, a, b int) (p api.TrialPair, ok bool) {
	primary := between(d.Primary, a, b)
	if len(primary) == 0 {
		return p, false
	}
	p = api.TrialPair{
		A: api.TrialArms[a], B: api.TrialArms[b], Blocks: primary[0].Blocks, Primary: t.difference(d, &primary[0]),
		Others: t.differences(d, d.Others, a, b), Guards: guardsOf(d.Guards, a, b),
		Worse: worse(d, a, b),
	}
	p.More = moreFailures(d, a, b)
	return p, true
}

// groups are the largest sets of n things, two or more in each, of which each two are alike.
func groups(n int, alike func(i, j int) bool) (all [][]int) {
	fits := func(group []int, i int) bool {
		return !slices.ContainsFunc(group, func(j int) bool { return i == j || !alike(i, j) })
	}
	var grow func(group []int, from int)
	grow = func(group []int, from int) {
		largest := true
		for i := range n {
			if !fits(group, i) {
				continue
			}
			largest = false
			if i >= from {
				grow(append(slices.Clone(group), i), i+1)
			}
		}
		if largest && len(group) > 1 {
			all = append(all, group)
		}
	}
	grow(nil, 0)
	return all
}
