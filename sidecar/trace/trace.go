// Package trace reads recorded traffic from files, as a stream of records of one type. The form of a file is
// recognized by its content:
//
//   - the request trace of NVIDIA Dynamo (DYN_REQUEST_TRACE)
//   - Mooncake's (https://github.com/kvcache-ai/Mooncake), also with session_id and delay as AIPerf writes it, where a
//     line has only what a turn adds
//   - Bailian's, with chat_id and parent_chat_id, in which each line has a whole prompt
//   - WEKA's, in which a line has all requests of a session
//   - BurstGPT's and Azure's, which are CSV files with times and lengths
//   - datasets of texts: ShareGPT, lines or lists of messages, prompts of vLLM and AIPerf, MT-Bench
//
// What a form does not contain is unknown in its records, not zero. Unusable lines are reported by number, field and
// value, and skipped, or end the reading. [Describe] summarizes a stream, [Selection] and [Loop] change one.
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
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"kvbooth/sidecar/api"
)

// Form is the form of a trace's lines.
type Form string

// The forms.
const (
	Dynamo   Form = "dynamo"   // one event per line, in the order of the requests' ends
	Mooncake Form = "mooncake" // timestamp, input_length, output_length, hash_ids
	Bailian  Form = "bailian"  // Mooncake's with chat_id and parent_chat_id
	Weka     Form = "weka"     // one session per line, with requests
	BurstGPT Form = "burstgpt" // CSV with Request tokens and Response tokens
	Azure    Form = "azure"    // CSV with ContextTokens and GeneratedTokens
	ShareGPT Form = "sharegpt" // objects with conversations
	Messages Form = "messages" // objects with messages, as OpenAI's API has them
	Prompts  Form = "prompts"  // objects with prompts or turns, as vLLM, AIPerf and MT-Bench have them
)

// Record is a request.
type Record struct {
	Line  int64
	ID    string // empty if the trace has none
	Model string // model or adapter; empty if unknown
	// At is the arrival at the router since the trace's first request. It is negative if unknown.
	At           time.Duration
	PromptTokens int // at least 1, or -1 if unknown
	OutputTokens int // at least 0, or -1 if unknown
	// Blocks are the hashes of the prompt's blocks, each of which covers all blocks before it: those of all full
	// blocks, and possibly one of the rest. BlockTokens is 0 if they are unknown.
	Blocks      []uint64
	BlockTokens int
	// Computed are the hashes of the full blocks of prompt and answer that the engine computes; nil if unknown.
	Computed   []uint64
	Session    uint64 // 0 if the trace has none
	Turn       int    // number of the turn in its session, from 1; 0 without a session
	Repetition int    // number of the repetition of the trace, from 0, see [Loop]

	// Messages are what the turn adds to the texts of its session, without the answers to earlier turns, or the whole
	// prompt of a request that is not the Next of another. They are nil if the trace has no texts.
	Messages []Message
	Answer   string // recorded answer; empty if unknown

	// Next is the session's next turn, which starts Delay after the end of this one; nil if there is none, or if its
	// time is known. [Reader.Next] does not return it, and its At is 0.
	Next  *Record
	Delay time.Duration // from the end of the previous turn; negative if unknown

	// Further values of Dynamo's trace. -1 means unknown. BurstGPT has Ended, too.
	FirstToken time.Duration // after At
	Ended      time.Duration // after At
	Cached     int           // prompt tokens in the worker's cache
	Worker     uint64        // worker that prefilled the prompt; 0 means unknown

	form    Form
	moment  float64 // ms on the trace's clock
	untimed bool    // it has no moment
	follows bool    // it is the Next of another record
	given   bool    // it was returned by Reader.Next
	whole   bool    // its line has the whole prompt
}

// newRecord returns a record without known values.
func newRecord(form Form) *Record {
	return &Record{
		form: form, PromptTokens: -1, OutputTokens: -1, Cached: -1, FirstToken: -1, Ended: -1, Delay: -1,
	}
}

// Names in [Missing] of values that a replay depends on.
const (
	LacksTime   = "times"
	LacksDelay  = "delays between turns"
	LacksBlocks = "block hashes"
	LacksInput  = "input tokens"
	LacksOutput = "output tokens"
)

