package api

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Printable returns a text of another program with escapes such as \u001b and \n in place of control characters,
// invisible characters and invalid UTF-8, which could otherwise control a terminal or deceive a reader.
func Printable(text string) string {
	if isPlain(text) {
		return text
	}
	var b strings.Builder
	for rest := text; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, rest[0])
		case strconv.IsGraphic(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		default:
			escape(&b, r)
		}
		rest = rest[size:]
	}
	return b.String()
}

// isPlain reports whether a text has only printable ASCII.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// escape writes a character as JSON does.
func escape(w io.Writer, r rune) {
	if r <= 0xffff {
		fmt.Fprintf(w, `\u%04x`, r)
	} else {
		fmt.Fprintf(w, `\U%08x`, r)
	}
}

// PrintableWriter returns a writer that writes escapes in place of control characters, except tabs and the ends of
// lines. It keeps JSON valid.
func PrintableWriter(w io.Writer) io.Writer { return &printableWriter{w} }

type printableWriter struct{ w io.Writer }

// Write writes p, and reports its length.
func (p *printableWriter) Write(text []byte) (int, error) {
	var b bytes.Buffer
	for i := 0; i < len(text); i++ {
		c := text[i]
		next := byte(0)
		if i+1 < len(text) {
			next = text[i+1]
		}
		switch {
		case c == '\n', c == '\t', c == '\r' && next == '\n':
			b.WriteByte(c)
		case c < ' ', c == 0x7f:
			escape(&b, rune(c))
		case c == 0xc2 && 0x80 <= next && next < 0xa0: // a control character of Latin-1
			escape(&b, rune(next))
			i++
		default:
			b.WriteByte(c)
		}
	}
	if _, err := p.w.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}
