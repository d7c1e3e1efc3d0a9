//go:build page

package page

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"kvbooth/sidecar/test/boothtest"
)

const (
	// token is that of the load generators that have one.
	token = "the-page-of-a-test"
	// firstPort is where the search for free ports begins.
	firstPort = 25000
)

// TestPage and TestPageWaits run beside each other, each with a booth of its own.
func TestPage(t *testing.T) {
	t.Parallel()
	tools := boothtest.FindTools(t)
	b := boothtest.Start(t, boothtest.Options{FirstPort: firstPort, Target: boothtest.Simulated})
	needPage(t, b.Loadgen)
	sglang, blind, twin := b.AnotherCluster(t, "sglang")
	b.Journeys(t, tools, "page",
		"SGLANG_URL="+sglang, "SGLANG_BLIND_URL="+blind, "TWIN_URL="+twin,
		"SESSION_TOKEN="+token,
		"PUBLIC_URL="+b.AnotherLoadgen(t, "public", token, "--public-page"),
		"CLOSED_URL="+b.AnotherLoadgen(t, "closed", token),
		// A namespace without metrics: else the router's own would tell the mode.
		"UNTOLD_URL="+b.AnotherLoadgen(t, "untold", "", "--mode-driver=manual", "--mode-mode=unknown", "--prometheus-namespace=elsewhere"),
		"REPLAY_URL="+startReplay(t, b.Loadgen))
}

// TestPageWaits has the journeys that wait for the workload more than they do anything.
func TestPageWaits(t *testing.T) {
	t.Parallel()
	tools := boothtest.FindTools(t)
	b := boothtest.Start(t, boothtest.Options{FirstPort: firstPort + 500, Target: boothtest.Simulated})
	needPage(t, b.Loadgen)
	b.Journeys(t, tools, "waits")
}

// needPage fails the test where the load generator was built without its page.
func needPage(t *testing.T, url string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `<div id="root">`) {
		t.Fatalf("the load generator has no page; build it with: go tool mage build\n%s", text)
	}
}
