package trace

import (
	"bytes"
	"errors"
)

const longestStart = 1 << 12 // bytes that decide whether a file is a JSON document

// isDocument reports whether a file with this start is a JSON document over several lines: a list of objects, or
// objects whose brace has a line of its own. Other files have an object in each line.
func isDocument(start []byte) bool {
	start = bytes.TrimLeft(start, " \t\r\n")
	if len(start) == 0 {
		return false
	}
	first, _, several := bytes.Cut(start, []byte("\n"))
	return start[0] == '[' || several && string(bytes.TrimSpace(first)) == "{"
}

// nextElement returns the next object of a JSON document, valid until the next call, in one line. The last one comes
// with io.EOF.
func (r *Reader) nextElement() ([]byte, error) {
	r.line, r.number = r.line[:0], r.ended
	depth, inText, escaped := 0, false, false
	for {
		b, err := r.source.ReadByte()
		if err != nil {
			if len(r.line) > 0 {
				r.summary.Lines++
			}
			return r.line, err
		}
		if b == '\n' {
			r.ended++
			b = ' '
		}
		if len(r.line) == 0 {
			if bytes.IndexByte([]byte(" \t\r,[]"), b) >= 0 {
				continue
			}
			r.number = r.ended
		}
		if len(r.line) > longestLine {
			return r.line, errors.New("an object of more than 64 MiB")
		}
		r.line = append(r.line, b)
		switch {
		case escaped:
			escaped = false
		case inText:
			escaped, inText = b == '\\', b != '"'
		case b == '"':
			inText = true
		case b == '{' || b == '[':
			depth++
		case b == '}' || b == ']':
			depth--
		}
		if depth <= 0 && !inText && (b == '}' || b == ',' || b == ']') {
			r.summary.Lines++
			return r.line, nil
		}
	}
}
