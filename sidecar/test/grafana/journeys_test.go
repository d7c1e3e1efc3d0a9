//go:build grafana

package grafana

import (
	"testing"

	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/test/boothtest"
)

// token is the load generator's: without one, no wrong one could be tried.
const token = "the-booth-of-a-test"

// firstPort is where the search for free ports begins.
const firstPort = 23000

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

// TestBooth and TestUnderAPath wait a lot, each with a booth of its own.
func TestBooth(t *testing.T) {
	t.Parallel()
	found := findTools(t)
	b := boothtest.Start(t, boothtest.Options{FirstPort: firstPort, Token: token, Target: boothtest.Simulated})
	found.journeys(t, b, "", "grafana")
}

func TestUnderAPath(t *testing.T) {
	t.Parallel()
	found := findTools(t)
	b := boothtest.Start(t, boothtest.Options{FirstPort: firstPort + 500, Token: token, Target: boothtest.Simulated})
	found.journeys(t, b, "/grafana", "app")
}

// journeys runs a project of the journeys against a Grafana of its own.
func (found tools) journeys(t *testing.T, b *boothtest.Booth, path, project string) {
	t.Helper()
	b.Journeys(t, found.Tools, project, "GRAFANA_URL="+startGrafana(t, b, found.grafana, path), "PASSWORD="+password)
}
