package trace

import (
	"errors"
	"io"
	"math"
	"time"

	"kvbooth/sidecar/api"
)

// Stream is a stream of records in the order of time, such as a [Reader]. Next returns [io.EOF] after the last one.
type Stream interface {
	Next() (*Record, error)
}

// Selection selects a part of a stream and sets its speed. The zero value selects all of it.
type Selection struct {
	// From and To limit the arrivals to a part of the trace; what arrives at From is then at 0. A turn without a time
	// of its own goes with the turn before it. To is exclusive; 0 means the end.
	From, To time.Duration
	// Share is the share of sessions that remain, with all of their turns; 0 means all. Which ones depends on the
	// session and Seed alone. A request without a session is one of its own.
	Share float64
	Seed  uint64
	// Speed divides arrivals and delays between turns; 0 means 1.
	Speed float64
}

// Limits of [Selection].Speed.
const (
	leastSpeed = .001
	mostSpeed  = 1000
)

// Check returns an *[api.FieldError] for a value that is not allowed. Its field has the prefix trace.
func (s Selection) Check() error {
	switch {
	case s.Speed != 0 && !(s.Speed >= leastSpeed && s.Speed <= mostSpeed):
		return api.Refuse("trace_speed", s.Speed, "0.001 to 1000")
	case !(s.Share >= 0 && s.Share <= 1):
		return api.Refuse("trace_sessions", s.Share, "a share above 0, up to 1")
	case s.From < 0:
		return api.Refuse("trace_from", s.From, "0s or more")
	case s.To != 0 && s.To <= s.From:
		return api.Refuse("trace_to", s.To, "more than trace_from")
	}
	return nil
}

// Of returns the selected part of a stream. It changes the records.
func (s Selection) Of(stream Stream) Stream {
	if s.Speed == 0 {
		s.Speed = 1
	}
	return &selected{s, stream}
}

type selected struct {
	Selection
	stream Stream
}

// Next implements [Stream].
func (s *selected) Next() (*Record, error) {
	for {
		record, err := s.stream.Next()
		if err != nil {
			return nil, err
		}
		if record.At < 0 && (s.From > 0 || s.To > 0) {
			return nil, api.Refuse("trace_from", s.From, "no part of a trace without times")
		}
		if s.To > 0 && record.At >= s.To {
			return nil, io.EOF // all further ones are later
		}
		if record.At >= 0 && record.At < s.From || !s.has(record) {
			continue
		}
		if record.At >= 0 {
			record.At = s.atSpeed(record.At - s.From)
		}
		for turn := record.Next; turn != nil; turn = turn.Next {
			if turn.Delay > 0 {
				turn.Delay = s.atSpeed(turn.Delay)
			}
		}
		return record, nil
	}
}

func (s *selected) atSpeed(d time.Duration) time.Duration { return time.Duration(float64(d) / s.Speed) }

// has reports whether the record's session is selected.
func (s *selected) has(r *Record) bool {
	if s.Share == 0 || s.Share == 1 {
		return true
	}
	id := r.Session
	if id == 0 {
		id = Mix(uint64(r.Line), text(r.ID))
	}
	return float64(Mix(s.Seed, id))/math.MaxUint64 < s.Share
}

// Loop returns a stream that repeats another one, which open opens from its beginning; times is the number of
// repetitions, 0 without an end. A repetition begins as long after the last arrival of the one before as its arrivals
// are apart on average. Its sessions and block hashes differ from those of all others, so that no cache has them, while
// prompts share what they share in the trace. Texts are unchanged; [Record].Repetition serves to make them differ.
func Loop(times int, open func() (Stream, error)) Stream {
	return &loop{open: open, times: times}
}

type loop struct {
	open       func() (Stream, error)
	times      int
	stream     Stream
	repetition int
	offset     time.Duration // of the current repetition
	last       time.Duration // latest arrival
	requests   int           // of the current repetition
}

// Next implements [Stream].
func (l *loop) Next() (*Record, error) {
	for {
		if l.stream == nil {
			var err error
			if l.stream, err = l.open(); err != nil {
				return nil, err
			}
		}
		record, err := l.stream.Next()
		if err == nil {
			l.requests++
			if record.At >= 0 {
				record.At += l.offset
				l.last = record.At
			}
			for turn := record; turn != nil; turn = turn.Next {
				turn.salt(l.repetition)
			}
			return record, nil
		}
		if !errors.Is(err, io.EOF) {
			return nil, err
		}
		if closer, ok := l.stream.(io.Closer); ok {
			_ = closer.Close()
		}
		l.repetition++
		if l.requests == 0 || l.repetition == l.times {
			return nil, io.EOF
		}
		gap := time.Duration(0)
		if l.requests > 1 {
			gap = (l.last - l.offset) / time.Duration(l.requests-1)
		}
		l.stream, l.offset, l.requests = nil, l.last+gap, 0
	}
}

// salt makes the session and the block hashes of a record those of a repetition.
func (r *Record) salt(repetition int) {
	r.Repetition = repetition
	if repetition == 0 {
		return
	}
	if r.Session != 0 {
		r.Session = Mix(uint64(repetition), r.Session)
	}
	salted := make([]uint64, len(r.Blocks)) // the turns of a session may share their blocks
	for i, block := range r.Blocks {
		salted[i] = Mix(uint64(repetition), block)
	}
	r.Blocks = salted
}
