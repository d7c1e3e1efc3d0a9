package chat

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// events reads pieces with a fresh reader and lists what it dispatched.
func events(pieces ...string) (got []string, err error) {
	r := sseReader{event: func(name string, data []byte) { got = append(got, fmt.Sprintf("%s|%s", name, data)) }}
	err = feed(&r, pieces...)
	return got, err
}

// feed reads a whole stream in pieces.
func feed(r *sseReader, pieces ...string) error {
	for _, p := range pieces {
		if err := r.feed([]byte(p)); err != nil {
			return err
		}
	}
	return r.finish()
}

func TestSSE(t *testing.T) {
	long, lines := strings.Repeat("7,", 500), strings.Repeat("data: 1234567\n", 10)
	for _, row := range []struct {
		name, in string
		want     []string
	}{
		{"lines end in LF", "data: a\n\ndata: b\n\n", []string{"|a", "|b"}},
		{"lines end in CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"|a", "|b"}},
		{"lines end in CR", "data: a\r\rdata: b\r\r", []string{"|a", "|b"}},
		{"line ends are mixed", "data: a\r\n\rdata: b\n\r\n", []string{"|a", "|b"}},
		{"CR LF is one line end, not two", "data: a\r\ndata: b\r\n\r\n", []string{"|a\nb"}},
		{"the blank after the colon is optional", "data:a\n\n", []string{"|a"}},
		{"only one blank is taken away", "data:  a \n\n", []string{"| a "}},
		{"several data lines are one event", "data: {\"a\":\ndata: 1}\n\n", []string{"|{\"a\":\n1}"}},
		{"empty data lines count as lines", "data: a\ndata\ndata:\ndata: b\n\n", []string{"|a\n\n\nb"}},
		{"a name holds for one event", "event: ping\ndata: 1\n\ndata: 2\n\n", []string{"ping|1", "|2"}},
		{"a name without data", "event: ping\n\n", []string{"ping|"}},
		{"comments and other fields are no data", ": hi\nid: 7\nretry: 9\nfoo: x\ndata: a\n: bye\n\n", []string{"|a"}},
		{"a comment with data in it", ":data: a\n\n", nil},
		{"colons in the value stay", "data: a: b\n\n", []string{"|a: b"}},
		{"many blank lines", "\n\n\ndata: a\n\n\n\n", []string{"|a"}},
		{"no blank line at the end", "data: a\n", []string{"|a"}},
		{"no line end at the end", "data: a\n\ndata: b", []string{"|a", "|b"}},
		{"nothing", "", nil},
		{"a long event for others", "event: token_ids\ndata: [" + long + "]\ndata: more\n\ndata: a\n\n", []string{"|a"}},
		{"a long list of ids in short lines", "event: token_ids\n" + lines + "\ndata: a\n\n", []string{"|a"}},
		{"an event of any other name", "event: x\ndata: " + long + "\n\n", []string{"x|" + long}},
		{"an error whose message is a comment", "event: error\n: worker lost\n\n", []string{"error|worker lost"}},
		{"an error whose comment comes first", ": worker\n: lost\nevent: error\n\n", []string{"error|worker\n lost"}},
		{"a comment of the event before", ": ping\n\nevent: error\n\n", []string{"error|"}},
		{"a field named error", "error: {\"code\":400}\n\ndata: a\n\n", []string{"error|{\"code\":400}", "|a"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			for i, pieces := range everyCut(row.in) {
				got, err := events(pieces...)
				require.NoError(t, err)
				require.Equal(t, row.want, got, "cut %d", i)
			}
		})
	}
}

func TestSSEStray(t *testing.T) {
	var got []string
	r := sseReader{event: func(string, []byte) {}, text: func(lines []byte) { got = append(got, string(lines)) }}
	long := strings.Repeat("x", 2*maxNonData)
	require.NoError(t, feed(&r, ": c\nid: 1\n<html>\n<body>\n\ndata: a\n\n{\n"+long+"\n}"))
	want := []string{"<html>\n<body>", "{\n" + long[:maxNonData-2]}
	assert.Equal(t, want, got, "the lines of each block that are no fields")
}

// A line may be far longer than 64 KiB, where bufio.Scanner gives up, but not endless. Its buffers are for those that
// need them next.
func TestSSELongLines(t *testing.T) {
	t.Parallel()
	long, sizes := bytes.Repeat([]byte("x"), 500<<10), []int{}
	r := sseReader{event: func(_ string, data []byte) { sizes = append(sizes, len(data)) }}
	for range 3 {
		for piece := range slices.Chunk(slices.Concat([]byte("data: "), long, []byte("\n\n")), 16<<10) {
			require.NoError(t, r.feed(piece))
		}
		assert.Zero(t, r.held)
	}
	assert.Equal(t, []int{len(long), len(long), len(long)}, sizes)
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for _, row := range []struct {
		name         string
		first, again string
	}{
		{"one endless line", "data: ", ""},
		{"an event of endless lines", "data: ", "\ndata: "},
		{"an endless comment", ": ", ""},
	} {
		r := sseReader{event: func(string, []byte) { t.Errorf("%s: an event", row.name) }}
		err := r.feed([]byte(row.first))
		for n := 0; err == nil && n < 20; n++ {
			if err = r.feed(piece); err == nil {
				err = r.feed([]byte(row.again))
			}
		}
		require.ErrorIs(t, err, errEventTooLong, row.name)
		r.release()
		assert.Zero(t, cap(r.line)+cap(r.data), row.name)
	}
}

// Nothing of a long event for others is stored, wherever its lines are cut.
func TestSSESkips(t *testing.T) {
	r := sseReader{event: func(name string, _ []byte) { t.Errorf("event %q", name) }}
	long := bytes.Repeat([]byte("x"), 1<<20)
	for _, piece := range [][]byte{[]byte("event: token_ids\ndata: "), long, long, []byte("\ndata: "), append(long,
		'\n'), []byte("data: "), long, []byte("\n\n")} {
		if err := r.feed(piece); err != nil || r.held > 1<<10 {
			t.Fatalf("%d bytes are held; %v", r.held, err)
		}
	}
	r.release()
}

// FuzzSSE: the events do not depend on how the stream is cut.
func FuzzSSE(f *testing.F) {
	for _, s := range []string{
		"data: a\n\n", "event: x\r\ndata: b\r\n\r\n", ": c\r\rdata:1\rdata:2\r\r", "data\n\ndata: \n",
		"\r\n\r\ndata: [DONE]", "\xef\xbb\xbfdata: a\n\n",
	} {
		f.Add([]byte(s), uint16(3), uint16(5))
	}
	f.Fuzz(func(t *testing.T, data []byte, i, j uint16) {
		in := string(data)
		want, err := events(in)
		if err != nil {
			t.Skip() // only an event over 1 MiB
		}
		from := int(i) % (len(in) + 1)
		to := from + int(j)%(len(in)-from+1)
		for _, pieces := range [][]string{{in[:from], in[from:to], in[to:]}, singles(in)} {
			if got, err := events(pieces...); err != nil || !slices.Equal(got, want) {
				t.Fatalf("cut at %d and %d: got %q, %v; want %q", from, to, got, err, want)
			}
		}
		if n := strings.Count(in, "data"); len(want) > n+strings.Count(in, "event") {
			t.Fatalf("%d events out of %d data fields", len(want), n)
		}
	})
}
