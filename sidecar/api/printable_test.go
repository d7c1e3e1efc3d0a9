package api

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestControlCharactersAreEscaped(t *testing.T) {
	for _, row := range []struct{ text, want, written string }{
		{"plain", "plain", "plain"},
		{"größer 大 😀\u00a0€", "größer 大 😀\u00a0€", "größer 大 😀\u00a0€"},
		{"\x1b[31mred\x1b[0m", `\u001b[31mred\u001b[0m`, `\u001b[31mred\u001b[0m`},
		{"a\rb\x00\x7f\u009b2J", `a\u000db\u0000\u007f\u009b2J`, `a\u000db\u0000\u007f\u009b2J`},
		{"a\tb\nc\r\n", `a\tb\nc\u000d\n`, "a\tb\nc\r\n"},
		{"\u202eevil\u200b\U000e0001", `\u202eevil\u200b\U000e0001`, "\u202eevil\u200b\U000e0001"},
		{"cut \xe5", `cut \xe5`, "cut \xe5"},
	} {
		assert.Equal(t, row.want, Printable(row.text))
		assert.Equal(t, row.want, Printable(row.want), "once is enough")
		var out strings.Builder
		n, err := PrintableWriter(&out).Write([]byte(row.text))
		require.NoError(t, err)
		assert.Equal(t, len(row.text), n)
		assert.Equal(t, row.written, out.String())
	}
}
