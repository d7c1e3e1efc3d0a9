package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"sync"
	"time"

	"kvbooth/sidecar/api"
)

// maxLine is the largest size of a line in bytes.
const maxLine = 16 << 20

// Player plays a recording in a loop. It is safe for concurrent use.
type Player struct {
	recordedAt time.Time     // of the first snapshot
	length     time.Duration // of one round
	snapshots  []snapshot
	answers    map[string]json.RawMessage
	histories  map[string]api.History // by key
	damage     string
	now        func() time.Time
	started    time.Time
}

type snapshot struct {
	at   time.Duration
	text json.RawMessage
}

// Open reads a recording and starts to play it. Lines that cannot be read are left out, as at the end of a recording
// whose recorder was killed; [Player.Damage] names them. A recording without a whole snapshot gives an [api.FieldError]
// of the field file.
func Open(r io.Reader, name string) (*Player, error) {
	return open(r, name, time.Now)
}

func open(r io.Reader, name string, now func() time.Time) (*Player, error) {
	p := &Player{answers: map[string]json.RawMessage{}, histories: map[string]api.History{}, now: now, started: now()}
	if err := p.read(r); err != nil {
		return nil, api.Refuse("file", name, fmt.Sprintf("a recording of loadgen record; %v", err))
	}
	return p, nil
}

func (p *Player) read(r io.Reader) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, maxLine)
	var first error // of the lines that cannot be read
	n, unread := 0, 0
	for lines.Scan() {
		n++
		var l line
		err := json.Unmarshal(api.PresentNames(lines.Bytes()), &l)
		if err == nil && n == 1 && (l.Header == nil || l.Header.Format != format) {
			return fmt.Errorf("line 1 names no format that this version reads (%d)", format)
		}
		if err == nil {
			err = p.add(l)
		}
		if err != nil {
			first = cmp.Or(first, fmt.Errorf("line %d: %w", n, cmp.Or(lines.Err(), err))) // Err names a cut file
			unread++
		}
	}
	if err := lines.Err(); err != nil {
		first = cmp.Or(first, fmt.Errorf("after line %d: %w", n, err))
	}
	switch {
	case len(p.snapshots) == 0:
		return cmp.Or(first, errors.New("it has no snapshots"))
	case lines.Err() != nil:
		p.damage = fmt.Sprintf("%d lines are whole; what follows is missing, such as the conversations, which are written "+
			"at the end of a recording (%v)", n-unread, first)
	case first != nil:
		p.damage = fmt.Sprintf("%d of %d lines cannot be read (%v)", unread, n, first)
	}
	p.length = p.snapshots[len(p.snapshots)-1].at + time.Second
	return nil
}

// Damage describes what of the recording cannot be played; empty: it is whole.
func (p *Player) Damage() string { return p.damage }

func (p *Player) add(l line) error {
	switch {
	case l.Snapshot != nil:
		var s api.Snapshot
		if err := json.Unmarshal(l.Snapshot, &s); err != nil {
			return err
		}
		if len(p.snapshots) == 0 {
			p.recordedAt = s.Time
		}
		p.snapshots = append(p.snapshots, snapshot{s.Time.Sub(p.recordedAt), l.Snapshot})
	case l.Path != "":
		p.answers[l.Path] = l.Answer
		if path, _, _ := bytes.Cut([]byte(l.Path), []byte("?")); string(path) == "/history" {
			var h api.History
			if err := json.Unmarshal(l.Answer, &h); err != nil {
				return err
			}
			p.histories[l.Path] = h
		}
	}
	return nil
}

// RecordedAt returns the time of the recording's first snapshot.
func (p *Player) RecordedAt() time.Time { return p.recordedAt }

// Length returns the duration of one round.
func (p *Player) Length() time.Duration { return p.length }

// current returns the present snapshot, and the shift of its times, which keeps ages on screens as they were in the
// run.
func (p *Player) current() (now snapshot, shift time.Duration) {
	played := p.now().Sub(p.started)
	position := played % p.length
	for _, s := range p.snapshots {
		if s.at > position {
			break
		}
		now = s
	}
	return now, p.started.Add(played - position).Sub(p.recordedAt)
}

// instant matches a time in JSON.
var instant = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"`)

// before is the time before the recording that belongs to the run. Older times, such as a baseline's, are not shifted.
const before = 24 * time.Hour

// moved shifts the times of a text that belong to the run.
func (p *Player) moved(text []byte, shift time.Duration) []byte {
	return instant.ReplaceAllFunc(text, func(quoted []byte) []byte {
		at, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(quoted))
		if err != nil || at.Before(p.recordedAt.Add(-before)) {
			return quoted
		}
		return []byte(at.Add(shift).Format(`"` + time.RFC3339Nano + `"`))
	})
}

// SnapshotJSON returns the present snapshot, with [api.Replay].
func (p *Player) SnapshotJSON() ([]byte, error) {
	now, shift := p.current()
	var s api.Snapshot
	if err := json.Unmarshal(p.moved(now.text, shift), &s); err != nil {
		return nil, err
	}
	s.Replay = &api.Replay{RecordedAt: p.recordedAt, Position: now.at.Seconds(), Length: p.length.Seconds()}
	return json.Marshal(s)
}

// StatusJSON returns the status of the recorded load generator.
func (p *Player) StatusJSON() ([]byte, error) { return p.Answer("/status", nil) }

// Subscribe sends a snapshot at once and then one a second.
func (p *Player) Subscribe() (frames <-chan []byte, unsubscribe func()) {
	out, done := make(chan []byte, 1), make(chan struct{})
	go func() {
		defer close(out)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			text, err := p.SnapshotJSON()
			if err != nil { // cannot happen: Open has read each snapshot
				return
			}
			select {
			case out <- text:
			default: // a slow reader loses snapshots
			}
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
	return out, sync.OnceFunc(func() { close(done) })
}

// Answer returns the recorded answer to GET at a path. An [api.ErrNotFound] means that it is not part
// of the recording.
func (p *Player) Answer(path string, query url.Values) ([]byte, error) {
	name := key(path, query)
	answer, ok := p.answers[name]
	if !ok || query.Get("baseline")+query.Get("status")+query.Get("topic")+query.Get("cursor") != "" {
		return nil, fmt.Errorf("%w: it is not part of this recording", api.ErrNotFound)
	}
	history, ok := p.histories[name]
	if !ok {
		return answer, nil
	}
	now, shift := p.current()
	shown := api.History{}
	for _, point := range history.Points {
		if !point.Time.After(p.recordedAt.Add(now.at)) {
			point.Time = point.Time.Add(shift)
			shown.Points = append(shown.Points, point)
		}
	}
	return json.Marshal(shown)
}

// Conversation returns one of the newest conversations at the end of the recording.
func (p *Player) Conversation(_ context.Context, id string) (c api.Conversation, err error) {
	text, err := p.Answer("/conversations/"+url.PathEscape(id), nil)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	return c, err
}

// Ready returns nil.
func (*Player) Ready() error { return nil }
