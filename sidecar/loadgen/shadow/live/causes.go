package live

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/shadow"
)

// causes says what became of the prompt tokens of the last 60 s: what was found first, then the losses, the largest
// first.
func causes(f *shadow.Figures, spread *float64) (all []api.HitCause) {
	c := &f.Lately
	if c.Requests == 0 {
		return nil
	}
	add := func(kind api.HitCauseKind, tokens int64, text, remedy string) {
		if tokens != 0 {
			share := float64(tokens) / float64(c.PromptTokens)
			all = append(all, api.HitCause{
				Kind: kind, Tokens: int(tokens), Share: share, Text: fmt.Sprintf(text, percent(math.Abs(share))), Remedy: remedy,
			})
		}
	}
	add(api.CauseFound, c.Found, "%s of the prompt tokens were found in the worker's cache", "")
	add(api.CauseNew, c.New, "%s were new: no request of this load had begun like that before", "")
	addOther(add, c, spread)
	add(api.CauseEvicted, c.Evicted, fmt.Sprintf("%%s had been computed by the worker and evicted since: its cache holds "+
		"%d blocks", f.Capacity), "larger caches, fewer workers for each prefix, or fewer conversations at once")
	add(api.CauseRemainder, c.Remainder, "%s are behind the last whole block of their prompt, and never found again", "")
	text, remedy := "%s should have been in the cache, and the worker did not find them",
		"see whether router and engine have one tokenizer, block size and hash seed, and prefix caching is on"
	if c.Unexplained < 0 {
		text, remedy = "%s more were found than the model of the cache holds", ""
	}
	add(api.CauseUnexplained, c.Unexplained, text, remedy)
	rank := func(h api.HitCause) int {
		if h.Kind == api.CauseFound {
			return math.MaxInt
		}
		return h.Tokens
	}
	slices.SortStableFunc(all, func(a, b api.HitCause) int { return cmp.Compare(rank(b), rank(a)) })
	return all
}

// spills is the share of the tokens on other workers from which the load explains them: had the router taken no account
// of the load, about half of the chosen workers would have been less busy than those with the blocks.
const spills = 2. / 3

// addOther adds what was cached on another worker than the chosen one.
func addOther(add func(api.HitCauseKind, int64, string, string), c *shadow.Causes, spread *float64) {
	tokens := c.Elsewhere + c.Spilled
	spilled := ratio(c.Spilled, tokens)
	text := fmt.Sprintf("%%s had been computed, but on other workers; %.0f %%%% of these while all of them were busier "+
		"than the chosen one", 100*spilled)
	if spilled < spills {
		add(api.CauseElsewhere, tokens, text, "the router does not send prompts where their beginning is: "+
			"loadgen probe-router says what it goes by")
		return
	}
	if spread != nil {
		text += fmt.Sprintf("; the busiest worker had %.1f more requests in flight than the idlest on average", *spread)
	}
	add(api.CauseSpilled, tokens, text, "give the match more weight against the load, or add workers")
}
