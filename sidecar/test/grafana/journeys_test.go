//go:build grafana

package grafana

import (
	"slices"
	"testing"

	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/test/boothtest"
)

// token is the load generator's: without one, no wrong one could be tried.
const token = "the-booth-of-a-test"

// firstPort is where the search for free ports begins.
const firstPort = 23000

// The journeys that hold against any target and under any address.
var (
	core = []string{"dashboards", "operate", "workers"}
	// What Grafana has around the pages; at the root they have journeys enough.
	app = []string{"apppages"}
	// The journeys that one Grafana and one cluster are enough for.
	others = []string{"screenshots", "cost", "roles", "loss", "settings", "together", "accessibility"}
	// Those of the load generator's own page that make sense here too.
	pages = []string{"page/operate", "page/everywhere", "page/dashboard", "page/conversations", "page/explain", "page/guide"}
)

// tools are what the journeys need of the machine.
type tools struct {
	boothtest.Tools
	grafana local.Grafana
}

// findTools skips the test where one of them is missing.
func findTools(t *testing.T) tools {
	t.Helper()
	grafana, err := local.FindGrafana(t.Context())
	boothtest.Need(t, err, local.ErrNoGrafana, "no Grafana")
	return tools{boothtest.FindTools(t), grafana}
}

func TestBooth(t *testing.T) {
	found := findTools(t)
	b := boothtest.Start(t, boothtest.Options{FirstPort: firstPort, Token: token, Target: boothtest.Simulated})
	t.Run("at the root", func(t *testing.T) { found.journeys(t, b, "", slices.Concat(core, others)) })
	t.Run("under a path", func(t *testing.T) { found.journeys(t, b, "/grafana", slices.Concat(core, app)) })
	t.Run("the pages", func(t *testing.T) { found.journeys(t, b, "", pages, "PAGES=grafana") })
}

// journeys runs files of tests/browser against a Grafana of their own, with what
// else they are to find in their environment.
func (found tools) journeys(t *testing.T, b *boothtest.Booth, path string, files []string, env ...string) {
	t.Helper()
	grafana := startGrafana(t, b, found.grafana, path)
	b.Journeys(t, found.Tools, files, append(env, "GRAFANA_URL="+grafana, "PASSWORD="+password)...)
}
