package compare

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"kvbooth/sidecar/api"
)

// missing is shown for a figure that was not measured or recorded.
const missing = "—"

// table renders one setting.
func (p *pair) table(recorded api.Column) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%v: %d runs of the core, %d turns of the real one\n", p.setting, len(p.core), p.real.turns)
	w := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "  \tcore\tits runs\treal Dynamo\tdifference\tbound\trecorded")
	for i := range figures {
		f := &figures[i]
		core, bound := bandOf(p.core, f.of), ""
		if f.bound > 0 {
			bound = fmt.Sprintf("%s: %s", f.size(f.bound), f.judge(p))
		}
		row(w, f.name, f.text(core.mean), core.text(f.text), f.text(f.of(&p.real)), f.differenceText(p), bound,
			lookedUp(f.recorded(&recorded), f.text))
	}
	w.Flush()
	if p.real.mistrust != "" {
		fmt.Fprintf(&out, "  Times: the load generator mistrusted itself %s.\n", p.real.mistrust)
	}
	return out.String()
}

// text formats the range of the runs.
func (b band) text(of func(float64) string) string { return of(b.lowest) + " – " + of(b.most) }

func row(w io.Writer, cells ...string) { fmt.Fprintln(w, "  "+strings.Join(cells, "\t")) }

// differenceText formats the difference, for a figure without a bound as a share of the real one.
func (f *figure) differenceText(p *pair) string {
	value, margin := f.difference(p)
	switch {
	case math.IsNaN(value):
		return missing
	case f.bound == 0:
		return fmt.Sprintf("%+.0f %%", 100*value/f.of(&p.real))
	case f.relative:
		return fmt.Sprintf("%+.0f ± %.0f %%", 100*value, 100*margin)
	}
	return fmt.Sprintf("%+.1f ± %.1f points", 100*value, 100*margin)
}

func lookedUp(l api.LookedUp, text func(float64) string) string {
	switch {
	case l.Value == nil:
		return missing
	case l.Lookup == api.LookupInterpolated:
		return text(*l.Value) + " (interpolated)"
	}
	return text(*l.Value)
}

func percent(share float64) string { return orMissing(share, "%.1f %%", 100*share) }

func points(share float64) string { return orMissing(share, "%.3g points", 100*share) }

func milliseconds(seconds float64) string {
	if seconds < .1 {
		return orMissing(seconds, "%.1f ms", 1000*seconds)
	}
	return orMissing(seconds, "%.0f ms", 1000*seconds)
}

func plain(v float64) string {
	if v < 100 {
		return orMissing(v, "%.1f", v)
	}
	return orMissing(v, "%.0f", v)
}

// orMissing formats a value, or returns missing for NaN.
func orMissing(known float64, format string, shown float64) string {
	if math.IsNaN(known) {
		return missing
	}
	return fmt.Sprintf(format, shown)
}

// figure is a figure on which live and core must agree, and which the tables show.
type figure struct {
	name     string
	of       func(*result) float64 // NaN if not measured
	text     func(float64) string
	recorded func(*api.Column) api.LookedUp
	slo      float64 // default threshold that it must not exceed; 0: none
	bound    float64 // of the difference between core and real Dynamo; 0: none
	relative bool    // the bound is a share of the real figure
}

var figures = []figure{
	{
		name: "hit rate", of: func(r *result) float64 { return r.hit }, text: percent, bound: .02,
		recorded: func(c *api.Column) api.LookedUp { return c.KVHitRatio },
	},
	{
		name: "same worker again", of: func(r *result) float64 { return r.stay }, text: percent, bound: .03,
		recorded: notRecorded,
	},
	{
		name: "in-flight spread", of: func(r *result) float64 { return r.spread }, text: plain, bound: .20, relative: true,
		recorded: notRecorded,
	},
	{
		name: "TTFT p50", of: func(r *result) float64 { return known(r.ttft.P50) }, text: milliseconds,
		recorded: func(c *api.Column) api.LookedUp { return c.TTFT.P50 },
	},
	{
		name: "TTFT p95", of: func(r *result) float64 { return known(r.ttft.P95) }, text: milliseconds,
		recorded: func(c *api.Column) api.LookedUp { return c.TTFT.P95 }, slo: .6,
	},
	{
		name: "TPOT p50", of: func(r *result) float64 { return known(r.tpot.P50) }, text: milliseconds,
		recorded: func(c *api.Column) api.LookedUp { return c.TPOT.P50 },
	},
	{
		name: "TPOT p95", of: func(r *result) float64 { return known(r.tpot.P95) }, text: milliseconds,
		recorded: func(c *api.Column) api.LookedUp { return c.TPOT.P95 }, slo: .06,
	},
	{
		name: "output tokens/s", of: func(r *result) float64 { return r.rate }, text: plain,
		recorded: func(c *api.Column) api.LookedUp { return c.OutputTokensPerSecond },
	},
}

func notRecorded(*api.Column) api.LookedUp { return api.LookedUp{Lookup: api.LookupNotRecorded} }
