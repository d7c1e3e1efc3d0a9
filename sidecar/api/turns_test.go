package api

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// header is what the load generator writes, in its order.
const header = "lane,conversation,turn,request_id,step,status,error_class,started,ended,ttft_seconds,tpot_seconds," +
	"prompt_tokens,cached_tokens,output_tokens,worker\r\n"

func TestReadTurns(t *testing.T) {
	noon := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	turns, err := ReadTurns(strings.NewReader(header +
		"main,c-1,2,c-1-2,1,ok,,2026-11-01T12:00:00Z,2026-11-01T12:00:20.5Z,.25,.026,4000,3200,830,77\r\n" +
		"main,c-2,1,c-2-1,1,error,timeout,2026-11-01T12:00:00Z,2026-11-01T12:02:00Z,,,,,,\r\n"))
	require.NoError(t, err)
	require.Len(t, turns, 2)
	want := Turn{
		Conversation: "c-1", Number: 2, Status: TurnOK, Started: noon, Ended: noon.Add(20500 * time.Millisecond),
		TTFT: new(.25), TPOT: new(.026), PromptTokens: new(4000), CachedTokens: new(3200), OutputTokens: new(830),
		Worker: "77",
	}
	assert.Equal(t, want, turns[0])
	assert.Equal(t, ErrorTimeout, turns[1].ErrorClass)
	assert.Nil(t, turns[1].PromptTokens, "an empty field is not known")
}

func TestReadTurnsRefuses(t *testing.T) {
	for _, row := range []struct{ intent, text, want string }{
		{"nothing at all", "", "empty"},
		{"another table", "a,b\n1,2\n", "no column"},
		{"a broken number", header + "main,c-1,two,c-1-2,1,ok,,,,,,,,,\r\n", "line 2, turn"},
		{"a short line", header + "main\r\n", "wrong number of fields"},
	} {
		t.Run(row.intent, func(t *testing.T) {
			_, err := ReadTurns(strings.NewReader(row.text))
			require.Error(t, err)
			assert.ErrorContains(t, err, row.want)
		})
	}
}