// Require returns an error for a turn, of the record and those that follow it, that lacks one of the named values. Its
// field is the given one.
func (r *Record) Require(field string, names ...string) error {
	for turn := r; turn != nil; turn = turn.Next {
		for _, name := range turn.lacks() {
			if slices.Contains(names, name) {
				return refuse(field, fmt.Sprintf("one without %s (line %d)", name, turn.Line),
					"a trace with "+strings.Join(names, ", "))
			}
		}
	}
	return nil
}

// lacks returns the names of the record's unknown values.
func (r *Record) lacks() (names []string) {
	for _, f := range []struct {
		name    string
		unknown bool
	}{
		{LacksTime, r.untimed},
		{LacksDelay, r.follows && r.Delay < 0},
		{LacksBlocks, r.BlockTokens == 0},
		{LacksInput, r.PromptTokens < 0},
		{LacksOutput, r.OutputTokens < 0},
	} {
		if f.unknown {
			names = append(names, f.name)
		}
	}
	return names
}

// words returns the approximate size of a record in words of 8 bytes.
func (r *Record) words() int {
	n := 40 + len(r.Blocks) + len(r.Answer)/8
	for _, m := range r.Messages {
		n += 4 + len(m.Text)/8
	}
	return n
}

// fill gives a record without block hashes distinct blocks of n tokens, unless n is 0.
func (r *Record) fill(n int) {
	if n == 0 || r.BlockTokens > 0 || r.PromptTokens < 0 {
		return
	}
	r.BlockTokens = n
	r.Blocks = make([]uint64, r.PromptTokens/n)
	for i := range r.Blocks {
		r.Blocks[i] = Mix(uint64(r.Line), r.Session, uint64(i))
	}
}

// Options supply what a trace lacks.
type Options struct {
	// BlockTokens is the number of tokens per block, at most 65536. Dynamo's trace contains it. 0 infers it from
	// the first lines: 512 in Mooncake's form and 16 in Bailian's, if they fit.
	BlockTokens int
	// Unit is the unit of timestamps and delays. Dynamo's trace does not need it. "" infers it from the first lines:
	// milliseconds in Mooncake's form and seconds in Bailian's, unless that is doubtful.
	Unit Unit
	// Disorder is the maximum delay of a request in the trace relative to requests that began after it.
	// 0 means [DynamoDisorder] or [MooncakeDisorder].
	Disorder time.Duration
	// Strict ends the reading at the first unusable line, whose *[Note] is the error. Unless Disorder is set, it also
	// refuses times that go back in forms that are in the order of arrival.
	Strict bool
	// Tokenize, if not nil, computes the lengths and block hashes of prompts with texts. It returns the tokens of a
	// text.
	Tokenize func(text string) []uint32
	// FillTokens, if above 0, is the block size of requests without block hashes. They get distinct blocks.
	FillTokens int
	// Progress, if not nil, is called with the number of bytes read.
	Progress func(bytes int)
}

// Defaults of [Options].Disorder.
const (
	MooncakeDisorder = 10 * time.Second
	DynamoDisorder   = 10 * time.Minute // because lines come at the ends of the requests
)

// TextBlockTokens is the default block size of prompts with texts, that of vLLM.
const TextBlockTokens = 16

const byteOrderMark = "\ufeff"

const (
	longestLine = 64 << 20 // bytes
	mostTokens  = 100_000_000
	mostHeld    = 1 << 24 // words of requests that are held back for sorting: 128 MB
	keptNotes   = 10
	firstLines  = 1000 // number of lines for inferring the scale

)

// Note describes an unusable line.
type Note struct {
	File string // empty if the trace is one file
	Line int64
	api.FieldError
}

// Error returns file, line, field, value and what is allowed.
func (n *Note) Error() string {
	at := fmt.Sprintf("line %d: %s", n.Line, n.FieldError.Error())
	if n.File != "" {
		at = n.File + ", " + at
	}
	return at
}

// Missing is a field that some requests lack.
type Missing struct {
	Field    string
	Requests int64
}

