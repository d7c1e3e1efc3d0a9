//go:build dynamo

package dynamo

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/chart"
	"kvbooth/internal/output"
	"kvbooth/internal/source"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/booth/local"
)

// interpreter returns a Python with Dynamo and the other packages of Dynamo's images.
func interpreter(t *testing.T) string {
	t.Helper()
	cache, err := local.CacheDir()
	require.NoError(t, err)
	python, err := local.InstallDynamo(t.Context(), cache, os.Stderr)
	require.NoError(t, err)
	return python
}

// hub is a fake Hugging Face hub with one repository of one commit.
type hub struct {
	repo, commit, token string // token is "" if the repository is public
	wants               string // the requested repository
	files               map[string][]byte
	url                 string

	mu sync.Mutex
	// holdAfter is the number of bytes of each large file after which the hub stops sending; 0 sends all.
	holdAfter int
	// wrong are files whose next answer has a wrong byte, cut files whose next answer is interrupted.
	wrong, cut map[string]bool
	// elsewhere is the host of large files, which must not get the token. leaks counts the requests with it.
	elsewhere string
	leaks     int
	// asked are the requested ranges by file; "" is the whole file.
	asked map[string][]string
	calls int
	held  chan string // names of held files
}

// largeBytes is the size of a large file.
const largeBytes = 8 << 20

func startHub(t *testing.T) *hub {
	t.Helper()
	large := func(seed byte) []byte {
		data := bytes.Repeat([]byte("weights of a model that is none, "), largeBytes/33+1)[:largeBytes]
		data[0] = seed
		return data
	}
	h := &hub{
		repo: "example/Model-70B", wants: "example/Model-70B", commit: strings.Repeat("a1", 20), wrong: map[string]bool{},
		cut: map[string]bool{}, asked: map[string][]string{}, held: make(chan string, 16),
		files: map[string][]byte{
			"config.json": []byte(`{"model_type": "llama"}`), "tokenizer.json": []byte("{}"),
			"model-00001-of-00002.safetensors": large(1), "model-00002-of-00002.safetensors": large(2),
			"original/model.pth": large(3),
		},
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	h.url = server.URL
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			h.mu.Lock()
			h.leaks++
			h.mu.Unlock()
		}
		h.send(w, r, strings.TrimPrefix(r.URL.Path, "/"))
	}))
	t.Cleanup(files.Close)
	t.Cleanup(files.CloseClientConnections)
	h.elsewhere = files.URL
	return h
}

func isLarge(name string) bool {
	return strings.Contains(name, "model-") || strings.HasSuffix(name, ".pth")
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.calls++
	h.mu.Unlock()
	switch {
	case h.token != "" && r.Header.Get("Authorization") != "Bearer "+h.token:
		w.Header().Set("X-Error-Message", "Invalid credentials in Authorization header")
		http.Error(w, `{"error":"Invalid credentials in Authorization header"}`, http.StatusUnauthorized)
	case strings.HasPrefix(r.URL.Path, "/api/models/"+h.repo):
		h.list(w)
	case strings.HasPrefix(r.URL.Path, "/"+h.repo+"/resolve/"):
		_, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"+h.repo+"/resolve/"), "/")
		if isLarge(name) {
			http.Redirect(w, r, h.elsewhere+"/"+name, http.StatusFound)
			return
		}
		h.send(w, r, name)
	default:
		w.Header().Set("X-Error-Code", "RepoNotFound")
		http.Error(w, `{"error":"Repository not found"}`, http.StatusNotFound)
	}
}

func (h *hub) list(w http.ResponseWriter) {
	siblings := []map[string]any{}
	for name, data := range h.files {
		s := map[string]any{"rfilename": name, "size": len(data), "blobId": gitName(data)}
		if isLarge(name) {
			s["lfs"] = map[string]any{"sha256": sum(data), "size": len(data), "pointerSize": 134}
		}
		siblings = append(siblings, s)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": h.repo, "modelId": h.repo, "sha": h.commit, "private": false, "siblings": siblings, "tags": []string{},
		"downloads": 0,
	})
}

func (h *hub) send(w http.ResponseWriter, r *http.Request, name string) {
	data, ok := h.files[name]
	if !ok {
		w.Header().Set("X-Error-Code", "EntryNotFound")
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	tag := gitName(data)
	if isLarge(name) {
		tag = sum(data)
	}
	w.Header().Set("ETag", `"`+tag+`"`)
	w.Header().Set("X-Repo-Commit", h.commit)
	body := data
	h.mu.Lock()
	hold, cut := h.holdAfter, h.cut[name]
	delete(h.cut, name)
	if r.Method == http.MethodGet {
		h.asked[name] = append(h.asked[name], r.Header.Get("Range"))
		if h.wrong[name] {
			delete(h.wrong, name)
			body = bytes.Clone(data)
			body[len(body)/2] ^= 1
		}
	}
	h.mu.Unlock()
	if hold > 0 && isLarge(name) && r.Method == http.MethodGet {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body[:hold])
		_ = http.NewResponseController(w).Flush()
		h.held <- name
		<-r.Context().Done()
		return
	}
	if cut {
		w = &cutting{ResponseWriter: w, left: 1 << 20}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// cutting is a response whose connection breaks after some bytes.
type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(p []byte) (int, error) {
	if len(p) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

func sum(data []byte) string { s := sha256.Sum256(data); return hex.EncodeToString(s[:]) }

func gitName(data []byte) string {
	s := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(data)), data...))
	return hex.EncodeToString(s[:])
}

