package api

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Conversations are written and read as before rates existed. A rate is a text, also as a key.
func TestLevelText(t *testing.T) {
	type row struct {
		Level Level         `json:"concurrency"`
		Of    map[Level]int `json:"of,omitempty"`
	}
	for _, one := range []struct {
		row  row
		text string
	}{
		{row{Level: AtConversations(60)}, `{"concurrency":60}`},
		{row{Level: AtRate(12.5), Of: map[Level]int{AtRate(2): 1}}, `{"concurrency":"12.5/s","of":{"2/s":1}}`},
	} {
		text, err := json.Marshal(one.row)
		require.NoError(t, err)
		assert.JSONEq(t, one.text, string(text))
		var read row
		require.NoError(t, json.Unmarshal([]byte(one.text), &read))
		assert.Equal(t, one.row, read)
	}
	for _, refused := range []string{`"60"`, `60.5`, `"many/s"`, `[60]`, `{}`, `true`, `"NaN/s"`} {
		var kind *json.UnmarshalTypeError
		require.ErrorAs(t, json.Unmarshal([]byte(`{"concurrency":`+refused+`}`), new(row)), &kind, refused)
		assert.Equal(t, "concurrency", kind.Field)
	}
	assert.Equal(t, "1 conversation, 12.5 conversations/s", AtConversations(1).InWords()+", "+AtRate(12.5).InWords())
}

// Levels of different kinds have no order, and nothing compares them.
func TestLevelKinds(t *testing.T) {
	assert.True(t, AtRate(2).Below(AtRate(3)))
	assert.False(t, AtConversations(2).Below(AtRate(3)))
	assert.NotEqual(t, AtConversations(2), AtRate(2))
	require.NoError(t, OnlyConversations("levels", LevelsOf(60, 120)...))
	require.EqualError(t, OnlyConversations("levels", AtConversations(60), AtRate(2)),
		"levels: 2/s is not allowed: numbers of conversations; rates are for the live load")
	require.NoError(t, OfOneKind("levels", AtRate(2), AtRate(4)))
	require.EqualError(t, OfOneKind("levels", AtConversations(60), AtRate(2)),
		"levels: 2/s is not allowed: levels of one kind: numbers of conversations, or rates")
	assert.Equal(t, AtConversations(97), AtConversations(60).With(97.5))
	assert.Equal(t, AtRate(1.5), AtRate(3).With(1.5))
}