// Summary describes the part of a trace that has been read.
type Summary struct {
	Form        Form // of the first usable line; "" before
	BlockTokens int  // of the first usable line
	Lines       int64
	Requests    int64         // usable
	Sessions    int64         // of the requests that were returned
	Arrivals    time.Duration // from the first request to the last one with a time in the trace
	Others      int64         // lines of Dynamo other than a request's end, and headers of CSV
	Unused      int64         // unusable lines
	Notes       []Note        // on the first unusable lines
	Disordered  int64         // lines that came after those of later requests, and were sorted
	Cut         bool          // the trace ends within a line, or within its compression
	Missing     []Missing
}

// Lacking returns a sentence that names the missing fields, or "".
func (s *Summary) Lacking() string {
	if len(s.Missing) == 0 {
		return ""
	}
	var names []string
	for _, m := range s.Missing {
		name := m.Field
		if m.Requests < s.Requests {
			name += fmt.Sprintf(" (in %d of %d requests)", m.Requests, s.Requests)
		}
		switch m.Field {
		case "input_tokens":
			name += " (replay.input_length is used)"
		case LacksBlocks:
			name += " (no prompt shares its beginning with another)"
		}
		names = append(names, name)
	}
	return "The trace lacks " + strings.Join(names, ", ") + "."
}

// Untimed returns the number of requests with unknown times.
func (s *Summary) Untimed() (n int64) {
	if s.Form != Dynamo {
		return s.Requests
	}
	for _, m := range s.Missing {
		if m.Field == "total_time_ms" || m.Field == "ttft_ms" {
			n = max(n, m.Requests)
		}
	}
	return n
}

// Reader reads a trace, plain or compressed by gzip. It is not safe for concurrent use.
type Reader struct {
	options Options
	source  *bufio.Reader
	summary Summary
	line    []byte

	waiting []string  // files to read after the current one
	closer  io.Closer // of the current file, if the reader opened it
	several bool      // the trace has several files
	file    string    // name of the current file, if there are several
	number  int64     // of the current line in its file
	ended   int64     // line in which the last element of a document ended
	whole   bool      // the current file is a JSON document, not lines
	columns *columns  // of the current file, if it is CSV

	// first are the first lines of a trace in Mooncake's form, until its scale is known.
	first    []firstLine
	settled  bool
	scale    scale
	sessions sessions
	turns    map[uint64]int32 // number of returned turns by session
	strange  int              // lines in no known form
	untimed  bool             // the requests have no times

	held    records // requests held back for sorting
	words   int     // approximate size of held, in words of 8 bytes
	latest  float64 // ms, latest request read
	emitted float64 // ms, latest request returned
	began   float64 // ms, first request returned
	given   bool    // a request was returned
	failed  error   // of the source, or io.EOF
}

// firstLine is one of the first lines with its position.
type firstLine struct {
	*object
	file   string
	number int64
}

// NewReader returns a reader of a source, plain or compressed by gzip. It reads only the beginning of the source. Later
// errors, also those of a plain source, come from [Reader.Next]. The error is an *[api.FieldError] for an invalid
// option, or that of the beginning of a compressed source.
func NewReader(source io.Reader, o Options) (*Reader, error) {
	r, err := newReader(o)
	if err != nil {
		return nil, err
	}
	if err := r.begin(source); err != nil {
		return nil, err
	}
	return r, nil
}

func newReader(o Options) (*Reader, error) {
	if o.BlockTokens < 0 || o.BlockTokens > mostBlockTokens {
		return nil, api.Refuse("block_tokens", o.BlockTokens, fmt.Sprintf("1 to %d", mostBlockTokens))
	}
	if o.Disorder < 0 {
		return nil, api.Refuse("disorder", o.Disorder, "0 or more")
	}
	if o.Unit != "" && !slices.Contains(Units, string(o.Unit)) {
		return nil, api.Refuse("time_unit", string(o.Unit), "one of "+strings.Join(Units, ", "))
	}
	r := &Reader{options: o}
	r.turns, r.sessions.delayed = map[uint64]int32{}, true
	return r, nil
}

// begin starts to read a source.
func (r *Reader) begin(source io.Reader) error {
	r.number, r.ended, r.columns = 0, 1, nil
	if r.options.Progress != nil {
		source = &counted{source, r.options.Progress}
	}
	r.source = bufio.NewReaderSize(source, 1<<20)
	if magic, _ := r.source.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(r.source)
		if err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		r.source = bufio.NewReaderSize(unzipped, 1<<20)
	}
	if mark, _ := r.source.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = r.source.Discard(len(mark))
	}
	start, _ := r.source.Peek(longestStart)
	r.whole = isDocument(start)
	return nil
}

