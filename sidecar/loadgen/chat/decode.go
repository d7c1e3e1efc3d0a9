package chat

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// chunk is what one event of the stream says. It is reused from event to event.
type chunk struct {
	text         []byte // content and reasoning, decoded, in the order in which they came
	content      bool   // there was a non-empty content, reasoning or tool-call delta
	object       bool   // the document was a JSON object with choices, usage or nvext
	finishReason string
	usage        Usage
	hasUsage     bool
	worker       uint64 // nvext.worker_id.decode_worker_id, or the prefill worker's
	timing       Timing
	hasTiming    bool
	errMessage   string
	errType      string
	isError      bool
}

func (c *chunk) reset() {
	*c = chunk{text: c.text[:0]}
}

var errJSON = errors.New("not a JSON chunk")

// decodeChunk reads one chat completion chunk. It looks only at the members
// that are measured or shown, walks over all others, and allocates for none of
// the members that every chunk carries. The error says that data is not one
// JSON object.
func decodeChunk(data []byte, c *chunk) error {
	c.reset()
	d := decoder{data: data}
	if d.peek() != '{' {
		return errJSON
	}
	d.object(func(key []byte) {
		switch string(key) {
		case "choices":
			c.object = true
			d.array(func(int) { d.choice(c) })
		case "usage":
			c.object = true
			d.usage(c)
		case "nvext":
			c.object = true
			d.nvext(c)
		case "error":
			d.errorMember(c)
		case "message":
			c.errMessage = d.text()
		case "type":
			c.errType = d.text()
		default:
			d.skip()
		}
	})
	d.space()
	if d.bad || d.pos != len(d.data) {
		return errJSON
	}
	// Dynamo's form: the error's members stand at the top, and no choices do.
	if !c.object && c.errMessage != "" {
		c.isError = true
	}
	return nil
}

func (d *decoder) choice(c *chunk) {
	d.object(func(key []byte) {
		switch string(key) {
		case "delta":
			d.delta(c)
		case "finish_reason":
			if s := d.text(); s != "" {
				c.finishReason = s
			}
		default:
			d.skip()
		}
	})
}

func (d *decoder) delta(c *chunk) {
	d.object(func(key []byte) {
		switch string(key) {
		case "content", "reasoning", "reasoning_content":
			before := len(c.text)
			c.text = d.appendText(c.text)
			c.content = c.content || len(c.text) > before
		case "tool_calls":
			if d.peek() != '[' {
				d.skip()
				return
			}
			d.array(func(int) {
				c.content = true
				d.skip()
			})
		default:
			d.skip()
		}
	})
}

func (d *decoder) usage(c *chunk) {
	c.hasUsage = d.peek() == '{' || c.hasUsage
	d.members(func(key []byte) {
		switch string(key) {
		case "prompt_tokens":
			c.usage.Prompt, _ = d.count()
		case "completion_tokens":
			c.usage.Completion, _ = d.count()
		case "prompt_tokens_details":
			d.members(func(key []byte) {
				if string(key) == "cached_tokens" {
					c.usage.Cached, c.usage.HasCached = d.count()
					return
				}
				d.skip()
			})
		default:
			d.skip()
		}
	})
}

func (d *decoder) nvext(c *chunk) {
	d.members(func(key []byte) {
		switch string(key) {
		case "worker_id":
			d.members(func(key []byte) {
				switch string(key) {
				case "decode_worker_id":
					c.worker = d.id(c.worker)
				case "prefill_worker_id":
					if id := d.id(0); c.worker == 0 {
						c.worker = id
					}
				default:
					d.skip()
				}
			})
		case "timing":
			d.timing(c)
		default:
			d.skip()
		}
	})
}

func (d *decoder) timing(c *chunk) {
	c.hasTiming = d.peek() == '{' || c.hasTiming
	d.members(func(key []byte) {
		switch string(key) {
		case "ttft_ms":
			ms, ok := d.optional()
			c.timing.TTFT, c.timing.HasTTFT = ms/1000, ok
		case "kv_hit_rate":
			c.timing.PredictedHitRatio, c.timing.HasPredicted = d.optional()
		case "router_queue_depth":
			c.timing.QueueDepth, c.timing.HasQueueDepth = d.count()
		default:
			d.skip()
		}
	})
}

