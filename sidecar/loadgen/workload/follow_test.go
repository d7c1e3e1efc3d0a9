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

// thinker is a questioner that takes its time, and counts.
type thinker struct {
	corpus.BuiltinQuestioner
	takes          time.Duration
	asking, broken atomic.Int64
}

func (q *thinker) Follow(ctx context.Context, r *rand.Rand, topic string, asked []string, answer string) string {
	q.asking.Add(1)
	defer q.asking.Add(-1)
	if !sleep(ctx, nil, q.takes) {
		q.broken.Add(1)
	}
	return q.BuiltinQuestioner.Follow(ctx, r, topic, asked, answer)
}

// gaps are the times between an answer's end and the next turn of its conversation.
func gaps(target *server) (all []time.Duration) {
	for _, turns := range target.conversations() {
		for i := 1; i < len(turns); i++ {
			all = append(all, turns[i].at.Sub(turns[i-1].ended))
		}
	}
	return all
}

// A question is thought of from the answer's end on, together with the think
// time; the slower of the two decides when the turn is sent.
func TestQuestionTakesItsTime(t *testing.T) {
	for name, row := range map[string]struct{ takes, think, want time.Duration }{
		"no time at all":            {0, 0, 0},
		"longer than the user does": {5 * time.Second, 2 * time.Second, 5 * time.Second},
		"shorter":                   {2 * time.Second, 5 * time.Second, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, target := booth(10), &server{}
				s.ThinkTime = row.think
				run(t, target, s, func(o *Options) { o.Questioner = &thinker{takes: row.takes} })
				after(2 * time.Minute)
				found := gaps(target)
				require.NotEmpty(t, found)
				for _, gap := range found {
					assert.Equal(t, row.want, gap)
				}
			})
		})
	}
}

// Nobody else waits while a question is thought of: at one request a second,
// questions of a minute hold up no first turn of another conversation, and what
// the server sees of a turn begins when it is sent.
func TestQuestionHoldsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, target := booth(10), &server{}
		s.TargetRPS = 1
		r := run(t, target, s, func(o *Options) { o.Questioner = &thinker{takes: time.Minute} })
		after(time.Minute)
		sent := target.requests()
		require.Len(t, sent, 10, "one turn of each conversation, the second of none")
		assertPaced(t, []time.Time{sent[0].at, sent[9].at}, 1)
		assert.Less(t, sent[9].at.Sub(sent[0].at), 10*time.Second)
		after(time.Minute)
		for _, c := range r.Conversations() {
			if turn := c.Turn(); turn != nil && turn.Number == 2 {
				at := target.conversations()[c.ID][1].at
				assert.Equal(t, turn.Began, at, "a turn begins when it is sent")
			}
		}
	})
}

// Whatever ends a conversation ends its question, and nothing waits for it.
func TestQuestionIsGivenUp(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(*rig)
		want api.ConversationStatus
	}{
		"stopped": {(*rig).stop, api.ConversationCancelled},
		"drained": {func(r *rig) { r.Drain(); after(0) }, api.ConversationRetired},
		"retired": {func(r *rig) { s := booth(1); s.StartRate = .01; r.Set(s); after(0) }, api.ConversationRetired},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &thinker{takes: time.Hour}
				r := run(t, &server{}, booth(10), func(o *Options) { o.Questioner = q })
				after(time.Minute)
				require.EqualValues(t, 10, q.asking.Load())
				begun := time.Now()
				row.end(r)
				assert.Equal(t, begun, time.Now(), "at once")
				_, count := r.ended()
				assert.GreaterOrEqual(t, count[row.want], 9)
				assert.EqualValues(t, count[row.want], q.broken.Load())
				assert.EqualValues(t, 10-count[row.want], q.asking.Load())
			})
		})
	}
}

// No question is asked for a conversation that retires anyway.
func TestNoQuestionForARetiringConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &thinker{takes: time.Hour}
		r := run(t, &server{}, booth(10), func(o *Options) { o.Questioner = q })
		after(2 * time.Second)
		r.Drain()
		after(longest)
		assert.True(t, r.over())
		assert.Zero(t, q.broken.Load())
	})
}

// A new corpus is for conversations that begin; the others keep their texts.
// A question set's conversation has the user's turns in their order and the target's answers, whatever the settings say of
// turns, and no opening text.
func TestQuestionSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &server{}
		r := run(t, target, booth(10))
		scripts := map[string][]string{"a": {"A one?"}, "b": {"B one?", "B two?"}, "c": {"C 1", "C 2", "C 3", "C 4", "C 5", "C 6", "C 7"}}
		set := &corpus.Corpus{Name: "set"}
		for _, id := range []string{"a", "b", "c"} {
			set.Starters = append(set.Starters, corpus.Starter{ID: id, Topic: "T", Script: scripts[id]})
		}
		after(1050 * time.Millisecond) // no conversation begins at the moment of the change
		changed := time.Now()
		r.SetCorpus(set)
		after(10 * time.Minute)
		asked := map[string]bool{}
		for _, turns := range target.conversations() {
			last := turns[len(turns)-1]
			if turns[0].at.Before(changed) || len(last.Messages) < 1 || time.Since(turns[0].at) < 8*longest {
				continue
			}
			id := strings.ToLower(last.Messages[0].Content[:1])
			asked[id] = true
			require.Equal(t, len(scripts[id]), len(turns), "turns of %s", id)
			for i, question := range scripts[id] {
				assert.Equal(t, question, last.Messages[2*i].Content)
				if i > 0 {
					assert.Equal(t, turns[i-1].answer, last.Messages[2*i-1].Content)
				}
			}
		}
		assert.Len(t, asked, 3)
		assert.Equal(t, api.Range{Min: 1, Max: 7}, set.Turns(api.Range{Min: 5, Max: 5}))
	})
}

func TestSetCorpus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &server{}
		r := run(t, target, booth(10))
		after(5 * time.Second)
		changed := time.Now()
		r.SetCorpus(&corpus.Corpus{Name: "one", Starters: []corpus.Starter{{ID: "one", Topic: "One", Text: "# One\n\nThe only text."}}})
		after(3 * time.Minute)
		for _, turns := range target.conversations() {
			first := turns[0].Messages[0].Content
			if turns[0].at.Before(changed) {
				assert.NotContains(t, first, "The only text.")
			} else {
				assert.Contains(t, first, "# One\n\nThe only text.\n\n")
			}
			for _, turn := range turns {
				assert.Equal(t, first, turn.Messages[0].Content)
			}
		}
	})
}