// counted reports the number of bytes read.
type counted struct {
	io.Reader
	progress func(int)
}

// Read implements [io.Reader].
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.progress(n)
	return n, err
}

// Summary describes the part of the trace that has been read.
func (r *Reader) Summary() Summary { return r.summary }

// Next returns the next request in the order of time, and [io.EOF] after the last one. Another error is the source's,
// or an *[api.FieldError] for an option that the trace needs.
func (r *Reader) Next() (*Record, error) {
	for r.failed == nil && !r.ready() {
		r.read()
	}
	if len(r.held) == 0 {
		return nil, r.failed
	}
	record := heap.Pop(&r.held).(*Record)
	if !r.given {
		r.given, r.began = true, record.moment
	}
	if record.untimed {
		record.At = -1
	} else {
		r.emitted = record.moment
		record.At = milliseconds(record.moment - r.began)
		r.summary.Arrivals = record.At
	}
	for turn := record; turn != nil; turn = turn.Next {
		turn.given = true
		r.words -= turn.words()
		r.summary.Requests++
		if turn.Session != 0 {
			r.turns[turn.Session]++
			turn.Turn = cmp.Or(turn.Turn, int(r.turns[turn.Session]))
		}
	}
	r.summary.Sessions = int64(len(r.turns))
	return record, nil
}

// ready reports whether no later line can precede the first held request. A turn whose time depends on another turn
// may come anywhere later.
func (r *Reader) ready() bool {
	if len(r.held) == 0 {
		return false
	}
	waiting := r.sessions.delayed && len(r.sessions.turns) > 0
	latestIsFar := r.held[0].untimed || r.latest-r.held[0].moment > r.disorder()
	return r.words > mostHeld || latestIsFar && !waiting
}

// disorder returns the allowed disorder in ms.
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

func (r *Reader) read() {
	line, err := r.nextLine()
	ended := err != nil
	if errors.Is(err, io.ErrUnexpectedEOF) { // of the compression
		r.summary.Cut, err = true, io.EOF
	}
	if line = bytes.TrimSpace(line); len(line) > 0 {
		r.take(line, ended)
	}
	if errors.Is(err, io.EOF) {
		err = r.openNext()
	}
	if err != nil && !r.settled {
		r.settle()
	}
	if r.failed == nil {
		r.failed = err
	}
}

// take decodes a line; last means that its file ends with it.
func (r *Reader) take(line []byte, last bool) {
	if r.columns != nil || r.readHeader(line) {
		r.takeRow(line)
		return
	}
	o, bad := parse(line)
	if bad != nil {
		if last && bad.Field == notJSON {
			r.summary.Cut = true
			bad.Allowed = "a complete line: the trace ends within this one"
		} else if r.summary.Form == "" && len(r.first) == 0 {
			r.refuseForm(bad.Value)
			return
		}
		r.note(bad)
		return
	}
	form := o.form()
	known := r.summary.Form
	if known == "" && len(r.first) > 0 {
		known = r.first[0].form()
	}
	switch {
	case form == "" && known == "":
		r.refuseForm(fieldsOf(line))
	case known == Dynamo && form != Dynamo:
		r.note(refuse("event", "", "an event of Dynamo's request trace, as in the lines before"))
	case known != "" && form != "" && form != known:
		r.note(refuse("form", form, fmt.Sprintf("%s, as in the lines before it", known)))
	default:
		r.takeObject(o, line, cmp.Or(form, known))
	}
}

// takeObject uses an object in a known form.
func (r *Reader) takeObject(o *object, line []byte, form Form) {
	switch {
	case form == Dynamo:
		r.takeEvent(o, line)
	case form == Weka:
		r.useSession(o)
	case form.isDataset():
		r.takeDialog(line, form)
	case r.settled:
		r.useObject(o)
	default:
		r.first = append(r.first, firstLine{o, r.file, r.number})
		r.words += len(o.HashIDs)
		nothingToInfer := r.options.BlockTokens > 0 && r.options.Unit != ""
		if nothingToInfer || len(r.first) >= firstLines || r.words > mostHeld {
			r.settle()
		}
	}
}

