package server

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/server/replay"
)

func TestRecordingIsPlayedBack(t *testing.T) {
	live, err := api.NewClient(nil, start(t, &recorder{}, nil), "")
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, replay.Record(t.Context(), &file, live, 0, func(time.Duration) {}))
	player, err := replay.Open(&file, "run")
	require.NoError(t, err)

	base := start(t, nil, func(o *Options) { o.Playback = player })
	played := newContract(t).client(base, "")
	lane := ""
	for shown, err := range played.Stream(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, player.RecordedAt(), shown.Replay.RecordedAt.UTC())
		lane = shown.Lanes[0].Name
		break
	}
	before, err := live.Conversations(t.Context(), api.ConversationQuery{Lane: lane})
	require.NoError(t, err)
	after, err := played.Conversations(t.Context(), api.ConversationQuery{Lane: lane, Limit: 7})
	require.NoError(t, err)
	require.Equal(t, before.Conversations, after.Conversations)
	one, err := played.Conversation(t.Context(), after.Conversations[0].ID)
	require.NoError(t, err)
	require.NotEmpty(t, one.ID)

	_, err = played.Comparison(t.Context(), "", "other")
	require.ErrorIs(t, err, api.ErrNotFound)
	_, err = played.Start(t.Context(), "", api.StartRequest{})
	require.ErrorIs(t, err, api.ErrConflict)
	require.ErrorContains(t, err, "the replay of a recording")
	_, session := do(t, newServer(t, nil, func(o *Options) { o.Playback = player }),
		request{path: api.Prefix + "/session"})
	require.JSONEq(t, `{"token_required":false,"authenticated":false,"can_read":true,"can_write":false,"replay":true}`, session)
}
