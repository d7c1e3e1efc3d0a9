package workload

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
)

// slowQuestioner is a questioner that takes a time for each question, and counts its calls.
type slowQuestioner struct {
	corpus.BuiltinQuestioner
	takes          time.Duration
	asking, broken atomic.Int64 // calls in progress, and calls that ctx ended
}

func (q *slowQuestioner) Follow(ctx context.Context, r *rand.Rand, topic string, asked []string, answer string) string {
	q.asking.Add(1)
	defer q.asking.Add(-1)
	if !sleep(ctx, nil, q.takes) {
		q.broken.Add(1)
	}
	return q.BuiltinQuestioner.Follow(ctx, r, topic, asked, answer)
}

// gaps returns the times between an answer's end and the next turn of its conversation.
func gaps(target *server) (all []time.Duration) {
	for _, turns := range target.conversations() {
		for i := 1; i < len(turns); i++ {
			all = append(all, turns[i].at.Sub(turns[i-1].ended))
		}
	}
	return all
}

// A question is generated from the end of the answer on, during the think time. The longer of the two delays the turn.
func TestQuestionIsGeneratedDuringThinkTime(t *testing.T) {
	for name, row := range map[string]struct{ takes, think, want time.Duration }{
		"no time at all":            {0, 0, 0},
		"longer than the user does": {5 * time.Second, 2 * time.Second, 5 * time.Second},
		"shorter":                   {2 * time.Second, 5 * time.Second, 5 * time.Second},
	} {
		virtual(t, name, func(t *testing.T) {
			s, target := booth(10), &server{}
			s.ThinkTime = row.think
			run(t, target, s, func(o *Options) { o.Questioner = &slowQuestioner{takes: row.takes} })
			advance(2 * time.Minute)
			found := gaps(target)
			require.NotEmpty(t, found)
			for _, gap := range found {
				assert.Equal(t, row.want, gap)
			}
		})
	}
}

// Generating a question does not delay other conversations: at one request a second, questions that take a minute delay
// no first turn. A turn begins when it is sent.
func TestQuestionDelaysNoOtherConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, target := booth(10), &server{}
		s.TargetRPS = 1
		r := run(t, target, s, func(o *Options) { o.Questioner = &slowQuestioner{takes: time.Minute} })
		advance(time.Minute)
		sent := target.requests()
		require.Len(t, sent, 10, "one turn of each conversation, the second of none")
		assertPaced(t, []time.Time{sent[0].at, sent[9].at}, 1)
		assert.Less(t, sent[9].at.Sub(sent[0].at), 10*time.Second)
		advance(time.Minute)
		for _, c := range r.Conversations() {
			if turn := c.Turn(); turn != nil && turn.Number == 2 {
				at := target.conversations()[c.ID][1].at
				assert.Equal(t, turn.Began, at, "a turn begins when it is sent")
			}
		}
	})
}

// The end of a conversation ends its question, and does not wait for it. No question is generated for a conversation
// that retires.
func TestEndOfConversationEndsItsQuestion(t *testing.T) {
	for name, row := range map[string]struct {
		after  time.Duration
		asking int
		end    func(*testRun)
		want   api.ConversationStatus
	}{
		"stopped": {time.Minute, 10, (*testRun).stop, api.ConversationCancelled},
		"drained": {time.Minute, 10, func(r *testRun) { r.Drain(); advance(0) }, api.ConversationRetired},
		"retired": {time.Minute, 10, func(r *testRun) {
			s := booth(1)
			s.StartRate = .01
			r.Set(s)
			advance(0)
		}, api.ConversationRetired},
		"drained within a turn": {2 * time.Second, 0, func(r *testRun) { r.Drain(); <-r.done }, api.ConversationRetired},
	} {
		virtual(t, name, func(t *testing.T) {
			q := &slowQuestioner{takes: time.Hour}
			r := run(t, &server{}, booth(10), func(o *Options) { o.Questioner = q })
			advance(row.after)
			require.EqualValues(t, row.asking, q.asking.Load())
			begun := time.Now()
			row.end(r)
			assert.True(t, row.asking == 0 || time.Since(begun) == 0, "at once")
			_, count := r.ended()
			assert.GreaterOrEqual(t, count[row.want], 9)
			broken := min(row.asking, count[row.want])
			assert.EqualValues(t, broken, q.broken.Load())
			assert.EqualValues(t, row.asking-broken, q.asking.Load())
		})
	}
}

// A conversation of a question set has the user's turns in their order, the target's answers, and no opening text. The
// setting of turns does not apply. Conversations in progress keep their article.
func TestQuestionSetDeterminesTheTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &server{}
		r := run(t, target, booth(10))
		scripts := map[string][]string{
			"a": {"A one?"},
			"b": {"B one?", "B two?"},
			"c": {"C 1", "C 2", "C 3", "C 4", "C 5", "C 6", "C 7"},
		}
		set := &corpus.Corpus{Name: "set"}
		for _, id := range []string{"a", "b", "c"} {
			set.Starters = append(set.Starters, corpus.Starter{ID: id, Topic: "T", Script: scripts[id]})
		}
		advance(1050 * time.Millisecond) // no conversation begins at the moment of the change
		changed := time.Now()
		r.SetCorpus(set)
		advance(10 * time.Minute)
		asked := map[string]bool{}
		for _, turns := range target.conversations() {
			last := turns[len(turns)-1]
			article := strings.HasPrefix(last.Messages[0].Text, "# ")
			assert.Equal(t, turns[0].at.Before(changed), article, "conversations that begin use the new corpus")
			if article || time.Since(turns[0].at) < 8*longest {
				continue
			}
			id := strings.ToLower(last.Messages[0].Text[:1])
			asked[id] = true
			require.Equal(t, len(scripts[id]), len(turns), "turns of %s", id)
			for i, question := range scripts[id] {
				assert.Equal(t, question, last.Messages[2*i].Text)
				if i > 0 {
					assert.Equal(t, turns[i-1].answer, last.Messages[2*i-1].Text)
				}
			}
		}
		assert.Len(t, asked, 3)
		assert.Equal(t, api.Range{Min: 1, Max: 7}, set.Turns(api.Range{Min: 5, Max: 5}))

		set.Starters = set.Starters[2:]
		const ramped = 20
		for k := range int64(ramped) {
			assert.LessOrEqual(t, newDraw(1, k, k, ramped, booth(10), set).Turns, 5, "a ramped start keeps it short")
		}
		assert.Equal(t, 7, newDraw(1, ramped, ramped, ramped, booth(10), set).Turns)
	})
}
