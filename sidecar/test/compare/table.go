package compare

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"kvbooth/sidecar/api"
)

// missing stands where nothing was measured or recorded.
const missing = "—"

// table is one setting, side by side, with the reasons below.
func (p *pair) table(recorded api.Column) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%v: %d turns simulated, %d real\n", p.setting, p.simulated.turns, p.real.turns)
	w := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "  \tsimulated\treal Dynamo\tdifference\tbound\trecorded")
	for _, b := range shares {
		row(w, b.name, percent(b.of(&p.simulated).value), percent(b.of(&p.real).value), b.differenceText(p), fmt.Sprintf("%s: %s", points(b.bound), b.judge(p)), b.recorded(&recorded))
	}
	for _, q := range quantities {
		difference := missing
		if d := q.relative(p); !math.IsNaN(d) {
			difference = fmt.Sprintf("%+.0f %%", 100*d)
		}
		row(w, q.name, q.text(q.of(&p.simulated)), q.text(q.of(&p.real)), difference, "", lookedUp(q.recorded(&recorded), q.text))
	}
	w.Flush()
	out.WriteString(p.reasons())
	for _, r := range []*result{&p.simulated, &p.real} {
		if r.mistrust != "" {
			fmt.Fprintf(&out, "  Times (%s): the load generator mistrusted itself %s.\n", r.side, r.mistrust)
		}
	}
	return out.String()
}

func row(w io.Writer, cells ...string) { fmt.Fprintln(w, "  "+strings.Join(cells, "\t")) }

func (b bounded) differenceText(p *pair) string {
	d := b.difference(p)
	if math.IsNaN(d.value) {
		return missing
	}
	return fmt.Sprintf("%+.1f ± %.1f points", 100*d.value, 100*d.margin)
}

// recorded is a share as it was recorded; only hit rates were.
func (b bounded) recorded(c *api.Column) string {
	if b.name != hitRate {
		return missing
	}
	return lookedUp(c.KVHitRatio, percent)
}

// reasons has a line for each reason, behind what it explains.
func (p *pair) reasons() string {
	var order []string
	names := map[string][]string{}
	note := func(name, why string) {
		if why == "" {
			return
		}
		if names[why] == nil {
			order = append(order, why)
		}
		names[why] = append(names[why], name)
	}
	for _, b := range shares {
		note(b.name, b.why(p))
	}
	for _, q := range quantities {
		note(q.name, q.why(p))
	}
	var out strings.Builder
	for _, why := range order {
		fmt.Fprintf(&out, "  %s: %s.\n", strings.Join(names[why], " and "), why)
	}
	return out.String()
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

// orMissing formats a value unless it is not known.
func orMissing(known float64, format string, shown float64) string {
	if math.IsNaN(known) {
		return missing
	}
	return fmt.Sprintf(format, shown)
}