// takeEvent uses an event of Dynamo's trace.
func (r *Reader) takeEvent(o *object, line []byte) {
	e := o.Event
	if e == nil {
		e = &event{}
		if err := json.Unmarshal(line, e); err != nil {
			r.note(explain(line, err))
			return
		}
	}
	record, missing, bad := e.dynamo()
	if record == nil && bad == nil {
		r.summary.Others++
		return
	}
	r.use(record, bad)
	if bad == nil {
		r.lacks(missing)
	}
}

// refuseForm notes a line in no known form. After many of them, the file is no trace.
func (r *Reader) refuseForm(value any) {
	r.note(refuse("form", value, knownForms))
	if r.strange++; r.strange >= firstLines && r.failed == nil {
		first := r.summary.Notes[0]
		r.failed = &first
	}
}

// settle infers the scale of a trace from its first lines, and processes these lines. Among them, any disorder is
// sorted.
func (r *Reader) settle() {
	r.settled, r.words = true, 0
	if len(r.first) == 0 {
		return
	}
	objects := make([]*object, len(r.first))
	for i, f := range r.first {
		objects[i] = f.object
	}
	var bad *api.FieldError
	if r.scale, bad = inferScale(objects, r.options); bad != nil {
		r.failed, r.first = bad, nil
		return
	}
	r.sessions.delayed = len(objects) == 1 ||
		slices.ContainsFunc(objects, func(o *object) bool { return o.Timestamp == nil })
	file, number := r.file, r.number
	for _, f := range r.first {
		r.file, r.number = f.file, f.number
		if r.useObject(f.object); r.failed != nil {
			break
		}
	}
	r.file, r.number, r.first = file, number, nil
}

func (r *Reader) useObject(o *object) {
	record, bad := o.mooncake(r.scale)
	at := o.Timestamp
	inferred := r.options.Unit == "" && len(r.first) == 0 && r.scale.milliseconds == 1
	if bad == nil && inferred && at != nil && *at != float64(int64(*at)) {
		allowed := "a whole number of milliseconds, as in the first lines, unless the unit is set"
		bad = refuse("timestamp", *at, allowed)
	}
	if bad == nil {
		record.Line = r.number
		bad = r.join(record, o)
	}
	r.use(record, bad)
}

// useSession processes a line with all requests of a session. Lines are in the order of their first requests, which
// later lines may precede by the allowed disorder.
func (r *Reader) useSession(o *object) {
	if len(o.Requests) == 0 {
		r.note(refuse("requests", "", "a list of the session's requests"))
	}
	began, first := r.latest, math.Inf(1)
	for _, q := range flat(o.Requests) {
		if r.failed != nil {
			return
		}
		r.latest = began
		record, bad := o.weka(q)
		if r.use(record, bad); bad == nil {
			first = min(first, record.moment)
		}
	}
	if r.latest = began; !math.IsInf(first, 1) {
		r.latest = max(began, first)
	}
}

// use holds a record, or reports it as unusable.
func (r *Reader) use(record *Record, bad *api.FieldError) {
	if bad == nil {
		for turn := record; turn != nil; turn = turn.Next {
			turn.Line = r.number
		}
		r.tokenize(record)
		bad = r.fits(record)
	}
	if bad != nil {
		r.note(bad)
		return
	}
	for turn := record; turn != nil; turn = turn.Next {
		r.lacks(turn.lacks())
		turn.fill(r.options.FillTokens)
	}
	r.hold(record)
}

// lacks counts the missing fields of a request.
func (r *Reader) lacks(fields []string) {
	for _, field := range fields {
		at := slices.IndexFunc(r.summary.Missing, func(m Missing) bool { return m.Field == field })
		if at < 0 {
			at = len(r.summary.Missing)
			r.summary.Missing = append(r.summary.Missing, Missing{Field: field})
		}
		r.summary.Missing[at].Requests++
	}
}

