package chat

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
)

const (
	// maxEvent limits one event of a stream. A chunk with logprobs or a long tool call may exceed 64 KiB, but not this.
	maxEvent = 1 << 20
	// maxUnfinished limits the event buffers of all streams in the process.
	maxUnfinished = 64 << 20
	// alwaysHeld is the buffer that each stream may use beyond maxUnfinished, and keeps from event to event, so that
	// streams with normal events continue while others use up the limit.
	alwaysHeld = 32 << 10
	// maxUnread limits the kept data of an event named [promptEvent], whose list is a comment, and any event's name.
	maxUnread = 64
	// maxNonData limits the kept comments of an event, and its lines that are not fields.
	maxNonData = 4 << 10
)

var (
	errEventTooLong = errors.New("an event of the stream is longer than 1 MiB")
	errUnfinished   = errors.New("the unfinished events of all streams together are longer than 64 MiB")
)

// unfinished is the total size of the buffers that [maxUnfinished] limits.
var unfinished atomic.Int64

// sseReader splits a stream into server-sent events by the HTML standard's rules: LF, CRLF and CR end a line, a line
// that starts with a colon is a comment, the blank after a field's colon is optional, several data lines are joined by
// LF, a blank line ends an event. [sseReader.feed] accepts pieces of any size; only an incomplete event is kept.
//
// Two forms outside the standard are read as errors: an event named error whose message is a comment, as sent by
// Dynamo, and a field named error, as sent by llama.cpp.
type sseReader struct {
	event   func(name string, data []byte) // data is valid during the call only
	text    func(lines []byte)             // receives the lines of a block that are not fields; valid during the call only
	held    int                            // capacity of line and data
	line    []byte                         // a line that began in an earlier feed
	data    []byte                         // data lines of the event so far
	hasData bool
	begun   bool   // the first line, which may start with a byte order mark, was read
	name    string // at most maxUnread bytes
	skipped bool   // the event is longer than the limit of its name
	skipLF  bool   // the last line ended in CR at the end of a feed
	comment []byte // the event's comments, at most maxNonData
	stray   []byte // the event's lines that are not fields, at most maxNonData

	// prompt receives the comment line of an event named [promptEvent] in pieces; nil ignores it.
	prompt  func(piece []byte)
	passing bool // the incomplete line goes to prompt
}

// feed parses the next bytes. The errors are [errEventTooLong] and [errUnfinished].
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
			return r.begin(p)
		}
		if width == 1 && p[end] == '\r' && end == len(p)-1 {
			r.skipLF = true // its LF may come with the next feed
		}
		line := p[:end]
		if r.passing {
			r.prompt(line)
			r.passing, p = false, p[end+width:]
			continue
		}
		if len(r.line) > 0 {
			if err := r.begin(line); err != nil {
				return err
			}
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

// begin keeps a piece of an incomplete line. Of an ignored line it keeps only enough to detect that it is too long.
func (r *sseReader) begin(p []byte) error {
	if r.passing = r.passing || len(r.line) == 0 && r.isPrompt(p); r.passing {
		r.prompt(bytes.TrimPrefix(p, colon))
		return nil
	}
	if most := limit(r.name); most < maxEvent {
		p = p[:min(len(p), most+maxUnread-len(r.line))]
	}
	if len(r.data)+len(r.line)+len(p) > maxEvent {
		return errEventTooLong
	}
	return r.keep(&r.line, p)
}

// isPrompt reports whether a line with this beginning contains the ids of the prompt.
func (r *sseReader) isPrompt(line []byte) bool {
	return r.prompt != nil && r.name == promptEvent && bytes.HasPrefix(line, colon)
}

var colon = []byte(":")

// keep appends p to one of the two buffers.
func (r *sseReader) keep(buf *[]byte, p []byte) error {
	if n := len(*buf) + len(p); n > cap(*buf) {
		size := max(n, min(2*cap(*buf), maxEvent))
		more := size - cap(*buf)
		if unfinished.Add(int64(more)) > maxUnfinished && r.held+more > alwaysHeld {
			unfinished.Add(int64(-more))
			return errUnfinished
		}
		r.held += more
		*buf = append(make([]byte, 0, size), *buf...)
	}
	*buf = append(*buf, p...)
	return nil
}

// release frees the buffers. The reader can be used again.
func (r *sseReader) release() {
	unfinished.Add(int64(-r.held))
	r.held, r.line, r.data = 0, nil, nil
}

// limit returns the maximum bytes of data of an event with this name. A longer event is an error if the limit is
// [maxEvent], and is skipped otherwise.
func limit(name string) int {
	switch {
	case name == "", name == "message", isError(name):
		return maxEvent
	case name == promptEvent:
		return maxUnread
	}
	return alwaysHeld
}

// errorEvent is the name of an event that reports an error.
const errorEvent = "error"

// isError reports whether the name of an event is that of an error, such as "Error", "stream_error", "exception" or
// "response.failed".
func isError(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, errorEvent) || strings.Contains(name, "exception") || strings.Contains(name, "fail")
}

var byteOrderMark = []byte("\uFEFF")

// lineEnd returns the index and width of the first line end; the index is −1 if there is none.
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

// finish dispatches the last event of a stream that ended without a blank line.
func (r *sseReader) finish() error {
	r.passing = false
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
	if !r.begun {
		r.begun, line = true, bytes.TrimPrefix(line, byteOrderMark)
	}
	switch {
	case len(line) == 0:
		r.dispatch()
	case r.isPrompt(line):
		r.prompt(line[1:])
	case line[0] == ':':
		r.comment = appendLine(r.comment, line[1:])
	default:
		name, value, _ := bytes.Cut(line, colon)
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			return r.takeData(value)
		case "event":
			r.name = string(value[:min(len(value), maxUnread)])
		case "id", "retry":
		default:
			if strings.EqualFold(string(name), errorEvent) {
				r.name = errorEvent
				return r.takeData(value)
			}
			r.stray = appendLine(r.stray, line)
		}
	}
	return nil
}

// appendLine appends a line, up to [maxNonData] bytes in total.
func appendLine(to, line []byte) []byte {
	if len(to) > 0 && len(to) < maxNonData {
		to = append(to, '\n')
	}
	return append(to, line[:max(0, min(len(line), maxNonData-len(to)))]...)
}

func (r *sseReader) takeData(value []byte) error {
	n := len(r.data) + len(value)
	most := limit(r.name)
	if n > most && most == maxEvent {
		return errEventTooLong
	}
	if r.skipped = r.skipped || n > most; r.skipped {
		r.data = r.data[:0]
		return nil
	}
	if r.hasData {
		if err := r.keep(&r.data, lineFeed); err != nil {
			return err
		}
	}
	r.hasData = true
	return r.keep(&r.data, value)
}

var lineFeed = []byte("\n")

// dispatch calls the event callback, unless the event has neither data nor a name. The comment of an error without data
// is its data.
func (r *sseReader) dispatch() {
	if len(r.stray) > 0 && r.text != nil {
		r.text(r.stray)
	}
	switch {
	case r.skipped:
	case !r.hasData && isError(r.name):
		r.event(r.name, bytes.TrimSpace(r.comment))
	case r.hasData || r.name != "":
		r.event(r.name, r.data)
	}
	r.data, r.hasData, r.name, r.skipped = r.data[:0], false, "", false
	r.comment, r.stray = r.comment[:0], r.stray[:0]
	if r.held > alwaysHeld {
		r.release()
	}
}
