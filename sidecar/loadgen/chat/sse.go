package chat

import (
	"bytes"
	"errors"
)

// maxEvent bounds one line and one event of a stream. A chunk with logprobs or
// a long tool call may well exceed 64 KiB; nothing honest exceeds this.
const maxEvent = 16 << 20

var errEventTooLong = errors.New("an event of the stream is longer than 16 MiB")

// sseReader cuts a stream of server-sent events into events, after the HTML
// standard's rules: LF, CRLF and CR end a line, a line that starts with a colon
// is a comment, the blank after a field's colon is optional, several data
// lines are joined by LF, a blank line ends an event. It is fed with whatever
// the connection gave, and keeps only what is not yet complete.
type sseReader struct {
	event   func(name string, data []byte) // data is valid during the call only
	line    []byte                         // a line that began in an earlier feed
	data    []byte                         // data lines of the event so far
	hasData bool
	name    string
	skipLF  bool   // the last line ended in CR at the end of a feed
	stray   []byte // the beginning of the first line that is no field of an event
}

// feed takes the next bytes. The only error is an event over maxEvent.
func (r *sseReader) feed(p []byte) error {
	if r.skipLF && len(p) > 0 {
		r.skipLF = false
		if p[0] == '\n' {
			p = p[1:]
		}
	}
	for len(p) > 0 {
		end, width := lineEnd(p)
		if end < 0 {
			if len(r.line)+len(p) > maxEvent {
				return errEventTooLong
			}
			r.line = append(r.line, p...)
			return nil
		}
		if width == 1 && p[end] == '\r' && end == len(p)-1 {
			r.skipLF = true // its LF may come with the next feed
		}
		line := p[:end]
		if len(r.line) > 0 {
			r.line = append(r.line, line...)
			line = r.line
		}
		p = p[end+width:]
		if err := r.take(line); err != nil {
			return err
		}
		r.line = r.line[:0]
	}
	return nil
}

// lineEnd finds the first end of a line and says how many bytes it has; −1 if there is none.
func lineEnd(p []byte) (end, width int) {
	lf := bytes.IndexByte(p, '\n')
	head := p
	if lf >= 0 {
		head = p[:lf]
	}
	if cr := bytes.IndexByte(head, '\r'); cr >= 0 {
		if cr+1 == lf {
			return cr, 2
		}
		return cr, 1
	}
	return lf, 1
}

// finish dispatches an event that the stream's end left without its blank line.
func (r *sseReader) finish() error {
	if len(r.line) > 0 {
		line := r.line
		r.line = nil
		if err := r.take(line); err != nil {
			return err
		}
	}
	r.dispatch()
	return nil
}

func (r *sseReader) take(line []byte) error {
	switch {
	case len(line) == 0:
		r.dispatch()
	case line[0] == ':':
	default:
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			return r.takeData(value)
		case "event":
			r.name = string(value)
		case "id", "retry":
		default:
			if r.stray == nil {
				r.stray = bytes.Clone(line[:min(len(line), 1024)])
			}
		}
	}
	return nil
}

func (r *sseReader) takeData(value []byte) error {
	if len(r.data)+len(value) > maxEvent {
		return errEventTooLong
	}
	if r.hasData {
		r.data = append(r.data, '\n')
	}
	r.hasData = true
	r.data = append(r.data, value...)
	return nil
}

// dispatch hands the event over. An event with neither data nor a name is none.
func (r *sseReader) dispatch() {
	if r.hasData || r.name != "" {
		r.event(r.name, r.data)
	}
	r.data, r.hasData, r.name = r.data[:0], false, ""
}