func (d *decoder) errorMember(c *chunk) {
	switch d.peek() {
	case '{':
		c.isError = true
		d.object(func(key []byte) {
			switch string(key) {
			case "message":
				c.errMessage = d.text()
			case "type":
				c.errType = d.text()
			default:
				d.skip()
			}
		})
	case '"':
		c.isError = true
		c.errMessage = d.text()
	default:
		d.skip() // "error": null is no error
	}
}

// decoder walks over one JSON document. After the first fault every method
// returns at once, so that callers need not check each step.
type decoder struct {
	data  []byte
	pos   int
	depth int
	bad   bool
}

// maxDepth bounds the nesting that skip follows; chunks have fewer than ten levels.
const maxDepth = 64

func (d *decoder) fail() { d.bad, d.pos = true, len(d.data) }

func (d *decoder) space() {
	for d.pos < len(d.data) && d.data[d.pos] <= ' ' {
		d.pos++
	}
}

// peek returns the first byte of the next value, or 0 at the end.
func (d *decoder) peek() byte {
	d.space()
	if d.pos == len(d.data) {
		return 0
	}
	return d.data[d.pos]
}

func (d *decoder) expect(b byte) bool {
	if d.peek() != b {
		d.fail()
		return false
	}
	d.pos++
	return true
}

// object calls member with each key; member must consume the value. null
// counts as an object without members.
func (d *decoder) object(member func(key []byte)) {
	if d.peek() == 'n' {
		d.literal("null")
		return
	}
	if !d.enter('{') {
		return
	}
	defer d.leave()
	if d.peek() == '}' {
		d.pos++
		return
	}
	for !d.bad {
		if d.peek() != '"' {
			d.fail()
			return
		}
		key, escaped := d.raw()
		if escaped {
			key, _ = unescape(nil, key)
		}
		if !d.expect(':') {
			return
		}
		member(key)
		if d.closes('}') {
			return
		}
	}
}

// members is object for a value that may be of another kind, which it passes over.
func (d *decoder) members(member func(key []byte)) {
	if d.peek() != '{' {
		d.skip()
		return
	}
	d.object(member)
}

// array calls element for each element; element must consume it.
func (d *decoder) array(element func(i int)) {
	if d.peek() == 'n' {
		d.literal("null")
		return
	}
	if !d.enter('[') {
		return
	}
	defer d.leave()
	if d.peek() == ']' {
		d.pos++
		return
	}
	for i := 0; !d.bad; i++ {
		element(i)
		if d.closes(']') {
			return
		}
	}
}

func (d *decoder) enter(open byte) bool {
	d.depth++
	if d.depth > maxDepth {
		d.fail()
	}
	return d.expect(open)
}

func (d *decoder) leave() { d.depth-- }

// closes consumes a comma or the closing bracket and says which it was.
func (d *decoder) closes(end byte) bool {
	switch d.peek() {
	case ',':
		d.pos++
		return false
	case end:
		d.pos++
		return true
	}
	d.fail()
	return true
}

func (d *decoder) literal(word string) {
	if !bytes.HasPrefix(d.data[d.pos:], []byte(word)) {
		d.fail()
		return
	}
	d.pos += len(word)
}

// raw consumes a string and returns what stands between its quotes, still
// escaped where escaped is true.
func (d *decoder) raw() (s []byte, escaped bool) {
	d.pos++ // the opening quote
	start := d.pos
	for {
		i := bytes.IndexByte(d.data[d.pos:], '"')
		if i < 0 {
			d.fail()
			return nil, false
		}
		end := d.pos + i
		d.pos = end + 1
		if !escaped {
			escaped = bytes.IndexByte(d.data[start:end], '\\') >= 0
		}
		if !escaped || evenBackslashes(d.data[start:end]) {
			return d.data[start:end], escaped
		}
	}
}

// evenBackslashes says whether s ends in an even number of backslashes, that
// is, whether a quote after it is a real one.
func evenBackslashes(s []byte) bool {
	n := 0
	for n < len(s) && s[len(s)-1-n] == '\\' {
		n++
	}
	return n%2 == 0
}

