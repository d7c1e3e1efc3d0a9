// Package trace reads what was asked of an inference cluster from files, as a stream: the
// request trace of NVIDIA Dynamo (DYN_REQUEST_TRACE), and traces in the form of Mooncake
// (https://github.com/kvcache-ai/Mooncake). Lines that cannot be used are told by number, field
// and value, and the rest is used.
package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"time"

	"kvbooth/sidecar/api"
)

// Form is what a line of a trace looks like.
type Form string

// The forms.
const (
	Dynamo   Form = "dynamo"   // one object with "event" a line, in the order of the requests' ends
	Mooncake Form = "mooncake" // timestamp (ms), input_length, output_length, hash_ids
)

// Record is one request.
type Record struct {
	Line         int64
	ID           string        // empty if the trace has none
	At           time.Duration // that it reached the router, since the trace's first request
	PromptTokens int           // at least 1
	OutputTokens int           // at least 0
	// Blocks are the hashes of the prompt's blocks, each standing for all before it, too: those
	// of all full blocks, and perhaps one of the rest.
	Blocks []uint64

	// What Dynamo's trace tells besides.
	Timed       bool          // FirstToken and Ended are known
	FirstToken  time.Duration // after At
	Ended       time.Duration // after At
	Cached      int           // prompt tokens that the worker found in its cache; −1 if nobody knows
	Worker      uint64        // that prefilled it; 0 if nobody knows
	BlockTokens int           // of the blocks
	moment      float64       // ms on the trace's clock
}

// Options say what a trace does not.
type Options struct {
	// BlockTokens are the tokens of a block: of a Mooncake trace, which does not say it. 0 is
	// [MooncakeBlockTokens].
	BlockTokens int
	// Disorder is how much later in the trace a request may come than others that began after it.
	// 0 is [DynamoDisorder] or [MooncakeDisorder].
	Disorder time.Duration
}

// What holds unless options say otherwise.
const (
	MooncakeBlockTokens = 512
	MooncakeDisorder    = 10 * time.Second
	DynamoDisorder      = 10 * time.Minute // lines come at the ends of the requests
)

const (
	longestLine = 64 << 20 // bytes
	mostTokens  = 100_000_000
	mostHeld    = 1 << 24 // blocks of requests that are held back to be put in order: 128 MB
	keptNotes   = 10
)

// Note is what was wrong with a line.
type Note struct {
	Line int64
	api.FieldError
}

// Error tells line, field, value and what is allowed.
func (n *Note) Error() string { return fmt.Sprintf("line %d: %s", n.Line, n.FieldError.Error()) }

// Summary is what has been read so far.
type Summary struct {
	Form        Form // of the first line that could be used; empty before
	BlockTokens int  // of it
	Lines       int64
	Requests    int64  // that could be used
	Others      int64  // lines of Dynamo about something else than a request's end
	Unused      int64  // lines that could not be used
	Notes       []Note // the first of them
	Disordered  int64  // lines that came after others of later requests, and were put back
	Cut         bool   // the trace ends within a line, or its compression does
}

// Reader reads a trace, plain or compressed by gzip. It is not safe for concurrent use.
type Reader struct {
	options Options
	source  *bufio.Reader
	summary Summary
	line    []byte

	held    records // put in order
	blocks  int     // of held
	latest  float64 // ms, the latest request that was read
	emitted float64 // ms, the latest request that was given
	began   float64 // ms, the first request that was given
	given   bool
	failed  error // of the source, or io.EOF
}

// NewReader reads from a source. The error is the source's own, an *[api.FieldError] or that of a
// file that only looks compressed.
func NewReader(source io.Reader, o Options) (*Reader, error) {
	if o.BlockTokens < 0 || o.BlockTokens > 1<<16 {
		return nil, api.Refuse("block_tokens", o.BlockTokens, "1 to 65536")
	}
	if o.Disorder < 0 {
		return nil, api.Refuse("disorder", o.Disorder, "0 or more")
	}
	r := &Reader{options: o, source: bufio.NewReaderSize(source, 1<<20)}
	if magic, _ := r.source.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(r.source)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		r.source = bufio.NewReaderSize(unzipped, 1<<20)
	}
	return r, nil
}

// Summary is what has been read so far.
func (r *Reader) Summary() Summary { return r.summary }

