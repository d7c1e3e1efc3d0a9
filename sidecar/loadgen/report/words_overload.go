package report

import (
	"fmt"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

// overloadWords says which arms of a trial do not keep up with its rate. It returns nothing where no queue grew without
// end in any block.
func (r *Results) overloadWords(t *api.TrialState) []string {
	if len(t.Overload) == 0 {
		return nil
	}
	counts := make([]string, len(t.Overload))
	for i, o := range t.Overload {
		counts[i] = fmt.Sprintf("%s %d", r.armName(o.Arm), o.Blocks)
	}
	blocks := "Blocks in which a queue grew without end: " + strings.Join(counts, ", ") +
		". Their latencies are not compared: they say how long the spans took."
	if proof.Verdict(t.Verdict) != proof.Overloaded {
		return []string{blocks}
	}
	return []string{r.overloadVerdict(t), blocks}
}

// overloadVerdict describes the verdict of a trial that some arm does not keep up with.
func (r *Results) overloadVerdict(t *api.TrialState) string {
	by := map[string][]string{}
	for _, o := range t.Overload {
		by[o.State] = append(by[o.State], r.armName(o.Arm))
	}
	rate := api.LevelsInWords(r.Sweep.Request.Levels)
	not, keep, open := by[proof.DoesNotKeepUp], by[proof.KeepsUp], by[string(proof.Open)]
	text := fmt.Sprintf("%s %s with %s", join(not), keeps(len(not), false), rate)
	if len(keep) > 0 {
		text += fmt.Sprintf("; %s %s", join(keep), keeps(len(keep), true))
	}
	if len(open) > 0 {
		text += "; open: " + join(open)
	}
	return sentenceCase(text) + "."
}

// keeps says whether one arm keeps up, or several do.
func keeps(arms int, up bool) string {
	switch {
	case up && arms == 1:
		return "does"
	case up:
		return "do"
	case arms == 1:
		return "does not keep up"
	}
	return "do not keep up"
}

// overloadHeadline words the verdict for the stage.
func (r *Results) overloadHeadline(t *api.TrialState) *api.Headline {
	words := r.overloadWords(t)
	return &api.Headline{
		Kind: api.HeadlineUncertain, Against: api.AgainstTrial, Text: strings.TrimSuffix(words[0], "."), Detail: words[1:],
		Lines: api.List[api.HeadlineLine]{},
	}
}
