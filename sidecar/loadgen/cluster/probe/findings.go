package probe

import (
	"fmt"

	"kvbooth/sidecar/api"
)

// Verdict says whether a property was found.
type Verdict string

// The verdicts.
const (
	Yes     Verdict = "yes"
	No      Verdict = "no"
	Unclear Verdict = "unclear"
)

// Finding is a sentence on one property of a router.
type Finding struct {
	Property string  `json:"property"`
	Verdict  Verdict `json:"verdict"`
	Text     string  `json:"text"`
	Remedy   string  `json:"remedy,omitempty"`
}

// certain is the error of a verdict that pairs meet more often than by chance: of ten with three workers, nine.
const certain = .001

const nameWorker = "set target.worker_header to a response header that names the worker"

// Affinity says whether prompts that begin alike meet again.
func (r *Report) Affinity() Finding {
	f := Finding{Property: "affinity", Verdict: Unclear}
	p, o := r.Repeats, r.Others
	switch {
	case p.Of == 0:
		f.Text = "whether prompts that begin alike meet again is not known: answers name no worker and no cached tokens"
		f.Remedy = nameWorker + ", or let the engines report cached tokens"
	case o == nil && 10*p.Same >= 8*p.Of:
		f.Verdict = Yes
		f.Text = fmt.Sprintf("prompts that begin alike meet again: %s found their prompt in a cache; no worker is named",
			p.repeats())
		f.Remedy = nameWorker
	case o == nil:
		f.Text = fmt.Sprintf("%s found their prompt in a cache, and no worker is named: that may be chance", p.repeats())
		f.Remedy = nameWorker
	case r.Workers == 1:
		f.Text = "all requests went to one worker, so that a policy has no effect to be seen"
		f.Remedy = "check that the router has more than one worker"
	case p.ByChance <= certain:
		f.Verdict = Yes
		f.Text = fmt.Sprintf("prompts that begin alike meet again: %s went where the first one did, and %d of %d other "+
			"prompts", p.repeats(), o.Same, o.Of)
	default:
		f.Verdict = No
		f.Text = fmt.Sprintf("no sign that prompts that begin alike meet again: %s went where the first one did, and %d of "+
			"%d other prompts", p.repeats(), o.Same, o.Of)
		f.Remedy = "check the router's policy, and what it needs to have an effect: docs/routers.md"
	}
	return f
}

func (p Placement) repeats() string { return fmt.Sprintf("%d of %d repeats", p.Same, p.Of) }

// Findings lists what was found, the most important first.
func (r *Report) Findings() []Finding {
	all := []Finding{r.Affinity()}
	if p := r.Stays; p != nil {
		f := Finding{Property: "sessions", Verdict: No, Text: fmt.Sprintf("sessions do not stay: of %d, %d went where their "+
			"first prompt did (%s)", p.Of, p.Same, r.Session)}
		switch {
		case r.Workers == 1:
			f.Verdict, f.Text = Unclear, "whether sessions stay is not known: all requests went to one worker"
		case p.ByChance <= certain:
			f.Verdict = Yes
			f.Text = fmt.Sprintf("sessions stay: of %d, %d went where their first prompt did (%s)", p.Of, p.Same, r.Session)
		}
		all = append(all, f)
	}
	if p := r.Events; p != nil {
		f := Finding{Property: "events", Verdict: No, Text: fmt.Sprintf("the router does not know the caches: of %d prompts "+
			"that an engine had got directly, %d went to it", p.Of, p.Same)}
		if r.Affinity().Verdict == Yes {
			f.Text += "; it goes by what it has routed itself"
		}
		if p.ByChance <= certain {
			f.Verdict = Yes
			f.Text = fmt.Sprintf("the router knows the caches: of %d prompts that an engine had got directly, %d went to it",
				p.Of, p.Same)
		}
		all = append(all, f)
	}
	if a := r.Added; a != nil {
		all = append(all, Finding{Property: "added", Verdict: Yes, Text: fmt.Sprintf("the first token comes %s later "+
			"than from an engine (95 %%: %s to %s)", api.Milliseconds(a.Median.Seconds()), api.InMS(a.Interval[0].Seconds()),
			api.Milliseconds(a.Interval[1].Seconds()))})
	}
	held := Finding{Property: "streams", Verdict: Yes, Text: "streams arrive token by token"}
	if r.Held {
		held = Finding{
			Property: "streams", Verdict: No, Text: "streams arrive in bursts, so that times between tokens are not known",
			Remedy: "switch off buffering in the router or proxy (nginx: proxy_buffering off; HAProxy: option http-no-delay)",
		}
		if r.Direct != nil && *r.Direct {
			held.Text, held.Remedy = held.Text+"; an engine asked directly sends bursts, too", "see the engine's settings"
		}
	}
	return append(all, held)
}
