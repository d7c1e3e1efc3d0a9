package lane

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// logged makes failures whose lines, without their times, take gives and forgets.
func logged() (f *failures, take func() []string) {
	var text bytes.Buffer
	untimed := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	f = &failures{lane: "main", log: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: untimed}))}
	return f, func() []string {
		defer text.Reset()
		return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	}
}

// Where every turn fails, each class is told of at once, and then after 10 s, 30 s,
// 1 min and every 5 min, with how many there were since; then that turns succeed again.
func TestTotalFailureInTheLog(t *testing.T) {
	f, take := logged()
	for n := range 1000 {
		f.turnFailed(at(float64(n)), api.ErrorConnect, "connection refused")
		if n == 5 {
			f.turnFailed(at(float64(n)), api.ErrorHTTP5xx, "503 starting")
		}
	}
	const level = "level=ERROR msg=\"turns still fail\" lane=main class=connect turns="
	const rest = " ended_well_meanwhile=0 first_message=\"connection refused\""
	assert.Equal(t, []string{
		"level=WARN msg=\"turns fail\" lane=main class=connect turns=1 first_message=\"connection refused\"",
		"level=WARN msg=\"turns fail\" lane=main class=http_5xx turns=1 first_message=\"503 starting\"",
		level + "10 within=10s" + rest, level + "30 within=30s" + rest, level + "60 within=1m0s" + rest,
		level + "300 within=5m0s" + rest, level + "300 within=5m0s" + rest,
	}, take())
	f.turnWell(at(1010))
	assert.Equal(t, []string{"level=INFO msg=\"turns succeed again\" lane=main after=16m50s failed_meanwhile=1001"}, take())
	f.turnFailed(at(1012), api.ErrorHTTP5xx, "one more")
	f.turnWell(at(1021))
	assert.Contains(t, take()[0], "turns still fail", "no new beginning within a minute")
	f.turnWell(at(1072))
	assert.Equal(t, []string{"level=INFO msg=\"no turn has failed for a minute\" lane=main failed_before=1002 within=16m52s"}, take())
	f.turnFailed(at(2000), api.ErrorConnect, "again")
	assert.Equal(t, []string{"level=WARN msg=\"turns fail\" lane=main class=connect turns=1 first_message=again"}, take())
}

// One turn in a hundred that fails is a warning, in as few lines.
func TestSomeFailuresInTheLog(t *testing.T) {
	f, take := logged()
	for n := range 100 {
		f.turnFailed(at(float64(n)), api.ErrorStall, "silent")
		for range 99 {
			f.turnWell(at(float64(n)))
		}
	}
	lines := take()
	require.Len(t, lines, 3)
	assert.Equal(t, "level=WARN msg=\"turns still fail\" lane=main class=stall turns=10 within=10s ended_well_meanwhile=990 first_message=silent", lines[1])
	f.stopped(at(100))
	assert.Equal(t, []string{"level=WARN msg=\"turns still fail\" lane=main class=stall turns=59 within=1m0s ended_well_meanwhile=5940 first_message=silent"}, take(),
		"what was not told of yet, at the end")
	f.turnWell(at(500))
	assert.Equal(t, []string{""}, take())
}

// The turns of a lane are what is told of.
func TestFailedTurnsAreLogged(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		log, take := logged()
		b.lane.failures.log = log.log
		f.set(func(f *fake) {
			f.ill = &chat.Error{Class: api.ErrorHTTP5xx, Status: 500, Message: "the server failed (500)"}
		})
		b.start(3)
		pass(30 * time.Second)
		f.set(func(f *fake) { f.ill = nil })
		pass(10 * time.Second)
		b.stop()
		text := strings.Join(take(), "\n")
		assert.Contains(t, text, `level=WARN msg="turns fail" lane=main class=http_5xx turns=1 first_message="the server failed (500)"`)
		assert.Contains(t, text, `level=ERROR msg="turns still fail" lane=main class=http_5xx`)
		assert.Contains(t, text, `level=INFO msg="turns succeed again" lane=main after=3`)
	})
}
