package api

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCSVText(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "-5": "-5", "+1.5e-3": "+1.5e-3", "a - b": "a - b", "text": "text", "a;b": "a;b", "2026-11-26": "2026-11-26",
		"=1+1": "'=1+1", "+cmd": "'+cmd", "-cmd": "'-cmd", "@SUM(A1)": "'@SUM(A1)",
		"-5+cmd|' /C calc'!A0": "'-5+cmd|' /C calc'!A0",
		"\t=1":                 "'\t'=1", "\r=1": "'\r'=1", "\n": "'\n", "  =1": "'  =1", "\u00a0=1": "'\u00a0=1",
		"＝1+1": "'＝1+1",
		"a;=1": "a;'=1", "a\n@b": "a\n'@b", "a|-x": "a|'-x", "a\t=1": "a\t'=1", "-Inf": "'-Inf", "-0x1p-2": "'-0x1p-2",
	} {
		assert.Equal(t, want, CSVText(text))
	}
	assert.Equal(t, "=worker", plainText(CSVText("=worker")))
	assert.Equal(t, "'worker", plainText("'worker"))
}
