package chat

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// maxHead bounds the status line and headers of a response, maxErrorBody what
// is kept of the body of an error.
const (
	maxHead      = 64 << 10
	maxErrorBody = 16 << 10
)

var (
	errHeadTooLong = errors.New("the response's headers are longer than 64 KiB")
	errNotHTTP     = errors.New("the answer is not HTTP/1.1")
	errFraming     = errors.New("the response's chunked framing is broken")
)

// bodyEnd is how a response says where its body ends.
type bodyEnd int

const (
	byChunks bodyEnd = iota // Transfer-Encoding: chunked
	byLength                // Content-Length
	byClose                 // the connection's end
)

// response parses one HTTP/1.1 response as its bytes come in. net/http's parser
// reads the headers; the body's framing is undone here, because net/http gives
// bytes out only to a reader that blocks.
type response struct {
	body func(p []byte) error // called with each piece of the body

	head    []byte
	status  int
	header  http.Header
	end     bodyEnd
	left    int64  // bytes left of the chunk or of the body
	framing []byte // a chunk's size line or a trailer line that is not complete
	inTrail bool
	done    bool
	keep    bool // the connection can carry another request
	stream  bool // a 200 whose body is a stream of events
}

// feed takes the next bytes. After done it ignores them and gives up the connection.
func (r *response) feed(p []byte) error {
	if r.header == nil {
		rest, err := r.feedHead(p)
		if err != nil || r.header == nil {
			return err
		}
		p = rest
	}
	if r.done && len(p) > 0 {
		r.keep = false
		return nil
	}
	switch r.end {
	case byChunks:
		return r.feedChunked(p)
	case byLength:
		return r.feedLength(p)
	default:
		return r.body(p)
	}
}

// eof takes the connection's end; the error says that it came too early.
func (r *response) eof() error {
	r.keep = false
	if r.header != nil && (r.end == byClose || r.done) {
		r.done = true
		return nil
	}
	return errors.New("the connection ended before the response did")
}

func (r *response) feedHead(p []byte) (rest []byte, err error) {
	before := len(r.head)
	r.head = append(r.head, p...)
	from := max(0, before-3)
	i := bytes.Index(r.head[from:], []byte("\r\n\r\n"))
	end := from + i + 4
	switch {
	case !bytes.HasPrefix(r.head, []byte("HTTP/1.")[:min(7, len(r.head))]):
		return nil, errNotHTTP
	case i < 0 && len(r.head) > maxHead:
		return nil, errHeadTooLong
	case i < 0:
		return nil, nil
	}
	if err := r.parseHead(r.head[:end]); err != nil {
		return nil, err
	}
	rest = r.head[end:]
	r.head = nil
	if r.status < 200 { // 100 Continue and other interim responses
		*r = response{body: r.body}
		return nil, r.feed(rest)
	}
	return rest, nil
}

func (r *response) parseHead(head []byte) error {
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(head)), &http.Request{Method: http.MethodPost})
	if err != nil {
		return fmt.Errorf("%w: %w", errNotHTTP, err)
	}
	// Nothing of the body was handed to the parser, so closing reads nothing.
	defer res.Body.Close()
	r.status, r.header = res.StatusCode, res.Header
	r.keep = !res.Close
	r.stream = r.status == http.StatusOK && isStream(res.Header.Get("Content-Type"))
	switch {
	case len(res.TransferEncoding) > 0:
		r.end = byChunks
	case res.ContentLength >= 0:
		r.end, r.left = byLength, res.ContentLength
		r.done = r.left == 0
	default:
		r.end, r.keep = byClose, false
	}
	return nil
}

func (r *response) feedLength(p []byte) error {
	if int64(len(p)) > r.left {
		p, r.keep = p[:r.left], false
	}
	r.left -= int64(len(p))
	r.done = r.left == 0
	return r.body(p)
}

func (r *response) feedChunked(p []byte) error {
	for len(p) > 0 {
		if r.done {
			r.keep = false
			return nil
		}
		if r.left > 0 {
			n := min(int64(len(p)), r.left)
			r.left -= n
			if err := r.body(p[:n]); err != nil {
				return err
			}
			p = p[n:]
			continue
		}
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			if r.framing = append(r.framing, p...); len(r.framing) > maxHead {
				return errFraming
			}
			return nil
		}
		line := p[:i]
		if len(r.framing) > 0 {
			r.framing = append(r.framing, line...)
			line = r.framing
		}
		p = p[i+1:]
		if err := r.framingLine(bytes.TrimSuffix(line, []byte("\r"))); err != nil {
			return err
		}
		r.framing = r.framing[:0]
	}
	return nil
}

// framingLine takes a chunk's size, the blank line behind a chunk, or a trailer.
func (r *response) framingLine(line []byte) error {
	if r.inTrail {
		r.done = len(line) == 0
		return nil
	}
	if len(line) == 0 {
		return nil
	}
	size, _, _ := bytes.Cut(line, []byte(";"))
	n, err := strconv.ParseInt(string(bytes.TrimSpace(size)), 16, 64)
	if err != nil || n < 0 {
		return errFraming
	}
	r.left, r.inTrail = n, n == 0
	return nil
}

// isStream says whether a content type is that of server-sent events. Some
// servers forget it, so only a plainly different type counts as no stream.
func isStream(contentType string) bool {
	t := strings.ToLower(contentType)
	return t == "" || strings.HasPrefix(t, "text/event-stream") || strings.HasPrefix(t, "text/plain")
}
