package proof

// Looks are what the trial knew of the metric that decides after each pair, computed
// again from what it keeps of the spans: they end with [State.Primary].
func (t *Trial) Looks() []Difference {
	looks := []Difference{}
	pairs := t.pairs()
	for k := range pairs {
		if d := t.difference(t.Plan.Primary, pairs[:k+1], alpha); d != nil {
			looks = append(looks, *d)
		}
	}
	return looks
}

// Boundaries are the ends of the differences that are of no interest. An interval between
// them decides for no difference; of relative ones, the lower undoes a rise to the upper.
func (p Plan) Boundaries() [2]float64 {
	m := p.Primary
	margin := m.margin(p.Smallest)
	return [2]float64{m.relative(-margin), m.relative(margin)}
}