// Next is the next request in the order of time, [io.EOF] after the last one. Another error is
// the source's.
func (r *Reader) Next() (*Record, error) {
	for r.failed == nil && !r.ready() {
		r.read()
	}
	if len(r.held) == 0 {
		return nil, r.failed
	}
	record := heap.Pop(&r.held).(*Record)
	r.blocks -= len(record.Blocks)
	if !r.given {
		r.given, r.began = true, record.moment
	}
	r.emitted = record.moment
	record.At = time.Duration((record.moment - r.began) * float64(time.Millisecond))
	r.summary.Requests++
	return record, nil
}

// ready says whether no line that is still to come can belong before the first one held.
func (r *Reader) ready() bool {
	return len(r.held) > 0 && (r.blocks > mostHeld || r.latest-r.held[0].moment > r.disorder())
}

// disorder is in ms.
func (r *Reader) disorder() float64 {
	d := r.options.Disorder
	if d == 0 {
		d = MooncakeDisorder
		if r.summary.Form == Dynamo {
			d = DynamoDisorder
		}
	}
	return float64(d) / float64(time.Millisecond)
}

// read takes one line.
func (r *Reader) read() {
	line, err := r.nextLine()
	if err != nil {
		r.failed = err
		if errors.Is(err, io.ErrUnexpectedEOF) { // of the compression
			r.failed, r.summary.Cut = io.EOF, true
		}
	}
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	record, bad := decode(line, r.options.BlockTokens)
	switch {
	case bad == nil && record == nil:
		r.summary.Others++
		return
	case bad == nil:
		bad = r.fits(record)
	case r.failed != nil && bad.Field == notJSON:
		r.summary.Cut = true
		bad.Allowed = "a complete line: the trace ends within this one"
	}
	if bad != nil {
		r.note(bad)
		return
	}
	r.hold(record)
}

// nextLine is the next line, valid until the next call. At the end it comes with io.EOF.
func (r *Reader) nextLine() ([]byte, error) {
	r.line = r.line[:0]
	r.summary.Lines++
	for {
		part, err := r.source.ReadSlice('\n')
		if len(r.line) <= longestLine {
			r.line = append(r.line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && len(r.line) == 0 {
			r.summary.Lines--
		}
		if len(r.line) > longestLine {
			r.note(&api.FieldError{Field: "line", Value: "longer than that", Allowed: fmt.Sprintf("at most %d bytes", longestLine)})
			r.line = r.line[:0]
		}
		return r.line, err
	}
}

// fits says whether a request can be used together with those before it.
func (r *Reader) fits(record *Record) *api.FieldError {
	s := &r.summary
	if s.Form == "" {
		s.Form, s.BlockTokens = Mooncake, record.BlockTokens
		if record.Timed {
			s.Form = Dynamo
		}
	}
	if record.BlockTokens != s.BlockTokens {
		return refuse("trace_block_size", record.BlockTokens, fmt.Sprintf("%d, as in the lines before it", s.BlockTokens))
	}
	if r.given && record.moment < r.emitted {
		return refuse(timeField(record), fmt.Sprintf("%.0f", record.moment), fmt.Sprintf("%.0f or more: %.0f s earlier than a previous line is too old", r.emitted, (r.latest-record.moment)/1000))
	}
	return nil
}

func timeField(r *Record) string {
	if r.Timed {
		return "event.request.request_received_ms"
	}
	return "timestamp"
}

func refuse(field string, value any, allowed string) *api.FieldError {
	return &api.FieldError{Field: field, Value: fmt.Sprintf("%.60s", fmt.Sprint(value)), Allowed: allowed}
}

func (r *Reader) note(bad *api.FieldError) {
	r.summary.Unused++
	if len(r.summary.Notes) < keptNotes {
		r.summary.Notes = append(r.summary.Notes, Note{r.summary.Lines, *bad})
	}
}

func (r *Reader) hold(record *Record) {
	record.Line = r.summary.Lines
	if record.moment < r.latest && !record.Timed {
		r.summary.Disordered++
	}
	r.latest = max(r.latest, record.moment)
	r.blocks += len(record.Blocks)
	heap.Push(&r.held, record)
}

// records are a heap, the earliest first, and of one moment by line.
type records []*Record

// Len, Less, Swap, Push and Pop implement [heap.Interface].
func (h records) Len() int { return len(h) }

// Less is the order of time, then of lines.
func (h records) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].moment, h[j].moment), cmp.Compare(h[i].Line, h[j].Line)) < 0
}

// Swap swaps two.
func (h records) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push adds one.
func (h *records) Push(x any) { *h = append(*h, x.(*Record)) }

// Pop takes the last one.
func (h *records) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = nil
	*h = (*h)[:len(*h)-1]
	return last
}
