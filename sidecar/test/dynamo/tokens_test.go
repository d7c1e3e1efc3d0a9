//go:build dynamo

package dynamo

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/sim"
)

// Dynamo and the simulation make the same tokens of a conversation, by chat template and tokenizer.json, also after a
// worker and the frontend were killed and restarted. In the end, no process is left.
func TestDynamoHasTheSimulationsTokens(t *testing.T) {
	d := Start(t, 18000)
	articles, err := corpus.Builtin()
	require.NoError(t, err)
	for _, starter := range articles.Starters {
		sameTokens(t, d, starter.Text)
	}
	before := d.Workers()
	d.Mockers[0].Process().Kill()
	require.NoError(t, d.Mockers[0].Start(t.Context()))
	d.Frontend.Process().Kill()
	require.NoError(t, d.Frontend.Start(t.Context()))
	after := d.Workers()
	assert.NotEqual(t, before[0].Instance, after[0].Instance)
	assert.Equal(t, before[1:], after[1:], "only the first worker is a new process")
	forgetsTheKilled(t, d)
	sameTokens(t, d, "Again.")
	leavesNothing(t, d)
}

// forgetsTheKilled waits until the frontend lists only running instances. Until its lease ends, a killed worker still
// gets turns.
func forgetsTheKilled(t *testing.T, d *local.Dynamo) {
	t.Helper()
	var want []string
	for _, w := range d.Workers() {
		want = append(want, w.Instance)
	}
	slices.Sort(want)
	wait.Eventually(t, "the frontend lists the instances that run", func() (any, bool) {
		listed, err := d.Instances(t.Context())
		slices.Sort(listed)
		return listed, err == nil && slices.Equal(listed, want)
	})
}

// sameTokens compares Dynamo's token IDs of a conversation with the simulation's.
func sameTokens(t *testing.T, d *local.Dynamo, text string) {
	t.Helper()
	messages := []sim.Message{
		{Role: "system", Content: "Answer in prose.\n"},
		{Role: "user", Content: text},
		{Role: "assistant", Content: "func f() {\n\n\t\n  return \"naïve 世界 😀\" // {{ 12345 }}\r\n}"},
		{Role: "user", Content: " Why? "},
	}
	assert.Equal(t, sim.Encode(sim.RenderChat(messages)), tokenIDs(t, d, messages), "%.40q", text)
}

// tokenIDs requests an answer of one token and returns the prompt's token IDs.
func tokenIDs(t *testing.T, d *local.Dynamo, messages []sim.Message) (ids []uint32) {
	t.Helper()
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	request := struct {
		Model     string         `json:"model"`
		Messages  []message      `json:"messages"`
		Stream    bool           `json:"stream"`
		MaxTokens int            `json:"max_tokens"`
		Nvext     map[string]any `json:"nvext"`
	}{Model: sim.H200().Model, Stream: true, MaxTokens: 1, Nvext: map[string]any{"annotations": []string{"token_ids"}}}
	for _, m := range messages {
		request.Messages = append(request.Messages, message(m))
	}
	body, err := json.Marshal(request)
	require.NoError(t, err)
	for line := range strings.Lines(post(t, d.URL()+"/v1/chat/completions", body)) {
		if quoted, ok := strings.CutPrefix(line, ": "); ok { // a comment line with a JSON string
			var list string
			require.NoError(t, json.Unmarshal([]byte(quoted), &list))
			require.NoError(t, json.Unmarshal([]byte(list), &ids))
		}
	}
	return ids
}

func post(t *testing.T, url string, body []byte) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	var answer bytes.Buffer
	_, err = answer.ReadFrom(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, "%s: %s", url, &answer)
	return answer.String()
}

// leavesNothing stops a Dynamo and checks that its processes and port are gone.
func leavesNothing(t *testing.T, d *local.Dynamo) {
	t.Helper()
	began, workers := time.Now(), d.Workers()
	d.Stop(t.Context())
	t.Logf("stopped after %v", time.Since(began).Round(time.Millisecond))
	for _, w := range workers {
		assert.ErrorIs(t, syscall.Kill(w.PID, 0), syscall.ESRCH, "%s still runs with process ID %d", w.Name, w.PID)
	}
	listener, err := net.Listen("tcp", strings.TrimPrefix(d.URL(), "http://"))
	require.NoError(t, err, "the frontend's port must be free again")
	_ = listener.Close()
}

func TestHuggingFaceHasTheSimulationsTokens(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, sim.WriteModel(dir))
	texts := awkwardTexts(5000)
	input, err := json.Marshal(map[string]any{"tokenizer": filepath.Join(dir, "tokenizer.json"), "texts": texts})
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), interpreter(t), "-c", `
import json, sys, tokenizers
job = json.load(sys.stdin)
tokenizer = tokenizers.Tokenizer.from_file(job["tokenizer"])
json.dump([tokenizer.encode(text, add_special_tokens=False).ids for text in job["texts"]], sys.stdout)
`)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	output, err := cmd.Output()
	require.NoError(t, err)
	var got [][]uint32
	require.NoError(t, json.Unmarshal(output, &got))
	for i, text := range texts {
		require.Equal(t, sim.Encode(text), got[i], "%q", text)
	}
}

// awkwardTexts returns random combinations of characters that tokenizers often treat incorrectly.
func awkwardTexts(n int) []string {
	pieces := append(strings.Fields("'s 'S 'ſ 'LL 're a the hello ing Z 0 12 1234 ٣ ½ Ⅷ _ - !! ... é e\u0301 ß İ ǅ "+
		"日本 한글 العربية ა 😀 👩‍👩‍👧 "+
		"\U0001F1E6 \U0010fffd \u200b \ufeff \x00 \x7f <|im_end|> <|endoftext|> <|im_start|> <|im"),
		" ", "  ", "    ", "\t", "\n", "\r\n", "\r", "\v", "\f", "\u00a0", "\u3000", "\u2028", "\u0085", "\x1c")
	random := rand.New(rand.NewPCG(1, 2))
	texts := make([]string, n)
	for i := range texts {
		for range 1 + random.IntN(12) {
			texts[i] += pieces[random.IntN(len(pieces))]
		}
	}
	return texts
}
