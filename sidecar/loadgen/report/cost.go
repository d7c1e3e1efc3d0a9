package report

import (
	"cmp"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/report/chart"
)

// costColumns describes the columns of the costs: the GPUs, and the costs.
var costColumns = append([]*quantity{{baseline.QuantityOf("gpus"), "", "GPUs", "", api.Plain}}, costQuantities...)

// costQuantities describes the costs, in the order of [proof.Costs].
var costQuantities = func() (all []*quantity) {
	for i, value := range []func(float64) string{
		func(v float64) string { return api.Number(v/1e6, 2) + " MJ" },
		func(v float64) string { return api.Number(v, 0) + " J" },
		func(v float64) string { return api.Number(v, 2) + " $" },
		func(v float64) string { return api.Number(v, 5) + " $" },
		tenths, tenths,
	} {
		all = append(all, &quantity{proof.Costs[i], "", api.Costs[i].Name, "", value})
	}
	return all
}()

// costed returns the sides with the costs of their rows. Those that were not measured with a row follow from its
// throughput, its TPOT, and the GPUs and the price in the side's deployment.
func (r *Results) costed() []proof.Side {
	sides := slices.Clone(r.Sides)
	for i := range sides {
		sides[i].Rows = slices.Clone(sides[i].Rows)
		for j := range sides[i].Rows {
			row, d := &sides[i].Rows[j], &sides[i].Deployment
			b := api.CostBasis{
				GPUs: float64(d.GPUs()), GPUHour: d.GPUHour, Tokens: row.OutputTokensPerSecond, TPOT: row.TPOT.P50,
			}
			if row.GPUs != nil {
				b.GPUs = *row.GPUs
			}
			derived := api.BaselineRow{Cost: b.Cost()}
			row.GPUs = derived.GPUs
			for _, q := range proof.Costs {
				*q.In(row) = cmp.Or(*q.In(row), *q.In(&derived))
			}
		}
	}
	return sides
}

// costs returns what tokens and turns cost, and what they yield on a GPU and for a user, as far as it is known.
func (r *Results) costs() Section {
	var rows []api.BaselineRow
	sides := r.costed()
	for i := range sides {
		rows = append(rows, sides[i].Rows...)
	}
	known := slices.DeleteFunc(slices.Clone(costColumns), func(q *quantity) bool {
		return !slices.ContainsFunc(rows, func(row api.BaselineRow) bool { return *q.In(&row) != nil })
	})
	if !slices.ContainsFunc(known, func(q *quantity) bool { return q != costColumns[0] }) {
		return Section{}
	}
	s := Section{Title: costTitle, Text: costText(rows), Charts: r.pareto(sides), Table: &Table{
		Head: []string{sentenceCase(r.side()), r.levelHead()},
	}}
	for _, q := range known {
		s.Table.Head = append(s.Table.Head, q.title)
	}
	for i := range sides {
		for j := range sides[i].Rows {
			row := &sides[i].Rows[j]
			cells := []string{sides[i].Name, row.Level.String()}
			for _, q := range known {
				cells = append(cells, q.cell(*q.In(row), q.IntervalOf(row)))
			}
			s.Table.add(cells...)
		}
	}
	return s
}

const costTitle = "What it costs"

// simulatedPower says of a table that its energy is no measurement.
const simulatedPower = "The power is that of simulated GPUs: energies are no measurements."

// costText says what the costs stand on.
func costText(rows []api.BaselineRow) (text []string) {
	text = append(text, "Tokens per second and user are 1 / median TPOT.")
	if !slices.ContainsFunc(rows, func(row api.BaselineRow) bool { return row.JoulesPerMillionTokens != nil }) {
		text = append(text, "No power was read, so energies are not known.")
	}
	if slices.ContainsFunc(rows, func(row api.BaselineRow) bool { return row.PowerSimulated }) {
		text = append(text, simulatedPower)
	}
	return text
}

// pareto draws tokens per second and GPU against those per user over the levels. Where the GPUs of a side are not
// known, it draws those of each cluster. It draws nothing if no side has two levels.
func (r *Results) pareto(sides []proof.Side) []chart.Chart {
	title, unit := "Tokens/s per GPU against tokens/s per user", "tokens/s per GPU"
	unknown := func(row api.BaselineRow) bool { return row.GPUs == nil }
	perCluster := slices.ContainsFunc(sides, func(s proof.Side) bool { return slices.ContainsFunc(s.Rows, unknown) })
	if perCluster {
		title, unit = "Tokens/s against tokens/s per user; the number of GPUs is not known", "tokens/s of the cluster"
	}
	var traces []chart.Trace
	levels := 0
	for i := range sides {
		one := chart.Trace{Name: sides[i].Name}
		for _, row := range sides[i].Rows {
			y := row.TokensPerGPU
			if perCluster {
				y = row.OutputTokensPerSecond
			}
			if y != nil && row.TokensPerUser != nil {
				one.Spots = append(one.Spots, chart.Spot{X: *row.TokensPerUser, Y: *y, Label: row.Level.String()})
			}
		}
		traces, levels = append(traces, one), max(levels, len(one.Spots))
	}
	if levels < 2 {
		return nil
	}
	return []chart.Chart{chart.Pareto(title, unit, "tokens/s per user, at the levels of load", traces...)}
}

// costWords lists the costs that are known, except tokens per second and user alone, which TPOT says.
func costWords(c *api.Cost) string {
	var all []string
	row := api.BaselineRow{Cost: *c}
	for _, q := range costQuantities {
		if v := *q.In(&row); v != nil {
			all = append(all, api.FigureOf(q.Name).InSentence()+" "+q.value(*v))
		}
	}
	if c.PowerSimulated {
		all = append(all, "of simulated power")
	}
	if len(all) < 2 {
		return ""
	}
	return strings.Join(all, ", ")
}
