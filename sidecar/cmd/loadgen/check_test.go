//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The check refuses each file that a start refuses, with the same message, and prints what a start would only report.
func TestCheckReadsWhatStartReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	const questions = "../../loadgen/corpus/source/testdata/"
	short := file("short.jsonl", `{"id":"a","topic":"T","text":"Short."}`)
	for _, c := range []struct {
		arg, want string
		starts    bool
	}{
		{"--corpus-file=" + short, "corpus.file: the corpus " + short + " cannot be read: it has no usable text; " +
			"first of 1 skipped: short.jsonl, line 1: it is too short", false},
		{"--corpus-file=" + file("x.json", "[{"), "first of 1 skipped: x.json: not JSON", false},
		{"--corpus-file=" + dir + "/none.md", "cannot be read: no such file or directory", false},
		{
			"--corpus-dir=" + filepath.Dir(file("pdfs/a.pdf", "%PDF")),
			"corpus.dir: the corpus " + dir + "/pdfs cannot be read: ", false,
		},
		{"--corpus-file=" + questions + "mtbench.jsonl", "The configuration is valid.\n", true},
		{
			"--corpus-file=" + questions + "sharegpt.json --opening-tokens=4000",
			"opening_tokens: 4000 is not allowed: leave it out: the corpus is a question set", false,
		},
		{"--corpus-dir=" + filepath.Dir(file("mixed/a.jsonl", `{"turns": ["A"]}`+"\n{}")), "Texts of the corpus that are skipped: 1. The first one is a.jsonl, line 2: ", true},
		{"--members-nats-url=tls://x:4222 --members-nats-nkey-file=" + short, "members.nats.nkey_file: ", false},
		{"--mode-driver=kubernetes --mode-kubernetes-kubeconfig=" + short, "mode.kubernetes.kubeconfig: ", false},
		{"--data-dir=" + short, "data_dir: " + short + " is not allowed: a directory", false},
		{"--data-dir=/dev/null/data", "data_dir: /dev/null/data is not allowed: a directory", false},
		{"--output=" + dir + "/none/run.json", "its directory does not exist", false},
		{"--tls-cert-file=" + short + " --tls-key-file=" + short, "tls_cert_file: ", false},
		{"--default-baseline=none", `default_baseline: none is not allowed: "this target", or a baseline in data_dir or built in: h100x8`, false},
		{"--default-baseline=H100X8", "default_baseline: H100X8 is not allowed", false},
	} {
		code, stdout, stderr := command(t, append([]string{"check", someTarget}, strings.Fields(c.arg)...)...)
		if c.starts {
			assert.Equal(t, success, code, stderr)
			assert.Contains(t, stdout, c.want)
			continue
		}
		assert.Equal(t, badInput, code, c.arg)
		assert.Contains(t, stderr, c.want)
		assert.Empty(t, stdout, c.arg)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 4, "nothing is made")
}

// The lines of question sets are asked turn by turn.
func TestQuestionSets(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	table := filepath.Join(t.TempDir(), "run.csv")
	code, _, stderr := newProgram(
		t, "--target-url="+server.URL, "--corpus-file=../../loadgen/corpus/source/testdata/mtbench.jsonl", "--output="+table,
		"--concurrency=1", "--openings=0", "--start-rate=1000", "--target-rps=0", "--turns-min=5", "--turns-max=5",
		"--requests=6", "--caches=kept",
	).finish()
	require.Equal(t, success, code, stderr)
	first := *server.first.Load()
	assert.Contains(t, []string{"Compose a travel post about an island.", "Draft a mail to a supervisor."}, first)
	rows := content(t, table)
	assert.Regexp(t, `-0,2,main-\w+-0-2,.*,ok,`, rows)
	assert.NotRegexp(t, `-0,3,`, rows, "each has two turns")
}
