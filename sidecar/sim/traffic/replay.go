package traffic

import (
	"fmt"
	"hash/crc32"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/trace"
)

// Replay is the traffic of a trace. Its sessions are the conversations, in the order of their first requests; a request
// without a session is one of its own.
type Replay struct {
	sessions []Conversation
	turns    int
	length   time.Duration // of the trace with the gap after it, without which a repetition would begin at once
	loops    bool
	sum      uint64
	contents *trace.Contents
}

var _ Source = (*Replay)(nil)

// NewReplay reads a stream to its end. With loops, the traffic repeats the trace without an end; each repetition has
// prompts of its own. The errors are those of the stream, and *[api.FieldError] for requests without a prompt of known
// length.
func NewReplay(stream trace.Stream, loops bool) (*Replay, error) {
	b := replayBuilder{Replay: &Replay{loops: loops}, stream: stream, sessions: map[uint64]*replaySession{}}
	var err error
	if b.contents, err = trace.Describe(&b, trace.CacheSize{}); err != nil {
		return nil, err
	}
	return b.finish(), nil
}

// Turns returns the number of requests of the trace.
func (r *Replay) Turns() int { return r.turns }

// Conversations returns the number of conversations of the trace.
func (r *Replay) Conversations() int { return len(r.sessions) }

// HitRatio returns the share of the prompts' tokens that one unlimited cache would have in the order of the trace; nil
// where prompts are not known.
func (r *Replay) HitRatio() *float64 {
	if r.contents.Hits == nil {
		return nil
	}
	return &r.contents.Hits.Rate
}

// Sum returns a checksum of the traffic.
func (r *Replay) Sum() uint32 { return uint32(r.sum) }

// Rate returns the mean number of conversations that begin in a second; 0 where the trace does not say when they begin.
func (r *Replay) Rate() float64 {
	if r.length == 0 {
		return 0
	}
	return float64(len(r.sessions)) / r.length.Seconds()
}

// Loops reports whether the traffic has no end.
func (r *Replay) Loops() bool { return r.loops }

// At returns when conversation k begins, since the beginning of the traffic; ok is false after the last one.
func (r *Replay) At(k int64) (at time.Duration, ok bool) {
	n := int64(len(r.sessions))
	if k >= n && !r.loops || n == 0 {
		return 0, false
	}
	return r.sessions[k%n].At + time.Duration(k/n)*r.length, true
}

// Conversation implements [Source].
func (r *Replay) Conversation(k int64) (c Conversation, ok bool) {
	at, ok := r.At(k)
	if !ok {
		return c, false
	}
	n := int64(len(r.sessions))
	c = r.sessions[k%n]
	if c.At >= 0 {
		c.At = at
	}
	if repetition := k / n; repetition > 0 {
		c.Turns = repeated(c.Turns, uint64(repetition))
	}
	return c, true
}

// repeated returns the turns with other prompts, which share what the given ones share.
func repeated(turns []Turn, repetition uint64) []Turn {
	all := make([]Turn, len(turns))
	for i, t := range turns {
		messages := make([]Message, len(t.Messages))
		for j, m := range t.Messages {
			segments := make([]Segment, len(m.Segments))
			for s, segment := range m.Segments {
				segments[s] = Segment{trace.Mix(repetition, segment.ID), segment.Tokens}
			}
			if messages[j] = (Message{m.Role, m.Text, segments}); j == 0 && m.Text != "" && (i == 0 || t.Whole) {
				messages[j].Text = fmt.Sprintf("Repetition %d.\n%s", repetition, m.Text)
			}
		}
		all[i], all[i].Messages = t, messages
	}
	return all
}

// replayBuilder makes a replay of records.
type replayBuilder struct {
	*Replay
	stream   trace.Stream
	sessions map[uint64]*replaySession
	order    []*replaySession
}

// replaySession is a conversation with what its next turn needs.
type replaySession struct {
	Conversation
	prompt []Segment     // of the latest turn
	full   int           // number of the segments that are full blocks
	ended  time.Duration // end of the latest turn since the trace's beginning; negative: unknown
}

// Next implements [trace.Stream] for the records that it adds.
func (b *replayBuilder) Next() (*trace.Record, error) {
	record, err := b.stream.Next()
	if err == nil {
		err = b.add(record)
	}
	return record, err
}

