//go:build page

package page

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/test/boothtest"
)

// token is the token of the load generators that have one.
const token = "the-page-of-a-test"

// TestGate runs the journeys that visit each page and use each control once.
func TestGate(t *testing.T) {
	tools := boothtest.FindTools(t)
	b := boothtest.Start(t, boothtest.Options{Target: boothtest.Simulated, Flags: []string{"--think-time=3s"}})
	needPage(t, b.Loadgen)
	b.Journeys(t, tools, "page-gate",
		"SESSION_TOKEN="+token,
		"PUBLIC_URL="+b.AnotherLoadgen(t, "public", token, "--public-page"),
		"CLOSED_URL="+b.AnotherLoadgen(t, "closed", token),
		"TWIN_URL="+twin(t, b, boothtest.SimulatedAs(t, b.Bin(), "sglang")))
}

// TestPage runs all other journeys.
func TestPage(t *testing.T) {
	tools := boothtest.FindTools(t)
	b := boothtest.Start(t, boothtest.Options{Target: boothtest.Simulated})
	needPage(t, b.Loadgen)
	b.Journeys(t, tools, "page",
		"TWIN_URL="+twin(t, b, boothtest.SimulatedAs(t, b.Bin(), "sglang")),
		"REPLAY_URL="+startReplay(t, b.Loadgen))
}

// twin starts a load generator that sends the same conversations to the booth's cluster and to another one.
func twin(t *testing.T, b *boothtest.Booth, other boothtest.Target) string {
	t.Helper()
	return b.AnotherLoadgen(t, "twin", "", "--twin-target-url=http://"+other.Frontend)
}

// needPage fails the test if the load generator was built without its page.
func needPage(t *testing.T, url string) {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	if !strings.Contains(string(text), `<div id="root">`) {
		t.Fatalf("the load generator has no page; build it with: go tool mage build\n%s", text)
	}
}
