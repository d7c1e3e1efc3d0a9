package report

import (
	"fmt"
	"slices"
	"strings"

	"kvbooth/sidecar/loadgen/proof"
)

// doubtWords lists the arms whose spans contradict their configuration, and different numbers of workers between arms.
func (r *Results) doubtWords() (all []string) {
	modes := r.Sweep.Request.Modes
	names := proof.ModeNames(modes)
	workers := make([]int, len(modes))
	for i, m := range modes {
		if slices.Contains(modes[:i], m) { // a mode against itself
			continue
		}
		spans, doubted := 0, map[string]int{}
		var order []string
		for k := range r.Sweep.Spans {
			s := &r.Sweep.Spans[k]
			if s.Mode != m || s.Spoiled != "" {
				continue
			}
			spans++
			workers[i] = max(workers[i], s.Workers)
			for _, d := range s.Doubts {
				if doubted[d]++; doubted[d] == 1 {
					order = append(order, d)
				}
			}
		}
		for _, d := range order {
			all = append(all, fmt.Sprintf("%s is not what it claims: in %d of %s %s.", names[i], doubted[d],
				plural(spans, "span"), d))
		}
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