// appendText consumes a string and appends it, unescaped; null appends nothing.
func (d *decoder) appendText(dst []byte) []byte {
	if d.peek() != '"' {
		d.skip()
		return dst
	}
	s, escaped := d.raw()
	if !escaped {
		return append(dst, s...)
	}
	dst, ok := unescape(dst, s)
	if !ok {
		d.fail()
	}
	return dst
}

// text consumes a string; anything else is skipped and gives "".
func (d *decoder) text() string {
	return string(d.appendText(nil))
}

// count consumes a number of things or null and says which it was. A count is
// never below zero, nor beyond an int32, whatever the server says.
func (d *decoder) count() (n int, ok bool) {
	v, ok := d.optional()
	return int(min(max(v, 0), math.MaxInt32)), ok
}

// optional consumes a number or null and says which it was; anything else is a fault.
func (d *decoder) optional() (float64, bool) {
	if d.peek() == 'n' {
		d.literal("null")
		return 0, false
	}
	v, err := strconv.ParseFloat(string(d.token()), 64)
	if err != nil {
		d.fail()
		return 0, false
	}
	return v, true
}

// id consumes a 64-bit id, which a float64 cannot hold, as a number or a string;
// any other value gives otherwise.
func (d *decoder) id(otherwise uint64) uint64 {
	d.space()
	start := d.pos
	d.skip()
	digits := bytes.Trim(d.data[start:d.pos], `"`)
	if v, err := strconv.ParseUint(string(digits), 10, 64); err == nil {
		return v
	}
	return otherwise
}

// token consumes the bytes of a number.
func (d *decoder) token() []byte {
	d.space()
	start := d.pos
	for d.pos < len(d.data) {
		switch b := d.data[d.pos]; {
		case b >= '0' && b <= '9', b == '-', b == '+', b == '.', b == 'e', b == 'E':
			d.pos++
			continue
		}
		break
	}
	return d.data[start:d.pos]
}

// skip walks over one value of any kind.
func (d *decoder) skip() {
	switch d.peek() {
	case '"':
		d.raw()
	case '{':
		d.object(func([]byte) { d.skip() })
	case '[':
		d.array(func(int) { d.skip() })
	case 't':
		d.literal("true")
	case 'f':
		d.literal("false")
	case 'n':
		d.literal("null")
	default:
		if len(d.token()) == 0 {
			d.fail()
		}
	}
}

// unescape appends s without its JSON escapes. A lone surrogate becomes U+FFFD,
// as encoding/json has it.
func unescape(dst, s []byte) ([]byte, bool) {
	for len(s) > 0 {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return append(dst, s...), true
		}
		dst = append(dst, s[:i]...)
		if i+1 >= len(s) {
			return dst, false
		}
		esc := s[i+1]
		s = s[i+2:]
		if esc != 'u' {
			b, ok := simpleEscape(esc)
			if !ok {
				return dst, false
			}
			dst = append(dst, b)
			continue
		}
		r, rest, ok := unicodeEscape(s)
		if !ok {
			return dst, false
		}
		dst, s = utf8.AppendRune(dst, r), rest
	}
	return dst, true
}

func simpleEscape(b byte) (byte, bool) {
	switch b {
	case '"', '\\', '/':
		return b, true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	}
	return 0, false
}

// unicodeEscape reads the four digits after \u, and a second escape where the
// two are a surrogate pair.
func unicodeEscape(s []byte) (r rune, rest []byte, ok bool) {
	hi, ok := hex4(s)
	if !ok {
		return 0, s, false
	}
	rest = s[4:]
	if !utf16.IsSurrogate(hi) {
		return hi, rest, true
	}
	if len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
		if lo, ok := hex4(rest[2:]); ok {
			if pair := utf16.DecodeRune(hi, lo); pair != utf8.RuneError {
				return pair, rest[6:], true
			}
		}
	}
	return utf8.RuneError, rest, true
}

func hex4(s []byte) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	v, err := strconv.ParseUint(string(s[:4]), 16, 16)
	return rune(v), err == nil
}
