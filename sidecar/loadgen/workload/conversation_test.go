package workload

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
)

// talk runs some conversations and returns their requests.
func talk(t *testing.T, target *server, options ...func(*Options)) (sent map[string][]request) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := booth(20)
		s.Turns = api.Range{Min: 5, Max: 5}
		run(t, target, s, options...)
		advance(3 * time.Minute)
		sent = target.conversations()
	})
	require.Greater(t, len(sent), 20)
	return sent
}

// The first message begins with the nonce, if there is one, and the starter's text. A nonce changes nothing else.
func TestFirstMessageBeginsWithNonceAndStarter(t *testing.T) {
	all := articles(t).Starters
	plain := talk(t, &server{})
	cold := talk(t, &server{}, func(o *Options) { o.Nonce = "[c01d]" })
	used := map[string]bool{}
	for id, turns := range plain {
		first := turns[0].Messages
		require.Len(t, first, 1)
		assert.Equal(t, chat.RoleUser, first[0].Role)
		at := slices.IndexFunc(all, func(s corpus.Starter) bool {
			return strings.HasPrefix(first[0].Text, s.Text+"\n\n")
		})
		if !assert.GreaterOrEqual(t, at, 0, "%s begins with %.60q", id, first[0].Text) {
			continue
		}
		used[all[at].ID] = true
		question := first[0].Text[len(all[at].Text)+2:]
		assert.NotEmpty(t, question)
		assert.NotContains(t, question, "\n", "a question, and nothing else")
		assert.Equal(t, "[c01d]\n"+first[0].Text, cold[id][0].Messages[0].Text)
	}
	assert.Greater(t, len(used), 5)
}

// A conversation ends before prompt and answer would be longer than the context of the model.
func TestContextEndsConversations(t *testing.T) {
	ends := map[int]int{}
	for _, turns := range talk(t, &server{usage: 1000}, func(o *Options) { o.ModelTokens = 4300 }) {
		ends[len(turns)]++
	}
	assert.Greater(t, ends[2], 20, "the third prompt has 5,000 tokens")
	for turns := range ends {
		assert.LessOrEqual(t, turns, 2)
	}
	s := booth(1)
	require.NoError(t, s.CheckContext(articles(t).Sized(2000), 3200))
	assert.EqualError(t, s.CheckContext(articles(t).Sized(2000), 3000), "opening_tokens: 2000 is not allowed: at most "+
		"1876 before answers of 1024 (max_tokens) in the context of the model, 3000 tokens")
}

// Each turn resends the previous one byte for byte, with its answer and a new question. Otherwise no KV cache could
// help.
func TestHistoryIsResent(t *testing.T) {
	for id, turns := range talk(t, &server{}) {
		for i, turn := range turns {
			assert.Equal(t, fmt.Sprintf("%s-%d", id, i+1), turn.ID)
			require.Len(t, turn.Messages, 2*i+1)
			last := turn.Messages[2*i]
			assert.Equal(t, chat.RoleUser, last.Role)
			assert.NotEmpty(t, last.Text)
			if i == 0 {
				continue
			}
			before := turns[i-1]
			assert.Equal(t, before.Messages, turn.Messages[:2*i-1])
			answer := chat.Message{Role: chat.RoleAssistant, Text: before.answer}
			assert.Equal(t, answer, turn.Messages[2*i-1])
			for _, m := range before.Messages {
				assert.NotEqual(t, m.Text, last.Text, "a question comes twice")
			}
		}
	}
}

// Instance is called once for each turn, and its result is part of that turn's request.
func TestInstancePinsEachTurn(t *testing.T) {
	var mu sync.Mutex
	var picked []string
	pickInstance := func() string {
		mu.Lock()
		defer mu.Unlock()
		picked = append(picked, fmt.Sprint(len(picked)))
		return picked[len(picked)-1]
	}
	target := &server{}
	talk(t, target, func(o *Options) { o.Instance = pickInstance })
	var got []string
	for _, turn := range target.requests() {
		got = append(got, turn.Instance)
	}
	assert.ElementsMatch(t, picked, got)

	unpinned := &server{}
	talk(t, unpinned)
	assert.Empty(t, unpinned.requests()[0].Instance)
}
