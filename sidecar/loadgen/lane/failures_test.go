package lane

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// logged returns failures, and a function that returns the log lines since its last call, without
// times.
func logged() (f *failures, take func() []string) {
	var text bytes.Buffer
	untimed := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	handler := slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: untimed})
	return &failures{lane: "main", log: slog.New(handler)}, func() []string {
		defer text.Reset()
		return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	}
}

// If every turn fails, each class is logged at once, and then after 10 s, 30 s, 1 min and every 5 min with its count.
// The first success is logged, too.
func TestTotalFailureIsLoggedAtGrowingIntervals(t *testing.T) {
	f, take := logged()
	for n := range 1000 {
		f.turnFailed(at(float64(n)), api.ErrorConnect, "connection refused")
		if n == 5 {
			f.turnFailed(at(float64(n)), api.ErrorHTTP5xx, "503 starting")
		}
	}
	const warn = "level=WARN msg=\"turns fail\" lane=main class="
	const still = "level=ERROR msg=\"turns still fail\" lane=main class=connect turns="
	const rest = " ended_well_meanwhile=0 first_message=\"connection refused\""
	assert.Equal(t, []string{
		warn + "connect turns=1 first_message=\"connection refused\"",
		warn + "http_5xx turns=1 first_message=\"503 starting\"",
		still + "10 within=10s" + rest, still + "30 within=30s" + rest, still + "60 within=1m0s" + rest,
		still + "300 within=5m0s" + rest, still + "300 within=5m0s" + rest,
	}, take())
	f.turnWell(at(1010))
	const info = "level=INFO msg="
	assert.Equal(t, []string{info + "\"turns succeed again\" lane=main after=16m50s failed_meanwhile=1001"}, take())
	f.turnFailed(at(1012), api.ErrorHTTP5xx, "one more")
	f.turnWell(at(1021))
	assert.Contains(t, take()[0], "turns still fail", "no new beginning within a minute")
	f.turnWell(at(1072))
	assert.Equal(t, []string{
		info + "\"no turn has failed for a minute\" lane=main failed_before=1002 within=16m52s",
	}, take())
	f.turnFailed(at(2000), api.ErrorConnect, "again")
	assert.Equal(t, []string{warn + "connect turns=1 first_message=again"}, take())
}

// One failed turn in a hundred is logged as a warning, in as few lines.
func TestSomeFailuresAreLoggedAsWarnings(t *testing.T) {
	f, take := logged()
	for n := range 100 {
		f.turnFailed(at(float64(n)), api.ErrorStall, "silent")
		for range 99 {
			f.turnWell(at(float64(n)))
		}
	}
	const still = "level=WARN msg=\"turns still fail\" lane=main class=stall turns="
	lines := take()
	require.Len(t, lines, 3)
	assert.Equal(t, still+"10 within=10s ended_well_meanwhile=990 first_message=silent", lines[1])
	f.stopped(at(100))
	assert.Equal(t, []string{still + "59 within=1m0s ended_well_meanwhile=5940 first_message=silent"}, take(),
		"the rest, at the end")
	f.turnWell(at(500))
	assert.Equal(t, []string{""}, take())
}