// add adds a request, and those that follow it.
func (b *replayBuilder) add(r *trace.Record) error {
	s := b.sessions[r.Session]
	if s == nil || r.Session == 0 {
		s = &replaySession{Conversation: Conversation{At: r.At}, ended: -1}
		b.order = append(b.order, s)
		b.sessions[r.Session] = s
	}
	for turn, follows := r, false; turn != nil; turn, follows = turn.Next, true {
		t := Turn{Whole: len(s.Turns) > 0, Think: -1, MaxTokens: max(turn.OutputTokens, 0), Exact: turn.OutputTokens > 0}
		switch at := turn.At - s.At; {
		case follows:
			t.Think = turn.Delay
		case len(s.Turns) == 0 || turn.At < 0:
		case s.ended >= 0:
			t.Think = max(0, turn.At-s.ended)
		default:
			t.At = max(1, at)
		}
		if s.ended = -1; turn.At >= 0 && turn.Ended >= 0 {
			s.ended = turn.At + turn.Ended
		}
		if turn.OutputTokens == 0 {
			t.MaxTokens = 1
		}
		if turn.Messages != nil {
			t.Whole = t.Whole && !follows
			for _, m := range turn.Messages {
				t.Messages = append(t.Messages, Message{Role: m.Role, Text: m.Text})
			}
		} else if err := s.prompts(&t, turn); err != nil {
			return err
		}
		s.Turns = append(s.Turns, t)
		b.turns++
	}
	return nil
}

// prompts sets the message of a turn whose prompt has no texts.
func (s *replaySession) prompts(t *Turn, r *trace.Record) error {
	if r.PromptTokens < 1 {
		return api.Refuse("trace", fmt.Sprintf("a request without a prompt (line %d)", r.Line),
			"a trace whose requests have texts, block hashes or lengths")
	}
	prompt := make([]Segment, 0, len(r.Blocks)+1)
	left := r.PromptTokens
	for _, id := range r.Blocks {
		n := min(r.BlockTokens, left)
		prompt = append(prompt, Segment{id, n})
		left -= n
	}
	full := len(prompt)
	if left > 0 {
		prompt = append(prompt, Segment{trace.Mix(r.Session, uint64(r.Line), uint64(len(s.Turns))), left})
	}
	if t.Whole {
		for t.Keep < min(full, s.full, len(prompt)-1) && prompt[t.Keep] == s.prompt[t.Keep] {
			t.Keep++
		}
		if before := s.prompt[t.Keep:]; t.Keep == s.full && t.Keep < full && len(before) == 1 {
			s.last().ID = prompt[t.Keep].ID // the rest of the prompt before begins the block that follows
		}
	}
	t.Messages = []Message{{Role: trace.RoleUser, Segments: prompt[t.Keep:len(prompt):len(prompt)]}}
	s.prompt, s.full = prompt, full
	return nil
}

// last returns the last segment of the latest turn.
func (s *replaySession) last() *Segment {
	segments := s.Turns[len(s.Turns)-1].Messages[0].Segments
	return &segments[len(segments)-1]
}

// finish returns the replay.
func (b *replayBuilder) finish() *Replay {
	r := b.Replay
	n := len(b.order)
	if n == 0 {
		return r
	}
	first, last := b.order[0].At, b.order[n-1].At
	if span := last - first; first >= 0 && span > 0 {
		r.length = last + span/time.Duration(n-1)
	}
	for _, s := range b.order {
		if r.length == 0 && n > 1 {
			s.At = -1 // sessions that all begin at once come as the load decides
		}
		r.sum = s.mix(r.sum)
		r.sessions = append(r.sessions, s.Conversation)
	}
	return r
}

// mix adds a conversation to a checksum.
func (c *Conversation) mix(sum uint64) uint64 {
	sum = trace.Mix(sum, uint64(c.At), uint64(len(c.Turns)))
	for _, t := range c.Turns {
		sum = trace.Mix(sum, uint64(t.Keep), uint64(t.MaxTokens), uint64(t.Think), uint64(t.At))
		for _, m := range t.Messages {
			sum = trace.Mix(sum, uint64(crc32.ChecksumIEEE([]byte(m.Role+m.Text))))
			for _, s := range m.Segments {
				sum = trace.Mix(sum, s.ID, uint64(s.Tokens))
			}
		}
	}
	return sum
}
