package api

import (
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// header has the columns that every turn has a value in, and one.
const header = "lane,conversation,turn,status,started,ended\r\n"

// A turn is read as it was written, but for its texts. An empty cell is not known.
func TestTurnsAreReadAsWritten(t *testing.T) {
	noon := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	want := []Turn{{
		Lane: "main", Conversation: "c-1", Number: 2, RequestID: "c-1-2", Step: 1, Level: AtConversations(60), Mode: ModeKV,
		Speculation: SpeculationOff, Counted: true, Status: TurnOK, Started: noon, Ended: noon.Add(20500 * time.Millisecond),
		TTFT: new(.25), FirstAnswer: new(.5), TPOT: new(.026), ITLP50: new(.02), ITLP95: new(.03), ITLEstimated: true,
		Latency: new(20.), PromptTokens: new(4000), CachedTokens: new(3200), OutputTokens: new(830), TokenSource: "usage",
		FinishReason: "stop", Worker: "@77", PredictedRatio: new(.75), QueueDepth: new(3), ServerTTFT: new(.2),
		Arm: "A", InBursts: true, Late: new(.001),
	}, {
		Conversation: "c-2", Number: 1, Status: TurnError, ErrorClass: ErrorTimeout, ErrorMessage: "no answer",
		Started: noon, Ended: noon,
	}}
	var text strings.Builder
	w := csv.NewWriter(&text)
	cells := TurnsHeader()
	require.NoError(t, w.Write(cells))
	for i := range want {
		want[i].Cells(cells)
		require.NoError(t, w.Write(cells))
	}
	w.Flush()
	assert.Contains(t, text.String(), ",'@77,", "a name that a spreadsheet would take for a formula")
	assert.Contains(t, text.String(), ",server_ttft_seconds,counts_in,arm,in_bursts,late_seconds", "new columns are last")
	got, err := ReadTurns(strings.NewReader(text.String()))
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

func TestCountsIn(t *testing.T) {
	for _, row := range []struct {
		turn Turn
		want string
	}{
		{Turn{Status: TurnOK, TTFT: new(.1)}, "latencies"},
		{Turn{Status: TurnOK}, "rates"}, // an answer without text has no latency
		{Turn{Status: TurnError, TTFT: new(.1)}, "errors"},
		{Turn{Status: TurnCancelled, TTFT: new(.1)}, "span_ttft"},
		{Turn{Status: TurnCancelled}, ""},
	} {
		assert.Equal(t, row.want, countsIn(&row.turn), "%+v", row.turn)
	}
}

func TestReadTurnsRefuses(t *testing.T) {
	for _, row := range []struct{ intent, text, want string }{
		{"nothing at all", "", "empty"},
		{"another table", "a,b\n1,2\n", "no column"},
		{"a broken number", header + "main,c-1,2.5,ok,,\r\n", "line 2, turn"},
		{"a short line", header + "main\r\n", "wrong number of fields"},
	} {
		t.Run(row.intent, func(t *testing.T) {
			_, err := ReadTurns(strings.NewReader(row.text))
			assert.ErrorContains(t, err, row.want)
		})
	}
}
