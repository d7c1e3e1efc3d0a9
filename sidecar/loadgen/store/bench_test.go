package store

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// fill puts ended conversations into the store, with five turns each of its only
// step, whose answers have the size. Of each conversation the id, number and
// times are its own.
func fill(t testing.TB, s *Store, conversations, answer int) {
	t.Helper()
	data, err := encode(measured())
	require.NoError(t, err)
	for _, statement := range []string{
		fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < %d)
			INSERT INTO conversations (id, lane, number, topic, topic_folded, starter, status, turns_planned, turns_done, started, ended)
			SELECT printf('main-%%d', i), 'main', i, 'GPU', 'gpu', 'gpu', 'completed', 5, 5, i*1000000000, (i+60)*1000000000 FROM n`, conversations-1),
		fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < %d)
			INSERT INTO turns (conversation, number, lane, step, ended, data, user_message, assistant_message)
			SELECT printf('main-%%d', i/5), i%%5+1, 'main', 1, (i/5+60)*1000000000, '%s', 'Please elaborate further.', printf('%%.%dc', 'x') FROM n`,
			5*conversations-1, data, answer),
	} {
		_, err := s.write.Exec(statement)
		require.NoError(t, err)
	}
}

// measured is a turn of which everything is known.
func measured() api.Turn {
	m := turn("main-1", 1)
	m.ITLP50, m.ITLP95, m.Latency = ptr(0.024), ptr(0.031), ptr(25.123456)
	m.CachedTokens, m.OutputTokens, m.QueueDepth = ptr(2048), ptr(1024), ptr(3)
	m.TokenSource, m.FinishReason, m.Worker = "usage", "stop", "dynamo-worker-2"
	m.PredictedRatio, m.ServerTTFT = ptr(0.5), ptr(0.24)
	m.UserMessage, m.AssistantMessage = "", ""
	return m
}

// The export of a step of 100,000 turns.
func BenchmarkTurnsCSV(b *testing.B) {
	s, err := Open(b.Context(), Options{Dir: b.TempDir()})
	require.NoError(b, err)
	defer s.Close()
	const conversations = 20_000
	fill(b, s, conversations, 1000)
	for b.Loop() {
		require.NoError(b, s.TurnsCSV(b.Context(), io.Discard, api.DefaultLane, 1))
	}
	b.ReportMetric(5*conversations*float64(b.N)/b.Elapsed().Seconds(), "turns/s")
}

// The start after a kill −9 in the middle of a step of 100,000 turns.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s, err := Open(b.Context(), Options{Dir: dir})
	require.NoError(b, err)
	fill(b, s, 20_000, 1000)
	for b.Loop() {
		b.StopTimer()
		_, err := s.write.Exec(`UPDATE conversations SET status = 'active' WHERE number > 19000;
			INSERT OR REPLACE INTO steps (lane, id, started, data) VALUES ('main', 1, 0, '{}')`)
		require.NoError(b, err)
		require.NoError(b, s.Close())
		b.StartTimer()
		s, err = Open(b.Context(), Options{Dir: dir})
		require.NoError(b, err)
	}
	require.NoError(b, s.Close())
}

// The removal of 20,000 conversations, with their space.
func BenchmarkPrune(b *testing.B) {
	const conversations = 20_000
	limits := defaultLimits
	limits.prune = time.Hour
	for b.Loop() {
		b.StopTimer()
		s, err := open(b.Context(), Options{Dir: b.TempDir(), MaxConversations: 1}, limits)
		require.NoError(b, err)
		fill(b, s, conversations, 1000)
		b.StartTimer()
		for s.prune() {
		}
		b.StopTimer()
		require.NoError(b, s.Close())
		b.StartTimer()
	}
	b.ReportMetric(conversations*float64(b.N)/b.Elapsed().Seconds(), "conversations/s")
}