// firstMoment returns the moment of the first line that has one, in the trace's own unit.
func (r *Reader) firstMoment() float64 {
	for range firstLines {
		line, err := r.nextLine()
		line = bytes.TrimSpace(line)
		if r.columns != nil || r.readHeader(line) {
			if record, bad := r.columns.record(line, r.options.Unit); bad == nil && record != nil {
				return record.moment
			}
		} else if o, bad := parse(line); bad == nil {
			session := flat(o.Requests)
			switch e := o.Event; {
			case o.Timestamp != nil && e == nil && o.EventType == "":
				return *o.Timestamp
			case len(session) > 0 && session[0].At != nil:
				return *session[0].At
			case e != nil && e.Request != nil && e.Request.Received != nil:
				return *e.Request.Received
			case o.Request != nil && o.Request.Received != nil:
				return *o.Request.Received
			}
		}
		if err != nil {
			break
		}
	}
	return math.Inf(1)
}

// nextLine returns the next line, valid until the next call. The last one comes with io.EOF.
func (r *Reader) nextLine() ([]byte, error) {
	if r.whole {
		return r.nextElement()
	}
	r.line = r.line[:0]
	r.summary.Lines++
	r.number++
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
			r.note(&api.FieldError{
				Field: "line", Value: "a longer one",
				Allowed: fmt.Sprintf("at most %d bytes", longestLine),
			})
			r.line = r.line[:0]
		}
		return r.line, err
	}
}

// fits returns an error if a request cannot be combined with those before it.
func (r *Reader) fits(record *Record) *api.FieldError {
	s := &r.summary
	if s.Form == "" {
		s.Form, s.BlockTokens, r.untimed = record.form, record.BlockTokens, record.untimed
	}
	field := "timestamp"
	if record.form == Dynamo {
		field = "event.request.request_received_ms"
	}
	forward := r.options.Strict && r.options.Disorder == 0 && record.form != Dynamo && record.form != Weka
	switch {
	case record.form != s.Form:
		return refuse("form", record.form, fmt.Sprintf("%s, as in the lines before it", s.Form))
	case record.BlockTokens != s.BlockTokens:
		allowed := fmt.Sprintf("%d, as in the lines before it", s.BlockTokens)
		return refuse("trace_block_size", record.BlockTokens, allowed)
	case record.follows:
		return nil
	case record.untimed != r.untimed:
		return refuse(field, "", "a time in all lines or in none, as in the lines before it")
	case r.given && !record.untimed && record.moment < r.emitted:
		return refuse(field, fmt.Sprintf("%.0f", record.moment),
			fmt.Sprintf("%.0f or more: %.0f s earlier than a previous line is too old", r.emitted,
				(r.latest-record.moment)/1000))
	case forward && record.moment < r.latest:
		return refuse(field, fmt.Sprintf("%.3f ms", record.moment), fmt.Sprintf("%.3f ms or more: times go back from "+
			"an earlier line", r.latest))
	}
	return nil
}

func refuse(field string, value any, allowed string) *api.FieldError {
	return &api.FieldError{Field: field, Value: fmt.Sprintf("%.60s", fmt.Sprint(value)), Allowed: allowed}
}

func (r *Reader) note(bad *api.FieldError) {
	r.summary.Unused++
	if r.options.Strict && r.failed == nil {
		r.failed = &Note{r.file, r.number, *bad}
	}
	if len(r.summary.Notes) < keptNotes {
		r.summary.Notes = append(r.summary.Notes, Note{r.file, r.number, *bad})
	}
}

func (r *Reader) hold(record *Record) {
	for turn := record; turn != nil; turn = turn.Next {
		r.words += turn.words()
	}
	if record.follows {
		return // the previous turn refers to it
	}
	if record.moment < r.latest && record.form != Dynamo && record.form != Weka {
		r.summary.Disordered++
	}
	r.latest = max(r.latest, record.moment)
	heap.Push(&r.held, record)
}

// records is a heap ordered by time and, at equal times, by line.
type records []*Record

// Len implements [heap.Interface].
func (h records) Len() int { return len(h) }

// Less orders by time, then by line.
func (h records) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].moment, h[j].moment), cmp.Compare(h[i].Line, h[j].Line)) < 0
}

// Swap implements [heap.Interface].
func (h records) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *records) Push(x any) { *h = append(*h, x.(*Record)) }

// Pop implements [heap.Interface].
func (h *records) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = nil
	*h = (*h)[:len(*h)-1]
	return last
}
