//go:build compare

package compare

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"text/tabwriter"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/sim"
)

// TestDemoLiveMatchesCore runs the demo's workload against the demo's cluster over HTTP: the load generator's
// workload and client with the built-in questioner, at each level and in each mode for the span, after the warm-up.
// The clock is that of a synctest bubble, so that the figures do not depend on the machine's load. The test prints
// the figures beside those of twelve runs of the core of equal length with other conversations, and fails if one is
// outside the 99.9 % prediction interval. The colors are those of the default SLOs. To run it:
//
//	go test -tags=compare ./sidecar/test/compare -run=TestDemoLiveMatchesCore -v
func TestDemoLiveMatchesCore(t *testing.T) {
	for _, s := range settings(t) {
		profile := sim.H200()
		if s.workers != profile.Workers {
			continue
		}
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			w, err := workloadOf(s.level, *seed, builtInQuestions)
			require.NoError(t, err)
			o := sim.DefaultOptions(profile)
			o.Mode, o.Seed = s.mode, *seed
			var got result
			synctest.Test(t, func(t *testing.T) { got = live(t, o, w, corpus.BuiltinQuestioner{}, *warmUp, *span) })
			w.Seed += 1000 // other conversations than those of the live run
			runs, err := core(s, o, w, false, part{got.before, got.turns})
			require.NoError(t, err)

			var out strings.Builder
			fmt.Fprintf(&out, "\n%v, %v: %d turns live, %d runs of the core\n", s, *span, got.turns, len(runs))
			table := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
			row(table, "", "live", "core", "its runs", "95 % of further runs", "recorded", "color live", "core")
			column := recorded(profile, s)
			for _, f := range figures {
				b, v := bandOf(runs, f.of), f.of(&got)
				off := (v - b.mean) / b.run95
				within := fmt.Sprintf("within (%+.2f of the margin)", off)
				if off > 1 || off < -1 {
					within = fmt.Sprintf("OUTSIDE (%+.2f of the margin)", off)
				}
				if d := v - b.mean; d > b.run999 || d < -b.run999 {
					t.Errorf("%s: %s live, %s ± %s in the core", f.name, f.text(v), f.text(b.mean), f.text(b.run999))
				}
				row(table, f.name, f.text(v), f.text(b.mean), b.text(f.text), within, lookedUp(f.recorded(&column), f.text),
					color(f.slo, v), color(f.slo, b.mean))
			}
			table.Flush()
			fmt.Fprint(t.Output(), out.String())
		})
	}
}

// color returns a figure's color on the screen, "" without an SLO.
func color(slo, v float64) string {
	if slo == 0 {
		return ""
	}
	return map[baseline.SLOColor]string{
		baseline.SLOMet: "green", baseline.SLONear: "yellow", baseline.SLOMissed: "red",
	}[baseline.Judge(v, slo)]
}