// command returns a run of the chart's script.
func (h *hub) command(
	ctx context.Context, t *testing.T, python, to, token string, more ...string,
) (*exec.Cmd, *output.Buffer) {
	t.Helper()
	root, err := source.Root()
	require.NoError(t, err)
	args := append(
		[]string{filepath.Join(root, chart.Dir, "files", "download.py"), "--to=" + to, "--ignore=original/*", "--every=0.05"},
		more...)
	cmd := exec.CommandContext(ctx, python, append(args, h.wants+"@main")...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HF_ENDPOINT=" + h.url, "HF_HOME=" + t.TempDir(), "HF_TOKEN=" + token,
		"PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=*",
	}
	out := &output.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

func (h *hub) run(t *testing.T, python, to, token string, more ...string) (code int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd, out := h.command(ctx, t, python, to, token, more...)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	require.NoError(t, ctx.Err(), out.String())
	return cmd.ProcessState.ExitCode(), out.String()
}

func (h *hub) isWhole(t *testing.T, to string) {
	t.Helper()
	for name, want := range h.files {
		got, err := os.ReadFile(filepath.Join(to, "Model-70B", name))
		if strings.HasPrefix(name, "original/") {
			require.ErrorIs(t, err, os.ErrNotExist, "%s must not be downloaded", name)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, sum(want), sum(got), name)
	}
}

// The Job of the chart that downloads the weights resumes after a kill, downloads damaged files again, and does
// nothing when all files are complete.
func TestDownloadResumesAndRepairs(t *testing.T) {
	python, h, to := interpreter(t), startHub(t), t.TempDir()
	marker := filepath.Join(to, "Model-70B", ".kvbooth.json")

	// The first run is killed after half of both large files.
	h.holdAfter = largeBytes / 2
	ctx, kill := context.WithCancel(t.Context())
	cmd, printed := h.command(ctx, t, python, to, "")
	require.NoError(t, cmd.Start())
	for range 2 {
		wait.Receive(t, "a request for a file", h.held)
	}
	wait.Eventually(t, "the output has the progress", func() (any, bool) {
		return nil, strings.Contains(printed.String(), "example/Model-70B: 0.01 GB of 0.02 GB (50 %)")
	})
	kill()
	require.Error(t, cmd.Wait())
	require.NoFileExists(t, marker, "an incomplete model must not have a marker")

	// The next run requests only the rest. One file is damaged and is requested again. The connection of the other
	// file breaks, and the download resumes.
	h.holdAfter = 0
	h.wrong["model-00002-of-00002.safetensors"] = true
	h.cut["model-00001-of-00002.safetensors"] = true
	code, out := h.run(t, python, to, "")
	require.Zero(t, code, out)
	h.isWhole(t, to)
	resumed := 0
	for _, ranges := range h.asked {
		for _, r := range ranges {
			if r == fmt.Sprintf("bytes=%d-", largeBytes/2) {
				resumed++
			}
		}
	}
	require.Equal(t, 2, resumed, "both half files must be resumed: %q", h.asked)
	assert.Contains(t, out, "model-00002-of-00002.safetensors is damaged and fetched again")
	assert.Contains(t, out, "model-00001-of-00002.safetensors ended")
	require.Contains(t, h.asked["model-00001-of-00002.safetensors"], fmt.Sprintf("bytes=%d-", largeBytes/2+1<<20))
	assert.Contains(t, out, "is whole: 4 files with the hub's checksums")
	require.FileExists(t, marker)

	// All files are complete: no request is sent.
	calls := h.calls
	code, out = h.run(t, python, to, "")
	require.Zero(t, code, out)
	assert.Contains(t, out, "nothing to do")
	require.Equal(t, calls, h.calls)

	// A missing file is found without checksums, a wrong byte only with --verify.
	weights := filepath.Join(to, "Model-70B", "model-00001-of-00002.safetensors")
	require.NoError(t, os.Remove(filepath.Join(to, "Model-70B", "config.json")))
	code, out = h.run(t, python, to, "")
	require.Zero(t, code, out)
	assert.Contains(t, out, "config.json is missing or has another size")
	h.isWhole(t, to)
	damaged := bytes.Clone(h.files["model-00001-of-00002.safetensors"])
	damaged[1<<20] ^= 1
	require.NoError(t, os.WriteFile(weights, damaged, 0o600))
	code, out = h.run(t, python, to, "", "--verify")
	require.Zero(t, code, out)
	assert.Contains(t, out, "model-00001-of-00002.safetensors is damaged and fetched again")
	h.isWhole(t, to)
}

// Errors that a retry cannot repair end the Job at once, with what to do.
func TestDownloadEndsAtPermanentErrors(t *testing.T) {
	python, h := interpreter(t), startHub(t)
	h.token = "right"
	for name, c := range map[string]struct{ token, message string }{
		"wrong token": {"wrong", "the hub shows no such repository to the token in HF_TOKEN"},
		"no token":    {"", "the hub shows no such repository to no token (set model.download.token.secret)"},
	} {
		code, out := h.run(t, python, t.TempDir(), c.token)
		require.Equal(t, 3, code, "%s: %s", name, out)
		assert.Contains(t, out, c.message, name)
		assert.NotContains(t, out, "Traceback", name)
	}
	code, out := h.run(t, python, t.TempDir(), "right")
	require.Zero(t, code, out)
	require.Zero(t, h.leaks, "the token must not be sent to the host of the files")

	h.wants = "example/None"
	code, out = h.run(t, python, t.TempDir(), "right")
	require.Equal(t, 3, code, out)
	assert.Contains(t, out, "whether its name is right")
}
